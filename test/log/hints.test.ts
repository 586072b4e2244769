// Which hinted runs are caught up when, on a clock of its own (architecture §3.4).
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createHintQueue, type HintQueue } from '../../src/log/hints.ts';
import { createProjector, type ProjectorDeps } from '../../src/log/projector.ts';
import { silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

const HEAD = { head: {}, reached: true } as never;
const MOMENT_MS = 10;
const GATHERING_MS = 260;
const LONGEST_MS = 1_300;
const MANY = 40;

let caughtUp: string[];
let watched: Set<string>;
/** Called while it is looked up who watches. */
let whileAsking: () => void;
let hints: HintQueue;

beforeEach(() => {
  vi.useFakeTimers();
  caughtUp = [];
  watched = new Set();
  whileAsking = () => {};
  hints = createHintQueue({
    advance: async ({ runId }) => {
      caughtUp.push(runId);
      return HEAD;
    },
    watched: async () => {
      whileAsking();
      return watched;
    },
    onReached: () => {},
    logger: silentLogger,
  });
});
afterEach(async () => {
  await hints.stop();
  vi.useRealTimers();
});

function hint(runId: string, historyLength: number, terminal = false): void {
  hints.add({ run: runRef(runId), temporalRunId: 't', historyLength, terminal });
}

const many = Array.from({ length: MANY }, (_, at) => `run-${at}`);
const passes = (ms: number) => vi.advanceTimersByTimeAsync(ms);

describe('architecture §3.4: when a hinted run is caught up', () => {
  it('at once where somebody watches, also while many rest', async () => {
    watched.add('watched');
    for (const runId of [...many, 'watched']) hint(runId, 3);
    await passes(MOMENT_MS);
    expect(caughtUp).toEqual(['watched']);
  });

  it('at once where somebody begins to watch while it rests, whatever else is hinted of it', async () => {
    hint('found', 3);
    await passes(MOMENT_MS);
    hint('found', 9);
    hints.wanted('found');
    await passes(MOMENT_MS);
    expect(caughtUp).toEqual(['found']);
    await passes(LONGEST_MS);
    expect(caughtUp).toEqual(['found']);
  });

  it('at once where somebody begins to watch while that is looked up', async () => {
    whileAsking = () => hints.wanted('found');
    hint('found', 3);
    hints.wanted('unknown');
    await passes(MOMENT_MS);
    expect(caughtUp).toEqual(['found']);
    whileAsking = () => {};
    hint('found', 9);
    await passes(MOMENT_MS);
    expect(caughtUp).toEqual(['found']);
  });

  it('an unwatched one with the next gathering', async () => {
    hint('alone', 3);
    await passes(MOMENT_MS);
    expect(caughtUp).toEqual([]);
    await passes(GATHERING_MS);
    expect(caughtUp).toEqual(['alone']);
  });

  it('a short run among many once, when it has ended', async () => {
    for (const runId of many) hint(runId, 3);
    await passes(GATHERING_MS);
    for (const runId of many) hint(runId, 9, true);
    await passes(LONGEST_MS);
    expect([...caughtUp].sort()).toEqual([...many].sort());
  });

  it('one that goes on among many, too, before long', async () => {
    for (const runId of many) hint(runId, 3);
    await passes(GATHERING_MS);
    expect(caughtUp).toEqual([]);
    await passes(LONGEST_MS);
    expect([...caughtUp].sort()).toEqual([...many].sort());
  });

  it('all at once when the process stops', async () => {
    for (const runId of many) hint(runId, 3);
    await passes(MOMENT_MS);
    await hints.stop();
    expect([...caughtUp].sort()).toEqual([...many].sort());
  });
});

describe('architecture §3.4: the projector', () => {
  /** Of stores in which nobody watches; who listens for the beginning of watches is in `listeners`. */
  function projectorOn(listeners: Set<(runId: string) => void>) {
    const onWatch = (listener: (runId: string) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    };
    const advance = async ({ runId }: { readonly runId: string }) => {
      caughtUp.push(runId);
      return HEAD;
    };
    const watched = async () => new Set<string>();
    const stores = {
      projection: { onWatch, watched, releaseLease: async () => undefined },
      log: { onReconnect: () => () => undefined },
      runs: { ref: (tenant: string, runId: string) => runRef(runId, tenant) },
    };
    const parts = { logger: silentLogger, processId: 'p1', answers: async () => undefined };
    return createProjector({ log: { advance }, stores, ...parts } as unknown as ProjectorDeps);
  }

  it('catches up a resting run at once when a watch of it begins, and hears of none once it has stopped', async () => {
    const listeners = new Set<(runId: string) => void>();
    const projector = projectorOn(listeners);
    for (const runId of ['found', 'other']) projector.hint(runRef(runId), 't', 3, false);
    await passes(MOMENT_MS);
    expect(caughtUp).toEqual([]);
    for (const begins of listeners) begins('found');
    await passes(MOMENT_MS);
    expect(caughtUp).toEqual(['found']);
    await projector.stop();
    expect(listeners.size).toBe(0);
  });
});
