// Rounds over things that have nothing to do with each other (architecture §4): each has its turn by itself, and what
// cannot be read, decided or deleted is named and keeps none behind it waiting. What fails again and again has its turn
// less often. Only where Temporal or the database answers nobody does a round end: what is left has its turn in the next.
import { codeOf, type ErrorCode } from '../rules/errors.ts';
import type { Logger } from '../ports/logger.ts';
import { Deadline } from '../system/time.ts';

/** Things that are remembered as failing; of those above it, it is said once that there are more. */
const REMEMBERED = 10_000;
/** Turns that a thing is passed over for at most between two tries. */
const MAX_PASSED = 15;

export interface Turn {
  /** What it means that it failed, for the operator. */
  readonly message: string;
  /** Names the thing. */
  readonly fields: Readonly<Record<string, string>>;
}

/** `passed`: it failed before, and is not tried this time. `away`: one who is needed answers nobody. */
export type TurnOutcome =
  | { readonly kind: 'done' | 'passed' | 'away' }
  | { readonly kind: 'failed'; readonly error: unknown };

export interface Rounds {
  /** Never throws. What failed is told when it fails first, and when it fails otherwise. */
  turn(turn: Turn, work: () => Promise<unknown>): Promise<TurnOutcome>;
}

export interface RoundsParts {
  readonly logger: Logger;
  /**
   * Rejects where one who is needed answers nobody: asked when a turn ended in service_unavailable, which may be its own
   * affair.
   */
  readonly answers: () => Promise<unknown>;
}

interface Failing {
  readonly code: ErrorCode;
  /** Turns between its last two tries. */
  readonly between: number;
  /** Turns that it is still passed over for. */
  left: number;
}

class TurnsByThemselves implements Rounds {
  readonly #parts: RoundsParts;
  readonly #failing = new Map<string, Failing>();
  #isFull = false;
  #isAway = false;

  constructor(parts: RoundsParts) {
    this.#parts = parts;
  }

  async turn(turn: Turn, work: () => Promise<unknown>): Promise<TurnOutcome> {
    const name = JSON.stringify([turn.message, turn.fields]);
    const known = this.#failing.get(name);
    if (known && known.left-- > 0) return { kind: 'passed' };
    try {
      await work();
      this.#failing.delete(name);
      this.#isAway = false;
      return { kind: 'done' };
    } catch (error) {
      const code = codeOf(error) ?? 'internal_error';
      if (code === 'service_unavailable' && !(await this.#isThere(turn))) return { kind: 'away' };
      this.#note(turn, name, { code, reason: String(error) });
      return { kind: 'failed', error };
    }
  }

  async #isThere({ message }: Turn): Promise<boolean> {
    try {
      await this.#parts.answers();
      this.#isAway = false;
    } catch (error) {
      // Once for an outage, whatever has its turn then.
      if (!this.#isAway) this.#parts.logger.warn(message, { reason: String(error) });
      this.#isAway = true;
    }
    return !this.#isAway;
  }

  #note({ message, fields }: Turn, name: string, fault: { code: ErrorCode; reason: string }): void {
    const { logger } = this.#parts;
    const known = this.#failing.get(name);
    if (!known && this.#failing.size >= REMEMBERED) {
      if (!this.#isFull) logger.warn('more things fail than can be named', { named: REMEMBERED });
      this.#isFull = true;
      // Those that are gone by now make room: what still fails comes again.
      const [oldest] = this.#failing.keys();
      if (oldest !== undefined) this.#failing.delete(oldest);
    } else if (known?.code !== fault.code) {
      this.#isFull = false;
      logger.warn(message, { ...fields, ...fault });
    }
    const between = known ? Math.min(2 * known.between + 1, MAX_PASSED) : 0;
    // At the end: the oldest is the one whose last try lies back furthest.
    this.#failing.delete(name);
    this.#failing.set(name, { code: fault.code, between, left: between });
  }
}

/** Of a round that begins now: it ends when it has taken so long, in ms. */
export function roundLimit(limitMs: number): { isOver(): boolean } {
  return new Deadline(limitMs);
}

export function createRounds(parts: RoundsParts): Rounds {
  return new TurnsByThemselves(parts);
}
