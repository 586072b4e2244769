// The projector (architecture §3.4): keeps logs up to their histories without polling runs. Hints drive it; a lease per
// process makes sure that no lost hint hides a run.
import { codeOf } from '../rules/errors.ts';
import type { Head } from '../ports/log.ts';
import type { TakenLease } from '../ports/projection.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Logger } from '../ports/logger.ts';
import type { Stores } from '../ports/stores.ts';
import type { Advanced, Goal } from './advance.ts';
import { coalesce } from './coalesce.ts';
import { createHintQueue, type HintQueue } from './hints.ts';
import { createLeftRuns, type LeftRuns } from './left-runs.ts';
import type { Log } from './log.ts';
import { createOwnFaults, type OwnFaults, type OwnFaultsParts } from './own-faults.ts';
import { BackOff, rest } from '../system/time.ts';

/** A process that did not renew for so long, in ms, is taken for dead; it renews three times in that time. */
const LEASE_TTL_MS = 15_000;
const LEASE_RENEW_MS = 5_000;
/** Runs per page when every open run is caught up, how many of them at once, and the rest between such groups. */
const OPEN_PAGE = 100;
/** From the end of a pass after the database was away to the next one for that reason, in ms. */
const LOST_PASS_PAUSE_MS = 60_000;
const OPEN_CONCURRENCY = 4;
const OPEN_PAUSE_MS = 40;
/** While Temporal or the database is away: tries of one such group, and the rest after the first, doubled each time. */
const AWAY_TRIES = 5;
const AWAY_PAUSE_MS = 1_000;
const MAX_AWAY_PAUSE_MS = 8_000;

export interface ProjectorDeps {
  readonly log: Log;
  readonly stores: Stores;
  readonly logger: Logger;
  readonly processId: string;
  /** Rejects where Temporal or the database answers nobody: what fails then is no run's own fault. */
  readonly answers: () => Promise<unknown>;
  /** For tests: rest before a run whose catch-up failed is tried again. */
  readonly retryPauseMs?: number;
  /** For tests; LEASE_RENEW_MS when absent. */
  readonly renewMs?: number;
}

/** A run as Temporal names it, in the place of its tenant. */
type NamedRun = Pick<RunRef, 'tenant' | 'runId'>;

export interface Projector {
  /** From the workflow sink: the segment's history will be longer than `historyLength`. Returns at once. */
  hint(named: NamedRun, temporalRunId: string, historyLength: number, terminal: boolean): void;
  /** One catch-up now; a run that fails is tried again, at a growing pace. Never throws. */
  catchUp(run: RunRef): Promise<void>;
  /** Time in ms since the last hint; 0 while there is one whose work is not done. */
  quietMs(): number;
  /** Calls back behind each catch-up here that found a run's log closed. */
  onClosed(listener: () => void): void;
  /** Takes the lease and begins to catch up every open run. */
  start(): Promise<void>;
  /** Does what is hinted, then gives the lease back. */
  stop(): Promise<void>;
}

/** For a process that did not renew its lease; without one it is back, or another process has won it. */
interface Pass {
  lease: TakenLease | undefined;
}

class RunProjector implements Projector {
  readonly #deps: ProjectorDeps;
  readonly #stopping = new AbortController();
  readonly #signal = this.#stopping.signal;
  readonly #onClosed = new Set<() => void>();
  readonly #background = new Set<Promise<void>>();
  readonly #hints: HintQueue;
  readonly #left: LeftRuns;
  readonly #ownFaults: OwnFaults;
  readonly #passes = coalesce(
    () => this.#catchUpOpenRuns(),
    (of: 'all') => of,
  );
  /** Each pass asks Temporal about every open run: a connection that breaks again and again has no more than one in this time. */
  readonly #lostPasses = coalesce(
    async (of: 'all') => {
      await this.#passes(of);
      await rest(LOST_PASS_PAUSE_MS, this.#signal);
    },
    (of) => of,
  );
  #isStarted = false;
  #hintedAtMs = performance.now();
  readonly #unsubscribe: readonly (() => void)[];
  #lease: NodeJS.Timeout | undefined;
  /** Whose runs are being caught up: one at a time. */
  #pass: Pass | undefined;

  constructor(deps: ProjectorDeps) {
    this.#deps = deps;
    const { answers, logger } = deps;
    const noteProblem: OwnFaultsParts['noteProblem'] = (...at) => deps.stores.log.setProblem(...at);
    this.#ownFaults = createOwnFaults({ answers, logger, noteProblem });
    const { projection, log } = deps.stores;
    this.#unsubscribe = [
      projection.onWatch((runId) => this.#hints.wanted(runId)),
      // A database that failed over may have lost what was projected last: its hints are done, and nobody gives them again.
      log.onReconnect(() => this.#passAgain(this.#lostPasses)),
    ];
    this.#hints = createHintQueue({
      advance: (run, goal) => this.#advance(run, goal),
      watched: (runs) => deps.stores.projection.watched(runs),
      onReached: ({ head }) => this.#noteHead(head),
      logger: deps.logger,
    });
    this.#left = createLeftRuns({
      catchUp: async (run) => {
        const head = await deps.log.catchUp(run);
        this.#ownFaults.passed(run);
        this.#noteHead(head);
      },
      ownFaults: this.#ownFaults,
      signal: this.#signal,
      logger: deps.logger,
      passAgain: () => this.#passAgain(),
      firstPauseMs: deps.retryPauseMs,
    });
  }

  hint(...hinted: Parameters<Projector['hint']>): void {
    const [{ tenant, runId }, temporalRunId, historyLength, terminal] = hinted;
    this.#hintedAtMs = performance.now();
    const run = this.#deps.stores.runs.ref(tenant, runId);
    this.#hints.add({ run, temporalRunId, historyLength, terminal });
  }

  async catchUp(run: RunRef): Promise<void> {
    await this.#left.catchUp(run);
  }

  quietMs(): number {
    return this.#hints.size() > 0 ? 0 : performance.now() - this.#hintedAtMs;
  }

  onClosed(listener: () => void): void {
    this.#onClosed.add(listener);
  }

  async start(): Promise<void> {
    const { stores, processId } = this.#deps;
    await stores.projection.renewLease(processId, LEASE_TTL_MS);
    this.#isStarted = true;
    this.#passAgain();
    const renew = () => this.#inBackground('the lease', () => this.#keepLease());
    this.#lease = setInterval(renew, this.#deps.renewMs ?? LEASE_RENEW_MS);
  }

  async stop(): Promise<void> {
    const { stores, processId } = this.#deps;
    this.#stopping.abort();
    clearInterval(this.#lease);
    this.#unsubscribe.forEach((stop) => stop());
    await this.#hints.stop();
    await this.#left.stopped();
    await Promise.all(this.#background);
    // With something left undone the lease runs out by itself, and whoever wins it catches up.
    if (this.#hints.size() === 0) await stores.projection.releaseLease(processId);
  }

  async #advance(run: RunRef, goal: Goal): Promise<Advanced> {
    try {
      const advanced = await this.#deps.log.advance(run, goal);
      this.#ownFaults.passed(run);
      return advanced;
    } catch (error) {
      if (codeOf(error) === 'service_unavailable') await this.#ownFaults.isOwn(run, error);
      throw error;
    }
  }

  #noteHead({ closed }: Head): void {
    if (closed) for (const listener of this.#onClosed) listener();
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
    const backOff = new BackOff(this.#deps.retryPauseMs ?? AWAY_PAUSE_MS, MAX_AWAY_PAUSE_MS);
    for (let tries = 1; !this.#signal.aborted; tries++) {
      const answered = await Promise.all(runs.map((run) => this.#left.catchUp(run)));
      if (answered.includes(true) || tries >= AWAY_TRIES) return;
      await rest(backOff.next(), this.#signal);
    }
  }

  /** All open runs, after a pass that is under way: one more, however often this is asked meanwhile. */
  #passAgain(passes = this.#passes): void {
    if (this.#isStarted && !this.#signal.aborted)
      this.#inBackground('catching up open runs', () => passes('all'));
  }

  async #catchUpOpenRuns(): Promise<void> {
    for (let after = ''; !this.#signal.aborted;) {
      const runs = await this.#openRuns(after);
      for (let at = 0; at < runs.length && !this.#signal.aborted; at += OPEN_CONCURRENCY) {
        const group = runs.slice(at, at + OPEN_CONCURRENCY);
        await this.#catchUpGroup(group);
        await rest(OPEN_PAUSE_MS, this.#signal);
      }
      const last = runs.at(-1);
      if (last === undefined) return;
      after = last.runId;
    }
  }

  /** One page, asked for until the database answers: nobody else begins the pass again. Empty once this stops. */
  async #openRuns(after: string): Promise<readonly RunRef[]> {
    const { stores, logger, retryPauseMs = AWAY_PAUSE_MS } = this.#deps;
    const backOff = new BackOff(retryPauseMs, MAX_AWAY_PAUSE_MS);
    while (!this.#signal.aborted) {
      try {
        return await stores.projection.openRuns(after, OPEN_PAGE);
      } catch (error) {
        logger.warn('open runs cannot be listed, trying again', { reason: String(error) });
      }
      await rest(backOff.next(), this.#signal);
    }
    return [];
  }

  async #keepLease(): Promise<void> {
    const { stores, processId, logger } = this.#deps;
    await stores.projection.renewLease(processId, LEASE_TTL_MS);
    const current = this.#pass;
    if (current) {
      // A process that only stalled has its lease back: it is not renewed for it, nor released.
      if (current.lease)
        current.lease = await stores.projection.renewTaken(current.lease, LEASE_TTL_MS);
      return;
    }
    const taken = await stores.projection.takeExpiredLease(LEASE_TTL_MS);
    if (taken === undefined) return;
    logger.info('catching up for a process that is gone', { process: taken.holder });
    const pass: Pass = { lease: taken };
    this.#pass = pass;
    try {
      await this.#catchUpOpenRuns();
      // Until then it is somebody's to win if this process dies, too.
      if (!this.#signal.aborted && pass.lease) await stores.projection.releaseTaken(pass.lease);
    } finally {
      this.#pass = undefined;
    }
  }
}

export function createProjector(deps: ProjectorDeps): Projector {
  return new RunProjector(deps);
}
