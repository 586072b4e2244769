// A row of a log of era 2 as the first major shows it (run-event.schema.json): stored once under the published names,
// with the seeds' names added when rendered (architecture §9).
import { eventRow } from '../rules/events.ts';
import { digestOf } from '../rules/ids.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../rules/json.ts';
import { shownTime } from '../rules/unreadable.ts';
import { ENGINE_VERSION } from '../rules/versions.ts';
import type { LogRow } from '../ports/log.ts';

/** Version of every payload contract (version-negotiation.md). */
const EVENT_SCHEMA_VERSION = 1;
/** Longest `nodeId` of an envelope; nodes may be named longer, and are then shown by digest. */
const NODE_ID_LENGTH = 128;

/** Adds the twins of a stored payload; a name that is there already stays. */
function withTwins(type: string, payload: JsonValue): JsonValue {
  if (!isJsonObject(payload)) return payload;
  const shown: JsonObject = { ...payload };
  for (const { from, to, value } of eventRow(type).twins) {
    const stored = payload[from];
    if (stored !== undefined && (to === from || payload[to] === undefined))
      shown[to] = value ? value(stored) : stored;
  }
  return shown;
}

/** Payload as JSON text: as stored, byte for byte, where no twin is added. */
export function payloadText(row: LogRow): string {
  if (eventRow(row.type).twins.length === 0) return row.payload;
  return JSON.stringify(withTwins(row.type, JSON.parse(row.payload) as JsonValue));
}

/** The event as one line of JSON: what SSE and JSON reads send, the same bytes everywhere. */
export function renderEventText(row: LogRow): string {
  const { eventId, runId, type, sequence, nodeId, causationId } = row;
  const { timestamp, unreadable } = shownTime(row.timestampMs);
  const head = JSON.stringify({ eventId, runId, type });
  const tail = JSON.stringify({
    timestamp,
    sequence,
    ...(nodeId === undefined
      ? {}
      : { nodeId: nodeId.length <= NODE_ID_LENGTH ? nodeId : digestOf(nodeId) }),
    ...(causationId === undefined ? {} : { causationId }),
    ...(row.isErased ? { erased: true } : {}),
    ...(unreadable ? { unreadable } : {}),
    schemaVersion: EVENT_SCHEMA_VERSION,
    engineVersion: String(ENGINE_VERSION),
  });
  return `${head.slice(0, -1)},"payload":${payloadText(row)},${tail.slice(1)}`;
}
