// POST /v1/runs/{runId}/cancel (spec/01 §2.7).
import type { RunStatus } from '../../rules/status.ts';
import { principalOf } from '../../rules/subject.ts';
import { cancelRun } from '../../runs/cancel.ts';
import { requireRun } from '../../runs/find.ts';
import { messageOnce } from '../../runs/messages.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import type { FacadeDeps } from '../deps.ts';
import { idempotencyKey, sendOnce, toldAs } from '../idempotency.ts';
import { IDEMPOTENCY_KEY, type Route } from '../route.ts';

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
      const asked = { endpoint: ENDPOINT, target: [row.runId], body, key };
      const telling = toldAs<RunStatus>(200, (status) => ({ runId: row.runId, status }));
      const once = await messageOnce(deps, { caller, asked, telling }, (delivery) =>
        cancelRun(deps, { row, reason, cancelledBy: principalOf(caller.subject) }, delivery),
      );
      sendOnce(response, once, telling);
    },
  };
}
