// A log row as the wire shows it (spec/02 §1.1): stored once under the published names, with the seeds' names added
// when rendered (design §9).
import { digestOf } from '../rules/ids.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../rules/json.ts';
import type { LogRow } from '../ports/log.ts';
import type { RunEventDoc } from '../../schemas/types.generated.ts';

/** Version of every payload contract (spec/02 §1.2). */
export const EVENT_SCHEMA_VERSION = 1;
/** Engine that wrote the event: the integer of discovery, in decimal. */
export const ENGINE_VERSION = '1';
/** Longest `nodeId` of an envelope; nodes may be named longer, and are then shown by digest. */
const NODE_ID_LENGTH = 128;

const agentRef = (agentId: JsonValue): JsonValue => ({ agentId });
const withErrorName = (error: JsonValue): JsonValue =>
  isJsonObject(error) && error.code !== undefined ? { ...error, error: error.code } : error;

interface Twin {
  /** Stored, published name. */
  readonly from: string;
  /** Name in the seeds; the same as `from` where the value itself gets a twin inside. */
  readonly to: string;
  readonly value?: (stored: JsonValue) => JsonValue;
}

const TOOL_NAME: Twin = { from: 'toolName', to: 'toolId' };

/** The one table of twin names (RFC 0002 §B, design §9). All these payloads are open. */
export const TWINS: Readonly<Record<string, readonly Twin[]>> = {
  'agent.toolCalled': [TOOL_NAME, { from: 'inputs', to: 'arguments' }],
  'agent.toolReturned': [
    TOOL_NAME,
    { from: 'outcome', to: 'result' },
    { from: 'error', to: 'error', value: withErrorName },
  ],
  'agent.handoff': [
    { from: 'fromAgentId', to: 'from', value: agentRef },
    { from: 'toAgentId', to: 'to', value: agentRef },
  ],
};

/** Adds the twins of a stored payload; a name that is there already stays. */
export function withTwins(type: string, payload: JsonValue): JsonValue {
  const twins = Object.hasOwn(TWINS, type) ? TWINS[type] : undefined;
  if (!twins || !isJsonObject(payload)) return payload;
  const shown: JsonObject = { ...payload };
  for (const { from, to, value } of twins) {
    const stored = payload[from];
    if (stored !== undefined && (to === from || payload[to] === undefined))
      shown[to] = value ? value(stored) : stored;
  }
  return shown;
}

/** Payload as JSON text: as stored, byte for byte, where no twin is added. */
function payloadText(row: LogRow): string {
  if (!Object.hasOwn(TWINS, row.type)) return row.payload;
  return JSON.stringify(withTwins(row.type, JSON.parse(row.payload) as JsonValue));
}

/** The event as one line of JSON: what SSE, JSON reads and webhooks send, the same bytes everywhere. */
export function renderEventText(row: LogRow): string {
  const { eventId, runId, type, sequence, nodeId, causationId } = row;
  const head = JSON.stringify({ eventId, runId, type });
  const tail = JSON.stringify({
    timestamp: new Date(row.timestampMs).toISOString(),
    sequence,
    ...(nodeId === undefined
      ? {}
      : { nodeId: nodeId.length <= NODE_ID_LENGTH ? nodeId : digestOf(nodeId) }),
    ...(causationId === undefined ? {} : { causationId }),
    schemaVersion: EVENT_SCHEMA_VERSION,
    engineVersion: ENGINE_VERSION,
  });
  return `${head.slice(0, -1)},"payload":${payloadText(row)},${tail.slice(1)}`;
}

export function renderEvent(row: LogRow): RunEventDoc {
  return JSON.parse(renderEventText(row)) as RunEventDoc;
}
