// GET /v1/host/openwop-temporal/retention, and a run's hold (architecture §3.7): what expires when, what has expired, and
// what somebody wants kept. Extensions of this host.
import { mustBeValid } from '../../wire/checked.ts';
import { checkAgainst } from '../../wire/user-schema.ts';
import { withShownIds } from '../../wire/major.ts';
import { isTime } from '../../rules/forms.ts';
import type { JsonObject, JsonValue } from '../../rules/json.ts';
import { DAY_MS } from '../../rules/limits.ts';
import { goneRun } from '../../runs/find.ts';
import type { FacadeDeps } from '../deps.ts';
import { iso } from '../../rules/unreadable.ts';
import {
  answered,
  shape,
  type Answer,
  type Body,
  type Declaration,
  type InputOf,
  type Route,
} from '../route.ts';

/** Runs that are told of each kind. */
const TOLD_RUNS = 20;

export const GET_RETENTION = {
  method: 'get',
  path: '/host/openwop-temporal/retention',
  operationId: 'getRetention',
  summary: 'How long runs are kept, which expire next, and which have. An extension of this host.',
  access: 'runs:read',
  success: { status: 200, description: 'As it stands.', schema: shape('Retention') },
  errors: ['service_unavailable'],
} as const satisfies Declaration;

const HOLD_SCHEMA: JsonObject = {
  type: 'object',
  properties: { reason: { type: 'string', minLength: 1, maxLength: 500 } },
  required: ['reason'],
  additionalProperties: false,
};

const HOLD_BODY: Body<{ readonly reason: string }> = {
  required: true,
  schema: HOLD_SCHEMA,
  example: { reason: 'Case 4711.' },
  parse: (body: JsonValue = null) =>
    mustBeValid(checkAgainst(HOLD_SCHEMA, body)) as { readonly reason: string },
};

export const HOLD_RUN = {
  method: 'post',
  path: '/host/openwop-temporal/runs/{runId}/hold',
  operationId: 'holdRun',
  summary:
    'Keep a run, and its family, from expiring until the hold is released. An extension of this host.',
  access: 'runs:cancel',
  about: 'run',
  body: HOLD_BODY,
  success: { status: 200, description: 'It is held.', schema: shape('RunHold') },
} as const satisfies Declaration;

export const RELEASE_RUN = {
  method: 'post',
  path: '/host/openwop-temporal/runs/{runId}/release',
  operationId: 'releaseRun',
  summary: 'End the hold of a run; without one nothing happens. An extension of this host.',
  access: 'runs:cancel',
  about: 'run',
  success: { status: 200, description: 'It is not held.', schema: shape('RunHold') },
} as const satisfies Declaration;

export function retentionRoutes(deps: FacadeDeps): Route[] {
  return [
    answered(GET_RETENTION, (input) => getRetention(deps, input)),
    answered(HOLD_RUN, (input) => holdRun(deps, input)),
    answered(RELEASE_RUN, async ({ run, major, caller }) => {
      await deps.stores.retention.release(run);
      return { body: withShownIds(major, caller.tenant, { runId: run.runId, held: false }) };
    }),
  ];
}

async function getRetention(
  { stores, config: { retentionDays } }: FacadeDeps,
  { caller, major }: InputOf<typeof GET_RETENTION>,
): Promise<Answer> {
  const { tenant } = caller;
  const found = await stores.retention.overview(tenant, TOLD_RUNS);
  const shown = <Ids extends Record<string, JsonValue>>(ids: Ids) =>
    withShownIds(major, tenant, ids);
  const body = {
    ...(retentionDays === undefined ? {} : { days: retentionDays }),
    ...{ held: found.heldCount, expiredRuns: found.expiredCount },
    next: found.next.map(({ runId, workflowId, endedAtMs, isHeld, unreadable }) => ({
      ...shown({ runId, workflowId }),
      ...{ endedAt: iso(endedAtMs), held: isHeld },
      ...(unreadable ? { unreadable: { ...unreadable } } : expiryOf(endedAtMs, retentionDays)),
    })),
    expired: found.expired.map(({ runId, workflowId, expiredAtMs, isClean, unreadable }) => ({
      ...shown({ runId, workflowId }),
      ...{ expiredAt: iso(expiredAtMs), deleted: isClean },
      ...(unreadable ? { unreadable: { ...unreadable } } : {}),
    })),
  };
  return { body };
}

/** None behind the last time that a date can express. */
function expiryOf(endedAtMs: number, days = Infinity): { readonly expiresAt?: string } {
  const expiresAtMs = endedAtMs + days * DAY_MS;
  return isTime(expiresAtMs) ? { expiresAt: iso(expiresAtMs) } : {};
}

async function holdRun(
  deps: FacadeDeps,
  { run, body, major, caller }: InputOf<typeof HOLD_RUN>,
): Promise<Answer> {
  const { retention } = deps.stores;
  // It may have expired since it was found.
  if (!(await retention.hold(run, deps.redactor.text(body.reason))))
    return goneRun(deps, caller, run.runId);
  const hold = await retention.holdOf(run);
  return {
    body: {
      ...withShownIds(major, caller.tenant, { runId: run.runId }),
      held: hold !== undefined,
      ...(hold ? { reason: hold.reason, heldAt: iso(hold.heldAtMs) } : {}),
    },
  };
}
