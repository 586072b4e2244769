// A setup that fails halfway leaves nothing behind.
import { expect, it } from 'vitest';
import { allOrNone } from './all-or-none.ts';

function begin(names: readonly string[]): {
  undone: string[];
  starts: Promise<() => Promise<void>>[];
} {
  const undone: string[] = [];
  const starts = names.map(async (name) => {
    if (name === 'fails') throw new Error('It does not start.');
    await Promise.resolve();
    return async () => void undone.push(name);
  });
  return { undone, starts };
}

it('undoes all that has begun when one part fails', async () => {
  const { undone, starts } = begin(['server', 'fails', 'folder']);
  await expect(allOrNone(starts)).rejects.toThrow('It does not start.');
  expect(undone).toEqual(['server', 'folder']);
});

it('undoes nothing before it is asked', async () => {
  const { undone, starts } = begin(['server', 'folder']);
  const undo = await allOrNone(starts);
  expect(undone).toEqual([]);
  await undo();
  expect(undone).toEqual(['server', 'folder']);
});
