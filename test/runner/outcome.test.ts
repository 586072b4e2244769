// The line that ends `npm test` tells the truth, whatever went wrong (architecture §8).
import { describe, expect, it } from 'vitest';
import type { FileResult, Line, TestState } from './lines.ts';
import { failureLines, lastLine, outcomeOf, slowestFiles, totals } from './outcome.ts';

const FILE = 'test/pages/a.test.ts';
const queued: Line = { kind: 'queued', files: [FILE] };
const end = (...errors: string[]): Line => ({ kind: 'end', errors });

const resultWith = (states: readonly TestState[], errors: string[] = []): FileResult => ({
  ms: 1_000,
  tests: states.map((state) => ({ titles: ['[chromium] page', state], state, ms: 1, errors: [] })),
  errors,
});
const file = (states: readonly TestState[], errors: string[] = []): Line => ({
  kind: 'file',
  file: FILE,
  result: resultWith(states, errors),
});

describe('the closing line', () => {
  it.each<[string, readonly Line[], string]>([
    ['all passed', [queued, file(['passed', 'passed']), end()], '2 passed, 0 failed'],
    ['one failed', [queued, file(['passed', 'failed']), end()], '1 passed, 1 failed'],
    ['some skipped', [file(['passed', 'skipped', 'skipped'])], '1 passed, 0 failed, 2 skipped'],
    ['a file that did not load', [queued, file([], ['SyntaxError: x'])], '0 passed, 1 failed'],
    ['a hook that broke behind passed tests', [file(['passed'], ['E: x'])], '1 passed, 1 failed'],
    ['a hook that broke beside a failed test', [file(['failed'], ['E: x'])], '0 passed, 1 failed'],
    ['an error outside of all tests', [file(['passed']), end('Error: x')], '1 passed, 1 failed'],
    ['a file that never ended', [queued], '0 passed, 1 failed'],
    [
      'a file that passed when it ran again',
      [file(['failed']), file(['passed'])],
      '1 passed, 0 failed',
    ],
  ])('%s', (_, lines, line) => {
    expect(lastLine(outcomeOf(lines))).toBe(line);
  });
  it('counts a vitest that ended without a word', () => {
    expect(outcomeOf([file(['passed']), end()], 1)).toMatchObject({ passed: 1, failed: 1 });
  });
  it('names each skipped twin once, with its file', () => {
    const { twins } = outcomeOf([file(['skipped', 'skipped'])]);
    expect(twins).toEqual([`${FILE}: [chromium] page (2)`]);
  });
  it('names the files that failed and those that did not end', () => {
    const other = { kind: 'queued', files: ['test/b.test.ts'] } as const;
    expect(outcomeOf([queued, other, file(['failed'])])).toMatchObject({
      failures: ['test/b.test.ts', FILE],
      cutOff: ['test/b.test.ts'],
    });
  });
});

it('each failure is named with its file, its titles and what it said, on one line', () => {
  const failed = file(['failed', 'passed', 'failed']);
  if (failed.kind === 'file')
    Object.assign(failed.result.tests[0] ?? {}, { errors: ['E: a\n  b'] });
  const broken = { ...file([], ['SyntaxError: x']), file: 'test/b.test.ts' };
  expect(failureLines([queued, failed, broken, end('Error: y')], 1)).toEqual([
    `FAILED ${FILE} › [chromium] page › failed: E: a b`,
    `FAILED ${FILE} › [chromium] page › failed: no message`,
    'FAILED test/b.test.ts: SyntaxError: x',
    'FAILED outside of all tests: Error: y',
    'FAILED 1 lanes: ended without a word',
  ]);
  const many = failureLines([file(Array<TestState>(35).fill('failed'))]);
  expect(many).toHaveLength(31);
  expect(many.at(-1)).toBe('FAILED 5 more');
});

it('the ten slowest files are named with what they took, the slowest first', () => {
  const lines = Array.from({ length: 12 }, (_, index): Line[] => [
    {
      kind: 'file',
      file: `test/${index}.test.ts`,
      result: { ms: index * 10_000, tests: [], errors: [] },
    },
    {
      kind: 'spent',
      file: `test/${index}.test.ts`,
      spent: { cpuMs: 500, started: { host: 1, database: 0, program: 2 } },
    },
  ]).flat();
  expect(slowestFiles(lines)).toHaveLength(10);
  expect(slowestFiles(lines).slice(0, 2)).toEqual([
    ' 110.0 s    0.5 CPU s  test/11.test.ts',
    ' 100.0 s    0.5 CPU s  test/10.test.ts',
  ]);
  expect(totals(lines)).toBe(
    'Files took 660.0 s and 6.0 CPU s, and started 12 hosts, 0 databases, 24 programs.',
  );
});
