// A quick run has time for what is nearest to a change.
import { expect, it } from 'vitest';
import { choose, testsWithoutImport } from './quick-choice.ts';

const durations = {
  'test/a/fork.test.ts': 9_000,
  'test/b/x.test.ts': 500,
  'test/b/y.test.ts': 3_000,
};
const files = ['test/b/y.test.ts', 'test/b/x.test.ts', 'test/a/fork.test.ts', 'test/b/new.test.ts'];
const chosenWithin = (budgetMs: number) => choose(files, { names: ['fork'], durations, budgetMs });

it('the test that is named as the changed file first, then the shortest', () => {
  expect(chosenWithin(100_000)).toEqual({
    chosen: ['test/a/fork.test.ts', 'test/b/x.test.ts', 'test/b/new.test.ts', 'test/b/y.test.ts'],
    left: [],
  });
});

it('what does not fit is left, and what is shorter behind it is not', () => {
  expect(chosenWithin(9_600)).toEqual({
    chosen: ['test/a/fork.test.ts', 'test/b/x.test.ts'],
    left: ['test/b/new.test.ts', 'test/b/y.test.ts'],
  });
  expect(chosenWithin(5_000)).toMatchObject({ left: ['test/a/fork.test.ts', 'test/b/y.test.ts'] });
});

it.each([
  ['workflows/run.ts', 'test/workflows/run.test.ts'],
  ['src/adapters/postgres/migrations/001-schema.sql', 'test/adapters/postgres-stores.test.ts'],
  ['src/app/start.ts', 'test/app/host.test.ts'],
  ['examples/ledger/agent.py', 'test/opensentience/examples.test.ts'],
])('what no test imports has its tests, too: %s', (changed, test) => {
  const tests = [test, 'test/rules/ids.test.ts'];
  expect(testsWithoutImport([changed, 'README.md'], tests)).toEqual([test]);
});
