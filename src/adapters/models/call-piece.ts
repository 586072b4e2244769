// One piece of a call of a tool, as an endpoint sends it: nothing is believed of it but what is there. Pure.
import { nestsAbove } from '../../rules/json.ts';
import { uncertainIn, type JsonFault } from '../../rules/json-text.ts';
import { MODEL_VALUE_LEVELS } from '../../rules/limits.ts';

/** As it was sent. Empty texts and null are absent. */
export interface CallPiece {
  readonly place?: unknown;
  readonly id?: unknown;
  readonly name?: unknown;
  /** Text, or a value in place of its text. */
  readonly args?: unknown;
}

/** What a piece says of its call. White space is a part of a string, or nothing. */
export type Said = 'a name' | 'arguments' | 'white space' | 'nothing';

/** A piece whose members are what they should be. */
export interface Piece extends Arguments {
  readonly place: number | undefined;
  readonly id: string | undefined;
  readonly name: string;
  readonly said: Said;
}

interface Arguments {
  /** Whole or a part, whatever they came as. */
  readonly text: string;
  /** They came as a value, which has no pieces. */
  readonly isValue: boolean;
  /** Of such a value, whose own text nobody has. */
  readonly fault: JsonFault | undefined;
}

/** A word for nothing in place of a name is a name here: who knows the calls so far decides (call-assembly.ts). */
export function pieceOf({ place, id, name, args }: CallPiece): Piece {
  const called = typeof name === 'string' && name.trim() !== '' ? name : '';
  const sent = argumentsOf(args ?? '');
  return { place: placeOf(place), id: idOf(id), name: called, said: saidBy(called, sent), ...sent };
}

function saidBy(name: string, { text }: Arguments): Said {
  if (name !== '') return 'a name';
  if (text === '') return 'nothing';
  return text.trim() === '' ? 'white space' : 'arguments';
}

/** Some endpoints write the number as text. */
function placeOf(value: unknown): number | undefined {
  const place = typeof value === 'string' && /^-?\d+$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(place) ? (place as number) : undefined;
}

/** As some programs write that there is none, in capitals or not. */
const NOTHING = ['', 'null', 'none', 'nil', 'undefined'];

export function isNothing(text: string): boolean {
  return NOTHING.includes(text.trim().toLowerCase());
}

function idOf(value: unknown): string | undefined {
  const id = typeof value === 'number' ? String(value) : value;
  return typeof id === 'string' && !isNothing(id) ? id : undefined;
}

function argumentsOf(value: unknown): Arguments {
  if (typeof value === 'string') return { text: value, isValue: false, fault: undefined };
  if (!nestsAbove(value, MODEL_VALUE_LEVELS))
    return { text: JSON.stringify(value), isValue: true, fault: uncertainIn(value) };
  const message = `is nested deeper than ${MODEL_VALUE_LEVELS} levels`;
  return { text: '[…]', isValue: true, fault: { pointer: '', message } };
}
