// What every ProjectionStore and SegmentStore does (architecture §3.4, §3.6).
import { describe, expect, it } from 'vitest';
import type { AppendBatch } from '../../src/ports/log.ts';
import type { GivenStores } from './given.ts';
import {
  NO_WAITS,
  batchAfter,
  entry,
  eventually,
  headOf,
  newId,
  startedRun,
  refTo,
} from './given.ts';

const TTL_MS = 60_000;
/** Long enough for claims that are made at the same time, short enough to be waited for. */
const LEASE_MS = 1_500;

export function projectionStoreContract(stores: GivenStores): void {
  const projection = (): ReturnType<GivenStores>['projection'] => stores().projection;

  describe('ProjectionStore', () => {
    it('architecture §3.4 a run is watched while one watch of it lives', async () => {
      const runId = await startedRun(stores());
      const other = await startedRun(stores());
      await projection().watch(refTo(runId), 'f1', TTL_MS);
      await projection().watch(refTo(runId), 'f2', TTL_MS);
      await projection().watch(refTo(other), 'f1', 0);
      expect(await projection().watched([runId, other, newId('run')].map(refTo))).toEqual(
        new Set([runId]),
      );
      await projection().unwatch(refTo(runId), 'f1');
      expect(await projection().watched([refTo(runId)])).toEqual(new Set([runId]));
      await projection().watch(refTo(runId), 'f2', 0);
      expect(await projection().watched([refTo(runId)])).toEqual(new Set());
      expect(await projection().watched([])).toEqual(new Set());
    });

    it('architecture §3.4 the beginning of a watch is told, and no renewal of it', async () => {
      const [runId, last] = [await startedRun(stores()), await startedRun(stores())];
      const told: string[] = [];
      const unsubscribe = projection().onWatch((each) => told.push(each));
      const ours = () => told.filter((each) => [runId, last].includes(each));
      await projection().watch(refTo(runId), 'f1', TTL_MS);
      await projection().watch(refTo(runId), 'f1', TTL_MS);
      await projection().watch({ ...refTo(runId), tenant: 'other' }, 'f2', TTL_MS);
      await projection().watch(refTo(last), 'f1', TTL_MS);
      await eventually(() => ours().includes(last), 'the watch is told');
      expect(ours()).toEqual([runId, last]);
      await projection().unwatch(refTo(runId), 'f1');
      await projection().watch(refTo(runId), 'f1', TTL_MS);
      await eventually(() => ours().length === 3, 'it is told again');
      unsubscribe();
    });

    it('architecture §3.4 an expired lease is taken once; a renewed or released one is not', async () => {
      const [dead, live, gone] = [newId('dead'), newId('live'), newId('gone')];
      await projection().renewLease(dead, 0);
      await projection().renewLease(live, 0);
      await projection().renewLease(live, TTL_MS);
      await projection().renewLease(gone, 0);
      await projection().releaseLease(gone);
      const taken = await Promise.all(
        Array.from({ length: 4 }, () => projection().takeExpiredLease(TTL_MS)),
      );
      const won = taken.filter((lease) => lease !== undefined);
      expect(won.map(({ holder }) => holder)).toEqual([dead]);
      await projection().releaseLease(live);
      await projection().releaseLease(dead);
    });

    it('architecture §3.4 a lease that was taken is won again until it is released', async () => {
      const dead = newId('dead');
      await projection().renewLease(dead, 0);
      expect(await projection().takeExpiredLease(0)).toMatchObject({ holder: dead });
      const last = await projection().takeExpiredLease(0);
      expect(last).toMatchObject({ holder: dead });
      if (last) await projection().releaseTaken(last);
      expect(await projection().takeExpiredLease(0)).toBeUndefined();
    });

    // [I97]
    it('architecture §3.4 a lease that was taken is no longer the taker’s once its holder has renewed it', async () => {
      const stalled = newId('stalled');
      await projection().renewLease(stalled, 0);
      const taken = await projection().takeExpiredLease(TTL_MS);
      const renewed = taken && (await projection().renewTaken(taken, 2 * TTL_MS));
      expect(renewed).toMatchObject({ holder: stalled });
      if (!renewed) return;
      await projection().renewLease(stalled, 0);
      expect(await projection().renewTaken(renewed, TTL_MS)).toBeUndefined();
      await projection().releaseTaken(renewed);
      const again = await projection().takeExpiredLease(TTL_MS);
      expect(again).toMatchObject({ holder: stalled });
      if (again) await projection().releaseTaken(again);
    });

    it('architecture §3.4 open runs are listed in pages; closed ones are not', async () => {
      const open = [
        await startedRun(stores(), { runId: newId('zzz') }),
        await startedRun(stores(), { runId: newId('zzz') }),
      ];
      const closed = await startedRun(stores(), { runId: newId('zzz') });
      const head = await headOf(stores(), closed);
      await stores().log.append(
        batchAfter(head, [entry(closed, 'terminal')], { status: 'failed', closed: true }),
      );
      open.sort();
      const [first] = await projection().openRuns('zzz', 1);
      expect(first).toEqual(refTo(open[0] ?? ''));
      expect(await projection().openRuns(first?.runId ?? '', 10)).toEqual([refTo(open[1] ?? '')]);
      const asked = [...open, closed, newId('run')];
      expect((await projection().stillOpen(asked)).map(({ runId }) => runId).sort()).toEqual(open);
    });

    it('architecture §3.4 the sweep watermark only goes forward', async () => {
      await projection().setSweepWatermark(1_000);
      await projection().setSweepWatermark(3_000);
      await projection().setSweepWatermark(2_000);
      expect(await projection().sweepWatermark()).toBe(3_000);
    });

    it('architecture §3.4 a sweep watermark that is far ahead of now is none, and is replaced', async () => {
      await projection().setSweepWatermark(9e15);
      expect(await projection().sweepWatermark()).toBeUndefined();
      const nowMs = Date.now();
      await projection().setSweepWatermark(nowMs);
      expect(await projection().sweepWatermark()).toBe(nowMs);
    });
  });

  describe('SegmentStore', () => {
    it('architecture §3.6 records segments once, keeps an archive, and lists closed ones that lack theirs', async () => {
      const runId = await startedRun(stores());
      const segments = stores().segments;
      const mine = async (): Promise<number[]> =>
        (await segments.claimUnarchived(1_000, 0))
          .filter((segment) => segment.runId === runId)
          .map((one) => one.index);
      await segments.record(refTo(runId), { index: 0, temporalRunId: 'T1' });
      expect(await mine()).toEqual([]);
      const head = await headOf(stores(), runId);
      const moved = { temporalRunId: 'T2', historyEventId: 0, token: '' };
      const { head: second } = await stores().log.append(batchAfter(head, [], { cursor: moved }));
      await segments.record(refTo(runId), { index: 1, temporalRunId: 'T2' });
      expect(await mine()).toEqual([0]);
      await segments.markArchived([{ run: refTo(runId), index: 0, archive: 'sha256:a' }]);
      await segments.record(refTo(runId), { index: 0, temporalRunId: 'T1' });
      expect(await mine()).toEqual([]);
      await stores().log.append(
        batchAfter(second, [entry(runId, 'terminal')], { status: 'completed', closed: true }),
      );
      expect(await mine()).toEqual([1]);
      expect(await segments.ofRun(refTo(runId))).toEqual([
        { runId, index: 0, temporalRunId: 'T1', archive: 'sha256:a' },
        { runId, index: 1, temporalRunId: 'T2' },
      ]);
    });

    it('architecture §3.6 each closed segment is claimed by one archiver, and given out again when its claim is over', async () => {
      const segments = stores().segments;
      const runIds = new Set<string>();
      for (let count = 0; count < 8; count++) {
        const runId = await startedRun(stores());
        runIds.add(runId);
        await segments.record(refTo(runId), { index: 0, temporalRunId: 'T1' });
        const head = await headOf(stores(), runId);
        await stores().log.append(batchAfter(head, [], { status: 'completed', closed: true }));
      }
      const claim = async (leaseMs: number): Promise<string[]> =>
        (await segments.claimUnarchived(1_000, leaseMs))
          .map(({ runId }) => runId)
          .filter((runId) => runIds.has(runId));
      const both = await Promise.all([claim(LEASE_MS), claim(LEASE_MS), claim(LEASE_MS)]);
      expect(both.flat().sort()).toEqual([...runIds].sort());
      const again = new Set<string>();
      await eventually(async () => {
        for (const runId of await claim(60_000)) again.add(runId);
        return again.size === runIds.size;
      }, 'claims that are over');
      expect(await claim(60_000)).toEqual([]);
    });

    it('architecture §3.6 a claim says whose the segment is, and many are marked at once', async () => {
      const segments = stores().segments;
      const tenants = [newId('tenant'), newId('tenant')];
      const runIds: string[] = [];
      for (const tenant of tenants) {
        const runId = await startedRun(stores(), { tenant });
        runIds.push(runId);
        for (const index of [0, 1])
          await segments.record(refTo(runId), { index, temporalRunId: `T${index}` });
        const head = await headOf(stores(), runId);
        await stores().log.append(batchAfter(head, [], { status: 'completed', closed: true }));
      }
      const claimed = await segments.claimUnarchived(1_000, 0);
      const own = claimed.filter(({ runId }) => runIds.includes(runId));
      expect(own.map(({ run }) => [run.runId, run.tenant])).toEqual(
        expect.arrayContaining(runIds.map((runId, at) => [runId, tenants[at]])),
      );
      const marks = own.map(({ run, index }) => ({ run, index, archive: `sha256:${index}` }));
      await segments.markArchived([
        ...marks,
        { run: refTo(newId('run')), index: 0, archive: 'lost' },
      ]);
      for (const runId of runIds) {
        const archives = (await segments.ofRun(refTo(runId))).map(({ archive }) => archive);
        expect(archives).toEqual(['sha256:0', 'sha256:1']);
      }
      await segments.markArchived([]);
    });

    it('architecture §3.6 a rebuilt head says of its segments whether they are closed', async () => {
      const runId = await startedRun(stores());
      const segments = stores().segments;
      await segments.record(refTo(runId), { index: 0, temporalRunId: 'T1' });
      const head = await headOf(stores(), runId);
      await stores().log.restore(
        refTo(runId),
        { summary: NO_WAITS, head: { ...head, closed: true, status: 'failed' }, rows: [] },
        head,
      );
      const claimed = await segments.claimUnarchived(1_000, 60_000);
      expect(claimed.map((segment) => segment.runId)).toContain(runId);
    });

    it('architecture §3.6 a segment whose history or head has ended is closed from the start, and no other', async () => {
      const segments = stores().segments;
      const runIds = [await startedRun(stores()), await startedRun(stores())];
      const [ended = '', moved = ''] = runIds;
      const append = async (runId: string, over: Partial<AppendBatch>) =>
        stores().log.append(batchAfter(await headOf(stores(), runId), [], over));
      await append(ended, { status: 'failed', closed: true });
      await append(moved, { cursor: { temporalRunId: 'T2', historyEventId: 0, token: '' } });
      await segments.record(refTo(ended), { index: 0, temporalRunId: 'T1' });
      await segments.record(refTo(moved), { index: 0, temporalRunId: 'T1' });
      await segments.record(refTo(moved), { index: 0, temporalRunId: 'T1', isClosed: true });
      await segments.record(refTo(moved), { index: 0, temporalRunId: 'T1' });
      // The history goes on where the head has not come yet.
      await segments.record(refTo(moved), { index: 2, temporalRunId: 'T3' });
      const claimed = await segments.claimUnarchived(1_000, 60_000);
      expect(
        claimed
          .flatMap(({ runId, index }) => (runIds.includes(runId) ? [`${runId} ${index}`] : []))
          .sort(),
      ).toEqual([`${ended} 0`, `${moved} 0`].sort());
    });

    it('architecture §3.6 an archive stays when another process finds its segment forgotten, and comes in place of a loss', async () => {
      const segments = stores().segments;
      const runId = await startedRun(stores());
      for (const [index, archives] of [
        ['sha256:a', 'lost'],
        ['lost', 'sha256:a'],
      ].entries()) {
        await segments.record(refTo(runId), { index, temporalRunId: `T${index + 1}` });
        for (const archive of archives)
          await segments.markArchived([{ run: refTo(runId), index, archive }]);
      }
      const archives = (await segments.ofRun(refTo(runId))).map(({ archive }) => archive);
      expect(archives).toEqual(['sha256:a', 'sha256:a']);
    });

    it('architecture §3.6 a segment of no run is run_not_found', async () => {
      const segment = { index: 0, temporalRunId: 'T1' };
      await expect(stores().segments.record(refTo(newId('run')), segment)).rejects.toMatchObject({
        code: 'run_not_found',
      });
    });
  });
}
