// GET /pages/runs/{runId}/events/{eventId}/causes: why something happened, for who sees the run (seed 003 §1.2). A one-time
// link shows its run alone: where the chain leaves it, the page says so and stops.
import type { Request, Response, Router } from 'express';
import { HostError } from '../../rules/errors.ts';
import { nothingOf } from '../../rules/unreadable.ts';
import { EVENT_STORIES } from '../../rules/events.ts';
import { renderCausesPage, type CausesPageModel, type CauseStep } from '../../pages/index.ts';
import type { LogLink } from '../../ports/log.ts';
import type { RunRow } from '../../ports/runs.ts';
import { requireRun } from '../../runs/find.ts';
import type { PageSession } from '../page-sessions.ts';
import { askToSignIn, page, parameter, type PageDeps } from './page.ts';

const EVENT_ID = /^[\x21-\x7e]{1,128}$/;

export function mountCausesPage(router: Router, deps: PageDeps): void {
  router.get('/pages/runs/:runId/events/:eventId/causes', page(deps, showCauses));
}

async function showCauses(deps: PageDeps, request: Request, response: Response): Promise<void> {
  const runId = parameter(request, 'runId');
  const eventId = parameter(request, 'eventId');
  response.locals.runId = runId;
  const session = await deps.sessions.find(request, runId);
  if (!session) {
    askToSignIn(request, response);
    return;
  }
  const row = await requireRun(deps, session.caller, runId);
  const found = EVENT_ID.test(eventId) ? await deps.log.causesOf(row, eventId) : undefined;
  if (!found) throw new HostError('not_found');
  const hidden = session.host ? -1 : found.causes.findIndex((cause) => cause.runId !== runId);
  const shown = hidden < 0 ? found.causes : found.causes.slice(0, hidden);
  const step = await stepsOf(deps, session, row);
  const causes: CauseStep[] = [];
  for (const cause of shown) causes.push(await step(cause));
  const rest = hidden < 0 ? restOf(found) : 'hidden';
  const html = renderCausesPage({ runId, event: await step(found.event), causes, rest });
  response.status(200).type('html').send(html);
}

type Found = NonNullable<Awaited<ReturnType<PageDeps['log']['causesOf']>>>;

function restOf({ truncated, beyond }: Found): CausesPageModel['rest'] {
  if (truncated) return 'more';
  return beyond === undefined ? 'nothing' : 'outside';
}

/** Each run of the chain is read once. */
async function stepsOf(
  { stores }: PageDeps,
  { caller }: PageSession,
  row: RunRow,
): Promise<(link: LogLink) => Promise<CauseStep>> {
  const runs = new Map<string, RunRow | undefined>([[row.runId, row]]);
  return async ({ eventId, runId, sequence, type, nodeId, timestampMs }) => {
    if (!runs.has(runId))
      runs.set(runId, await stores.runs.findKept(caller.tenant, runId).catch(nothingOf));
    const nodes = runs.get(runId)?.input.definition.nodes ?? [];
    const [part] = (Object.hasOwn(EVENT_STORIES, type) && EVENT_STORIES[type]) || ['note' as const];
    const nodeName = nodes.find(({ id }) => id === nodeId)?.name ?? nodeId;
    return {
      ...{ eventId, runId, sequence, type, part, timestampMs },
      ...(nodeName === undefined ? {} : { nodeName }),
    };
  };
}
