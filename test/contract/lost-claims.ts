// Contract of the effect ledger for what a failover of the database has lost, and for what a human is shown at once.
import { describe, expect, it } from 'vitest';
import { identityOf, newId, startedRun, type GivenStores } from './given.ts';

const LEASE_MS = 60_000;
const OTHER = { idempotent: false, leaseMs: LEASE_MS };

export function lostClaimsContract(stores: GivenStores): void {
  const ledger = (): ReturnType<GivenStores>['effects'] => stores().effects;

  describe('EffectLedger', () => {
    // [I99]
    it('architecture §5 a claim whose row is lost is put back with what it came to, beside no other', async () => {
      const identity = identityOf(await startedRun(stores()));
      const done = { identity, attempt: 0, state: 'done', idempotent: false, epoch: 4 } as const;
      const lost = { ...done, outcomeHash: 'sha256:outcome' };
      expect(await ledger().putBack(lost)).toBe(true);
      expect(await ledger().putBack({ ...lost, state: 'in-doubt', epoch: 9 })).toBe(false);
      const claim = await ledger().claim(identity, 1, OTHER);
      expect(claim).toMatchObject({ kind: 'done', outcomeHash: 'sha256:outcome' });
      const nobody = identityOf(newId('run'));
      expect(await ledger().putBack({ ...lost, identity: nobody })).toBe(false);
    });

    it.each([
      [5, false],
      [6, true],
    ])(
      'architecture §5 of %i doubts a human is shown five, and whether there are others: %s',
      async (count, isMore) => {
        const identity = identityOf(await startedRun(stores()));
        const doubts = Array.from({ length: count }, (_, occurrence) => ({
          identity: { ...identity, occurrence },
          ...{ attempt: 0, state: 'in-doubt' as const },
        }));
        await ledger().inherit(doubts);
        const claim = await ledger().claim({ ...identity, argsHash: 'other' }, 0, OTHER);
        expect(claim).toMatchObject({ kind: 'differs', why: 'doubt', isMore });
        expect(claim.kind === 'differs' && claim.earlier).toHaveLength(5);
      },
    );
  });
}
