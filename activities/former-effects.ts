// What a fork's log says of effects that its source performed (architecture §5, §6). The fork's ledger knows them by then, so
// that neither this attempt of the visit nor a later one repeats any of them silently.
import { agentNamed } from '../src/rules/children.ts';
import { payloadOf } from '../src/rules/damaged.ts';
import { codeOf, HostError } from '../src/rules/errors.ts';
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

/** Whose calls they are. */
type Caller = Pick<StepContext, 'tenant' | 'runId' | 'header'>;

/** Calls that are looked for in what a fork's log has from its source. */
interface Sought {
  readonly context: Caller;
  /** Absent: of all tools but agents, whose runs have calls of their own. */
  readonly toolIds?: ReadonlySet<string>;
  /** The visit, up to this attempt, whose calls count whatever they came to; or all visits. */
  readonly here?: Pick<StepContext, 'nodeId' | 'visit' | 'attempt'> | 'everywhere';
  /** Those of all other visits and nodes count where they are in doubt. */
  readonly isOfWholeRun: boolean;
}

/**
 * Notes for the ledger what this visit got of this tool within the first `length` rows of the fork's own log: done, done in
 * vain, or in doubt where a call has no answer of its own. Of this attempt those are begun again that a human had not let be
 * made yet, or that change nothing; and so is a doubtful one of a tool that nobody is asked about, and that the log does not
 * say had effects. Where calls of the tool were
 * left (`hasLeftCalls`), those in doubt at other visits and nodes are noted, too.
 */
export function inheritEffects(
  ports: ActivityPorts,
  { context, call, hasLeftCalls }: CallToolInput,
  { tool, length }: { readonly tool: Tool | undefined; readonly length: number },
): Promise<void> {
  const isOfWholeRun = hasLeftCalls ?? false;
  const toolIds = new Set([call.toolId]);
  const rows = firstRows(ports, context, length);
  return inherit(ports, { context, toolIds, here: context, isOfWholeRun }, { rows, tool });
}

/**
 * Notes for the ledger what a fork of a child run has done, in vain or in doubt by its source's log: the runs that stand in its
 * place later are told of that. A result that is not there any more is asked about.
 */
export function inheritAll(
  ports: ActivityPorts,
  context: Caller,
  rows: AsyncIterable<LogRow>,
): Promise<void> {
  return inherit(ports, { context, here: 'everywhere', isOfWholeRun: true }, { rows });
}

/** Of a branch that starts child runs: what was left of these tools. The runs are of its family, and held against it. */
export async function inheritLeftCalls(
  ports: ActivityPorts,
  context: StepContext,
  { tools, length }: { readonly tools: readonly string[]; readonly length: number },
): Promise<void> {
  if (tools.length === 0) return;
  const rows = firstRows(ports, context, length);
  await inherit(ports, { context, toolIds: new Set(tools), isOfWholeRun: true }, { rows });
}

/** `tool`: of the call that is made here. */
async function inherit(
  ports: ActivityPorts,
  sought: Sought,
  { rows, tool }: { readonly rows: AsyncIterable<LogRow>; readonly tool?: Tool | undefined },
): Promise<void> {
  const { context, here } = sought;
  const { tenant, runId } = context;
  const { calls, answers, unsent } = await readCalls(rows, sought);
  // By identity: what a later attempt came to counts.
  const former = new Map<string, FormerEffect>();
  for (const call of calls) {
    const { toolId, attempt, callId, argsHash, occurrence, sideEffects } = call;
    const at = { nodeId: call.nodeId, visit: call.visit };
    const place = { tenant, runId, ...at, toolId, argsHash, occurrence };
    const identity = { ...place, ...kinOf(context) };
    const told = answers.get(callId);
    const isBefore = typeof here === 'object' && isIn(call, here) && attempt < here.attempt;
    const mayBeMade = (isBefore || sideEffects) && !unsent.has(callId);
    const isDoubt = told ? isLeft(told) && !unsent.has(callId) : mayBeMade;
    const name = canonicalJson([toolId, at.nodeId, at.visit, argsHash, occurrence]);
    if (!isIn(call, here)) {
      // What came of others is of no interest here, but that nobody knows it.
      if (isDoubt) former.set(name, { identity, attempt, state: 'in-doubt' });
      else if (told) former.delete(name);
      continue;
    }
    const state = isDoubt ? IN_DOUBT : told && (await stateOf(ports, sought, told));
    // What the tool says now does not make harmless what it said had effects when it was called.
    const isHarmless = !sideEffects && tool !== undefined && !isAskedAbout(tool);
    const isRepeatable = state?.state === 'in-doubt' && isHarmless;
    if (state && !isRepeatable) former.set(name, { identity, attempt, ...state });
  }
  await ports.stores.effects.inherit([...former.values()]);
}

function isIn({ nodeId, visit }: Pick<Call, 'nodeId' | 'visit'>, here: Sought['here']): boolean {
  if (typeof here !== 'object') return here === 'everywhere';
  return nodeId === here.nodeId && visit === here.visit;
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
    const isOther = typeof here !== 'object' || nodeId !== here.nodeId;
    if (nodeId === undefined || (isOther && !isOfWholeRun)) continue;
    const { part } = eventRow(row.type);
    if (part === undefined || !PARTS.has(part)) continue;
    const payload = payloadOf(row);
    if (part === 'return' && unsentIn(open).includes(payload.callId)) unsent.add(payload.callId);
    open = trackOpen(open, { type: row.type, key: row.key, nodeId, payload });
    const at = places.get(nodeId) ?? { visit: 0, attempt: 0 };
    places.set(nodeId, at);
    if (part === 'node-starts') {
      at.attempt = Number(payload.attempt);
      // Each visit begins with its first attempt.
      if (at.attempt === 0) at.visit++;
    } else if (isOfWholeRun || isIn({ nodeId, visit: at.visit }, here)) {
      const { toolName: toolId } = payload;
      // A question stands in the log as well, and is of no tool.
      if (typeof toolId !== 'string') continue;
      if (toolIds ? !toolIds.has(toolId) : agentNamed(toolId) !== undefined) continue;
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
  { tenant, runId }: Caller,
  length: number,
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
  { context, here }: Sought,
  told: JsonObject,
): Promise<Pick<FormerEffect, 'state' | 'outcomeHash'> | undefined> {
  const { error, outcome = null } = told as { error?: JsonValue; outcome?: JsonValue };
  if (!isJsonObject(error)) {
    const held = await heldOutcome(content, context, outcome).catch((fault: unknown) => {
      // Nobody may ever ask for it.
      if (here === 'everywhere' && codeOf(fault) === 'content_missing') return undefined;
      throw fault;
    });
    return held === undefined ? IN_DOUBT : { state: 'done', outcomeHash: held };
  }
  if (!HAPPENED.has(error.code as string)) return undefined;
  return { state: 'done-without-result', outcomeHash: await writeJson(content, context, error) };
}
