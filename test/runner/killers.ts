// The tests that mutants name (test/mutants) against those that ran: a test that took another name leaves its mutant without one.
import type { Mutant } from '../mutants/mutants.ts';
import type { Line } from './lines.ts';
import { resultsOf } from './outcome.ts';

type Named = Pick<Mutant, 'invariant' | 'killer' | 'test'>;

/**
 * A sentence for each mutant whose file ran and has no test of that name. Of a file with a skipped test nothing is said: where
 * a twin is missing, its tests are not there by name.
 */
export function withoutKiller(
  lines: readonly Line[],
  mutants: readonly Named[],
): readonly string[] {
  const results = resultsOf(lines);
  return mutants.flatMap(({ invariant, killer, test }) => {
    const tests = results.get(killer)?.tests ?? [];
    const isWhole = tests.length > 0 && tests.every(({ state }) => state !== 'skipped');
    const isNamed = tests.some(({ titles }) => new RegExp(test).test(titles.join(' ')));
    if (isNamed || !isWhole) return [];
    return [`A mutant of I${invariant} names no test of ${killer}: /${test}/ (test/mutants).`];
  });
}
