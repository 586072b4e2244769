// GET /v1/runs/{runId}/debug-bundle (debug-bundle.md): a run as one document to hand to whoever looks into it. It holds
// what its owner reads elsewhere, state and log, and nothing else of this host.
import { jsonBytes, type JsonValue } from '../../rules/json.ts';
import { REDACTION } from '../../rules/redaction.ts';
import { rowsShown } from '../../wire/major.ts';
import type { DebugBundle, RunSnapshot } from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import { implementationOf } from '../host-facts.ts';
import { integer } from '../parameters.ts';
import { readHead } from '../read-head.ts';
import {
  answered,
  shape,
  type Answer,
  type Declaration,
  type InputOf,
  type Route,
} from '../route.ts';
import { renderSnapshot } from '../snapshot.ts';

/** Of the whole answer, in UTF-8 bytes: events that do not fit are left out from the end of the log. */
export const DEBUG_BUNDLE_BYTES = 8_000_000;
/** Rows read from the store at once. */
const PAGE_ROWS = 100;

export const GET_DEBUG_BUNDLE = {
  method: 'get',
  path: '/runs/{runId}/debug-bundle',
  operationId: 'getDebugBundle',
  summary: 'State and log of a run as one document.',
  access: 'runs:read',
  about: 'run',
  parameters: {
    maxEvents: integer('Events at most, the first of the log. An extension of this host.', {
      ...{ min: 0, max: Number.MAX_SAFE_INTEGER, example: 1_000 },
    }),
  },
  success: { status: 200, description: 'The bundle.', schema: shape('DebugBundle') },
} as const satisfies Declaration;

export function debugBundleRoute(deps: FacadeDeps): Route {
  return answered(GET_DEBUG_BUNDLE, (input) => getDebugBundle(deps, input));
}

async function getDebugBundle(
  deps: FacadeDeps,
  input: InputOf<typeof GET_DEBUG_BUNDLE>,
): Promise<Answer> {
  const { major, run: row } = input;
  const { head, headers } = await readHead(deps, row);
  const run = renderSnapshot(major, head, row) as RunSnapshot;
  const { metrics, nodeStates = {} } = run;
  const told = {
    bundleVersion: '1.0',
    generatedAt: new Date().toISOString(),
    host: implementationOf(deps.config),
    run: run as DebugBundle['run'],
    spans: [],
    ...REDACTION,
  };
  const { events, truncatedReason } = await eventsOf(deps, input, {
    length: head.nextSequence,
    bytes: DEBUG_BUNDLE_BYTES - jsonBytes(told) - REST_BYTES,
  });
  const body: DebugBundle = {
    ...told,
    events: events as unknown as DebugBundle['events'],
    metrics: {
      openwopCost: metrics?.openwopCost ?? null,
      nodeCount: Object.keys(nodeStates).length,
      eventCount: events.length,
    },
    ...(truncatedReason === undefined ? {} : { truncated: true, truncatedReason }),
  };
  return { headers: { ...headers, 'Cache-Control': 'no-store' }, body };
}

/** What stands beside run and events: metrics, and why it is cut. */
const REST_BYTES = 4_096;

interface Room {
  /** Of the log that the snapshot is of. */
  readonly length: number;
  readonly bytes: number;
}

/** A prefix of the log, as every read of it shows it. */
async function eventsOf(
  { log }: FacadeDeps,
  { major, run, parameters }: InputOf<typeof GET_DEBUG_BUNDLE>,
  { length, bytes }: Room,
): Promise<{ readonly events: readonly JsonValue[]; readonly truncatedReason?: string }> {
  const { maxEvents = length } = parameters;
  const shown = rowsShown(major, run);
  const events: JsonValue[] = [];
  let left = bytes;
  const query = { limit: Math.min(length, maxEvents), pageRows: PAGE_ROWS };
  for await (const rows of log.rows(run, query))
    for (const row of rows) {
      const text = shown.textOf(row);
      left -= Buffer.byteLength(text) + 1;
      if (left < 0) return { events, truncatedReason: 'events_truncated_to_size_cap' };
      events.push(JSON.parse(text) as JsonValue);
    }
  return maxEvents < length
    ? { events, truncatedReason: 'events_truncated_to_max_events' }
    : { events };
}
