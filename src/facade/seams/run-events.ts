// GET /v1/host/sample/test/runs/{runId}/events (host-sample-test-seams.md): the stored log, filtered. Of a run that is not
// there, or another tenant's, the list is empty: 404 means that the seam is not there.
import type { RunRow } from '../../ports/runs.ts';
import type { JsonObject } from '../../rules/json.ts';
import { rowsShown } from '../../wire/major.ts';
import type { FacadeDeps } from '../deps.ts';
import { text } from '../parameters.ts';
import { answered, type Answer, type Declaration, type InputOf, type Route } from '../route.ts';
import { MAX_ROWS } from './seam.ts';

/** What one answer holds of payloads, in UTF-16 units. */
const MAX_LENGTH = 8 * 1024 * 1024;

const filter = (name: string) =>
  text(`Only events with this ${name}.`, { minLength: 1, maxLength: 1024, example: 'x' });

const RUN_EVENTS = {
  method: 'get',
  path: '/host/sample/test/runs/{runId}/events',
  operationId: 'seamRunEvents',
  summary: 'Events of a run as they are stored. Test mode only.',
  access: 'runs:read',
  parameters: {
    type: filter('type'),
    correlationId: filter('root run'),
    causationId: filter('cause'),
    nodeId: filter('node'),
  },
  success: { status: 200, description: 'The first of them, as many as one answer holds.' },
} as const satisfies Declaration;

export function runEventsRoute(deps: FacadeDeps): Route {
  return answered(RUN_EVENTS, (input) => runEvents(deps, input));
}

async function runEvents(deps: FacadeDeps, input: InputOf<typeof RUN_EVENTS>): Promise<Answer> {
  const { stores } = deps;
  const { caller, path } = input;
  const isName = /^[\x21-\x7e]{1,128}$/.test(path.runId);
  const run = isName ? await stores.runs.find(caller.tenant, path.runId) : undefined;
  return { body: { events: run ? await eventsOf(deps, run, input) : [] } };
}

async function eventsOf(
  { log }: FacadeDeps,
  run: RunRow,
  { major, parameters }: InputOf<typeof RUN_EVENTS>,
): Promise<readonly JsonObject[]> {
  const { correlationId, ...of } = parameters;
  if (correlationId !== undefined && correlationId !== run.input.header.correlationId) return [];
  await log.fresh(run);
  const shown = rowsShown(major, run);
  const asked = Object.entries(of).filter(([, value]) => value !== undefined);
  const events: JsonObject[] = [];
  let length = 0;
  for await (const rows of log.rows(run)) {
    for (const row of rows) {
      const event = JSON.parse(shown.textOf(row)) as JsonObject;
      if (!asked.every(([name, value]) => event[name] === value)) continue;
      length += row.payload.length;
      if (events.length >= MAX_ROWS || length > MAX_LENGTH) return events;
      events.push(event);
    }
  }
  return events;
}
