// A rest that ends early when the process does.
import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves after `ms`, or at once on abort. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return sleep(ms, undefined, { signal }).catch(() => undefined);
}
