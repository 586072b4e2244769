// When closed segments are archived (architecture §3.6): while the process has no log to write, so that the second
// reading of a history takes nothing from a run that is under way, and not much later than that in a process that never
// rests.
import type { Logger } from '../ports/logger.ts';
import { archiveClosed } from './archive.ts';
import type { LogParts } from './advance.ts';
import { rest } from '../system/time.ts';

/** A process without hints for so long, in ms, is idle. */
export const IDLE_MS = 2_000;
/** Longest time in ms that closed segments wait for that. */
const WAIT_LIMIT_MS = 60_000;
/**
 * Closed segments are looked for so often, in ms, also when none closed here: others leave them, and a crash does. With
 * WAIT_LIMIT_MS it bounds how long a history may lie unarchived: two minutes, or 34 after failures (a claim is held for
 * 32 at most). The shortest retention of a namespace that Temporal's server takes by default is a day, of a local one
 * an hour.
 */
const LOOK_EVERY_MS = 60_000;

export interface ArchiverParts extends LogParts {
  readonly logger: Logger;
  /** Nothing to write now, and nothing came for IDLE_MS. */
  readonly isIdle: () => boolean;
  readonly signal: AbortSignal;
  /** For tests; WAIT_LIMIT_MS when absent. */
  readonly waitLimitMs?: number;
}

export interface Archiver {
  /** A run closed. Returns at once. */
  note(): void;
  /** Looks at once for what is left, then again and again until the signal. */
  run(): Promise<void>;
}

class IdleArchiver implements Archiver {
  readonly #parts: ArchiverParts;
  #noted = true;
  #wake: (() => void) | undefined;

  constructor(parts: ArchiverParts) {
    this.#parts = parts;
  }

  note(): void {
    this.#noted = true;
    this.#wake?.();
  }

  async run(): Promise<void> {
    const { signal, logger } = this.#parts;
    while (!signal.aborted) {
      await this.#asked();
      this.#noted = false;
      const deadline = Date.now() + (this.#parts.waitLimitMs ?? WAIT_LIMIT_MS);
      try {
        await archiveClosed(this.#parts, signal, () => this.#idle(deadline));
      } catch (error) {
        logger.warn('archiving failed', { reason: String(error) });
      }
    }
  }

  /** A look that failed comes again with the next. */
  async #asked(): Promise<void> {
    if (this.#noted) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await rest(LOOK_EVERY_MS, AbortSignal.any([woken.signal, this.#parts.signal]));
    this.#wake = undefined;
  }

  async #idle(deadline: number): Promise<void> {
    const { isIdle, signal } = this.#parts;
    for (let left = 1; left > 0 && !signal.aborted && !isIdle();) {
      left = deadline - Date.now();
      if (left > 0) await rest(Math.min(left, IDLE_MS), signal);
    }
  }
}

export function createArchiver(parts: ArchiverParts): Archiver {
  return new IdleArchiver(parts);
}
