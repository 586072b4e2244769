// The waits of tests that stand for no event. What happens is waited for by asking whether it has (`expect.poll`, `until`): lint
// allows no other timer in a test file.
import { setTimeout as sleep } from 'node:timers/promises';
import { paced, patient } from './machine.ts';

/** How long `expect.poll` asks, and how often, in ms: for each configuration of vitest. */
export const POLL = { timeout: patient(30_000), interval: 50 };

/**
 * A time in ms in which something must not happen: the assertion after it says what. It fails no test on a slow machine, and may
 * let one pass that should fail, so it comes with a case in which the same thing does happen.
 */
export function quietFor(ms: number): Promise<void> {
  return sleep(ms);
}

/** Longest silence of a scripted step in ms, on any machine: one that says nothing for 5 s is given up. */
export const LONGEST_SILENCE_MS = 3_000;

/**
 * How long a scripted step, a remote party or a person takes, in ms on a machine of factor 1. `most`: as for `paced`.
 */
export async function takes(ms: number, most?: number): Promise<void> {
  await sleep(paced(ms, most));
}
