// readRecording: pages of what a fork is made from (architecture §6), of a history that is read once for all of them.
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { jsonBytes } from '../../src/rules/json.ts';
import { wholeBatches, type Recording } from '../../src/rules/recording.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';
import { readRecording } from '../../activities/recording.ts';
import type { ActivityPorts } from '../../activities/ports.ts';
import { runRef } from '../support/run-ref.ts';

const LARGE = 'x'.repeat(150 * 1024);
const entry = (key: string) => ({
  ...{ key, type: 'run.paused', timestampMs: 0 },
  payload: JSON.stringify({ said: `${LARGE} by run-source` }),
});
const RECORDING: Recording = {
  entries: ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map(entry),
  batches: [
    {
      ...{ atMs: 1, position: 0, began: [] },
      stimuli: [{ kind: 'child-ended', childRunId: 'of run-source' }],
    },
  ],
};
const fork: ForkOf = {
  ...{ sourceRunId: 'run-source', fromSeq: 3, length: 7, mode: 'branch', generation: 1 },
  clocks: [{ recordEndsMs: 0, madeAtMs: 0 }],
};

function portsOf(recording: () => Promise<Recording>): ActivityPorts {
  const stores = {
    runs: { ref: (tenant: string, runId: string) => runRef(runId, tenant) },
    content: { share: async () => undefined },
  };
  return { log: { recording }, stores } as unknown as ActivityPorts;
}

async function allPages(ports: ActivityPorts) {
  const pages = [];
  for (let page = 0, isLast = false; !isLast; page++) {
    const asked = { tenant: 'default', runId: 'run-fork', fork, page };
    const { recording } = await readRecording(ports, asked);
    if (!recording) throw new Error('no page');
    pages.push(recording);
    ({ isLast } = recording);
  }
  return pages;
}

it('gives all of it in pages, the own log first, and reads the history once', async () => {
  let reads = 0;
  const pages = await allPages(
    portsOf(() => {
      reads++;
      return Promise.resolve(RECORDING);
    }),
  );
  expect(reads).toBe(1);
  expect(pages.length).toBeGreaterThan(3);
  expect(pages.flatMap(({ entries }) => entries)).toEqual(RECORDING.entries);
  expect(pages.map(({ prefix }) => prefix).reduce((sum, one) => sum + one, 0)).toBe(3);
  // What the fork is given is said to the fork.
  expect(pages.flatMap(({ batches }) => batches)).toMatchObject([
    { stimuli: [{ childRunId: 'of run-fork' }] },
  ]);
});

it('a page is never larger than a payload may be, whatever one task brought together', async () => {
  const outcome = { kind: 'completed' as const, result: { output: LARGE, events: [] } };
  const stimuli = Array.from({ length: 30 }, (_, index) => ({
    ...{ kind: 'step' as const, activityId: `n/1/0/c${index}`, outcome },
  }));
  const batch = { atMs: 1, position: 0, began: ['n'], stimuli };
  const recording = { entries: [], batches: [batch, { ...batch, atMs: 2 }] };
  const pages = await allPages(portsOf(() => Promise.resolve(recording)));
  for (const page of pages) expect(jsonBytes(page)).toBeLessThan(1024 * 1024);
  expect(wholeBatches(pages.flatMap(({ batches }) => batches))).toEqual(recording.batches);
});

it('what no code stated is in no log of a fork', async () => {
  const [first, second, ...more] = RECORDING.entries;
  const entries = [first, { ...second, isDerived: true }, ...more] as Recording['entries'];
  const pages = await allPages(portsOf(() => Promise.resolve({ ...RECORDING, entries })));
  expect(pages.map(({ prefix }) => prefix).reduce((sum, one) => sum + one, 0)).toBe(1);
});

it('what could not be read is read again', async () => {
  let reads = 0;
  const ports = portsOf(() =>
    ++reads === 1 ? Promise.reject(new Error('away')) : Promise.resolve(RECORDING),
  );
  await expect(allPages(ports)).rejects.toThrow('away');
  expect((await allPages(ports)).flatMap(({ entries }) => entries)).toEqual(RECORDING.entries);
});

describe('SECURITY.md: half a minute in memory', () => {
  const KEPT_MS = 30_000;

  /** Of a record that is read when `read` says so; `pageOf` gives one page, `reads` how often it was read. */
  function counted(read = async () => RECORDING) {
    let reads = 0;
    const ports = portsOf(() => (reads++, read()));
    const pageOf = (page: number) =>
      readRecording(ports, { tenant: 'default', runId: 'run-fork', fork, page });
    return { pageOf, reads: () => reads };
  }

  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('what was read stays until so long after the last page, and nobody has to ask for it to go', async () => {
    const { pageOf, reads } = counted();
    await pageOf(0);
    for (const page of [1, 2]) {
      vi.advanceTimersByTime(KEPT_MS - 1);
      await pageOf(page);
    }
    expect(reads()).toBe(1);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(KEPT_MS);
    expect(vi.getTimerCount()).toBe(0);
    await pageOf(2);
    expect(reads()).toBe(2);
  });

  it('it counts from when it was read, where that takes longer', async () => {
    let give = (_: Recording): void => undefined;
    const slow = new Promise<Recording>((resolve) => (give = resolve));
    const { pageOf, reads } = counted(() => slow);
    const first = pageOf(0);
    await vi.advanceTimersByTimeAsync(2 * KEPT_MS);
    give(RECORDING);
    await first;
    vi.advanceTimersByTime(KEPT_MS - 1);
    await pageOf(1);
    expect(reads()).toBe(1);
    vi.advanceTimersByTime(KEPT_MS);
    expect(vi.getTimerCount()).toBe(0);
  });
});
