// POST /v1/runs/{runId}/interrupts/{nodeId} (interrupt.md).
import type { JsonValue } from '../../rules/json.ts';
import { answerInterrupt } from '../../runs/answer.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import type { FacadeDeps } from '../deps.ts';
import { IDEMPOTENCY_KEY } from '../idempotency.ts';
import { answered, shape, type Declaration, type Route } from '../route.ts';
import { tellRun } from '../run-message.ts';

export const RESOLVE_INTERRUPT = {
  method: 'post',
  path: '/runs/{runId}/interrupts/{nodeId}',
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
    'conversation_limit_exceeded',
  ],
} as const satisfies Declaration;

export function interruptRoute(deps: FacadeDeps): Route {
  return answered(RESOLVE_INTERRUPT, (input) => {
    const { caller, major, run: row, path, body } = input;
    const { nodeId } = path;
    const interruptId = body.interruptId && major.ids.parse('interrupt', body.interruptId, caller);
    const value = body.resumeValue as JsonValue;
    const answer = { row, nodeId, interruptId, value, resolvedBy: caller.subject };
    const call = { declared: RESOLVE_INTERRUPT, input, about: { nodeId } };
    return tellRun(deps, call, (delivery) => answerInterrupt(deps, answer, delivery));
  });
}
