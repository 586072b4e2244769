// POST /v1/runs/{runId}:pause and :resume (rest-endpoints.md).
import { holdRun } from '../../runs/pause.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import type { FacadeDeps } from '../deps.ts';
import { IDEMPOTENCY_KEY } from '../idempotency.ts';
import { answered, shape, type Declaration, type Route } from '../route.ts';
import { tellRun } from '../run-message.ts';

export const PAUSE_RUN = {
  method: 'post',
  path: '/runs/{runId}:pause',
  operationId: 'pauseRun',
  summary: 'Hold a run: nothing new begins until it is resumed. What it asked can be answered.',
  access: 'runs:cancel',
  about: 'run',
  parameters: { idempotencyKey: IDEMPOTENCY_KEY },
  body: {
    required: false,
    schema: shape('RunPauseRequest'),
    example: { reason: 'The payment provider is down.', drainPolicy: 'drain-current-node' },
    parse: (body = {}) => mustBeValid(validate.runPauseRequest(body)),
  },
  success: {
    status: 202,
    description: 'The run is paused when what runs has come to its end, or was cut.',
    schema: shape('RunStatusAnswer'),
  },
  errors: ['run_state_conflict'],
} as const satisfies Declaration;

export const RESUME_RUN = {
  ...PAUSE_RUN,
  path: '/runs/{runId}:resume',
  operationId: 'resumeRun',
  summary: 'Let a paused run go on. An attempt that the pause cut begins anew.',
  body: {
    required: false,
    schema: shape('RunResumeRequest'),
    example: { reason: 'The payment provider is back.' },
    parse: (body = {}) => mustBeValid(validate.runResumeRequest(body)),
  },
  success: { status: 202, description: 'The run goes on.', schema: shape('RunStatusAnswer') },
} as const satisfies Declaration;

export function pauseRoutes(deps: FacadeDeps): Route[] {
  return [
    answered(PAUSE_RUN, (input) => {
      const { run: row, body } = input;
      const { drainPolicy = 'drain-current-node', reason } = body;
      return tellRun(deps, { declared: PAUSE_RUN, input }, (delivery) =>
        holdRun(deps, { row, hold: { kind: 'pause', drainPolicy, reason } }, delivery),
      );
    }),
    answered(RESUME_RUN, (input) => {
      const { run: row, body } = input;
      return tellRun(deps, { declared: RESUME_RUN, input }, (delivery) =>
        holdRun(deps, { row, hold: { kind: 'resume', reason: body.reason } }, delivery),
      );
    }),
  ];
}
