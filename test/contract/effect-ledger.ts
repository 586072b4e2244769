// What every EffectLedger does (architecture §5): the whole state table, and its promise under concurrent claimers.
import { describe, expect, it } from 'vitest';
import { INHERITED_EPOCH } from '../../src/rules/run-input.ts';
import type {
  EffectClaim,
  EffectIdentity,
  EffectState,
  HumanWord,
} from '../../src/ports/effects.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { GivenStores } from './given.ts';
import { batchAfter, entry, headOf, identityOf, newId, startedRun, refTo } from './given.ts';
import { runRef } from '../support/run-ref.ts';

const LEASE_MS = 60_000;
const NO_LEASE_MS = 0;
type Kind = 'idempotent' | 'other' | 'forced';
const OPTIONS: Record<Kind, { idempotent: boolean; force?: HumanWord }> = {
  idempotent: { idempotent: true },
  other: { idempotent: false },
  forced: { idempotent: false, force: 'settles' },
};
type Found = EffectState | 'none' | 'claimed, lease over';

const TABLE: Record<Found, Record<Kind, EffectClaim['kind']>> = {
  none: { idempotent: 'perform', other: 'perform', forced: 'perform' },
  claimed: { idempotent: 'busy', other: 'busy', forced: 'busy' },
  'claimed, lease over': { idempotent: 'perform', other: 'in-doubt', forced: 'perform' },
  'in-doubt': { idempotent: 'perform', other: 'in-doubt', forced: 'perform' },
  'failed-before-send': { idempotent: 'perform', other: 'perform', forced: 'perform' },
  done: { idempotent: 'done', other: 'done', forced: 'done' },
  'done-without-result': { idempotent: 'failed', other: 'failed', forced: 'failed' },
  'failed-final': { idempotent: 'failed', other: 'failed', forced: 'failed' },
};
const WITH_OUTCOME: ReadonlySet<Found> = new Set(['done', 'done-without-result', 'failed-final']);
const CASES = Object.entries(TABLE).flatMap(([found, row]) =>
  Object.entries(row).map(([kind, expected]) => [found as Found, kind as Kind, expected] as const),
);

/** Where an earlier call was made, and where the new one is. */
const PLACES = {
  'the same attempt': { before: {}, attempt: 0 },
  'the same attempt, in other words': { before: {}, attempt: 0, argsHash: 'h2' },
  'an earlier attempt': { before: {}, attempt: 1 },
  'an earlier attempt, in other words': { before: {}, attempt: 1, argsHash: 'h2' },
  'an earlier visit': { before: {}, attempt: 0, visit: 2 },
  'an earlier visit, in other words': { before: {}, attempt: 0, visit: 2, argsHash: 'h2' },
  'another node': { before: { nodeId: 'm' }, attempt: 0 },
  'another node, in other words': { before: { nodeId: 'm' }, attempt: 0, argsHash: 'h2' },
} as const;
type Place = keyof typeof PLACES;
type Way = 'perform' | 'busy' | 'differs: attempt' | 'differs: doubt' | 'differs: result';
/** What a new call finds in its way, as `Found` and by `Place`, where a call was left before. */
const WAYS: Record<Place, Record<Exclude<Found, 'none'>, Way>> = {
  'the same attempt': ways('differs: doubt', { 'done-without-result': 'differs: result' }),
  'the same attempt, in other words': ways('differs: doubt'),
  'an earlier attempt': ways('differs: doubt', {
    claimed: 'differs: attempt',
    done: 'differs: attempt',
    'done-without-result': 'differs: result',
  }),
  'an earlier attempt, in other words': ways('differs: doubt', {
    claimed: 'differs: attempt',
    done: 'differs: attempt',
    'done-without-result': 'differs: attempt',
  }),
  // Its claim is of a worker that is gone, or about to settle it.
  'an earlier visit': ways('differs: doubt', { claimed: 'busy' }),
  'an earlier visit, in other words': ways('differs: doubt', { claimed: 'busy' }),
  'another node': ways('differs: doubt', { claimed: 'busy' }),
  'another node, in other words': ways('differs: doubt', { claimed: 'busy' }),
};
/** In doubt as one word says, and else performed but for `more`. */
function ways(
  doubt: Way,
  more: Partial<Record<Found, Way>> = {},
): Record<Exclude<Found, 'none'>, Way> {
  return {
    ...{ claimed: 'perform', done: 'perform', 'done-without-result': 'perform' },
    ...{ 'failed-before-send': 'perform', 'failed-final': 'perform' },
    ...{ 'in-doubt': doubt, 'claimed, lease over': doubt },
    ...more,
  };
}
const STANDING = Object.entries(WAYS).flatMap(([place, row]) =>
  Object.entries(row).map(
    ([found, expected]) => [found as Found, place as Place, expected] as const,
  ),
);

/** A human has the call performed, and was shown what stands in its way. */
function wordOn(claim: EffectClaim): HumanWord {
  if (claim.kind !== 'differs') throw new Error(claim.kind);
  return { shown: claim.earlier.map(({ effectId, epoch, why }) => ({ effectId, epoch, why })) };
}

/** Brings the effect into a state the way a worker would. */
async function given(
  stores: Stores,
  identity: EffectIdentity,
  found: Found,
  attempt = 0,
): Promise<void> {
  if (found === 'none') return;
  const leaseMs = found === 'claimed, lease over' ? NO_LEASE_MS : LEASE_MS;
  // A word: what else stands in the run does not matter here. The tool was idempotent when it was sent.
  const options = { idempotent: true, leaseMs, force: 'settles' } as const;
  const claim = await stores.effects.claim(identity, attempt, options);
  if (claim.kind !== 'perform') throw new Error(claim.kind);
  if (found === 'claimed' || found === 'claimed, lease over') return;
  const outcome = WITH_OUTCOME.has(found) ? 'sha256:outcome' : undefined;
  expect(await stores.effects.settle(claim.effectId, claim.epoch, found, outcome)).toBe(true);
}

export function effectLedgerContract(stores: GivenStores): void {
  const ledger = (): ReturnType<GivenStores>['effects'] => stores().effects;

  describe('EffectLedger', () => {
    it.each(CASES)('architecture §5 found %s, %s tool: %s', async (found, kind, expected) => {
      const identity = identityOf(await startedRun(stores()));
      await given(stores(), identity, found);
      const claim = await ledger().claim(identity, 1, { ...OPTIONS[kind], leaseMs: LEASE_MS });
      expect(claim.kind).toBe(expected);
      // What a former sending may have done stays in doubt, also where a human has it made again.
      const inDoubt = found === 'in-doubt' || found === 'claimed, lease over';
      // Whoever claimed it before has lost it.
      const epoch = found === 'none' ? 1 : 2;
      if (claim.kind === 'perform') expect(claim).toMatchObject({ epoch, inDoubt });
      if (claim.kind === 'done' || claim.kind === 'failed')
        expect(claim.outcomeHash).toBe('sha256:outcome');
      const rows = await ledger().ofRun(refTo(identity.runId));
      expect(rows).toHaveLength(1);
      expect(rows[0]?.identity).toEqual(identity);
    });

    it.each(Object.entries(TABLE))(
      'architecture §5 found %s: recall tells it and claims nothing, whatever the tool is',
      async (found, { other }) => {
        const identity = identityOf(await startedRun(stores()));
        await given(stores(), identity, found as Found);
        const before = await ledger().ofRun(refTo(identity.runId));
        const recalled = await ledger().recall(identity);
        expect(recalled?.kind).toBe(other === 'perform' ? undefined : other);
        const after = await ledger().ofRun(refTo(identity.runId));
        // Whoever still holds a claim that ran out has lost it.
        if (found === 'claimed, lease over')
          expect(after).toMatchObject([{ state: 'in-doubt', epoch: (before[0]?.epoch ?? 0) + 1 }]);
        else expect(after).toEqual(before);
      },
    );

    it.each([
      ['done', 'idempotent', 'done'],
      ['done', 'other', 'done'],
      ['failed-final', 'other', 'failed'],
      ['done-without-result', 'other', 'failed'],
      // Its tool knows another key: nobody can be asked, and nothing is repeated by this one.
      ['in-doubt', 'idempotent', 'in-doubt'],
      ['in-doubt', 'other', 'in-doubt'],
      ['in-doubt', 'forced', 'perform'],
    ] as const)('architecture §6 inherited as %s, %s tool: %s', async (state, kind, expected) => {
      const identity = identityOf(await startedRun(stores()));
      const outcome = state === 'in-doubt' ? {} : { outcomeHash: 'sha256:outcome' };
      await ledger().inherit([{ identity, attempt: 0, state, ...outcome }]);
      // Another call of the tool may be the same effect in other words.
      const other = identityOf(identity.runId, { argsHash: 'h2' });
      const asked = await ledger().claim(other, 1, { ...OPTIONS.other, leaseMs: LEASE_MS });
      expect(asked.kind).toBe(state === 'failed-final' ? 'perform' : 'differs');
      const claim = await ledger().claim(identity, 1, { ...OPTIONS[kind], leaseMs: LEASE_MS });
      expect(claim).toMatchObject({ kind: expected, ...outcome });
    });

    it('architecture §6 what the ledger knows stands; a run that has ended inherits for its family, one that nobody knows nothing', async () => {
      const identity = identityOf(await startedRun(stores()));
      await given(stores(), identity, 'in-doubt');
      const done = { identity, attempt: 0, state: 'done', outcomeHash: 'sha256:other' } as const;
      await ledger().inherit([done]);
      expect(await ledger().recall(identity)).toMatchObject({ kind: 'in-doubt' });
      const closed = await startedRun(stores());
      const head = await headOf(stores(), closed);
      await stores().log.append(
        batchAfter(head, [entry(closed, 'terminal')], { status: 'cancelled', closed: true }),
      );
      await ledger().inherit([{ ...done, identity: identityOf(closed) }]);
      expect(await ledger().ofRun(refTo(closed))).toMatchObject([{ state: 'done' }]);
      const unknown = newId('run');
      await ledger().inherit([{ ...done, identity: identityOf(unknown) }]);
      expect(await ledger().ofRun(refTo(unknown))).toEqual([]);
    });

    it('architecture §5 a lost epoch neither renews nor settles; the one who holds it does, and may say so twice', async () => {
      const identity = identityOf(await startedRun(stores()));
      const idempotent = { idempotent: true, leaseMs: NO_LEASE_MS };
      const first = await ledger().claim(identity, 0, idempotent);
      const second = await ledger().claim(identity, 0, { ...idempotent, leaseMs: LEASE_MS });
      if (first.kind !== 'perform' || second.kind !== 'perform') throw new Error('not claimed');
      expect(second.epoch).toBeGreaterThan(first.epoch);
      expect(await ledger().renew(first.effectId, first.epoch, LEASE_MS)).toBe(false);
      expect(await ledger().settle(first.effectId, first.epoch, 'done', 'sha256:a')).toBe(false);
      expect(await ledger().renew(second.effectId, second.epoch, LEASE_MS)).toBe(true);
      expect(await ledger().settle(second.effectId, second.epoch, 'done', 'sha256:b')).toBe(true);
      expect(await ledger().settle(second.effectId, second.epoch, 'done', 'sha256:b')).toBe(true);
      expect(await ledger().settle(second.effectId, second.epoch, 'failed-final', 'sha256:c')).toBe(
        false,
      );
      expect(await ledger().renew(second.effectId, second.epoch, LEASE_MS)).toBe(false);
      expect(await ledger().ofRun(refTo(identity.runId))).toMatchObject([
        { state: 'done', outcomeHash: 'sha256:b', epoch: second.epoch },
      ]);
    });

    it('architecture §5 a performer whose claim went into doubt cannot settle; the doubt is settled under its epoch', async () => {
      const identity = identityOf(await startedRun(stores()));
      const slow = await ledger().claim(identity, 0, { idempotent: false, leaseMs: NO_LEASE_MS });
      const doubt = await ledger().claim(identity, 0, { idempotent: false, leaseMs: LEASE_MS });
      if (slow.kind !== 'perform' || doubt.kind !== 'in-doubt') throw new Error(doubt.kind);
      expect(await ledger().settle(slow.effectId, slow.epoch, 'done', 'sha256:a')).toBe(false);
      expect(await ledger().settle(doubt.effectId, doubt.epoch, 'failed-before-send')).toBe(true);
      expect(
        await ledger().claim(identity, 0, { idempotent: false, leaseMs: LEASE_MS }),
      ).toMatchObject({
        kind: 'perform',
        epoch: doubt.epoch + 1,
      });
    });

    // [I99]
    it('architecture §5 a human’s word is about one doubt, and holds for one claim', async () => {
      const identity = identityOf(await startedRun(stores()));
      const byWord = (force: HumanWord, leaseMs = NO_LEASE_MS) =>
        ledger().claim(identity, 0, { idempotent: false, leaseMs, force });
      await given(stores(), identity, 'claimed, lease over');
      const doubt = await ledger().recall(identity);
      if (doubt?.kind !== 'in-doubt') throw new Error(doubt?.kind);
      const word = { epoch: doubt.epoch };
      expect(await byWord({ epoch: doubt.epoch - 1 })).toMatchObject(doubt);
      expect(await byWord({})).toMatchObject(doubt);
      expect(await byWord(word)).toMatchObject({ kind: 'perform', inDoubt: true });
      // Whoever comes behind a lost worker with the same word finds a doubt of its own.
      expect(await byWord(word)).toMatchObject({ kind: 'in-doubt' });
      expect(await byWord(word)).toMatchObject({ kind: 'in-doubt' });
    });

    // [I99]
    it.each([
      ['no row', 1, ['perform', 'in-doubt', 'in-doubt']],
      ['an inherited row', INHERITED_EPOCH, ['perform', 'in-doubt', 'in-doubt']],
      // It was said to the source, and may be used up there.
      ['an inherited row', 1, ['in-doubt', 'in-doubt', 'perform']],
    ] as const)(
      'architecture §5 a word where a fork has %s, about epoch %i, is about that doubt alone and holds for one claim',
      async (has, epoch, kinds) => {
        const identity = identityOf(await startedRun(stores()));
        if (has === 'an inherited row')
          await ledger().inherit([{ identity, attempt: 0, state: 'in-doubt' }]);
        const byWord = (of: number) =>
          ledger().claim(identity, 0, {
            ...{ idempotent: false, leaseMs: NO_LEASE_MS, force: { epoch: of } },
          });
        const claims = [await byWord(epoch), await byWord(epoch), await byWord(INHERITED_EPOCH)];
        expect(claims.map(({ kind }) => kind)).toEqual(kinds);
        for (const claim of claims) {
          // Its source sent it under another key: its tool knows nothing of that, and so it stays in doubt.
          expect(claim).toMatchObject({ isAsked: true, isForeign: true });
          if (claim.kind === 'perform') expect(claim.inDoubt).toBe(true);
        }
      },
    );

    it('architecture §5 renewing keeps the claim from going into doubt', async () => {
      const identity = identityOf(await startedRun(stores()));
      const claim = await ledger().claim(identity, 0, { idempotent: false, leaseMs: NO_LEASE_MS });
      if (claim.kind !== 'perform') throw new Error(claim.kind);
      expect(await ledger().renew(claim.effectId, claim.epoch, LEASE_MS)).toBe(true);
      expect(
        await ledger().claim(identity, 0, { idempotent: false, leaseMs: LEASE_MS }),
      ).toMatchObject({
        kind: 'busy',
      });
    });

    // [I34]
    it.each(STANDING)(
      'architecture §5 a new call, where a call of the tool is %s in %s: %s',
      async (found, place, expected) => {
        const runId = await startedRun(stores());
        const { before, attempt, ...more } = PLACES[place];
        await given(stores(), identityOf(runId, before), found);
        const asked = identityOf(runId, { ...more, occurrence: 1 });
        const claim = (kind: Kind, options = {}): Promise<EffectClaim> =>
          ledger().claim(asked, attempt, {
            ...{ ...OPTIONS[kind], hasLeftCalls: true, leaseMs: LEASE_MS, ...options },
          });
        const told = expected.startsWith('differs: ')
          ? { kind: 'differs', earlier: [{ why: expected.slice('differs: '.length) }] }
          : { kind: expected };
        if (expected !== 'perform') {
          expect(await claim('other')).toMatchObject(told);
          const again = await claim('idempotent');
          expect(again).toMatchObject(told);
          // The other call may end long before its lease.
          if (again.kind === 'busy')
            expect(again.leaseUntilMs).toBeLessThan(Date.now() + LEASE_MS / 2);
          expect(await ledger().ofRun(refTo(runId))).toHaveLength(1);
          // A repeat of a tool that only reads changes nothing, and a human has said to perform it.
          const permitted = attempt === 0 ? claim('forced') : claim('other', { isHarmless: true });
          expect(await permitted).toMatchObject({ kind: 'perform' });
        } else expect(await claim('other')).toMatchObject(told);
      },
    );

    // [I34]
    it.each(['an earlier visit', 'another node'] as const)(
      'architecture §5 %s where somebody is asked, or at work, stands in nobody’s way',
      async (place) => {
        const other = { idempotent: false, leaseMs: LEASE_MS };
        for (const found of ['in-doubt', 'claimed'] as const) {
          const runId = await startedRun(stores());
          const { before, attempt, ...more } = { visit: 1, ...PLACES[place] };
          await given(stores(), identityOf(runId, before), found);
          const asked = identityOf(runId, { ...more, occurrence: 1 });
          expect(await ledger().claim(asked, attempt, other)).toMatchObject({ kind: 'perform' });
        }
      },
    );

    /** Of one family: two runs of a series, and one of another. */
    async function relatives() {
      const rootRunId = await startedRun(stores());
      const member = async (name: string, over: Partial<EffectIdentity> = {}) =>
        identityOf(await startedRun(stores()), {
          ...{ rootRunId, series: `${rootRunId} ${name}`, ...over },
        });
      return {
        first: await member('a'),
        second: await member('a'),
        third: await member('b'),
      };
    }
    const close = async (runId: string): Promise<void> => {
      const head = await headOf(stores(), runId);
      await stores().log.append(
        batchAfter(head, [entry(runId, 'terminal')], { status: 'cancelled', closed: true }),
      );
    };
    const OTHER = { idempotent: false, leaseMs: LEASE_MS };

    // [I99]
    it.each([
      ['done', 'done', 'differs'],
      ['done-without-result', 'failed', 'differs'],
      ['failed-final', 'failed', 'perform'],
      ['in-doubt', 'in-doubt', 'differs'],
      ['claimed', 'busy', 'differs'],
      ['claimed, lease over', 'in-doubt', 'differs'],
    ] as const)(
      'architecture §5 a run of a series finds %s what the one before it called: %s, and another call of the tool: %s',
      async (found, same, another) => {
        const { first, second } = await relatives();
        await given(stores(), first, found);
        const asked = { ...second, argsHash: 'h2' };
        expect(await ledger().claim(asked, 0, OTHER)).toMatchObject({ kind: another });
        const claim = await ledger().claim(second, 0, OTHER);
        expect(claim).toMatchObject({
          kind: same,
          ...(WITH_OUTCOME.has(found) ? { outcomeHash: 'sha256:outcome' } : {}),
        });
      },
    );

    it('architecture §5 who performs it again in the place of another run has it from then on', async () => {
      const { first, second } = await relatives();
      await given(stores(), first, 'in-doubt');
      const doubt = await ledger().claim(second, 0, OTHER);
      if (doubt.kind !== 'in-doubt') expect.fail(doubt.kind);
      const force = { epoch: doubt.epoch };
      expect(await ledger().claim(second, 0, { ...OTHER, force })).toMatchObject({
        ...{ kind: 'perform', effectId: doubt.effectId },
      });
      expect(await ledger().ofRun(refTo(first.runId))).toEqual([]);
      expect(await ledger().ofRun(refTo(second.runId))).toMatchObject([{ identity: second }]);
    });

    // [I99]
    it('architecture §5 what a run of the family left in doubt is asked about once: when it has ended, and until a human has another call performed', async () => {
      const { first, third } = await relatives();
      await given(stores(), first, 'in-doubt');
      const call = (occurrence: number, options = {}) =>
        ledger().claim({ ...third, occurrence }, 0, { ...OTHER, ...options });
      expect(await call(0)).toMatchObject({ kind: 'perform' });
      // One that may be of a run above knows that one was left there.
      expect(await call(1, { hasLeftCalls: true })).toMatchObject({ kind: 'differs' });
      await close(first.runId);
      const asked = await call(1);
      expect(asked).toMatchObject({ kind: 'differs', earlier: [{ why: 'doubt' }] });
      expect(await call(1)).toEqual(asked);
      // That one has happened says nothing of the others.
      expect(await call(3, { force: 'settles' })).toMatchObject({ kind: 'perform' });
      expect(await call(1, { force: wordOn(asked) })).toMatchObject({ kind: 'perform' });
      expect(await call(2)).toMatchObject({ kind: 'perform' });
    });

    // [I99]
    it('architecture §5 a human who has a call performed and was shown one doubt, or none, leaves the others asked about', async () => {
      const { first, third } = await relatives();
      const stranger = identityOf(await startedRun(stores()), {
        ...{ rootRunId: first.rootRunId, series: 'another' },
      });
      // Two runs at work: nobody is asked elsewhere for their sake.
      await given(stores(), first, 'in-doubt');
      await given(stores(), stranger, 'in-doubt');
      await given(stores(), third, 'done');
      const call = (attempt: number, more: Partial<EffectIdentity>, options = {}) =>
        ledger().claim({ ...third, ...more }, attempt, { ...OTHER, ...options });
      const retried = await call(1, { argsHash: 'h2' });
      expect(retried).toMatchObject({ earlier: [{ why: 'attempt', runId: third.runId }] });
      const force = wordOn(retried);
      expect(await call(1, { argsHash: 'h2' }, { force })).toMatchObject({ kind: 'perform' });
      await close(first.runId);
      const next = { nodeId: 'm', occurrence: 1 };
      const asked = await call(1, next);
      expect(asked).toMatchObject({
        ...{ kind: 'differs' },
        earlier: [{ why: 'doubt', runId: first.runId, nodeId: first.nodeId }],
      });
      expect(await call(1, next, { force: wordOn(asked) })).toMatchObject({ kind: 'perform' });
      await close(stranger.runId);
      expect(await call(1, { ...next, occurrence: 2 })).toMatchObject({
        ...{ kind: 'differs', earlier: [{ why: 'doubt', runId: stranger.runId }] },
      });
    });

    // [I99]
    it('architecture §5 a call in doubt that a human had made again, and that is in doubt again, is asked about again', async () => {
      const { first, third } = await relatives();
      await given(stores(), first, 'in-doubt');
      const left = { ...OTHER, hasLeftCalls: true };
      const word = wordOn(await ledger().claim(third, 0, left));
      expect(await ledger().claim(third, 0, { ...left, force: word })).toMatchObject({
        ...{ kind: 'perform' },
      });
      const doubt = await ledger().recall(first);
      if (doubt?.kind !== 'in-doubt') expect.fail(doubt?.kind);
      const force = { epoch: doubt.epoch };
      await ledger().claim(first, 0, { idempotent: false, leaseMs: NO_LEASE_MS, force });
      const next = { ...third, occurrence: 1 };
      expect(await ledger().claim(next, 0, left)).toMatchObject({
        ...{ kind: 'differs', earlier: [{ why: 'doubt' }] },
      });
    });

    // [I34]
    it('architecture §5 a call that was not sent is new: it is asked about while another one is in doubt', async () => {
      const identity = identityOf(await startedRun(stores()));
      await given(stores(), identity, 'failed-before-send');
      await given(stores(), { ...identity, argsHash: 'h2' }, 'in-doubt');
      const asked = await ledger().claim(identity, 1, OTHER);
      const force = wordOn(asked);
      expect(await ledger().claim(identity, 1, { ...OTHER, force })).toMatchObject({
        ...{ kind: 'perform' },
      });
      // A human who was told of the doubt had that performed: at another node nobody is asked for its sake.
      const elsewhere = { ...identity, nodeId: 'm', argsHash: 'h3' };
      const left = { ...OTHER, hasLeftCalls: true };
      const rows = await ledger().ofRun(refTo(identity.runId));
      const claimed = rows.find(({ state }) => state === 'claimed');
      await ledger().settle(claimed?.effectId ?? '', claimed?.epoch ?? 0, 'done', 'sha256:outcome');
      expect(await ledger().claim(elsewhere, 0, left)).toMatchObject({ kind: 'perform' });
    });

    // [I99]
    it('architecture §5 what a run of the family that has ended still claims is waited for', async () => {
      const { first, third } = await relatives();
      await given(stores(), first, 'claimed');
      // One that is at work may go on: nobody waits for its calls.
      const beside = { ...third, occurrence: 1 };
      expect(await ledger().claim(beside, 0, { ...OTHER, hasLeftCalls: true })).toMatchObject({
        ...{ kind: 'perform' },
      });
      await close(first.runId);
      expect(await ledger().claim(third, 0, OTHER)).toMatchObject({ kind: 'busy' });
    });

    it('architecture §5 another tool, and the same one of another run, stand in nobody’s way', async () => {
      const other = { idempotent: false, hasLeftCalls: true, leaseMs: LEASE_MS };
      const runId = await startedRun(stores());
      await given(stores(), identityOf(runId), 'in-doubt');
      for (const call of [
        identityOf(runId, { toolId: 'u' }),
        identityOf(await startedRun(stores())),
      ])
        expect(await ledger().claim(call, 1, other)).toMatchObject({ kind: 'perform', epoch: 1 });
    });

    // [I34]
    it('architecture §5 a tool that was not idempotent when it was called is not repeated, whatever it says later', async () => {
      const identity = identityOf(await startedRun(stores()));
      const at = (idempotent: boolean, leaseMs = NO_LEASE_MS) =>
        ledger().claim(identity, 0, { idempotent, leaseMs });
      expect(await at(false)).toMatchObject({ kind: 'perform' });
      const doubt = await at(true);
      if (doubt.kind !== 'in-doubt') expect.fail(doubt.kind);
      expect(await at(true)).toMatchObject({ kind: 'in-doubt' });
      // It was not made: what is called now goes by what the tool says now.
      await ledger().settle(doubt.effectId, doubt.epoch, 'failed-before-send');
      expect(await at(true)).toMatchObject({ kind: 'perform' });
      expect(await at(true)).toMatchObject({ kind: 'perform', inDoubt: true });
    });

    it('architecture §5 a closed run, an unknown run and another tenant get no claim', async () => {
      const runId = await startedRun(stores());
      const options = { idempotent: true, leaseMs: LEASE_MS };
      const strange = identityOf(runId, { tenant: newId('tenant') });
      const stranger = ledger().claim(strange, 0, options);
      await expect(stranger).rejects.toMatchObject({ code: 'run_not_found' });
      const nobody = ledger().claim(identityOf(newId('run')), 0, options);
      await expect(nobody).rejects.toMatchObject({ code: 'run_not_found' });
      const head = await headOf(stores(), runId);
      await stores().log.append(
        batchAfter(head, [entry(runId, 'terminal')], { status: 'cancelled', closed: true }),
      );
      expect(await ledger().claim(identityOf(runId), 0, options)).toEqual({ kind: 'run-closed' });
      expect(await ledger().ofRun(runRef(runId, strange.tenant))).toEqual([]);
    });

    it('architecture §5 of concurrent claimers of a new effect exactly one performs', async () => {
      const identity = identityOf(await startedRun(stores()));
      const claims = await Promise.all(
        Array.from({ length: 8 }, () =>
          ledger().claim(identity, 0, { idempotent: false, leaseMs: LEASE_MS }),
        ),
      );
      expect(claims.map((claim) => claim.kind).sort()).toEqual([
        ...Array<string>(7).fill('busy'),
        'perform',
      ]);
    });

    it.each([1, 2, 3, 4])(
      'architecture §5 workers that die and race perform a non-idempotent effect at most once (seed %i)',
      async (seed) => {
        const runId = await startedRun(stores());
        const random = randomOf(seed);
        const worlds = await Promise.all(
          Array.from({ length: 3 }, (_, at) =>
            race(stores(), identityOf(runId, { toolId: `t${at}` }), random),
          ),
        );
        for (const world of worlds) {
          expect(world.performed).toBeLessThanOrEqual(1);
          // Either the world and the ledger agree, or the ledger says that it does not know.
          if (world.final === 'done') expect(world.performed).toBe(1);
          else expect(world.final).toBe('in-doubt');
        }
      },
    );
  });
}

/** A small seeded generator (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

/** Workers claim until the effect is settled or in doubt; each may die before the effect, behind it, or not at all. */
async function race(
  stores: Stores,
  identity: EffectIdentity,
  random: () => number,
): Promise<{ performed: number; final: EffectClaim['kind'] }> {
  let performed = 0;
  const worker = async (): Promise<EffectClaim['kind']> => {
    for (;;) {
      const fate = random();
      const leaseMs = fate < 0.6 ? 1 : LEASE_MS;
      const claim = await stores.effects.claim(identity, 0, { idempotent: false, leaseMs });
      if (claim.kind === 'busy') await new Promise((resolve) => setTimeout(resolve, 2));
      else if (claim.kind !== 'perform') return claim.kind;
      else if (fate < 0.2) continue;
      else if (fate < 0.7 && random() < 0.3) {
        await stores.effects.settle(claim.effectId, claim.epoch, 'failed-before-send');
      } else {
        performed++;
        if (fate < 0.5) continue;
        await stores.effects.settle(claim.effectId, claim.epoch, 'done', 'sha256:outcome');
      }
    }
  };
  const finals = await Promise.all([worker(), worker(), worker(), worker()]);
  return { performed, final: finals.includes('done') ? 'done' : (finals[0] ?? 'busy') };
}
