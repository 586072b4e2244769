// What the projection sees of history events: only those that are durable, with just those payloads decoded that may
// be carriers or step results (architecture §3.1, §2.3).
import type { Payload, PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto';
import { HostError } from '../../rules/errors.ts';
import { CARRIER_MEMO_FIELD } from '../../rules/journal.ts';
import type { HistoryEvent } from '../../ports/history.ts';

const { EventType } = proto.temporal.api.enums.v1;

/**
 * Without trailing WorkflowTaskScheduled and -Started: newer servers append such events before they are durable, and
 * their ids may later belong to other events (architecture §3.2). Durable ones mean nothing to translate either.
 */
export function durable(events: readonly HistoryEvent[]): readonly HistoryEvent[] {
  let end = events.length;
  for (; end > 0; end--) {
    const type = events[end - 1]?.eventType;
    if (
      type !== EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED &&
      type !== EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED
    )
      break;
  }
  return end === events.length ? events : events.slice(0, end);
}

async function decodePayloads(
  codec: PayloadCodec,
  payloads: Payload[] | null | undefined,
  from: number,
): Promise<Payload[]> {
  const all = payloads ?? [];
  try {
    return [...all.slice(0, from), ...(await codec.decode(all.slice(from)))];
  } catch (error) {
    if (error instanceof HostError) throw error;
    throw new HostError('history_undecodable', undefined, error);
  }
}

/** The event with those payloads decoded that may be carriers or step results; the same object if it has none. */
async function decodeEvent(event: HistoryEvent, codec: PayloadCodec): Promise<HistoryEvent> {
  const scheduled = event.activityTaskScheduledEventAttributes;
  if (scheduled) {
    // The first payload is the step's input, which nobody reads here; a carrier can only follow it.
    const input = { payloads: await decodePayloads(codec, scheduled.input?.payloads, 1) };
    return { ...event, activityTaskScheduledEventAttributes: { ...scheduled, input } };
  }
  const completed = event.activityTaskCompletedEventAttributes;
  if (completed) {
    const result = { payloads: await decodePayloads(codec, completed.result?.payloads, 0) };
    return { ...event, activityTaskCompletedEventAttributes: { ...completed, result } };
  }
  const modified = event.workflowPropertiesModifiedEventAttributes;
  const field = modified?.upsertedMemo?.fields?.[CARRIER_MEMO_FIELD];
  if (modified && field) {
    const [decoded] = await decodePayloads(codec, [field], 0);
    const fields = { ...modified.upsertedMemo?.fields, [CARRIER_MEMO_FIELD]: decoded ?? field };
    return {
      ...event,
      workflowPropertiesModifiedEventAttributes: { ...modified, upsertedMemo: { fields } },
    };
  }
  const ended = event.workflowExecutionCompletedEventAttributes;
  if (ended) {
    const result = { payloads: await decodePayloads(codec, ended.result?.payloads, 0) };
    return { ...event, workflowExecutionCompletedEventAttributes: { ...ended, result } };
  }
  const continued = event.workflowExecutionContinuedAsNewEventAttributes;
  if (continued) {
    const count = continued.input?.payloads?.length ?? 0;
    const input = {
      payloads: await decodePayloads(codec, continued.input?.payloads, Math.max(0, count - 1)),
    };
    return { ...event, workflowExecutionContinuedAsNewEventAttributes: { ...continued, input } };
  }
  return event;
}

/** Decodes, in order, what `translate` reads. Throws HostError history_undecodable. */
export async function decodeEvents(
  events: readonly HistoryEvent[],
  codec: PayloadCodec,
): Promise<readonly HistoryEvent[]> {
  const decoded: HistoryEvent[] = [];
  for (const event of events) decoded.push(await decodeEvent(event, codec));
  return decoded;
}
