// JSON values as the host stores and compares them: a type, a canonical text (RFC 8785 for the values that occur
// here: finite numbers, strings, booleans, null, arrays, plain objects) and sizes in UTF-8 bytes.

export type JsonValue =
  null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Undefined where the text is no JSON. To look at, not to keep: a number may be another one. */
export function parsedJson(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

/** Whether objects and arrays are nested deeper than that many levels. It calls itself no deeper than that. */
export function nestsAbove(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => nestsAbove(member, levels - 1));
}

/** Segment of a JSON pointer (RFC 6901). */
export function pointerSegment(name: string | number): string {
  return String(name).replaceAll('~', '~0').replaceAll('/', '~1');
}

/** RFC 8785 canonical text: keys in UTF-16 code-unit order, no white space, undefined members left out. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value))
    return `[${value.map((item) => canonicalJson(item ?? null)).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const record = value as Record<string, unknown>;
    const keys = Object.keys(record)
      .filter((key) => record[key] !== undefined)
      .sort();
    return `{${keys.map((key) => `${JSON.stringify(key)}:${canonicalJson(record[key])}`).join(',')}}`;
  }
  return JSON.stringify(value ?? null);
}

/** Length of the UTF-8 form of `text` in bytes, without making it (the workflow sandbox has no Buffer). */
export function utf8Length(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x80) bytes += 1;
    else if (code < 0x800) bytes += 2;
    else if (code >= 0xd800 && code < 0xdc00 && index + 1 < text.length) {
      bytes += 4;
      index++;
    } else bytes += 3;
  }
  return bytes;
}

/** Size of a value as JSON in UTF-8 bytes. */
export function jsonBytes(value: unknown): number {
  return utf8Length(JSON.stringify(value) ?? 'null');
}
