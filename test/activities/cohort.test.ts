// endCohort: what is left of a cohort is settled, whatever becomes of one of its forks.
import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, test } from 'vitest';
import { cohortActivities } from '../../activities/cohort.ts';
import type { MemberName } from '../../src/ports/cohorts.ts';
import { createRedactor } from '../../src/rules/redaction.ts';
import { silentLogger } from '../support/log-parts.ts';

const nameAt = (position: number): MemberName => ({
  ...{ tenant: 'default', cohortId: 'cohort-1', position },
});
const LEFT = [0, 1, 2].map(nameAt);

/** Steps of the members, in their order, and what became of the cohort. */
async function ended(step: (position: number, tries: number) => boolean) {
  const steps: number[] = [];
  let hasEnded = false;
  const activities = cohortActivities({
    ...{ logger: silentLogger, redactor: createRedactor([]) },
    cohorts: {
      left: async () => LEFT,
      step: async ({ position }) => {
        steps.push(position);
        return step(position, steps.filter((it) => it === position).length);
      },
      end: async () => void (hasEnded = true),
    },
  });
  const { tenant, cohortId } = nameAt(0);
  const environment = new MockActivityEnvironment();
  const outcome = await environment
    .run(() => activities.endCohort({ tenant, cohortId, isCancelled: true }))
    .then(() => 'done')
    .catch((error: unknown) => (error as Error).message);
  return { steps, hasEnded, outcome };
}

test('a fork that is long in ending keeps no other from being ended', async () => {
  const { steps, hasEnded } = await ended((position, tries) => position > 0 || tries > 3);
  expect(steps.slice(0, 3)).toEqual([0, 1, 2]);
  expect(hasEnded).toBe(true);
});

test('one that cannot be settled keeps no other from it, and the cohort is not over before it is', async () => {
  const { steps, hasEnded, outcome } = await ended((position) => {
    if (position === 0) throw new Error('this fork cannot be read');
    return true;
  });
  expect(steps).toEqual([0, 1, 2]);
  expect({ hasEnded, isDone: outcome === 'done' }).toEqual({ hasEnded: false, isDone: false });
});
