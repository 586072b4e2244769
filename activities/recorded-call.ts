// A tool's call in a branch that goes by its source's results (replay.md §Modes): what the source got for the same call, and
// nothing performed.
import { payloadOf } from '../src/rules/damaged.ts';
import { HostError } from '../src/rules/errors.ts';
import { eventRow } from '../src/rules/events.ts';
import { digestOf, encodeTuple } from '../src/rules/ids.ts';
import type { StepResult } from '../src/rules/journal.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import type { RecordedLog } from '../src/rules/overlay.ts';
import type { CallToolInput, CallToolOutput, StepContext } from './contract.ts';
import { placeOf } from './place.ts';
import type { ActivityPorts } from './ports.ts';
import { recordedRows } from './recorded-rows.ts';
import { isReference, shownValue } from './shown-value.ts';
import { readJson, writeJson } from './transcript.ts';

interface Called {
  readonly key: string;
  readonly callId: JsonValue;
}

/**
 * The same call is one of the same tool with the same arguments in the same node: of the same visit where there is one, and
 * the n-th of them. Throws HostError replay_source_missing.
 */
export async function recordedCall(
  ports: ActivityPorts,
  input: CallToolInput,
  recordedBy: RecordedLog,
): Promise<StepResult<CallToolOutput>> {
  const { tenant, nodeId, visit } = input.context;
  const { toolId, argsHash, occurrence } = input.call;
  const called: Called[] = [];
  const returned = new Map<JsonValue, JsonObject>();
  for await (const row of recordedRows(ports, tenant, recordedBy)) {
    const { part } = eventRow(row.type);
    if (row.nodeId !== nodeId || (part !== 'call' && part !== 'return')) continue;
    const payload = payloadOf(row);
    const { callId = null, toolName, inputs = null } = payload;
    if (part === 'return') returned.set(callId, payload);
    else if (toolName === toolId && digestOf(canonicalJson(inputs)) === argsHash)
      called.push({ key: row.key, callId });
  }
  const ofVisit = called.filter(({ key }) => key.includes(placeIn(nodeId, visit)));
  const same = (ofVisit.length > 0 ? ofVisit : called)[occurrence];
  const told = same && returned.get(same.callId);
  if (!told)
    throw new HostError('replay_source_missing', {
      reason: `The source has no record of such a call of ${toolId}.`,
    });
  return resultOf(ports, input, told);
}

/** As it stands in keys. */
function placeIn(nodeId: string, visit: number): string {
  const [node = ''] = encodeTuple({ nodeId, visit, attempt: 0, step: '' }).split('/');
  return `|${node}/${visit}/`;
}

async function resultOf(
  { stores }: ActivityPorts,
  { agentId, call, calledKey, context }: CallToolInput,
  told: JsonObject,
): Promise<StepResult<CallToolOutput>> {
  const { content } = stores;
  const { outcome = null, error, status = 'ok' } = told;
  const resultHash = error
    ? await writeJson(content, context, { error })
    : await heldOutcome(content, context, outcome);
  const payload = { ...(error ? { error } : { outcome }), status };
  return {
    output: { kind: 'returned', status: status as 'ok', resultHash },
    events: [
      {
        type: 'agent.toolReturned',
        ...placeOf(context, calledKey),
        payload: { agentId, toolName: call.toolId, callId: call.callId, ...payload } as never,
      },
    ],
  };
}

/**
 * Content hash of an outcome as a log shows it, held by the run of the context: whoever put it may expire before. Throws
 * HostError content_missing where the outcome itself is not there: its reference is none.
 */
export async function heldOutcome(
  content: ActivityPorts['stores']['content'],
  context: Pick<StepContext, 'tenant' | 'runId'>,
  outcome: JsonValue,
): Promise<string> {
  const { tenant, runId } = context;
  const referred = await referredTo(content, tenant, outcome);
  if (referred === undefined) return writeJson(content, context, outcome);
  await content.put({ tenant, runId }, await content.get(tenant, referred));
  return referred;
}

/** The content that a value stands for, if it is shown by reference and not a value that only looks so. */
async function referredTo(
  content: ActivityPorts['stores']['content'],
  tenant: string,
  shown: JsonValue,
): Promise<string | undefined> {
  if (!isReference(shown)) return undefined;
  const { contentRef } = shown;
  const value = await readJson<JsonValue>(content, tenant, contentRef).catch((error: unknown) => {
    // A value of another kind, which this names by chance.
    if (error instanceof SyntaxError) return null;
    throw error;
  });
  return canonicalJson(shownValue(value, contentRef)) === canonicalJson(shown)
    ? contentRef
    : undefined;
}
