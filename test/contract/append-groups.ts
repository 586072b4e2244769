// Appends of several runs at one time (architecture §3.2): they share transactions, and nothing else.
import { describe, expect, it } from 'vitest';
import { codeOf } from '../../src/rules/errors.ts';
import {
  batchAfter,
  entry,
  headOf,
  newId,
  refTo,
  runInput,
  startedRun,
  type GivenStores,
} from './given.ts';

const RUNS = 80;
const ROWS = 3;

export function appendGroupsContract(stores: GivenStores): void {
  const started = (count: number, tenant = 'default') =>
    Promise.all(
      Array.from({ length: count }, () => {
        const runId = newId('run');
        const input = runInput(runId, tenant);
        return startedRun(stores(), { runId, tenant, input });
      }),
    );
  const rowsOf = (runId: string) =>
    Array.from({ length: ROWS }, (_, at) => entry(runId, `k${at}`, { timestampMs: 5_000 - at }));
  const first = async (runId: string) =>
    batchAfter(await headOf(stores(), runId), rowsOf(runId), {
      segment: { index: 0, temporalRunId: 'T1' },
      fold: (_, rows) => ({ of: rows.map((row) => row.runId) }),
    });

  describe('LogStore append of several runs', () => {
    // [I82]
    it('architecture §3.2 appends at one time give each run what it gets alone', async () => {
      const tenants = [newId('tenant'), newId('tenant')];
      const runIds = (await Promise.all(tenants.map((tenant) => started(RUNS / 2, tenant)))).flat();
      const batches = await Promise.all(runIds.map(first));
      const outcomes = await Promise.all(batches.map((batch) => stores().log.append(batch)));
      for (const [at, runId] of runIds.entries()) {
        const run = refTo(runId);
        expect(outcomes[at]?.kind).toBe('appended');
        const head = await headOf(stores(), runId);
        expect(head).toEqual(outcomes[at]?.head);
        expect(head).toMatchObject({
          ...{ nextSequence: ROWS, lastTimestampMs: 5_000, historyEventId: 1 },
          snapshot: { of: Array(ROWS).fill(runId) as string[] },
        });
        const rows = await stores().log.read(run, { after: -1, limit: 10 });
        expect(rows.map((row) => [row.runId, row.sequence, row.key])).toEqual(
          rowsOf(runId).map((row, sequence) => [runId, sequence, row.key]),
        );
        expect(await stores().segments.ofRun(run)).toMatchObject([{ temporalRunId: 'T1' }]);
        const fed = await stores().feed.read({
          ...{ tenant: run.tenant, sessionId: runId, after: 0, limit: 10 },
        });
        expect(fed.rows.map((row) => [row.run.runId, row.sequence])).toEqual(
          rowsOf(runId).map((_, sequence) => [runId, sequence]),
        );
      }
    });

    it('architecture §3.2 of two appends to one run behind the same cursor one is stored', async () => {
      const [runId = ''] = await started(1);
      const others = await started(4);
      const batch = await first(runId);
      const behind = await Promise.all(others.map(first));
      const all = [behind[0], batch, behind[1], batch, ...behind.slice(2)].filter((one) => !!one);
      const kinds = await Promise.all(
        all.map(async (one) => (await stores().log.append(one)).kind),
      );
      expect(kinds.filter((kind) => kind === 'stale')).toHaveLength(1);
      expect(kinds.filter((kind) => kind === 'appended')).toHaveLength(all.length - 1);
    });

    // [I83]
    it('architecture §3.2 one that cannot be stored keeps no other from its place', async () => {
      const runIds = await started(6);
      const [twice = '', breaks = ''] = runIds;
      const batches = await Promise.all(runIds.map(first));
      const spoilt = batches.map((batch) => {
        const { runId } = batch.run;
        if (runId === twice) return { ...batch, rows: [entry(runId, 'k'), entry(runId, 'k')] };
        const fold = (): never => {
          throw new Error('the fold breaks');
        };
        return runId === breaks ? { ...batch, fold } : batch;
      });
      const unknown = { ...batches[5], run: refTo(newId('run')) } as (typeof batches)[number];
      const done = await Promise.allSettled(
        [...spoilt, unknown].map((batch) => stores().log.append(batch)),
      );
      expect(done.map(({ status }) => status)).toEqual([
        ...['rejected', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled', 'fulfilled'],
        'rejected',
      ]);
      expect(codeOf((done[6] as PromiseRejectedResult).reason)).toBe('run_not_found');
      for (const runId of [twice, breaks])
        expect(await stores().log.read(refTo(runId), { after: -1, limit: 10 })).toEqual([]);
    });

    it('architecture §3.3 heads that are asked for at one time are told to each tenant alone', async () => {
      const [mine = ''] = await started(1, newId('tenant'));
      const [other = ''] = await started(1, newId('tenant'));
      const foreign = { ...refTo(mine), tenant: refTo(other).tenant };
      const heads = await Promise.all(
        [refTo(mine), foreign, refTo(other), refTo(mine)].map((run) => stores().log.head(run)),
      );
      expect(heads.map((head) => head?.runId)).toEqual([mine, undefined, other, mine]);
    });
  });
}
