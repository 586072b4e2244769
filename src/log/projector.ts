// The projector (architecture §3.4): keeps logs up to their histories without polling runs. Hints drive it; a lease per
// process and a sweep make sure that neither a lost hint nor an end that no worker saw hides a run.
import type { HistoryReader } from '../ports/history.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Logger } from '../ports/logger.ts';
import type { Stores } from '../ports/stores.ts';
import { createArchiver, IDLE_MS, type Archiver } from './archiver.ts';
import { createHintQueue, type HintQueue } from './hints.ts';
import { createLeftRuns, type LeftRuns } from './left-runs.ts';
import type { Log } from './log.ts';
import { rest } from '../system/time.ts';

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
/** While Temporal or the database is away: tries of one such group, and the rest after the first, doubled each time. */
const AWAY_TRIES = 5;
const AWAY_PAUSE_MS = 1_000;
/** Windows of closed runs that one sweep reads at most; the watermark moves with each. */
const MAX_WINDOWS = 1_000;
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
  /** For tests: rest before a run whose catch-up failed is tried again. */
  readonly retryPauseMs?: number;
}

/** A run as Temporal names it, in the place of its tenant. */
type NamedRun = Pick<RunRef, 'tenant' | 'runId'>;

export interface Projector {
  /** From the workflow sink: the segment's history will be longer than `historyLength`. Returns at once. */
  hint(named: NamedRun, temporalRunId: string, historyLength: number, terminal: boolean): void;
  /** Takes the lease, begins to catch up every open run and to sweep. */
  start(): Promise<void>;
  /** Does what is hinted, then gives the lease back. */
  stop(): Promise<void>;
}

class RunProjector implements Projector {
  readonly #deps: ProjectorDeps;
  readonly #stopping = new AbortController();
  readonly #signal = this.#stopping.signal;
  readonly #knownEnded = new Set<string>();
  readonly #background = new Set<Promise<void>>();
  readonly #hints: HintQueue;
  readonly #left: LeftRuns;
  readonly #archiver: Archiver;
  #hintedMs = Date.now();
  #lease: NodeJS.Timeout | undefined;

  constructor(deps: ProjectorDeps) {
    this.#deps = deps;
    this.#hints = createHintQueue({
      advance: (run, goal) => deps.log.advance(run, goal),
      watched: (runs) => deps.stores.projection.watched(runs),
      onReached: ({ head }) => {
        if (head.closed) this.#archiver.note();
      },
      logger: deps.logger,
    });
    this.#left = createLeftRuns({
      catchUp: (run) => deps.log.catchUp(run),
      signal: this.#signal,
      logger: deps.logger,
      passAgain: () => this.#inBackground('catching up open runs', () => this.#catchUpOpenRuns()),
      firstPauseMs: deps.retryPauseMs,
    });
    this.#archiver = createArchiver({
      ...deps,
      signal: this.#signal,
      isIdle: () => this.#hints.size() === 0 && Date.now() - this.#hintedMs >= IDLE_MS,
    });
  }

  hint({ tenant, runId }: NamedRun, temporalRunId: string, historyLength: number): void {
    this.#hintedMs = Date.now();
    const run = this.#deps.stores.runs.ref(tenant, runId);
    this.#hints.add({ run, temporalRunId, historyLength });
  }

  async start(): Promise<void> {
    const { stores, processId } = this.#deps;
    await stores.projection.renewLease(processId, LEASE_TTL_MS);
    this.#inBackground('catching up open runs', () => this.#catchUpOpenRuns());
    this.#inBackground('sweeping', () => this.#sweepForEver(Date.now()));
    this.#inBackground('archiving', () => this.#archiver.run());
    const renew = () => this.#inBackground('the lease', () => this.#keepLease());
    this.#lease = setInterval(renew, LEASE_RENEW_MS);
  }

  async stop(): Promise<void> {
    const { stores, processId } = this.#deps;
    this.#stopping.abort();
    clearInterval(this.#lease);
    await this.#hints.stop();
    await this.#left.stopped();
    await Promise.all(this.#background);
    // With something left undone the lease runs out by itself, and whoever wins it catches up.
    if (this.#hints.size() === 0) await stores.projection.releaseLease(processId);
  }

  #inBackground(what: string, work: () => Promise<void>): void {
    const done = work()
      .catch((error: unknown) =>
        this.#deps.logger.warn(`${what} failed`, { reason: String(error) }),
      )
      .finally(() => this.#background.delete(done));
    this.#background.add(done);
  }

  /** While nothing answers for any of them, the pass rests here instead of failing through all runs. */
  async #catchUpGroup(runs: readonly RunRef[]): Promise<void> {
    const firstPauseMs = this.#deps.retryPauseMs ?? AWAY_PAUSE_MS;
    for (let tries = 1; !this.#signal.aborted; tries++) {
      const answered = await Promise.all(runs.map((run) => this.#left.catchUp(run)));
      if (answered.includes(true) || tries >= AWAY_TRIES) return;
      await rest(firstPauseMs * 2 ** (tries - 1), this.#signal);
    }
  }

  async #catchUpOpenRuns(): Promise<void> {
    for (let after = ''; !this.#signal.aborted;) {
      const runs = await this.#deps.stores.projection.openRuns(after, OPEN_PAGE);
      for (let at = 0; at < runs.length && !this.#signal.aborted; at += OPEN_CONCURRENCY) {
        const group = runs.slice(at, at + OPEN_CONCURRENCY);
        await this.#catchUpGroup(group);
        await rest(OPEN_PAUSE_MS, this.#signal);
      }
      const last = runs.at(-1);
      if (last === undefined) return;
      this.#archiver.note();
      after = last.runId;
    }
  }

  async #keepLease(): Promise<void> {
    const { stores, processId, logger } = this.#deps;
    await stores.projection.renewLease(processId, LEASE_TTL_MS);
    const dead = await stores.projection.takeExpiredLease();
    if (dead === undefined) return;
    logger.info('catching up for a process that is gone', { process: dead });
    await this.#catchUpOpenRuns();
  }

  #remember(runId: string): void {
    this.#knownEnded.add(runId);
    if (this.#knownEnded.size <= MAX_KNOWN_ENDED) return;
    for (const oldest of this.#knownEnded) {
      this.#knownEnded.delete(oldest);
      return;
    }
  }

  async #sweep(startedMs: number): Promise<void> {
    const { stores, history } = this.#deps;
    const watermark = (await stores.projection.sweepWatermark()) ?? startedMs;
    let since: number | undefined = watermark - SWEEP_OVERLAP_MS;
    for (let windows = 0; since !== undefined && windows < MAX_WINDOWS; windows++) {
      const { runIds, newestMs, moreAfterMs } = await history.closedSince(since);
      await this.#sweepRuns(runIds.filter((runId) => !this.#knownEnded.has(runId)));
      if (this.#signal.aborted) return;
      if (newestMs > watermark) await stores.projection.setSweepWatermark(newestMs);
      since = moreAfterMs;
    }
  }

  /** A run that fails, whatever the reason, is left to itself: the sweep goes on to the next. */
  async #sweepRuns(runIds: readonly string[]): Promise<void> {
    if (runIds.length === 0) return;
    const open = await this.#deps.stores.projection.stillOpen(runIds);
    const openIds = new Set(open.map(({ runId }) => runId));
    for (const runId of runIds) if (!openIds.has(runId)) this.#remember(runId);
    for (const run of open) {
      if (this.#signal.aborted) return;
      await this.#left.catchUp(run);
      this.#archiver.note();
    }
  }

  async #sweepForEver(startedMs: number): Promise<void> {
    while (!this.#signal.aborted) {
      try {
        await this.#sweep(startedMs);
      } catch (error) {
        this.#deps.logger.debug('the sweep failed, trying again', { reason: String(error) });
      }
      await rest(this.#deps.sweepEveryMs ?? SWEEP_EVERY_MS, this.#signal);
    }
  }
}

export function createProjector(deps: ProjectorDeps): Projector {
  return new RunProjector(deps);
}
