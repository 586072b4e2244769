// Answers whose calls are clear, however an endpoint frames them: pieces as they come, and the calls that they are.
import type { CallPiece } from '../../src/adapters/models/call-piece.ts';

export const A1 = '{"a":1}';
const TWO = [`get ${A1}`, `get ${A1}`];

/** A piece as most endpoints send it. */
export const at = (place: number, id?: string, name?: string, args?: unknown): CallPiece => ({
  ...{ place, id, name, args },
});
export const bare = (id?: string, name?: string, args?: unknown): CallPiece => ({ id, name, args });

export const SAME_CALLS: [string, CallPiece[], string[]][] = [
  ['A1: the same whole piece twice', [at(0, 'a', 'get', A1), at(0, 'a', 'get', A1)], TWO.slice(1)],
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
  ['A2: a known id at another index', [at(0, 'a', 'get', A1), at(1, 'a', 'get', A1)], TWO.slice(1)],
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
  ['A5: no arguments and no index', [bare('a', 'get', ''), bare('b', 'put', '')], ['get ', 'put ']],
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
  ['A7: the id with each piece', [at(0, 'a', 'get', '{"a"'), at(0, 'a', '', ':1}')], TWO.slice(1)],
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
  [
    'the ids first, all at one index',
    [at(0, 'a', '', ''), at(0, 'b', '', ''), at(0, 'a', 'get', A1), at(0, 'b', 'get', A1)],
    TWO,
  ],
  [
    'white space alone, within a string and after it',
    [at(0, 'a', 'get', '{"a":"x'), at(0, '', '', ' '), at(0, '', '', 'y"}'), at(0, '', '', ' ')],
    ['get {"a":"x y"}'],
  ],
  [
    'white space alone, at another index',
    [at(1, 'a', 'get', '{"a":"x'), at(0, '', '', ' '), at(0, '', '', 'y"}'), at(0, '', '', ' ')],
    ['get {"a":"x y"}'],
  ],
  [
    'Mistral: later pieces have the id "null"',
    [
      ...[at(0, 'a', 'get', ''), at(0, 'null', '', '{"a"'), at(0, 'null', '', ':1}')],
      ...[at(1, 'b', 'put', ''), at(1, 'null', '', A1)],
    ],
    [`get ${A1}`, `put ${A1}`],
  ],
  [
    'each call has an id that is none',
    [at(0, 'null', 'get', A1), at(1, 'None', 'put', '{}'), at(2, ' ', 'get', A1)],
    [`get ${A1}`, 'put {}', `get ${A1}`],
  ],
  [
    'SGLang: an id at the first index alone',
    [
      ...[at(0, 'a', 'get', ''), at(0, '', '', A1)],
      ...[at(1, '', 'get', ''), at(1, '', '', '{}'), at(2, '', 'get', '{"a":2}')],
    ],
    [`get ${A1}`, 'get {}', 'get {"a":2}'],
  ],
  [
    'SGLang: the same, the first call said again at the second index',
    [at(0, 'a', 'get', A1), at(1, 'a', 'get', A1), at(1, '', 'get', ''), at(1, '', '', '{}')],
    [`get ${A1}`, 'get {}'],
  ],
  [
    'LiteLLM: {} beside the name, then the arguments',
    [at(0, 'a', 'get', '{}'), at(0, '', '', '{"a"'), at(0, '', '', ':1}'), at(1, 'b', 'put', '{}')],
    [`get ${A1}`, 'put {}'],
  ],
  [
    'LiteLLM: the same without index, or with the id',
    [bare('a', 'get', '{}'), bare('', '', A1), bare('b', 'put', {}), bare('b', '', A1)],
    [`get ${A1}`, `put ${A1}`],
  ],
  [
    'an index as text',
    [
      ...[
        { place: '0', id: 'a', name: 'get' },
        { place: '1', id: 'b', name: 'put' },
      ],
      ...[
        { place: '0', args: A1 },
        { place: '1', args: '{}' },
      ],
    ],
    [`get ${A1}`, 'put {}'],
  ],
  [
    'null as text, twice',
    [at(0, 'a', 'get', 'null'), at(0, 'a', 'get', 'nu'), at(0, '', '', 'll')],
    ['get null'],
  ],
  [
    'null, then {}, without an id',
    [at(0, '', 'get', 'null'), at(0, '', 'get', '{}')],
    ['get null'],
  ],
  [
    'an object encoded twice, then plain',
    [at(0, '', 'get', JSON.stringify(A1)), at(0, '', 'get', A1)],
    [`get ${JSON.stringify(A1)}`],
  ],
  [
    'the same under one id',
    [
      at(0, 'a', 'get', A1),
      at(0, 'a', 'get', JSON.stringify(A1)),
      at(0, 'b', 'put', 'null'),
      at(0, 'b', 'put', ''),
    ],
    [`get ${A1}`, 'put null'],
  ],
  [
    'null beside the name, then the arguments',
    [at(0, 'a', 'get', 'null'), at(0, '', '', A1)],
    TWO.slice(1),
  ],
  [
    'other spellings of no id',
    [
      at(0, 'NULL', 'get', A1),
      at(1, 'NULL', 'put', '{}'),
      at(2, 'none', 'get', A1),
      at(3, 'nil', 'get', A1),
    ],
    [`get ${A1}`, 'put {}', `get ${A1}`, `get ${A1}`],
  ],
  [
    'later pieces have the name "null"',
    [at(0, 'a', 'get', '{"a"'), at(0, 'null', 'null', ':1'), at(0, 'null', 'None', '}')],
    TWO.slice(1),
  ],
  [
    'a name in pieces, one of which is a word for nothing',
    [at(0, 'a', 'go_', ''), at(0, 'a', 'none', A1)],
    [`go_none ${A1}`],
  ],
  [
    'later pieces have the name "null", and no call has an id',
    [at(0, '', 'get', '{"a"'), at(0, 'null', 'null', ':1}'), at(1, '', 'put', '{}')],
    [`get ${A1}`, 'put {}'],
  ],
  [
    'the same, of a call that comes again',
    [at(0, '', 'get', A1), at(0, '', '', '{"a"'), at(0, '', 'null', ':1}')],
    TWO.slice(1),
  ],
  [
    'a piece with the name "None" alone, at another index',
    [at(0, 'a', 'get', A1), at(1, '', 'None', '')],
    TWO.slice(1),
  ],
  [
    'white space beside the name "null", at another index',
    [at(1, 'a', 'get', '{"a":"x'), at(0, '', 'null', ' '), at(0, '', '', 'y"}')],
    ['get {"a":"x y"}'],
  ],
  [
    'a call of "None", with an id of its own',
    [at(0, 'a', 'get', ''), at(0, 'b', 'None', A1)],
    ['get ', `None ${A1}`],
  ],
  [
    'a call of "None" and its id alone',
    [at(0, 'a', 'get', ''), at(0, 'b', 'None', '')],
    ['get ', 'None '],
  ],
  [
    'a call of "NULL", without an index',
    [bare('a', 'get', ''), bare('b', 'NULL', A1)],
    ['get ', `NULL ${A1}`],
  ],
  [
    'a call of "None", at an index of its own',
    [at(0, 'a', 'get', ''), at(1, 'b', 'None', A1)],
    ['get ', `None ${A1}`],
  ],
  [
    'a call of "None", without ids, at an index of its own',
    [at(0, '', 'get', ''), at(1, '', 'None', A1)],
    ['get ', `None ${A1}`],
  ],
  [
    'a call of "None" after {}, without ids',
    [at(0, '', 'get', '{}'), at(0, '', 'None', A1)],
    ['get {}', `None ${A1}`],
  ],
  ['a call of "None" alone', [at(0, 'a', 'None', '{}')], ['None {}']],
  [
    'the name of one call again after another one',
    [at(0, 'a', 'get', A1), at(0, 'b', 'put', ''), at(0, 'a', 'get', ''), at(0, '', 'get', A1)],
    [`get ${A1}`, 'put '],
  ],
  [
    'the name with each piece, another call between',
    [
      ...[at(0, 'a', 'get', '{"a"'), at(0, 'b', 'get', ''), at(0, 'a', 'get', '')],
      at(0, '', 'get', ':1}'),
    ],
    [`get ${A1}`, 'get '],
  ],
  [
    'Anthropic: the whole input, then a delta of {}',
    [
      at(0, 'a', 'get', { a: 1 }),
      at(0, '', '', '{}'),
      at(1, 'b', 'put', { a: 1 }),
      at(1, '', '', '{}'),
    ],
    [`get ${A1}`, `put ${A1}`],
  ],
  [
    'a call without an index takes the place of no other',
    [at(1, 'a', 'get', ''), bare('b', 'put', ''), at(1, '', '', A1), bare('b', '', '{}')],
    [`get ${A1}`, 'put {}'],
  ],
  [
    'arguments at one index of no call, of two calls',
    [at(1, 'a', 'get', ''), at(0, '', '', A1), at(2, 'b', 'put', ''), at(0, '', '', '{"b":2}')],
    [`get ${A1}`, 'put {"b":2}'],
  ],
  [
    'the names first',
    [at(0, 'a', 'get', ''), at(1, 'b', 'put', ''), at(0, '', '', A1), at(1, '', '', '{}')],
    [`get ${A1}`, 'put {}'],
  ],
  ['true as text, twice', [at(0, 'a', 'get', 'truetrue')], ['get true']],
  ['a name of no tool', [at(0, 'a', 'made_up', A1)], [`made_up ${A1}`]],
];
