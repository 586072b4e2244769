// One call of a tool as its pieces come: what of its arguments was said once, again, or in two ways. Table on top; pure.
import type { JsonFault } from '../../rules/json-text.ts';
import { utf8Length } from '../../rules/json.ts';
import { argumentKey, ArgumentText, NO_ARGUMENTS } from './argument-text.ts';
import type { Piece } from './call-piece.ts';

/**
 * `named`: no arguments so far; `empty`: `{}` beside the name, which may stand for arguments that are still to come;
 * `again`: more of them after whole ones.
 */
export type CallState = 'named' | 'empty' | 'arguing' | 'whole' | 'again' | 'malformed';

/** A part of a value; the first whole one, `{}` beside the name or not; one like it; another one. */
type Argued = 'part' | 'empty' | 'first' | 'equal' | 'other';

const MALFORMED = { empty: 'malformed', first: 'malformed', other: 'malformed' } as const;

const REPEATED = { ...MALFORMED, part: 'again', equal: 'whole' } as const;

const ARGUMENTS: Record<CallState, Record<Argued, CallState>> = {
  named: { ...MALFORMED, part: 'arguing', empty: 'empty', first: 'whole', equal: 'malformed' },
  empty: REPEATED,
  arguing: { ...MALFORMED, part: 'arguing', first: 'whole', equal: 'malformed' },
  whole: REPEATED,
  again: REPEATED,
  malformed: { ...MALFORMED, part: 'malformed', equal: 'malformed' },
};

export class Call {
  readonly place: number;
  readonly isPlaced: boolean;
  /** The call after which this one began at the same place, without an id. */
  readonly after: Call | undefined;
  /** The first call of such a row. */
  readonly root: Call;
  /** Calls at whose places a piece of this one came, before they were repeated themselves. */
  readonly displaced = new Set<Call>();
  name: string;
  hasId: boolean;
  isNameRepeated = false;
  /** `{}` beside its name was nothing yet. */
  wasEmpty = false;
  /** It began with its name alone. */
  readonly beganBare: boolean;
  state: CallState = 'named';
  fault: JsonFault | undefined;
  /** A sentence about a call that contradicts itself. */
  contradiction: string | undefined;
  #text = new ArgumentText();
  #whole: string | undefined;
  /** Without what was only said again. */
  #kept = '';
  /** Whether a value goes on with the name in its pieces; undefined: it does not go on. */
  #isNamedOn: boolean | undefined;

  constructor(piece: Piece, place: number, after?: Call) {
    const { name, id } = piece;
    this.place = place;
    this.isPlaced = piece.place !== undefined;
    this.name = name;
    this.hasId = id !== undefined;
    this.beganBare = piece.text.trim() === '';
    this.after = after;
    this.root = after?.root ?? this;
  }

  get isOpen(): boolean {
    return this.state === 'named' || this.state === 'arguing';
  }

  /** In the middle of its arguments, for the first time or again. */
  get isWithin(): boolean {
    return this.state === 'arguing' || this.state === 'again';
  }

  get arguments(): string {
    return this.#kept + this.#text.rest;
  }

  get key(): string {
    return JSON.stringify([this.name, argumentKey(this.arguments)]);
  }

  get malformed(): string | undefined {
    if (this.contradiction !== undefined) return this.contradiction;
    const title = titleOf(this.name);
    if (this.state === 'malformed') return `${title} came with two different arguments.`;
    if (this.#text.isNumberInPieces) return `${title} came with a number in several pieces.`;
    return undefined;
  }

  /** The first sentence holds, and no other is built: each would look at a name that may be long. */
  contradict(sentence: () => string): void {
    this.state = 'malformed';
    this.contradiction ??= sentence();
  }

  isAt(place: number | undefined): boolean {
    return place === undefined || place === this.place;
  }

  /** Where calls have ids, the name alone is said once more; and so is `{}` beside it, where it may be nothing yet. */
  isRepeatedBy({ place, text }: Piece): boolean {
    if (text.trim() === '') return this.hasId && this.isAt(place);
    return this.state === 'empty' && argumentKey(text) === NO_ARGUMENTS;
  }

  /** `{}` stood for arguments that were still to come. */
  forget(): void {
    this.state = 'named';
    this.wasEmpty = true;
    this.#text = new ArgumentText();
    this.#whole = undefined;
    this.#kept = '';
  }

  /** A value that came as one has no pieces: it ends no text that had begun. */
  argue(piece: Piece): void {
    const { text, isValue } = piece;
    this.fault ??= piece.fault;
    this.#checkNames(piece);
    if (!isValue) for (const value of this.#text.take(text)) this.#add(value, piece);
    else if (this.#text.rest !== '') this.#reach('other', text);
    else this.#add(text, piece);
    if (this.#text.rest !== '') this.#reach('part', '');
  }

  /** Either all pieces of a value have the name, or the first one alone: else a piece was said again within it. */
  #checkNames({ name, text }: Piece): void {
    if (text.trim() === '' && (name === '' || this.hasId)) return;
    const isNamed = name !== '';
    if (this.#text.rest !== '' && (this.#isNamedOn ?? isNamed) !== isNamed)
      this.contradict(() => `${titleOf(this.name)} came with a piece that was said again.`);
    this.#isNamedOn = this.#text.rest === '' ? undefined : isNamed;
  }

  #add(value: string, { name, text }: Piece): void {
    const key = argumentKey(value);
    const isEmpty = key === NO_ARGUMENTS && name !== '' && text.trim() === value;
    const first = isEmpty ? 'empty' : 'first';
    const argued = this.#whole === undefined ? first : key === this.#whole ? 'equal' : 'other';
    this.#whole ??= key;
    this.#reach(argued, argued === 'equal' ? '' : value);
  }

  #reach(argued: Argued, kept: string): void {
    this.state = ARGUMENTS[this.state][argued];
    this.#kept += kept;
  }
}

/** Longest name in bytes that a sentence repeats. A part of one would be a secret that no redactor knows. */
const NAME_BYTES = 256;

export function isShown(name: string): boolean {
  return name !== '' && utf8Length(name) <= NAME_BYTES;
}

export function titleOf(name: string): string {
  return isShown(name) ? `The call of ${name}` : 'A call';
}
