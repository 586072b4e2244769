// POST /v1/runs/{runId}/cancel (rest-endpoints.md).
import { principalOf } from '../../rules/subject.ts';
import { cancelRun } from '../../runs/cancel.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import type { FacadeDeps } from '../deps.ts';
import { IDEMPOTENCY_KEY } from '../idempotency.ts';
import { answered, shape, type Declaration, type Route } from '../route.ts';
import { tellRun } from '../run-message.ts';

export const CANCEL_RUN = {
  method: 'post',
  path: '/runs/{runId}/cancel',
  operationId: 'cancelRun',
  summary: 'Cancel a run. Of a run that has ended, nothing changes.',
  access: 'runs:cancel',
  about: 'run',
  parameters: { idempotencyKey: IDEMPOTENCY_KEY },
  body: {
    required: false,
    schema: shape('RunCancelRequest'),
    example: { reason: 'The order was withdrawn.' },
    parse: (body = {}) => mustBeValid(validate.runCancelRequest(body)),
  },
  success: { status: 200, description: 'The status of the run.', schema: shape('RunStatusAnswer') },
} as const satisfies Declaration;

export function cancelRoute(deps: FacadeDeps): Route {
  return answered(CANCEL_RUN, (input) => {
    const { caller, run: row, body } = input;
    const cancellation = { row, reason: body.reason, cancelledBy: principalOf(caller.subject) };
    return tellRun(deps, { declared: CANCEL_RUN, input }, (delivery) =>
      cancelRun(deps, cancellation, delivery),
    );
  });
}
