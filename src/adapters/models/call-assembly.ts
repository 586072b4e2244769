// Calls of tools out of the pieces in which an endpoint sends them. Endpoints differ in what they say with a piece, and
// many say a call again: what is performed depends on none of that (architecture §11, I121). Where pieces can be read in
// two ways, the answer is malformed and nothing is performed. Tables on top; pure. Four mechanisms decide:
// 1. OWNERS and NAMES say whose a piece is, by id, place and name: for endpoints whose ids or indexes are all alike, change
//    or come once (Mistral, SGLang), and one id with two names is malformed.
// 2. ARGUMENTS in call-in-pieces.ts compares what comes with what the call has: for endpoints that say a call again, or
//    `{}` before its arguments (LiteLLM), and two different arguments are malformed.
// 3. `#checkOwner` doubts arguments without a name and an id that another call may lack: for endpoints whose indexes are one
//    too low (LibreChat's) or those of the tools (SGLang); `#isNamesakes` doubts those with a name that fits both calls.
// 4. `withoutRepeats` compares whole calls at the end: for endpoints without ids that begin an answer again or sum it up.
// An id that comes late, on a piece that says nothing else, is taken for that of the call at its place: two calls that are
// alike at two places stay two.
import { HostError } from '../../rules/errors.ts';
import { argumentKey, NO_ARGUMENTS } from './argument-text.ts';
import { Call, isShown, titleOf, type CallState } from './call-in-pieces.ts';
import { isNothing, pieceOf, type CallPiece, type Piece, type Said } from './call-piece.ts';
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

const ONE_NAME = { first: 'the name', equal: 'nothing', other: 'malformed' } as const;
const ANOTHER_CALL = {
  first: 'another call',
  equal: 'nothing or another call',
  other: 'another call',
} as const;

const NAMES: Record<
  'by id' | 'by place',
  Record<CallState, Record<'first' | 'equal' | 'other', NameMeans>>
> = {
  'by id': {
    named: { ...ONE_NAME, other: 'more of the name' },
    empty: ONE_NAME,
    arguing: ONE_NAME,
    whole: ONE_NAME,
    again: ONE_NAME,
    malformed: ONE_NAME,
  },
  'by place': {
    named: { ...ONE_NAME, other: 'more or another call' },
    empty: ANOTHER_CALL,
    arguing: ONE_NAME,
    whole: ANOTHER_CALL,
    again: ONE_NAME,
    malformed: ONE_NAME,
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
  /** Calls that had a name alone when arguments without a name began for an earlier one. */
  readonly #passed = new Set<Call>();
  /** By the index of no call: the calls that were given the arguments which came there. */
  readonly #strays = new Map<number | undefined, Set<Call>>();
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
    const piece = this.#pieceOf(sent);
    const { id, name, text, place, said } = piece;
    this.#meter.take(name);
    this.#meter.take(text);
    const here = this.#at(place);
    const owner = this.#ownerOf(piece, here);
    if (owner === 'nobody') return;
    if (owner && this.#isEmptyTail(owner, piece)) return;
    const call = owner ? this.#named(owner, piece) : this.#begin(piece);
    if (call === owner && here && here !== call && !here.isNameRepeated) call.displaced.add(here);
    if (id !== undefined) this.#identify(call, id, place);
    if (owner && this.#isNamesakes(owner, piece)) this.#doubt ??= UNCLEAR_OWNER;
    if (name !== '') this.#lastNamed = call;
    else if (said === 'arguments' && call.state !== 'arguing') this.#checkOwner(call, piece);
    call.argue(piece);
    if (call.isOpen) this.#open.add(call);
    else this.#open.delete(call);
    this.#last = call;
  }

  /**
   * A word for nothing in place of a name is none where the piece says nothing else, or goes on with a call: with the one of
   * its id, else with the one at its place, if that has an id or is in the middle of its arguments. Elsewhere it is the
   * name of a call, and it is a name, or a part of one, wherever a tool's name holds it.
   */
  #pieceOf(sent: CallPiece): Piece {
    const piece = pieceOf(sent);
    const { id, name, text, place } = piece;
    const isWord = name !== '' && isNothing(name);
    if (!isWord || this.#offered.some((offered) => offered.includes(name))) return piece;
    const saysNothing = id === undefined && text.trim() === '';
    const call = id === undefined ? this.#at(place) : this.#byId.get(id);
    const goesOn = call !== undefined && (call.hasId || call.isWithin);
    return saysNothing || goesOn ? pieceOf({ ...sent, name: '' }) : piece;
  }

  /** Without a place: the call of the piece before. */
  #at(place: number | undefined): Call | undefined {
    return place === undefined ? this.#last : this.#byPlace.get(place);
  }

  /** Undefined: a new call's. */
  #ownerOf({ id, said, place }: Piece, here: Call | undefined): Call | 'nobody' | undefined {
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
        return this.#open.size === 1 ? this.#onlyOpen(place) : undefined;
      case 'a new one':
        return undefined;
      case 'nobody':
        return owner;
    }
  }

  #onlyOpen(place: number | undefined): Call | undefined {
    const [call] = this.#open;
    if (call) this.#strays.set(place, (this.#strays.get(place) ?? new Set()).add(call));
    return call;
  }

  /** The same arguments for two calls, at the index of no call: they may be those of the first, said again. */
  #isStrayRepeated(): boolean {
    const strays = [...this.#strays.values()];
    const given = new Set(strays.flatMap((calls) => [...calls]));
    const keyOf = new Map([...given].map((call) => [call, argumentKey(call.arguments)]));
    return strays.some((calls) => {
      const keys = [...calls].map((call) => keyOf.get(call));
      return new Set(keys).size < keys.length;
    });
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
  #checkOwner(call: Call, { id, place }: Piece): void {
    const displaced = [...call.displaced].filter(
      ({ state }) => state === 'named' || state === 'empty',
    );
    if (call.state === 'empty' && call === this.#lastNamed && call.isAt(place) && !displaced.length)
      call.forget();
    else if (
      id === undefined &&
      (call.isOpen ? displaced.length > 0 : this.#isMissed(call, displaced))
    )
      this.#doubt ??= UNCLEAR_OWNER;
    else if (id === undefined && this.#lastNamed !== call && this.#lastNamed?.state === 'named')
      this.#passed.add(this.#lastNamed);
  }

  /** Arguments with the name of two calls, and no id: they may be those of the displaced one, which has none so far. */
  #isNamesakes(call: Call, { id, name, text }: Piece): boolean {
    if (id !== undefined || text.trim() === '' || call.name !== name || call.isWithin) return false;
    return [...call.displaced].some((other) => other.state === 'named' && other.name === name);
  }

  /**
   * `{}` without a name after the whole arguments of the one call at its place, while no call takes arguments: some
   * endpoints close a call with it that they gave whole.
   */
  #isEmptyTail(call: Call, { id, name, text }: Piece): boolean {
    if (id !== undefined || name !== '' || call.state !== 'whole' || this.#open.size > 0)
      return false;
    const isAlone = this.#calls.every((other) => other === call || other.place !== call.place);
    return isAlone && text.trim() === NO_ARGUMENTS;
  }

  #isMissed(call: Call, displaced: readonly Call[]): boolean {
    return [this.#lastNamed, ...displaced].some(
      (other) => other !== call && other?.state === 'named',
    );
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
        call.isNameRepeated = true;
        if (call.state === 'named' && this.#begins(name + name)) contradict(call, name);
        return call;
      case 'more of the name':
        return this.#lengthened(call, name);
      case 'more or another call':
        if (this.#areTwo(call.name, name) && !this.#begins(call.name + name))
          return this.#begin(piece, call);
        return this.#lengthened(call, name);
      case 'nothing or another call':
        return call.isRepeatedBy(piece) ? call : this.#begin(piece, call);
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
    const isUnclear =
      this.#isStrayRepeated() || [...this.#passed].some(({ state }) => state === 'named');
    const malformed = contradiction ?? this.#doubt ?? (isUnclear ? UNCLEAR_OWNER : doubt);
    return {
      calls: calls
        .toSorted((a, b) => a.place - b.place)
        .map(({ name, arguments: sent, fault }) => ({ name, arguments: sent, fault })),
      ...(malformed === undefined ? {} : { malformed }),
    };
  }
}

const UNCLEAR_OWNER = 'Arguments came of which it is not clear whose they are.';

/**
 * A call without an id that is like one at its place was said again. Like one elsewhere it is another call, unless only
 * one of the two has a place. Where only some calls of a tool have ids, nobody knows how many were meant, unless each
 * has a place and arguments of its own.
 */
function withoutRepeats(all: readonly Call[]): { calls: Call[]; doubt: string | undefined } {
  const byKey = new Map<string, Call[]>();
  const byName = new Map<string, Call[]>();
  const isEmptyNone = all.some(({ wasEmpty }) => wasEmpty);
  const calls: Call[] = [];
  let doubt: string | undefined;
  for (const call of all) {
    const { key, name, root, hasId, fault } = call;
    const alike = byKey.get(key) ?? [];
    const namesakes = byName.get(name) ?? [];
    if (!hasId && !fault && alike.some((other) => other.root === root)) continue;
    if (isMixed(call, alike, namesakes))
      doubt ??= `${titleOf(name)} came twice, and it is not clear whether two were meant.`;
    const earlier = namesakes.filter((other) => other.root === root);
    if (!hasId && isDoubted(call, earlier, isEmptyNone))
      doubt ??= `${titleOf(name)} came twice, once without arguments or after a call without them.`;
    byKey.set(key, [...alike, call]);
    byName.set(name, [...namesakes, call]);
    calls.push(call);
  }
  return { calls, doubt };
}

function isMixed(call: Call, alike: readonly Call[], namesakes: readonly Call[]): boolean {
  const { hasId, isPlaced } = call;
  if (!hasId && alike.some((other) => other.isPlaced !== isPlaced)) return true;
  const others = namesakes.filter((other) => other.hasId !== hasId);
  return others.some((other) => alike.length > 0 || !areApart(call, other));
}

/**
 * A name comes again, without an id, after calls of the same name at its place. Without arguments, or after one without
 * them, it may be those, said again; after another call without arguments it may be in the middle of that one; and the
 * name alone after `{}` beside it may be that call, which goes on. `isEmptyNone`: `{}` beside a name was nothing yet.
 */
function isDoubted(call: Call, earlier: readonly Call[], isEmptyNone: boolean): boolean {
  const isBare = ({ state }: Call): boolean =>
    state === 'named' || (state === 'empty' && isEmptyNone);
  const bare = [call, call.after, ...earlier].filter((each) => each !== undefined && isBare(each));
  const goesOn =
    call.beganBare && earlier.some((each) => each === call.after && each.state === 'empty');
  return earlier.length > 0 && (bare.length > 0 || goesOn);
}

/** Whether each has a place and arguments of its own. */
function areApart(one: Call, other: Call): boolean {
  const haveArguments = one.state !== 'named' && other.state !== 'named';
  return haveArguments && one.isPlaced && other.isPlaced && one.place !== other.place;
}

function contradict(call: Call, name: string): void {
  call.contradict(() => {
    const names = [call.name, name];
    const which = names.every(isShown) ? `, ${names.join(' and ')}` : '';
    return `One call came with two names${which}.`;
  });
}
