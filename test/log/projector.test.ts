// Hints, leases and followers on PGlite, with played histories (architecture §3.4).
import { randomUUID } from 'node:crypto';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  onTestFinished,
  vi,
} from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { createLog, type Log } from '../../src/log/log.ts';
import { createProjector, type Projector } from '../../src/log/projector.ts';
import type { Head, LogRow } from '../../src/ports/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { openAnyStores, registerRun, ScriptedHistory, silentLogger } from '../support/log-parts.ts';
import * as projected from '../support/projected.ts';
import { NO_WAITS } from '../contract/given.ts';
import { runRef } from '../support/run-ref.ts';
import { takes } from '../support/waiting.ts';

let stores: Stores;
let history: ScriptedHistory;
let log: Log;
let projector: Projector;
let runId: string;
let segment: string;
let stopped = false;

beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

beforeEach(async () => {
  runId = randomUUID();
  segment = `${runId}-t1`;
  history = new ScriptedHistory();
  const processId = randomUUID();
  log = createLog({ stores, history, logger: silentLogger, processId });
  projector = createProjector({
    log,
    stores,
    logger: silentLogger,
    processId,
    retryPauseMs: 20,
    answers: async () => undefined,
  });
  stopped = false;
  await registerRun(stores, runId);
  return async () => {
    if (!stopped) await projector.stop();
    log.close();
  };
});

const { threeTasks } = projected;
const rowsReach = (count: number) => projected.rowsReach(stores, runId, count);
const closes = (id = runId) => projected.closes(stores, id);

describe('architecture §3.4: hints', () => {
  it('a hint brings the log up, also when the task is recorded only afterwards', async () => {
    history.add(segment, threeTasks(), 2);
    // The sink speaks before the task is recorded: history has three events then, the fourth is its completion.
    projector.hint(runRef(runId), segment, 3, false);
    await takes(300);
    history.show(segment, 3);
    expect((await rowsReach(1)).map(({ type }) => type)).toEqual(['run.started']);
  });

  it('many hints of one run are one piece of work', async () => {
    history.add(segment, threeTasks());
    for (let length = 1; length < 9; length++)
      projector.hint(runRef(runId), segment, length, length === 8);
    await closes();
    expect(history.reads).toBeLessThan(4);
  });

  it('a hint whose append fails stays until it succeeds', async () => {
    history.add(segment, threeTasks());
    history.failure = new HostError('service_unavailable');
    projector.hint(runRef(runId), segment, 3, false);
    await expect.poll(() => history.reads).toBeGreaterThanOrEqual(2);
    history.failure = undefined;
    await closes();
  });

  it('a hint of a segment that is over is done, wherever the run is now', async () => {
    history.add(segment, threeTasks());
    projector.hint(runRef(runId), 'an-older-segment', 50, false);
    await closes();
  });

  it('stop does what is hinted and gives the lease back', async () => {
    history.add(segment, threeTasks());
    await projector.start();
    projector.hint(runRef(runId), segment, 3, false);
    await projector.stop();
    stopped = true;
    expect((await stores.log.head(runRef(runId)))?.nextSequence).toBeGreaterThan(0);
  });
});

describe('architecture §3.4: nothing hides a run', () => {
  // [I118]
  it('what was projected in the seconds that a failover lost is projected again', async () => {
    const listeners = new Set<() => void>();
    const onReconnect = (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    };
    const open = async (after: string) =>
      after === '' && !(await stores.log.head(runRef(runId)))?.closed ? [runRef(runId)] : [];
    const failing: Stores = {
      ...stores,
      log: { ...stores.log, onReconnect },
      projection: {
        ...stores.projection,
        openRuns: open,
        takeExpiredLease: async () => undefined,
      },
    };
    const parts = { logger: silentLogger, processId: randomUUID(), retryPauseMs: 20 };
    const other = createProjector({
      ...{ ...parts, log, stores: failing, answers: async () => undefined },
    });
    history.add(segment, threeTasks(), 3);
    await other.start();
    await rowsReach(1);
    const before = (await stores.log.head(runRef(runId))) as Head;
    const rows = await stores.log.read(runRef(runId), { after: -1, limit: 10 });
    history.show(segment, 5);
    await log.catchUp(runRef(runId));
    const lost = await stores.log.head(runRef(runId));
    // The database has what it had before.
    const told = { head: before, rows, summary: NO_WAITS };
    expect(await stores.log.restore(runRef(runId), told, lost)).toBe(true);
    for (const reconnected of listeners) reconnected();
    await rowsReach(2);
    await other.stop();
    expect(listeners.size).toBe(0);
  });

  it('a process that starts catches up every open head', async () => {
    history.add(segment, threeTasks());
    await projector.start();
    await closes();
  });

  it('an expired lease is won by one process', async () => {
    await stores.projection.renewLease('a dead worker', 1);
    await takes(20);
    const wins = await Promise.all([
      stores.projection.takeExpiredLease(60_000),
      stores.projection.takeExpiredLease(60_000),
    ]);
    expect(wins.filter((lease) => lease?.holder === 'a dead worker')).toHaveLength(1);
    await stores.projection.releaseLease('a dead worker');
  });

  /** On which one question for open runs fails: the first, or the first after a pass that found none. */
  function stumbling(when: 'at start' | 'for a dead process') {
    const answers = when === 'at start' ? ['fails'] : ['none', 'fails'];
    const openRuns: Stores['projection']['openRuns'] = (...asked) =>
      stores.projection.openRuns(...asked);
    const projection: Stores['projection'] = {
      ...stores.projection,
      openRuns: async (...asked) => {
        const answer = answers.shift();
        if (answer === 'fails') throw new HostError('service_unavailable');
        return answer === 'none' ? [] : openRuns(...asked);
      },
    };
    return other(projection);
  }

  /** Another process, stopped at the end of the test. */
  function other(projection: Stores['projection']): Projector {
    const one = createProjector({
      ...{ log, stores: { ...stores, projection }, logger: silentLogger },
      ...{ processId: randomUUID(), retryPauseMs: 20, renewMs: 50, answers: async () => undefined },
    });
    onTestFinished(() => one.stop());
    return one;
  }

  // [I97]
  it.each(['at start', 'for a dead process'] as const)(
    'a page of open runs that the database does not give is asked for again: %s',
    async (when) => {
      history.add(segment, threeTasks());
      const dead = randomUUID();
      if (when !== 'at start') await stores.projection.renewLease(dead, 0);
      await stumbling(when).start();
      await expect.poll(async () => (await stores.log.head(runRef(runId)))?.closed).toBe(true);
    },
  );

  it('the lease of a dead process is released after its pass, not before', async () => {
    const dead = randomUUID();
    await stores.projection.renewLease(dead, 0);
    const released: string[] = [];
    let pages = 0;
    let letGo = (): void => undefined;
    const gone = new Promise<void>((resolve) => (letGo = resolve));
    const projection: Stores['projection'] = {
      ...stores.projection,
      // The first page is that of the pass at start.
      openRuns: async () => (++pages > 1 ? gone.then(() => []) : []),
      releaseTaken: async ({ holder }) => void released.push(holder),
    };
    await other(projection).start();
    await expect.poll(() => pages).toBe(2);
    await takes(200);
    expect(released).not.toContain(dead);
    letGo();
    // Those of other tests may have run out meanwhile.
    await expect.poll(() => released).toContain(dead);
  });

  // [I97]
  it('a process that comes back keeps its lease, whoever has caught up for it meanwhile', async () => {
    const stalled = randomUUID();
    await stores.projection.renewLease(stalled, 0);
    let pages = 0;
    let letGo = (): void => undefined;
    const over = new Promise<void>((resolve) => (letGo = resolve));
    const projection: Stores['projection'] = {
      ...stores.projection,
      openRuns: async () => (++pages > 1 ? over.then(() => []) : []),
    };
    await other(projection).start();
    await expect.poll(() => pages).toBe(2);
    await stores.projection.renewLease(stalled, 1);
    await takes(200);
    letGo();
    // It has died again since: somebody has to win it.
    await expect.poll(() => pages).toBeGreaterThan(2);
  });

  it('a run that Temporal never answers for hides no other that is open, and is named', async () => {
    history.add(segment, threeTasks());
    const others = await Promise.all(
      Array.from({ length: 9 }, async (_, at) => {
        const id = `${runId}-${at}`;
        await registerRun(stores, id);
        history.add(`${id}-t1`, threeTasks());
        return id;
      }),
    );
    let mended = false;
    history.onRead = async (at) => {
      if (at === segment && !mended) throw new HostError('service_unavailable');
    };
    await projector.start();
    for (const id of others) await closes(id);
    const problem = async () => (await stores.log.head(runRef(runId)))?.problem;
    await expect.poll(problem).toBe('service_unavailable');
    mended = true;
    await closes();
    expect(await problem()).toBeUndefined();
  });

  it('a run that was asked for and fails is tried again, and an end is told', async () => {
    let told = 0;
    projector.onClosed(() => (told += 1));
    history.add(segment, threeTasks(), 3);
    await projector.catchUp(runRef(runId));
    expect(told).toBe(0);
    history.failure = new HostError('service_unavailable');
    history.show(segment);
    await projector.catchUp(runRef(runId));
    expect(told).toBe(0);
    history.failure = undefined;
    await closes();
    await expect.poll(() => told).toBe(1);
  });
});

describe('how long nothing came', () => {
  afterEach(() => void vi.restoreAllMocks());
  const HOUR_MS = 3_600_000;

  it('is nothing while a hint is not done, and then no matter of the wall clock', async () => {
    history.add(segment, threeTasks());
    projector.hint(runRef(runId), segment, 3, false);
    expect(projector.quietMs()).toBe(0);
    await closes();
    await expect.poll(() => projector.quietMs()).toBeGreaterThan(0);
    const now = Date.now();
    vi.spyOn(Date, 'now').mockReturnValue(now + HOUR_MS);
    expect(projector.quietMs()).toBeLessThan(HOUR_MS);
    vi.spyOn(Date, 'now').mockReturnValue(now - HOUR_MS);
    expect(projector.quietMs()).toBeGreaterThan(0);
  });
});

describe('architecture §3.3: followers', () => {
  async function collect(rows: AsyncIterable<readonly LogRow[]>): Promise<number[]> {
    const seen: number[] = [];
    for await (const page of rows) seen.push(...page.map(({ sequence }) => sequence));
    return seen;
  }
  const live = () => new AbortController().signal;

  it('get the backlog, then what comes, and end behind the terminal row', async () => {
    history.add(segment, threeTasks(), 3);
    await log.catchUp(runRef(runId));
    const seen = collect(log.follow(runRef(runId), { after: -1, signal: live() }));
    const late = collect(log.follow(runRef(runId), { after: 0, signal: live() }));
    history.show(segment, 5);
    projector.hint(runRef(runId), segment, 5, false);
    await rowsReach(2);
    history.show(segment);
    projector.hint(runRef(runId), segment, 9, true);
    expect(await seen).toEqual([0, 1, 2]);
    expect(await late).toEqual([1, 2]);
  });

  it('of a closed run get what is behind their position, or nothing', async () => {
    history.add(segment, threeTasks());
    await log.catchUp(runRef(runId));
    expect(await collect(log.follow(runRef(runId), { after: 1, signal: live() }))).toEqual([2]);
    expect(await collect(log.follow(runRef(runId), { after: 2, signal: live() }))).toEqual([]);
    expect(await collect(log.follow(runRef(runId), { after: 99, signal: live() }))).toEqual([]);
  });

  it('watch the run while there is one, and no longer', async () => {
    history.add(segment, threeTasks(), 3);
    const abort = new AbortController();
    const watched = async () => (await stores.projection.watched([runRef(runId)])).has(runId);
    for await (const [row] of log.follow(runRef(runId), { after: -1, signal: abort.signal })) {
      expect(row?.sequence).toBe(0);
      await expect.poll(watched).toBe(true);
      abort.abort();
    }
    await expect.poll(watched).toBe(false);
  });

  it('share one reader: those at the same place cost one query', async () => {
    history.add(segment, threeTasks(), 3);
    await log.catchUp(runRef(runId));
    let queries = 0;
    const counting: Stores = {
      ...stores,
      log: {
        ...stores.log,
        read: (id, query) => {
          queries += 1;
          return stores.log.read(id, query);
        },
      },
    };
    const counted = createLog({ stores: counting, history, logger: silentLogger, processId: 'c' });
    const all = Array.from({ length: 20 }, () =>
      collect(counted.follow(runRef(runId), { after: -1, signal: live() })),
    );
    await rowsReach(1);
    history.show(segment);
    projector.hint(runRef(runId), segment, 7, true);
    for (const seen of await Promise.all(all)) expect(seen).toEqual([0, 1, 2]);
    expect(queries).toBeLessThan(20);
    counted.close();
  });

  // [I118]
  it.each([
    ['is shorter', (rows: readonly LogRow[]) => rows.slice(0, 1)],
    [
      'has another row there',
      ([first, second]: readonly LogRow[]) =>
        [first, second && { ...second, eventId: `evt-${second.eventId}`, key: 'other' }].flatMap(
          (row) => row ?? [],
        ),
    ],
  ])('end where the log that they had read %s: they begin again', async (_, changed) => {
    history.add(segment, threeTasks(), 5);
    await log.catchUp(runRef(runId));
    const head = await stores.log.head(runRef(runId));
    const all = await stores.log.read(runRef(runId), { after: -1, limit: 10 });
    expect(all).toHaveLength(2);
    const rows = changed(all);
    const told = { ...(head as Head), nextSequence: rows.length };
    const seen: number[] = [];
    const reading = async () => {
      for await (const page of log.follow(runRef(runId), { after: -1, signal: live() })) {
        seen.push(...page.map(({ sequence }) => sequence));
        await stores.log.restore(runRef(runId), { head: told, rows, summary: NO_WAITS }, head);
      }
    };
    await expect(reading()).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(seen).toEqual([0, 1]);
  });

  it('end where it was made again though they have read nothing yet: they begin again', async () => {
    history.add(segment, threeTasks(), 5);
    await log.catchUp(runRef(runId));
    const head = (await stores.log.head(runRef(runId))) as Head;
    const all = await stores.log.read(runRef(runId), { after: -1, limit: 10 });
    const pages = log.follow(runRef(runId), { after: 1, signal: live() });
    const next = pages[Symbol.asyncIterator]().next();
    await takes(200);
    const rows = all.map((row) => (row.sequence === 1 ? { ...row, eventId: 'evt-other' } : row));
    await stores.log.restore(runRef(runId), { head, rows, summary: NO_WAITS }, head);
    await expect(next).rejects.toMatchObject({ code: 'service_unavailable' });
  });

  it('go on after an entry that cannot be read, and from the first one while nothing else was there yet', async () => {
    history.add(segment, threeTasks(), 5);
    await log.catchUp(runRef(runId));
    const damaged: Stores = {
      ...stores,
      log: {
        ...stores.log,
        read: async (id, query) => {
          if (query.after < 1) throw new HostError('history_undecodable');
          return stores.log.read(id, query);
        },
      },
    };
    const one = createLog({ stores: damaged, history, logger: silentLogger, processId: 'c' });
    const pages = one.follow(runRef(runId), { after: 1, signal: live() });
    const next = pages[Symbol.asyncIterator]().next();
    await takes(200);
    history.show(segment, 8);
    await log.catchUp(runRef(runId));
    const { value } = (await next) as { value: readonly LogRow[] };
    expect(value[0]).toMatchObject({ sequence: 2 });
    one.close();
  });

  it('end where the log is shorter than what they have', async () => {
    history.add(segment, threeTasks(), 5);
    await log.catchUp(runRef(runId));
    const pages = log.follow(runRef(runId), { after: 2, signal: live() });
    const next = pages[Symbol.asyncIterator]().next();
    await expect(next).rejects.toMatchObject({ code: 'service_unavailable' });
  });

  // [I97]
  it('a read that failed fails who shared it, and nobody who comes then', async () => {
    history.add(segment, threeTasks(), 5);
    await log.catchUp(runRef(runId));
    const asked = { tail: 0 };
    let failing = 0;
    const broken: Stores = {
      ...stores,
      log: {
        ...stores.log,
        read: async (id, query) => {
          if (query.after === -1 && failing-- > 0) throw new HostError('service_unavailable');
          return stores.log.read(id, query);
        },
        tail: (id) => ((asked.tail += 1), stores.log.tail(id)),
      },
    };
    const one = createLog({ stores: broken, history, logger: silentLogger, processId: 'c' });
    const abort = new AbortController();
    const rows = async (after: number) => {
      for await (const [row] of one.follow(runRef(runId), { after, signal: abort.signal }))
        return row?.sequence;
      return undefined;
    };
    // It waits at the end, and so keeps what is shared.
    const waiting = collect(one.follow(runRef(runId), { after: 1, signal: abort.signal }));
    // A notification of what was just caught up may come late, and then it looks once more.
    await expect.poll(() => asked.tail).toBeGreaterThan(0);
    failing = 1;
    await expect(rows(-1)).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(await rows(-1)).toBe(0);
    abort.abort();
    await waiting;
    one.close();
  });

  it('that wait read where the log ends, once for all of them, and never the snapshot', async () => {
    history.add(segment, threeTasks(), 3);
    await log.catchUp(runRef(runId));
    const asked = { head: 0, tail: 0 };
    let wake = () => {};
    const counting: Stores = {
      ...stores,
      log: {
        ...stores.log,
        head: (id) => ((asked.head += 1), stores.log.head(id)),
        tail: (id) => ((asked.tail += 1), stores.log.tail(id)),
        onReconnect: (listener) => ((wake = listener), () => {}),
      },
    };
    const counted = createLog({ stores: counting, history, logger: silentLogger, processId: 'c' });
    const abort = new AbortController();
    const all = Array.from({ length: 20 }, () =>
      collect(counted.follow(runRef(runId), { after: -1, signal: abort.signal })),
    );
    await expect.poll(() => asked.tail).toBeGreaterThan(0);
    const before = { ...asked };
    const wakes = 5;
    for (let round = 1; round <= wakes; round++) {
      wake();
      await expect.poll(() => asked.tail).toBeGreaterThanOrEqual(before.tail + round);
    }
    expect(asked).toEqual({ head: before.head, tail: before.tail + wakes });
    abort.abort();
    await Promise.all(all);
    counted.close();
  });

  it('an aborted follower ends at once, also one that waits', async () => {
    const abort = new AbortController();
    const seen = collect(log.follow(runRef(runId), { after: -1, signal: abort.signal }));
    void takes(10).then(() => abort.abort());
    expect(await seen).toEqual([]);
  });
});
