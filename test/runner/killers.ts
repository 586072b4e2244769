// The tests that mutants name (test/mutants) against those that ran: a test that took another name leaves its mutant without one.
import type { Mutant } from '../mutants/mutants.ts';
import type { Line } from './lines.ts';
import { resultsOf } from './outcome.ts';

type Named = Pick<Mutant, 'invariant' | 'killer' | 'test'>;

/** A sentence for each mutant whose file ran and has no test of that name, skipped ones included. */
export function withoutKiller(
  lines: readonly Line[],
  mutants: readonly Named[],
): readonly string[] {
  const results = resultsOf(lines);
  return mutants.flatMap(({ invariant, killer, test }) => {
    const tests = results.get(killer)?.tests ?? [];
    const names = tests.map(({ titles }) => titles.join(' '));
    if (names.length === 0 || names.some((name) => new RegExp(test).test(name))) return [];
    return [`A mutant of I${invariant} names no test of ${killer}: /${test}/ (test/mutants).`];
  });
}
