// JSON that a person typed or put into a file: taken as it is written, or refused before anything is sent.
import type { JsonObject, JsonValue } from '../rules/json.ts';
import { readTypedJson } from '../words/typed.ts';
import { usageFault } from './faults.ts';

export const INPUTS_SHAPE = 'a JSON object with the inputs by name';

/** `what` begins the sentence of a fault: `--inputs`. Throws a usage fault. */
export function jsonOf(text: string, what: string): JsonValue {
  const read = readTypedJson(text);
  if (read.ok) return read.value;
  throw usageFault(`${what} ${read.message}. Nothing was sent.`);
}

/** The same of an object; `shape` says what it must be: `a JSON object with the inputs by name`. */
export function jsonObjectOf(text: string, what: string, shape: string): JsonObject {
  const value = jsonOf(text, what);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw usageFault(`${what} must be ${shape}. Nothing was sent.`);
}
