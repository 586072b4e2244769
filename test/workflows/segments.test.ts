// Which attempts the end of a segment (continue-as-new, architecture §4) leaves to the next one. sizes.test.ts shows on a real
// server that runs with large values reach it.
import '../support/plain-sandbox.ts';
import { describe, expect, it } from 'vitest';
import type { HoldReason, Run } from '../../workflows/context.ts';
import { endSegment, isLeftToNextSegment } from '../../workflows/segments.ts';

function isLeft(reasons: readonly HoldReason[], more: Partial<Run> = {}): boolean {
  const run = { holding: new Set(reasons), inFlight: 0, ...more };
  return isLeftToNextSegment(run as unknown as Run);
}

describe('[I105] a node that has not started is left to the next segment', () => {
  it('where a segment that tries to end has filled a workflow task, and nothing is under way', () => {
    expect(isLeft(['segment', 'full'])).toBe(true);
  });

  it('near the limit of the server, whatever is under way', () => {
    expect(isLeft(['limit'], { inFlight: 3 })).toBe(true);
  });

  it.each<[string, HoldReason[], Partial<Run>]>([
    ['while no segment tries to end', [], {}],
    [
      'in the task in which a segment begins to end: what follows from it is stated in order',
      ['segment'],
      {},
    ],
    ['while a step is under way, far from the limit', ['segment', 'full'], { inFlight: 1 }],
    ['in a paused run, where the pause holds nodes (pause.ts)', ['paused'], {}],
    ['when this one has ended', ['limit'], { ending: { kind: 'continue' } }],
  ])('not %s', (_when, reasons, more) => {
    expect(isLeft(reasons, more)).toBe(false);
  });
});

describe('[I105] a segment that drains beside a step', () => {
  /** The history as the server counts it. */
  const info = { historyLength: 100, historySize: 5_000_000 };
  const scope = globalThis as { __TEMPORAL_ACTIVATOR__?: { info?: typeof info } };
  /** Conditions that the end of the segment waits for, in order. */
  const waits: { ready: () => boolean; limitMs: number | undefined; end(): void }[] = [];
  const until = (ready: () => boolean, limitMs?: number) =>
    new Promise<void>((end) => waits.push({ ready, limitMs, end }));

  it('waits without a limit, and starts no attempt, once the history comes near the limit of the server', async () => {
    Object.assign(scope.__TEMPORAL_ACTIVATOR__ ?? {}, { info });
    const holding = new Set<HoldReason>();
    const run = { holding, inFlight: 1, queued: new Set(), progress: 7, steps: { until } };
    void endSegment(run as unknown as Run);
    const [first] = waits;
    expect(first?.limitMs).toBe(30_000);
    expect(first?.ready()).toBe(false);
    info.historySize = 20 * 1024 * 1024;
    // A task in which nothing was done is not looked at.
    expect(first?.ready()).toBe(false);
    run.progress++;
    expect(first?.ready()).toBe(true);
    first?.end();
    await expect.poll(() => waits.length).toBe(2);
    expect(waits[1]?.limitMs).toBeUndefined();
    expect([...holding]).toEqual(['limit']);
  });
});
