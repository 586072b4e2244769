// What is started so far: it ends in the reverse order, each part within its limit, also when the start fails half-way.
import type { Logger } from '../ports/logger.ts';
import { stopInOrder, type StopStep } from './progress.ts';

export class Started {
  readonly #steps: StopStep[] = [];
  #stopping: Promise<void> | undefined;
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** `stop` runs before those of everything added earlier. */
  add(name: string, limitMs: number, stop: StopStep['stop']): void {
    this.#steps.unshift({ name, limitMs, stop });
  }

  /** Longest time in ms that `stop` takes: the sum of the limits of what was started. */
  stopLimitMs(): number {
    return this.#steps.reduce((sum, { limitMs }) => sum + limitMs, 0);
  }

  /** Idempotent. */
  stop(): Promise<void> {
    this.#stopping ??= stopInOrder(this.#steps, this.#logger);
    return this.#stopping;
  }
}
