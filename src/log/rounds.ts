// Rounds over things that have nothing to do with each other (architecture §4): each has its turn by itself, and what
// cannot be read, decided or deleted is named and keeps none behind it waiting. What fails again and again has its turn
// less often. Only where Temporal or the database answers nobody does a round end: what is left has its turn in the next.
import { codeOf, type ErrorCode } from '../rules/errors.ts';
import { Outage, type OutageParts } from './outage.ts';
import { Deadline } from '../system/time.ts';

/** Things that are remembered as failing; of those above it, it is said once that there are more. */
const REMEMBERED = 10_000;
/** A thing that has not been tried for so many turns of all things is gone. */
const GONE_TURNS = 20 * REMEMBERED;
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

/** `answers` is asked when a turn ended in service_unavailable, which may be its own affair. */
export interface RoundsParts extends OutageParts {
  /** Whoever gives out the things gives out those that failed less often: none is passed over. Default false. */
  readonly isPaced?: boolean;
}

interface Failing {
  readonly code: ErrorCode;
  /** Turns between its last two tries. */
  readonly between: number;
  /** Of its last try. */
  readonly at: number;
  /** Turns that it is still passed over for. */
  left: number;
}

class TurnsByThemselves implements Rounds {
  readonly #parts: RoundsParts;
  readonly #failing = new Map<string, Failing>();
  readonly #outage: Outage;
  #isFull = false;
  /** Turns that ended so, and turns in all. */
  #aways = 0;
  #turns = 0;

  constructor(parts: RoundsParts) {
    this.#parts = parts;
    this.#outage = new Outage(parts);
  }

  async turn(turn: Turn, work: () => Promise<unknown>): Promise<TurnOutcome> {
    const name = JSON.stringify([turn.message, turn.fields]);
    const known = this.#failing.get(name);
    const { isPaced = false } = this.#parts;
    this.#turns++;
    if (!isPaced && known && known.left-- > 0) return { kind: 'passed' };
    const aways = this.#aways;
    try {
      await work();
      this.#failing.delete(name);
      // A turn in which another one ended so says nothing.
      if (this.#aways === aways) this.#outage.ended();
      return { kind: 'done' };
    } catch (error) {
      const code = codeOf(error) ?? 'internal_error';
      if (code === 'service_unavailable' && !(await this.#outage.isThere(turn.message))) {
        this.#aways++;
        return { kind: 'away' };
      }
      this.#note(turn, name, { code, reason: String(error) });
      return { kind: 'failed', error };
    }
  }

  #note({ message, fields }: Turn, name: string, fault: { code: ErrorCode; reason: string }): void {
    const { logger } = this.#parts;
    const known = this.#failing.get(name);
    if (!known && !this.#hasRoom()) {
      if (!this.#isFull) logger.warn('more things fail than can be named', { named: REMEMBERED });
      this.#isFull = true;
    } else if (known?.code !== fault.code) {
      this.#isFull = false;
      logger.warn(message, { ...fields, ...fault });
    }
    const between = known ? Math.min(2 * known.between + 1, MAX_PASSED) : 0;
    // At the end: the first is the one whose last try lies back furthest.
    this.#failing.delete(name);
    if (this.#failing.size < REMEMBERED)
      this.#failing.set(name, { code: fault.code, between, left: between, at: this.#turns });
  }

  /** What had no turn for long is gone by now: somebody else did it. */
  #hasRoom(): boolean {
    if (this.#failing.size < REMEMBERED) return true;
    const [first] = this.#failing;
    if (!first || this.#turns - first[1].at < GONE_TURNS) return false;
    return this.#failing.delete(first[0]);
  }
}

/** Of a round that begins now: it ends when it has taken so long, in ms. */
export function roundLimit(limitMs: number): { isOver(): boolean } {
  return new Deadline(limitMs);
}

export function createRounds(parts: RoundsParts): Rounds {
  return new TurnsByThemselves(parts);
}
