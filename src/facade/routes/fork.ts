// POST /v1/runs/{runId}:fork (replay.md).
import type { JsonObject } from '../../rules/json.ts';
import type { AcceptedRun } from '../../runs/accept.ts';
import { requireRun } from '../../runs/find.ts';
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
  about: 'run-or-repeat',
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
  const { caller, major, parameters, body: asked, path, run } = input;
  const { runId: sourceRunId } = path;
  const { idempotencyKey: key } = parameters;
  const { mode, fromSeq = 0 } = asked;
  const told = ({ runId, status, fork }: AcceptedRun): JsonObject => ({
    ...{ runId: shownRunId(input, runId), sourceRunId: shownRunId(input, sourceRunId) },
    // As it was accepted: of a repeat after an erasure nobody can tell what it asks.
    ...{ fromSeq: fork?.fromSeq ?? fromSeq, mode: fork?.mode ?? mode, status },
    ...runUrls(input, runId),
  });
  const telling = toldAs<AcceptedRun>(input, 201, told);
  const body = asked as unknown as JsonObject;
  const once = {
    asked: { endpoint: addressOf(FORK_RUN, major), target: [sourceRunId], body, key },
    telling,
  };
  const source = run ?? (() => requireRun(deps, caller, sourceRunId));
  const done = await forkRun(deps, caller, { source, asked, once });
  return { ...answerOnce(done, telling), runId: runIdOf(input, done) };
}
