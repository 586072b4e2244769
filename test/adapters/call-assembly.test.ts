// Calls out of the pieces in which endpoints send them: what is performed does not depend on the framing (architecture
// §11, I121). Rows are pieces as they come, and the calls that they are, or a part of the sentence for the model.
import { describe, expect, test } from 'vitest';
import { CallAssembly, type CallPiece } from '../../src/adapters/models/call-assembly.ts';

const OFFERED = ['get', 'put', 'get_order', 'go', 'gogo'];
const A1 = '{"a":1}';

function assembled(pieces: readonly CallPiece[]) {
  const assembly = new CallAssembly(OFFERED);
  for (const piece of pieces) assembly.take(piece);
  return assembly.end();
}

/** Each call as its name and arguments. */
function callsOf(pieces: readonly CallPiece[]): string[] {
  const { calls, malformed } = assembled(pieces);
  expect(malformed).toBeUndefined();
  return calls.map(({ name, arguments: sent }) => `${name} ${sent}`);
}

/** A piece as most endpoints send it. */
const at = (place: number, id?: string, name?: string, args?: unknown): CallPiece => ({
  ...{ place, id, name, args },
});
const bare = (id?: string, name?: string, args?: unknown): CallPiece => ({ id, name, args });
const TWICE = 'came with two different arguments';
const NAMES = 'One call came with two names';
const UNCLEAR = 'it is not clear whether two were meant';
const TWO = [`get ${A1}`, `get ${A1}`];

describe('[I121] the same answer, however it is framed, is the same calls', () => {
  test.each<[string, CallPiece[], string[]]>([
    [
      'A1: the same whole piece twice',
      [at(0, 'a', 'get', A1), at(0, 'a', 'get', A1)],
      TWO.slice(1),
    ],
    [
      'A1: again in pieces',
      [at(0, 'a', 'get', A1), at(0, 'a', 'get', '{"a"'), at(0, '', '', ':1}')],
      TWO.slice(1),
    ],
    [
      'A1: again with white space',
      [at(0, 'a', 'get', A1), at(0, 'a', 'get', ' { "a" : 1.0 }\n')],
      TWO.slice(1),
    ],
    [
      'A1: again with its members in another order',
      [at(0, 'a', 'get', '{"a":1,"b":2}'), at(0, 'a', 'get', '{"b":2,"a":1}')],
      ['get {"a":1,"b":2}'],
    ],
    [
      'A2: a known id at another index',
      [at(0, 'a', 'get', A1), at(1, 'a', 'get', A1)],
      TWO.slice(1),
    ],
    [
      'A2: in pieces, of which the first has the id',
      [at(0, 'a', 'get', A1), at(1, 'a', 'get', ''), at(1, '', '', '{"a"'), at(1, '', '', ':1}')],
      TWO.slice(1),
    ],
    [
      'A3: whole calls all at index 0',
      [at(0, 'a', 'get', A1), at(0, 'b', 'put', A1), at(0, 'c', 'get', A1)],
      [`get ${A1}`, `put ${A1}`, `get ${A1}`],
    ],
    ['A4: no index, new ids', [bare('a', 'get', A1), bare('b', 'get', A1)], TWO],
    [
      'A4: no index, new ids, arguments in pieces',
      [bare('a', 'get', '{"a"'), bare('', '', ':1}'), bare('b', 'put', ''), bare('b', '', '{}')],
      [`get ${A1}`, 'put {}'],
    ],
    [
      'A5: no arguments at index 0',
      [at(0, 'a', 'get', ''), at(0, 'b', 'get', ''), at(0, 'c', 'put', '')],
      ['get ', 'get ', 'put '],
    ],
    [
      'A5: no arguments and no index',
      [bare('a', 'get', ''), bare('b', 'put', '')],
      ['get ', 'put '],
    ],
    [
      'A6: interleaved by index',
      [
        at(0, 'a', 'get', '{"a"'),
        at(1, 'b', 'put', '{"b"'),
        at(0, '', '', ':1}'),
        at(1, '', '', ':2}'),
      ],
      [`get ${A1}`, 'put {"b":2}'],
    ],
    [
      'A7: the id with each piece',
      [at(0, 'a', 'get', '{"a"'), at(0, 'a', '', ':1}')],
      TWO.slice(1),
    ],
    [
      'A8, A9: then null everywhere',
      [at(0, 'a', 'get', '{"a"'), { place: 0, id: null, name: null, args: ':1}' }],
      TWO.slice(1),
    ],
    [
      'A10: an id that changes between pieces',
      [at(0, 'a', 'get', '{"a"'), at(0, 'b', '', ':1'), at(0, 'c', '', '}')],
      TWO.slice(1),
    ],
    [
      'A10: the second id is known from then on',
      [at(0, 'a', 'get', '{"a"'), at(0, 'b', '', ':1}'), at(1, 'b', 'get', A1)],
      TWO.slice(1),
    ],
    [
      'A11: the name with each piece',
      [at(0, '', 'get', '{"a"'), at(0, '', 'get', ':1}')],
      TWO.slice(1),
    ],
    ['A14: equal arguments twice in one text', [at(0, 'a', 'get', A1 + A1)], TWO.slice(1)],
    ['A16: an index of -1', [at(-1, 'a', 'get', '{"a"'), at(-1, '', '', ':1}')], TWO.slice(1)],
    [
      'A17: indexes from 1, with a gap',
      [at(3, 'b', 'put', '{}'), at(1, 'a', 'get', A1)],
      [`get ${A1}`, 'put {}'],
    ],
    [
      'A18: arguments at an index of no call',
      [at(1, 'a', 'get', ''), at(0, '', '', '{"a"'), at(0, '', '', ':1}')],
      TWO.slice(1),
    ],
    ['A19: two ids, the same call', [at(0, 'a', 'get', A1), at(1, 'b', 'get', A1)], TWO],
    ['A20: no ids, two indexes, the same call', [at(0, '', 'get', A1), at(1, '', 'get', A1)], TWO],
    [
      'A21: out of the order of their indexes',
      [at(1, 'b', 'put', '{}'), at(0, 'a', 'get', A1)],
      [`get ${A1}`, 'put {}'],
    ],
    ['A22: a name in pieces', [at(0, '', 'get', ''), at(0, '', '_order', A1)], [`get_order ${A1}`]],
    [
      'A22: a name in pieces, with the id',
      [at(0, 'a', 'get_', ''), at(0, 'a', 'order', A1)],
      [`get_order ${A1}`],
    ],
    [
      'A23: two offered names at one index',
      [at(0, '', 'get', ''), at(0, '', 'put', '')],
      ['get ', 'put '],
    ],
    [
      'A24: a piece of nothing at the end',
      [at(0, 'a', 'get', A1), at(0, '', '', ''), at(5, '', '', '')],
      TWO.slice(1),
    ],
    ['A25: arguments as a value', [at(0, 'a', 'get', { a: 1 })], TWO.slice(1)],
    [
      'A26: arguments as a value, twice',
      [at(0, 'a', 'get', { a: 1 }), at(0, 'a', 'get', { a: 1 })],
      TWO.slice(1),
    ],
    [
      'A26: as text, then as a value',
      [at(0, 'a', 'get', A1), at(0, 'a', 'get', { a: 1 })],
      TWO.slice(1),
    ],
    ['A27: arguments of null', [at(0, 'a', 'get', null)], ['get ']],
    [
      'the same without an id at one index',
      [at(0, '', 'get', A1), at(0, '', 'get', A1)],
      TWO.slice(1),
    ],
    [
      'the same without an id, in pieces',
      [at(0, '', 'get', A1), at(0, '', 'get', '{"a"'), at(0, '', 'get', ':1}')],
      TWO.slice(1),
    ],
    [
      'the same without id and index',
      [bare('', 'get', A1), bare('', 'put', A1), bare('', 'get', A1)],
      [`get ${A1}`, `put ${A1}`],
    ],
    [
      'the same, its id and its name dropped',
      [at(0, 'a', 'get', A1), at(0, '', '', A1)],
      TWO.slice(1),
    ],
    ['the same, its id dropped', [at(0, 'a', 'get', A1), at(0, '', 'get', A1)], TWO.slice(1)],
    [
      'others without an id at one index',
      [at(0, '', 'get', A1), at(0, '', 'get', '{}')],
      [`get ${A1}`, 'get {}'],
    ],
    [
      'no arguments, then {}, under one id',
      [at(0, 'a', 'get', ''), at(0, 'a', 'get', '{}'), at(0, 'a', 'get', '')],
      ['get {}'],
    ],
    [
      'no arguments after {}, without an id',
      [at(0, '', 'get', '{}'), at(0, '', 'get', '')],
      ['get {}'],
    ],
    [
      'the name with each piece, the last one of nothing',
      [at(0, 'a', 'get', A1), at(0, '', 'get', '')],
      TWO.slice(1),
    ],
    [
      'brackets and quotes within a string',
      [at(0, '', 'get', '{"a":"}'), at(0, '', 'get', '\\"{"}')],
      ['get {"a":"}\\"{"}'],
    ],
    [
      'an id that is a number',
      [
        { place: 0, id: 7, name: 'get', args: A1 },
        { place: 1, id: 7, name: 'get', args: A1 },
      ],
      TWO.slice(1),
    ],
    ['a name after its id', [at(0, 'a', '', ''), at(0, 'a', 'get', A1)], TWO.slice(1)],
    ['a name of no tool', [at(0, 'a', 'made_up', A1)], [`made_up ${A1}`]],
  ])('%s', (_name, pieces, expected) => {
    expect(callsOf(pieces)).toEqual(expected);
  });
});

describe('[I121] or none, where it can be read in two ways', () => {
  test.each<[string, CallPiece[], string]>([
    [
      'A12: one index and id, two tools',
      [at(0, 'a', 'get', A1), at(0, 'a', 'put', A1)],
      `${NAMES}, get and put.`,
    ],
    ['A12: in pieces', [at(0, 'a', 'get', ''), at(0, 'a', 'put', ''), at(0, '', '', A1)], NAMES],
    ['A12: the id at another index', [at(0, 'a', 'get', A1), at(1, 'a', 'put', A1)], NAMES],
    [
      'A13: one id, two arguments',
      [at(0, 'a', 'get', A1), at(0, 'a', 'get', '{"a":2}')],
      `The call of get ${TWICE}.`,
    ],
    [
      'A13: in pieces',
      [at(0, 'a', 'get', A1), at(1, 'a', '', '{"a"'), at(1, '', '', ':2}')],
      TWICE,
    ],
    [
      'A13: a number that a double would change',
      [at(0, 'a', 'get', '{"a":9007199254740992}'), at(0, 'a', 'get', '{"a":9007199254740993}')],
      TWICE,
    ],
    ['A13: text and value', [at(0, 'a', 'get', A1), at(0, 'a', 'get', { a: 2 })], TWICE],
    [
      'A13: a value within a text',
      [at(0, 'a', 'get', '{"a":'), at(0, 'a', 'get', { a: 1 })],
      TWICE,
    ],
    [
      'A15: arguments of a call without id and name',
      [at(0, 'a', 'get', A1), at(0, '', '', '{"b":2}')],
      TWICE,
    ],
    [
      'A23: a name in pieces that nobody offers',
      [at(0, '', 'get', ''), at(0, '', 'other', '')],
      NAMES,
    ],
    ['a name in pieces, or two', [at(0, '', 'go', ''), at(0, '', 'go', A1)], NAMES],
    [
      'another name within the arguments',
      [at(0, '', 'get', '{"a"'), at(0, '', 'put', ':1}')],
      NAMES,
    ],
    [
      'the name again after the arguments, and none more',
      [at(0, '', 'get', A1), at(0, '', 'get', '')],
      'the second time without arguments',
    ],
    ['the id dropped, at another index', [at(0, 'a', 'get', A1), at(1, '', 'get', A1)], UNCLEAR],
    ['the id given late', [at(0, '', 'get', A1), at(0, 'a', 'get', A1)], UNCLEAR],
    ['the id given late, after the name', [at(0, '', 'get', ''), at(0, 'a', 'get', A1)], UNCLEAR],
    [
      'other arguments, of which one has an id',
      [at(0, 'a', 'get', A1), at(0, '', 'get', '{}')],
      UNCLEAR,
    ],
    [
      'the index dropped',
      [at(0, '', 'get', A1), at(1, '', 'put', A1), bare('', 'get', A1)],
      UNCLEAR,
    ],
    [
      'a number in pieces',
      [at(0, 'a', 'get', '5'), at(0, 'a', 'get', '5')],
      'a number in several pieces',
    ],
  ])('%s', (_name, pieces, expected) => {
    expect(assembled(pieces).malformed).toContain(expected);
  });

  test.each<[string, CallPiece[]]>([
    [
      'a piece said again within the arguments',
      [at(0, 'a', 'get', '{"a"'), at(0, 'a', 'get', '{"a"'), at(0, '', '', ':1}')],
    ],
    [
      'the last piece said again',
      [at(0, 'a', 'get', '{"a":1'), at(0, '', '', '}'), at(0, '', '', '}')],
    ],
    ['arguments begun again and cut off', [at(0, 'a', 'get', A1), at(0, 'a', 'get', '{"a"')]],
    ['the name dropped, under a new id', [at(0, 'a', 'get', A1), at(0, 'b', '', A1)]],
    [
      'arguments of no call, where two are open',
      [at(1, 'a', 'get', ''), at(2, 'b', 'get', ''), at(0, '', '', A1)],
    ],
    ['an id and no name', [at(0, 'a', '', A1)]],
  ])('%s: left as a call that cannot be read', (_name, pieces) => {
    const { calls } = assembled(pieces);
    const unread = calls.filter(({ name, arguments: sent }) => name === '' || !isRead(sent));
    expect(unread.length).toBeGreaterThan(0);
  });
});

function isRead(text: string): boolean {
  if (text === '') return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
