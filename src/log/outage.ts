// Whether those whom all need answer, said once for an outage (architecture §4): what fails beside it is then no fault of its own.
import type { Logger } from '../ports/logger.ts';

export interface OutageParts {
  /** Rejects where Temporal or the database answers nobody. */
  readonly answers: () => Promise<unknown>;
  readonly logger: Logger;
}

export class Outage {
  readonly #parts: OutageParts;
  #isTold = false;

  constructor(parts: OutageParts) {
    this.#parts = parts;
  }

  /** False: one who is needed answers nobody. `message` says what that means, and is logged once until `ended`. Never throws. */
  async isThere(message: string): Promise<boolean> {
    try {
      await this.#parts.answers();
      return true;
    } catch (error) {
      if (!this.#isTold) this.#parts.logger.warn(message, { reason: String(error) });
      this.#isTold = true;
      return false;
    }
  }

  /** They answer again: the next outage is another one. */
  ended(): void {
    this.#isTold = false;
  }
}
