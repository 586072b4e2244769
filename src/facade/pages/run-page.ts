// The run's page (architecture §10): opened by a one-time link or by who is signed in, live by the run's own event
// stream, answered by plain forms.
import type { Request, Response, Router } from 'express';
import { codeOf, ERRORS, HostError, type ErrorCode } from '../../rules/errors.ts';
import { EVENT_STORIES } from '../../rules/events.ts';
import type { JsonObject } from '../../rules/json.ts';
import { principalOf } from '../../rules/subject.ts';
import { askedInterrupts } from '../../log/fold.ts';
import {
  renderLinkPage,
  renderRunPage,
  type RunControl,
  type RunPageModel,
} from '../../pages/index.ts';
import type { LogRow } from '../../ports/log.ts';
import type { RunRow } from '../../ports/runs.ts';
import { heardBefore, resumeValueOf } from '../../words/answer.ts';
import { ANSWER_NOTICES, ANSWERED_ALREADY, OVER } from '../../words/outcome.ts';
import { rowsShown } from '../../wire/major.ts';
import { answerOpen, requireOpen } from '../../runs/answer.ts';
import { runsBelow } from '../../runs/below.ts';
import { requireRun } from '../../runs/find.ts';
import type { RunEventDoc, RunSnapshot } from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import { FIRST } from '../majors.ts';
import { queryText } from '../parameters.ts';
import type { HostSession } from '../host-sessions.ts';
import type { PageSession } from '../page-sessions.ts';
import { STALE_HEADER } from '../read-head.ts';
import { renderSnapshot } from '../snapshot.ts';
import { askToSignIn, HOME, page, parameter, sentForm, type PageDeps } from './page.ts';
import { startAnotherUrl } from './start.ts';

/** Events that a page shows when it is loaded; of a longer run the newest. */
const PAGE_EVENTS = 2_000;
const READ_ROWS = 500;

/** What a redirect may say on the next page; anything else in the address says nothing. */
const NOTICES: Readonly<Record<string, NonNullable<RunPageModel['notice']>>> = {
  answered: { kind: 'info', text: ANSWER_NOTICES.resolved },
  counted: { kind: 'info', text: ANSWER_NOTICES.open },
  started: { kind: 'info', text: 'The run is started.' },
  'started-before': {
    kind: 'info',
    text: 'The form had started this run already: it was not started again.',
  },
  forked: { kind: 'info', text: 'The run is forked: this is the fork.' },
  pausing: {
    kind: 'info',
    text: 'The run is being paused: what runs comes to its end, and nothing new begins until it is resumed.',
  },
  resumed: { kind: 'info', text: 'The run goes on.' },
  skipping: { kind: 'info', text: 'The clock of the rehearsal moves.' },
  cancelling: { kind: 'info', text: 'The run is being cancelled.' },
  'made-again': {
    kind: 'info',
    text: 'The log of this run, or of one below it, was made again after the database had lost a part of it. You see it as it is now.',
  },
  ended: { kind: 'info', text: 'The run had ended already: there was nothing to cancel.' },
};

export function mountRunPage(router: Router, deps: PageDeps): void {
  router.get('/pages/runs/:runId', page(deps, showPage));
  router.post('/pages/runs/:runId', page(deps, consumeLink));
  router.post('/pages/runs/:runId/interrupts/:nodeId', page(deps, takeAnswer));
}

async function showPage(deps: PageDeps, request: Request, response: Response): Promise<void> {
  const runId = parameter(request, 'runId');
  response.locals.runId = runId;
  const session = await deps.sessions.find(request, runId);
  if (session) {
    await sendRunPage(deps, { request, response, session }, {});
    return;
  }
  const link = queryText(request, 'link');
  if (link === undefined) {
    askToSignIn(request, response);
    return;
  }
  const action = `/pages/runs/${encodeURIComponent(runId)}?link=${encodeURIComponent(link)}`;
  response.status(200).type('html').send(renderLinkPage({ runId, action }));
}

async function consumeLink(deps: PageDeps, request: Request, response: Response): Promise<void> {
  const runId = parameter(request, 'runId');
  response.locals.runId = runId;
  if (!deps.sessions.isOwnOrigin(request)) throw new HostError('forbidden');
  const link = queryText(request, 'link') ?? '';
  if (!(await deps.sessions.open({ runId, link }, response))) throw new HostError('link_expired');
  response.redirect(303, `/pages/runs/${encodeURIComponent(runId)}`);
}

interface PageCall {
  readonly request: Request;
  readonly response: Response;
  readonly session: PageSession;
}

/** `notice` goes before what the address says. */
export async function sendRunPage(
  deps: PageDeps,
  { request, response, session }: PageCall,
  { status = 200, notice }: { status?: number; notice?: RunPageModel['notice'] },
): Promise<void> {
  const row = await requireRun(deps, session.caller, session.runId);
  const { head, stale } = await deps.log.fresh(row);
  if (stale) response.setHeader(STALE_HEADER, 'true');
  const rows = await newestRows(deps, row, head.nextSequence);
  const shown = rowsShown(FIRST, row);
  const id = encodeURIComponent(row.runId);
  const asked = queryText(request, 'notice') ?? '';
  const snapshot = renderSnapshot(FIRST, head, row) as RunSnapshot;
  const html = renderRunPage({
    snapshot,
    events: rows.map((each) => JSON.parse(shown.textOf(each)) as RunEventDoc),
    stories: EVENT_STORIES,
    interrupts: askedInterrupts(head, row),
    viewer: principalOf(session.caller.subject),
    below: session.host && (await questionsBelow(deps, row)),
    csrfToken: session.csrfToken,
    homeUrl: session.host && HOME,
    canFork: session.host !== undefined && row.erasedAtMs === undefined,
    controls: session.host && controlsOf(deps, session.host, row),
    eventsUrl: `${FIRST.prefix}/runs/${id}/events?streamMode=debug`,
    answerUrlOf: (nodeId) => `/pages/runs/${id}/interrupts/${encodeURIComponent(nodeId)}`,
    stale,
    ...forkOf(row, snapshot, session),
    notice: notice ?? (Object.hasOwn(NOTICES, asked) ? NOTICES[asked] : undefined),
    definition: row.input.definition,
  });
  response.status(status).type('html').send(html);
}

/** Its overlay as the snapshot shows it: without what is sensitive. */
function forkOf(
  { input }: RunRow,
  snapshot: RunSnapshot,
  { host }: PageSession,
): Pick<RunPageModel, 'fork'> {
  const { fork } = input;
  if (!fork) return {};
  const { sourceRunId, fromSeq, mode, cohortId } = fork;
  const { runOptionsOverlay: overlay } = snapshot.fork as { runOptionsOverlay?: JsonObject };
  const ofCohort = cohortId === undefined ? {} : { cohortId };
  const note = { sourceRunId, fromSeq, mode, ...ofCohort, isAlone: !host };
  return { fork: { ...note, ...(overlay ? { overlay } : {}) } };
}

type Below = NonNullable<RunPageModel['below']>[number];

/** What the runs below ask, each answered on its own page. */
async function questionsBelow(deps: PageDeps, row: RunRow): Promise<Below[]> {
  const { runs } = await runsBelow(deps, row);
  return runs.flatMap<Below>(({ runId, workflowId, asks, unreadable }) => {
    if (!asks && unreadable) return [{ runId, workflowId, unreadable }];
    return (asks ?? []).map((interrupt) => ({ runId, workflowId, interrupt }));
  });
}

/** Of who is signed in, also where a link had opened the page: its forms are checked by another token then. */
function controlsOf(
  { config }: PageDeps,
  host: HostSession,
  row: RunRow,
): RunPageModel['controls'] {
  const url = (control: RunControl): string =>
    `/pages/runs/${encodeURIComponent(row.runId)}/${control}`;
  return {
    urls: { pause: url('pause'), resume: url('resume'), skip: url('skip'), cancel: url('cancel') },
    canSkip: config.rehearsals === true && row.input.rehearsal !== undefined,
    anotherUrl: startAnotherUrl(row),
    csrfToken: host.csrfToken,
  };
}

async function newestRows(
  { log }: FacadeDeps,
  run: RunRow,
  nextSequence: number,
): Promise<LogRow[]> {
  const all: LogRow[] = [];
  const after = Math.max(-1, nextSequence - 1 - PAGE_EVENTS);
  for await (const rows of log.rows(run, { after, limit: PAGE_EVENTS, pageRows: READ_ROWS }))
    all.push(...rows);
  return all;
}

/** The same rules as the API; what the form got wrong is told on the page, and the run is as it was. */
async function takeAnswer(deps: PageDeps, request: Request, response: Response): Promise<void> {
  const runId = parameter(request, 'runId');
  const nodeId = parameter(request, 'nodeId');
  response.locals.runId = runId;
  const find = () => deps.sessions.find(request, runId);
  const { session, form } = await sentForm(deps, { request, response }, find);
  const row = await requireRun(deps, session.caller, runId);
  const call = { request, response, session };
  try {
    const status = await answer(deps, row, { nodeId, form, session });
    response.redirect(
      303,
      `/pages/runs/${encodeURIComponent(runId)}?notice=${status === 'open' ? 'counted' : 'answered'}`,
    );
  } catch (error) {
    const code = codeOf(error);
    if (!code || code === 'internal_error') throw error;
    const text = refusalText(code, (error as HostError).details ?? {}, session);
    await sendRunPage(deps, call, {
      status: FIRST.errors[code].status,
      notice: { kind: 'error', text },
    });
  }
}

/** Why an answer was not taken, for its sender; the card of the question is gone when it is over. */
function refusalText(
  code: ErrorCode,
  { reason, resolvedBy }: Readonly<Record<string, unknown>>,
  { caller }: PageSession,
): string {
  if (code === 'validation_error' && typeof reason === 'string') return reason;
  if (code === 'interrupt_already_resolved' && resolvedBy === principalOf(caller.subject))
    return ANSWERED_ALREADY;
  return OVER[code] ?? ERRORS[code].message;
}

async function answer(
  deps: FacadeDeps,
  row: RunRow,
  {
    nodeId,
    form,
    session,
  }: { nodeId: string; form: Readonly<Record<string, string>>; session: PageSession },
): Promise<string> {
  // A form belongs to one question: an older one must not answer the next question of the same node.
  const open = await requireOpen(deps, row, { nodeId, interruptId: form.interruptId ?? '' });
  const value = resumeValueOf(form, open);
  if (!value.ok) throw new HostError('validation_error', { reason: value.message });
  const { subject: resolvedBy } = session.caller;
  const heard = heardBefore(form, open);
  return answerOpen(deps, open, { row, value: value.value, resolvedBy, heard });
}
