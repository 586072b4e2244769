// Expiry of runs (architecture §3.7). Any number of processes do so at once: what is due is claimed, a family leaves the
// registry in one transaction, and what is left of it is deleted piece by piece, each of which may be done again. A process
// that dies leaves the rest to the next.
//
// | it dies …                        | the run                       | goes on                               |
// |----------------------------------|-------------------------------|---------------------------------------|
// | before the family has expired    | is there, whole               | when the claim ends (LEASE_MS)        |
// | behind that                      | is 410, and found by nobody   | when its time to be cleaned has come  |
// | among rows, histories, content   | as before; some of it is gone | when the claim ends, with what is left |
import type { RunEngine } from '../ports/engine.ts';
import type { HistoryRemover } from '../ports/history.ts';
import type { Logger } from '../ports/logger.ts';
import type { ExpireOutcome } from '../ports/retention.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import { rest } from '../system/time.ts';
import { createRounds, type Rounds } from './rounds.ts';

/** Time between two rounds in ms; none where a round left something to do. */
const ROUND_EVERY_MS = 15_000;
/** A claim whose process died may be taken again after this, in ms: longer than a family takes. */
const LEASE_MS = 180_000;
/** Runs that are claimed at once: to expire, and to be cleaned. */
const CLAIMED_RUNS = 20;
/** A run that stays, for a hold, a fork or a relative of its own, is looked at again after this, in ms. */
const LOOK_AGAIN_MS = 3_600_000;
/** Nothing of an expired run is deleted for so long, in ms: who was reading it reads to the end. */
const READERS_REST_MS = 600_000;
/** Rows of one statement, and values of one sweep. */
const PIECE_ROWS = 1_000;
const SWEPT_VALUES = 100;
/** What is left to say of an expired run is said for so long, in ms: a year. Then nobody knows it. */
const ENTRY_KEPT_MS = 365 * 24 * 3_600_000;

export interface ExpirerParts {
  readonly stores: Pick<Stores, 'retention' | 'content' | 'cohorts' | 'ping'>;
  readonly histories: HistoryRemover;
  readonly engine: Pick<RunEngine, 'ping'>;
  readonly logger: Logger;
  /** Runs are kept for so long behind their end, in ms; absent: for ever. What has expired is cleaned all the same. */
  readonly keptMs?: number;
  /** For tests; READERS_REST_MS when absent. */
  readonly restMs?: number;
  /** For tests; ROUND_EVERY_MS when absent. */
  readonly roundMs?: number;
}

export interface Expirer {
  start(): void;
  /** Ends behind the piece that is under way. */
  stop(): Promise<void>;
  /** One round; true: there may be more to do at once. For tests, too. */
  round(): Promise<boolean>;
}

/** One run's family, now or not at all. */
export function expireRun(
  {
    stores,
    keptMs = 0,
    restMs = READERS_REST_MS,
  }: Pick<ExpirerParts, 'keptMs' | 'restMs'> & { readonly stores: Pick<Stores, 'retention'> },
  run: RunRef,
): Promise<ExpireOutcome> {
  return stores.retention.expire(run, { keptMs, restMs });
}

class RoundsOfExpiry implements Expirer {
  readonly #parts: ExpirerParts;
  readonly #stopping = new AbortController();
  readonly #signal = this.#stopping.signal;
  readonly #rounds: Rounds;
  /** What needs Temporal, too. */
  readonly #cleaning: Rounds;
  #running: Promise<void> | undefined;

  constructor(parts: ExpirerParts) {
    this.#parts = parts;
    const { stores, engine, logger } = parts;
    this.#rounds = createRounds({ logger, answers: () => stores.ping(), isPaced: true });
    const answers = () => Promise.all([stores.ping(), engine.ping()]);
    this.#cleaning = createRounds({ logger, answers, isPaced: true });
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { roundMs = ROUND_EVERY_MS } = this.#parts;
    while (!this.#signal.aborted) {
      // Not at once: a process that starts has better things to do.
      await rest(roundMs, this.#signal);
      while (!this.#signal.aborted && (await this.round()));
    }
  }

  /** Each part has its turn, whatever becomes of those before it. */
  async round(): Promise<boolean> {
    const { retention, content } = this.#parts.stores;
    const parts: Readonly<Record<string, () => Promise<boolean>>> = {
      'runs cannot expire now': () => this.#expireDue(),
      'cohorts cannot expire now': () => this.#expireCohorts(),
      'what is left of expired runs stays for now': () => this.#cleanSome(),
      'content that nobody needs stays for now': async () =>
        (await content.sweep(SWEPT_VALUES)) >= SWEPT_VALUES,
      'entries of expired runs stay for now': async () =>
        (await retention.forget(ENTRY_KEPT_MS, PIECE_ROWS)) >= PIECE_ROWS,
    };
    let isFull = false;
    for (const [message, part] of Object.entries(parts)) {
      if (this.#signal.aborted) return false;
      await this.#rounds.turn({ message, fields: {} }, async () => {
        isFull = (await part()) || isFull;
      });
    }
    return isFull;
  }

  /** One that fails keeps none behind it waiting. */
  async #expireDue(): Promise<boolean> {
    const { stores, keptMs, logger } = this.#parts;
    if (keptMs === undefined) return false;
    const due = await stores.retention.due(keptMs, CLAIMED_RUNS, LEASE_MS);
    for (const run of due) {
      if (this.#signal.aborted) return false;
      const { runId } = run;
      const turn = { message: 'a run that is due stays for now', fields: { runId } };
      const { kind } = await this.#rounds.turn(turn, async () => {
        const outcome = await expireRun(this.#parts, run);
        if (outcome.kind === 'kept') await stores.retention.lookAgain(run, LOOK_AGAIN_MS);
        if (outcome.kind === 'expired')
          logger.info('runs have expired', { runId, runs: outcome.runs.length });
      });
      // Nobody answers: the claims end, and somebody tries again.
      if (kind === 'away') return false;
      if (kind === 'failed') await stores.retention.lookAgain(run, LOOK_AGAIN_MS);
    }
    return due.length >= CLAIMED_RUNS;
  }

  /** Behind the last of their forks. */
  async #expireCohorts(): Promise<boolean> {
    const { stores, keptMs, logger } = this.#parts;
    if (keptMs === undefined || this.#signal.aborted) return false;
    const cohorts = await stores.cohorts.expire(keptMs, CLAIMED_RUNS);
    if (cohorts > 0) logger.info('cohorts have expired', { cohorts });
    return cohorts >= CLAIMED_RUNS;
  }

  /** One that fails keeps none behind it waiting. */
  async #cleanSome(): Promise<boolean> {
    const { retention } = this.#parts.stores;
    const unclean = await retention.claimUnclean(CLAIMED_RUNS, LEASE_MS);
    for (const run of unclean) {
      if (this.#signal.aborted) return false;
      const { runId } = run;
      const turn = { message: 'what is left of an expired run stays for now', fields: { runId } };
      // Nobody answers: the claims end, and somebody tries again.
      if ((await this.#cleaning.turn(turn, () => this.#clean(run))).kind === 'away') return false;
    }
    return unclean.length >= CLAIMED_RUNS;
  }

  async #clean(run: RunRef): Promise<void> {
    const { stores, histories } = this.#parts;
    const executions = await stores.retention.executionsOf(run);
    for (const temporalRunId of executions) await histories.remove(run.runId, temporalRunId);
    while (!(await stores.retention.clean(run, PIECE_ROWS))) if (this.#signal.aborted) return;
    await stores.retention.markClean(run);
  }
}

export function createExpirer(parts: ExpirerParts): Expirer {
  return new RoundsOfExpiry(parts);
}
