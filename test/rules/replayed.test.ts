// A log that was stated again, held against the recorded one.
import { describe, expect, it } from 'vitest';
import type { RecordedEntry } from '../../src/rules/recording.ts';
import { compareReplayed, type StatedEntry } from '../../src/rules/replayed.ts';

const fact = (key: string, nodeId?: string, payload: object = { key }): RecordedEntry => ({
  ...{ key, type: key, payload: JSON.stringify(payload), timestampMs: 1 },
  ...(nodeId === undefined ? {} : { nodeId }),
});
const stated = ({ key, type, nodeId, payload }: RecordedEntry): StatedEntry => ({
  ...{ key, type, payload: JSON.parse(payload) as StatedEntry['payload'] },
  ...(nodeId === undefined ? {} : { nodeId }),
});
const A = fact('a', 'n');
const B = fact('b', 'n');
const C = fact('c', 'm');
const PIECE = fact('x#d0', 'n');
const derived = (entry: RecordedEntry): RecordedEntry => ({ ...entry, isDerived: true });

describe('compareReplayed', () => {
  it.each<[string, RecordedEntry[], RecordedEntry[], object]>([
    ['the same', [A, B], [A, B], { equal: 2, pieces: 0, outside: 0 }],
    ['nothing', [], [], { equal: 0, pieces: 0, outside: 0 }],
    [
      'members in another order',
      [fact('a', 'n', { x: 1, y: 2 })],
      [fact('a', 'n', { y: 2, x: 1 })],
      { equal: 1 },
    ],
    ['live text, which nobody states', [A, PIECE, B], [A, B], { equal: 2, pieces: 1 }],
    ['nodes in another order', [A, C], [C, A], { equal: 2 }],
    ['an end from outside', [A, derived(B), derived(C)], [A], { equal: 1, outside: 2 }],
  ])('equal: %s', (_what, entries, again, expected) => {
    const compared = compareReplayed(entries, again.map(stated));
    expect(compared).toMatchObject(expected);
    expect(compared.difference).toBeUndefined();
  });

  it.each<[string, RecordedEntry[], RecordedEntry[], object]>([
    ['one node in another order', [A, B], [B, A], { kind: 'order', atSequence: 0, key: 'a' }],
    ['another node', [fact('a', 'm')], [A], { kind: 'output', atSequence: 0 }],
    ['another type', [{ ...A, type: 'z' }], [A], { kind: 'type-mismatch' }],
    ['another value', [fact('a', 'n', { v: 1 })], [A], { kind: 'output' }],
    ['one is missing', [A, B], [B], { kind: 'missing', atSequence: 0, key: 'a' }],
    ['the last is missing', [A, B], [A], { kind: 'missing', atSequence: 1, key: 'b' }],
    ['one too many at the end', [A], [A, B], { kind: 'extra', atSequence: 1, key: 'b' }],
    ['one too many of no record', [], [A], { kind: 'extra', atSequence: 0, key: 'a' }],
    [
      'one missing before an end from outside',
      [A, B, derived(C)],
      [B],
      { kind: 'missing', key: 'a' },
    ],
    ['one stated that only its host had', [A, derived(B)], [A, B], { kind: 'extra', key: 'b' }],
    [
      'the first of several',
      [A, B, C],
      [fact('a', 'n', {}), fact('b', 'n', {})],
      { atSequence: 0 },
    ],
  ])('different: %s', (_what, entries, again, expected) => {
    expect(compareReplayed(entries, again.map(stated)).difference).toMatchObject(expected);
  });
});
