// What a fork's log says of effects that its source performed (architecture §5, §6). The fork's ledger knows them by then, so
// that neither this attempt of the visit nor a later one repeats any of them silently.
import { HostError } from '../src/rules/errors.ts';
import { trackOpen, type OpenItem } from '../src/rules/endings.ts';
import { eventRow } from '../src/rules/events.ts';
import { digestOf } from '../src/rules/ids.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import type { FormerEffect } from '../src/ports/effects.ts';
import type { LogRow } from '../src/ports/log.ts';
import type { Tool } from '../src/ports/tools.ts';
import type { CallToolInput, StepContext } from './contract.ts';
import { isAskedAbout, kinOf } from './perform-effect.ts';
import type { ActivityPorts } from './ports.ts';
import { heldOutcome } from './recorded-call.ts';
import { writeJson } from './transcript.ts';

/** What is read of a log. */
const PARTS = new Set<string>(['node-starts', 'call', 'return', 'wait-opens', 'wait-ends']);
/** Rows read at once. */
const PAGE_ROWS = 1_000;
const IN_DOUBT = { state: 'in-doubt' } as const;
/** It happened, but what came of it was of no use. Behind any other error it did not: another call repeats nothing. */
const HAPPENED = new Set(['tool_invalid_output', 'payload_too_large']);

interface Call {
  readonly toolId: string;
  readonly nodeId: string;
  readonly visit: number;
  readonly attempt: number;
  readonly callId: string;
  readonly argsHash: string;
  readonly occurrence: number;
  /** As the entry says: of a rehearsal it says nothing, since nothing was performed. */
  readonly sideEffects: boolean;
}

/** Calls that are looked for within the first `length` rows of the fork's own log. */
interface Sought {
  readonly context: StepContext;
  readonly toolIds: ReadonlySet<string>;
  readonly length: number;
  /** The visit, up to this attempt, whose calls count whatever they came to. */
  readonly here?: Pick<StepContext, 'nodeId' | 'visit' | 'attempt'>;
  /** Those of all other visits and nodes count where they are in doubt. */
  readonly isOfWholeRun: boolean;
}

/**
 * Notes for the ledger what this visit got of this tool within the first `length` rows of the fork's own log: done, done in
 * vain, or in doubt where a call has no answer of its own. Of this attempt those are begun again that a human had not let be
 * made yet, or that change nothing; and so is a doubtful one of a tool that nobody is asked about. Where calls of the tool were
 * left (`hasLeftCalls`), those in doubt at other visits and nodes are noted, too.
 */
export function inheritEffects(
  ports: ActivityPorts,
  { context, call, hasLeftCalls }: CallToolInput,
  { tool, length }: { readonly tool: Tool | undefined; readonly length: number },
): Promise<void> {
  const isOfWholeRun = hasLeftCalls ?? false;
  const toolIds = new Set([call.toolId]);
  return inherit(ports, { context, toolIds, length, here: context, isOfWholeRun }, tool);
}

/** Of a branch that starts child runs: what was left of these tools. The runs are of its family, and held against it. */
export async function inheritLeftCalls(
  ports: ActivityPorts,
  context: StepContext,
  { tools, length }: { readonly tools: readonly string[]; readonly length: number },
): Promise<void> {
  if (tools.length === 0) return;
  await inherit(ports, { context, toolIds: new Set(tools), length, isOfWholeRun: true });
}

/** `tool`: of the call that is made here. */
async function inherit(ports: ActivityPorts, sought: Sought, tool?: Tool): Promise<void> {
  const { context, here } = sought;
  const { tenant, runId } = context;
  const isHere = (call: Call) => call.nodeId === here?.nodeId && call.visit === here.visit;
  const { calls, answers, unsent } = await readCalls(firstRows(ports, sought), sought);
  // By identity: what a later attempt came to counts.
  const former = new Map<string, FormerEffect>();
  for (const call of calls) {
    const { toolId, attempt, callId, argsHash, occurrence, sideEffects } = call;
    const at = { nodeId: call.nodeId, visit: call.visit };
    const place = { tenant, runId, ...at, toolId, argsHash, occurrence };
    const identity = { ...place, ...kinOf(context) };
    const told = answers.get(callId);
    const isBefore = here !== undefined && isHere(call) && attempt < here.attempt;
    const mayBeMade = (isBefore || sideEffects) && !unsent.has(callId);
    const isDoubt = told ? isLeft(told) && !unsent.has(callId) : mayBeMade;
    const name = canonicalJson([toolId, at.nodeId, at.visit, argsHash, occurrence]);
    if (!isHere(call)) {
      // What came of others is of no interest here, but that nobody knows it.
      if (isDoubt) former.set(name, { identity, attempt, state: 'in-doubt' });
      else if (told) former.delete(name);
      continue;
    }
    const state = isDoubt ? IN_DOUBT : told && (await stateOf(ports, context, told));
    const isRepeatable = state?.state === 'in-doubt' && tool && !isAskedAbout(tool);
    if (state && !isRepeatable) former.set(name, { identity, attempt, ...state });
  }
  await ports.stores.effects.inherit([...former.values()]);
}

/** A human left it, whatever had come of it; one that was not made (`unsent`) has come to nothing. */
function isLeft({ error }: JsonObject): boolean {
  return isJsonObject(error) && error.code === 'effect_skipped';
}

interface Calls {
  readonly calls: readonly Call[];
  /** By callId. */
  readonly answers: ReadonlyMap<string, JsonObject>;
  /** Ids of calls that a human is asked about, or was until their end, and has not let be made. */
  readonly unsent: ReadonlySet<unknown>;
}

async function readCalls(
  rows: AsyncIterable<LogRow>,
  { toolIds, here, isOfWholeRun }: Sought,
): Promise<Calls> {
  const calls: Call[] = [];
  const answers = new Map<string, JsonObject>();
  const places = new Map<string, { visit: number; attempt: number }>();
  const unsent = new Set<unknown>();
  let open: readonly OpenItem[] = [];
  for await (const row of rows) {
    const { nodeId } = row;
    if (nodeId === undefined || (nodeId !== here?.nodeId && !isOfWholeRun)) continue;
    const { part } = eventRow(row.type);
    if (part === undefined || !PARTS.has(part)) continue;
    const payload = JSON.parse(row.payload) as JsonObject;
    if (part === 'return' && unsentIn(open).includes(payload.callId)) unsent.add(payload.callId);
    open = trackOpen(open, { type: row.type, key: row.key, nodeId, payload });
    const at = places.get(nodeId) ?? { visit: 0, attempt: 0 };
    places.set(nodeId, at);
    if (part === 'node-starts') {
      at.attempt = Number(payload.attempt);
      // Each visit begins with its first attempt.
      if (at.attempt === 0) at.visit++;
    } else if (at.visit === here?.visit || isOfWholeRun) {
      const toolId = payload.toolName as string;
      if (!toolIds.has(toolId)) continue;
      if (part === 'call') calls.push(callOf(payload, { toolId, nodeId, ...at }, calls));
      // What the code of the node states closes a call that has no answer.
      else if (!row.key.startsWith(`${row.type}|`)) answers.set(payload.callId as string, payload);
    }
  }
  return { calls, answers, unsent: new Set([...unsent, ...unsentIn(open)]) };
}

function unsentIn(open: readonly OpenItem[]): unknown[] {
  return open.filter(({ unsent }) => unsent !== undefined).map(({ ids }) => ids.callId);
}

/** The n-th equal one of its attempt. */
function callOf(
  payload: JsonObject,
  at: Pick<Call, 'toolId' | 'nodeId' | 'visit' | 'attempt'>,
  before: readonly Call[],
): Call {
  const argsHash = digestOf(canonicalJson(payload.inputs ?? null));
  const isEqual = (call: Call) =>
    call.toolId === at.toolId &&
    call.nodeId === at.nodeId &&
    call.visit === at.visit &&
    call.attempt === at.attempt &&
    call.argsHash === argsHash;
  const equal = before.filter(isEqual);
  const { callId, sideEffects } = payload;
  return {
    ...{ ...at, callId: callId as string, argsHash, occurrence: equal.length },
    sideEffects: sideEffects === true,
  };
}

/** The host writes them soon: service_unavailable until then. */
async function* firstRows(
  { stores }: ActivityPorts,
  { context: { tenant, runId }, length }: Sought,
): AsyncGenerator<LogRow> {
  const run = stores.runs.ref(tenant, runId);
  for (let after = -1; after < length - 1;) {
    const rows = await stores.log.read(run, {
      after,
      limit: Math.min(PAGE_ROWS, length - 1 - after),
    });
    if (rows.length === 0) throw new HostError('service_unavailable');
    yield* rows;
    after += rows.length;
  }
}

async function stateOf(
  { stores: { content } }: ActivityPorts,
  context: StepContext,
  told: JsonObject,
): Promise<Pick<FormerEffect, 'state' | 'outcomeHash'> | undefined> {
  const { error, outcome = null } = told as { error?: JsonValue; outcome?: JsonValue };
  if (!isJsonObject(error))
    return { state: 'done', outcomeHash: await heldOutcome(content, context, outcome) };
  if (!HAPPENED.has(error.code as string)) return undefined;
  return { state: 'done-without-result', outcomeHash: await writeJson(content, context, error) };
}
