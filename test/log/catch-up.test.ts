// catchUp, fresh reads, archive and rebuild on PGlite, with played histories (architecture §3). [I19] [I25]
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { archiveClosed } from '../../src/log/archive.ts';
import { createLog, type Log } from '../../src/log/log.ts';
import { retrace } from '../../src/log/rebuild.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import {
  admitted,
  complete,
  continueAsNew,
  emitted,
  HistoryBuilder,
  jsonPayload,
  memo,
  schedule,
  terminate,
} from '../support/histories.ts';
import type { ScriptedHistory } from '../support/log-parts.ts';
import { newLogRun, openAnyStores, registerRun, silentLogger } from '../support/log-parts.ts';
import { tripsOf } from '../support/database-trips.ts';
import { runRef } from '../support/run-ref.ts';
import { recordText, streamText } from '../support/streamed-text.ts';

let stores: Stores;
let history: ScriptedHistory;
let log: Log;
let runId: string;
let run: RunRef;
let segment: string;

beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

beforeEach(async () => {
  ({ runId, run, segment, history, log } = await newLogRun(stores));
  return () => log.close();
});

const parts = () => ({ stores, history, logger: silentLogger });
const started = () => emitted('run.started|r', 'run.started', { workflowId: 'w' });
const ended = () => emitted('terminal', 'run.completed', {});
const allRows = (id = runId) => stores.log.read(runRef(id), { after: -1, limit: 1_000 });
const types = async () => (await allRows()).map(({ type }) => type);

function shortRun(): HistoryBuilder {
  const built = new HistoryBuilder();
  built
    .task(schedule('a', built.carrier(started())))
    .completed('a', { events: [{ type: 'x.y', payload: { n: 1 } }] })
    .task(complete(built.carrier(admitted('a'), ended())));
  return built;
}

describe('architecture §3.2: catchUp', () => {
  it('appends dense rows page by page and closes the head with the terminal row', async () => {
    history.add(segment, shortRun());
    history.pageBatches = 1;
    const head = await log.catchUp(run);
    expect(head).toMatchObject({ closed: true, status: 'completed', nextSequence: 3 });
    expect((await allRows()).map(({ sequence }) => sequence)).toEqual([0, 1, 2]);
    expect(await types()).toEqual(['run.started', 'x.y', 'run.completed']);
  });

  it('reads on behind the cursor and finds nothing twice', async () => {
    history.add(segment, shortRun(), 3);
    await log.catchUp(run);
    expect(await types()).toEqual(['run.started']);
    history.show(segment);
    await log.catchUp(run);
    expect(await types()).toEqual(['run.started', 'x.y', 'run.completed']);
  });

  it('a run whose start is not confirmed stays pending and costs no read of history', async () => {
    const unstarted = randomUUID();
    const { runRow } = await import('../support/log-parts.ts');
    await stores.runs.accept(runRow(unstarted));
    expect(await log.catchUp(runRef(unstarted))).toMatchObject({
      status: 'pending',
      closed: false,
    });
    expect(history.reads).toBe(0);
  });

  it('an unknown run is run_not_found', async () => {
    await expect(log.catchUp(runRef('nobody'))).rejects.toMatchObject({ code: 'run_not_found' });
  });

  it('several processes at once: each row once, no gap', async () => {
    history.add(segment, shortRun());
    history.pageBatches = 1;
    const other = createLog({ stores, history, logger: silentLogger, processId: 'p2' });
    const third = createLog({ stores, history, logger: silentLogger, processId: 'p3' });
    await Promise.all([log, other, third].map((each) => each.catchUp(run)));
    expect((await allRows()).map(({ sequence, type }) => `${sequence} ${type}`)).toEqual([
      '0 run.started',
      '1 x.y',
      '2 run.completed',
    ]);
    other.close();
    third.close();
  });

  it('callers at one time share one read that began after the first of them asked', async () => {
    history.add(segment, shortRun(), 3);
    await log.catchUp(run);
    history.reads = 0;
    let open = () => {};
    const gate = new Promise<void>((resolve) => (open = resolve));
    history.onRead = () => gate;
    const first = log.catchUp(run);
    // Asked while the first reads: what they see must be later than their question.
    const later = [log.catchUp(run), log.catchUp(run), log.catchUp(run)];
    history.onRead = async () => {};
    history.show(segment);
    open();
    await first;
    for (const head of await Promise.all(later)) expect(head.closed).toBe(true);
    expect(history.reads).toBeLessThanOrEqual(4);
  });

  it('follows continue-as-new into the next segment and records both', async () => {
    const first = new HistoryBuilder();
    first.task(continueAsNew('t2', first.carrier(started())));
    const second = new HistoryBuilder(5_000);
    second.task(complete(second.carrier(ended())));
    history.add(segment, first);
    history.add('t2', second);
    expect(await log.catchUp(run)).toMatchObject({ closed: true, temporalRunId: 't2' });
    expect((await stores.segments.ofRun(run)).map((each) => each.temporalRunId)).toEqual([
      segment,
      't2',
    ]);
  });

  it('timestamps never go back, whatever the history says', async () => {
    const first = new HistoryBuilder(9_000);
    first.task(continueAsNew('t2', first.carrier(started())));
    const second = new HistoryBuilder(5_000);
    second.task(complete(second.carrier(ended())));
    history.add(segment, first);
    history.add('t2', second);
    await log.catchUp(run);
    expect((await allRows()).map(({ timestampMs }) => timestampMs)).toEqual([9_020, 9_020]);
  });
});

describe('architecture §3.3: fresh reads', () => {
  it('a closed run is served from Postgres alone', async () => {
    history.add(segment, shortRun());
    await log.catchUp(run);
    history.reads = 0;
    expect(await log.fresh(run)).toMatchObject({ stale: false, head: { closed: true } });
    expect(history.reads).toBe(0);
  });

  it('an open run is caught up first', async () => {
    history.add(segment, shortRun());
    expect(await log.fresh(run)).toMatchObject({ stale: false, head: { nextSequence: 3 } });
  });

  it('of a run in which nothing happened meanwhile costs one look at its head', async () => {
    history.add(segment, shortRun(), 3);
    await log.catchUp(run);
    const trips = await tripsOf(() => log.fresh(run));
    expect(trips).toEqual([expect.stringContaining('FROM run_heads')]);
  });

  it('Temporal away: what is stored, marked stale', async () => {
    history.add(segment, shortRun(), 3);
    await log.catchUp(run);
    history.failure = new HostError('service_unavailable');
    expect(await log.fresh(run)).toMatchObject({ stale: true, head: { nextSequence: 1 } });
  });
});

describe('architecture §3.1: an undecodable history stops the run’s projection, visibly, until it decodes again', () => {
  it('notes the problem, skips nothing, and goes on when it is gone', async () => {
    history.add(segment, shortRun(), 3);
    await log.catchUp(run);
    history.show(segment);
    history.failure = new HostError('history_undecodable');
    await expect(log.catchUp(run)).rejects.toMatchObject({ code: 'history_undecodable' });
    expect(await stores.log.problems(100)).toContainEqual({
      runId,
      problem: 'history_undecodable',
    });
    expect(await log.fresh(run)).toMatchObject({ stale: true, head: { nextSequence: 1 } });
    history.failure = undefined;
    expect(await log.catchUp(run)).toMatchObject({ closed: true });
    expect((await stores.log.problems(100)).filter((each) => each.runId === runId)).toEqual([]);
  });

  it('a carrier that is no JSON does the same, and what came before it stays', async () => {
    const built = new HistoryBuilder();
    const broken = { ...jsonPayload({}, { 'openwop-carrier': '1' }), data: Buffer.from('{') };
    built.task(memo(built.carrier(started()))).task(memo(broken));
    history.add(segment, built);
    history.pageBatches = 1;
    await expect(log.catchUp(run)).rejects.toMatchObject({ code: 'history_undecodable' });
    expect(await types()).toEqual(['run.started']);
  });
});

describe('architecture §3.6: archive and rebuild', () => {
  const stream = (activityId: string, pieces: readonly string[], k0 = 0) =>
    streamText(stores, run, { activityId, pieces, k0 });
  const record = (activityId: string) => recordText(stores, run, activityId);

  /** Two parallel streams with entries between their deltas. */
  async function streamedRun() {
    const built = new HistoryBuilder();
    built.task(schedule('a', built.carrier(started())), schedule('b'));
    history.add(segment, built);
    await log.catchUp(run);
    await stream('a', ['I ', 'think']);
    await stream('b', ['Hm']);
    built.completed('b', {
      events: [{ type: 'agent.reasoned', nodeId: 'n', payload: { reasoning: 'Hm' } }],
      deltas: await record('b'),
    });
    built.task(memo(built.carrier(admitted('b'))));
    await log.catchUp(run);
    await stream('a', [' so'], 2);
    return built;
  }

  const dump = async () => ({
    rows: await allRows(),
    head: await stores.log.head(run),
  });

  async function finish(built: HistoryBuilder) {
    built.completed('a', {
      events: [{ type: 'agent.reasoned', nodeId: 'n', payload: { reasoning: 'I think so' } }],
      deltas: await record('a'),
    });
    built.task(complete(built.carrier(admitted('a'), ended())));
    await log.catchUp(run);
  }

  it('what a history tells stands over a row that says the run failed to start', async () => {
    history.add(segment, shortRun());
    await log.catchUp(run);
    const live = await allRows();
    const runs = {
      ...stores.runs,
      find: async (tenant: string, id: string) => {
        const row = await stores.runs.find(tenant, id);
        return row && { ...row, startFailure: { cause: 'payload_too_large', atMs: 7 } };
      },
    };
    const { rows } = await retrace({ ...parts(), stores: { ...stores, runs } }, run);
    expect(rows).toEqual(live);
  });

  it('deltas stand where they were streamed, and the rebuild gives the same bytes', async () => {
    await finish(await streamedRun());
    const before = await dump();
    const keys = 'run.started|r a#d0 a#d1 b#d0 b#0 a#d2 a#0 terminal';
    expect(before.rows.map(({ key }) => key).join(' ')).toBe(keys);
    await log.rebuild(run);
    expect(JSON.stringify(await dump())).toBe(JSON.stringify(before));
  });

  it('from the archive as well, once Temporal has forgotten the run', async () => {
    await finish(await streamedRun());
    const before = await dump();
    await archiveClosed(parts(), new AbortController().signal);
    expect((await stores.segments.ofRun(run))[0]?.archive).toMatch(/^sha256:/);
    history.forget(segment);
    await log.rebuild(run);
    const { rows, head } = await dump();
    expect(JSON.stringify(rows)).toBe(JSON.stringify(before.rows));
    expect(head).toMatchObject({ ...(before.head as object), token: '' });
  });

  it('is refused while a block is open', async () => {
    await streamedRun();
    await expect(log.rebuild(run)).rejects.toMatchObject({ code: 'run_state_conflict' });
  });

  it('an open run is rebuilt to its tail and goes on', async () => {
    history.add(segment, shortRun(), 4);
    await log.catchUp(run);
    const before = await dump();
    await log.rebuild(run);
    expect(JSON.stringify((await dump()).rows)).toBe(JSON.stringify(before.rows));
    history.show(segment);
    expect(await log.catchUp(run)).toMatchObject({ closed: true, nextSequence: 3 });
  });

  it('a terminated run, several segments: rebuilt alike', async () => {
    const first = new HistoryBuilder();
    first.task(
      continueAsNew('t2', first.carrier(started(), emitted('n', 'node.started', { nodeId: 'n' }))),
    );
    const second = new HistoryBuilder(5_000);
    second.lone(terminate[0], terminate[1]);
    history.add(segment, first);
    history.add('t2', second);
    await log.catchUp(run);
    const before = await dump();
    expect(before.rows.map(({ type }) => type).slice(-2)).toEqual(['node.cancelled', 'run.failed']);
    await log.rebuild(run);
    expect(JSON.stringify(await dump())).toBe(JSON.stringify(before));
  });

  it('architecture §3.5 a terminated run: its open block is closed with what was stored, and takes no more', async () => {
    const built = new HistoryBuilder();
    built.task(
      schedule('a', built.carrier(started(), emitted('n', 'node.started', { nodeId: 'n' }))),
      schedule('b'),
    );
    history.add(segment, built);
    await log.catchUp(run);
    await stream('a', ['I ', 'think']);
    built.lone(terminate[0], terminate[1]);
    await log.catchUp(run);
    const rows = await allRows();
    expect(rows.map(({ type }) => type)).toEqual([
      ...['run.started', 'node.started', 'agent.reasoning.delta', 'agent.reasoning.delta'],
      ...['agent.reasoned', 'node.cancelled', 'run.failed'],
    ]);
    expect(rows[4]).toMatchObject({
      nodeId: 'n',
      payload: JSON.stringify({ agentId: 'core.a', reasoning: 'I think' }),
    });
    expect(await stores.log.openBlocks(run)).toEqual([]);
    await expect(stream('a', [' so'], 2)).rejects.toThrow('run-closed');
  });

  /** Streams of 'a' and 'b' under way, an entry between their deltas. */
  async function twoStreams() {
    const built = new HistoryBuilder();
    const node = emitted('n', 'node.started', { nodeId: 'n' });
    built.task(schedule('b', built.carrier(started(), node)), schedule('a'));
    history.add(segment, built);
    await log.catchUp(run);
    await stream('b', ['Hm']);
    await stream('a', ['I ', 'think']);
    built.task(memo(built.carrier(emitted('x', 'x.y', {}))));
    await log.catchUp(run);
    await stream('b', [' so'], 1);
    return built;
  }

  const terminated = (built: HistoryBuilder) => built.lone(terminate[0], terminate[1]);
  const reasoned = (text: string) => ({
    type: 'agent.reasoned',
    nodeId: 'n',
    payload: { agentId: 'core.a', reasoning: text },
  });
  const closings = async () =>
    (await allRows())
      .filter(({ type }) => type === 'agent.reasoned')
      .map(({ payload }) => (JSON.parse(payload) as { reasoning: string }).reasoning);

  it('a terminated run keeps what it was saying when it is rebuilt, byte for byte', async () => {
    terminated(await twoStreams());
    await log.catchUp(run);
    const before = await dump();
    expect(await closings()).toEqual(['I think', 'Hm so']);
    await log.rebuild(run);
    expect(JSON.stringify(await dump())).toBe(JSON.stringify(before));
  });

  it('a terminated run whose log is gone is rebuilt from what its history tells', async () => {
    terminated(await twoStreams());
    const { rows } = await retrace(
      { ...parts(), stores: { ...stores, log: { ...stores.log, read: async () => [] } } },
      run,
    );
    expect(rows.map(({ type }) => type)).toEqual([
      ...['run.started', 'node.started', 'x.y', 'node.cancelled', 'run.failed'],
    ]);
  });

  it('a rebuild that would lose a row is refused by name, and changes nothing', async () => {
    history.add(segment, shortRun());
    await log.catchUp(run);
    const before = await dump();
    history.show(segment, 4);
    await expect(log.rebuild(run)).rejects.toMatchObject({
      code: 'run_state_conflict',
      message: expect.stringContaining('would lose') as string,
    });
    expect(await dump()).toEqual(before);
    const { refused } = await log.rebuildAll();
    expect(refused).toContainEqual({
      runId,
      reason: expect.stringContaining('would lose') as string,
    });
  });

  it('deltas whose result is on its way are not lost to a history that went on meanwhile', async () => {
    const built = await twoStreams();
    const [a, b] = [await record('a'), await record('b')];
    for (let n = 0; n < 8; n++) built.task(memo(built.carrier(emitted(`y${n}`, 'x.y', {}))));
    const before = await dump();
    await expect(log.rebuild(run)).rejects.toMatchObject({ code: 'run_state_conflict' });
    expect(await dump()).toEqual(before);
    built.completed('a', { deltas: a }).completed('b', { deltas: b });
    built.task(complete(built.carrier(ended())));
    expect(await log.catchUp(run)).toMatchObject({ closed: true });
  });

  it.each([Infinity, 1])(
    'architecture §3.5 a result that no workflow task has seen: its stream is closed once (pages of %d batches)',
    async (pageBatches) => {
      const built = await twoStreams();
      built.completed('a', { events: [reasoned('I think')], deltas: await record('a') });
      history.pageBatches = pageBatches;
      terminated(built);
      await log.catchUp(run);
      expect(await closings()).toEqual(['I think', 'Hm so']);
      const before = await dump();
      await log.rebuild(run);
      expect(JSON.stringify(await dump())).toBe(JSON.stringify(before));
    },
  );

  it('architecture §3.5 a stream that was sealed before its activity came to an end is closed once', async () => {
    const built = await twoStreams();
    built.task(schedule('a.seal'));
    built.completed('a.seal', { events: [reasoned('I think')], deltas: await record('a') });
    built.task(memo(built.carrier(admitted('a.seal'))));
    await log.catchUp(run);
    built.completed('b', { events: [reasoned('Hm so')], deltas: await record('b') });
    built.task(memo(built.carrier(admitted('b'))));
    terminated(built);
    await log.catchUp(run);
    expect(await closings()).toEqual(['I think', 'Hm so']);
  });

  it('architecture §3.5 a crash between reading and writing the ending of a failed stream loses nothing', async () => {
    const built = await twoStreams();
    built.failed('a').failed('b');
    terminated(built);
    const crashed = createLog({
      stores: {
        ...stores,
        log: { ...stores.log, append: () => Promise.reject(new HostError('service_unavailable')) },
      },
      history,
      logger: silentLogger,
      processId: 'crashed',
    });
    await expect(crashed.catchUp(run)).rejects.toMatchObject({ code: 'service_unavailable' });
    crashed.close();
    await log.catchUp(run);
    expect(await closings()).toEqual(['I think', 'Hm so']);
  });

  it('architecture §3.5 of two processes that tell the ending at once, either tells it whole', async () => {
    const built = await twoStreams();
    built.failed('a').failed('b');
    terminated(built);
    const others = ['p2', 'p3', 'p4'].map((processId) =>
      createLog({ stores, history, logger: silentLogger, processId }),
    );
    await Promise.all([log, ...others].map((each) => each.catchUp(run)));
    for (const each of others) each.close();
    expect(await closings()).toEqual(['I think', 'Hm so']);
  });

  it('architecture §3.5 what is said while the ending is told is in it, and no block stays open', async () => {
    terminated(await twoStreams());
    let late = async (): Promise<void> => {
      late = async () => {};
      await stream('a', [' hard'], 2);
      await stores.log.appendDeltas(run, 'c', 1, []);
    };
    const slow = createLog({
      stores: {
        ...stores,
        log: {
          ...stores.log,
          append: async (batch) => {
            await late();
            return stores.log.append(batch);
          },
        },
      },
      history,
      logger: silentLogger,
      processId: 'slow',
    });
    expect(await slow.catchUp(run)).toMatchObject({ closed: true });
    slow.close();
    expect(await closings()).toEqual(['I think hard', 'Hm so']);
    expect(await stores.log.openBlocks(run)).toEqual([]);
  });

  it('the segments of a run that nobody had caught up are recorded by its rebuild, and archived', async () => {
    const first = new HistoryBuilder();
    first.task(continueAsNew('t2', first.carrier(started())));
    const second = new HistoryBuilder(5_000);
    second.task(complete(second.carrier(ended())));
    history.add(segment, first);
    history.add('t2', second);
    await log.rebuild(run);
    await archiveClosed(parts(), new AbortController().signal);
    const segments = await stores.segments.ofRun(run);
    expect(segments.map(({ temporalRunId }) => temporalRunId)).toEqual([segment, 't2']);
    for (const { archive } of segments) expect(archive).toMatch(/^sha256:/);
  });

  it('architecture §3.5 a block that its result closed is not closed again by the ending', async () => {
    const built = await streamedRun();
    built.completed('a', {
      events: [{ type: 'agent.reasoned', nodeId: 'n', payload: { reasoning: 'I think so' } }],
      deltas: await record('a'),
    });
    built.task(memo(built.carrier(admitted('a'))));
    built.lone(terminate[0], terminate[1]);
    await log.catchUp(run);
    const types = (await allRows()).map(({ type }) => type);
    expect(types.filter((type) => type === 'agent.reasoned')).toHaveLength(2);
  });

  it('what fails to be archived does not hold up the others, and is given out again later', async () => {
    const other = randomUUID();
    await registerRun(stores, other);
    for (const [id, at] of [
      [runId, segment],
      [other, `${other}-t1`],
    ] as const) {
      history.add(at, shortRun());
      await log.catchUp(runRef(id));
    }
    const unreadable = new Set([segment]);
    const raw = history.raw.bind(history);
    history.raw = async (id, at) => {
      if (unreadable.has(at)) throw new Error('unforeseen');
      return raw(id, at);
    };
    const signal = new AbortController().signal;
    await archiveClosed(parts(), signal);
    expect((await stores.segments.ofRun(runRef(other)))[0]?.archive).toMatch(/^sha256:/);
    expect((await stores.segments.ofRun(run))[0]?.archive).toBeUndefined();
  });

  it('a segment that Temporal forgot before it was archived is marked and not asked for again', async () => {
    history.add(segment, shortRun());
    await log.catchUp(run);
    history.forget(segment);
    await archiveClosed(parts(), new AbortController().signal);
    expect(await stores.segments.ofRun(run)).toMatchObject([{ archive: 'lost' }]);
    await expect(log.rebuild(run)).rejects.toMatchObject({ code: 'history_missing' });
  });
});
