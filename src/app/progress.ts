// What a human sees while the host starts and stops: a line for everything that takes longer than a second, and steps
// that end within their limit.
import type { Logger } from '../ports/logger.ts';
import { within } from '../system/time.ts';

const FIRST_LINE_MS = 1_000;
const NEXT_LINE_MS = 10_000;

export type Report = (line: string) => void;

/** Runs `work`; says what is being waited for after a second, and then every ten. */
export async function withProgress<T>(
  report: Report,
  what: string,
  work: () => Promise<T>,
): Promise<T> {
  const startedAt = Date.now();
  const say = () => {
    report(`${what} … (${Math.round((Date.now() - startedAt) / 1000)} s)`);
    timer = setTimeout(say, NEXT_LINE_MS).unref();
  };
  let timer = setTimeout(say, FIRST_LINE_MS).unref();
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}

export interface StopStep {
  readonly name: string;
  readonly limitMs: number;
  readonly stop: () => Promise<void> | void;
}

/** One after the other; a step that fails or is late does not keep the next from ending in order. */
export async function stopInOrder(steps: readonly StopStep[], logger: Logger): Promise<void> {
  for (const { name, limitMs, stop } of steps) {
    const stopped = Promise.resolve().then(stop);
    const late = () => logger.warn('a part did not stop in time', { part: name, limitMs });
    await within(limitMs, stopped, late).catch((error: unknown) =>
      logger.warn('a part did not stop in order', { part: name, error }),
    );
  }
}
