// What every LogStore does (architecture §3).
import { describe, expect, it } from 'vitest';
import type { AppendOutcome, Head, LogRow } from '../../src/ports/log.ts';
import type { GivenStores } from './given.ts';
import {
  NO_WAITS,
  appendRows,
  batchAfter,
  delta,
  entry,
  eventually,
  headOf,
  newId,
  newRun,
  startedRun,
  refTo,
} from './given.ts';

const ACTIVITY = 'agent/1/0/i0.t0.infer';

export function logStoreContract(stores: GivenStores): void {
  const log = (): ReturnType<GivenStores>['log'] => stores().log;
  const all = (runId: string): Promise<readonly LogRow[]> =>
    log().read(refTo(runId), { after: -1, limit: 10_000 });

  describe('LogStore append', () => {
    // [I15]
    it('architecture §3.2 gives dense sequences and clamped times, folds the rows, moves head and cursor', async () => {
      const runId = await startedRun(stores());
      const rows = [
        entry(runId, 'a', {
          timestampMs: 2000,
          nodeId: "n'1",
          causationId: 'evt-0',
          causedBy: 'terminal',
        }),
        entry(runId, 'b', {
          timestampMs: 1500,
          payload: '{"z":1,"a":"\\u0000 \\\\ \\" ü \\ud800"}',
        }),
        entry(runId, 'c', { timestampMs: 2500, causedBy: { runId: 'other', key: 'k' } }),
      ];
      let folded: readonly LogRow[] = [];
      const before = await headOf(stores(), runId);
      const outcome = await log().append(
        batchAfter(before, rows, {
          fold: (snapshot, given) => ((folded = given), { snapshot, n: given.length }),
        }),
      );
      expect(outcome).toMatchObject({
        kind: 'appended',
        head: {
          nextSequence: 3,
          lastTimestampMs: 2500,
          status: 'running',
          historyEventId: 1,
          token: 'after-1',
        },
      });
      expect(outcome.head).toEqual(await log().head(refTo(runId)));
      expect(outcome.head.snapshot).toEqual({ snapshot: null, n: 3 });
      const stored = await all(runId);
      expect(stored).toEqual(folded);
      expect(stored.map((row) => [row.sequence, row.timestampMs])).toEqual([
        [0, 2000],
        [1, 2000],
        [2, 2500],
      ]);
      expect(stored.map((row) => row.payload)).toEqual(rows.map((row) => row.payload));
      expect(stored[0]).toMatchObject({
        nodeId: "n'1",
        causationId: 'evt-0',
        causedBy: 'terminal',
      });
      expect(stored[2]?.causedBy).toEqual({ runId: 'other', key: 'k' });
    });

    // [I18]
    it('architecture §3.2 a batch behind another cursor is stale and changes nothing', async () => {
      const runId = await startedRun(stores());
      const old = await headOf(stores(), runId);
      await appendRows(stores(), runId, ['a']);
      const now = await headOf(stores(), runId);
      const refuse = (): never => {
        throw new Error('folded a refused batch');
      };
      for (const head of [old, { ...now, temporalRunId: 'T2' }]) {
        const outcome = await log().append(batchAfter(head, [entry(runId, 'b')], { fold: refuse }));
        expect(outcome).toEqual({ kind: 'stale', head: now });
      }
      expect(await all(runId)).toHaveLength(1);
    });

    // [I17]
    it('architecture §3.2 after the terminal entry everything is refused', async () => {
      const runId = await startedRun(stores());
      const head = await headOf(stores(), runId);
      await log().append(
        batchAfter(head, [entry(runId, 'terminal')], { status: 'completed', closed: true }),
      );
      const closed = await headOf(stores(), runId);
      expect(closed).toMatchObject({ closed: true, status: 'completed' });
      const outcome = await log().append(batchAfter(closed, [entry(runId, 'late')]));
      expect(outcome).toEqual({ kind: 'closed', head: closed });
      const refused = { kind: 'refused', reason: 'run-closed' };
      expect(
        await log().appendDeltas(refTo(runId), ACTIVITY, 1, [delta(runId, ACTIVITY, 0)]),
      ).toEqual(refused);
      expect(await all(runId)).toHaveLength(1);
    });

    it('architecture §3.5 an ending told from the log is stale when a delta came since, and closes every block', async () => {
      const runId = await startedRun(stores());
      const batch = batchAfter(await headOf(stores(), runId), [entry(runId, 'terminal')], {
        status: 'failed',
        closed: true,
        seenSequence: 0,
      });
      await log().appendDeltas(refTo(runId), ACTIVITY, 1, [delta(runId, ACTIVITY, 0)]);
      await log().appendDeltas(refTo(runId), 'other/1/0/s', 1, []);
      const outcome = await log().append(batch);
      expect(outcome).toMatchObject({ kind: 'stale', head: { nextSequence: 1 } });
      expect(await all(runId)).toHaveLength(1);
      expect(await log().append({ ...batch, seenSequence: 1 })).toMatchObject({ kind: 'appended' });
      expect(await log().openBlocks(refTo(runId))).toEqual([]);
    });

    it('architecture §2.1 a fact appended twice is a bug that shows, and nothing of its batch stays', async () => {
      const runId = await startedRun(stores());
      await appendRows(stores(), runId, ['a']);
      const head = await headOf(stores(), runId);
      const twice = batchAfter(head, [entry(runId, 'b'), entry(runId, 'a')]);
      await expect(log().append(twice)).rejects.toMatchObject({ sqlState: '23505' });
      expect(await log().head(refTo(runId))).toEqual(head);
      expect(await all(runId)).toHaveLength(1);
    });

    it('architecture §3.2 a fold that throws rolls back and leaves the store usable', async () => {
      const runId = await startedRun(stores());
      const fold = (): never => {
        throw new TypeError('broken fold');
      };
      const batch = batchAfter(await headOf(stores(), runId), [entry(runId, 'a')], { fold });
      await expect(log().append(batch)).rejects.toThrow('broken fold');
      await appendRows(stores(), runId, ['a']);
      expect(await all(runId)).toHaveLength(1);
    });

    it('architecture §3.2 a run without a head is run_not_found', async () => {
      const head = await headOf(stores(), await startedRun(stores()));
      const outcome = log().append(batchAfter({ ...head, runId: newId('run') }, []));
      await expect(outcome).rejects.toMatchObject({ code: 'run_not_found' });
    });

    it('architecture §3.2 concurrent appenders and delta writers give dense, unique sequences and no lost row', async () => {
      const runId = await startedRun(stores());
      const appender = async (name: string): Promise<void> => {
        for (let n = 0; n < 8; n++)
          await appendRows(stores(), runId, [`${name}.${n}.0`, `${name}.${n}.1`]);
      };
      const writer = async (activityId: string): Promise<void> => {
        for (let k = 0; k < 16; k += 2) {
          const pair = [delta(runId, activityId, k), delta(runId, activityId, k + 1)];
          expect(await log().appendDeltas(refTo(runId), activityId, 1, pair)).toMatchObject({
            kind: 'appended',
          });
        }
      };
      await Promise.all([
        ...['a', 'b', 'c', 'd'].map(appender),
        ...['x/1/0/s', 'y/1/0/s'].map(writer),
      ]);
      const rows = await all(runId);
      expect(rows.map((row) => row.sequence)).toEqual(
        Array.from({ length: 4 * 16 + 2 * 16 }, (_, at) => at),
      );
      expect(new Set(rows.map((row) => row.eventId)).size).toBe(rows.length);
      expect((await headOf(stores(), runId)).nextSequence).toBe(rows.length);
    });

    it('architecture §3.2 of appenders behind one cursor exactly one wins', async () => {
      const runId = await startedRun(stores());
      const head = await headOf(stores(), runId);
      const outcomes = await Promise.all(
        ['a', 'b', 'c', 'd'].map((key) => log().append(batchAfter(head, [entry(runId, key)]))),
      );
      const kinds = outcomes.map((outcome: AppendOutcome) => outcome.kind).sort();
      expect(kinds).toEqual(['appended', 'stale', 'stale', 'stale']);
    });

    it('architecture §2.1 a note moves the status without a row', async () => {
      const runId = await startedRun(stores());
      const head = await headOf(stores(), runId);
      await log().append(batchAfter(head, [], { status: 'cancelling' }));
      expect(await headOf(stores(), runId)).toMatchObject({
        status: 'cancelling',
        nextSequence: 0,
      });
    });
  });

  describe('LogStore reads', () => {
    it('stream-modes.md: reads behind a sequence, ascending, in pages, of one run only', async () => {
      const runId = await startedRun(stores());
      await appendRows(stores(), runId, ['a', 'b', 'c']);
      await appendRows(stores(), await startedRun(stores()), ['a']);
      expect(
        (await log().read(refTo(runId), { after: 0, limit: 1 })).map((row) => row.key),
      ).toEqual(['b']);
      expect(
        (await log().read(refTo(runId), { after: 0, limit: 10 })).map((row) => row.key),
      ).toEqual(['b', 'c']);
      expect(await log().read(refTo(runId), { after: 2, limit: 10 })).toEqual([]);
      expect(await log().read(refTo("x' OR '1'='1"), { after: -1, limit: 10 })).toEqual([]);
    });

    it('the tail is the end of the head, without the rest', async () => {
      const runId = await startedRun(stores());
      expect(await log().tail(refTo(runId))).toEqual({ nextSequence: 0, closed: false });
      await appendRows(stores(), runId, ['a', 'b']);
      const { nextSequence, closed } = await headOf(stores(), runId);
      expect(await log().tail(refTo(runId))).toEqual({ nextSequence, closed });
      expect(await log().tail(refTo('run-of-nobody'))).toBeUndefined();
    });

    it('stream-modes.md: finds the sequence of an event of this run, and of no other', async () => {
      const runId = await startedRun(stores());
      const other = await startedRun(stores());
      await appendRows(stores(), runId, ['a', 'b']);
      const { eventId } = entry(runId, 'b');
      expect(await log().sequenceOf(refTo(runId), eventId)).toBe(1);
      expect(await log().sequenceOf(refTo(other), eventId)).toBeUndefined();
    });

    it("interrupt.md a node's questions are read without the rest of the log, and its own cancellation with them", async () => {
      const runId = await startedRun(stores());
      const types = ['node.started', 'node.suspended', 'interrupt.requested', 'node.started'];
      const told = [...types, 'interrupt.resolved', 'node.suspended'].map((type, at) =>
        entry(runId, `gate-${at}`, { type, nodeId: 'gate' }),
      );
      const other = entry(runId, 'other', { type: 'node.suspended', nodeId: 'other' });
      const end = entry(runId, 'end', { type: 'run.cancelled' });
      await log().append(batchAfter(await headOf(stores(), runId), [...told, other, end]));
      const ask = async (after: number, limit: number, run = refTo(runId)) =>
        (await log().questions(run, { nodeId: 'gate', after, limit })).map(({ key }) => key);
      expect(await ask(-1, 10)).toEqual(['gate-1', 'gate-2', 'gate-4', 'gate-5', 'end']);
      expect(await ask(-1, 2)).toEqual(['gate-1', 'gate-2']);
      expect(await ask(4, 10)).toEqual(['gate-5', 'end']);
      const [, row] = await all(runId);
      const [first] = await log().questions(refTo(runId), { nodeId: 'gate', after: 0, limit: 1 });
      expect(first).toEqual(row);
      expect(await ask(-1, 10, { ...refTo(runId), tenant: 'another' })).toEqual([]);
    });

    it('architecture §3.1 a problem is listed until the next append', async () => {
      const runId = await startedRun(stores());
      await log().setProblem(refTo(runId), 'history_undecodable');
      expect(await log().problems(100)).toContainEqual({ runId, problem: 'history_undecodable' });
      expect((await headOf(stores(), runId)).problem).toBe('history_undecodable');
      await appendRows(stores(), runId, ['a']);
      expect((await log().problems(100)).some((row) => row.runId === runId)).toBe(false);
    });
  });

  it('architecture §3.1 a run that another process could close gets no problem', async () => {
    const runId = await startedRun(stores());
    const rows = [entry(runId, 'terminal')];
    const ending = { status: 'completed', closed: true } as const;
    await log().append(batchAfter(await headOf(stores(), runId), rows, ending));
    await log().setProblem(refTo(runId), 'history_undecodable');
    expect((await headOf(stores(), runId)).problem).toBeUndefined();
  });

  describe('LogStore changes', () => {
    it('architecture §3.4 tells of commits that added rows or moved the status, once each, and of no other', async () => {
      const runId = await startedRun(stores(), { runId: newId('run:with:colons') });
      const seen: number[] = [];
      const stop = log().onChange((change) => {
        if (change.runId === runId) seen.push(change.nextSequence);
      });
      let head: Head = await headOf(stores(), runId);
      const next = async (rows: string[], status: 'running' | 'cancelling'): Promise<void> => {
        const batch = batchAfter(
          head,
          rows.map((key) => entry(runId, key)),
          { status },
        );
        ({ head } = await log().append(batch));
      };
      await next(['a', 'b'], 'running');
      await next([], 'running');
      await next([], 'cancelling');
      await log().append(batchAfter({ ...head, historyEventId: 0 }, [entry(runId, 'z')]));
      await next(['c'], 'cancelling');
      await eventually(() => seen.length >= 3, 'three changes');
      expect(seen).toEqual([2, 2, 3]);
      stop();
      await next(['d'], 'cancelling');
      expect(seen).toHaveLength(3);
    });
  });
}

export function deltaContract(stores: GivenStores): void {
  const log = (): ReturnType<GivenStores>['log'] => stores().log;
  const deltas = (runId: string, ...ks: number[]): ReturnType<typeof delta>[] =>
    ks.map((k) => delta(runId, ACTIVITY, k));

  describe('LogStore deltas', () => {
    it('architecture §3.5 take sequences and clamped times at once and leave the cursor alone', async () => {
      const runId = await startedRun(stores());
      await appendRows(stores(), runId, ['a']);
      const before = await headOf(stores(), runId);
      const rows = [
        delta(runId, ACTIVITY, 0, { timestampMs: 9000 }),
        delta(runId, ACTIVITY, 1, { timestampMs: 8000 }),
      ];
      expect(await log().appendDeltas(refTo(runId), ACTIVITY, 1, rows)).toEqual({
        kind: 'appended',
        rows: [
          { k: 0, sequence: 1, timestampMs: 9000 },
          { k: 1, sequence: 2, timestampMs: 9000 },
        ],
      });
      expect(await headOf(stores(), runId)).toEqual({
        ...before,
        nextSequence: 3,
        lastTimestampMs: 9000,
      });
      expect((await log().append(batchAfter(before, [entry(runId, 'b')]))).kind).toBe('appended');
      const keys = (await log().read(refTo(runId), { after: -1, limit: 10 })).map((row) => row.key);
      expect(keys).toEqual(['a', `${ACTIVITY}#d0`, `${ACTIVITY}#d1`, 'b']);
    });

    // [I21]
    it('architecture §3.5 are refused without a head, behind a close, and by an older try', async () => {
      const runId = await startedRun(stores());
      const refused = (reason: string): unknown => ({ kind: 'refused', reason });
      const nobody = newId('run');
      expect(
        await log().appendDeltas(refTo(nobody), ACTIVITY, 1, [delta(nobody, ACTIVITY, 0)]),
      ).toEqual(refused('no-head'));
      await log().appendDeltas(refTo(runId), ACTIVITY, 2, deltas(runId, 0));
      expect(await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 1))).toEqual(
        refused('superseded'),
      );
      expect(await log().appendDeltas(refTo(runId), ACTIVITY, 3, deltas(runId, 1))).toMatchObject({
        kind: 'appended',
      });
      expect(await log().appendDeltas(refTo(runId), ACTIVITY, 2, deltas(runId, 2))).toEqual(
        refused('superseded'),
      );
      await log().closeBlock(refTo(runId), ACTIVITY);
      expect(await log().appendDeltas(refTo(runId), ACTIVITY, 3, deltas(runId, 2))).toEqual(
        refused('block-closed'),
      );
      expect((await log().storedDeltas(refTo(runId), ACTIVITY)).map((row) => row.sequence)).toEqual(
        [0, 1],
      );
    });

    // [I118]
    it('architecture §3.6 a delta whose predecessor the database has lost is refused, and leaves no gap', async () => {
      const runId = await startedRun(stores());
      const lost = { kind: 'refused', reason: 'lost' };
      expect(await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 1))).toEqual(lost);
      expect(await log().openBlocks(refTo(runId))).toEqual([]);
      await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 0));
      expect(await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 2))).toEqual(lost);
      expect(
        await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 1, 2)),
      ).toMatchObject({ kind: 'appended' });
      expect(await log().storedDeltas(refTo(runId), ACTIVITY)).toHaveLength(3);
    });

    it('architecture §3.5 a higher try supersedes also with an empty call', async () => {
      const runId = await startedRun(stores());
      await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 0));
      expect(await log().appendDeltas(refTo(runId), ACTIVITY, 2, [])).toEqual({
        kind: 'appended',
        rows: [],
      });
      expect(await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 1))).toMatchObject({
        reason: 'superseded',
      });
    });

    it('architecture §3.5 a call whose answer was lost is repeated without a second row', async () => {
      const runId = await startedRun(stores());
      const first = await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 0, 1));
      expect(await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 0, 1))).toEqual(
        first,
      );
      const more = await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 1, 2));
      expect(more).toMatchObject({
        kind: 'appended',
        rows: [
          { k: 1, sequence: 1 },
          { k: 2, sequence: 2 },
        ],
      });
    });

    it('architecture §3.5 closing returns what the block holds, again and again; an unopened block closes empty', async () => {
      const runId = await startedRun(stores());
      await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 0, 1, 2));
      await log().appendDeltas(refTo(runId), 'other/1/0/s', 1, [delta(runId, 'other/1/0/s', 0)]);
      expect(await log().openBlocks(refTo(runId))).toEqual([ACTIVITY, 'other/1/0/s']);
      const closed = await log().closeBlock(refTo(runId), ACTIVITY);
      expect(closed.map((row) => row.key)).toEqual([0, 1, 2].map((k) => `${ACTIVITY}#d${k}`));
      expect(await log().closeBlock(refTo(runId), ACTIVITY)).toEqual(closed);
      expect(await log().closeBlock(refTo(runId), 'never/1/0/s')).toEqual([]);
      expect(
        await log().appendDeltas(refTo(runId), 'never/1/0/s', 1, [delta(runId, 'never/1/0/s', 0)]),
      ).toMatchObject({
        reason: 'block-closed',
      });
      expect(await log().openBlocks(refTo(runId))).toEqual(['other/1/0/s']);
    });

    it('architecture §3.5 no delta follows what a concurrent close returned', async () => {
      const runId = await startedRun(stores());
      const writes = deltas(runId, 0, 1, 2, 3, 4, 5, 6, 7).map((one) =>
        log().appendDeltas(refTo(runId), ACTIVITY, 1, [one]),
      );
      const [closed] = await Promise.all([log().closeBlock(refTo(runId), ACTIVITY), ...writes]);
      expect(await log().storedDeltas(refTo(runId), ACTIVITY)).toEqual(closed);
    });

    it('architecture §3.5 the append closes blocks and skips their recorded deltas; where one is missing it appends nothing', async () => {
      const runId = await startedRun(stores());
      await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 0, 1));
      const head = await headOf(stores(), runId);
      const recorded = (...ks: number[]): ReturnType<typeof entry>[] =>
        deltas(runId, ...ks).map((one) => one.row);
      const missing = batchAfter(head, recorded(0, 1, 2), { closedBlocks: [ACTIVITY] });
      expect(await log().append(missing)).toMatchObject({ kind: 'lost', head });
      expect(await log().openBlocks(refTo(runId))).toEqual([ACTIVITY]);
      const rows = [...recorded(0, 1), entry(runId, 'after')];
      await log().append(batchAfter(head, rows, { closedBlocks: [ACTIVITY] }));
      expect(
        (await log().read(refTo(runId), { after: -1, limit: 10 })).map((row) => row.sequence),
      ).toEqual([0, 1, 2]);
      expect(await log().openBlocks(refTo(runId))).toEqual([]);
      expect(await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 2))).toMatchObject({
        reason: 'block-closed',
      });
    });
  });

  describe('LogStore restore', () => {
    it('architecture §3.6 puts back head and rows exactly, also over others, and tells of it', async () => {
      const runId = await startedRun(stores());
      await appendRows(stores(), runId, ['a', 'b']);
      await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 0));
      await log().closeBlock(refTo(runId), ACTIVITY);
      const head = await headOf(stores(), runId);
      const rows = await log().read(refTo(runId), { after: -1, limit: 10 });
      await appendRows(stores(), runId, ['c']);
      const seen: number[] = [];
      const stop = log().onChange(
        (change) => void (change.runId === runId && seen.push(change.nextSequence)),
      );
      expect(
        await log().restore(
          refTo(runId),
          { summary: NO_WAITS, head: head, rows: rows },
          await log().head(refTo(runId)),
        ),
      ).toBe(true);
      expect(await log().head(refTo(runId))).toEqual(head);
      expect(await log().read(refTo(runId), { after: -1, limit: 10 })).toEqual(rows);
      expect(await log().storedDeltas(refTo(runId), ACTIVITY)).toHaveLength(1);
      await eventually(() => seen.length > 0, 'the restored run');
      stop();
    });

    // [I20]
    it('architecture §3.6 is refused while a block is open', async () => {
      const runId = await startedRun(stores());
      await log().appendDeltas(refTo(runId), ACTIVITY, 1, deltas(runId, 0));
      const head = await headOf(stores(), runId);
      expect(
        await log().restore(
          refTo(runId),
          { summary: NO_WAITS, head: { ...head, nextSequence: 0 }, rows: [] },
          head,
        ),
      ).toBe(false);
      expect(await log().storedDeltas(refTo(runId), ACTIVITY)).toHaveLength(1);
    });

    it('architecture §3.6 is refused when the log went on since it was read: nothing appended is lost', async () => {
      const runId = await startedRun(stores());
      await appendRows(stores(), runId, ['a']);
      const seen = await headOf(stores(), runId);
      const rows = await log().read(refTo(runId), { after: -1, limit: 10 });
      await log().append(batchAfter(seen, [entry(runId, 'live')]));
      const live = await log().read(refTo(runId), { after: -1, limit: 10 });
      expect(
        await log().restore(refTo(runId), { summary: NO_WAITS, head: seen, rows: rows }, seen),
      ).toBe(false);
      expect(
        await log().restore(refTo(runId), { summary: NO_WAITS, head: seen, rows: rows }, undefined),
      ).toBe(false);
      expect(await log().read(refTo(runId), { after: -1, limit: 10 })).toEqual(live);
      const cursorOnly = await headOf(stores(), runId);
      await log().append(batchAfter(cursorOnly, []));
      expect(
        await log().restore(
          refTo(runId),
          { summary: NO_WAITS, head: cursorOnly, rows: live },
          cursorOnly,
        ),
      ).toBe(false);
    });

    // [I118]
    it('architecture §3.6 without the places of streamed text it drops what is streamed, and closes every block', async () => {
      const runId = await startedRun(stores());
      await appendRows(stores(), runId, ['a', 'b']);
      const seen = await headOf(stores(), runId);
      const rows = await log().read(refTo(runId), { after: -1, limit: 10 });
      await log().appendDeltas(refTo(runId), ACTIVITY, 1, [delta(runId, ACTIVITY, 0)]);
      const head = { ...seen, retoldFrom: 1 };
      expect(await log().restore(refTo(runId), { summary: NO_WAITS, head, rows }, seen)).toBe(true);
      expect(await log().read(refTo(runId), { after: -1, limit: 10 })).toEqual(rows);
      expect(await log().head(refTo(runId))).toEqual(head);
      expect(await stores().runs.find(refTo(runId).tenant, runId)).toMatchObject({ retoldFrom: 1 });
      expect(await log().openBlocks(refTo(runId))).toEqual([]);
      const more = [delta(runId, 'other', 0)];
      expect(await log().appendDeltas(refTo(runId), 'other', 1, more)).toMatchObject({
        reason: 'lost',
      });
      await log().append(batchAfter(seen, [entry(runId, 'c')]));
      const late = await log().restore(refTo(runId), { summary: NO_WAITS, head, rows }, seen);
      expect(late).toBe(false);
    });

    it('architecture §3.6 takes long runs', async () => {
      const runId = await startedRun(stores());
      const rows = Array.from({ length: 1203 }, (_, sequence) => ({
        ...entry(runId, `k${sequence}`),
        sequence,
      }));
      const head = {
        ...(await headOf(stores(), runId)),
        nextSequence: rows.length,
        lastTimestampMs: 1000,
      };
      expect(
        await log().restore(
          refTo(runId),
          { summary: NO_WAITS, head: head, rows: rows },
          await log().head(refTo(runId)),
        ),
      ).toBe(true);
      expect(await log().read(refTo(runId), { after: -1, limit: 2000 })).toEqual(rows);
    });

    it('architecture §3.6 a run that is not registered is run_not_found', async () => {
      const head = await headOf(stores(), await startedRun(stores()));
      const stranger = { ...head, runId: newRun().runId };
      await expect(
        log().restore(
          refTo(stranger.runId),
          { summary: NO_WAITS, head: stranger, rows: [] },
          undefined,
        ),
      ).rejects.toMatchObject({
        code: 'run_not_found',
      });
    });
  });
}
