// Runs whose catch-up failed are tried in rounds (architecture §3.4): none is forgotten, whenever it fails.
import { describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import { createLeftRuns } from '../../src/log/left-runs.ts';
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
