// A value as its event shows it: above a limit by reference (architecture §2.6).
import { utf8Length, type JsonValue } from '../src/rules/json.ts';
import { INLINE_VALUE_BYTES } from '../src/rules/limits.ts';
import { boundText } from '../src/rules/tokens.ts';

/** Bytes of a large value that its event shows. */
const PREVIEW_BYTES = 1024;

export function shownValue(value: JsonValue, hash: string): JsonValue {
  const text = JSON.stringify(value);
  const bytes = utf8Length(text);
  if (bytes <= INLINE_VALUE_BYTES) return value;
  return { contentRef: hash, bytes, preview: boundText(text, PREVIEW_BYTES) };
}
