// POST /v1/runs/{runId}:fork (replay.md).
import type { JsonObject } from '../../rules/json.ts';
import type { AcceptedRun } from '../../runs/accept.ts';
import { forkRun } from '../../runs/fork.ts';
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
import { runUrls, shownRunId } from '../urls.ts';
import { runIdOf } from './runs.ts';

export const FORK_RUN = {
  method: 'post',
  path: '/runs/{runId}:fork',
  operationId: 'forkRun',
  summary:
    'Make a run from the record of another: a replay states again what its source stated and performs nothing; a branch lives from an event on.',
  access: 'runs:create',
  about: 'run',
  parameters: { idempotencyKey: IDEMPOTENCY_KEY },
  body: {
    required: true,
    schema: shape('RunForkRequest'),
    example: { mode: 'branch', fromSeq: 0 },
    parse: (body) => mustBeValid(validate.runForkRequest(body)),
  },
  success: { status: 201, description: 'The fork is accepted.', schema: shape('RunForkResponse') },
  errors: [
    'invalid_from_seq',
    'replay_source_missing',
    'subject_erased',
    'subject_erasing',
    'capability_not_provided',
    'history_missing',
    'service_unavailable',
  ],
} as const satisfies Declaration;

export function forkRoute(deps: FacadeDeps): Route {
  return answered(FORK_RUN, (input) => fork(deps, input));
}

async function fork(deps: FacadeDeps, input: InputOf<typeof FORK_RUN>): Promise<Answer> {
  const { caller, major, parameters, body: asked, run: source } = input;
  const { idempotencyKey: key } = parameters;
  const { mode, fromSeq = 0 } = asked;
  const told = ({ runId, status }: AcceptedRun): JsonObject => ({
    ...{ runId: shownRunId(input, runId), sourceRunId: shownRunId(input, source.runId) },
    ...{ fromSeq, mode, status, ...runUrls(input, runId) },
  });
  const telling = toldAs<AcceptedRun>(input, 201, told);
  const body = asked as unknown as JsonObject;
  const once = {
    asked: { endpoint: addressOf(FORK_RUN, major), target: [source.runId], body, key },
    telling,
  };
  const done = await forkRun(deps, caller, { source, asked, once });
  return { ...answerOnce(done, telling), runId: runIdOf(input, done) };
}
