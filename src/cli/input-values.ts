// `--input k=v`: text, typed by the variable of the workflow that it is for, so that a wrong type is told before
// anything is sent.
import type { WorkflowVariable } from '../../schemas/types.generated.ts';
import type { JsonObject, JsonValue } from '../rules/json.ts';
import { usageFault } from './faults.ts';
import { readTypedJson } from '../words/typed.ts';
import { jsonOf } from './json-argument.ts';

type Variable = Pick<WorkflowVariable, 'name' | 'type'>;

/** `k=v` by the type of k, `k:=json` as it is. Throws CliFault for one that is not known or does not fit. */
export function inputsOf(given: readonly string[], declared: readonly Variable[]): JsonObject {
  return eachOnce('--input', given, (text) => inputOf(text, declared));
}

/** The names and values of a flag that may be given again. Throws CliFault for a name that is given twice. */
export function eachOnce<Value>(
  flag: string,
  given: readonly string[],
  pairOf: (text: string) => readonly [string, Value],
): Record<string, Value> {
  const values = new Map<string, Value>();
  for (const text of given) {
    const [name, value] = pairOf(text);
    if (values.has(name)) throw usageFault(`${flag} has "${name}" twice. Nothing was sent.`);
    values.set(name, value);
  }
  return Object.fromEntries(values);
}

function inputOf(text: string, declared: readonly Variable[]): readonly [string, JsonValue] {
  const at = text.indexOf('=');
  if (at < 1) throw usageFault(`--input is name=value or name:=JSON, and not "${text}".`);
  const isRaw = text[at - 1] === ':';
  const name = text.slice(0, isRaw ? at - 1 : at);
  const value = text.slice(at + 1);
  const variable = declared.find((each) => each.name === name);
  if (!variable) {
    const names = declared.map((each) => each.name).join(', ');
    const known = names === '' ? 'It has none' : `It has: ${names}`;
    throw usageFault(`The workflow has no input "${name}". ${known}.`);
  }
  return [name, isRaw ? rawOf(variable, value) : typedOf(variable, value)];
}

function rawOf({ name, type }: Variable, text: string): JsonValue {
  const value = jsonOf(text, `The input "${name}"`);
  if (value !== null && typeOf(value) !== type) throw mismatch({ name, type });
  return value;
}

function typedOf({ name, type }: Variable, text: string): JsonValue {
  if (type === 'string') return text;
  const read = readTypedJson(text);
  // What is no JSON has no type here.
  if (!read.ok && !read.isJson) throw mismatch({ name, type });
  if (!read.ok) throw usageFault(`The input "${name}" ${read.message}. Nothing was sent.`);
  if (typeOf(read.value) !== type) throw mismatch({ name, type });
  return read.value;
}

const EXAMPLES: Readonly<Record<WorkflowVariable['type'], string>> = {
  string: 'some words',
  number: '12.5',
  boolean: 'true',
  object: '{"a":1}',
  array: '[1,2]',
};

function mismatch({ name, type }: Variable): Error {
  return usageFault(`The input "${name}" must be of type ${type}, as in ${name}=${EXAMPLES[type]}`);
}

function typeOf(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  return value === null ? 'null' : typeof value;
}
