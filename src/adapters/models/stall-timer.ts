// Aborts a response that says nothing for too long.

export class StallTimer {
  readonly #controller = new AbortController();
  #timer: NodeJS.Timeout | undefined;

  readonly #timeoutMs: number;

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  restart(): void {
    this.stop();
    this.#timer = setTimeout(() => this.#controller.abort(), this.#timeoutMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
