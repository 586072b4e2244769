// The line that ends `npm test` tells the truth, whatever went wrong (design §8).
import { describe, expect, it } from 'vitest';
import { lastLine, outcomeOf, type Report } from './run-tests.ts';

const test = (status: string, title = 't') => ({
  ancestorTitles: ['[chromium] page'],
  title,
  status,
});
const file = (status: string, ...tests: ReturnType<typeof test>[]) => ({
  name: '/repo/test/pages/a.test.ts',
  status,
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
