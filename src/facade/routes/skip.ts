// POST …/runs/{runId}:skip: moves the clock of a rehearsal. An extension of this host, of `npm start` alone.
import { NEXT_DEADLINE } from '../../rules/messages.ts';
import { skipTime } from '../../runs/skip.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import type { FacadeDeps } from '../deps.ts';
import { IDEMPOTENCY_KEY } from '../idempotency.ts';
import { answered, shape, type Declaration, type Route } from '../route.ts';
import { tellRun } from '../run-message.ts';

export const SKIP_TIME = {
  method: 'post',
  path: '/host/openwop-temporal/runs/{runId}:skip',
  operationId: 'skipTime',
  summary:
    'Move the clock of a rehearsal: what waits for a time ends in its order. An extension of this host.',
  access: 'runs:cancel',
  about: 'run',
  parameters: { idempotencyKey: IDEMPOTENCY_KEY },
  body: {
    required: true,
    schema: shape('RunSkipRequest'),
    example: { forMs: 259_200_000 },
    parse: (body) => mustBeValid(validate.runSkipRequest(body)),
  },
  success: {
    status: 202,
    description: 'The clock moves as soon as nothing of the run is under way.',
    schema: shape('RunSkipAnswer'),
  },
  errors: ['capability_not_provided', 'not_a_rehearsal', 'run_state_conflict'],
} as const satisfies Declaration;

export function skipRoute(deps: FacadeDeps): Route {
  return answered(SKIP_TIME, (input) => {
    const { run: row, body } = input;
    const { forMs: to = NEXT_DEADLINE } = body;
    return tellRun(deps, { declared: SKIP_TIME, input }, (delivery) =>
      skipTime(deps, { row, to }, delivery),
    );
  });
}
