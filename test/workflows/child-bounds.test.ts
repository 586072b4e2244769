// How many child runs a step may start, and a run may have open (seed 003 §3.4; architecture §4): a step that would pass a
// bound states it, and nothing begins.
import '../support/plain-sandbox.ts';
import { beforeEach, expect, test, vi } from 'vitest';
import type * as ChildRuns from '../../workflows/child-runs.ts';
import type * as Journal from '../../workflows/journal.ts';
import type { Visit } from '../../workflows/context.ts';
import { newFrame } from '../../workflows/frames.ts';

let childRuns: typeof ChildRuns;
let journal: typeof Journal;
beforeEach(async () => {
  // A Temporal run has modules of its own.
  vi.resetModules();
  childRuns = await import('../../workflows/child-runs.ts');
  journal = await import('../../workflows/journal.ts');
});

/** A visit in a run that waits for so many children. */
function visitIn(open: number): Visit {
  const ids = Array.from({ length: open }, (_, index) => [`run-${index}`, { nodeId: 'n' }]);
  const run = { input: {}, state: { children: Object.fromEntries(ids) as object } };
  return { run, node: {}, frame: newFrame('n', 1) } as unknown as Visit;
}

const stated = () => journal.drainOutbox().map(({ entry }) => entry);

test.each([
  ['a batch of 500', 0, 500, { kind: 'child-fan-out', limit: 100, observed: 500 }],
  ['one child above what a step starts', 0, 101, { kind: 'child-fan-out', limit: 100 }],
  ['one child above what a run has open', 500, 1, { kind: 'child-open', limit: 500 }],
  ['a batch beside many that are open', 450, 100, { kind: 'child-open', observed: 550 }],
])('%s: cap.breached, and child_limit_exceeded', (_what, open, count, payload) => {
  const ask = () => childRuns.requireRoom(visitIn(open), 'batch', count);
  expect(ask).toThrow(expect.objectContaining({ type: 'child_limit_exceeded' }) as Error);
  expect(stated()).toMatchObject([{ type: 'cap.breached', nodeId: 'n', payload }]);
});

test.each([
  ['a batch', 0, 100],
  ['beside those that are open', 400, 100],
])('as many as permitted are: %s', (_what, open, count) => {
  childRuns.requireRoom(visitIn(open), 'batch', count);
  expect(stated()).toEqual([]);
});
