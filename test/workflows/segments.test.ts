// The end of a segment (continue-as-new, architecture §4): which attempts are left to the next one. That it is found by
// runs of large values is asked on a real server (sizes.test.ts).
import '../support/plain-sandbox.ts';
import { describe, expect, it } from 'vitest';
import type { HoldReason, Run } from '../../workflows/context.ts';
import { isLeftToNextSegment } from '../../workflows/segments.ts';

function isLeft(reasons: readonly HoldReason[], more: Partial<Run> = {}): boolean {
  const run = { holding: new Set(reasons), inFlight: 0, ...more };
  return isLeftToNextSegment(run as unknown as Run);
}

describe('[I105] a node that has not started is left to the next segment', () => {
  it('where a segment that tries to end has filled a workflow task, and nothing is under way', () => {
    expect(isLeft(['segment', 'full'])).toBe(true);
  });

  it('near the wall of the server, whatever is under way', () => {
    expect(isLeft(['wall'], { inFlight: 3 })).toBe(true);
  });

  it.each<[string, HoldReason[], Partial<Run>]>([
    ['while no segment tries to end', [], {}],
    [
      'in the task in which a segment begins to end: what follows from it is stated in order',
      ['segment'],
      {},
    ],
    ['while a step is under way, far from the wall', ['segment', 'full'], { inFlight: 1 }],
    ['in a paused run: that holds nodes itself', ['paused'], {}],
    ['when this one has ended', ['wall'], { ending: { kind: 'continue' } }],
  ])('not %s', (_when, reasons, more) => {
    expect(isLeft(reasons, more)).toBe(false);
  });
});
