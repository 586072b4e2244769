// The projector (design §3.4): keeps logs up to their histories without polling runs. Hints drive it; a lease per
// process and a sweep make sure that neither a lost hint nor an end that no worker saw hides a run.
import { codeOf } from '../core/errors.ts';
import type { HistoryReader, Logger, Stores } from '../ports.ts';
import { archiveClosed } from './archive.ts';
import { createHintQueue } from './hints.ts';
import type { Log } from './log.ts';

/** A process that did not renew for so long, in ms, is taken for dead; it renews three times in that time. */
const LEASE_TTL_MS = 15_000;
const LEASE_RENEW_MS = 5_000;
const SWEEP_EVERY_MS = 10_000;
/** Visibility is late: each sweep looks back so far behind the newest end that it has seen, in ms. */
const SWEEP_OVERLAP_MS = 60_000;
/** Runs per page when every open run is caught up, how many of them at once, and the rest between such groups. */
const OPEN_PAGE = 100;
const OPEN_CONCURRENCY = 4;
const OPEN_PAUSE_MS = 40;
/** Pause before a run is tried again while Temporal or the database is away, in ms. */
const AWAY_PAUSE_MS = 1_000;
/** Ended runs that the sweep need not look at again. */
const MAX_KNOWN_ENDED = 5_000;

export interface ProjectorDeps {
  readonly log: Log;
  readonly stores: Stores;
  readonly history: HistoryReader;
  readonly logger: Logger;
  readonly processId: string;
  /** For tests; SWEEP_EVERY_MS when absent. */
  readonly sweepEveryMs?: number;
}

export interface Projector {
  /** From the workflow sink: the segment's history will be longer than `historyLength`. Returns at once. */
  hint(runId: string, temporalRunId: string, historyLength: number, terminal: boolean): void;
  /** Takes the lease, begins to catch up every open run and to sweep. */
  start(): Promise<void>;
  /** Does what is hinted, then gives the lease back. */
  stop(): Promise<void>;
}

export function createProjector(deps: ProjectorDeps): Projector {
  const { log, stores, history, logger, processId } = deps;
  const parts = { stores, history, logger };
  const stopping = new AbortController();
  const { signal } = stopping;
  const knownEnded = new Set<string>();
  const background = new Set<Promise<void>>();
  const timers: NodeJS.Timeout[] = [];
  let archiving: Promise<void> | undefined;

  const hints = createHintQueue({
    advance: (runId, goal) => log.advance(runId, goal),
    watched: (runIds) => stores.projection.watched(runIds),
    onReached: ({ head }) => {
      if (head.closed) archiveSoon();
    },
    logger,
  });

  function inBackground(what: string, work: () => Promise<void>): void {
    const done = work()
      .catch((error: unknown) => logger.warn(`${what} failed`, { reason: String(error) }))
      .finally(() => background.delete(done));
    background.add(done);
  }

  /** One archiving at a time; what closes meanwhile is taken by the next sweep. */
  function archiveSoon(): void {
    if (archiving || signal.aborted) return;
    archiving = Promise.resolve();
    inBackground('archiving', async () => {
      try {
        await archiveClosed(parts, signal);
      } finally {
        archiving = undefined;
      }
    });
  }

  function pause(ms: number): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(done, ms);
      function done() {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        resolve();
      }
      signal.addEventListener('abort', done);
    });
  }

  /** False while Temporal or the database is away. Anything else is noted with the run, or here. */
  async function caughtUp(runId: string): Promise<boolean> {
    try {
      await log.catchUp(runId);
    } catch (error) {
      if (codeOf(error) === 'service_unavailable') return false;
      logger.warn('an open run could not be caught up', { runId, reason: String(error) });
    }
    return true;
  }

  async function catchUpUntilDone(runId: string): Promise<void> {
    while (!signal.aborted && !(await caughtUp(runId))) await pause(AWAY_PAUSE_MS);
  }

  async function catchUpOpenRuns(): Promise<void> {
    for (let after = ''; !signal.aborted;) {
      const runIds = await stores.projection.openRuns(after, OPEN_PAGE);
      for (let at = 0; at < runIds.length && !signal.aborted; at += OPEN_CONCURRENCY) {
        await Promise.all(runIds.slice(at, at + OPEN_CONCURRENCY).map(catchUpUntilDone));
        await pause(OPEN_PAUSE_MS);
      }
      const last = runIds.at(-1);
      if (last === undefined) return;
      after = last;
    }
  }

  async function keepLease(): Promise<void> {
    await stores.projection.renewLease(processId, LEASE_TTL_MS);
    const dead = await stores.projection.takeExpiredLease();
    if (dead === undefined) return;
    logger.info('catching up for a process that is gone', { process: dead });
    await catchUpOpenRuns();
  }

  function remember(runId: string): void {
    knownEnded.add(runId);
    if (knownEnded.size <= MAX_KNOWN_ENDED) return;
    for (const oldest of knownEnded) {
      knownEnded.delete(oldest);
      return;
    }
  }

  async function sweep(startedMs: number): Promise<void> {
    const watermark = (await stores.projection.sweepWatermark()) ?? startedMs;
    const { runIds, newestMs } = await history.closedSince(watermark - SWEEP_OVERLAP_MS);
    for (const runId of runIds) {
      if (signal.aborted) return;
      if (knownEnded.has(runId)) continue;
      const head = await stores.log.head(runId);
      if (head && !head.closed) await log.catchUp(runId).catch(noteSweepFailure(runId));
      else remember(runId);
    }
    if (newestMs > watermark) await stores.projection.setSweepWatermark(newestMs);
    archiveSoon();
  }

  function noteSweepFailure(runId: string) {
    return (error: unknown) => {
      const code = codeOf(error);
      if (code === undefined || code === 'service_unavailable') throw error;
      logger.debug('an ended run could not be caught up', { runId, code });
    };
  }

  async function sweepForEver(startedMs: number): Promise<void> {
    while (!signal.aborted) {
      await sweep(startedMs).catch((error: unknown) =>
        logger.debug('the sweep failed, trying again', { reason: String(error) }),
      );
      await pause(deps.sweepEveryMs ?? SWEEP_EVERY_MS);
    }
  }

  async function start(): Promise<void> {
    await stores.projection.renewLease(processId, LEASE_TTL_MS);
    inBackground('catching up open runs', catchUpOpenRuns);
    inBackground('sweeping', () => sweepForEver(Date.now()));
    timers.push(setInterval(() => inBackground('the lease', keepLease), LEASE_RENEW_MS));
  }

  async function stop(): Promise<void> {
    stopping.abort();
    timers.forEach(clearInterval);
    await hints.stop();
    await Promise.all(background);
    // With something left undone the lease runs out by itself, and whoever wins it catches up.
    if (hints.size() === 0) await stores.projection.releaseLease(processId);
  }

  return {
    hint: (runId, temporalRunId, historyLength) =>
      hints.add({ runId, temporalRunId, historyLength }),
    start,
    stop,
  };
}
