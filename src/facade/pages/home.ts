// The host's page (architecture §10): for who is signed in; browsers that ask for the host's bare address come here.
import type { Request, Router } from 'express';
import type { RunStatus } from '../../rules/status.ts';
import type { Caller } from '../../ports/caller.ts';
import { renderHomePage, type HomePageModel } from '../../pages/index.ts';
import type { FacadeDeps } from '../deps.ts';
import { FIRST } from '../majors.ts';
import { readParameter } from '../parameters.ts';
import { STALE_HEADER } from '../read-head.ts';
import { overviewOf } from '../routes/overview.ts';
import { RUN_LIST, workflowAsked } from '../routes/runs.ts';
import { shared } from '../shared.ts';
import { EVENT_STREAM } from '../sse.ts';
import { HOME, page, signedIn, type PageDeps, type SignedInCall } from './page.ts';

const EVENTS = `${HOME}/events`;
/** Runs of one page, and those that wait. */
const SHOWN_RUNS = 30;
const SHOWN_WAITING = 10;
/** What waits is counted no further. */
const COUNTED_WAITING = 1_000;
/** Whether the engine is there is asked once in this time, in ms, for all who look. */
const ENGINE_ASKED_MS = 1_000;

/** Fields of a form are sent empty where nothing is chosen. */
const ASKED = {
  status: { ...RUN_LIST.status, emptyIsAbsent: true },
  workflow: { ...RUN_LIST.workflowId, emptyIsAbsent: true },
  cursor: RUN_LIST.cursor,
  waiting: RUN_LIST.cursor,
} as const;

export function mountHomePage(router: Router, deps: PageDeps): void {
  const isAway = shared(() => deps.engine.ping().then(...AWAY), ENGINE_ASKED_MS);
  // No route of its own: Express would answer OPTIONS for it, and this address is none of the API's.
  router.use((request, response, next) => {
    const isAsked = request.path === '/' && ['GET', 'HEAD'].includes(request.method);
    if (isAsked && prefersHtml(request)) response.redirect(303, HOME);
    else next();
  });
  router.get(
    HOME,
    page(
      deps,
      signedIn((given, call) => showHome({ ...given, isAway }, call)),
    ),
  );
  router.get(EVENTS, page(deps, signedIn(streamChanges)));
}

const AWAY = [() => false, () => true] as const;

/** As browsers do. A client that takes anything is none. */
function prefersHtml(request: Request): boolean {
  return request.accepts(['json', 'html']) === 'html';
}

interface Asked {
  readonly status?: RunStatus;
  readonly workflow?: string;
  readonly cursor?: string;
  /** Cursor among those that wait. */
  readonly waiting?: string;
}

async function showHome(
  deps: PageDeps & { readonly isAway: () => Promise<boolean> },
  { request, response, session }: SignedInCall,
): Promise<void> {
  const { caller, csrfToken } = session;
  const asked: Asked = {
    status: readParameter(request, 'status', ASKED.status),
    workflow: readParameter(request, 'workflow', ASKED.workflow),
    cursor: readParameter(request, 'cursor', ASKED.cursor),
    waiting: readParameter(request, 'waiting', ASKED.waiting),
  };
  const [waiting, runs, stale] = await Promise.all([
    waitingOf(deps, caller, asked),
    runsOf(deps, caller, asked),
    deps.isAway(),
  ]);
  if (stale) response.setHeader(STALE_HEADER, 'true');
  const { status, workflow: workflowId } = asked;
  const html = renderHomePage({
    ...{ csrfToken, eventsUrl: EVENTS, waiting, stale, filter: { status, workflowId } },
    ...runs,
    ...offersOf(deps, caller),
  });
  response.status(200).type('html').send(html);
}

async function waitingOf(
  { log }: FacadeDeps,
  caller: Caller,
  asked: Asked,
): Promise<HomePageModel['waiting']> {
  const query = { cursor: asked.waiting, limit: SHOWN_WAITING, countTo: COUNTED_WAITING };
  const { runs, nextCursor, count } = await log.waitingRuns(caller.tenant, query);
  return {
    ...{ count, countedTo: COUNTED_WAITING },
    runs: runs.map((run) => overviewOf({ major: FIRST, caller }, run)),
    ...(nextCursor === undefined ? {} : { moreUrl: urlOf({ ...asked, waiting: nextCursor }) }),
    ...(asked.waiting === undefined ? {} : { firstUrl: urlOf({ ...asked, waiting: undefined }) }),
  };
}

async function runsOf(
  { log }: FacadeDeps,
  caller: Caller,
  asked: Asked,
): Promise<Pick<HomePageModel, 'runs' | 'olderUrl' | 'newestUrl'>> {
  const { status, cursor } = asked;
  const workflowId = workflowAsked({ major: FIRST, caller }, asked.workflow);
  const query = { status, workflowId, cursor, limit: SHOWN_RUNS };
  const { runs, nextCursor } = await log.overview(caller.tenant, query);
  return {
    runs: runs.map((run) => overviewOf({ major: FIRST, caller }, run)),
    ...(nextCursor === undefined ? {} : { olderUrl: urlOf({ ...asked, cursor: nextCursor }) }),
    ...(cursor === undefined ? {} : { newestUrl: urlOf({ ...asked, cursor: undefined }) }),
  };
}

function urlOf(asked: Asked): string {
  const given = Object.entries(asked).filter(([, value]) => value !== undefined);
  const query = new URLSearchParams(given as [string, string][]).toString();
  return query === '' ? HOME : `${HOME}?${query}`;
}

function offersOf(
  { catalog }: FacadeDeps,
  { tenant }: Caller,
): Pick<HomePageModel, 'workflows' | 'agents' | 'faults'> {
  const workflows = catalog
    .definitions(tenant)
    .map(({ id, name, version, description, nodes }) => ({
      ...{ workflowId: id, name, version, description, steps: nodes.length },
    }));
  const agents = catalog.agents(tenant).map(({ manifest, degraded }) => {
    const { agentId, persona, label = persona, modelClass, description } = manifest;
    return { agentId, persona, label, modelClass, description, degraded };
  });
  return {
    workflows: workflows.sort((a, b) => a.name.localeCompare(b.name, 'en')),
    agents,
    faults: catalog.faults(tenant),
  };
}

/** Says that something of the tenant's runs changed, while the session lasts; what, the page reads itself. */
async function streamChanges(
  { streams, log, sessions }: PageDeps,
  { request, response, session }: SignedInCall,
): Promise<void> {
  const { subject, tenant } = session.caller;
  const stream = streams.open(subject, response);
  if (stream.signal.aborted) return;
  try {
    response.status(200).set(EVENT_STREAM);
    response.flushHeaders();
    if (request.method === 'HEAD') return;
    for await (const what of log.changes(tenant, stream.signal)) {
      if (!(await sessions.findHost(request))) return;
      if (!(await stream.send(`event: ${what}\ndata: {}\n\n`))) return;
    }
  } finally {
    stream.end();
  }
}
