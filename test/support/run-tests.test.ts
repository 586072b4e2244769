// The line that ends `npm test` tells the truth, whatever went wrong (architecture §8).
import { describe, expect, it } from 'vitest';
import { lastLine, outcomeOf, slowestFiles, type Report } from './run-tests.ts';

const test = (status: string, title = 't') => ({
  ancestorTitles: ['[chromium] page'],
  title,
  status,
});
const file = (status: string, ...tests: ReturnType<typeof test>[]) => ({
  name: '/repo/test/pages/a.test.ts',
  status,
  startTime: 1_000,
  endTime: 2_000,
  assertionResults: tests,
});
const report = (success: boolean, ...testResults: ReturnType<typeof file>[]): Report => ({
  success,
  testResults,
});

describe('the closing line', () => {
  it.each<[string, Report, string]>([
    [
      'all passed',
      report(true, file('passed', test('passed'), test('passed'))),
      '2 passed, 0 failed',
    ],
    [
      'one failed',
      report(false, file('failed', test('passed'), test('failed'))),
      '1 passed, 1 failed',
    ],
    [
      'some skipped',
      report(true, file('passed', test('passed'), test('skipped'), test('pending'))),
      '1 passed, 0 failed, 2 skipped',
    ],
    ['a file that did not load', report(false, file('failed')), '0 passed, 1 failed'],
    [
      'a hook that broke behind passed tests',
      report(false, file('failed', test('passed'))),
      '1 passed, 1 failed',
    ],
    [
      'an error outside of all tests',
      report(false, file('passed', test('passed'))),
      '1 passed, 1 failed',
    ],
  ])('%s', (_, given, line) => {
    expect(lastLine(outcomeOf(given))).toBe(line);
  });
  it('names each skipped twin once, with its file', () => {
    const { twins } = outcomeOf(
      report(true, file('passed', test('skipped', 'a'), test('skipped', 'b'))),
    );
    expect(twins).toEqual(['test/pages/a.test.ts: [chromium] page (2)']);
  });
});

it('the ten slowest files are named, the slowest first', () => {
  const files = Array.from({ length: 12 }, (_, index) => ({
    ...file('passed', test('passed')),
    name: `/repo/test/pages/${index}.test.ts`,
    endTime: 1_000 + index * 10_000,
  }));
  const lines = slowestFiles(report(true, ...files));
  expect(lines).toHaveLength(10);
  expect(lines.slice(0, 2)).toEqual([
    ' 110.0 s  test/pages/11.test.ts',
    ' 100.0 s  test/pages/10.test.ts',
  ]);
});
