// What every FamilyStore does (architecture §4): children under an id that their parent fixes, counted below their root,
// and ends that are told once.
import { describe, expect, it } from 'vitest';
import type { NewRun, RunRef } from '../../src/ports/runs.ts';
import {
  NO_WAITS,
  batchAfter,
  entry,
  newId,
  newRun,
  refTo,
  runInput,
  startedRun,
} from './given.ts';
import type { GivenStores } from './given.ts';

const LIMIT = 5;

export function familiesContract(stores: GivenStores): void {
  const childOf = (parent: RunRef, root = parent.runId, runId = newId('run')): NewRun => {
    const input = runInput(runId, parent.tenant);
    const header = {
      sessionId: root,
      correlationId: root,
      parentRunId: parent.runId,
      causationId: 'call-1',
    };
    return newRun({ runId, tenant: parent.tenant, input: { ...input, header } });
  };
  const parentRun = async (): Promise<RunRef> =>
    refTo(await startedRun(stores(), { tenant: newId('tenant') }));
  const accept = (child: NewRun) => stores().families.acceptChild(child, LIMIT);
  const end = async (run: RunRef): Promise<void> => {
    const head = await stores().log.head(run);
    if (!head) throw new Error('no head');
    const rows = [entry(run.runId, 'terminal', { type: 'run.completed' })];
    const batch = batchAfter(head, rows, { run, status: 'completed', closed: true });
    expect(await stores().log.append(batch)).toMatchObject({ kind: 'appended' });
  };
  const untold = async (tenant: string) =>
    (await stores().families.untoldEnds(0, 10_000))
      .filter(({ run }) => run.tenant === tenant)
      .map(({ run }) => run.runId);

  describe('FamilyStore', () => {
    it('of tries at once with one id exactly one inserts, and all have the same child', async () => {
      const parent = await parentRun();
      const child = childOf(parent);
      const rows = await Promise.all([1, 2, 3, 4].map(() => accept(child)));
      expect(new Set(rows.map((row) => (typeof row === 'object' ? row.runId : row)))).toEqual(
        new Set([child.runId]),
      );
      const { runs } = await stores().families.children(parent, { limit: 10 });
      expect(runs).toMatchObject([
        { runId: child.runId, parentRunId: parent.runId, closed: false },
      ]);
      // It counts once.
      const more = await Promise.all([1, 2, 3, 4].map(() => accept(childOf(parent))));
      expect(more.every((row) => typeof row === 'object')).toBe(true);
    });

    // [I65]
    it('counts below the root over all generations, and refuses the one above the limit', async () => {
      const parent = await parentRun();
      const first = childOf(parent);
      await accept(first);
      const grandparent = parent.runId;
      const below = { ...refTo(first.runId), tenant: parent.tenant } as RunRef;
      const outcomes = await Promise.all(
        Array.from({ length: LIMIT + 2 }, () => accept(childOf(below, grandparent))),
      );
      expect(outcomes.filter((row) => typeof row === 'object')).toHaveLength(LIMIT - 1);
      expect(outcomes.filter((row) => row === 'full')).toHaveLength(3);
      expect(await stores().families.descendants(parent.tenant, parent.runId, 100)).toHaveLength(
        LIMIT,
      );
    });

    // [I63]
    it('no child begins for a parent that has ended', async () => {
      const parent = await parentRun();
      await end(parent);
      expect(await accept(childOf(parent))).toBe('parent-ended');
      expect(await stores().families.descendants(parent.tenant, parent.runId, 10)).toEqual([]);
    });

    it('pages children, oldest first', async () => {
      const parent = await parentRun();
      const ids: string[] = [];
      for (let at = 0; at < LIMIT; at++) {
        const child = { ...childOf(parent), createdAtMs: 1_000 + at };
        ids.push(child.runId);
        await accept(child);
      }
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const page = await stores().families.children(parent, { cursor, limit: 2 });
        seen.push(...page.runs.map(({ runId }) => runId));
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      expect(seen).toEqual(ids);
    });

    it('an end that concerns somebody is kept with the entry that ends the log, until it is told', async () => {
      const parent = await parentRun();
      const alone = refTo(await startedRun(stores(), { tenant: parent.tenant }));
      const child = childOf(parent);
      await accept(child);
      const ref = { ...refTo(child.runId), tenant: parent.tenant } as RunRef;
      await stores().runs.markStarted(ref, 'T1');
      await end(alone);
      expect(await untold(parent.tenant)).toEqual([]);
      await end(ref);
      await end(parent);
      expect((await untold(parent.tenant)).sort()).toEqual([child.runId, parent.runId].sort());
      await stores().families.endTold(ref);
      await stores().families.endTold(ref);
      expect(await untold(parent.tenant)).toEqual([parent.runId]);
    });

    it('an end that its parent takes stays to be told where children of it are open', async () => {
      const parent = await parentRun();
      const child = childOf(parent);
      await accept(child);
      const ref = { ...refTo(child.runId), tenant: parent.tenant } as RunRef;
      await stores().runs.markStarted(ref, 'T1');
      const below = childOf(ref, parent.runId);
      await accept(below);
      await end(ref);
      await stores().families.endTaken(ref);
      expect(await untold(parent.tenant)).toEqual([child.runId]);
      const lowest = { ...refTo(below.runId), tenant: parent.tenant } as RunRef;
      await stores().runs.markStarted(lowest, 'T1');
      await end(lowest);
      await stores().families.endTaken(ref);
      expect(await untold(parent.tenant)).toEqual([below.runId]);
    });

    it('an end that a rebuild finds before any append is kept, one that was told is not kept anew', async () => {
      const parent = await parentRun();
      const child = childOf(parent);
      await accept(child);
      const ref = { ...refTo(child.runId), tenant: parent.tenant } as RunRef;
      await stores().runs.markStarted(ref, 'T1');
      const { log, families } = stores();
      const seen = await log.head(ref);
      if (!seen) throw new Error('no head');
      const head = { ...seen, status: 'failed', closed: true } as const;
      expect(await log.restore(ref, { summary: NO_WAITS, head, rows: [] }, seen)).toBe(true);
      expect(await untold(parent.tenant)).toEqual([child.runId]);
      await families.endTold(ref);
      expect(await log.restore(ref, { summary: NO_WAITS, head, rows: [] }, head)).toBe(true);
      expect(await untold(parent.tenant)).toEqual([]);
    });

    it('ends that are to be told are read on from behind one of them', async () => {
      const parent = await parentRun();
      await accept(childOf(parent));
      await end(parent);
      const { families } = stores();
      const all = await families.untoldEnds(0, 10_000);
      const [first] = await families.untoldEnds(0, 1);
      expect(first).toEqual(all[0]);
      expect(await families.untoldEnds(0, 10_000, first)).toEqual(all.slice(1));
      expect(await families.untoldEnds(0, 10_000, all.at(-1))).toEqual([]);
    });

    it('another tenant sees no children', async () => {
      const parent = await parentRun();
      await accept(childOf(parent));
      const foreign = { ...parent, tenant: newId('tenant') } as RunRef;
      expect(await stores().families.children(foreign, { limit: 10 })).toEqual({ runs: [] });
      expect(await stores().families.descendants(foreign.tenant, foreign.runId, 10)).toEqual([]);
    });
  });
}
