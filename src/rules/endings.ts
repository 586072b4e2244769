// What is open, and how it is closed (architecture §3.1), by the table of event types. The workflow's clean-up uses it
// on cancel and failure; translate uses it when no workflow code ran (terminated, timed out).
import { deltaKey } from './ids.ts';
import { eventRow, type EventOf, type EventType } from './events.ts';
import { actionIn } from './gate-actions.ts';
import type { JsonObject } from './json.ts';
import { isTerminalEvent } from './status.ts';

/** The least that a closing needs to know of its opening. Small JSON: translate carries it from page to page. */
export interface OpenItem {
  readonly type: string;
  readonly key: string;
  readonly nodeId?: string;
  /** The opening's identifying fields, copied by name. */
  readonly ids: JsonObject;
  /** Of a call: the interrupt that asks whether it may be made, while nobody has accepted it. */
  readonly unsent?: string;
}

export type Closing = EventOf & {
  readonly key: string;
  readonly nodeId?: string;
  readonly causedBy?: string;
  /** Key of what it closes, of a stream its first piece: the cause where every event names one. */
  readonly because: string;
};

export interface Ending {
  /** Why things are closed: the code of an error, or `cancelled`. */
  readonly code: string;
  readonly message: string;
}

/** A stream as the log has it. */
export interface CutOffStream {
  readonly type: string;
  readonly nodeId?: string;
  readonly base: JsonObject;
  readonly text: string;
}

/**
 * The open item of a delta block that was cut off: the opening is its activity, the ids are those of its text. Undefined
 * where no closing states the whole of such a stream.
 */
export function cutOffItem(
  activityId: string,
  { type, nodeId, base, text }: CutOffStream,
): OpenItem | undefined {
  const { piece, opens } = eventRow(type);
  if (!opens || !piece?.whole) return undefined;
  const ids = { ...base, [piece.whole]: text };
  return { type, key: activityId, ...(nodeId === undefined ? {} : { nodeId }), ids };
}

/** Folds one event into the list of open items. Oldest first. */
export function trackOpen(
  open: readonly OpenItem[],
  event: { type: string; key: string; nodeId?: string; payload: JsonObject },
): readonly OpenItem[] {
  if (isTerminalEvent(event.type)) return [];
  const { opens, closes, part } = eventRow(event.type);
  if (opens) {
    const ids = Object.fromEntries(
      opens.ids
        .filter((field) => event.payload[field] !== undefined)
        .map((field) => [field, event.payload[field] ?? null]),
    );
    const others = part === 'node-starts' ? open.filter((item) => !isSameNode(item, event)) : open;
    return [...others, { type: event.type, key: event.key, nodeId: event.nodeId, ids }];
  }
  if (part === 'wait-opens' || part === 'wait-ends') return trackAsked(open, event);
  const index = open.findIndex(({ type, ids }) => {
    const field = closes[type as EventType];
    return field !== undefined && ids[field] !== undefined && ids[field] === event.payload[field];
  });
  return index < 0 ? open : open.filter((_, at) => at !== index);
}

/** A call that a human is asked about has not been made, until somebody says that it may be. */
function trackAsked(
  open: readonly OpenItem[],
  { payload: { callId, interruptId, resumeValue } }: { readonly payload: JsonObject },
): readonly OpenItem[] {
  const isAccepted = actionIn(resumeValue ?? null) === 'accept';
  const index = open.findIndex(({ ids, unsent }) =>
    isAccepted
      ? unsent !== undefined && unsent === interruptId
      : callId !== undefined && ids.callId === callId,
  );
  const item = open[index];
  if (!item) return open;
  const { type, ids, nodeId } = item;
  const asked = typeof interruptId === 'string' && !isAccepted ? { unsent: interruptId } : {};
  return open.with(index, { type, key: item.key, nodeId, ids, ...asked });
}

/** What an opening says of itself; a call that was not made changes nothing. */
function idsOf({ ids, unsent }: OpenItem): JsonObject {
  if (unsent === undefined) return ids;
  return Object.fromEntries(Object.entries(ids).filter(([name]) => name !== 'sideEffects'));
}

/** Tools of open calls of a node that may have changed something: when the node ends, nobody is asked about them. */
export function cutCalls(open: readonly OpenItem[], nodeId: string): string[] {
  return open.flatMap((item) => {
    const { sideEffects, toolName } = idsOf(item);
    const isCut = item.nodeId === nodeId && sideEffects === true && typeof toolName === 'string';
    return isCut ? [toolName] : [];
  });
}

/** An attempt that a pause cut has no event that ends it: the next one takes its place. */
function isSameNode(item: OpenItem, { type, nodeId }: { type: string; nodeId?: string }): boolean {
  return item.type === type && item.nodeId === nodeId;
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
    .flatMap((item) => {
      const { opens } = eventRow(item.type);
      return opens ? [{ item, opens }] : [];
    })
    .sort((a, b) => a.opens.order - b.opens.order)
    .map(({ item, opens }) => {
      const { closing, payload, causedByOpening } = opens;
      return {
        ...({ type: closing, payload: payload(idsOf(item), ending) } as EventOf),
        key: closingKey(item, closing),
        nodeId: item.nodeId,
        causedBy: causedByOpening ? item.key : undefined,
        because: eventRow(item.type).piece ? deltaKey(item.key, 0) : item.key,
      };
    });
}
