// The sweep on PGlite, with played histories (architecture §3.4): beside a projector, whose catch-up it asks for.
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { createLog } from '../../src/log/log.ts';
import { createProjector, type Projector } from '../../src/log/projector.ts';
import { createSweeper, type Sweeper } from '../../src/log/sweeper.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { terminate } from '../support/histories.ts';
import { openAnyStores, registerRun, ScriptedHistory, silentLogger } from '../support/log-parts.ts';
import { closes, rowsReach, startedHistory, threeTasks } from '../support/projected.ts';
import { runRef } from '../support/run-ref.ts';

let stores: Stores;
let history: ScriptedHistory;
let projector: Projector;
let sweeper: Sweeper;
let runId: string;
let segment: string;
/** What the sweep said, by level. */
let said: string[];

beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

function newSweeper(catchUp = projector.catchUp.bind(projector)): Sweeper {
  const logger = {
    ...silentLogger,
    debug: (message: string) => void said.push(`debug: ${message}`),
    warn: (message: string) => void said.push(`warn: ${message}`),
  };
  return createSweeper({ stores, history, catchUp, logger, everyMs: 20 });
}

beforeEach(async () => {
  runId = randomUUID();
  segment = `${runId}-t1`;
  history = new ScriptedHistory();
  said = [];
  const processId = randomUUID();
  const log = createLog({ stores, history, logger: silentLogger, processId });
  const answers = async () => undefined;
  const parts = { log, stores, logger: silentLogger, processId, retryPauseMs: 20, answers };
  projector = createProjector(parts);
  sweeper = newSweeper();
  await registerRun(stores, runId);
  return async () => {
    await sweeper.stop();
    await projector.stop();
    log.close();
  };
});

/** A second run, which stands behind `runId` in every list, with its whole history. */
async function neighbour(): Promise<{ id: string; at: string }> {
  const id = `${runId}-neighbour`;
  const at = `${id}-t1`;
  await registerRun(stores, id);
  history.add(at, threeTasks());
  return { id, at };
}

describe('architecture §3.4: the sweep', () => {
  // [I118]
  it('finds an end again that a failover of the database has lost', async () => {
    const listeners = new Set<() => void>();
    const onReconnect = (listener: () => void) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    };
    let isOpen = false;
    let asked = 0;
    const stillOpen = async () => ((asked += 1), isOpen ? [runRef(runId)] : []);
    const caughtUp: string[] = [];
    history.ended = { runIds: [runId], newestMs: Date.now() };
    const failing = createSweeper({
      stores: { log: { onReconnect }, projection: { ...stores.projection, stillOpen } },
      catchUp: async (run) => void caughtUp.push(run.runId),
      ...{ history, logger: silentLogger, everyMs: 20 },
    });
    failing.start();
    await expect.poll(() => asked).toBe(1);
    isOpen = true;
    for (const reconnected of listeners) reconnected();
    await expect.poll(() => caughtUp).toContain(runId);
    await failing.stop();
    expect(listeners.size).toBe(0);
  });

  it('finds an end that no worker saw', async () => {
    history.add(segment, startedHistory().lone(terminate[0], terminate[1]));
    history.ended = { runIds: [runId, 'a run of somebody else'], newestMs: Date.now() };
    sweeper.start();
    expect((await rowsReach(stores, runId, 2)).at(-1)?.type).toBe('run.failed');
  });

  it('one run with an unforeseen fault stops neither it nor the open runs, shows it, and is tried again', async () => {
    const { id, at } = await neighbour();
    history.add(segment, threeTasks(), 3);
    history.show(at, 3);
    await projector.start();
    sweeper.start();
    await rowsReach(stores, runId, 1);
    let mended = false;
    history.onRead = async (read) => {
      if (read === segment && !mended) throw new TypeError('unforeseen');
    };
    history.show(segment);
    history.show(at);
    history.ended = { runIds: [runId, id], newestMs: Date.now() };
    await closes(stores, id);
    const problem = { runId, problem: 'internal_error' };
    await expect.poll(() => stores.log.problems(100)).toContainEqual(problem);
    mended = true;
    await closes(stores, runId);
  });

  it('goes on behind a window that held less than all, also within the overlap', async () => {
    const { id } = await neighbour();
    history.add(segment, threeTasks());
    const later = Date.now() + 100_000;
    history.closedSince = async (sinceMs) =>
      sinceMs < later
        ? { runIds: [runId], newestMs: 1, moreAfterMs: later }
        : { runIds: [id], newestMs: 2 };
    sweeper.start();
    await closes(stores, runId);
    await closes(stores, id);
  });

  it('looks back behind its watermark by the overlap, which a store that is away does not move', async () => {
    const asked: number[] = [];
    const newestMs = Date.now() + 10_000;
    await stores.projection.setSweepWatermark(newestMs);
    history.closedSince = async (sinceMs) => {
      asked.push(sinceMs);
      if (asked.length === 1) throw new HostError('service_unavailable');
      return { runIds: [], newestMs: newestMs + asked.length };
    };
    sweeper.start();
    await expect.poll(() => asked.length).toBeGreaterThan(2);
    expect(asked.slice(0, 3)).toEqual([
      newestMs - 60_000,
      newestMs - 60_000,
      newestMs + 2 - 60_000,
    ]);
    expect(said).toEqual(['debug: the sweep failed, trying again']);
  });

  // [I97]
  it('a watermark that is ahead of now is ignored, and replaced', async () => {
    // As clocks differ, and later than the sweep begins.
    const newestMs = Date.now() + 20_000;
    await stores.projection.setSweepWatermark(9e15);
    const asked: number[] = [];
    history.closedSince = async (sinceMs) => {
      asked.push(sinceMs);
      return { runIds: [], newestMs };
    };
    sweeper.start();
    await expect.poll(() => stores.projection.sweepWatermark()).toBe(newestMs);
    await sweeper.stop();
    expect(Math.max(...asked)).toBeLessThan(Date.now());
  });

  it('a stop waits for the run at which it is, takes no other, and leaves the watermark', async () => {
    const { id } = await neighbour();
    await stores.projection.setSweepWatermark(Date.now());
    const watermark = await stores.projection.sweepWatermark();
    history.ended = { runIds: [runId, id], newestMs: (watermark ?? 0) + 1_000_000 };
    const seen: string[] = [];
    let done: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (done = resolve));
    const one = newSweeper(async (run) => {
      seen.push(run.runId);
      await held;
      seen.push('done');
    });
    one.start();
    await expect.poll(() => seen).toHaveLength(1);
    const stopped = one.stop().then(() => seen.push('stopped'));
    done();
    await stopped;
    expect(seen).toEqual([expect.any(String), 'done', 'stopped']);
    expect(await stores.projection.sweepWatermark()).toBe(watermark);
    expect((await stores.log.head(runRef(runId)))?.closed).not.toBe(true);
  });
});
