// What every RunStore does (architecture §4, accept; rest-endpoints.md).
import { describe, expect, it } from 'vitest';
import type { GivenStores } from './given.ts';
import {
  batchAfter,
  entry,
  eventually,
  headOf,
  newClaim,
  newId,
  newRun,
  sinceTheEpoch,
  startedRun,
  refTo,
} from './given.ts';

export function runStoreContract(stores: GivenStores): void {
  describe('RunStore', () => {
    it('architecture §4 an accepted run is pending, with its whole input and an empty head', async () => {
      const run = newRun({ runId: newId("r'; DROP TABLE runs; --") });
      expect(await stores().runs.accept(run)).toMatchObject({ kind: 'claimed' });
      expect(await stores().runs.find('default', run.runId)).toEqual(run);
      expect(await stores().log.head(refTo(run.runId))).toEqual({
        runId: run.runId,
        tenant: 'default',
        status: 'pending',
        closed: false,
        nextSequence: 0,
        lastTimestampMs: 0,
        temporalRunId: '',
        historyEventId: 0,
        token: '',
        translateVersion: 1,
        translateState: null,
        snapshot: null,
      });
    });

    it('architecture §4 the start is noted once, in the row and in the head', async () => {
      const run = newRun();
      await stores().runs.accept(run);
      await stores().runs.markStarted(refTo(run.runId), 'T1');
      await stores().runs.markStarted(refTo(run.runId), 'T2');
      expect((await stores().runs.find('default', run.runId))?.temporalRunId).toBe('T1');
      expect((await headOf(stores(), run.runId)).temporalRunId).toBe('T1');
    });

    // [I41]
    it('architecture §4 of concurrent acceptances with one key exactly one inserts its run', async () => {
      const claim = newClaim();
      const runs = Array.from({ length: 6 }, () => newRun());
      const outcomes = await Promise.all(runs.map((run) => stores().runs.accept(run, claim)));
      expect(outcomes.filter((outcome) => outcome.kind === 'claimed')).toHaveLength(1);
      expect(outcomes.filter((outcome) => outcome.kind === 'in-flight')).toHaveLength(5);
      const found = await Promise.all(runs.map((run) => stores().runs.find('default', run.runId)));
      expect(found.filter(Boolean)).toHaveLength(1);
    });

    it('architecture §4 a key whose run was accepted but never answered leads back to that run', async () => {
      const claim = newClaim();
      const run = newRun();
      const first = await stores().runs.accept(run, claim);
      if (first.kind !== 'claimed') throw new Error(first.kind);
      await stores().idempotency.release('default', claim, first.owner);
      const second = newRun();
      expect(await stores().runs.accept(second, claim)).toMatchObject({
        kind: 'claimed',
        runId: run.runId,
      });
      expect(await stores().runs.find('default', second.runId)).toBeUndefined();
    });

    it('idempotency.md §Layer 1: an answered acceptance replays; another body is a mismatch and inserts nothing', async () => {
      const claim = newClaim();
      const first = await stores().runs.accept(newRun(), claim);
      if (first.kind !== 'claimed') throw new Error(first.kind);
      const response = { status: 201, body: { runId: 'x' } };
      await stores().idempotency.complete('default', claim, first.owner, response);
      expect(await stores().runs.accept(newRun(), claim)).toEqual({ kind: 'replay', response });
      const other = newRun();
      const outcome = await stores().runs.accept(other, { ...claim, requestDigest: 'sha256:two' });
      expect(outcome).toEqual({ kind: 'mismatch' });
      expect(await stores().runs.find('default', other.runId)).toBeUndefined();
    });

    // [I43]
    it('architecture §10 a run of another tenant is not found and not listed', async () => {
      const tenant = newId('tenant');
      const run = newRun({ tenant });
      await stores().runs.accept(run);
      expect(await stores().runs.find('default', run.runId)).toBeUndefined();
      expect(await stores().runs.find(`${tenant}' OR '1'='1`, run.runId)).toBeUndefined();
      const listed = await stores().runs.list(newId('tenant'), { limit: 10 });
      expect(listed.runs).toEqual([]);
    });

    it('rest-endpoints.md: a list is newest first, paged without gap or repeat, also within one millisecond', async () => {
      const tenant = newId('tenant');
      const runs = [5, 5, 5, 9, 1].map((createdAtMs) => newRun({ tenant, createdAtMs }));
      for (const run of runs) await stores().runs.accept(run);
      const seen: { runId: string; createdAtMs: number }[] = [];
      let cursor: string | undefined;
      do {
        const page = await stores().runs.list(tenant, { limit: 2, cursor });
        seen.push(...page.runs);
        cursor = page.nextCursor;
      } while (cursor !== undefined);
      expect(seen.map((run) => run.createdAtMs)).toEqual([9, 5, 5, 5, 1]);
      expect(new Set(seen.map((run) => run.runId))).toEqual(new Set(runs.map((run) => run.runId)));
    });

    it('rest-endpoints.md: a list is filtered by status and by workflow', async () => {
      const tenant = newId('tenant');
      const waiting = await startedRun(stores(), { tenant });
      await startedRun(stores(), { tenant, workflowId: 'other' });
      const head = await headOf(stores(), waiting);
      await stores().log.append(
        batchAfter(head, [entry(waiting, 'a')], { status: 'waiting-approval' }),
      );
      const byStatus = await stores().runs.list(tenant, { status: 'waiting-approval', limit: 10 });
      expect(byStatus.runs).toMatchObject([
        { runId: waiting, status: 'waiting-approval', tags: ['t1'] },
      ]);
      const byWorkflow = await stores().runs.list(tenant, { workflowId: 'other', limit: 10 });
      expect(byWorkflow.runs.map((run) => run.status)).toEqual(['pending']);
      const both = await stores().runs.list(tenant, {
        status: 'waiting-approval',
        workflowId: 'other',
        limit: 10,
      });
      expect(both.runs).toEqual([]);
    });

    it.each(['', 'x', 'bnVsbA', Buffer.from('["x","a"]').toString('base64url'), "' OR 1=1"])(
      'rest-endpoints.md: the cursor %j is refused with validation_error',
      async (cursor) => {
        await expect(stores().runs.list('default', { limit: 1, cursor })).rejects.toMatchObject({
          code: 'validation_error',
        });
      },
    );

    it('rest-endpoints.md §Error response shape: a run id that no column can hold is validation_error, not a fault of the host', async () => {
      await expect(stores().runs.find('default', 'a\u0000b')).rejects.toMatchObject({
        code: 'validation_error',
      });
    });

    it('architecture §4 the reaper sees unconfirmed runs, oldest first, until they are started or closed', async () => {
      const [late, early, closed] = [
        newRun({ createdAtMs: -10_000 }),
        newRun({ createdAtMs: -20_000 }),
        newRun({ createdAtMs: -30_000 }),
      ];
      for (const run of [late, early, closed]) await stores().runs.accept(run);
      const head = await headOf(stores(), closed.runId);
      await stores().log.append(
        batchAfter(head, [entry(closed.runId, 'terminal')], { status: 'failed', closed: true }),
      );
      const unstarted = await stores().runs.unstarted(sinceTheEpoch(), 200);
      expect(unstarted.map((run) => run.runId)).toEqual([early.runId, late.runId]);
      const [first] = await stores().runs.unstarted(sinceTheEpoch(), 1);
      expect(
        (await stores().runs.unstarted(sinceTheEpoch(), 1, first)).map(({ runId }) => runId),
      ).toEqual([late.runId]);
      await stores().runs.markStarted(refTo(early.runId), 'T1');
      await stores().runs.markStarted(refTo(late.runId), 'T1');
      expect(await stores().runs.unstarted(sinceTheEpoch(), 200)).toEqual([]);
    });

    it('architecture §4 a failure to start is decided once, never for a started run, and outlives the head', async () => {
      const [refused, started] = [
        newRun({ createdAtMs: -40_000 }),
        newRun({ createdAtMs: -40_000 }),
      ];
      for (const run of [refused, started]) await stores().runs.accept(run);
      await stores().runs.markStarted(refTo(started.runId), 'T1');
      const first = { cause: 'payload_too_large', atMs: 7 };
      const { runs } = stores();
      expect(await runs.markStartFailed(refTo(refused.runId), first)).toEqual(first);
      expect(await runs.markStartFailed(refTo(refused.runId), { cause: 'x', atMs: 8 })).toEqual(
        first,
      );
      expect(await runs.markStartFailed(refTo(started.runId), first)).toBeUndefined();
      expect((await runs.find('default', refused.runId))?.startFailure).toEqual(first);
      const listed = async () =>
        (await runs.unstarted(sinceTheEpoch(), 200)).map(({ runId }) => runId);
      expect(await listed()).toContain(refused.runId);
      await stores().log.append(
        batchAfter(await headOf(stores(), refused.runId), [], { status: 'failed', closed: true }),
      );
      expect(await listed()).not.toContain(refused.runId);
    });

    it('architecture §4 refusals count together while they come one after the other, and runs are as old as the database says', async () => {
      const { runs } = stores();
      const [old, young, ahead] = [1, Date.now(), Date.now() + 3_600_000].map((createdAtMs) =>
        newRun({ createdAtMs }),
      );
      const all = [old, young, ahead].flatMap((run) => run ?? []);
      for (const run of all) await runs.accept(run);
      const due = (await runs.unstarted(60_000, 200)).map(({ runId }) => runId);
      expect(all.map(({ runId }) => due.includes(runId))).toEqual([true, false, true]);
      const [first] = all;
      const ref = refTo(first?.runId ?? '');
      const APART_MS = 3_600_000;
      expect(await runs.noteRefusal(ref, APART_MS)).toBe(0);
      const lasts = async () => (await runs.noteRefusal(ref, APART_MS)) > 50;
      await eventually(lasts, 'that it was refused for some time');
      // What was refused before an outage does not count.
      expect(await runs.noteRefusal(ref, 0)).toBe(0);
      expect(await runs.noteRefusal(refTo(newId('run')), APART_MS)).toBe(0);
      for (const { runId } of all) await runs.markStarted(refTo(runId), 'T1');
    });

    it('architecture §4 a run that failed to start is not noted as started, and a started one stays so', async () => {
      const [refused, started] = [newRun(), newRun()];
      for (const run of [refused, started]) await stores().runs.accept(run);
      const { runs } = stores();
      await runs.markStartFailed(refTo(refused.runId), { cause: 'payload_too_large', atMs: 7 });
      expect(await runs.markStarted(refTo(refused.runId), 'T1')).toBeUndefined();
      expect((await runs.find('default', refused.runId))?.temporalRunId).toBeUndefined();
      expect((await headOf(stores(), refused.runId)).temporalRunId).toBe('');
      const pending = { status: 'pending', wasEnded: false };
      expect(await runs.markStarted(refTo(started.runId), 'T1')).toEqual(pending);
      expect(await runs.markStarted(refTo(started.runId), 'T2')).toEqual(pending);
    });

    it('architecture §3.6 a run is found for the rebuild whosever it is', async () => {
      const run = newRun({ tenant: newId('tenant') });
      await stores().runs.accept(run);
      expect(await stores().runs.locate(run.runId)).toEqual({
        tenant: run.tenant,
        runId: run.runId,
      });
      expect(await stores().runs.locate(newId('run'))).toBeUndefined();
    });

    it('architecture §3.6 all runs are listed for the rebuild, ascending, in pages', async () => {
      const ids = [newId('zz'), newId('zz')].sort();
      for (const runId of ids) await stores().runs.accept(newRun({ runId }));
      expect(await stores().runs.allRuns('zz', 1)).toEqual([refTo(ids[0] ?? '')]);
      expect(await stores().runs.allRuns(ids[0] ?? '', 10)).toEqual([refTo(ids[1] ?? '')]);
    });
  });
}
