// POST /v1/runs/{runId}/interrupts/{nodeId} (spec/02 §4.4).
import type { JsonValue } from '../../rules/json.ts';
import { answerInterrupt } from '../../runs/answer.ts';
import { requireRun } from '../../runs/find.ts';
import { messageOnce } from '../../runs/messages.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import type { FacadeDeps } from '../deps.ts';
import { idempotencyKey, sendOnce, toldAs } from '../idempotency.ts';
import { IDEMPOTENCY_KEY, type Route } from '../route.ts';

const ENDPOINT = 'POST /v1/runs/{runId}/interrupts/{nodeId}';

export function interruptRoute(deps: FacadeDeps): Route {
  return {
    method: 'post',
    path: '/v1/runs/{runId}/interrupts/{nodeId}',
    operationId: 'resolveInterrupt',
    summary: 'Answer what a run waits for at a node.',
    access: 'approvals:respond',
    parameters: [IDEMPOTENCY_KEY],
    requestBody: {
      required: true,
      schema: { $ref: '#/components/schemas/InterruptResolveRequest' },
    },
    success: {
      status: 200,
      description: 'The answer is taken.',
      schema: { $ref: '#/components/schemas/InterruptAnswer' },
    },
    errors: [
      ...([
        'unauthenticated',
        'forbidden',
        'run_not_found',
        'interrupt_not_found',
        'validation_error',
      ] as const),
      ...([
        'interrupt_already_resolved',
        'idempotency_in_flight',
        'idempotency_key_mismatch',
        'interrupt_expired',
      ] as const),
      ...([
        'interrupt_gone',
        'interrupt_cancelled',
        'unsupported_media_type',
        'payload_too_large',
        'service_unavailable',
      ] as const),
    ],
    async handle({ request, response, caller, params, body }) {
      const row = await requireRun(deps, caller, params.runId ?? '');
      const { nodeId = '' } = params;
      const { resumeValue, interruptId } = mustBeValid(validate.interruptResolveRequest(body));
      const key = idempotencyKey(request);
      const asked = { endpoint: ENDPOINT, target: [row.runId, nodeId], body, key };
      const telling = toldAs<string>(200, (status) => ({ runId: row.runId, nodeId, status }));
      const value = resumeValue as JsonValue;
      const answer = { row, nodeId, interruptId, value, resolvedBy: caller.subject };
      const once = await messageOnce(deps, { caller, asked, telling }, (delivery) =>
        answerInterrupt(deps, answer, delivery),
      );
      sendOnce(response, once, telling);
    },
  };
}
