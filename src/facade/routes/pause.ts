// POST /v1/runs/{runId}:pause and :resume (rest-endpoints.md).
import type { RunStatus } from '../../rules/status.ts';
import { messageOnce } from '../../runs/messages.ts';
import { holdRun } from '../../runs/pause.ts';
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

export const PAUSE_RUN = {
  method: 'post',
  path: '/v1/runs/{runId}:pause',
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
  path: '/v1/runs/{runId}:resume',
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
      const { drainPolicy = 'drain-current-node', reason } = input.body;
      return hold(deps, { ...input, at: PAUSE_RUN }, { kind: 'pause', drainPolicy, reason });
    }),
    answered(RESUME_RUN, (input) =>
      hold(deps, { ...input, at: RESUME_RUN }, { kind: 'resume', reason: input.body.reason }),
    ),
  ];
}

async function hold(
  deps: FacadeDeps,
  {
    at,
    caller,
    run: row,
    parameters: { idempotencyKey: key },
    body,
  }: Pick<InputOf<typeof RESUME_RUN>, 'caller' | 'run' | 'parameters' | 'body'> & {
    readonly at: Declaration;
  },
  asking: Parameters<typeof holdRun>[1]['hold'],
): Promise<Answer> {
  const { runId } = row;
  const asked = { endpoint: addressOf(at), target: [runId], body: { ...body }, key };
  const telling = toldAs<RunStatus>(202, (status) => ({ runId, status }));
  const once = await messageOnce<RunStatus>(deps, { caller, asked, telling }, (delivery) =>
    holdRun(deps, { row, hold: asking }, delivery),
  );
  return answerOnce(once, telling);
}
