// JSON of what a tool gives: of a value that JSON would change there is none.

export const NO_JSON =
  'cannot be written as JSON: a function, a cycle, a BigInt, a number that is not finite, or a whole number beyond 2^53 (send that as text)';

/** Undefined where JSON would say something else: null for NaN, another number than the one that was meant. */
export function exactJson(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_, member: unknown) => {
      if (typeof member === 'number' && !isExact(member)) throw new RangeError();
      return member;
    });
  } catch {
    return undefined;
  }
}

function isExact(value: number): boolean {
  return Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
}
