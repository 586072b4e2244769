// Time in the process: its clock, a rest that an abort ends, work that has a limit, what is left of one, waiting for what
// is told, and the pace of trying again. By the monotonic clock: a clock that is set moves
// nothing but the age of a Moment. Not here is what the platform has: a signal that ends by itself (AbortSignal.timeout), a tick (setInterval), and a timer (setTimeout) of
// something that others restart or call off.
import { setTimeout as sleep } from 'node:timers/promises';

/** ms since the epoch that never go back, whatever becomes of the system's clock meanwhile: for waits and limits. */
export function nowMs(): number {
  return Math.floor(performance.timeOrigin + performance.now());
}

/** Resolves after `ms`, or at once on abort. */
export function rest(ms: number, signal?: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal }).catch(() => undefined);
}

/**
 * What the work gives within `limitMs`, else what `late` gives or throws. Work that is late goes on, and what it throws
 * then concerns nobody. The limit keeps no process alive.
 */
export async function within<Value, Late = Value>(
  limitMs: number,
  work: Promise<Value>,
  late: () => Late,
): Promise<Value | Late> {
  const limit = new AbortController();
  const over = sleep(limitMs, undefined, { signal: limit.signal, ref: false }).then(late);
  work.catch(() => undefined);
  over.catch(() => undefined);
  try {
    return await Promise.race([work, over]);
  } finally {
    limit.abort();
  }
}

/**
 * A signal that aborts after `ms`, until it is cleared. Not AbortSignal.timeout: of one that only AbortSignal.any holds
 * Node forgets the time.
 */
export function abortAfter(
  ms: number,
  reason?: Error,
): { readonly signal: AbortSignal; readonly clear: () => void } {
  const limit = new AbortController();
  const timer = setTimeout(() => limit.abort(reason), ms);
  return { signal: limit.signal, clear: () => clearTimeout(timer) };
}

/**
 * A point in time, for what must not be used for too long: the monotonic clock may stop while a machine sleeps, and the wall
 * clock may be set in either direction.
 */
export class Moment {
  readonly #monotonicMs = performance.now();
  readonly #wallMs = Date.now();

  /** The larger of what both clocks show since then, in ms. */
  agoMs(): number {
    return Math.max(performance.now() - this.#monotonicMs, Math.abs(Date.now() - this.#wallMs));
  }
}

/** What is left of a limit that begins now. */
export class Deadline {
  readonly #endsAtMs: number;

  constructor(limitMs: number) {
    this.#endsAtMs = performance.now() + limitMs;
  }

  /** In ms; 0 once it is over. */
  leftMs(): number {
    return Math.max(this.#endsAtMs - performance.now(), 0);
  }

  isOver(): boolean {
    return this.leftMs() === 0;
  }
}

/** Remembers that it rang until somebody asks. For one who waits. */
export class Bell {
  #rang = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#rang = true;
    this.#wake?.();
  }

  /** Resolves at once if it rang since the last call, else when it rings, after `limitMs` or on abort. */
  async rung(signal: AbortSignal, limitMs?: number): Promise<void> {
    if (!this.#rang && !signal.aborted) {
      let timer: NodeJS.Timeout | undefined;
      let wake: () => void = () => undefined;
      const woken = new Promise<void>((resolve) => (wake = resolve));
      if (limitMs !== undefined) timer = setTimeout(wake, limitMs);
      signal.addEventListener('abort', wake);
      this.#wake = wake;
      await woken;
      this.#wake = undefined;
      signal.removeEventListener('abort', wake);
      clearTimeout(timer);
    }
    this.#rang = false;
  }
}

/** Those who wait to be woken, in the order in which they came. */
export class Waiters {
  readonly #wakes = new Set<() => void>();

  /** Resolves when it is woken; on abort at the latest. */
  wait(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        this.#wakes.delete(wake);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      this.#wakes.add(wake);
      signal.addEventListener('abort', wake);
    });
  }

  wakeNext(): void {
    const [wake] = this.#wakes;
    wake?.();
  }

  wakeAll(): void {
    for (const wake of [...this.#wakes]) wake();
  }
}

/** Pauses in ms: the first, and then each time twice as long, up to the longest. */
export class BackOff {
  readonly #firstMs: number;
  readonly #longestMs: number;
  #nextMs: number;

  constructor(firstMs: number, longestMs: number) {
    this.#firstMs = firstMs;
    this.#longestMs = longestMs;
    this.#nextMs = firstMs;
  }

  next(): number {
    const pauseMs = this.#nextMs;
    this.#nextMs = Math.min(pauseMs * 2, this.#longestMs);
    return pauseMs;
  }

  reset(): void {
    this.#nextMs = this.#firstMs;
  }
}
