// A value as its event shows it: above a limit by reference (architecture §2.6).
import { isJsonObject, utf8Length, type JsonValue } from '../src/rules/json.ts';
import { INLINE_VALUE_BYTES } from '../src/rules/limits.ts';
import { boundText } from '../src/rules/tokens.ts';

/** Bytes of a large value that its event shows. */
const PREVIEW_BYTES = 1024;

const HASH = /^sha256:[0-9a-f]{64}$/;
const PARTS = ['bytes', 'contentRef', 'preview'];

/** What `shownValue` gives for a large value; perhaps a value that only looks so. */
export interface Reference {
  readonly contentRef: string;
}

export function isReference(shown: JsonValue): shown is JsonValue & Reference {
  if (!isJsonObject(shown)) return false;
  const { contentRef, bytes, preview } = shown;
  return (
    Object.keys(shown).sort().join() === PARTS.join() &&
    typeof contentRef === 'string' &&
    HASH.test(contentRef) &&
    Number(bytes) > INLINE_VALUE_BYTES &&
    typeof preview === 'string'
  );
}

export function shownValue(value: JsonValue, hash: string): JsonValue {
  const text = JSON.stringify(value);
  const bytes = utf8Length(text);
  if (bytes <= INLINE_VALUE_BYTES) return value;
  return { contentRef: hash, bytes, preview: boundText(text, PREVIEW_BYTES) };
}
