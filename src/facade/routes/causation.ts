// Where a run and its events come from: GET /v1/runs/{runId}/ancestry (RFC 0040), and, as extensions of this host, the
// causes and the effects of an event over all runs (seed 003 §2.3 scenario 3).
import { HostError } from '../../rules/errors.ts';
import { shownTime } from '../../rules/unreadable.ts';
import { HOST_ID } from '../../rules/versions.ts';
import { ANCESTRY_CAUSES } from '../../rules/children.ts';
import type { RunHeader } from '../../rules/run-input.ts';
import type { LogLink } from '../../ports/log.ts';
import type { FacadeDeps } from '../deps.ts';
import {
  answered,
  shape,
  type Answer,
  type Declaration,
  type Input,
  type InputOf,
  type Route,
} from '../route.ts';
import { shownRunId } from '../urls.ts';

export const GET_ANCESTRY = {
  method: 'get',
  path: '/runs/{runId}/ancestry',
  operationId: 'getRunAncestry',
  summary: 'The run that started this one, if any.',
  access: 'runs:read',
  about: 'run',
  success: { status: 200, description: 'One hop up.', schema: shape('RunAncestry') },
} as const satisfies Declaration;

export const GET_CAUSES = {
  method: 'get',
  path: '/host/openwop-temporal/runs/{runId}/events/{eventId}/causes',
  operationId: 'getEventCauses',
  summary:
    'What an event follows from, the nearest first, over all runs. An extension of this host.',
  access: 'runs:read',
  about: 'run',
  success: { status: 200, description: 'The chain.', schema: shape('EventCauses') },
  errors: ['not_found', 'service_unavailable'],
} as const satisfies Declaration;

export const GET_EFFECTS = {
  method: 'get',
  path: '/host/openwop-temporal/runs/{runId}/events/{eventId}/effects',
  operationId: 'getEventEffects',
  summary: 'What followed from an event, over all runs. An extension of this host.',
  access: 'runs:read',
  about: 'run',
  success: { status: 200, description: 'The tree, run by run.', schema: shape('EventEffects') },
  errors: ['not_found', 'service_unavailable'],
} as const satisfies Declaration;

export function causationRoutes(deps: FacadeDeps): Route[] {
  return [
    answered(GET_ANCESTRY, (input) => ({ body: ancestryOf(input) })),
    answered(GET_CAUSES, (input) => getCauses(deps, input)),
    answered(GET_EFFECTS, (input) => getEffects(deps, input)),
  ];
}

function ancestryOf(input: InputOf<typeof GET_ANCESTRY>): object {
  const { runId, input: started } = input.run;
  const { header } = started;
  const { parentRunId } = header;
  return {
    runId: shownRunId(input, runId),
    hostId: HOST_ID,
    parent:
      parentRunId === undefined
        ? null
        : { runId: shownRunId(input, parentRunId), hostId: HOST_ID, cause: causeOf(header) },
  };
}

/** In the protocol's words, which have none for a tool call that starts an agent's run. */
function causeOf({ childCause }: RunHeader): string {
  return ANCESTRY_CAUSES[childCause ?? 'agent-tool'];
}

/** No event has another. */
function eventIdIn({ path }: { readonly path: { readonly eventId: string } }): string {
  if (!/^[\x21-\x7e]{1,128}$/.test(path.eventId)) throw new HostError('not_found');
  return path.eventId;
}

async function getCauses({ log }: FacadeDeps, input: InputOf<typeof GET_CAUSES>): Promise<Answer> {
  const found = await log.causesOf(input.run, eventIdIn(input));
  if (!found) throw new HostError('not_found');
  const { event, causes, truncated, beyond } = found;
  const body = {
    event: shown(input, event),
    causes: causes.map((cause) => shown(input, cause)),
    ...(truncated ? { truncated } : {}),
    ...(beyond === undefined ? {} : { beyond }),
  };
  return { body };
}

async function getEffects(
  { log }: FacadeDeps,
  input: InputOf<typeof GET_EFFECTS>,
): Promise<Answer> {
  const found = await log.effectsOf(input.run, eventIdIn(input));
  if (!found) throw new HostError('not_found');
  const { event, effects, truncated } = found;
  const body = {
    event: shown(input, event),
    effects: effects.map(({ depth, ...effect }) => ({ ...shown(input, effect), depth })),
    ...(truncated ? { truncated } : {}),
  };
  return { body };
}

function shown(
  input: Pick<Input, 'major' | 'caller'>,
  { runId, eventId, sequence, type, nodeId, causationId, timestampMs }: LogLink,
): object {
  const { major, caller } = input;
  return {
    ...{ eventId, runId: shownRunId(input, runId), sequence, type },
    ...(nodeId === undefined ? {} : { nodeId: major.ids.bind('node', nodeId, caller.tenant) }),
    ...(causationId === undefined ? {} : { causationId }),
    ...shownTime(timestampMs),
  };
}
