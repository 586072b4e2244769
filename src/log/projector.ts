// The projector (design §3.4): keeps logs up to their histories without polling runs. Hints drive it; a lease per
// process and a sweep make sure that neither a lost hint nor an end that no worker saw hides a run.
import { codeOf } from '../core/errors.ts';
import type { HistoryReader, Logger, Stores } from '../ports.ts';
import { archiveClosed } from './archive.ts';
import { createHintQueue, type HintQueue } from './hints.ts';
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

class RunProjector implements Projector {
  private readonly deps: ProjectorDeps;
  private readonly stopping = new AbortController();
  private readonly signal = this.stopping.signal;
  private readonly knownEnded = new Set<string>();
  private readonly background = new Set<Promise<void>>();
  private readonly hints: HintQueue;
  private lease: NodeJS.Timeout | undefined;
  private archiving = false;

  constructor(deps: ProjectorDeps) {
    this.deps = deps;
    this.hints = createHintQueue({
      advance: (runId, goal) => deps.log.advance(runId, goal),
      watched: (runIds) => deps.stores.projection.watched(runIds),
      onReached: ({ head }) => {
        if (head.closed) this.archiveSoon();
      },
      logger: deps.logger,
    });
  }

  hint(runId: string, temporalRunId: string, historyLength: number): void {
    this.hints.add({ runId, temporalRunId, historyLength });
  }

  async start(): Promise<void> {
    const { stores, processId } = this.deps;
    await stores.projection.renewLease(processId, LEASE_TTL_MS);
    this.inBackground('catching up open runs', () => this.catchUpOpenRuns());
    this.inBackground('sweeping', () => this.sweepForEver(Date.now()));
    const renew = () => this.inBackground('the lease', () => this.keepLease());
    this.lease = setInterval(renew, LEASE_RENEW_MS);
  }

  async stop(): Promise<void> {
    const { stores, processId } = this.deps;
    this.stopping.abort();
    clearInterval(this.lease);
    await this.hints.stop();
    await Promise.all(this.background);
    // With something left undone the lease runs out by itself, and whoever wins it catches up.
    if (this.hints.size() === 0) await stores.projection.releaseLease(processId);
  }

  private inBackground(what: string, work: () => Promise<void>): void {
    const done = work()
      .catch((error: unknown) => this.deps.logger.warn(`${what} failed`, { reason: String(error) }))
      .finally(() => this.background.delete(done));
    this.background.add(done);
  }

  /** One archiving at a time; what closes meanwhile is taken by the next sweep. */
  private archiveSoon(): void {
    if (this.archiving || this.signal.aborted) return;
    this.archiving = true;
    this.inBackground('archiving', async () => {
      try {
        await archiveClosed(this.deps, this.signal);
      } finally {
        this.archiving = false;
      }
    });
  }

  private pause(ms: number): Promise<void> {
    const { signal } = this;
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
  private async caughtUp(runId: string): Promise<boolean> {
    try {
      await this.deps.log.catchUp(runId);
    } catch (error) {
      if (codeOf(error) === 'service_unavailable') return false;
      const reason = String(error);
      this.deps.logger.warn('an open run could not be caught up', { runId, reason });
    }
    return true;
  }

  private async catchUpUntilDone(runId: string): Promise<void> {
    while (!this.signal.aborted && !(await this.caughtUp(runId))) await this.pause(AWAY_PAUSE_MS);
  }

  private async catchUpOpenRuns(): Promise<void> {
    for (let after = ''; !this.signal.aborted;) {
      const runIds = await this.deps.stores.projection.openRuns(after, OPEN_PAGE);
      for (let at = 0; at < runIds.length && !this.signal.aborted; at += OPEN_CONCURRENCY) {
        const group = runIds.slice(at, at + OPEN_CONCURRENCY);
        await Promise.all(group.map((runId) => this.catchUpUntilDone(runId)));
        await this.pause(OPEN_PAUSE_MS);
      }
      const last = runIds.at(-1);
      if (last === undefined) return;
      after = last;
    }
  }

  private async keepLease(): Promise<void> {
    const { stores, processId, logger } = this.deps;
    await stores.projection.renewLease(processId, LEASE_TTL_MS);
    const dead = await stores.projection.takeExpiredLease();
    if (dead === undefined) return;
    logger.info('catching up for a process that is gone', { process: dead });
    await this.catchUpOpenRuns();
  }

  private remember(runId: string): void {
    this.knownEnded.add(runId);
    if (this.knownEnded.size <= MAX_KNOWN_ENDED) return;
    for (const oldest of this.knownEnded) {
      this.knownEnded.delete(oldest);
      return;
    }
  }

  private async sweep(startedMs: number): Promise<void> {
    const { stores, history } = this.deps;
    const watermark = (await stores.projection.sweepWatermark()) ?? startedMs;
    const { runIds, newestMs } = await history.closedSince(watermark - SWEEP_OVERLAP_MS);
    for (const runId of runIds) {
      if (this.signal.aborted) return;
      if (!this.knownEnded.has(runId)) await this.sweepRun(runId);
    }
    if (newestMs > watermark) await stores.projection.setSweepWatermark(newestMs);
    this.archiveSoon();
  }

  private async sweepRun(runId: string): Promise<void> {
    const { stores, log, logger } = this.deps;
    const head = await stores.log.head(runId);
    if (!head || head.closed) return this.remember(runId);
    try {
      await log.catchUp(runId);
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined || code === 'service_unavailable') throw error;
      logger.debug('an ended run could not be caught up', { runId, code });
    }
  }

  private async sweepForEver(startedMs: number): Promise<void> {
    while (!this.signal.aborted) {
      try {
        await this.sweep(startedMs);
      } catch (error) {
        this.deps.logger.debug('the sweep failed, trying again', { reason: String(error) });
      }
      await this.pause(this.deps.sweepEveryMs ?? SWEEP_EVERY_MS);
    }
  }
}

export function createProjector(deps: ProjectorDeps): Projector {
  return new RunProjector(deps);
}
