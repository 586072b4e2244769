// The arguments of one call as their text comes in: in pieces, or several times. It is split into the JSON values that it
// holds, and each sign is looked at once. Pure.
import { canonicalJson } from '../../rules/json.ts';
import { readJson, type ReadJson } from '../../rules/json-text.ts';
import { MODEL_VALUE_LEVELS } from '../../rules/limits.ts';

const WORDS: Readonly<Record<string, string>> = { n: 'ull', t: 'rue', f: 'alse' };

export class ArgumentText {
  /** Of a value that has not ended. */
  #rest = '';
  #isBetween = true;
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** What is still to come of `null`, `true` or `false`. */
  #ofWord = '';
  /** A number, or what is no JSON, ends only where the answer ends. */
  #isBare = false;
  #isBareInPieces = false;

  get rest(): string {
    return this.#rest;
  }

  /** `5` after `5` is 55, or 5 said again. */
  get isNumberInPieces(): boolean {
    return this.#isBareInPieces && /^[-\d]/.test(this.#rest);
  }

  /** The values that end in this piece. */
  take(text: string): string[] {
    if (this.#isBare && text.trim() !== '') this.#isBareInPieces = true;
    const ended: string[] = [];
    let from = 0;
    for (let at = 0; at < text.length; at++) {
      if (this.#isBetween && /\s/.test(text.charAt(at))) {
        from = at + 1;
        continue;
      }
      this.#isBetween = this.#ends(text.charAt(at));
      if (!this.#isBetween) continue;
      ended.push(this.#rest + text.slice(from, at + 1));
      this.#rest = '';
      from = at + 1;
    }
    this.#rest += text.slice(from);
    return ended;
  }

  /** Whether a value ends with this sign. */
  #ends(sign: string): boolean {
    if (this.#isBare) return false;
    if (this.#ofWord !== '') {
      this.#isBare = !this.#ofWord.startsWith(sign);
      this.#ofWord = this.#ofWord.slice(1);
      return this.#ofWord === '' && !this.#isBare;
    }
    if (this.#inString) {
      if (this.#escaped) this.#escaped = false;
      else if (sign === '\\') this.#escaped = true;
      else if (sign === '"') this.#inString = false;
      return !this.#inString && this.#depth === 0;
    }
    if (sign === '"') this.#inString = true;
    else if (sign === '{' || sign === '[') this.#depth++;
    else if (this.#depth === 0) {
      this.#ofWord = WORDS[sign] ?? '';
      this.#isBare = this.#ofWord === '';
      return false;
    } else if (sign === '}' || sign === ']') this.#depth--;
    return !this.#inString && this.#depth === 0;
  }
}

/** The key of no arguments, which are those of a tool without parameters. */
export const NO_ARGUMENTS = '{}';

/**
 * Two texts with the same key are performed as the same call (`argumentsOf` in decision-tool.ts): white space and the order
 * of members mean nothing, `null` is no arguments, and an object that was encoded twice is that object. What cannot be read
 * exactly (I103) is only like its own text.
 */
export function argumentKey(text: string): string {
  const read = readJson(text.trim() === '' ? NO_ARGUMENTS : text, MODEL_VALUE_LEVELS);
  if (!read.ok) return `unread ${text}`;
  if (read.value === null) return NO_ARGUMENTS;
  const object = typeof read.value === 'string' ? encodedObject(read.value) : undefined;
  return canonicalJson(object?.ok ? object.value : read.value);
}

/** An object that was encoded twice; one that is refused too, but no other text. */
export function encodedObject(text: string): ReadJson | undefined {
  if (!text.trimStart().startsWith('{')) return undefined;
  const read = readJson(text, MODEL_VALUE_LEVELS);
  return read.ok || read.isJson ? read : undefined;
}
