// GET /pages/cohorts and /pages/cohorts/{cohortId}, POST …/cancel: cohorts for who is signed in, by the functions that the
// API's routes call.
import type { Router } from 'express';
import { MAX_COHORT_MEMBERS, MEMBER_OUTCOMES } from '../../rules/cohort.ts';
import { renderCohortPage, renderCohortsPage } from '../../pages/index.ts';
import { cancelCohort, requireCohort } from '../../runs/cohorts.ts';
import { FIRST } from '../majors.ts';
import { integer, oneOf, readParameter } from '../parameters.ts';
import { reportedCohort, shownCohorts, summedCohort } from '../routes/cohorts.ts';
import { RUN_LIST } from '../routes/runs.ts';
import { page, parameter, signedIn, type PageDeps, type SignedInCall } from './page.ts';

const COHORTS = '/pages/cohorts';
/** Cohorts, and members, of one page. */
const SHOWN_COHORTS = 30;
const SHOWN_MEMBERS = 50;

const FROM = integer('Position of the first member.', {
  ...{ min: 0, max: MAX_COHORT_MEMBERS, default: 0, example: 0 },
});
const OUTCOME = oneOf('Only members that came to this.', MEMBER_OUTCOMES, {
  ...{ reason: 'is no outcome', example: 'asks' },
});

export function mountCohortPages(router: Router, deps: PageDeps): void {
  router.get(COHORTS, page(deps, signedIn(showCohorts)));
  router.get(`${COHORTS}/:cohortId`, page(deps, signedIn(showCohort)));
  router.post(`${COHORTS}/:cohortId/cancel`, page(deps, signedIn(cancel)));
}

async function showCohorts(
  deps: PageDeps,
  { request, response, session: { caller } }: SignedInCall,
): Promise<void> {
  const cursor = readParameter(request, 'cursor', RUN_LIST.cursor);
  const query = { cursor, limit: SHOWN_COHORTS };
  const { cohorts, nextCursor } = await deps.stores.cohorts.list(caller.tenant, query);
  const asker = { major: FIRST, caller };
  const shown = await shownCohorts(deps, asker, cohorts.map(summedCohort));
  response.status(200).type('html').send(renderCohortsPage(shown, nextCursor));
}

async function showCohort(
  deps: PageDeps,
  { request, response, session: { caller, csrfToken } }: SignedInCall,
): Promise<void> {
  const row = await requireCohort(deps, caller, parameter(request, 'cohortId'));
  const outcome = readParameter(request, 'outcome', OUTCOME);
  const from = readParameter(request, 'from', FROM);
  const query = { row, from, limit: SHOWN_MEMBERS, ...(outcome === undefined ? {} : { outcome }) };
  const cohort = await reportedCohort(deps, { major: FIRST, caller }, query);
  const html = renderCohortPage({ cohort, csrfToken, ...(outcome ? { outcome } : {}) });
  response.status(200).type('html').send(html);
}

async function cancel(
  deps: PageDeps,
  { request, response, session: { caller } }: SignedInCall,
): Promise<void> {
  const row = await requireCohort(deps, caller, parameter(request, 'cohortId'));
  await cancelCohort(deps, row);
  response.redirect(303, `${COHORTS}/${row.cohortId}`);
}
