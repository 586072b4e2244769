// POST /v1/runs, GET /v1/runs, GET /v1/runs/{runId} (spec/01 §2.3, §2.4).
import { invalid } from '../../rules/errors.ts';
import type { JsonObject } from '../../rules/json.ts';
import { RUN_STATUSES, type RunStatus } from '../../rules/status.ts';
import { acceptRun, type AcceptedRun } from '../../runs/accept.ts';
import { requireRun } from '../../runs/find.ts';
import type { Once } from '../../runs/once.ts';
import { parseRunRequest } from '../../runs/request.ts';
import type { RunCreateResponse } from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import { idempotencyKey, sendOnce, toldAs } from '../idempotency.ts';
import { queryInteger, queryText } from '../query.ts';
import { IDEMPOTENCY_KEY, type Route, type RouteCall } from '../route.ts';
import { readHead } from '../read-head.ts';
import { renderSnapshot } from '../snapshot.ts';
import { baseUrlOf, eventsUrlOf, statusUrlOf } from '../urls.ts';

/** Stands in stored records of idempotency. */
const CREATE_RUN = 'POST /v1/runs';
const DEFAULT_PAGE = 50;
const MAX_PAGE = 200;
/** Longest cursor in characters. */
const MAX_CURSOR = 512;

export function runRoutes(deps: FacadeDeps): Route[] {
  return [createRun(deps), listRuns(deps), getRun(deps)];
}

function createRun(deps: FacadeDeps): Route {
  return {
    method: 'post',
    path: '/v1/runs',
    operationId: 'createRun',
    summary: 'Start a run of a workflow, or of an agent.',
    access: 'runs:create',
    parameters: [IDEMPOTENCY_KEY],
    requestBody: { required: true, schema: { $ref: '#/components/schemas/RunCreateRequest' } },
    success: {
      status: 201,
      description: 'The run is accepted.',
      schema: { $ref: '#/components/schemas/RunCreateResponse' },
    },
    errors: [
      ...([
        'unauthenticated',
        'forbidden',
        'validation_error',
        'unsupported_mock_provider',
        'credential_forbidden',
        'workflow_not_found',
      ] as const),
      ...([
        'agent_not_found',
        'model_unavailable',
        'idempotency_in_flight',
        'idempotency_key_mismatch',
        'payload_too_large',
      ] as const),
      ...(['unsupported_media_type', 'capability_not_provided', 'service_unavailable'] as const),
    ],
    async handle({ request, response, caller, body }) {
      const key = idempotencyKey(request);
      const run = parseRunRequest(caller, body);
      const telling = toldAs<AcceptedRun>(
        201,
        createdAs(baseUrlOf(request, deps.config.publicUrl)),
      );
      const asked = { endpoint: CREATE_RUN, target: [], body, key };
      const once = await acceptRun(deps, caller, { run, once: { asked, telling } });
      response.locals.runId = runIdOf(once);
      sendOnce(response, once, telling);
    },
  };
}

/** RunCreateResponse. */
function createdAs(baseUrl: string): (accepted: AcceptedRun) => JsonObject {
  return ({ runId, status, warnings }) => {
    const answer: RunCreateResponse = {
      runId,
      status,
      eventsUrl: eventsUrlOf(baseUrl, runId),
      statusUrl: statusUrlOf(baseUrl, runId),
      ...(warnings.length === 0 ? {} : { warnings: [...warnings] }),
    };
    return answer as unknown as JsonObject;
  };
}

/** For the access log. */
function runIdOf(once: Once<AcceptedRun>): string | undefined {
  return once.replayed ? (once.kept.body as { runId?: string }).runId : once.data.runId;
}

function isStatus(text: string): text is RunStatus {
  return (RUN_STATUSES as readonly string[]).includes(text);
}

function listRuns(deps: FacadeDeps): Route {
  return {
    method: 'get',
    path: '/v1/runs',
    operationId: 'listRuns',
    summary: 'Runs, newest first. An extension of this host.',
    access: 'runs:read',
    parameters: [
      {
        name: 'status',
        in: 'query',
        description: 'Only runs in this status.',
        schema: { enum: [...RUN_STATUSES] },
      },
      {
        name: 'workflowId',
        in: 'query',
        description: 'Only runs of this workflow.',
        schema: { type: 'string' },
      },
      {
        name: 'cursor',
        in: 'query',
        description: '`nextCursor` of the page before.',
        schema: { type: 'string', pattern: `^[!-~]{1,${MAX_CURSOR}}$` },
      },
      {
        name: 'limit',
        in: 'query',
        description: 'Runs in one page.',
        schema: { type: 'integer', minimum: 1, maximum: MAX_PAGE, default: DEFAULT_PAGE },
      },
    ],
    success: {
      status: 200,
      description: 'One page.',
      schema: { $ref: '#/components/schemas/RunList' },
    },
    errors: ['unauthenticated', 'forbidden', 'validation_error', 'service_unavailable'],
    handle: (call) => answerList(deps, call),
  };
}

async function answerList(
  deps: FacadeDeps,
  { request, response, caller }: RouteCall,
): Promise<void> {
  const status = queryText(request, 'status');
  if (status !== undefined && !isStatus(status))
    throw invalid('status', 'is not a run status', { supported: RUN_STATUSES });
  const cursor = queryText(request, 'cursor');
  if (cursor !== undefined && !/^[\x21-\x7e]+$/.test(cursor.slice(0, MAX_CURSOR + 1)))
    throw invalid('cursor', 'is not a cursor');
  if ((cursor?.length ?? 0) > MAX_CURSOR) throw invalid('cursor', 'is not a cursor');
  const workflowId = queryText(request, 'workflowId')?.replaceAll('\0', '');
  const limit = queryInteger(request, 'limit', { min: 1, max: MAX_PAGE }) ?? DEFAULT_PAGE;
  const page = await deps.stores.runs.list(caller.tenant, {
    status,
    workflowId,
    cursor,
    limit,
  });
  const base = baseUrlOf(request, deps.config.publicUrl);
  response.status(200).json({
    runs: page.runs.map(({ runId, workflowId: workflow, status: state, createdAtMs, tags }) => ({
      runId,
      workflowId: workflow,
      status: state,
      createdAt: new Date(createdAtMs).toISOString(),
      tags,
      statusUrl: statusUrlOf(base, runId),
      eventsUrl: eventsUrlOf(base, runId),
    })),
    ...(page.nextCursor === undefined ? {} : { nextCursor: page.nextCursor }),
  });
}

function getRun(deps: FacadeDeps): Route {
  return {
    method: 'get',
    path: '/v1/runs/{runId}',
    operationId: 'getRun',
    summary: 'The state of a run.',
    access: 'runs:read',
    success: {
      status: 200,
      description: 'The snapshot.',
      schema: { $ref: '#/components/schemas/RunSnapshot' },
    },
    errors: ['unauthenticated', 'forbidden', 'run_not_found', 'service_unavailable'],
    async handle({ response, caller, params }) {
      const row = await requireRun(deps, caller, params.runId ?? '');
      const head = await readHead(deps, row.runId, response);
      response.status(200).json(renderSnapshot(head, row));
    },
  };
}
