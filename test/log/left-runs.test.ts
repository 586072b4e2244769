// Runs whose catch-up failed are tried in rounds (architecture §3.4): none is forgotten, whenever it fails.
import { describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { createLeftRuns } from '../../src/log/left-runs.ts';
import { createOwnFaults } from '../../src/log/own-faults.ts';
import { silentLogger } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';

/** More than lie between the last success of the rounds and their end. */
const TICKS = 12;

async function ticks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick++) await Promise.resolve();
}

describe('architecture §3.4: a run that could not be caught up is tried again', () => {
  it.each(Array.from({ length: TICKS }, (_, tick) => tick))(
    'also when it fails %i ticks after the last one of the rounds succeeded',
    async (tick) => {
      let succeed = (): void => undefined;
      const firstSucceeded = new Promise<void>((resolve) => (succeed = resolve));
      const tries = { first: 0, second: 0 };
      const stop = new AbortController();
      const left = createLeftRuns({
        async catchUp({ runId }) {
          if (runId === 'first') {
            if (++tries.first === 1) throw new HostError('internal_error');
            succeed();
            return;
          }
          if (++tries.second > 1) return;
          await firstSucceeded;
          await ticks(tick);
          throw new HostError('internal_error');
        },
        ownFaults: { isOwn: async () => true },
        signal: stop.signal,
        logger: silentLogger,
        passAgain: () => undefined,
        firstPauseMs: 1,
      });
      const second = left.catchUp(runRef('second'));
      await left.catchUp(runRef('first'));
      await second;
      await expect.poll(() => tries.second).toBe(2);
      stop.abort();
      await left.stopped();
    },
  );
});

describe('a run that alone gets no answer', () => {
  const error = new HostError('service_unavailable');
  const ref = runRef('one');

  /** What is said and noted while those who are needed answer, or do not. */
  function faults() {
    const said: string[] = [];
    const noted: string[] = [];
    const world = { isAway: false, isRowDamaged: false };
    const say = (message: string) => void said.push(message);
    const own = createOwnFaults({
      logger: { ...silentLogger, warn: say, error: say },
      answers: async () => {
        if (world.isAway) throw error;
      },
      noteProblem: async ({ runId }, code) => {
        if (world.isRowDamaged) throw error;
        noted.push(`${runId} ${code}`);
      },
    });
    return { own, said, noted, world };
  }

  // [I97]
  it('is named at once, and is its problem when it stays so', async () => {
    const { own, said, noted } = faults();
    const stop = new AbortController();
    let tries = 0;
    const left = createLeftRuns({
      ...{ ownFaults: own, signal: stop.signal, logger: silentLogger, firstPauseMs: 1 },
      async catchUp() {
        tries++;
        throw error;
      },
      passAgain: () => undefined,
    });
    expect(await left.catchUp(ref)).toBe(true);
    expect([said, noted]).toEqual([['a run could not be caught up, trying again'], []]);
    await expect.poll(() => tries).toBeGreaterThan(4);
    expect(noted).toEqual(['one service_unavailable']);
    expect(said).toHaveLength(2);
    stop.abort();
    await left.stopped();
  });

  it('is not named for an outage, of which one line is said, nor for failures that passed', async () => {
    const { own, said, noted, world } = faults();
    for (let tries = 0; tries < 2; tries++) expect(await own.isOwn(ref, error)).toBe(true);
    own.passed(ref);
    world.isAway = true;
    for (let tries = 0; tries < 9; tries++) expect(await own.isOwn(ref, error)).toBe(false);
    expect(noted).toEqual([]);
    expect(said).toHaveLength(2);
    world.isAway = false;
    expect(await own.isOwn(ref, error)).toBe(true);
    world.isAway = true;
    expect(await own.isOwn(ref, error)).toBe(false);
    expect(said.slice(2)).toEqual([
      'a run could not be caught up, trying again',
      'runs are not caught up, trying again',
    ]);
  });

  it('is named once where its row cannot be written', async () => {
    const { own, said, world } = faults();
    world.isRowDamaged = true;
    for (let tries = 0; tries < 9; tries++) expect(await own.isOwn(ref, error)).toBe(true);
    expect(said).toEqual([
      'a run could not be caught up, trying again',
      'the projection of a run stopped',
      'the problem of a run is not noted',
    ]);
  });
});
