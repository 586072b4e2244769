// Time in the process: a rest that an abort ends, work that has a limit, and the pace of trying again.
import { setTimeout as sleep } from 'node:timers/promises';

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
