// Regular expressions of others (schema `pattern`s, regex conditions) run in linear time: RE2 syntax, no look-around,
// no back references, bounded length (architecture §10).
import { RE2JS } from 're2js';

/** Longest pattern in UTF-16 units. */
const PATTERN_LENGTH = 1024;

/** Largest program of an edge condition's pattern: its match holds a workflow's thread. */
const CONDITION_PATTERN_SIZE = 500;

export interface LinearPattern {
  /** Instructions: a match takes at most this many steps for each character. */
  readonly size: number;
  test(text: string): boolean;
  /** The notation: Ajv tells patterns apart by it. */
  toString(): string;
}

/** Compiles ECMAScript notation as RE2. Throws an Error that says why when the pattern is too long or not linear. */
export function compilePattern(pattern: string): LinearPattern {
  if (pattern.length > PATTERN_LENGTH)
    throw new Error(`the pattern is longer than ${PATTERN_LENGTH} characters`);
  const compiled = RE2JS.compile(RE2JS.translateRegExp(pattern));
  return {
    size: compiled.programSize(),
    test: (text) => compiled.matcher(text).find(),
    toString: () => pattern,
  };
}

/** Whether a pattern of an edge condition finds something in a text; true also where it cannot be used. */
export function conditionFinds(pattern: string, text: string): boolean {
  return (
    conditionPatternFault(pattern) !== undefined || RE2JS.compile(pattern).matcher(text).find()
  );
}

/** Why a pattern of an edge condition cannot be used: conditions are written as RE2 and taken as they are. */
export function conditionPatternFault(pattern: string): string | undefined {
  if (pattern.length > PATTERN_LENGTH)
    return `the pattern is longer than ${PATTERN_LENGTH} characters`;
  try {
    const size = RE2JS.compile(pattern).programSize();
    return size > CONDITION_PATTERN_SIZE
      ? `the pattern has ${size} instructions, more than ${CONDITION_PATTERN_SIZE}`
      : undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
