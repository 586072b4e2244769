// What the test seams share (host-sample-test-seams.md): bodies, definitions that a request makes, and a run that is
// watched until it rests. Nothing here is a path of its own: runs are accepted, executed and logged as any.
import { nodeTypesOf } from '../../rules/capabilities.ts';
import { HostError, invalid } from '../../rules/errors.ts';
import { eventRow, type EventPart } from '../../rules/events.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../rules/json.ts';
import type { Caller } from '../../ports/caller.ts';
import type { Catalog } from '../../ports/catalog.ts';
import type { RunRow } from '../../ports/runs.ts';
import { acceptRun, type AcceptedRun } from '../../runs/accept.ts';
import type { Once } from '../../runs/once.ts';
import type { RunRequest } from '../../runs/request.ts';
import { abortAfter } from '../../system/time.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { checkDefinition } from '../../wire/load-definition.ts';
import { checkAgainst } from '../../wire/user-schema.ts';
import type { WorkflowDefinition } from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import type { Body } from '../route.ts';

/** How long a seam waits for a run, in ms, and how many of its rows it reads. */
const WAIT_MS = 30_000;
export const MAX_ROWS = 5_000;

/** `Value` is what `schema` lets through. */
export function seamBody<Value>(schema: JsonObject, example: JsonValue): Body<Value> {
  const parse = (body: JsonValue = {}) => mustBeValid(checkAgainst(schema, body)) as Value;
  return { required: false, schema, example, parse };
}

/** A definition as it would be loaded from a folder in test mode. Throws validation_error. */
export function checkedDefinition(
  { catalog, config }: FacadeDeps,
  { tenant }: Caller,
  definition: object,
): WorkflowDefinition {
  const checked = checkDefinition(definition, {
    nodeTypes: nodeTypesOf(config),
    agents: (agentId) => catalog.agent(tenant, agentId) !== undefined,
    testMode: config.testMode,
  });
  if (checked.ok) return checked.definition;
  const [{ pointer, message, details = {} }] = checked.faults;
  throw invalid(pointer, message, details);
}

/** The catalog with one definition more. */
export function withDefinition(catalog: Catalog, added: WorkflowDefinition): Catalog {
  return {
    ...catalog,
    definition: (tenant, id) => (id === added.id ? added : catalog.definition(tenant, id)),
  };
}

export async function startSeamRun(
  deps: FacadeDeps,
  caller: Caller,
  run: RunRequest,
): Promise<string> {
  return runIdOf(await acceptRun(deps, caller, { run }));
}

/** Seams have no keys: nothing is replayed. */
export function runIdOf(once: Once<AcceptedRun>): string {
  if (once.replayed) throw new HostError('internal_error', { reason: 'a replay without a key' });
  return once.data.runId;
}

export interface SeenRow {
  readonly eventId: string;
  readonly type: string;
  readonly part: EventPart;
  readonly payload: JsonObject;
}

export interface SeenRun {
  readonly run: RunRow;
  readonly rows: readonly SeenRow[];
}

const RESTS: ReadonlySet<EventPart> = new Set(['run-ends', 'wait-opens']);

/** Until the run has ended or waits for somebody. Throws service_unavailable when that takes too long. */
export async function seenRun(
  { stores, log }: FacadeDeps,
  { tenant }: Caller,
  runId: string,
): Promise<SeenRun> {
  const run = await stores.runs.find(tenant, runId);
  if (!run) throw new HostError('run_not_found');
  const rows: SeenRow[] = [];
  const over = abortAfter(WAIT_MS);
  try {
    for await (const page of log.follow(run, { after: -1, signal: over.signal })) {
      for (const { eventId, type, payload } of page) {
        const value = JSON.parse(payload) as JsonValue;
        const { part } = eventRow(type);
        rows.push({ eventId, type, part, payload: isJsonObject(value) ? value : {} });
        if (RESTS.has(part) || rows.length >= MAX_ROWS) return { run, rows };
      }
    }
  } finally {
    over.clear();
  }
  throw new HostError('service_unavailable', { runId, reason: 'The run takes too long.' });
}

/** The last row of a part. */
export function lastOf({ rows }: SeenRun, part: EventPart): JsonObject | undefined {
  return rows.findLast((row) => row.part === part)?.payload;
}
