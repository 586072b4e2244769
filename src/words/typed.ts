// What a person types where a value is asked for: read exactly as it stands, or refused in words (architecture §11, I103).
import type { JsonValue } from '../rules/json.ts';
import { faultWords, INEXACT, isExact, readJson } from '../rules/json-text.ts';

/** A message has no subject and no full stop. */
export type ReadTyped<Value> =
  { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly message: string };

/** As a browser keeps a text in a field: it knows one kind of line break, and no NUL. */
export function asField(text: string): string {
  return text.replaceAll(/\r\n?/g, '\n').replaceAll('\0', '\ufffd');
}

/** As a browser sends what a field holds, or the name of one: each line break as CR and LF. */
export function asSent(text: string): string {
  return asField(text).replaceAll('\n', '\r\n');
}

const DECIMAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

export function readNumber(text: string): ReadTyped<number> {
  const typed = text.trim();
  if (!DECIMAL.test(typed)) return { ok: false, message: 'must be a number, such as 12 or 0.5' };
  return isExact(typed) ? { ok: true, value: Number(typed) } : { ok: false, message: INEXACT };
}

/** `isJson` false: the message has the words of the parser, which repeat a part of the text. */
export function readTypedJson(
  text: string,
): ReadTyped<JsonValue> & ({ readonly ok: true } | { readonly isJson: boolean }) {
  const read = readJson(text);
  return read.ok ? read : { ok: false, isJson: read.isJson, message: faultWords(read.fault) };
}
