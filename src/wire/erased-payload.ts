// An event whose payload was erased (architecture §10.1) still has a payload that is valid by its type's schema
// (run-event-payloads.schema.json): ids, places and the protocol's own words stay as they were, everything else is empty, or
// ERASED where a text must stand. Made beside the sealed payload, while that is at hand.
import { ERASED, keptCode } from '../rules/erased.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../rules/json.ts';
import { schemaDocument } from './validators.ts';

/** Ids of things, places in an order, and what an event must say for a client to pair it with another one. */
const KEPT: ReadonlySet<string> = new Set([
  ...['nodeId', 'runId', 'workflowId', 'typeId', 'agentId', 'fromAgentId', 'toAgentId', 'toolName'],
  ...['callId', 'invocationId', 'interruptId', 'key', 'childRunId', 'childWorkflowId', 'workerId'],
  ...[
    'parentRunId',
    'parentNodeId',
    'sourceRunId',
    'conversationId',
    'messageId',
    'channel',
    'code',
  ],
  ...['turnIndex', 'sequence', 'atSequence', 'attempt', 'iterations', 'isLast', 'writtenAt', 'ts'],
  ...['now', 'skippedMs'],
  ...['limit', 'observed', 'childCount', 'completedCount', 'failedCount', 'mergeOrder', 'floor'],
  ...['provider', 'model', 'inputTokens', 'outputTokens', 'totalAttempts', 'finalReason'],
  'nextWorkerIds',
]);
/** Of an id that the schema does not ask for: kept where it is a text of this length. */
const MAX_ID_LENGTH = 256;
const NO_TIME = '1970-01-01T00:00:00.000Z';
const NO_HASH = `sha256:${'0'.repeat(64)}`;
/** References of a schema to another one, at most. */
const MAX_DEPTH = 12;

interface Schema extends Record<string, unknown> {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly JsonValue[];
  readonly const?: JsonValue;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly minItems?: number;
  readonly minimum?: number;
  readonly pattern?: string;
  readonly format?: string;
  readonly anyOf?: readonly Schema[];
}

interface PayloadSchemas {
  readonly properties: Readonly<Record<string, Schema>>;
  readonly $defs: Readonly<Record<string, Schema>>;
}

let read: PayloadSchemas | undefined;

function payloadSchemas(): PayloadSchemas {
  return (read ??= schemaDocument('run-event-payloads') as unknown as PayloadSchemas);
}

/** JSON text of a payload of this type → JSON text of what stays of it. */
export function erasedPayload(type: string, payload: string): string {
  const { properties, $defs: defs } = payloadSchemas();
  const schema = properties[type];
  const value = JSON.parse(payload) as JsonValue;
  return JSON.stringify(schema ? erasedValue({ schema, defs, depth: 0 }, value) : {});
}

interface At {
  readonly schema: Schema;
  readonly defs: Readonly<Record<string, Schema>>;
  readonly depth: number;
}

function resolved({ schema, defs, depth }: At): At {
  const name = schema.$ref?.split('/').at(-1);
  const target = name === undefined ? undefined : defs[name];
  return target ? resolved({ schema: target, defs, depth: depth + 1 }) : { schema, defs, depth };
}

/** Of several shapes that one which the value has by its `kind`. */
function variant(at: At, value: JsonValue | undefined): At {
  const { anyOf } = at.schema;
  if (!anyOf) return at;
  const kind = isJsonObject(value) ? value.kind : undefined;
  const found = anyOf.find(({ properties }) => properties?.kind?.const === kind);
  return resolved({ ...at, schema: found ?? anyOf[0] ?? {} });
}

function erasedValue(asked: At, value: JsonValue | undefined): JsonValue {
  const at = variant(resolved(asked), value);
  const { schema, depth } = at;
  if (schema.const !== undefined) return schema.const;
  if (schema.enum) return schema.enum.find((word) => word === value) ?? schema.enum[0] ?? null;
  const type = typeof schema.type === 'string' ? schema.type : schema.type?.[0];
  switch (type) {
    case 'object':
      return depth > MAX_DEPTH ? {} : erasedObject(at, isJsonObject(value) ? value : {});
    case 'array':
      return erasedArray(at, Array.isArray(value) ? value : []);
    case 'integer':
    case 'number':
      return schema.minimum ?? 0;
    case 'boolean':
      return false;
    default:
      if (schema.format === 'date-time') return NO_TIME;
      return schema.pattern === undefined ? ERASED : NO_HASH;
  }
}

function erasedObject(at: At, value: JsonObject): JsonObject {
  const { properties = {}, required = [] } = at.schema;
  const erased: JsonObject = {};
  for (const name of Object.keys(properties)) {
    const isRequired = required.includes(name);
    const kept = KEPT.has(name) ? keptValue(name, value[name]) : undefined;
    if (kept !== undefined) erased[name] = kept;
    else if (isRequired)
      erased[name] = erasedValue(
        { ...at, schema: properties[name] ?? {}, depth: at.depth + 1 },
        value[name],
      );
  }
  return erased;
}

/** A list stays empty, but where it may not be, and then it has words of the protocol alone. */
function erasedArray(at: At, value: readonly JsonValue[]): JsonValue[] {
  const { items = {}, minItems = 0 } = at.schema;
  const of = { ...at, schema: items, depth: at.depth + 1 };
  return value.slice(0, minItems).map((item) => erasedValue(of, item));
}

function keptValue(name: string, value: JsonValue | undefined): JsonValue | undefined {
  if (Array.isArray(value)) return value.every((item) => typeof item === 'string') ? value : [];
  switch (typeof value) {
    case 'string':
      if (name === 'code') return keptCode(value);
      return value.length <= MAX_ID_LENGTH ? value : undefined;
    case 'number':
    case 'boolean':
      return value;
    default:
      return undefined;
  }
}
