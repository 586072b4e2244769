// What is open, and how it is closed (design §3.1): one table from opening event to closing event. The workflow's
// clean-up uses it on cancel and failure; translate uses it when no workflow code ran (terminated, timed out).
import type { EventOf, EventType } from './events.ts';
import type { JsonObject } from './json.ts';
import { isTerminalEvent } from './status.ts';

/** The least that a closing needs to know of its opening. Small JSON: translate carries it from page to page. */
export interface OpenItem {
  readonly type: OpeningType;
  readonly key: string;
  readonly nodeId?: string;
  /** The opening's identifying fields, copied by name. */
  readonly ids: JsonObject;
}

export type Closing = EventOf<ClosingType> & {
  readonly key: string;
  readonly nodeId?: string;
  readonly causedBy?: string;
};

export interface Ending {
  /** Why things are closed: the code of an error, or `cancelled`. */
  readonly code: string;
  readonly message: string;
}

interface Row {
  /** Fields of the opening's payload that its closing repeats. */
  readonly ids: readonly string[];
  /** Event types (with the field that must be equal) that close it in the ordinary course. */
  readonly closedBy: Readonly<Record<string, string>>;
  readonly closing: EventType;
  readonly payload: (ids: JsonObject, ending: Ending) => JsonObject;
  /** Innermost first. */
  readonly order: number;
  readonly causedByOpening?: true;
}

const TABLE = {
  // A stream that was cut off. No workflow code sees deltas, so only translate closes them, with what the log holds of
  // the block; where workflow code runs, the stream's result or its seal does.
  'agent.reasoning.delta': {
    ids: ['agentId', 'verbosity', 'reasoning'],
    closedBy: {},
    closing: 'agent.reasoned',
    payload: (ids) => ({ ...ids }),
    order: 0,
  },
  'agent.toolCalled': {
    ids: ['agentId', 'toolName', 'callId'],
    closedBy: { 'agent.toolReturned': 'callId' },
    closing: 'agent.toolReturned',
    payload: (ids, { code, message }) => ({ ...ids, status: 'error', error: { code, message } }),
    order: 0,
    causedByOpening: true,
  },
  'agent.invocation.started': {
    ids: ['invocationId', 'agentId'],
    closedBy: { 'agent.invocation.completed': 'invocationId' },
    closing: 'agent.invocation.completed',
    payload: (ids) => ({ ...ids, outcome: 'failed' }),
    order: 1,
  },
  'node.started': {
    ids: ['nodeId'],
    closedBy: {
      'node.completed': 'nodeId',
      'node.failed': 'nodeId',
      'node.cancelled': 'nodeId',
      'node.retried': 'nodeId',
    },
    closing: 'node.cancelled',
    payload: (ids, { code }) => ({ ...ids, reason: code }),
    order: 2,
  },
} as const satisfies Record<string, Row>;

export type OpeningType = keyof typeof TABLE;
type ClosingType = (typeof TABLE)[OpeningType]['closing'];

/** The open item of a delta block that was cut off: the opening is its activity, the ids are those of its text. */
export function cutOffReasoning(
  activityId: string,
  block: { readonly nodeId?: string; readonly base: JsonObject; readonly text: string },
): OpenItem {
  const { nodeId, base, text } = block;
  const ids = { ...base, reasoning: text };
  return {
    type: 'agent.reasoning.delta',
    key: activityId,
    ...(nodeId === undefined ? {} : { nodeId }),
    ids,
  };
}

function rowOf(type: string): Row | undefined {
  return Object.hasOwn(TABLE, type) ? TABLE[type as OpeningType] : undefined;
}

/** Folds one event into the list of open items. Oldest first. */
export function trackOpen(
  open: readonly OpenItem[],
  event: { type: string; key: string; nodeId?: string; payload: JsonObject },
): readonly OpenItem[] {
  if (isTerminalEvent(event.type)) return [];
  const row = rowOf(event.type);
  if (row) {
    const ids = Object.fromEntries(
      row.ids
        .filter((field) => event.payload[field] !== undefined)
        .map((field) => [field, event.payload[field] ?? null]),
    );
    return [
      ...open,
      { type: event.type as OpeningType, key: event.key, nodeId: event.nodeId, ids },
    ];
  }
  const index = open.findIndex((item) => {
    const closedBy = rowOf(item.type)?.closedBy ?? {};
    const field = Object.hasOwn(closedBy, event.type) ? closedBy[event.type] : undefined;
    return (
      field !== undefined &&
      item.ids[field] !== undefined &&
      item.ids[field] === event.payload[field]
    );
  });
  return index < 0 ? open : open.filter((_, at) => at !== index);
}

/** The opening's key with the closing's type; a key that does not name its type is put behind it. */
function closingKey({ type, key }: OpenItem, closing: string): string {
  return key.startsWith(`${type}|`) ? `${closing}${key.slice(type.length)}` : `${closing}|${key}`;
}

/**
 * The closings of everything that is open: calls before brackets before nodes, within a kind in the order opened.
 * `nodeId` limits them to one node. Keys derive from the opening's key, so both authors give the same ids.
 */
export function closingsOf(open: readonly OpenItem[], ending: Ending, nodeId?: string): Closing[] {
  return open
    .filter((item) => nodeId === undefined || item.nodeId === nodeId)
    .map((item): { item: OpenItem; row: Row } => ({ item, row: TABLE[item.type] }))
    .sort((a, b) => a.row.order - b.row.order)
    .map(({ item, row }) => {
      const closing = { type: row.closing, payload: row.payload(item.ids, ending) };
      return {
        ...(closing as EventOf<ClosingType>),
        key: closingKey(item, row.closing),
        nodeId: item.nodeId,
        causedBy: row.causedByOpening ? item.key : undefined,
      };
    });
}
