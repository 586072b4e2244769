// Timestamps of a log (architecture §2.1).
import { expect, test } from 'vitest';
import { clampTimestamps } from '../../src/rules/clamp.ts';

// [I16]
test.each<[string, number, number[], number[]]>([
  ['in order: as they are', 0, [1, 2, 2, 5], [1, 2, 2, 5]],
  ['behind the row before', 7, [5, 9], [7, 9]],
  ['behind one of their own', 0, [3, 9, 4, 8, 10], [3, 9, 9, 9, 10]],
  ['none', 7, [], []],
])('times never go back: %s', (_, lastMs, given, expected) => {
  expect(clampTimestamps(lastMs, given)).toEqual(expected);
});
