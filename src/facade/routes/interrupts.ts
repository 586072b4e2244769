// POST /v1/runs/{runId}/interrupts/{nodeId} (interrupt.md).
import type { JsonObject, JsonValue } from '../../rules/json.ts';
import { answerInterrupt } from '../../runs/answer.ts';
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

export const RESOLVE_INTERRUPT = {
  method: 'post',
  path: '/v1/runs/{runId}/interrupts/{nodeId}',
  operationId: 'resolveInterrupt',
  summary: 'Answer what a run waits for at a node.',
  access: 'approvals:respond',
  about: 'run',
  parameters: { idempotencyKey: IDEMPOTENCY_KEY },
  body: {
    required: true,
    schema: shape('InterruptResolveRequest'),
    example: { resumeValue: { action: 'accept' } },
    parse: (body) => mustBeValid(validate.interruptResolveRequest(body)),
  },
  success: { status: 200, description: 'The answer is taken.', schema: shape('InterruptAnswer') },
  errors: [
    'interrupt_not_found',
    'interrupt_already_resolved',
    'interrupt_expired',
    'interrupt_gone',
    'interrupt_cancelled',
  ],
} as const satisfies Declaration;

export function interruptRoute(deps: FacadeDeps): Route {
  return answered(RESOLVE_INTERRUPT, (input) => resolveInterrupt(deps, input));
}

async function resolveInterrupt(
  deps: FacadeDeps,
  { caller, run: row, path, parameters, body }: InputOf<typeof RESOLVE_INTERRUPT>,
): Promise<Answer> {
  const { runId } = row;
  const { nodeId } = path;
  const asked = {
    endpoint: addressOf(RESOLVE_INTERRUPT),
    target: [runId, nodeId],
    body: body as unknown as JsonObject,
    key: parameters.idempotencyKey,
  };
  const telling = toldAs<string>(200, (status) => ({ runId, nodeId, status }));
  const value = body.resumeValue as JsonValue;
  const answer = { row, nodeId, interruptId: body.interruptId, value };
  const once = await messageOnce(deps, { caller, asked, telling }, (delivery) =>
    answerInterrupt(deps, { ...answer, resolvedBy: caller.subject }, delivery),
  );
  return answerOnce(once, telling);
}
