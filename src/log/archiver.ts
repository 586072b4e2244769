// When closed segments are archived (architecture §3.6): while the process has no log to write, so that the second
// reading of a history takes nothing from a run that is under way, and not much later than that in a process that never
// rests.
import type { Logger } from '../ports/logger.ts';
import { archiveClosed } from './archive.ts';
import type { LogParts } from './pages.ts';
import { Bell, Deadline, rest } from '../system/time.ts';

/** A process without hints for so long, in ms, is idle. */
const IDLE_MS = 2_000;
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
  /** Time in ms since the process last had a log to write; 0 while it has one. */
  readonly quietMs: () => number;
  /** For tests; WAIT_LIMIT_MS when absent. */
  readonly waitLimitMs?: number;
}

export interface Archiver {
  /** Looks at once for what is left, then again and again. */
  start(): void;
  /** A run closed. Returns at once. */
  note(): void;
  /** What was read is stored; the rest is left for others. */
  stop(): Promise<void>;
}

class IdleArchiver implements Archiver {
  readonly #parts: ArchiverParts;
  readonly #noted = new Bell();
  readonly #stopping = new AbortController();
  readonly #signal = this.#stopping.signal;
  #running: Promise<void> | undefined;

  constructor(parts: ArchiverParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#noted.ring();
    this.#running ??= this.#run();
  }

  note(): void {
    this.#noted.ring();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  /** A look that failed comes again with the next. */
  async #run(): Promise<void> {
    const { logger, waitLimitMs = WAIT_LIMIT_MS } = this.#parts;
    while (!this.#signal.aborted) {
      await this.#noted.rung(this.#signal, LOOK_EVERY_MS);
      const limit = new Deadline(waitLimitMs);
      try {
        await archiveClosed(this.#parts, this.#signal, () => this.#idle(limit));
      } catch (error) {
        logger.warn('archiving failed', { reason: String(error) });
      }
    }
  }

  async #idle(limit: Deadline): Promise<void> {
    while (!this.#signal.aborted && !limit.isOver()) {
      const toIdleMs = IDLE_MS - this.#parts.quietMs();
      if (toIdleMs <= 0) return;
      await rest(Math.min(limit.leftMs(), toIdleMs), this.#signal);
    }
  }
}

export function createArchiver(parts: ArchiverParts): Archiver {
  return new IdleArchiver(parts);
}
