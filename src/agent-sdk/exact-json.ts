// JSON of what a tool gives, unless a number in it would be another one there, or Core would end the connection at it.
import { isShallow, MAX_FRAME_DEPTH } from '../opensentience/frame.ts';

/** Levels that a frame leaves for what is at the end of this path in its message. */
function levelsAt(...path: readonly string[]): number {
  return MAX_FRAME_DEPTH - path.length;
}

export const OUTPUT_LEVELS = levelsAt('payload', 'output');
export const DETAILS_LEVELS = levelsAt('payload', 'error', 'details');
export const PARTIAL_LEVELS = levelsAt('payload', 'data', 'json');
export const HEALTH_LEVELS = levelsAt('payload', 'details');

/** Goes on from the name of what was given. */
export function noJson(levels: number): string {
  return `cannot be written as JSON: it is a function, or has a cycle, a BigInt, more than ${levels} levels, a number that is not finite, or a whole number from 2^53 on (send that as text)`;
}

export interface ExactJson {
  readonly text: string;
  /** What the text says. */
  readonly value: unknown;
}

/**
 * Undefined for what has no JSON, or more levels, and for a number that JSON would change (NaN to null) or JavaScript may have changed.
 * What JSON leaves out or writes in another way, as functions in a list and dates, it does here, too.
 */
export function exactJson(given: unknown, levels: number): ExactJson | undefined {
  try {
    const text = JSON.stringify(given, (_, member: unknown) => {
      if (typeof member === 'number' && !isCertain(member)) throw new RangeError();
      return member;
    }) as string | undefined;
    if (text === undefined) return undefined;
    const value = JSON.parse(text) as unknown;
    return isShallow({ value }, levels + 1) ? { text, value } : undefined;
  } catch {
    return undefined;
  }
}

function isCertain(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
}
