// Contract of the effect ledger for what a failover of the database has lost, for what a human is shown at once, and for whose an
// inherited effect is.
import { describe, expect, it } from 'vitest';
import type { EffectClaim, EffectIdentity, ShownCall } from '../../src/ports/effects.ts';
import { INHERITED_EPOCH } from '../../src/rules/run-input.ts';
import { identityOf, newId, newRun, refTo, startedRun, type GivenStores } from './given.ts';

const LEASE_MS = 60_000;
const OTHER = { idempotent: false, leaseMs: LEASE_MS };
const RESULT = { why: 'result' };
const DOUBT = { why: 'doubt' };

/** What a human is shown who is asked about this. */
function shownBy(claim: EffectClaim): readonly ShownCall[] {
  if (claim.kind !== 'differs') throw new Error(claim.kind);
  return claim.earlier.map(({ effectId, epoch, why }) => ({ effectId, epoch, why }));
}

function effectOf(claim: EffectClaim): string {
  if (claim.kind !== 'perform') throw new Error(claim.kind);
  return claim.effectId;
}

export function lostClaimsContract(stores: GivenStores): void {
  const ledger = (): ReturnType<GivenStores>['effects'] => stores().effects;
  const childOf = async (parentRunId: string): Promise<string> => {
    const run = newRun();
    const header = { ...run.input.header, parentRunId };
    await stores().families.acceptChild({ ...run, input: { ...run.input, header } }, 100);
    return run.runId;
  };

  describe('EffectLedger', () => {
    // [I99]
    it('architecture §5 a claim whose row is lost is put back with what it came to, beside no other', async () => {
      const identity = identityOf(await startedRun(stores()));
      const done = { identity, attempt: 0, state: 'done', idempotent: false, epoch: 4 } as const;
      const open = { isAsked: true, isForeign: false };
      const lost = { ...done, ...open, outcomeHash: 'sha256:outcome' };
      expect(await ledger().putBack(lost)).toBe(true);
      expect(await ledger().putBack({ ...lost, state: 'in-doubt', epoch: 9 })).toBe(false);
      const claim = await ledger().claim(identity, 1, OTHER);
      expect(claim).toMatchObject({ kind: 'done', outcomeHash: 'sha256:outcome' });
      const nobody = identityOf(newId('run'));
      expect(await ledger().putBack({ ...lost, identity: nobody })).toBe(false);
    });

    // [I99]
    it('architecture §5 a word about a later doubt than the row has, as after a failover, holds for one claim', async () => {
      const identity = identityOf(await startedRun(stores()));
      const first = await ledger().claim(identity, 0, OTHER);
      if (first.kind !== 'perform') throw new Error(first.kind);
      await ledger().settle(first.effectId, first.epoch, 'failed-before-send');
      // The row's epoch is 1: the first claim by the word would else come into the doubt of epoch 3 itself.
      const options = { idempotent: false, leaseMs: 0, force: { epoch: 3 } };
      const kinds: string[] = [];
      for (let round = 0; round < 3; round += 1)
        kinds.push((await ledger().claim(identity, 0, options)).kind);
      expect(kinds).toEqual(['perform', 'in-doubt', 'in-doubt']);
    });

    // [I91]
    it('architecture §6 inherited with a run above, and then by its own run: one row, of that run', async () => {
      const branch = await startedRun(stores());
      const child = await childOf(branch);
      const below = { series: newId('series'), rootRunId: branch };
      const above = identityOf(branch, below);
      const own = { ...above, runId: await childOf(child) };
      const former = { attempt: 0, state: 'in-doubt' } as const;
      for (const identity of [above, own, own]) await ledger().inherit([{ ...former, identity }]);
      expect(await ledger().ofRun(refTo(above.runId))).toEqual([]);
      expect(await ledger().ofRun(refTo(own.runId))).toMatchObject([former]);
      // Neither the branch that is tried again, nor one beside it, or of another parent, takes it.
      const cousin = { ...above, runId: await childOf(await childOf(branch)) };
      const others = [above, { ...above, runId: child }, { ...above, runId: await childOf(child) }];
      for (const identity of [...others, cousin]) {
        await ledger().inherit([{ ...former, identity }]);
        expect(await ledger().ofRun(refTo(own.runId))).toMatchObject([former]);
      }
      // What was claimed since is whose claim it is.
      const force = { epoch: INHERITED_EPOCH };
      await ledger().claim(own, 0, { ...OTHER, force });
      await ledger().inherit([{ ...former, identity: above }]);
      expect(await ledger().ofRun(refTo(own.runId))).toMatchObject([{ state: 'claimed' }]);
    });

    // [I91]
    it('architecture §6 what was in doubt above and is known by then is known to its own run', async () => {
      const branch = await startedRun(stores());
      const above = identityOf(branch, { series: newId('series'), rootRunId: branch });
      const own = { ...above, runId: await childOf(branch) };
      await ledger().inherit([{ identity: above, attempt: 0, state: 'in-doubt' }]);
      const done = { attempt: 0, state: 'done', outcomeHash: 'sha256:outcome' } as const;
      await ledger().inherit([{ ...done, identity: own }]);
      const claim = await ledger().claim(own, 1, OTHER);
      expect(claim).toMatchObject({ kind: 'done', outcomeHash: 'sha256:outcome' });
      // Never the other way round.
      await ledger().inherit([{ identity: own, attempt: 0, state: 'in-doubt' }]);
      expect(await ledger().claim(own, 2, OTHER)).toMatchObject({ kind: 'done' });
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
        expect(claim).toMatchObject({ kind: 'differs', isMore });
        expect(shownBy(claim)).toHaveLength(5);
      },
    );

    /** Brings a call into a state, whatever stands in its way. */
    async function given(
      identity: EffectIdentity,
      state: 'done' | 'done-without-result' | 'in-doubt',
    ): Promise<void> {
      const claim = await ledger().claim(identity, 0, { ...OTHER, force: 'settles' });
      if (claim.kind !== 'perform') throw new Error(claim.kind);
      const outcome = state === 'in-doubt' ? undefined : 'sha256:outcome';
      await ledger().settle(claim.effectId, claim.epoch, state, outcome);
    }

    // [I34]
    it('architecture §5 what is certain is told first, and a word on some of what stands leaves the rest asked about', async () => {
      const same = identityOf(await startedRun(stores()));
      const doubtful = { ...same, argsHash: 'h2' };
      await given(same, 'done-without-result');
      await given(doubtful, 'in-doubt');
      const again = { ...same, occurrence: 1 };
      const call = (shown: readonly ShownCall[] = []) =>
        ledger().claim(again, 0, { ...OTHER, force: { shown } });
      const asked = await ledger().claim(again, 0, OTHER);
      expect(asked).toMatchObject({ kind: 'differs', earlier: [RESULT, DOUBT] });
      const [result, doubt] = shownBy(asked);
      if (!result || !doubt) throw new Error('two stand in the way');
      expect(await call([doubt])).toMatchObject({ kind: 'differs', earlier: [RESULT] });
      expect(await call([result])).toMatchObject({ kind: 'differs', earlier: [DOUBT] });
      expect(await call([{ ...result, why: 'doubt' }, doubt])).toMatchObject({
        ...{ kind: 'differs', earlier: [RESULT] },
      });
      expect(await ledger().ofRun(stores().runs.ref(same.tenant, same.runId))).toHaveLength(2);
      expect(await call([result, doubt])).toMatchObject({ kind: 'perform', inDoubt: false });
    });

    // [I34]
    it('architecture §5 of six doubts a human is asked about the last one before the call is performed', async () => {
      const identity = identityOf(await startedRun(stores()));
      for (let occurrence = 0; occurrence < 6; occurrence++)
        await given({ ...identity, occurrence }, 'in-doubt');
      const call = (shown?: readonly ShownCall[]) =>
        ledger().claim({ ...identity, argsHash: 'other' }, 0, {
          ...OTHER,
          ...(shown ? { force: { shown } } : {}),
        });
      const five = shownBy(await call());
      const last = await call(five);
      expect(last).toMatchObject({ kind: 'differs', earlier: [DOUBT], isMore: false });
      expect(await call([...five, ...shownBy(last)])).toMatchObject({ kind: 'perform' });
    });

    // [I34] A call that a human had made again meanwhile, and whose end is not known either.
    it.each(['before the word', 'after the word'])(
      'architecture §5 a word on a doubt is none on a later one of the same call: %s',
      async (when) => {
        const first = identityOf(await startedRun(stores()));
        await given(first, 'in-doubt');
        const left = { ...OTHER, hasLeftCalls: true };
        const other = { ...first, nodeId: 'm', argsHash: 'h2' };
        const shown = shownBy(await ledger().claim(other, 0, left));
        expect(shown).toMatchObject([DOUBT]);
        const again = async (): Promise<void> => {
          const doubt = await ledger().recall(first);
          if (doubt?.kind !== 'in-doubt') throw new Error(doubt?.kind);
          const force = { epoch: doubt.epoch };
          const claim = await ledger().claim(first, 0, { ...OTHER, leaseMs: 0, force });
          expect(claim.kind).toBe('perform');
        };
        if (when === 'before the word') await again();
        const byWord = await ledger().claim(other, 0, { ...left, force: { shown } });
        expect(byWord.kind).toBe(when === 'before the word' ? 'differs' : 'perform');
        if (when === 'before the word') return;
        const third = { ...first, nodeId: 'o', argsHash: 'h3' };
        await ledger().settle(effectOf(byWord), 1, 'done', 'sha256:outcome');
        expect((await ledger().claim(third, 0, left)).kind).toBe('perform');
        await again();
        const fourth = { ...third, nodeId: 'p' };
        expect(await ledger().claim(fourth, 0, left)).toMatchObject({ kind: 'differs' });
      },
    );

    // [I34]
    it('architecture §5 a claim whose lease is over is the same doubt when it is noted as one', async () => {
      const lost = identityOf(await startedRun(stores()));
      await ledger().claim(lost, 0, { idempotent: false, leaseMs: 0 });
      const other = { ...lost, argsHash: 'h2' };
      const shown = shownBy(await ledger().claim(other, 0, OTHER));
      const epoch = shown[0]?.epoch;
      expect(await ledger().recall(lost)).toMatchObject({ kind: 'in-doubt', epoch });
      expect(await ledger().claim(other, 0, { ...OTHER, force: { shown } })).toMatchObject({
        ...{ kind: 'perform' },
      });
    });

    // [I34]
    it('architecture §5 that a doubt is asked about stays with it, whatever its tool says later', async () => {
      const identity = identityOf(await startedRun(stores()));
      const at = (isHarmless: boolean, leaseMs = 0) =>
        ledger().claim(identity, 0, { idempotent: true, isHarmless, leaseMs });
      expect(await at(true)).toMatchObject({ kind: 'perform', isAsked: false });
      expect(await at(false)).toMatchObject({ kind: 'perform', isAsked: true });
      expect(await at(true)).toMatchObject({ kind: 'perform', isAsked: true, inDoubt: true });
      const doubt = await ledger().recall(identity);
      expect(doubt).toMatchObject({ kind: 'in-doubt', isAsked: true, isForeign: false });
      if (doubt?.kind !== 'in-doubt') throw new Error(doubt?.kind);
      await ledger().settle(doubt.effectId, doubt.epoch, 'failed-before-send');
      expect(await at(true)).toMatchObject({ kind: 'perform', isAsked: false, inDoubt: false });
    });
  });
}
