// Chance that can be had again: what is drawn is a function of the seed and of what the draw is about, so that a case
// draws the same whatever happens around it.

export interface Draws {
  /** True with probability `p`. */
  chance(p: number): boolean;
  /** An integer, both ends included. */
  int(low: number, high: number): number;
  /** One of them; those that are named more than once come more often. */
  pick<T>(of: readonly [T, ...T[]]): T;
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return hash >>> 0;
}

/** mulberry32: numbers in [0, 1). */
function numbersOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** At the end of a seed: the same case, and each segment of it ends as early as it can (continue-as-new). */
export const SEGMENTED = '-segmented';

/** At the end of a seed: the same case, and beside it nodes without steps that fill several workflow tasks. */
export const CROWDED = '-crowded';

/** The draws about one thing. */
export function drawsOf(seed: string, about: string): Draws {
  const mark = [SEGMENTED, CROWDED].find((it) => seed.endsWith(it)) ?? '';
  const own = seed.slice(0, seed.length - mark.length);
  const next = numbersOf(hashOf(`${own}|${about}`));
  const int = (low: number, high: number): number => low + Math.floor(next() * (high - low + 1));
  return {
    chance: (p) => next() < p,
    int,
    pick: (of) => of[int(0, of.length - 1)] ?? of[0],
  };
}
