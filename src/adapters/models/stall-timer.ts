// Aborts a response that says nothing for too long.

export class StallTimer {
  readonly #controller = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Of no effect behind `stop`: what comes late starts nothing. */
  restart(): void {
    clearTimeout(this.#timer);
    if (!this.#stopped) this.#timer = setTimeout(() => this.#controller.abort(), this.#timeoutMs);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }
}
