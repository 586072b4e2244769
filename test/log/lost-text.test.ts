// Streamed text that a failover of the database has lost, and history records (architecture §3.6, §4.1). [I118]
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RecordedEvent } from '../../src/rules/journal.ts';
import { unreadEnd } from '../../src/log/erased.ts';
import { createLog, type Log } from '../../src/log/log.ts';
import { asRecorded } from '../../src/log/places.ts';
import { retrace } from '../../src/log/rebuild.ts';
import type { HistoryReader } from '../../src/ports/history.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import {
  admitted,
  complete,
  emitted,
  HistoryBuilder,
  memo,
  schedule,
  terminate,
} from '../support/histories.ts';
import type { ScriptedHistory } from '../support/log-parts.ts';
import { NO_WAITS } from '../contract/given.ts';
import { newLogRun, openAnyStores, silentLogger } from '../support/log-parts.ts';
import { recordedAt, recordText, streamText } from '../support/streamed-text.ts';

let stores: Stores;
let history: ScriptedHistory;
let log: Log;
let runId: string;
let run: RunRef;
let built: HistoryBuilder;

beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

beforeEach(async () => {
  let segment: string;
  ({ runId, run, segment, history, log } = await newLogRun(stores));
  built = new HistoryBuilder();
  const started = emitted('run.started|r', 'run.started', { workflowId: 'w' });
  built.task(schedule('a', built.carrier(started)), schedule('b'));
  history.add(segment, built);
  await log.catchUp(run);
  return () => log.close();
});

const rowsNow = () => stores.log.read(run, { after: -1, limit: 1_000 });
const keys = async () => (await rowsNow()).map(({ key }) => key).join(' ');
const retoldFrom = async () => (await stores.log.head(run))?.retoldFrom;
const reasoned = (text: string): RecordedEvent => ({
  ...{ type: 'agent.reasoned', nodeId: 'n', payload: { reasoning: text } },
});

/** As its result records what it had stored at these sequences, before the database lost it. */
function recordLost(activityId: string, pieces: readonly string[], sequences: readonly number[]) {
  built.completed(activityId, {
    events: [reasoned(pieces.join(''))],
    deltas: recordedAt(runId, { activityId, pieces }, sequences),
  });
  built.task(memo(built.carrier(admitted(activityId))));
}

async function recordStored(activityId: string) {
  built.completed(activityId, {
    events: [reasoned('')],
    deltas: await recordText(stores, run, activityId),
  });
  built.task(memo(built.carrier(admitted(activityId))));
}

/** Another process's log: as `log`, but for these calls of its store. */
async function withLog<Value>(
  ofStore: Partial<Stores['log']>,
  work: (late: Log) => Promise<Value>,
  page: HistoryReader['page'] = (...at) => history.page(...at),
): Promise<Value> {
  const late = createLog({
    stores: { ...stores, log: { ...stores.log, ...ofStore } },
    ...{ logger: silentLogger, processId: 'p2' },
    history: {
      page,
      raw: (...of) => history.raw(...of),
      decode: (raw) => history.decode(raw),
      closedSince: (sinceMs) => history.closedSince(sinceMs),
    },
  });
  try {
    return await work(late);
  } finally {
    late.close();
  }
}

/** What another process does comes before the first one. */
function restoreAfter(other: () => Promise<unknown>): Stores['log']['restore'] {
  let isDone = false;
  return async (...restored) => {
    if (!isDone) {
      isDone = true;
      await other();
    }
    return stores.log.restore(...restored);
  };
}

/** The same bytes from history alone, and the same places from then on. */
async function expectRebuilt() {
  const bytes = async () => JSON.stringify([await rowsNow(), await stores.log.head(run)]);
  const before = await bytes();
  await log.rebuild(run);
  expect(await bytes()).toBe(before);
}

describe('architecture §3.6: streamed text that the database lost', () => {
  it('stands where it was streamed again, where history tells all that was there', async () => {
    recordLost('a', ['I ', 'think'], [1, 3]);
    recordLost('b', ['Hm'], [2]);
    await log.catchUp(run);
    expect(await keys()).toBe('run.started|r a#d0 b#d0 a#d1 a#0 b#0');
    expect(await retoldFrom()).toBeUndefined();
    await expectRebuilt();
  });

  it.each([
    ['text is missing between', [1, 3]],
    ['what came after it would stand before it', [2, 3]],
    ['the log would have no entry before it', [7, 8]],
  ])('stands before what closes its stream, where %s: at %j', async (_, sequences) => {
    recordLost('a', ['I ', 'think'], sequences);
    await log.catchUp(run);
    expect(await keys()).toBe('run.started|r a#d0 a#d1 a#0');
    expect(await retoldFrom()).toBe(1);
    await expectRebuilt();
  });

  it('also where other text has its sequences now', async () => {
    await streamText(stores, run, { activityId: 'b', pieces: ['Hm', ' so'] });
    recordLost('a', ['I ', 'think'], [1, 2]);
    await recordStored('b');
    await log.catchUp(run);
    expect(await keys()).toBe('run.started|r a#d0 a#d1 a#0 b#d0 b#d1 b#0');
    await expectRebuilt();
  });

  it('where rows have come in its place since, and it does not fit, these stay, and readers go on before it', async () => {
    built.task(memo(built.carrier(emitted('e', 'x.y'), emitted('f', 'x.y'))));
    await log.catchUp(run);
    recordLost('a', ['I ', 'think'], [1, 9]);
    await log.catchUp(run);
    expect(await keys()).toBe('run.started|r e f a#d0 a#d1 a#0');
    expect(await retoldFrom()).toBe(1);
    await expectRebuilt();
  });

  it('where rows have come in its place since, and it fits, they give way; the feed gives them again', async () => {
    built.task(memo(built.carrier(emitted('e', 'x.y'), emitted('f', 'x.y'))));
    await log.catchUp(run);
    const after = await stores.feed.end();
    recordLost('a', ['I ', 'think'], [1, 3]);
    await log.catchUp(run);
    expect(await keys()).toBe('run.started|r a#d0 e a#d1 f a#0');
    expect(await retoldFrom()).toBeUndefined();
    const { tenant } = run;
    const { rows } = await stores.feed.read({ tenant, after, limit: 100 });
    const fed = rows.filter((row) => row.run.runId === runId).map(({ sequence }) => sequence);
    expect(fed).toEqual([1, 2, 3, 4, 5]);
    await expectRebuilt();
  });

  it('is no loss while another stream is open: a rebuild waits for that', async () => {
    // Its rows are dropped with the log.
    await stores.log.appendDeltas(run, 'b', 1, []);
    const head = await stores.log.head(run);
    const text = { activityId: 'a', pieces: ['I '] };
    built.completed('a', { deltas: recordedAt(runId, text, [9]) });
    const parts = { stores, history, logger: silentLogger };
    await expect(retrace(parts, run)).rejects.toMatchObject({ code: 'run_state_conflict' });
    expect(await stores.log.head(run)).toEqual(head);
  });

  it('keeps its places where two make the log again at once, and the run goes on', async () => {
    recordLost('a', ['I ', 'think'], [1, 3]);
    recordLost('b', ['Hm'], [2]);
    // The other one is done between what this one has read and what it would store.
    const restore = restoreAfter(() => log.catchUp(run));
    await withLog({ restore }, (late) => late.catchUp(run));
    expect(await keys()).toBe('run.started|r a#d0 b#d0 a#d1 a#0 b#0');
    expect(await retoldFrom()).toBeUndefined();
    await expectRebuilt();
  });

  it('keeps its places where the other one is done, and another stream is open, before this one reads', async () => {
    recordLost('a', ['I ', 'think'], [1, 2]);
    let isFirst = true;
    const append: Stores['log']['append'] = async (batch) => {
      const outcome = await stores.log.append(batch);
      if (isFirst) {
        isFirst = false;
        expect(outcome.kind).toBe('lost');
        await log.catchUp(run);
        await streamText(stores, run, { activityId: 'b', pieces: ['Hm'] });
      }
      return outcome;
    };
    const { nextSequence } = await withLog({ append }, (late) => late.catchUp(run));
    expect(nextSequence).toBe(5);
    expect(await keys()).toBe('run.started|r a#d0 a#d1 a#0 b#d0');
    expect(await retoldFrom()).toBeUndefined();
    await streamText(stores, run, { activityId: 'b', pieces: [' so'], k0: 1 });
  });

  it('is for the others where they make it again, and the run goes on after each look of this one', async () => {
    recordLost('a', ['I ', 'think'], [7, 9]);
    let added = 0;
    const page: HistoryReader['page'] = async (...at) => {
      const read = await history.page(...at);
      if (read.events.length > 0) return read;
      built.task(memo(built.carrier(emitted(`e${added++}`, 'x.y'))));
      await log.catchUp(run);
      return read;
    };
    // The others come to it first.
    const append: Stores['log']['append'] = async (batch) => {
      const outcome = await stores.log.append(batch);
      if (outcome.kind === 'lost') await log.catchUp(run);
      return outcome;
    };
    const { problem } = await withLog({ append }, (late) => late.catchUp(run), page);
    expect(problem).toBeUndefined();
    expect(await keys()).toBe(
      `run.started|r a#d0 a#d1 a#0 ${Array.from({ length: added }, (_, n) => `e${n}`).join(' ')}`,
    );
  });

  it('is waited for as in an outage where it cannot be made again now, and is no problem of the run', async () => {
    recordLost('a', ['I ', 'think'], [1, 2]);
    const refused = withLog({ restore: async () => false }, (late) => late.catchUp(run));
    await expect(refused).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(await stores.log.head(run)).toMatchObject({ nextSequence: 1 });
    expect((await stores.log.head(run))?.problem).toBeUndefined();
    await log.catchUp(run);
    expect(await keys()).toBe('run.started|r a#d0 a#d1 a#0');
  });

  it('opens no log again that somebody has ended meanwhile', async () => {
    recordLost('a', ['I '], [7]);
    const end = () => stores.subjects.closeUnread(run, unreadEnd(run, 5_000));
    const restore = restoreAfter(end);
    expect(await withLog({ restore }, (late) => late.catchUp(run))).toMatchObject({ closed: true });
    expect(await keys()).toBe(`run.started|r ${unreadEnd(run, 0).key}`);
  });

  it('nor one that was ended before it was read again', async () => {
    recordLost('a', ['I '], [7]);
    const append: Stores['log']['append'] = async (batch) => {
      const outcome = await stores.log.append(batch);
      if (outcome.kind === 'lost') await stores.subjects.closeUnread(run, unreadEnd(run, 5_000));
      return outcome;
    };
    expect(await withLog({ append }, (late) => late.catchUp(run))).toMatchObject({ closed: true });
    expect(await keys()).toBe(`run.started|r ${unreadEnd(run, 0).key}`);
  });

  it('is not brought back by who has read the log before somebody else made it again', async () => {
    const before = await stores.log.head(run);
    const rows = await rowsNow();
    recordLost('a', ['I '], [7]);
    await log.catchUp(run);
    const seen = await stores.log.head(run);
    if (!before || !seen) throw new Error('no head');
    const late = { head: before, rows, summary: NO_WAITS };
    expect(await stores.log.restore(run, late, seen)).toBe(false);
    expect(await stores.log.head(run)).toEqual(seen);
  });

  it('what is streamed meanwhile leaves the log; what was recorded before that comes back', async () => {
    await streamText(stores, run, { activityId: 'b', pieces: ['Hm'] });
    recordLost('a', ['I ', 'think'], [2, 3]);
    await log.catchUp(run);
    expect(await keys()).toBe('run.started|r a#d0 a#d1 a#0');
    const more = { activityId: 'b', pieces: [' so'], k0: 1 };
    await expect(streamText(stores, run, more)).rejects.toThrow('block-closed');
    recordLost('b', ['Hm'], [1]);
    await log.catchUp(run);
    expect(await keys()).toBe('run.started|r a#d0 a#d1 a#0 b#d0 b#0');
    await expectRebuilt();
  });

  it('a stream that begins later is not shown; one recorded before the log was made again is, once', async () => {
    recordLost('a', ['I '], [7]);
    await log.catchUp(run);
    const later = { activityId: 'c', pieces: ['New'] };
    await expect(streamText(stores, run, later)).rejects.toThrow('lost');
    built.task(schedule('c'));
    recordLost('c', ['New'], [3]);
    await log.catchUp(run);
    built.task(schedule('seal'));
    built.completed('seal', { deltas: recordedAt(runId, later, [3]) });
    await log.catchUp(run);
    expect(await keys()).toBe('run.started|r a#d0 a#0 c#d0 c#0');
    await expectRebuilt();
  });

  it('an ending that no workflow code wrote closes the same streams, live and rebuilt', async () => {
    recordLost('a', ['I '], [7]);
    built.completed('b', {
      events: [reasoned('Hm')],
      deltas: recordedAt(runId, { activityId: 'b', pieces: ['Hm'] }, [4]),
    });
    built.task(terminate);
    await log.catchUp(run);
    expect(await keys()).toContain('b#d0');
    expect((await rowsNow()).at(-1)).toMatchObject({ type: 'run.failed' });
    await expectRebuilt();
  });

  it('is lost from no log that is dropped after that', async () => {
    recordLost('a', ['I ', 'think'], [1, 3]);
    await log.catchUp(run);
    const rows = await rowsNow();
    const head = await stores.log.head(run);
    if (!head) throw new Error('no head');
    const dropped = { head: { ...head, nextSequence: 0 }, rows: [], summary: NO_WAITS };
    expect(await stores.log.restore(run, dropped, head)).toBe(true);
    expect(await rowsNow()).toEqual([]);
    await log.rebuild(run);
    expect(await rowsNow()).toEqual(rows);
    expect(await retoldFrom()).toBe(1);
  });

  it('a block that is open in the database and closed in history holds nothing up', async () => {
    await streamText(stores, run, { activityId: 'a', pieces: ['I '] });
    recordLost('a', ['I ', 'think'], [1, 2]);
    built.task(complete(built.carrier(emitted('terminal', 'run.completed', {}))));
    await log.catchUp(run);
    expect(await keys()).toBe('run.started|r a#d0 a#d1 a#0 terminal');
    expect(await retoldFrom()).toBeUndefined();
    expect(await stores.log.openBlocks(run)).toEqual([]);
    await expectRebuilt();
  });

  it('of two recordings of one stream the first counts', () => {
    const text = { activityId: 'a', pieces: ['I '] };
    const recorded = [1, 0].map((entriesBefore) => ({
      ...recordedAt('r', text, [1]),
      entriesBefore,
    }));
    const entry = (key: string) => ({
      runId: 'r',
      key,
      type: 't',
      eventId: key,
      payload: '{}',
      timestampMs: 1,
    });
    expect(asRecorded('r', ['x', 'y'].map(entry), recorded).map(({ key }) => key)).toEqual([
      'x',
      'a#d0',
      'y',
    ]);
  });
});
