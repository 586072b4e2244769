// JSON texts that come from outside: a model, an agent, a client, a person, a file. What they say is taken as it was
// written, or refused with its place (architecture §10, I103): a number that is written otherwise once a double has held
// it would be shown, logged and sent as another one, of two members with one name one is dropped, and a member named
// `__proto__` is kept by one reader and dropped by the next. Pure.
import { type JsonValue, pointerSegment } from './json.ts';

export interface JsonFault {
  /** JSON pointer (RFC 6901); '' is the whole. */
  readonly pointer: string;
  /** Without its subject: `is not JSON`. */
  readonly message: string;
}

export type ReadJson =
  | { readonly ok: true; readonly value: JsonValue }
  /** `isJson` false: the words of the parser, which repeat a part of the text. What is too deep is not parsed. */
  | { readonly ok: false; readonly isJson: boolean; readonly fault: JsonFault };

/** Deepest nesting that is read, unless the caller says otherwise. */
const READ_LEVELS = 128;
/** Longest pointer that is given, in UTF-16 units. */
const MAX_POINTER = 500;

export const INEXACT = 'is a number that cannot be kept exactly';
const UNKEPT_NUMBER = `${INEXACT}; send it as text, in quotes`;
const PROTO = '__proto__';
const REPEATED = 'is a name that its object has twice';
const TOO_DEEP = 'is nested too deep';
const NO_NUMBER = 'is NaN or infinite, which JSON has no word for; send it as text, in quotes';

/** Without subject and full stop. */
export function faultWords({ pointer, message }: JsonFault): string {
  return pointer === '' ? message : `cannot be accepted: ${pointer} ${message}`;
}

/** A sentence about `what`, without its full stop. */
export function faultText(what: string, fault: JsonFault): string {
  return `${what} ${faultWords(fault)}`;
}

/**
 * The value of a JSON text, exactly as it was written, or a fault in it. A name that an object has twice is one: readers
 * differ in which member they take.
 */
export function readJson(text: string, levels = READ_LEVELS): ReadJson {
  const refused = (isJson: boolean, pointer: string, message: string): ReadJson => ({
    ok: false,
    isJson,
    fault: { pointer, message },
  });
  if (opensLevelsAbove(text, levels))
    return refused(true, '', `is nested deeper than ${levels} levels`);
  let root: { value: JsonValue };
  try {
    root = { value: JSON.parse(text) as JsonValue };
  } catch (error) {
    return refused(false, '', `is not JSON: ${(error as Error).message}`);
  }
  const repeated = markAndFindRepeated(text, root);
  if (repeated !== undefined) return refused(true, repeated, REPEATED);
  const fault = unkeptIn(root.value);
  return fault ? refused(true, fault.pointer, fault.message) : { ok: true, value: root.value };
}

/** A literal with fewer than 16 digits and points, and without an exponent, is a number that cannot change. */
const MAY_CHANGE = /\d[\d.]{15}|\d[eE]/;

/**
 * Marks, which no JSON can say: of a number that a double would change, of a member whose name its object has twice, and of
 * a word that stands for no number. The last is written as WORD_AS, which is read as its mark.
 */
const CHANGED = NaN;
const TWICE = Infinity;
const WORD = -Infinity;
/** The blanks keep what stands beside a word apart from it: `-NaN` and `NaN0` stay no JSON. */
const WORD_AS = ' -1e999 ';
/** Of what nests too deep; no number, as the others are. */
const DEEP = Symbol('nested too deep');

/** Puts the marks into the value of a JSON text, where what they stand for was: `unkeptIn` finds them. */
export function marked(text: string, value: JsonValue): JsonValue {
  const root = { value };
  markAndFindRepeated(text, root);
  return root.value;
}

/**
 * The marked value of a text that is JSON but for the bare words NaN, Infinity and -Infinity, which some writers put in the
 * place of numbers: each of them is marked. Undefined for a text that is no JSON in another way, too.
 */
export function markedWithWords(text: string): JsonValue | undefined {
  if (!text.includes('NaN') && !text.includes('Infinity')) return undefined;
  let value: JsonValue;
  try {
    value = JSON.parse(withoutWords(text)) as JsonValue;
  } catch {
    return undefined;
  }
  // By the text with the words in it: a number that would change is distinguished from a word.
  return marked(text, value);
}

/** Puts a mark in the place of each object and list below so many levels; `unkeptIn` finds it. */
export function cutBelow(root: object, levels: number): void {
  let level = [root as Record<string, unknown>];
  for (let depth = 1; level.length > 0; depth++) {
    const below: typeof level = [];
    for (const one of level)
      for (const [name, inner] of Object.entries(one)) {
        if (typeof inner !== 'object' || inner === null) continue;
        if (depth < levels) below.push(inner as Record<string, unknown>);
        else one[name] = DEEP;
      }
    level = below;
  }
}

function withoutWords(text: string): string {
  const parts: string[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    const word = wordFrom(code);
    if (word === undefined || !text.startsWith(word, at)) continue;
    parts.push(text.slice(from, at), WORD_AS);
    from = at + word.length;
    at = from - 1;
  }
  return [...parts, text.slice(from)].join('');
}

/** The word that may begin with a character. */
function wordFrom(code: number): string | undefined {
  switch (code) {
    case MINUS:
      return '-Infinity';
    case BIG_I:
      return 'Infinity';
    case BIG_N:
      return 'NaN';
    default:
      return undefined;
  }
}

/** Place in the value that the text has come to: a container, where it is one, and a member of it. */
interface Place {
  readonly within: object | undefined;
  /** That the object has had so far; a list has none. */
  readonly names?: Set<string>;
  member: string | number;
}

/**
 * Puts the marks of `marked`, and gives the pointer to the first member whose name its object has already. The text is JSON.
 * A mark of a member may meet a later one with its name: then that is refused.
 */
function markAndFindRepeated(text: string, root: { value: JsonValue }): string | undefined {
  const outer: Place[] = [];
  let place: Place = { within: root, member: 'value' };
  let name = '';
  let repeated: string | undefined;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    switch (code) {
      case QUOTE: {
        const end = endOfString(text, at);
        name = text.slice(at, end + 1);
        at = end;
        break;
      }
      case COLON:
        place.member = name.includes('\\') ? (JSON.parse(name) as string) : name.slice(1, -1);
        if (place.names?.has(place.member)) {
          mark(place, TWICE);
          repeated ??= pointerIn([...outer, place]);
        }
        place.names?.add(place.member);
        break;
      case COMMA:
        if (typeof place.member === 'number') place.member += 1;
        break;
      case BRACKET:
        outer.push(place);
        place = { within: containerAt(place), member: 0 };
        break;
      case BRACE:
        outer.push(place);
        place = { within: containerAt(place), names: new Set(), member: '' };
        break;
      case BRACKET_END:
      case BRACE_END:
        place = outer.pop() ?? place;
        break;
      default: {
        if (code !== MINUS && !isDigit(code)) break;
        const end = endOfNumber(text, at);
        const literal = text.slice(at, end);
        if (MAY_CHANGE.test(literal) && !isExact(literal)) mark(place, CHANGED);
        at = end - 1;
      }
    }
  }
  return repeated;
}

/** Of the member that the last of these places has come to; the first one holds the whole. */
function pointerIn(places: readonly Place[]): string {
  return pointerOf(places.slice(1).map(({ member }) => String(member)));
}

function containerAt({ within, member }: Place): object | undefined {
  if (!within || !Object.hasOwn(within, member)) return undefined;
  const value = (within as Record<string | number, unknown>)[member];
  return typeof value === 'object' && value !== null ? value : undefined;
}

function mark({ within, member }: Place, as: number): void {
  if (within && Object.hasOwn(within, member))
    (within as Record<string | number, unknown>)[member] = as;
}

/** What of a marked value cannot be kept: the first mark, or member named `__proto__`. */
export function unkeptIn(root: unknown): JsonFault | undefined {
  return firstFault(root, (value) => {
    if (value === TWICE) return REPEATED;
    if (value === WORD) return NO_NUMBER;
    return Number.isFinite(value) ? undefined : UNKEPT_NUMBER;
  });
}

/**
 * The same of a value that others have read from a text: a whole number from 2^53 on, or a fraction of many digits, may
 * have been another one there. One that was rounded to few digits (1.00000000000000000001) cannot be noticed.
 */
export function uncertainIn(root: unknown): JsonFault | undefined {
  return firstFault(root, (value) => (isCertain(value) ? undefined : UNKEPT_NUMBER));
}

/** Digits of a fraction that every double keeps. */
const CERTAIN_DIGITS = 15;

function isCertain(value: number): boolean {
  if (Number.isInteger(value)) return Number.isSafeInteger(value);
  return Number.isFinite(value) && digitsOf(String(value)).length <= CERTAIN_DIGITS;
}

/** What is walked: a container, the names of its members (a list has none), and how many of them were looked at. */
interface Walked {
  readonly value: Readonly<Record<string | number, unknown>>;
  readonly names: readonly string[] | undefined;
  readonly length: number;
  at: number;
}

/** In the order of the members. By a stack of its own, and without an object for each number: texts are long. */
function firstFault(
  root: unknown,
  faultOf: (value: number) => string | undefined,
): JsonFault | undefined {
  const open: Walked[] = [walked({ root })];
  for (let inner = open.at(-1); inner; inner = open.at(-1)) {
    if (inner.at === inner.length) {
      open.pop();
      continue;
    }
    const name = inner.names ? inner.names[inner.at] : inner.at;
    inner.at += 1;
    if (name === PROTO)
      return { pointer: pointerTo(open), message: 'is a name that is not accepted' };
    const value = name === undefined ? undefined : inner.value[name];
    const ofOther = value === DEEP ? TOO_DEEP : undefined;
    const message = typeof value === 'number' ? faultOf(value) : ofOther;
    if (message !== undefined) return { pointer: pointerTo(open), message };
    if (typeof value === 'object' && value !== null) open.push(walked(value));
  }
  return undefined;
}

function walked(value: object): Walked {
  const names = Array.isArray(value) ? undefined : Object.keys(value);
  const { length } = names ?? (value as unknown[]);
  return { value: value as Walked['value'], names, length, at: 0 };
}

/** Of the member that was looked at last; the outermost container is none of the value. */
function pointerTo(open: readonly Walked[]): string {
  return pointerOf(open.slice(1).map(({ names, at }) => names?.[at - 1] ?? String(at - 1)));
}

function pointerOf(names: readonly string[]): string {
  return names
    .map((name) => `/${pointerSegment(name)}`)
    .join('')
    .slice(0, MAX_POINTER);
}

/**
 * Whether the double that a decimal number is read as is written as the same number again: `1.50` and `1e3` are,
 * 9007199254740993 and 1e400 are not. Shape: what JSON takes, and `+1`, `.5`, `1.`.
 */
export function isExact(literal: string): boolean {
  const value = Number(literal);
  // To round never moves the point: the same digits are the same number.
  return Number.isFinite(value) && digitsOf(literal) === digitsOf(String(value));
}

/** Those that say the number: without sign, point, power of ten, and zeros at either end. */
function digitsOf(literal: string): string {
  const all = literal.replace(/[eE].*$/, '').replace(/[-+.]/g, '');
  let from = 0;
  while (all.charCodeAt(from) === ZERO) from++;
  let to = all.length;
  while (to > from && all.charCodeAt(to - 1) === ZERO) to--;
  return all.slice(from, to);
}

/** Whether a JSON text nests deeper than that; of a text that is no JSON it says nothing. What reads it needs memory for
 * each level that is open. */
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

const [QUOTE, BACKSLASH, COLON, COMMA, MINUS, ZERO] = [0x22, 0x5c, 0x3a, 0x2c, 0x2d, 0x30];
const [BRACKET, BRACKET_END, BRACE, BRACE_END] = [0x5b, 0x5d, 0x7b, 0x7d];
const [BIG_I, BIG_N] = [0x49, 0x4e];
const NUMBER = /[-+.\deE]*/y;

/** Of the string that begins there: the place of its last quote, or the end of the text. */
function endOfString(text: string, from: number): number {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at;
    if (code === BACKSLASH) at++;
  }
  return text.length;
}

/** Of the number that begins there: the place after it. */
function endOfNumber(text: string, from: number): number {
  NUMBER.lastIndex = from;
  NUMBER.test(text);
  return NUMBER.lastIndex;
}

function isDigit(code: number): boolean {
  return code >= ZERO && code < ZERO + 10;
}
