// GET /v1/host/openwop-temporal/runs: runs as people look at them, with what each waits for. An extension of this host.
import { ASKS_A_PERSON } from '../../rules/status.ts';
import type { Overview } from '../../log/overview.ts';
import { withShownIds } from '../../wire/major.ts';
import { headOf } from '../../words/question.ts';
import type { RunOverview, RunOverviewList } from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import { iso } from '../../rules/unreadable.ts';
import { oneOf } from '../parameters.ts';
import {
  answered,
  shape,
  type Answer,
  type Declaration,
  type Input,
  type InputOf,
  type Route,
} from '../route.ts';
import { RUN_LIST, workflowAsked } from './runs.ts';

export const RUN_OVERVIEW = {
  method: 'get',
  path: '/host/openwop-temporal/runs',
  operationId: 'listRunOverviews',
  summary:
    'Runs with their names and what each waits for, newest first; those that wait for a person, the soonest deadline first. An extension of this host.',
  access: 'runs:read',
  parameters: {
    ...RUN_LIST,
    waiting: oneOf(
      'Only runs that wait for a person, the soonest deadline first, then the oldest question.',
      ['true', 'false'],
      { reason: 'must be true or false', example: 'true' },
    ),
  },
  success: { status: 200, description: 'One page.', schema: shape('RunOverviewList') },
  errors: ['service_unavailable'],
} as const satisfies Declaration;

export function overviewRoute(deps: FacadeDeps): Route {
  return answered(RUN_OVERVIEW, (input) => listOverviews(deps, input));
}

async function listOverviews(
  { log }: FacadeDeps,
  input: InputOf<typeof RUN_OVERVIEW>,
): Promise<Answer> {
  const { caller, parameters } = input;
  const page = await log.overview(caller.tenant, {
    ...parameters,
    waiting: parameters.waiting === 'true',
    workflowId: workflowAsked(input, parameters.workflowId),
  });
  const { nextCursor } = page;
  const body: RunOverviewList = {
    runs: page.runs.map((run) => overviewOf(input, run)),
    ...(nextCursor === undefined ? {} : { nextCursor }),
  };
  return { body };
}

/** A run as lists show it, its questions by their titles. */
export function overviewOf(
  { major, caller }: Pick<Input, 'major' | 'caller'>,
  { runId, workflowId, workflowName, status, createdAtMs, tags, unreadable, summary }: Overview,
): RunOverview {
  const { startedAtMs, endedAtMs, isRehearsal, waits } = summary;
  const shown = <Ids extends Record<string, string>>(ids: Ids): Ids =>
    withShownIds(major, caller.tenant, ids);
  return {
    ...shown({ runId, workflowId }),
    ...{ workflowName, status, createdAt: iso(createdAtMs), tags: [...tags] },
    ...(unreadable ? { unreadable } : {}),
    ...(startedAtMs === undefined ? {} : { startedAt: iso(startedAtMs) }),
    ...(endedAtMs === undefined ? {} : { endedAt: iso(endedAtMs) }),
    ...(isRehearsal ? { rehearsal: true } : {}),
    waiting: waits.map(
      ({ nodeId, nodeName, interruptId, kind, requestedAtMs, deadlineMs, data }) => ({
        ...shown({ nodeId, interruptId }),
        ...{ nodeName, kind, title: headOf({ kind, data }, nodeName).title },
        forPerson: ASKS_A_PERSON[kind],
        requestedAt: iso(requestedAtMs),
        ...(deadlineMs === undefined ? {} : { deadline: iso(deadlineMs) }),
      }),
    ),
  };
}
