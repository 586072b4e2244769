// Event types as streams see them (spec/02 §3.3): which mode shows which type, and which types move the snapshot.
// `debug` shows everything.
import type { RunEventPayloads } from '../../schemas/types.generated.ts';
import type { JsonObject, JsonValue } from './json.ts';

/** What this host states: every type has a payload schema. */
export type EventType = keyof RunEventPayloads;

/** What a schema leaves open is JSON. */
type AsJson<T> = unknown extends T
  ? JsonValue
  : T extends object
    ? { [K in keyof T]: AsJson<T[K]> }
    : T;

/** A payload as it is stated: of its schema's shape, and JSON. */
export type PayloadOf<T extends EventType> = AsJson<RunEventPayloads[T]> & JsonObject;

/** A type with a payload that is its own. */
export type EventOf<T extends EventType = EventType> = {
  readonly [K in T]: { readonly type: K; readonly payload: PayloadOf<K> };
}[T];

interface EventTypeRow {
  /** Shown in `updates`. */
  readonly updates: boolean;
  /** `values` sends a fresh snapshot after it. */
  readonly values: boolean;
  /** Shown in `messages`. */
  readonly messages: boolean;
  /** The envelope carries `nodeId` (spec/02 §1.1). */
  readonly nodeScoped: boolean;
}

const row = (shown: string): EventTypeRow => ({
  updates: shown.includes('u'),
  values: shown.includes('v'),
  messages: shown.includes('m'),
  nodeScoped: shown.includes('n'),
});

/** u = updates, v = values, m = messages, n = node-scoped. One row per type that this host emits, catalogue order. */
export const EVENT_TYPES: Readonly<Record<string, EventTypeRow>> = {
  'run.started': row('uv'),
  'run.completed': row('uv'),
  'run.failed': row('uv'),
  'run.cancelled': row('uv'),
  'node.started': row('vn'),
  'node.completed': row('uvn'),
  'node.failed': row('uvn'),
  'node.suspended': row('uvn'),
  'node.resumed': row('uvn'),
  'node.retried': row('n'),
  'node.skipped': row('uvn'),
  'node.cancelled': row('uvn'),
  'interrupt.requested': row('uvn'),
  'interrupt.resolved': row('uvn'),
  'approval.requested': row('uvn'),
  'approval.received': row('uvn'),
  'clarification.requested': row('uvn'),
  'clarification.resolved': row('uvn'),
  'variable.changed': row(''),
  'output.chunk': row('mn'),
  'workflow.loopback-limit': row(''),
  'cap.breached': row(''),
  'agent.invocation.started': row('n'),
  'agent.promptResolved': row('n'),
  'prompt.composed': row('n'),
  'agent.reasoning.delta': row('n'),
  'agent.reasoned': row('n'),
  'agent.toolCalled': row('n'),
  'agent.toolReturned': row('n'),
  'agent.decided': row('n'),
  'agent.handoff': row('n'),
  'agent.invocation.completed': row('n'),
  'provider.usage': row('n'),
  'envelope.refusal': row('n'),
  'envelope.retry.exhausted': row('n'),
};

const UNKNOWN: EventTypeRow = row('');

/** Types that are not in the table are shown in `debug` only. */
export function eventTypeRow(type: string): EventTypeRow {
  return Object.hasOwn(EVENT_TYPES, type) ? (EVENT_TYPES[type] ?? UNKNOWN) : UNKNOWN;
}

export function isUpdate(type: string): boolean {
  return eventTypeRow(type).updates;
}

export function isMessage(type: string): boolean {
  return eventTypeRow(type).messages;
}

export function movesSnapshot(type: string): boolean {
  return eventTypeRow(type).values;
}
