// A mutant without a test is found by the run of the tests, not first by the run that needs it.
import { expect, it } from 'vitest';
import { withoutKiller } from './killers.ts';
import type { Line, TestState } from './lines.ts';

const file = (name: string, ...tests: readonly (readonly [TestState, ...string[]])[]): Line => ({
  kind: 'file',
  file: name,
  result: {
    ms: 1,
    errors: [],
    tests: tests.map(([state, ...titles]) => ({ titles, state, ms: 1, errors: [] })),
  },
});
const mutant = { invariant: 7, killer: 'test/a.test.ts', test: 'a word holds once' };

it('a mutant whose test ran is fine', () => {
  const lines = [file('test/a.test.ts', ['passed', 'other'], ['failed', 'a word', 'holds once'])];
  expect(withoutKiller(lines, [mutant])).toEqual([]);
});

it('a mutant whose file has no test of that name is named', () => {
  const lines = [file('test/a.test.ts', ['passed', 'a word', 'holds for one claim'])];
  expect(withoutKiller(lines, [mutant])).toEqual([
    'A mutant of I7 names no test of test/a.test.ts: /a word holds once/ (test/mutants).',
  ]);
});

it('nothing is said of a file that did not run, did not load, or lacks a twin', () => {
  expect(withoutKiller([file('test/b.test.ts', ['passed', 'one'])], [mutant])).toEqual([]);
  expect(withoutKiller([file('test/a.test.ts')], [mutant])).toEqual([]);
  const lacking = file('test/a.test.ts', ['passed', 'other'], ['skipped', 'no PostgreSQL']);
  expect(withoutKiller([lacking], [mutant])).toEqual([]);
});
