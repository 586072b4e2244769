// What a fork states, held against its source (workflows/comparison.ts). What follows in whole runs: offline.test.ts.
import { expect, it } from 'vitest';
import type { ForkOf } from '../../src/rules/run-input.ts';
import { Comparison } from '../../workflows/comparison.ts';

const entryOf = (key: string) => ({ key, type: 'node.started', payload: '{}', timestampMs: 0 });
const FORK: ForkOf = {
  ...{ sourceRunId: 'run-source', mode: 'replay', fromSeq: 2, length: 2 },
  ...{ clocks: [], generation: 1 },
};

it.each([
  ['node.started|a', 1, 'by-now'],
  ['node.started|b', 1, 'later'],
  ['node.started|b', 2, 'by-now'],
  ['node.started|c', 1, 'later'],
])('%s, where the entry %i is the first that is not stated yet: %s', (key, next, when) => {
  const entries = [entryOf('node.started|a'), entryOf('node.started|b')];
  expect(new Comparison('run-fork', { fork: FORK, entries }).whenStated(key, next)).toBe(when);
});

it('a source that has ended states nothing later', () => {
  const comparison = new Comparison('run-fork', { fork: FORK, entries: [entryOf('terminal')] });
  expect(comparison.whenStated('node.started|c', 1)).toBe('never');
});

it('one that was ended from outside stated neither its end nor what was closed with it', () => {
  const derived = ['node.failed|a', 'terminal'].map((key) => ({
    ...entryOf(key),
    isDerived: true as const,
  }));
  const comparison = new Comparison('run-fork', { fork: FORK, entries: derived });
  expect(comparison.whenStated('node.failed|a', 2)).toBe('later');
  expect(comparison.whenStated('node.completed|a', 2)).toBe('later');
});
