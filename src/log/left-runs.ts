// Runs whose catch-up failed: each is tried again by itself, in rounds at a growing pace, so that none holds up the
// others and none is forgotten (architecture §3.4).
import { codeOf } from '../rules/errors.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Logger } from '../ports/logger.ts';
import { BackOff, rest } from '../system/time.ts';
import type { OwnFaults } from './own-faults.ts';

/** Rest before a round in ms, doubled after one in which no run was caught up. */
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 30_000;
/** Runs of a round that are tried at once. */
const CONCURRENCY = 4;
/** Tries of a run that fails by its own fault. None is counted that ended in service_unavailable: each next one may work. */
const MAX_TRIES = 20;
/** Runs kept; for those that come when it is full, all open runs are gone through again. */
const MAX_RUNS = 10_000;

export interface LeftRuns {
  /**
   * One try now; a run that fails is kept for the rounds. False when Temporal or the database answers nobody. Never
   * throws.
   */
  catchUp(run: RunRef): Promise<boolean>;
  /** Resolves when no round is under way any more, after the signal. */
  stopped(): Promise<void>;
}

export interface LeftRunsParts {
  readonly catchUp: (run: RunRef) => Promise<unknown>;
  readonly ownFaults: Pick<OwnFaults, 'isOwn'>;
  readonly signal: AbortSignal;
  readonly logger: Logger;
  /** Called at the end of the rounds when there were more runs than are kept. */
  readonly passAgain: () => void;
  /** For tests; FIRST_PAUSE_MS when absent. */
  readonly firstPauseMs?: number;
}

class RunsInRounds implements LeftRuns {
  readonly #parts: LeftRunsParts;
  /** By runId; the tries that failed by the run's own fault. */
  readonly #left = new Map<string, { readonly run: RunRef; readonly tries: number }>();
  #rounds: Promise<void> | undefined;
  #overflowed = false;

  constructor(parts: LeftRunsParts) {
    this.#parts = parts;
  }

  async catchUp(run: RunRef): Promise<boolean> {
    const outcome = await this.#tried(run);
    if (this.#left.size > 0) {
      this.#rounds ??= this.#goRounds().finally(() => {
        this.#rounds = undefined;
      });
    }
    return outcome !== 'away';
  }

  async stopped(): Promise<void> {
    await this.#rounds;
  }

  /** The run's own problem is noted by the catch-up. */
  async #tried(run: RunRef): Promise<'done' | 'away' | 'failed'> {
    try {
      await this.#parts.catchUp(run);
      this.#left.delete(run.runId);
      return 'done';
    } catch (error) {
      const isOutage = codeOf(error) === 'service_unavailable';
      const tries = this.#left.get(run.runId)?.tries ?? 0;
      this.#keep(run, tries + (isOutage ? 0 : 1), error);
      const { ownFaults } = this.#parts;
      return isOutage && !(await ownFaults.isOwn(run, error)) ? 'away' : 'failed';
    }
  }

  #keep(run: RunRef, tries: number, error: unknown): void {
    const { runId } = run;
    const { logger } = this.#parts;
    const fields = { runId, code: codeOf(error), reason: String(error) };
    if (tries >= MAX_TRIES) {
      this.#left.delete(runId);
      logger.error('a run is not caught up any more until something asks for it', fields);
    } else if (this.#left.has(runId) || this.#left.size < MAX_RUNS) {
      if (tries === 1) logger.warn('a run could not be caught up, trying again', fields);
      this.#left.set(runId, { run, tries });
    } else this.#overflowed = true;
  }

  async #goRounds(): Promise<void> {
    const { signal, passAgain, firstPauseMs = FIRST_PAUSE_MS } = this.#parts;
    const backOff = new BackOff(firstPauseMs, MAX_PAUSE_MS);
    while (this.#left.size > 0 && !signal.aborted) {
      await rest(backOff.next(), signal);
      if (await this.#round()) backOff.reset();
    }
    if (!this.#overflowed || signal.aborted) return;
    this.#overflowed = false;
    passAgain();
  }

  /** True when a run was caught up. */
  async #round(): Promise<boolean> {
    const runs = [...this.#left.values()];
    let worked = false;
    for (let at = 0; at < runs.length && !this.#parts.signal.aborted; at += CONCURRENCY) {
      const group = runs.slice(at, at + CONCURRENCY);
      const done = await Promise.all(group.map(({ run }) => this.#tried(run)));
      worked ||= done.includes('done');
    }
    return worked;
  }
}

export function createLeftRuns(parts: LeftRunsParts): LeftRuns {
  return new RunsInRounds(parts);
}
