// Rounds over things that have nothing to do with each other (architecture §3.4): each has its turn by itself, and what
// cannot be read, decided or deleted is named and keeps none behind it waiting. Only where nobody answers at all does a
// round end: what is left has its turn in the next one.
import { codeOf } from '../rules/errors.ts';
import type { Logger } from '../ports/logger.ts';

/** Things whose fault is remembered as told: while they fail they are not named again. */
const TOLD = 1_000;

export interface Turn {
  /** What it means that it failed, for the operator. Of one name there is one message at a time. */
  readonly message: string;
  /** Names the thing. */
  readonly fields: Readonly<Record<string, string>>;
}

/** `away`: nobody answers, whatever is asked for. */
export type TurnOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'away' };

export interface Rounds {
  /** Never throws. */
  turn(turn: Turn, work: () => Promise<unknown>): Promise<TurnOutcome>;
}

export interface RoundsParts {
  readonly logger: Logger;
  /** Rejects where nobody answers: asked when a turn ended in service_unavailable, which may be its own affair. */
  readonly answers: () => Promise<unknown>;
}

class TurnsByThemselves implements Rounds {
  readonly #parts: RoundsParts;
  readonly #told = new Set<string>();

  constructor(parts: RoundsParts) {
    this.#parts = parts;
  }

  async turn({ message, fields }: Turn, work: () => Promise<unknown>): Promise<TurnOutcome> {
    const name = JSON.stringify([message, fields]);
    try {
      await work();
      this.#told.delete(name);
      return { kind: 'done' };
    } catch (error) {
      const code = codeOf(error) ?? 'internal_error';
      if (code === 'service_unavailable' && !(await this.#isThere())) return { kind: 'away' };
      if (!this.#told.has(name))
        this.#parts.logger.warn(message, { ...fields, code, reason: String(error) });
      this.#remember(name);
      return { kind: 'failed', error };
    }
  }

  #isThere(): Promise<boolean> {
    return this.#parts.answers().then(
      () => true,
      () => false,
    );
  }

  #remember(name: string): void {
    this.#told.add(name);
    const [oldest] = this.#told;
    if (this.#told.size > TOLD && oldest !== undefined) this.#told.delete(oldest);
  }
}

export function createRounds(parts: RoundsParts): Rounds {
  return new TurnsByThemselves(parts);
}
