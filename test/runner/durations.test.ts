// Long test files start first.
import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../support/folders.ts';
import { ROOT } from '../support/root.ts';
import { heaviestFirst, keepDurations, readDurations } from './durations.ts';

it('by what was measured; what never was goes by its size', async () => {
  const folder = await temporaryFolder('order');
  const paths = ['short', 'long', 'small', 'large'].map((name) => join(folder, `${name}.test.ts`));
  paths.forEach((path, index) => writeFileSync(path, ' '.repeat(index * 10_000)));
  const [short = '', long = ''] = paths.map((path) => relative(ROOT, path));
  const durations = { [short]: 5, [long]: 60_000 };
  expect(heaviestFirst(paths, durations).map((path) => path.slice(folder.length + 1))).toEqual([
    ...['long', 'large', 'small', 'short'].map((name) => `${name}.test.ts`),
  ]);
});

it('are kept by file, and those of files that did not run stay', async () => {
  const cache = await temporaryFolder('durations');
  const ended = (file: string, ms: number) =>
    ({ kind: 'file', file, result: { ms, tests: [], errors: [] } }) as const;
  expect(readDurations(cache)).toEqual({});
  keepDurations(cache, [ended('a', 1), ended('b', 2)]);
  keepDurations(cache, [ended('b', 3)]);
  expect(readDurations(cache)).toEqual({ a: 1, b: 3 });
  writeFileSync(join(cache, 'test-durations.json'), '{');
  expect(readDurations(cache)).toEqual({});
});
