// Where two JSON values differ, by JSON pointers (RFC 6901).
import { describe, expect, it } from 'vitest';
import type { JsonValue } from '../../src/rules/json.ts';
import { jsonDifferences, type JsonDifference } from '../../src/rules/json-differences.ts';

type Case = readonly [string, JsonValue | undefined, JsonValue | undefined, JsonDifference[]];

const CASES: readonly Case[] = [
  ['the same', { a: [1, { b: null }] }, { a: [1, { b: null }] }, []],
  ['the same in another order of members', { a: 1, b: 2 }, { b: 2, a: 1 }, []],
  ['nothing and nothing', undefined, undefined, []],
  ['scalars', 1, '1', [{ pointer: '', a: 1, b: '1' }]],
  ['null is a value', { a: null }, {}, [{ pointer: '/a', a: null }]],
  ['only b has it', {}, { a: [] }, [{ pointer: '/a', b: [] }]],
  ['another kind', { a: [] }, { a: {} }, [{ pointer: '/a', a: [], b: {} }]],
  [
    'a list by place',
    [1, 2],
    [1, 3, 4],
    [
      { pointer: '/1', a: 2, b: 3 },
      { pointer: '/2', b: 4 },
    ],
  ],
  [
    'names with marks',
    { 'a/b': { '~': 1 } },
    { 'a/b': { '~': 2 } },
    [{ pointer: '/a~1b/~0', a: 1, b: 2 }],
  ],
  [
    'a name that objects have',
    {},
    JSON.parse('{"__proto__":1}') as JsonValue,
    [{ pointer: '/__proto__', b: 1 }],
  ],
];

describe('RFC 6901: where values differ', () => {
  it.each(CASES)('%s', (_what, a, b, expected) => {
    expect(jsonDifferences(a, b, 10)).toEqual(expected);
  });

  it('no more than are asked for', () => {
    expect(jsonDifferences([1, 2, 3], [4, 5, 6], 2)).toHaveLength(2);
  });
});
