// What the bench computes, and its smallest section: the one figure that holds on every machine. The whole bench is a part
// of the campaign (test/campaign/bench.campaign.ts).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runBench } from '../../bench/bench.ts';
import { Closing } from '../../bench/closing.ts';
import { tokenTimes } from '../../bench/latency.ts';
import { tableOf, type BenchReport } from '../../bench/report.ts';
import { SMALLEST } from '../../bench/sizes.ts';
import { median, percentile, trendOf } from '../../bench/statistics.ts';
import { CACHE_DIR } from '../support/temporal.ts';

describe('the bench, asked for one section', () => {
  const closing = new Closing();
  let report: BenchReport;

  beforeAll(async () => {
    const asked = { sizes: SMALLEST, only: ['overhead'] as const, cacheDir: CACHE_DIR };
    report = await runBench({ ...asked, closing, progress: () => {} });
  });

  afterAll(() => closing.close());

  it('architecture §2.3: a sequential run has exactly the history events of the bare workflow', () => {
    const sequential = (report.overhead ?? []).filter(({ parallel }) => !parallel);
    expect(sequential.map(({ activities }) => activities)).toEqual([1, 5, 20]);
    for (const row of sequential) expect(row).toMatchObject({ historyEventsRatio: 1 });
  });

  it('has a table with the machine, by cores and memory alone, and that section', () => {
    const [machine, , ...rows] = tableOf(report).trimEnd().split('\n');
    expect(machine).toMatch(/^Medians of one run on \d+ cores and \d+ GiB of memory\.$/);
    for (const row of rows) expect(row.split('|')).toHaveLength(5);
  });
});

describe('bench arithmetic', () => {
  it('medians and percentiles', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
    expect(percentile([5, 1, 4, 2, 3], 0.95)).toBe(5);
    expect(percentile([5, 1, 4, 2, 3], 0.5)).toBe(3);
  });

  it('a line through points: its slope, and how far they are from it', () => {
    const rising = [0, 1, 2, 3].map((x) => [x, 2 * x + 1] as const);
    expect(trendOf(rising)).toEqual({ slope: 2, residual: 0 });
    const level = [5, 7, 7, 5].map((y, x) => [x, y] as const);
    expect(trendOf(level)).toEqual({ slope: 0, residual: 1 });
  });

  it('a token has arrived with the frame that holds its last character', () => {
    const delta = (id: number, text: string, atMs: number) => ({
      id,
      event: 'agent.reasoning.delta',
      atMs,
      delta: text,
    });
    const tokens = [
      { text: 'one ', atMs: 0 },
      { text: 'two ', atMs: 10 },
      { text: 'three', atMs: 20 },
    ];
    const frames = [delta(1, 'one t', 15), delta(2, 'wo ', 30), delta(3, 'three', 40)];
    expect(tokenTimes(tokens, frames)).toEqual([15, 20, 20]);
  });
});
