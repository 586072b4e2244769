// Aborts a request whose answer says nothing for too long.

export class SilenceTimer {
  readonly #controller = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  #limitMs = 0;
  #stopped = false;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The limit in ms that was running last. */
  get limitMs(): number {
    return this.#limitMs;
  }

  /** Of no effect after `stop`: what comes late starts nothing. */
  restart(limitMs: number): void {
    clearTimeout(this.#timer);
    this.#limitMs = limitMs;
    if (!this.#stopped) this.#timer = setTimeout(() => this.#controller.abort(), limitMs);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }
}
