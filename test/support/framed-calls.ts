// Answers with calls of tools, drawn by a seed, in the pieces in which one endpoint or another would send them, and some
// of the pieces sent again. A piece out of the middle of a text is never sent again by itself: within a string nobody can
// know it from text that is meant so.
import type { CallPiece } from '../../src/adapters/models/call-piece.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { seededRandom, type Random } from './faults/random.ts';

export interface FramedAnswer {
  /** Name and arguments of each call. */
  readonly meant: readonly Meant[];
  readonly pieces: readonly CallPiece[];
  readonly isSaidAgain: boolean;
  /** Arguments may be those of another call, without any: it may be refused also where nothing is said again. */
  readonly isUnclear: boolean;
}

interface Meant {
  readonly name: string;
  readonly args: JsonObject;
}

/** How one endpoint frames calls. */
interface Framing {
  /** `one off`: arguments come one index below their name, as in LibreChat#13987. */
  readonly places: 'own' | 'all alike' | 'none' | 'one off';
  readonly ids: 'none' | 'first' | 'each';
  readonly names: 'first' | 'each';
  readonly firstPlace: number;
  /** What it has in place of an id or a name. */
  readonly nothing: '' | 'null' | null | undefined;
  readonly args: 'value' | 'text' | 'characters' | 'after {}';
  readonly isInterleaved: boolean;
}

/** As endpoints spell that a call has no arguments. */
const NO_ARGUMENTS = ['', null, 'null', '{}'] as const;

const TEXTS = ['x', 'x y', ' ', '  \n\t ', '}{', '" \\', ''] as const;

export function framedAnswer(seed: number): FramedAnswer {
  const random = seededRandom(seed);
  const framing = framingOf(random);
  const isTold = framing.ids !== 'none' || framing.places === 'own';
  const drawn = Array.from({ length: 1 + random.below(4) }, () => callOf(random));
  const meant = isTold ? drawn : drawn.filter(isFirstOfItsKind);
  const calls = meant.map((call, index) => piecesOf(random, framing, { call, index, isTold }));
  const pieces = framing.isInterleaved ? interleaved(random, calls) : calls.flat();
  const isSaidAgain = random.chance(0.6);
  return {
    meant,
    pieces: isSaidAgain ? saidAgain(random, framing, { calls, pieces }) : pieces,
    isSaidAgain,
    isUnclear:
      framing.places === 'one off' ||
      (framing.isInterleaved && meant.some(isBare)) ||
      (!isTold && goesOn(meant)),
  };
}

function framingOf(random: Random): Framing {
  const places = random.pick<Framing['places']>([
    ...(['own', 'own', 'own', 'all alike', 'all alike', 'none', 'none', 'one off'] as const),
  ]);
  const isOneOff = places === 'one off';
  return {
    places,
    ids: isOneOff ? 'first' : random.pick(['none', 'first', 'each']),
    names: isOneOff ? 'first' : random.pick(['first', 'first', 'each']),
    firstPlace: random.pick([0, 0, 1, -1]),
    nothing: random.pick(['', 'null', null, undefined]),
    args: random.pick(['value', 'text', 'text', 'characters', isOneOff ? 'text' : 'after {}']),
    isInterleaved: places === 'own' && random.chance(0.3),
  };
}

function callOf(random: Random): Meant {
  const value = (): JsonValue =>
    random.pick<() => JsonValue>([
      () => random.pick(TEXTS),
      () => random.below(3),
      () => ({ [random.pick(TEXTS)]: random.pick(TEXTS) }),
      () => [random.pick(TEXTS), null],
    ])();
  const members = ['a', 'b c', 'd'].slice(0, random.below(4)).map((name) => [name, value()]);
  const args = Object.fromEntries(members) as JsonObject;
  return { name: random.pick(['get', 'put', 'get_order']), args };
}

/** Of calls without ids at one place, equal ones are one that was sent again. */
function isFirstOfItsKind(call: Meant, index: number, all: readonly Meant[]): boolean {
  const key = JSON.stringify(call);
  return all.findIndex((other) => JSON.stringify(other) === key) === index;
}

function isBare({ args }: Meant): boolean {
  return Object.keys(args).length === 0;
}

/** Without ids, a call of a name after one without arguments may be that one. */
function goesOn(meant: readonly Meant[]): boolean {
  return meant.some((call, at) => isBare(call) && meant[at + 1]?.name === call.name);
}

function piecesOf(
  random: Random,
  framing: Framing,
  { call, index, isTold }: { call: Meant; index: number; isTold: boolean },
): CallPiece[] {
  const { places, ids, names, firstPlace, nothing, args } = framing;
  const own = firstPlace + index;
  const [place, below] = {
    own: [own, own],
    'all alike': [0, 0],
    none: [],
    'one off': [own, own - 1],
  }[places] as [number?, number?];
  const none = nothing === 'null' ? '' : nothing;
  const id = `call_${index}`;
  const head = { place, id: ids === 'none' ? nothing : id, name: call.name };
  const tail = {
    ...{ place: below, id: ids === 'each' ? id : nothing },
    name: names === 'each' ? call.name : none,
  };
  if (isBare(call) && isTold && random.chance(0.5))
    return [
      { ...head, args: random.pick(['', null, 'null']) },
      ...(places === 'one off' && random.chance(0.5) ? [argued('')] : []),
    ];
  if (args === 'value') return [{ ...head, args: call.args }];
  const text = JSON.stringify(call.args, null, random.pick([0, 0, 1]));
  if (args === 'after {}' && names === 'first' && isTold && !framing.isInterleaved)
    return [{ ...head, args: '{}' }, ...(isBare(call) ? [] : cut(random, text)).map(argued)];
  const first = names === 'first' && random.chance(0.5) ? [''] : [];
  const parts = args === 'characters' ? [...text] : cut(random, text);
  return [...first, ...parts].map((part, at) => ({ ...(at === 0 ? head : tail), args: part }));

  function argued(part: string): CallPiece {
    return { ...tail, args: part };
  }
}

/** Up to four parts, none of them empty. */
function cut(random: Random, text: string): string[] {
  const places = Array.from({ length: random.below(4) }, () => random.below(text.length));
  const ends = [0, ...places.toSorted((a, b) => a - b), text.length];
  return ends.flatMap((end, at) => text.slice(ends[at - 1] ?? 0, end) || []);
}

/** Those of one call in their order. */
function interleaved(random: Random, calls: readonly (readonly CallPiece[])[]): CallPiece[] {
  const rest = calls.map((pieces) => [...pieces]);
  const all: CallPiece[] = [];
  for (let open = rest; open.length > 0; open = open.filter((pieces) => pieces.length > 0))
    all.push(...(open[random.below(open.length)]?.splice(0, 1) ?? []));
  return all;
}

function saidAgain(
  random: Random,
  framing: Framing,
  { calls, pieces }: { calls: readonly CallPiece[][]; pieces: readonly CallPiece[] },
): CallPiece[] {
  const call = calls[random.below(calls.length)] ?? [];
  const after = (piece: CallPiece | undefined): number =>
    pieces.findIndex((each) => each === piece) + 1;
  const later = (from: number): number => from + random.below(pieces.length - from + 1);
  // Else it may come within a string, as a piece of that.
  const isApart = framing.names === 'first' || framing.places === 'own' || framing.ids === 'each';
  const place = framing.ids === 'none' ? {} : { place: random.below(6) };
  const restart = (): CallPiece[] =>
    framing.isInterleaved ? [...pieces, ...pieces] : restarted(random, calls);
  // A single piece of another call would come where only its place in the order says whose the arguments are.
  if (framing.places === 'one off') return restart();
  return random.pick<() => CallPiece[]>([
    () => [...pieces, ...pieces],
    () => pieces.toSpliced(isApart ? later(after(call.at(-1))) : pieces.length, 0, ...call),
    // At another index, as one piece or as before.
    () => [...pieces, ...call.map((piece) => ({ ...piece, ...place }))],
    // The piece with the name. Where all have it, it is one out of the middle.
    () => {
      const at = framing.names === 'each' ? pieces.length : later(after(call[0]));
      return pieces.toSpliced(at, 0, ...call.slice(0, 1));
    },
    () => pieces.toSpliced(later(after(call[0])), 0, { ...call.at(-1), args: '' }),
    // A call without arguments, in other words for none.
    () => [
      ...pieces,
      ...(call.length > 1 ? call : call.map((piece) => inOtherWords(random, piece))),
    ],
    restart,
  ])();
}

function inOtherWords(random: Random, piece: CallPiece): CallPiece {
  const isNone = NO_ARGUMENTS.some((none) => none === (piece.args ?? null));
  return isNone ? { ...piece, args: random.pick(NO_ARGUMENTS) } : piece;
}

/** Cut off after a call, or after the name of one, and begun again, with the first call or with a later one. */
function restarted(random: Random, calls: readonly CallPiece[][]): CallPiece[] {
  const cut = random.below(calls.length);
  const last = calls[cut] ?? [];
  const isNameAlone = last.length > 1 && last[0]?.args === '' && random.chance(0.7);
  const before = [...calls.slice(0, cut).flat(), ...(isNameAlone ? last.slice(0, 1) : last)];
  return [...before, ...calls.slice(random.below(cut + 1)).flat()];
}
