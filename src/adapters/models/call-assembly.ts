// Calls of tools out of the pieces in which an endpoint sends them. Endpoints differ in what they say with a piece, and
// many say a call again: what is performed depends on none of that (architecture §11, I121). Where pieces can be read in
// two ways, the answer is malformed and nothing is performed. Tables on top; pure.
import { HostError } from '../../rules/errors.ts';
import { uncertainIn, type JsonFault } from '../../rules/json-text.ts';
import { argumentKey, ArgumentText } from './argument-text.ts';
import type { SentCall } from './decision-tool.ts';
import { MODEL_ANSWER_CALLS } from './limits.ts';
import { OutputMeter } from './model-output.ts';

/** As it was sent: nothing is believed of it. Empty texts and null are absent. */
export interface CallPiece {
  readonly place?: unknown;
  readonly id?: unknown;
  readonly name?: unknown;
  /** Text, or a value in place of its text. */
  readonly args?: unknown;
}

/** Whose piece it is: the call with its id, the one at its place (without a place: of the piece before), a new one. */
type Owner = 'of its id' | 'at its place' | 'the only open one' | 'a new one';

const OWNERS: Record<
  'known id' | 'new id' | 'no id',
  Record<'named' | 'nameless', Record<'taken' | 'free', Owner>>
> = {
  'known id': {
    named: { taken: 'of its id', free: 'of its id' },
    nameless: { taken: 'of its id', free: 'of its id' },
  },
  'new id': {
    named: { taken: 'a new one', free: 'a new one' },
    nameless: { taken: 'at its place', free: 'a new one' },
  },
  'no id': {
    named: { taken: 'at its place', free: 'a new one' },
    nameless: { taken: 'at its place', free: 'the only open one' },
  },
};

/** `named`: no arguments so far; `again`: more of them after whole ones. */
export type CallState = 'named' | 'arguing' | 'whole' | 'again' | 'malformed';

/** What a name in a piece of a call that had begun means. */
type NameMeans =
  | 'the name'
  | 'nothing'
  | 'more of the name'
  | 'more or another call'
  | 'another call'
  | 'nothing or another call'
  | 'malformed';

const NAMES: Record<
  'by id' | 'by place',
  Record<CallState, Record<'first' | 'equal' | 'other', NameMeans>>
> = {
  'by id': {
    named: { first: 'the name', equal: 'nothing', other: 'more of the name' },
    arguing: { first: 'the name', equal: 'nothing', other: 'malformed' },
    whole: { first: 'the name', equal: 'nothing', other: 'malformed' },
    again: { first: 'the name', equal: 'nothing', other: 'malformed' },
    malformed: { first: 'the name', equal: 'nothing', other: 'malformed' },
  },
  'by place': {
    named: { first: 'the name', equal: 'nothing', other: 'more or another call' },
    arguing: { first: 'the name', equal: 'nothing', other: 'malformed' },
    whole: { first: 'another call', equal: 'nothing or another call', other: 'another call' },
    again: { first: 'the name', equal: 'nothing', other: 'malformed' },
    malformed: { first: 'the name', equal: 'nothing', other: 'malformed' },
  },
};

/** A part of a value; the first whole one; one like it; another one, or a part where there should be none. */
const ARGUMENTS: Record<CallState, Record<'part' | 'first' | 'equal' | 'other', CallState>> = {
  named: { part: 'arguing', first: 'whole', equal: 'malformed', other: 'malformed' },
  arguing: { part: 'arguing', first: 'whole', equal: 'malformed', other: 'malformed' },
  whole: { part: 'again', first: 'malformed', equal: 'whole', other: 'malformed' },
  again: { part: 'again', first: 'malformed', equal: 'whole', other: 'malformed' },
  malformed: { part: 'malformed', first: 'malformed', equal: 'malformed', other: 'malformed' },
};

/** A piece whose members are what they should be. `text`: the arguments, whatever they came as. */
interface Piece {
  readonly place: number | undefined;
  readonly id: string | undefined;
  readonly name: string;
  readonly args: unknown;
  readonly text: string;
}

class Call {
  readonly place: number;
  /** The call after which this one began at the same place, without an id. */
  readonly after: Call | undefined;
  /** The first call of such a row. */
  readonly root: Call;
  readonly isPlaced: boolean;
  name: string;
  hasId: boolean;
  state: CallState = 'named';
  fault: JsonFault | undefined;
  /** A sentence about a call that contradicts itself. */
  contradiction: string | undefined;
  readonly #text = new ArgumentText();
  #whole: string | undefined;
  /** Without what was only said again. */
  #kept = '';

  constructor(piece: Piece, place: number, after?: Call) {
    const { name, id } = piece;
    this.place = place;
    this.isPlaced = piece.place !== undefined;
    this.name = name;
    this.hasId = id !== undefined;
    this.after = after;
    this.root = after?.root ?? this;
  }

  get isOpen(): boolean {
    return this.state === 'named' || this.state === 'arguing';
  }

  get arguments(): string {
    return this.#kept + this.#text.rest;
  }

  get key(): string {
    return JSON.stringify([this.name, argumentKey(this.arguments)]);
  }

  get malformed(): string | undefined {
    if (this.contradiction !== undefined) return this.contradiction;
    const title = this.name === '' ? 'A call' : `The call of ${this.name}`;
    if (this.state === 'malformed') return `${title} came with two different arguments.`;
    if (this.#text.isNumberInPieces) return `${title} came with a number in several pieces.`;
    return undefined;
  }

  contradict(sentence: string): void {
    this.state = 'malformed';
    this.contradiction ??= sentence;
  }

  /** A value that came as one has no pieces: it ends no text that had begun. */
  argue({ args, text }: Piece): void {
    if (typeof args !== 'string') this.fault ??= uncertainIn(args);
    if (typeof args === 'string') for (const value of this.#text.take(text)) this.#add(value);
    else if (this.#text.rest !== '') this.#reach('other', text);
    else this.#add(text);
    if (this.#text.rest !== '') this.#reach('part', '');
  }

  #add(value: string): void {
    const key = argumentKey(value);
    const isEqual = key === this.#whole;
    const said = this.#whole === undefined ? 'first' : isEqual ? 'equal' : 'other';
    this.#whole ??= key;
    this.#reach(said, said === 'equal' ? '' : value);
  }

  #reach(said: keyof (typeof ARGUMENTS)[CallState], kept: string): void {
    this.state = ARGUMENTS[this.state][said];
    this.#kept += kept;
  }
}

export class CallAssembly {
  readonly #offered: readonly string[];
  readonly #meter: OutputMeter;
  /** Ids are no output, but they are kept. */
  readonly #idMeter = new OutputMeter();
  /** In the order in which they began. */
  readonly #calls: Call[] = [];
  readonly #open = new Set<Call>();
  readonly #byId = new Map<string, Call>();
  readonly #byPlace = new Map<number, Call>();
  #last: Call | undefined;

  /** `offered` are names as the provider knows them. What is said again is counted by the meter, too. */
  constructor(offered: readonly string[], meter = new OutputMeter()) {
    this.#offered = offered;
    this.#meter = meter;
  }

  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** Throws HostError model_output_too_large. */
  take(sent: CallPiece): void {
    const piece = pieceOf(sent);
    const { id, name, text, place } = piece;
    this.#meter.take(name);
    this.#meter.take(text);
    if (id === undefined && name === '' && text.trim() === '') return;
    const owner = this.#ownerOf(piece);
    const call = owner ? this.#named(owner, piece) : this.#begin(piece);
    if (id !== undefined) {
      if (!this.#byId.has(id)) this.#byId.set(this.#idMeter.take(id), call);
      if (place !== undefined) this.#byPlace.set(place, call);
      call.hasId = true;
    }
    call.argue(piece);
    if (!call.isOpen) this.#open.delete(call);
    this.#last = call;
  }

  #ownerOf({ place, id, name, text }: Piece): Call | undefined {
    const known = id === undefined ? undefined : this.#byId.get(id);
    const here = place === undefined ? this.#last : this.#byPlace.get(place);
    const idSaid = known ? 'known id' : id === undefined ? 'no id' : 'new id';
    const owner = OWNERS[idSaid][name === '' ? 'nameless' : 'named'][here ? 'taken' : 'free'];
    switch (owner) {
      case 'of its id':
        return known;
      case 'at its place':
        // Arguments under an id of their own after whole ones are those of a call that nobody has named.
        return id !== undefined && !here?.isOpen && text.trim() !== '' ? undefined : here;
      case 'the only open one':
        return this.#open.size === 1 ? [...this.#open][0] : undefined;
      case 'a new one':
        return undefined;
    }
  }

  #begin(piece: Piece, after?: Call): Call {
    if (this.#calls.length >= MODEL_ANSWER_CALLS) throw new HostError('model_output_too_large');
    const place = piece.place ?? after?.place ?? this.#calls.length;
    const call = new Call(piece, place, after);
    if (piece.place !== undefined || after !== undefined || !this.#byPlace.has(place))
      this.#byPlace.set(place, call);
    this.#calls.push(call);
    this.#open.add(call);
    return call;
  }

  /** The call that the piece goes on with, or begins, after its name. */
  #named(call: Call, piece: Piece): Call {
    const { name, id } = piece;
    if (name === '') return call;
    const said = call.name === '' ? 'first' : call.name === name ? 'equal' : 'other';
    switch (NAMES[id === undefined ? 'by place' : 'by id'][call.state][said]) {
      case 'the name':
        call.name = name;
        return call;
      case 'nothing':
        if (call.state === 'named' && this.#begins(name + name)) contradict(call, name);
        return call;
      case 'more of the name':
        return this.#lengthened(call, name);
      case 'more or another call':
        if (this.#areTwo(call.name, name) && !this.#begins(call.name + name))
          return this.#begin(piece, call);
        return this.#lengthened(call, name);
      case 'nothing or another call':
        // Where calls have ids, the name alone is said once more.
        return call.hasId && piece.text.trim() === '' ? call : this.#begin(piece, call);
      case 'another call':
        return this.#begin(piece, call);
      case 'malformed':
        contradict(call, name);
        return call;
    }
  }

  #lengthened(call: Call, name: string): Call {
    if (this.#areTwo(call.name, name) || !this.#begins(call.name + name)) contradict(call, name);
    else call.name += name;
    return call;
  }

  #areTwo(one: string, other: string): boolean {
    return this.#offered.includes(one) && this.#offered.includes(other);
  }

  #begins(name: string): boolean {
    return this.#offered.some((offered) => offered.startsWith(name));
  }

  /** Calls in the order of their places, then of their beginning; `malformed` is a sentence for the model. */
  end(): { readonly calls: readonly SentCall[]; readonly malformed?: string } {
    const { calls, doubt } = withoutRepeats(this.#calls);
    const malformed = this.#calls.find((call) => call.malformed !== undefined)?.malformed ?? doubt;
    return {
      calls: calls
        .toSorted((a, b) => a.place - b.place)
        .map(({ name, arguments: sent, fault }) => ({ name, arguments: sent, fault })),
      ...(malformed === undefined ? {} : { malformed }),
    };
  }
}

/**
 * A call without an id that is like one at its place was said again. Like one elsewhere it is another call, unless only
 * one of the two has a place. Where only some calls of a tool have ids, nobody knows how many were meant.
 */
function withoutRepeats(all: readonly Call[]): { calls: Call[]; doubt: string | undefined } {
  const byKey = new Map<string, Call[]>();
  const byName = new Map<string, Call>();
  let doubt: string | undefined;
  const calls = all.filter((call) => {
    const { key, name, after, root, hasId, isPlaced, fault } = call;
    const alike = byKey.get(key) ?? [];
    if (!hasId && !fault && alike.some((other) => other.root === root)) return false;
    const isMixed = (byName.get(name)?.hasId ?? hasId) !== hasId;
    if (isMixed || (!hasId && alike.some((other) => other.isPlaced !== isPlaced)))
      doubt ??= `The call of ${name} came twice, and it is not clear whether two were meant.`;
    if (!hasId && call.state === 'named' && after?.name === name)
      doubt ??= `The call of ${name} came twice, the second time without arguments.`;
    byKey.set(key, [...alike, call]);
    byName.set(name, call);
    return true;
  });
  return { calls, doubt };
}

function contradict(call: Call, name: string): void {
  call.contradict(`One call came with two names, ${call.name} and ${name}.`);
}

function pieceOf({ place, id, name, args }: CallPiece): Piece {
  const value = args ?? '';
  return {
    place: Number.isInteger(place) ? (place as number) : undefined,
    id: textIn(typeof id === 'number' ? String(id) : id),
    name: textIn(name) ?? '',
    args: value,
    text: typeof value === 'string' ? value : JSON.stringify(value),
  };
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
