// What the projection and recordings see of history events: only those that are durable, with just those payloads decoded
// that may be carriers or step results, or tell what a run was told (architecture §3.1, §2.3, §6).
import { defaultPayloadConverter, type Payload, type PayloadCodec } from '@temporalio/common';
import proto, { type temporal } from '@temporalio/proto';
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

/** What a run was told: messages, signals, and why a step failed. */
async function decodeTold(
  event: HistoryEvent,
  codec: PayloadCodec,
): Promise<HistoryEvent | undefined> {
  const accepted = event.workflowExecutionUpdateAcceptedEventAttributes;
  const request = accepted?.acceptedRequest;
  if (accepted && request?.input) {
    const args = { payloads: await decodePayloads(codec, request.input.args?.payloads, 0) };
    const acceptedRequest = { ...request, input: { ...request.input, args } };
    return {
      ...event,
      workflowExecutionUpdateAcceptedEventAttributes: { ...accepted, acceptedRequest },
    };
  }
  const signal = event.workflowExecutionSignaledEventAttributes;
  if (signal) {
    const input = { payloads: await decodePayloads(codec, signal.input?.payloads, 0) };
    return { ...event, workflowExecutionSignaledEventAttributes: { ...signal, input } };
  }
  const failed = event.activityTaskFailedEventAttributes;
  if (!failed?.failure) return undefined;
  const failure = await decodeFailure(failed.failure, codec);
  return { ...event, activityTaskFailedEventAttributes: { ...failed, failure } };
}

type Failure = temporal.api.failure.v1.IFailure;

/** Its message may be kept apart, encoded (failure-converter.cjs). */
async function decodeFailure(failure: Failure, codec: PayloadCodec): Promise<Failure> {
  const { encodedAttributes, applicationFailureInfo: info } = failure;
  const [encoded] = encodedAttributes ? await decodePayloads(codec, [encodedAttributes], 0) : [];
  const kept = encoded && defaultPayloadConverter.fromPayload<{ message?: string }>(encoded);
  const details = { payloads: await decodePayloads(codec, info?.details?.payloads, 0) };
  return {
    ...failure,
    ...(kept?.message === undefined ? {} : { message: kept.message }),
    ...(info ? { applicationFailureInfo: { ...info, details } } : {}),
  };
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
  const told = await decodeTold(event, codec);
  if (told) return told;
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

/** Decodes, in order, what `translate` reads. Throws HostError history_undecodable and key_unavailable. */
export async function decodeEvents(
  events: readonly HistoryEvent[],
  codec: PayloadCodec,
): Promise<readonly HistoryEvent[]> {
  const decoded: HistoryEvent[] = [];
  for (const event of events) decoded.push(await decodeEvent(event, codec));
  return decoded;
}
