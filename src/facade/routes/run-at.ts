// GET …/runs/{runId}/at/{sequence}: a run as it was at an event of its log. An extension of this host, for who looks for what
// went wrong.
import { HostError } from '../../rules/errors.ts';
import { shownTime } from '../../rules/unreadable.ts';
import { runAt, type RunAt } from '../../runs/at.ts';
import type { RunRow } from '../../ports/runs.ts';
import type { FacadeDeps } from '../deps.ts';
import { STALE_HEADER } from '../read-head.ts';
import {
  answered,
  shape,
  type Answer,
  type Declaration,
  type Input,
  type InputOf,
  type Route,
} from '../route.ts';

const SEQUENCE = /^\d{1,9}$/;

export const GET_RUN_AT = {
  method: 'get',
  path: '/host/openwop-temporal/runs/{runId}/at/{sequence}',
  operationId: 'getRunAt',
  summary: 'A run as it was at an event of its log. An extension of this host.',
  access: 'runs:read',
  about: 'run',
  success: { status: 200, description: 'The run as it was.', schema: shape('RunAt') },
  errors: ['not_found', 'capability_not_provided', 'service_unavailable'],
} as const satisfies Declaration;

export function runAtRoute(deps: FacadeDeps): Route {
  return answered(GET_RUN_AT, (input) => getRunAt(deps, input));
}

/** No event has another number. */
export function sequenceIn(text: string): number {
  if (!SEQUENCE.test(text)) throw new HostError('not_found');
  return Number(text);
}

async function getRunAt(deps: FacadeDeps, input: InputOf<typeof GET_RUN_AT>): Promise<Answer> {
  const { run, path } = input;
  const { stale, ...was } = await runAt(deps, run, sequenceIn(path.sequence));
  const body = runAtView(input, run, was);
  return stale ? { headers: { [STALE_HEADER]: 'true' }, body } : { body };
}

/** The wire form: ids as the major shows them, and of the snapshot what an event can change. */
function runAtView({ major }: Pick<Input, 'major'>, run: RunRow, was: RunAt): object {
  const { event, length, snapshot } = was;
  const shown = major.snapshot({ ...snapshot, atSeq: event.sequence }, run) as Record<
    string,
    unknown
  >;
  const { runId, status, currentNodeId, interrupt, nodeStates, variables } = shown;
  const { outputs, error, metrics } = shown;
  return {
    ...{ runId, sequence: event.sequence, length, eventId: event.eventId, type: event.type },
    ...shownTime(event.timestampMs),
    ...{ status, nodeStates, variables },
    ...(interrupt === undefined ? {} : { currentNodeId, interrupt }),
    ...(outputs === undefined ? {} : { outputs }),
    ...(error === undefined ? {} : { error }),
    ...(metrics === undefined ? {} : { metrics }),
  };
}
