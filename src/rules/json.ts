// JSON values as the host stores and compares them: a type, a canonical text (RFC 8785 for the values that occur
// here: finite numbers, strings, booleans, null, arrays, plain objects) and sizes in UTF-8 bytes.

export type JsonValue =
  null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether objects and arrays are nested deeper than that many levels; looks no deeper. */
export function hasLevelsAbove(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => hasLevelsAbove(member, levels - 1));
}

/**
 * The same of a JSON text that nobody has read yet: what reads it needs memory for each level that is open. Of a text that is
 * no JSON it says nothing.
 */
export function opensLevelsAbove(text: string, levels: number): boolean {
  let open = 0;
  for (let at = 0; at < text.length; at++)
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at);
        break;
      case BRACKET:
      case BRACE:
        if (++open > levels) return true;
        break;
      case BRACKET_END:
      case BRACE_END:
        open--;
    }
  return false;
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [BRACKET, BRACKET_END, BRACE, BRACE_END] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Of the string that begins there. */
function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at++;
  }
  return text.length;
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
