// How long a cohort looks at its forks; and endCohort: what is left is settled, whatever becomes of one of them.
import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test, vi } from 'vitest';
import { cohortActivities } from '../../activities/cohort.ts';
import type { MemberName } from '../../src/ports/cohorts.ts';
import type { Look, Standing } from '../../src/runs/cohort-members.ts';
import { HostError } from '../../src/rules/errors.ts';
import { createRedactor } from '../../src/rules/redaction.ts';
import { silentLogger } from '../support/log-parts.ts';

const nameAt = (position: number): MemberName => ({
  ...{ tenant: 'default', cohortId: 'cohort-1', position },
});
const LEFT = [0, 1, 2].map(nameAt);

type Looked = Standing | Error;

/** Steps of the members, in their order, and what became of the cohort. */
async function ended(
  step: (position: number, tries: number, look: Look) => Looked,
  {
    stopLimitMs,
    heartbeatDetails,
  }: {
    stopLimitMs?: number;
    heartbeatDetails?: {
      told?: number;
      tries?: { begun: number; failures: number; outages: number };
    };
  } = {},
) {
  const steps: number[] = [];
  const givenUp: number[] = [];
  let hasEnded = false;
  const activities = cohortActivities({
    ...{ logger: silentLogger, redactor: createRedactor([]) },
    watch: { isThere: () => true, doubt: () => undefined },
    ...(stopLimitMs === undefined ? {} : { stopLimitMs }),
    cohorts: {
      left: async () => LEFT,
      step: async ({ position }, look) => {
        steps.push(position);
        const stands = step(position, steps.filter((it) => it === position).length, look);
        if (stands instanceof Error) throw stands;
        return stands;
      },
      giveUp: async ({ position }) => void givenUp.push(position),
      end: async () => void (hasEnded = true),
    },
  });
  const { tenant, cohortId } = nameAt(0);
  const environment = new MockActivityEnvironment(
    heartbeatDetails === undefined ? {} : { heartbeatDetails },
  );
  const outcome = await environment
    .run(() => activities.endCohort({ tenant, cohortId, isCancelled: true }))
    .then(() => 'done')
    .catch((error: unknown) => (error as Error).message);
  return { steps, givenUp, hasEnded, outcome };
}

test('a fork that is long in ending keeps no other from being ended', async () => {
  const { steps, givenUp, hasEnded } = await ended((position, tries) =>
    position > 0 || tries > 3 ? 'ended' : 'stopping',
  );
  expect(steps.slice(0, 3)).toEqual([0, 1, 2]);
  expect([hasEnded, givenUp]).toEqual([true, []]);
});

test('one that cannot be settled, try by try, is given up: the cohort ends; an outage is waited for', async () => {
  const tried = (times: number) => ({
    heartbeatDetails: { tries: { begun: times, failures: times, outages: 0 } },
  });
  const fault = (position: number) => (position === 1 ? new Error('a fault') : 'ended');
  const early = await ended(fault, tried(3));
  expect([early.hasEnded, early.givenUp]).toEqual([false, []]);
  const late = await ended(fault, tried(20));
  expect([late.hasEnded, late.givenUp, late.outcome]).toEqual([true, [1], 'done']);
  const away = await ended(
    (position) => (position === 1 ? new HostError('service_unavailable') : 'ended'),
    tried(20),
  );
  expect([away.hasEnded, away.givenUp]).toEqual([false, []]);
});

test('one that never ends, though it was told to, is left to itself: the cohort ends', async () => {
  const { givenUp, hasEnded } = await ended((position) => (position === 1 ? 'stopping' : 'ended'), {
    stopLimitMs: 50,
  });
  expect([hasEnded, givenUp]).toEqual([true, [1]]);
});

test('by default it has a minute', async () => {
  let nowMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
  const looks: number[] = [];
  try {
    const { givenUp } = await ended((position) => {
      if (position !== 1) return 'ended';
      nowMs = [0, 59_999, 60_000][looks.length] ?? 0;
      looks.push(nowMs);
      return 'stopping';
    });
    expect([looks, givenUp]).toEqual([[0, 59_999, 60_000], [1]]);
  } finally {
    clock.mockRestore();
  }
});

test('one that cannot be settled keeps no other from it, and the cohort is not over before it is', async () => {
  const { steps, hasEnded, outcome } = await ended((position) =>
    position === 0 ? new Error('this fork cannot be read') : 'ended',
  );
  expect(steps).toEqual([0, 1, 2]);
  expect({ hasEnded, isDone: outcome === 'done' }).toEqual({ hasEnded: false, isDone: false });
});

test('a fork’s time counts while somebody is there: what an earlier try counted goes on, and no gap between counts', async () => {
  const spent: number[] = [];
  await ended(
    (_position, tries, { spentMs }) => {
      spent.push(spentMs);
      return tries > 2 ? 'ended' : 'open';
    },
    { heartbeatDetails: { told: 70_000 } },
  );
  expect(spent[0]).toBe(70_000);
  expect(spent.at(-1)).toBeGreaterThan(70_000);
  expect(spent.at(-1)).toBeLessThan(90_000);
});
