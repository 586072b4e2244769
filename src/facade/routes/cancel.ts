// POST /v1/runs/{runId}/cancel (spec/01 §2.7): an Update, else Temporal's durable request; of an ended run, its status.
import { HostError } from '../../rules/errors.ts';
import { TERMINAL_STATUSES, type RunStatus } from '../../rules/status.ts';
import type { CancelRunMessage } from '../../rules/messages.ts';
import type { RunRow } from '../../ports/runs.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import { requireFreshHead, requireRun } from '../../runs/find.ts';
import type { FacadeDeps } from '../deps.ts';
import {
  idempotencyKey,
  performOnce,
  requestDigest,
  sendStored,
  updateIdOf,
} from '../idempotency.ts';
import { IDEMPOTENCY_KEY, type Route } from '../route.ts';
import { startRun } from '../../runs/start.ts';

const ENDPOINT = 'POST /v1/runs/{runId}/cancel';

export function cancelRoute(deps: FacadeDeps): Route {
  return {
    method: 'post',
    path: '/v1/runs/{runId}/cancel',
    operationId: 'cancelRun',
    summary: 'Cancel a run. Of a run that has ended, nothing changes.',
    access: 'runs:cancel',
    parameters: [IDEMPOTENCY_KEY],
    requestBody: { required: false, schema: { $ref: '#/components/schemas/RunCancelRequest' } },
    success: {
      status: 200,
      description: 'The status of the run.',
      schema: { $ref: '#/components/schemas/RunStatusAnswer' },
    },
    errors: [
      ...([
        'unauthenticated',
        'forbidden',
        'run_not_found',
        'validation_error',
        'idempotency_in_flight',
      ] as const),
      ...([
        'idempotency_key_mismatch',
        'unsupported_media_type',
        'payload_too_large',
        'service_unavailable',
      ] as const),
    ],
    async handle({ request, response, caller, params, body = {} }) {
      const row = await requireRun(deps, caller, params.runId ?? '');
      const { reason } = mustBeValid(validate.runCancelRequest(body));
      const key = idempotencyKey(request);
      const digest = requestDigest([row.runId], body);
      const message: CancelRunMessage = {
        kind: 'cancel',
        ...(reason === undefined ? {} : { reason: deps.redactor.text(reason) }),
        cancelledBy: caller.principal,
        bodyDigest: digest,
      };
      const stored = await performOnce(
        { store: deps.stores.idempotency, caller, key, endpoint: ENDPOINT, digest },
        async () => {
          const status = await cancelRun(deps, row, {
            updateId: updateIdOf(ENDPOINT, [row.runId], key),
            message,
          });
          return { status: 200, body: { runId: row.runId, status } };
        },
      );
      sendStored(response, stored);
    },
  };
}

async function cancelRun(
  deps: FacadeDeps,
  row: RunRow,
  { updateId, message }: { updateId: string; message: CancelRunMessage },
): Promise<RunStatus> {
  const head = await deps.stores.log.head(row.runId);
  if (head?.closed) return head.status;
  // A run that was accepted while Temporal was away is started first: only then can it be cancelled.
  if (!(await startRun(deps, row))) return (await requireFreshHead(deps, row.runId)).status;
  const outcome = await deps.engine.send(row.runId, updateId, message);
  if (outcome.bodyDigest !== message.bodyDigest) throw new HostError('idempotency_key_mismatch');
  if (outcome.status !== 'unchanged')
    return outcome.status === 'cancelled' ? 'cancelled' : 'cancelling';
  const { status } = await requireFreshHead(deps, row.runId);
  return TERMINAL_STATUSES.has(status) ? status : 'cancelling';
}
