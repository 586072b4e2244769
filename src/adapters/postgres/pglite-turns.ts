// One connection, shared by its clients in turns: one statement or one transaction each, first come, first served.

/** Turns that may wait; above it requests are refused, so that a stuck database shows instead of eating memory. */
const WAITING_TURNS_LIMIT = 10_000;

/** Of a request that the thread itself gives up. */
export class Refused extends Error {
  /** SQLSTATE. */
  readonly code: string;
  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}

export class Turns {
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** Resolves to the function that ends the turn. Throws Refused. */
  async take(): Promise<() => void> {
    if (this.#waiting >= WAITING_TURNS_LIMIT)
      throw new Refused('too many requests wait for the database', '53400');
    this.#waiting++;
    const before = this.#tail;
    let release = (): void => undefined;
    this.#tail = new Promise((resolve) => (release = resolve));
    await before;
    this.#waiting--;
    return release;
  }
}
