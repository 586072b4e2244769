// The leaves of cohorts (leaves.test.ts).
import { subjectOf } from '../../src/rules/subject.ts';
import {
  CANCEL_COHORT,
  CREATE_COHORT,
  GET_COHORT,
  LIST_COHORTS,
} from '../../src/facade/routes/cohorts.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { leaf, type Leaf } from './leaf.ts';

const COHORT = `cohort-${'0'.repeat(27)}`;
const ofCohort = (cohortId = COHORT) => ({ path: { cohortId } });
const asked = { idempotencyKey: undefined };
const databaseAway = { without: 'database', told: 'service_unavailable' } as const;

/** One, of one run. */
export async function givenCohort(stores: Pick<Stores, 'cohorts'>): Promise<void> {
  await stores.cohorts.insert(
    {
      ...{ cohortId: COHORT, tenant: 'default', createdAtMs: 1 },
      request: {
        ...{ select: { last: 1 }, change: {}, parallel: 1, memberTimeoutMs: 60_000 },
        ...{ subject: subjectOf('api-key', 'default', 'tester'), scopes: [] },
      },
      members: [{ sourceRunId: 'run-waits', forkRunId: 'run-forked' }],
    },
    1,
  );
}

export const COHORT_LEAVES: readonly Leaf[] = [
  // What it answers where there are runs to fork: acceptance/cohorts.
  leaf(CREATE_COHORT, 'never', {
    given: () => ({ parameters: asked, body: { select: { workflowId: 'nothing' } } }),
    told: 'validation_error',
  }),
  leaf(
    LIST_COHORTS,
    {
      given: () => ({ parameters: { cursor: undefined, limit: 1 } }),
      told: { body: { cohorts: [{ cohortId: COHORT, members: 1 }] } },
    },
    { given: () => ({ parameters: { cursor: undefined, limit: 1 } }), ...databaseAway },
  ),
  leaf(
    GET_COHORT,
    {
      given: () => ({ ...ofCohort(), parameters: { from: 0, limit: 1, outcome: undefined } }),
      told: { body: { cohortId: COHORT, members: 1 } },
    },
    {
      given: () => ({
        ...ofCohort('cohort-none'),
        parameters: { from: 0, limit: 1, outcome: undefined },
      }),
      told: 'not_found',
    },
  ),
  leaf(
    CANCEL_COHORT,
    { given: ofCohort, told: { body: { cohortId: COHORT, state: 'cancelling' } } },
    { given: () => ofCohort('cohort-none'), told: 'not_found' },
  ),
];
