// What must never be lost is never tried again (architecture §8): its failures are called Broken, whatever library asserts.
import assert from 'node:assert/strict';
import { expect, it } from 'vitest';
import { neverByChance, tellsOfBroken } from './broken.ts';

const failureOf = (hold: () => Promise<void> | void): Promise<unknown> =>
  neverByChance(hold).then(
    () => undefined,
    (error: unknown) => error,
  );

it.each<[string, () => void]>([
  ['vitest', () => expect([1, 2]).toEqual([1])],
  ['node:assert', () => assert.deepEqual([1, 2], [1])],
])('a failed assertion by %s is Broken, with its values', async (_, hold) => {
  const failure = await failureOf(hold);
  expect(failure).toMatchObject({ name: 'Broken', actual: [1, 2], expected: [1] });
  expect(tellsOfBroken(`seed 1: ${String((failure as Error).stack)}`)).toBe(true);
});

it('any other error stays what it is, and what holds throws nothing', async () => {
  const error = new Error('ECONNREFUSED');
  expect(await failureOf(() => Promise.reject(error))).toBe(error);
  expect(tellsOfBroken(String(error.stack))).toBe(false);
  expect(await failureOf(() => undefined)).toBeUndefined();
});
