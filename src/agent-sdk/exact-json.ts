// JSON of what a tool gives, unless a number in it would be another one there.

export const NO_JSON =
  'cannot be written as JSON: it is a function, or has a cycle, a BigInt, a number that is not finite, or a whole number from 2^53 on (send that as text)';

/**
 * Undefined for what has no JSON, and for a number that JSON would change (NaN to null) or JavaScript may have changed.
 * What JSON leaves out or writes in another way, as functions in a list and dates, it does here, too.
 */
export function exactJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_, member: unknown) => {
      if (typeof member === 'number' && !isCertain(member)) throw new RangeError();
      return member;
    });
  } catch {
    return undefined;
  }
}

function isCertain(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
}
