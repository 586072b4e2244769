// Calls of tools out of the pieces in which an endpoint sends them. Endpoints differ in what they say with a piece, and
// many say a call again: what is performed depends on none of that (architecture §11, I121). Where pieces can be read in
// two ways, the answer is malformed and nothing is performed. Tables on top; pure.
import { HostError } from '../../rules/errors.ts';
import { Call, isShown, titleOf, type CallState } from './call-in-pieces.ts';
import { pieceOf, type CallPiece, type Piece, type Said } from './call-piece.ts';
import type { SentCall } from './decision-tool.ts';
import { MODEL_ANSWER_CALLS } from './limits.ts';
import { OutputMeter } from './model-output.ts';

/** Whose piece it is: the call with its id, the one at its place (without a place: of the piece before), a new one. */
type Owner = 'of its id' | 'at its place' | 'the only open one' | 'a new one' | 'nobody';

type IdIs = 'known' | 'new' | 'none';
/** What is at the place: no call, one that still takes arguments, one that has them. */
type PlaceIs = 'free' | 'open' | 'closed';

const OF_ITS_ID = { free: 'of its id', open: 'of its id', closed: 'of its id' } as const;
const A_NEW_ONE = { free: 'a new one', open: 'a new one', closed: 'a new one' } as const;
const AT_ITS_PLACE = { free: 'a new one', open: 'at its place', closed: 'at its place' } as const;
const NOBODY = { free: 'nobody', open: 'nobody', closed: 'nobody' } as const;

const OWNERS: Record<IdIs, Record<Said, Record<PlaceIs, Owner>>> = {
  known: {
    'a name': OF_ITS_ID,
    arguments: OF_ITS_ID,
    'white space': OF_ITS_ID,
    nothing: OF_ITS_ID,
  },
  // Some endpoints give each piece an id of its own. After whole arguments, others are those of a call without a name.
  new: {
    'a name': A_NEW_ONE,
    arguments: { free: 'a new one', open: 'at its place', closed: 'a new one' },
    'white space': { free: 'a new one', open: 'at its place', closed: 'nobody' },
    nothing: { free: 'a new one', open: 'nobody', closed: 'nobody' },
  },
  none: {
    'a name': AT_ITS_PLACE,
    arguments: { ...AT_ITS_PLACE, free: 'the only open one' },
    'white space': { ...AT_ITS_PLACE, free: 'the only open one' },
    nothing: NOBODY,
  },
};

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
    empty: { first: 'the name', equal: 'nothing', other: 'malformed' },
    arguing: { first: 'the name', equal: 'nothing', other: 'malformed' },
    whole: { first: 'the name', equal: 'nothing', other: 'malformed' },
    again: { first: 'the name', equal: 'nothing', other: 'malformed' },
    malformed: { first: 'the name', equal: 'nothing', other: 'malformed' },
  },
  'by place': {
    named: { first: 'the name', equal: 'nothing', other: 'more or another call' },
    empty: { first: 'another call', equal: 'nothing or another call', other: 'another call' },
    arguing: { first: 'the name', equal: 'nothing', other: 'malformed' },
    whole: { first: 'another call', equal: 'nothing or another call', other: 'another call' },
    again: { first: 'the name', equal: 'nothing', other: 'malformed' },
    malformed: { first: 'the name', equal: 'nothing', other: 'malformed' },
  },
};

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
  /** Of the piece before, and of the last piece with a name. */
  #last: Call | undefined;
  #lastNamed: Call | undefined;
  /** A sentence: pieces that may have been those of another call. */
  #doubt: string | undefined;

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
    const { id, name, text, place, said } = piece;
    this.#meter.take(name);
    this.#meter.take(text);
    const here = place === undefined ? this.#last : this.#byPlace.get(place);
    const owner = this.#ownerOf(piece, here);
    if (owner === 'nobody') return;
    const call = owner ? this.#named(owner, piece) : this.#begin(piece);
    if (call === owner && here && here !== call && !here.isNamedAgain) call.over.add(here);
    if (id !== undefined) this.#identify(call, id, place);
    if (name !== '') this.#lastNamed = call;
    else if (said === 'arguments' && call.state !== 'arguing') this.#goOn(call, piece);
    call.argue(piece);
    if (call.isOpen) this.#open.add(call);
    else this.#open.delete(call);
    this.#last = call;
  }

  /** Undefined: a new call's. */
  #ownerOf({ id, said }: Piece, here: Call | undefined): Call | 'nobody' | undefined {
    const known = id === undefined ? undefined : this.#byId.get(id);
    const idIs = id === undefined ? 'none' : known ? 'known' : 'new';
    const placeIs = here === undefined ? 'free' : here.isOpen ? 'open' : 'closed';
    const owner = OWNERS[idIs][said][placeIs];
    switch (owner) {
      case 'of its id':
        return known;
      case 'at its place':
        return here;
      case 'the only open one':
        if (this.#open.size === 0 && said === 'white space') return 'nobody';
        return this.#open.size === 1 ? [...this.#open][0] : undefined;
      case 'a new one':
        return undefined;
      case 'nobody':
        return owner;
    }
  }

  #identify(call: Call, id: string, place: number | undefined): void {
    if (!this.#byId.has(id)) this.#byId.set(this.#idMeter.take(id), call);
    if (place !== undefined) this.#byPlace.set(place, call);
    call.hasId = true;
  }

  /**
   * Arguments without a name, in whole or their first piece. They may be those of another call, which has none so far; or
   * the call has its own, `{}` beside the name, as some endpoints begin each call.
   */
  #goOn(call: Call, { id, place }: Piece): void {
    const over = [...call.over].filter(({ state }) => state === 'named' || state === 'empty');
    if (call.state === 'empty' && call === this.#lastNamed && call.isAt(place) && !over.length)
      call.forget();
    else if (id === undefined && (call.isOpen ? over.length > 0 : this.#isMissed(call, over)))
      this.#doubt ??= 'Arguments came of which it is not clear whose they are.';
  }

  #isMissed(call: Call, over: readonly Call[]): boolean {
    return [this.#lastNamed, ...over].some((other) => other !== call && other?.state === 'named');
  }

  /** `before` had the place so far: the call may be that one, said again. */
  #begin(piece: Piece, before?: Call): Call {
    const after = before?.isAt(piece.place) ? before : undefined;
    if (this.#calls.length >= MODEL_ANSWER_CALLS) throw new HostError('model_output_too_large');
    const place = piece.place ?? after?.place ?? this.#calls.length;
    const call = new Call(piece, place, after);
    if (piece.place !== undefined || after !== undefined || !this.#byPlace.has(place))
      this.#byPlace.set(place, call);
    this.#calls.push(call);
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
        call.isNamedAgain = true;
        if (call.state === 'named' && this.#begins(name + name)) contradict(call, name);
        return call;
      case 'more of the name':
        return this.#lengthened(call, name);
      case 'more or another call':
        if (this.#areTwo(call.name, name) && !this.#begins(call.name + name))
          return this.#begin(piece, call);
        return this.#lengthened(call, name);
      case 'nothing or another call':
        return call.isToldBy(piece) ? call : this.#begin(piece, call);
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
    const contradiction = this.#calls.find((call) => call.malformed !== undefined)?.malformed;
    const malformed = contradiction ?? this.#doubt ?? doubt;
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
 * one of the two has a place. Where only some calls of a tool have ids, nobody knows how many were meant, unless each
 * has a place and arguments of its own.
 */
function withoutRepeats(all: readonly Call[]): { calls: Call[]; doubt: string | undefined } {
  const byKey = new Map<string, Call[]>();
  const byName = new Map<string, Call[]>();
  let doubt: string | undefined;
  const calls = all.filter((call) => {
    const { key, name, root, hasId, isPlaced, fault } = call;
    const alike = byKey.get(key) ?? [];
    const namesakes = byName.get(name) ?? [];
    if (!hasId && !fault && alike.some((other) => other.root === root)) return false;
    const mixed = namesakes.filter((other) => other.hasId !== hasId);
    const isMixed = mixed.some((other) => alike.length > 0 || !areApart(call, other));
    if (isMixed || (!hasId && alike.some((other) => other.isPlaced !== isPlaced)))
      doubt ??= `${titleOf(name)} came twice, and it is not clear whether two were meant.`;
    if (
      !hasId &&
      isDoubted(
        call,
        namesakes.filter((other) => other.root === root),
      )
    )
      doubt ??= `${titleOf(name)} came twice, once without arguments or after a call without them.`;
    byKey.set(key, [...alike, call]);
    byName.set(name, [...namesakes, call]);
    return true;
  });
  return { calls, doubt };
}

/**
 * A name comes again, without an id, after calls of the same name at its place. Without arguments it may be those, said
 * again; after a call without arguments it may be in the middle of that one.
 */
function isDoubted(call: Call, earlier: readonly Call[]): boolean {
  const isEmptyNone = earlier.some(({ wasEmpty }) => wasEmpty);
  const bare = [call, call.after].filter(
    (each) => each?.state === 'named' || (each?.state === 'empty' && isEmptyNone),
  );
  return earlier.length > 0 && bare.length > 0;
}

function areApart(one: Call, other: Call): boolean {
  return one.isPlaced && other.isPlaced && one.place !== other.place;
}

function contradict(call: Call, name: string): void {
  call.contradict(() => {
    const names = [call.name, name];
    const which = names.every(isShown) ? `, ${names.join(' and ')}` : '';
    return `One call came with two names${which}.`;
  });
}
