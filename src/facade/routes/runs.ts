// POST /v1/runs, GET /v1/runs, GET /v1/runs/{runId} (rest-endpoints.md).
import { CODES } from '../../rules/capabilities.ts';
import type { JsonObject, JsonValue } from '../../rules/json.ts';
import { RUN_STATUSES } from '../../rules/status.ts';
import { acceptRun, type AcceptedRun } from '../../runs/accept.ts';
import type { Once } from '../../runs/once.ts';
import { parseRunRequest, type RunRequest } from '../../runs/request.ts';
import { withShownIds } from '../../wire/major.ts';
import type { RunCreateResponse } from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import { answerOnce, IDEMPOTENCY_KEY, toldAs } from '../idempotency.ts';
import { integer, oneOf, text } from '../parameters.ts';
import { iso } from '../../rules/unreadable.ts';
import {
  addressOf,
  answered,
  shape,
  type Answer,
  type Declaration,
  type Input,
  type InputOf,
  type Route,
} from '../route.ts';
import { readHead } from '../read-head.ts';
import { renderSnapshot } from '../snapshot.ts';
import { runUrls, shownRunId } from '../urls.ts';

export const CREATE_RUN = {
  method: 'post',
  path: '/runs',
  operationId: 'createRun',
  summary: 'Start a run of a workflow, or of an agent.',
  access: 'runs:create',
  parameters: { idempotencyKey: IDEMPOTENCY_KEY },
  body: {
    required: true,
    schema: shape('RunCreateRequest'),
    example: { workflowId: 'refund', inputs: { orderId: '4711' }, tags: ['desk'] },
    // What may be asked for is a rule about runs (src/runs), and looks at what this host lacks before the schema.
    parse: (body): JsonValue | undefined => body,
  },
  success: {
    status: 201,
    description: 'The run is accepted.',
    schema: shape('RunCreateResponse'),
  },
  errors: [
    ...Object.values(CODES).flatMap((asked) => [...asked.values()]),
    'workflow_not_found',
    'agent_not_found',
    'model_unavailable',
    'capability_not_provided',
    'subject_erasing',
    'key_unavailable',
    'service_unavailable',
  ],
} as const satisfies Declaration;

/** What lists of runs are asked by. */
export const RUN_LIST = {
  status: oneOf('Only runs in this status.', RUN_STATUSES, {
    reason: 'is not a run status',
    example: 'completed',
  }),
  cursor: text('`nextCursor` of the page before.', {
    ...{ pattern: /^[!-~]{1,512}$/, reason: 'is not a cursor', example: 'MTc2NzMyMzA0NQ' },
  }),
  workflowId: text('Only runs of this workflow.', { example: 'refund' }),
  cohortId: text('Only forks of this cohort, which no other list has. An extension of this host.', {
    ...{ pattern: /^cohort-[0-9A-Za-z]{27}$/, reason: 'is not the id of a cohort' },
    example: 'cohort-1srOrx2ZWZBpBUvZwXKQmoEYga2',
  }),
  limit: integer('Runs in one page.', { min: 1, max: 200, default: 50, example: 20 }),
};

export const LIST_RUNS = {
  method: 'get',
  path: '/runs',
  operationId: 'listRuns',
  summary: 'Runs, newest first. An extension of this host.',
  access: 'runs:read',
  parameters: RUN_LIST,
  success: { status: 200, description: 'One page.', schema: shape('RunList') },
  errors: ['service_unavailable'],
} as const satisfies Declaration;

export const GET_RUN = {
  method: 'get',
  path: '/runs/{runId}',
  operationId: 'getRun',
  summary: 'The state of a run.',
  access: 'runs:read',
  about: 'run',
  success: { status: 200, description: 'The snapshot.', schema: shape('RunSnapshot') },
} as const satisfies Declaration;

export function runRoutes(deps: FacadeDeps): Route[] {
  return [
    answered(CREATE_RUN, (input) => createRun(deps, input)),
    answered(LIST_RUNS, (input) => listRuns(deps, input)),
    answered(GET_RUN, async ({ run, major }) => {
      const { head, headers } = await readHead(deps, run);
      return { headers, body: renderSnapshot(major, head, run) };
    }),
  ];
}

async function createRun(deps: FacadeDeps, input: InputOf<typeof CREATE_RUN>): Promise<Answer> {
  const { caller, major, parameters, body } = input;
  const { idempotencyKey: key } = parameters;
  const run = idsInside(input, parseRunRequest(caller, body));
  const telling = toldAs<AcceptedRun>(input, 201, createdAs(input));
  const asked = { endpoint: addressOf(CREATE_RUN, major), target: [], body, key };
  const once = await acceptRun(deps, caller, { run, once: { asked, telling } });
  return { ...answerOnce(once, telling), runId: runIdOf(input, once) };
}

/** RunCreateResponse. */
function createdAs(input: InputOf<typeof CREATE_RUN>): (accepted: AcceptedRun) => JsonObject {
  return ({ runId, sessionId, status, warnings }) => {
    const answer: RunCreateResponse = {
      runId: shownRunId(input, runId),
      sessionId,
      status,
      ...runUrls(input, runId),
      ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
    };
    return answer as unknown as JsonObject;
  };
}

/** What is asked for, under its name inside. */
function idsInside(
  { major, caller }: Pick<Input, 'major' | 'caller'>,
  request: RunRequest,
): RunRequest {
  const { workflowId, agentId } = request;
  return {
    ...request,
    ...(workflowId && { workflowId: major.ids.parse('workflow', workflowId, caller) }),
    ...(agentId && { agentId: major.ids.parse('agent', agentId, caller) }),
  };
}

/** Of an earlier try it is in the answer that was kept. */
export function runIdOf(
  { major, caller }: Pick<Input, 'major' | 'caller'>,
  once: Once<AcceptedRun>,
): string | undefined {
  if (!once.replayed) return once.data.runId;
  const { runId } = once.kept.body as { runId?: string };
  return runId && major.ids.parse('run', runId, caller);
}

/** Under its name inside. No stored text can have a NUL. */
export function workflowAsked(
  { major, caller }: Pick<Input, 'major' | 'caller'>,
  asked: string | undefined,
): string | undefined {
  return asked && major.ids.parse('workflow', asked.replaceAll('\0', ''), caller);
}

async function listRuns({ stores }: FacadeDeps, input: InputOf<typeof LIST_RUNS>): Promise<Answer> {
  const { caller, major, parameters } = input;
  const { workflowId: asked } = parameters;
  const page = await stores.runs.list(caller.tenant, {
    ...parameters,
    workflowId: workflowAsked(input, asked),
  });
  const runs = page.runs.map(({ runId, workflowId, status, createdAtMs, tags, unreadable }) => ({
    ...withShownIds(major, caller.tenant, { runId, workflowId, status }),
    createdAt: iso(createdAtMs),
    tags,
    ...(unreadable ? { unreadable } : {}),
    ...runUrls(input, runId),
  }));
  const { nextCursor } = page;
  return { body: { runs, ...(nextCursor === undefined ? {} : { nextCursor }) } };
}
