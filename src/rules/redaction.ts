// Keeps secrets out of everything that is stored or shown (SR-1): known secrets by value, unknown ones by
// the shape of common credentials. The stream form holds back a tail, so that no secret straddles two deltas
// (architecture §3.5). All patterns run in linear time.
import { type JsonObject, type JsonValue, pointerSegment } from './json.ts';

/** Shorter values are no secrets: replacing them would deface ordinary text. */
export const MIN_SECRET_LENGTH = 8;
/** Longest tail (UTF-16 units) that a stream holds back; a longer run of credential characters is swallowed. */
export const MAX_HOLD_BACK = 8192;

/** Beginnings shorter than this, and bare prefixes of credentials, tell nothing. */
const MIN_BEGINNING_LENGTH = 4;

/**
 * What stands in the place of a value that is not recorded: nobody mistakes it for one. `id` names the secret, where one
 * is known. Nobody gets the value back from where this stands.
 */
export function mask(id?: string): string {
  return id === undefined ? '[REDACTED]' : `[REDACTED:${id}]`;
}

/**
 * What a snapshot shows for a variable that is declared sensitive. Another word than `mask()`, because it says another
 * thing: the run holds the value and works with it, and whoever reads is not shown it (observability.md).
 */
export const WITHHELD = '[sensitive]';

/** What this host does to all that it stores, in the words of debug-bundle.md: a secret's place is taken by its mask. */
export const REDACTION = { redactionApplied: true, redactionMode: 'mask' } as const;

export interface Secret {
  /** Named by the mask. */
  readonly id: string;
  readonly value: string;
}

export interface RedactorStream {
  /** What of the text so far can be shown now. */
  push(piece: string): string;
  /** The held-back rest. The stream is spent afterwards. */
  end(): string;
  /** As `end`, for a text that was cut off: what is the beginning of a secret, as far as it goes, is replaced too. */
  cut(): string;
}

export interface Redactor {
  text(text: string): string;
  /** Walks keys and values; numbers, booleans and null stay. */
  json<Value>(value: Value): Value;
  stream(): RedactorStream;
}

interface Shape {
  readonly prefix: string;
  /** Fewest characters behind the prefix. */
  readonly min: number;
}

const SHAPES: readonly Shape[] = [
  { prefix: 'sk-', min: 16 },
  { prefix: 'AIza', min: 30 },
  { prefix: 'cred_', min: 8 },
  { prefix: 'ghp_', min: 20 },
  { prefix: 'github_pat_', min: 20 },
  { prefix: 'xoxb-', min: 16 },
  { prefix: 'xoxp-', min: 16 },
  { prefix: 'AKIA', min: 16 },
];
const JWT_PREFIX = 'eyJ';
const JWT = `(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}`;
const WORD = /[A-Za-z0-9_-]/;
const SHAPE_NAME = 'credential';

function escapeRegExp(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}

function shapePatterns(): string[] {
  return [
    ...SHAPES.map(({ prefix, min }) => `(?<![A-Za-z0-9])${prefix}[A-Za-z0-9_-]{${min},}`),
    JWT,
  ];
}

/** Index where a known secret may have begun that `text` does not hold whole, or `text.length`. */
function openSecretAt(text: string, secrets: readonly Secret[]): number {
  let at = text.length;
  for (const { value } of secrets) {
    const from = Math.max(0, text.length - value.length + 1);
    for (let index = from; index < at; index++) {
      if (value.startsWith(text.slice(index))) at = index;
    }
  }
  return at;
}

/** Index where a credential shape may have begun that may still grow, or `text.length`. */
function openShapeAt(text: string): number {
  let start = text.length;
  while (start > 0 && (WORD.test(text.charAt(start - 1)) || text.charAt(start - 1) === '.'))
    start--;
  const lastDot = text.lastIndexOf('.');
  for (let index = start; index < text.length; index++) {
    if (index > 0 && /[A-Za-z0-9]/.test(text.charAt(index - 1))) continue;
    const grows = (prefix: string): boolean =>
      text.startsWith(prefix, index) ||
      (text.length - index < prefix.length && prefix.startsWith(text.slice(index)));
    if (grows(JWT_PREFIX)) return index;
    if (index > lastDot && SHAPES.some(({ prefix }) => grows(prefix))) return index;
  }
  return text.length;
}

function tells(beginning: string): boolean {
  const prefixes = [JWT_PREFIX, ...SHAPES.map(({ prefix }) => prefix)];
  return (
    beginning.length >= MIN_BEGINNING_LENGTH &&
    !prefixes.some((prefix) => prefix.startsWith(beginning))
  );
}

class HoldBackStream implements RedactorStream {
  #held = '';
  /** The last character shown as it was: context for the patterns' look-behind. */
  #before = '';
  #swallowing = false;

  readonly #redact: (text: string) => string;
  readonly #secrets: readonly Secret[];

  constructor(redact: (text: string) => string, secrets: readonly Secret[]) {
    this.#redact = redact;
    this.#secrets = secrets;
  }

  push(piece: string): string {
    this.#held += piece;
    if (this.#swallowing) this.#swallow();
    const cut = this.#cutAt();
    if (this.#held.length - cut > MAX_HOLD_BACK) {
      const shown = this.#release(cut);
      this.#held = '';
      this.#swallowing = true;
      return `${shown}${mask(SHAPE_NAME)}`;
    }
    return this.#release(cut);
  }

  end(): string {
    if (this.#swallowing) this.#swallow();
    return this.#release(this.#held.length);
  }

  cut(): string {
    if (this.#swallowing) this.#swallow();
    const whole = this.#release(this.#cutAt());
    const held = this.#held;
    const shown = this.#release(held.length);
    return shown === held && tells(held) ? `${whole}${mask(this.#nameOf(held))}` : whole + shown;
  }

  #nameOf(beginning: string): string {
    return this.#secrets.find(({ value }) => value.startsWith(beginning))?.id ?? SHAPE_NAME;
  }

  #cutAt(): number {
    const cut = Math.min(openSecretAt(this.#held, this.#secrets), openShapeAt(this.#held));
    // A high surrogate waits for its other half.
    return cut > 0 && /[\ud800-\udbff]/.test(this.#held.charAt(cut - 1)) ? cut - 1 : cut;
  }

  #swallow(): void {
    const end = this.#held.search(/[^A-Za-z0-9_.-]/);
    this.#swallowing = end < 0;
    this.#held = end < 0 ? '' : this.#held.slice(end);
  }

  #release(cut: number): string {
    if (cut === 0) return '';
    const part = this.#held.slice(0, cut);
    this.#held = this.#held.slice(cut);
    const shown = this.#redact(this.#before + part).slice(this.#before.length);
    this.#before = shown.endsWith(part.slice(-1)) ? part.slice(-1) : '';
    return shown;
  }
}

/** A secret as it stands in the text of a JSON string, too: raw output of a model is such text. */
function spellings({ id, value }: Secret): Secret[] {
  const escaped = JSON.stringify(value).slice(1, -1);
  return escaped === value
    ? [{ id, value }]
    : [
        { id, value },
        { id, value: escaped },
      ];
}

/** Longest secrets first, so that one that contains another is replaced whole. */
export function createRedactor(secrets: readonly Secret[]): Redactor {
  const known = secrets
    .flatMap(spellings)
    .filter(({ value }) => value.length >= MIN_SECRET_LENGTH)
    .sort((a, b) => b.value.length - a.value.length);
  const idOf = new Map(known.map(({ id, value }) => [value, id]));
  const pattern = new RegExp(
    [...known.map(({ value }) => escapeRegExp(value)), ...shapePatterns()].join('|'),
    'g',
  );
  const text = (input: string): string =>
    input.replace(pattern, (match) => mask(idOf.get(match) ?? SHAPE_NAME));
  const json = (value: JsonValue): JsonValue => {
    if (typeof value === 'string') return text(value);
    if (Array.isArray(value)) return value.map(json);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [text(key), json(item)]));
  };
  return {
    text,
    json: <Value>(value: Value): Value => json(value as JsonValue) as Value,
    stream: () => new HoldBackStream(text, known),
  };
}

/**
 * JSON pointer (RFC 6901) of the first text that redaction would change; of the name of a member, that of what has the
 * member. Undefined: all of it is kept as it is. No secret is in the pointer.
 */
export function maskedAt(redactor: Pick<Redactor, 'json'>, value: JsonValue): string | undefined {
  if (typeof value === 'string') return redactor.json(value) === value ? undefined : '';
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [name, member] of Object.entries(value)) {
    if (redactor.json(name) !== name) return '';
    const inside = maskedAt(redactor, member);
    if (inside !== undefined) return `/${pointerSegment(name)}${inside}`;
  }
  return undefined;
}

/**
 * The same of a value (`sent`) whose redacted form is there already. Only texts are compared: nothing else is redacted, and
 * storage may write a number otherwise.
 */
export function maskedIn(sent: JsonValue, redacted: JsonValue): string | undefined {
  if (typeof sent === 'string') return sent === redacted ? undefined : '';
  if (typeof sent !== 'object' || sent === null) return undefined;
  for (const [name, member] of Object.entries(sent)) {
    if (typeof redacted !== 'object' || redacted === null || !Object.hasOwn(redacted, name))
      return '';
    const inside = maskedIn(member, (redacted as JsonObject)[name] ?? null);
    if (inside !== undefined) return `/${pointerSegment(name)}${inside}`;
  }
  return undefined;
}

/**
 * A text in which no MIN_SECRET_LENGTH characters in a row of the secret stand, in whatever case: who repeats a secret may
 * cut it. A secret shorter than that is not masked. For short texts: it takes as long as text times secret.
 */
export function withoutParts(text: string, secret: string): string {
  const sought = secret.toLowerCase();
  const isPart = (from: number, to: number): boolean =>
    sought.includes(text.slice(from, to).toLowerCase());
  let kept = '';
  let at = 0;
  while (at < text.length) {
    let end = at + MIN_SECRET_LENGTH;
    if (end > text.length || !isPart(at, end)) {
      kept += text.charAt(at++);
      continue;
    }
    while (end < text.length && isPart(at, end + 1)) end++;
    kept += mask();
    at = end;
  }
  return kept;
}

/** What looks like a credential is not repeated to anybody (auth.md). */
const CREDENTIAL =
  /\b(?:sk-[\w-]{4,512}|AIza[\w-]{4,512}|cred_[\w-]{1,512}|hk_(?:test|live)_[\w-]{1,512}|(?:ghp|gho|xox[abp])[-_][\w-]{4,512}|eyJ[\w-]{4,4096}\.[\w-]{1,4096}(?:\.[\w-]{0,4096})?)/g;

export function withoutCredentials(text: string): string {
  return text.replace(CREDENTIAL, mask(SHAPE_NAME));
}
