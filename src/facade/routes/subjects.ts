// Erasure of one subject's data (architecture §10.1): asked for, looked at, and its receipt; and the digest of a run's log,
// which holds before and after. Extensions of this host. The subject stands in no address: addresses are logged.
import type { JsonObject } from '../../rules/json.ts';
import { digestLog } from '../../log/erased.ts';
import { eraseSubject, type Patience } from '../../runs/erase.ts';
import { performOnce } from '../../runs/once.ts';
import { Deadline, rest } from '../../system/time.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import type { ErasureRow } from '../../ports/subjects.ts';
import type { RunRow } from '../../ports/runs.ts';
import { HostError } from '../../rules/errors.ts';
import type { FacadeDeps } from '../deps.ts';
import { answerOnce, IDEMPOTENCY_KEY, toldAs } from '../idempotency.ts';
import { integer } from '../parameters.ts';
import { iso } from '../../rules/unreadable.ts';
import {
  addressOf,
  answered,
  shape,
  type Answer,
  type Declaration,
  type InputOf,
  type Route,
} from '../route.ts';

/**
 * How long in ms a request waits for its end, below what a key is claimed for and what clients wait; the erasure goes on
 * without it.
 */
const ERASE_LIMIT_MS = 8_000;

export const ERASE_SUBJECT = {
  method: 'post',
  path: '/host/openwop-temporal/subjects:erase',
  operationId: 'eraseSubject',
  summary:
    "Erase one subject's data by destroying its key: what its runs left stays, and nobody can read it. An extension of this host.",
  access: 'subjects:erase',
  parameters: { idempotencyKey: IDEMPOTENCY_KEY },
  body: {
    required: true,
    schema: shape('SubjectEraseRequest'),
    example: { dataSubject: 'customer-4711', cancelOpen: true, reason: 'request of 3 May' },
    parse: (body) => mustBeValid(validate.subjectEraseRequest(body)),
  },
  success: {
    status: 200,
    description:
      'Erased, with the receipt; or under way (`state`), which goes on by itself, with what it waits for (`waitsFor`).',
    schema: shape('Erasure'),
  },
  errors: [
    ...(['subject_not_found', 'subject_erasing', 'run_state_conflict'] as const),
    ...(['capability_not_provided', 'service_unavailable', 'key_unavailable'] as const),
  ],
} as const satisfies Declaration;

export const LIST_ERASURES = {
  method: 'get',
  path: '/host/openwop-temporal/erasures',
  operationId: 'listErasures',
  summary: 'Erasures, newest first. An extension of this host.',
  access: 'runs:read',
  parameters: {
    limit: integer('Erasures at most.', { min: 1, max: 200, default: 50, example: 20 }),
  },
  success: { status: 200, description: 'The newest.', schema: shape('ErasureList') },
  errors: ['service_unavailable'],
} as const satisfies Declaration;

export const GET_ERASURE = {
  method: 'get',
  path: '/host/openwop-temporal/erasures/{erasureId}',
  operationId: 'getErasure',
  summary:
    'An erasure: its state, what it waits for, and its receipt once there is one. An extension of this host.',
  access: 'runs:read',
  success: { status: 200, description: 'The erasure.', schema: shape('Erasure') },
  errors: ['not_found', 'service_unavailable'],
} as const satisfies Declaration;

export const GET_INTEGRITY = {
  method: 'get',
  path: '/host/openwop-temporal/runs/{runId}/integrity',
  operationId: 'getRunIntegrity',
  summary:
    'The digest of a run’s log as it is stored; of an erased run, whether it is the one of the receipt. An extension of this host.',
  access: 'runs:read',
  about: 'run',
  success: { status: 200, description: 'The digest.', schema: shape('RunIntegrity') },
  errors: ['service_unavailable'],
} as const satisfies Declaration;

export function subjectRoutes(deps: FacadeDeps): Route[] {
  const { subjects } = deps.stores;
  return [
    answered(ERASE_SUBJECT, (input) => erase(deps, input)),
    answered(LIST_ERASURES, async ({ caller, parameters }) => {
      const erasures = await subjects.erasures(caller.tenant, parameters.limit);
      return { body: { erasures: erasures.map(erasureView) } };
    }),
    answered(GET_ERASURE, async ({ caller, path }) => {
      // No stored text can have a NUL.
      const id = path.erasureId.replaceAll('\0', '');
      const erasure = await subjects.erasure(caller.tenant, id);
      if (!erasure) throw new HostError('not_found');
      return { body: erasureView(erasure) };
    }),
    answered(GET_INTEGRITY, async ({ run, path }) => ({
      body: { runId: path.runId, ...(await integrity(deps, run)) },
    })),
  ];
}

/** What is asked is kept under the subject's pseudonym alone. */
async function erase(deps: FacadeDeps, input: InputOf<typeof ERASE_SUBJECT>): Promise<Answer> {
  const { caller, major, parameters, body } = input;
  const { dataSubject, cancelOpen = false, reason } = body;
  const pseudonym = await deps.stores.subjects.pseudonym(caller.tenant, dataSubject);
  const asked = {
    ...{ endpoint: addressOf(ERASE_SUBJECT, major), target: [pseudonym] },
    body: { cancelOpen, ...(reason === undefined ? {} : { reason }) },
    ...(parameters.idempotencyKey === undefined ? {} : { key: parameters.idempotencyKey }),
  };
  const telling = toldAs<ErasureRow>(input, 200, erasureView);
  const once = await performOnce(deps.stores.idempotency, { caller, asked, telling }, () =>
    eraseSubject(deps, caller, {
      ...{ subject: dataSubject, cancelOpen, patience: patienceOf(ERASE_LIMIT_MS) },
      ...(reason === undefined ? {} : { reason }),
    }),
  );
  return answerOnce(once, telling);
}

function patienceOf(limitMs: number): Patience {
  const deadline = new Deadline(limitMs);
  const isOver = () => deadline.isOver();
  return { isOver, isLate: isOver, rest: (ms) => rest(ms) };
}

function erasureView(erasure: ErasureRow): JsonObject {
  const { erasureId, subject, keyId, state, cancelsOpen, asked, askedAtMs } = erasure;
  const { destroyedAtMs, receipt, waitsFor, unreadable } = erasure;
  return {
    ...{ erasureId, subject, keyId, state, cancelOpen: cancelsOpen, requestedBy: asked.by },
    ...(asked.reason === undefined ? {} : { reason: asked.reason }),
    requestedAt: iso(askedAtMs),
    ...(destroyedAtMs === undefined ? {} : { destroyedAt: iso(destroyedAtMs) }),
    ...(waitsFor === undefined ? {} : { waitsFor: { ...waitsFor } }),
    ...(unreadable ? { unreadable: { ...unreadable } } : {}),
    ...(receipt === undefined ? {} : (JSON.parse(receipt) as JsonObject)),
  };
}

async function integrity(deps: FacadeDeps, run: RunRow): Promise<JsonObject> {
  const now = await digestLog(deps, run);
  const erased = await deps.stores.subjects.erasedRun(run);
  if (!erased) return { ...now };
  const { erasureId, events, root } = erased;
  const isIntact = events === now.events && root === now.root;
  return { ...now, erased: { erasureId, events, root }, isIntact };
}
