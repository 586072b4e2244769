// GET /pages/runs/{runId}/diff?against=: two runs side by side (RFC 0054), for who is signed in: a link to one run shows no
// other.
import type { Router } from 'express';
import { codeOf } from '../../rules/errors.ts';
import { renderDiffPage } from '../../pages/index.ts';
import { compareRuns } from '../../runs/compare.ts';
import { requireRun } from '../../runs/find.ts';
import { FIRST } from '../majors.ts';
import { queryText } from '../parameters.ts';
import { STALE_HEADER } from '../read-head.ts';
import { comparisonView } from '../routes/diff.ts';
import { page, parameter, signedIn, type PageDeps, type SignedInCall } from './page.ts';

/** Longest id that is looked for, in characters. */
const MAX_RUN_ID = 256;

export function mountDiffPage(router: Router, deps: PageDeps): void {
  router.get('/pages/runs/:runId/diff', page(deps, signedIn(showDiff)));
}

async function showDiff(deps: PageDeps, call: SignedInCall): Promise<void> {
  const { request, response, session } = call;
  const runId = parameter(request, 'runId');
  response.locals.runId = runId;
  const { caller } = session;
  const row = await requireRun(deps, caller, runId);
  const against = (queryText(request, 'against') ?? '').trim().slice(0, MAX_RUN_ID);
  if (against === '') {
    response.status(200).type('html').send(renderDiffPage({ runId, against }));
    return;
  }
  const other = await requireRun(deps, caller, against).catch((error: unknown) => {
    if (codeOf(error) !== 'run_not_found') throw error;
    return undefined;
  });
  if (!other) {
    const fault = 'There is no such run to compare with.';
    response.status(404).type('html').send(renderDiffPage({ runId, against, fault }));
    return;
  }
  const found = await compareRuns(deps, row, other);
  const { stale } = found;
  if (stale) response.setHeader(STALE_HEADER, 'true');
  const compared = comparisonView({ major: FIRST, caller }, found);
  response.status(200).type('html').send(renderDiffPage({ runId, against, compared, stale }));
}
