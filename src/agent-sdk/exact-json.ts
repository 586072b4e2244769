// JSON of what a tool gives, unless a number in it would be another one there, or Core would end the connection at it.
import { isShallow, MAX_FRAME_DEPTH } from '../opensentience/frame.ts';

/** Levels of a message around what a tool gives: the message, its payload, an error or a part of a stream, and one to spare. */
const LEVELS_AROUND = 4;
const MOST_LEVELS = MAX_FRAME_DEPTH - LEVELS_AROUND;

export const NO_JSON = `cannot be written as JSON: it is a function, or has a cycle, a BigInt, more than ${MOST_LEVELS} levels, a number that is not finite, or a whole number from 2^53 on (send that as text)`;

export interface ExactJson {
  readonly text: string;
  /** What the text says. */
  readonly value: unknown;
}

/**
 * Undefined for what has no JSON, and for a number that JSON would change (NaN to null) or JavaScript may have changed.
 * What JSON leaves out or writes in another way, as functions in a list and dates, it does here, too.
 */
export function exactJson(given: unknown): ExactJson | undefined {
  try {
    const text = JSON.stringify(given, (_, member: unknown) => {
      if (typeof member === 'number' && !isCertain(member)) throw new RangeError();
      return member;
    }) as string | undefined;
    if (text === undefined) return undefined;
    const value = JSON.parse(text) as unknown;
    return isShallow({ value }, MOST_LEVELS + 1) ? { text, value } : undefined;
  } catch {
    return undefined;
  }
}

function isCertain(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
}
