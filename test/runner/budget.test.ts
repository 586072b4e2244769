// What the tests start is counted, and held.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ROOT } from '../support/root.ts';
import { EXCEPTIONS, overBudget } from './budget.ts';
import type { Line } from './lines.ts';

const budget = {
  file: { host: 1, database: 2, program: 3 },
  all: { host: 3, database: 3, program: 3 },
  exceptions: { 'test/b.test.ts': { host: 2 } },
};
const spent = (file: string, host: number, database = 0): Line => ({
  kind: 'spent',
  file,
  spent: { cpuMs: 1, started: { host, database, program: 0 } },
});

it('a file within it, and one with a row of its own, are fine', () => {
  expect(
    overBudget([spent('test/a.test.ts', 1, 2), spent('test/b.test.ts', 2)], true, budget),
  ).toEqual([]);
});

it('a file that starts more is named with what it starts, and so is the sum of a whole run', () => {
  const lines = [
    spent('test/a.test.ts', 2),
    spent('test/b.test.ts', 2, 2),
    spent('test/c.test.ts', 1),
  ];
  const ofFile = 'test/a.test.ts starts 2 hosts; the budget is 1 (test/runner/budget.ts).';
  expect(overBudget(lines, false, budget)).toEqual([ofFile]);
  expect(overBudget(lines, true, budget)).toEqual([
    ofFile,
    'npm test starts 5 hosts; the budget is 3 (test/runner/budget.ts).',
  ]);
});

it('its exceptions are files that are there', () => {
  expect(Object.keys(EXCEPTIONS).filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
});
