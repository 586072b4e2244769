// GET /v1/host/openwop-temporal/sessions and …/{sessionId}: what groups the runs of one conversation (seed 003). An
// extension of this host; runs join a session by the `sessionId` of their request.
import { HostError } from '../../rules/errors.ts';
import type { SessionRow, SessionRun } from '../../ports/sessions.ts';
import { withShownIds } from '../../wire/major.ts';
import type { FacadeDeps } from '../deps.ts';
import { integer } from '../parameters.ts';
import { iso } from '../../rules/unreadable.ts';
import {
  answered,
  shape,
  type Answer,
  type Declaration,
  type Input,
  type InputOf,
  type Route,
} from '../route.ts';
import { runUrls } from '../urls.ts';
import { RUN_LIST } from './runs.ts';

export const LIST_SESSIONS = {
  method: 'get',
  path: '/host/openwop-temporal/sessions',
  operationId: 'listSessions',
  summary: 'Sessions, the last active first. An extension of this host.',
  access: 'runs:read',
  parameters: {
    cursor: RUN_LIST.cursor,
    limit: integer('Sessions in one page.', { min: 1, max: 200, default: 50, example: 20 }),
  },
  success: { status: 200, description: 'One page.', schema: shape('SessionList') },
  errors: ['service_unavailable'],
} as const satisfies Declaration;

export const GET_SESSION = {
  method: 'get',
  path: '/host/openwop-temporal/sessions/{sessionId}',
  operationId: 'getSession',
  summary: 'A session with its runs, newest first. An extension of this host.',
  access: 'runs:read',
  parameters: {
    cursor: RUN_LIST.cursor,
    limit: RUN_LIST.limit,
  },
  success: { status: 200, description: 'One page.', schema: shape('Session') },
  errors: ['not_found', 'service_unavailable'],
} as const satisfies Declaration;

export function sessionRoutes(deps: FacadeDeps): Route[] {
  return [
    answered(LIST_SESSIONS, (input) => listSessions(deps, input)),
    answered(GET_SESSION, (input) => getSession(deps, input)),
  ];
}

/** Throws not_found, also of a session that only another tenant has. */
export async function requireSession(
  { stores }: Pick<FacadeDeps, 'stores'>,
  { caller, path }: Pick<InputOf<typeof GET_SESSION>, 'caller' | 'path'>,
): Promise<SessionRow> {
  // No stored text can have a NUL, and no session has a longer name.
  const couldBe = /^[\x21-\x7e]{1,128}$/.test(path.sessionId);
  const found = couldBe ? await stores.sessions.find(caller.tenant, path.sessionId) : undefined;
  if (!found) throw new HostError('not_found');
  return found;
}

async function listSessions(
  { stores }: FacadeDeps,
  { caller, parameters }: InputOf<typeof LIST_SESSIONS>,
): Promise<Answer> {
  const { sessions, nextCursor } = await stores.sessions.list(caller.tenant, parameters);
  return { body: { sessions: sessions.map(shown), ...(nextCursor && { nextCursor }) } };
}

async function getSession(deps: FacadeDeps, input: InputOf<typeof GET_SESSION>): Promise<Answer> {
  const { caller, parameters } = input;
  const session = await requireSession(deps, input);
  const { runs, nextCursor } = await deps.stores.sessions.runs(
    caller.tenant,
    session.sessionId,
    parameters,
  );
  const body = {
    ...shown(session),
    runs: runs.map((run) => runShown(input, run)),
    ...(nextCursor && { nextCursor }),
  };
  return { body };
}

function shown(session: SessionRow): object {
  const { sessionId, title, tags, unreadable, createdAtMs, lastActivityMs } = session;
  return {
    sessionId,
    ...(title === undefined ? {} : { title }),
    tags,
    ...(unreadable ? { unreadable } : {}),
    createdAt: iso(createdAtMs),
    lastActivityAt: iso(lastActivityMs),
  };
}

function runShown(input: Pick<Input, 'major' | 'caller' | 'baseUrl'>, run: SessionRun): object {
  const { runId, workflowId, status, createdAtMs, tags, unreadable } = run;
  const { parentRunId, causationId } = run;
  const { major, caller } = input;
  return {
    ...withShownIds(major, caller.tenant, { runId, workflowId, status }),
    createdAt: iso(createdAtMs),
    tags,
    ...(unreadable ? { unreadable } : {}),
    ...(parentRunId === undefined
      ? {}
      : { parentRunId: major.ids.bind('run', parentRunId, caller.tenant) }),
    ...(causationId === undefined ? {} : { causationId }),
    ...runUrls(input, runId),
  };
}
