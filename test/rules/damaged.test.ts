// What is stored and cannot be read is named by its place.
import { describe, expect, test } from 'vitest';
import { parsedAt, payloadOf } from '../../src/rules/damaged.ts';

describe('[I97] what stands at a place', () => {
  test.each([
    ['{"a":1}', 'object', { a: 1 }],
    ['[1]', 'array', [1]],
    ['"a"', 'string', 'a'],
    ['null', undefined, null],
  ] as const)('%s, as %s, is read', (json, kind, value) => {
    expect(parsedAt('x', json, kind)).toEqual(value);
  });

  test.each([
    ['no JSON', '{', 'object'],
    ['a list', '[]', 'object'],
    ['nothing', 'null', 'object'],
    ['an object', '{}', 'array'],
    ['a number', '1', 'string'],
  ] as const)('%s in the place of another kind is named', (_name, json, kind) => {
    const damage = { code: 'history_undecodable', message: 'What stands at x is damaged.' };
    expect(() => parsedAt('x', json, kind)).toThrow(expect.objectContaining(damage) as Error);
  });

  test('a payload is an object', () => {
    const row = { runId: 'run-1', key: 'k', payload: '[]' };
    expect(() => payloadOf(row)).toThrow('What stands at payload run-1 k is damaged.');
  });
});
