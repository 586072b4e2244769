// Timestamps of a log never go back (architecture §2.1): the append, the deltas and the rebuild clamp with this
// function.

/** Each time, raised to the highest before it. `lastMs` is that of the row in front of the first; ms epoch. */
export function clampTimestamps(lastMs: number, timesMs: readonly number[]): number[] {
  let last = lastMs;
  return timesMs.map((timeMs) => (last = Math.max(last, timeMs)));
}
