// POST /v1/runs/{runId}/cancel (rest-endpoints.md).
import type { RunStatus } from '../../rules/status.ts';
import { principalOf } from '../../rules/subject.ts';
import { cancelRun } from '../../runs/cancel.ts';
import { messageOnce } from '../../runs/messages.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import type { FacadeDeps } from '../deps.ts';
import { answerOnce, IDEMPOTENCY_KEY, toldAs } from '../idempotency.ts';
import {
  addressOf,
  answered,
  shape,
  type Answer,
  type Declaration,
  type InputOf,
  type Route,
} from '../route.ts';

export const CANCEL_RUN = {
  method: 'post',
  path: '/v1/runs/{runId}/cancel',
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
  return answered(CANCEL_RUN, (input) => cancel(deps, input));
}

async function cancel(
  deps: FacadeDeps,
  { caller, run: row, parameters: { idempotencyKey: key }, body }: InputOf<typeof CANCEL_RUN>,
): Promise<Answer> {
  const { runId } = row;
  const asked = { endpoint: addressOf(CANCEL_RUN), target: [runId], body: { ...body }, key };
  const telling = toldAs<RunStatus>(200, (status) => ({ runId, status }));
  const once = await messageOnce(deps, { caller, asked, telling }, (delivery) =>
    cancelRun(
      deps,
      { row, reason: body.reason, cancelledBy: principalOf(caller.subject) },
      delivery,
    ),
  );
  return answerOnce(once, telling);
}
