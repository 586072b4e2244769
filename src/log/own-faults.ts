// Runs that cannot be caught up though Temporal and the database answer others (architecture §3.4, I97): the damage of one
// history, or below one log, looks like an outage. It is named; the run is tried again all the same.
import { codeOf } from '../rules/errors.ts';
import type { RunRef } from '../ports/runs.ts';
import { Outage, type OutageParts } from './outage.ts';

/** Tries that fail so, one after the other, before it is the run's problem: a short outage may be over when it is asked about. */
const NOTED_TRIES = 3;
/** Runs that are counted at once; further ones are named when there is room. */
const MAX_RUNS = 10_000;

export interface OwnFaults {
  /** Of a try that ended in service_unavailable: whether those who are needed answer, so that it is the run's. Never throws. */
  isOwn(run: RunRef, error: unknown): Promise<boolean>;
  /** A try of the run did not end so. */
  passed(run: RunRef): void;
}

export interface OwnFaultsParts extends OutageParts {
  readonly noteProblem: (run: RunRef, code: string) => Promise<void>;
}

class CountedFaults implements OwnFaults {
  readonly #parts: OwnFaultsParts;
  /** By runId. */
  readonly #tries = new Map<string, number>();
  readonly #outage: Outage;
  #asked: Promise<boolean> | undefined;

  constructor(parts: OwnFaultsParts) {
    this.#parts = parts;
    this.#outage = new Outage(parts);
  }

  async isOwn(run: RunRef, error: unknown): Promise<boolean> {
    // One question for all that fail at once.
    this.#asked ??= this.#isThere().finally(() => {
      this.#asked = undefined;
    });
    if (!(await this.#asked)) return false;
    await this.#count(run, error);
    return true;
  }

  passed({ runId }: RunRef): void {
    this.#tries.delete(runId);
  }

  async #isThere(): Promise<boolean> {
    const isThere = await this.#outage.isThere('runs are not caught up, trying again');
    if (isThere) this.#outage.ended();
    return isThere;
  }

  async #count(run: RunRef, error: unknown): Promise<void> {
    const { logger, noteProblem } = this.#parts;
    const { runId } = run;
    const tries = (this.#tries.get(runId) ?? 0) + 1;
    if (tries === 1 && this.#tries.size >= MAX_RUNS) return;
    this.#tries.set(runId, tries);
    const code = codeOf(error) ?? 'internal_error';
    const fields = { runId, code, reason: String(error) };
    if (tries === 1) logger.warn('a run could not be caught up, trying again', fields);
    if (tries !== NOTED_TRIES) return;
    logger.error('the projection of a run stopped', fields);
    await noteProblem(run, code).catch((cause: unknown) => {
      // Its row may be what is damaged. The log names it.
      logger.warn('the problem of a run is not noted', { runId, reason: String(cause) });
    });
  }
}

export function createOwnFaults(parts: OwnFaultsParts): OwnFaults {
  return new CountedFaults(parts);
}
