// Reads what the journal put into history payloads (architecture §2.3): carriers, recognised by their metadata alone,
// and step results. Payloads come already decoded by the codec; what cannot be read stops the run's projection.
import type { temporal } from '@temporalio/proto';
import { HostError } from '../rules/errors.ts';
import {
  CARRIER_METADATA_KEY,
  type Carrier,
  type RecordedEvent,
  type StepResult,
} from '../rules/journal.ts';
import { isJsonObject, type JsonValue } from '../rules/json.ts';

export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;
export type HistoryPayload = temporal.api.common.v1.IPayload;

const MARK = '1';
const text = new TextDecoder('utf-8', { fatal: true });

function parse(payload: HistoryPayload, what: string): unknown {
  try {
    return JSON.parse(text.decode(payload.data ?? new Uint8Array()));
  } catch (cause) {
    throw new HostError('history_undecodable', { reason: `${what} is not JSON` }, cause);
  }
}

function metadataText(payload: HistoryPayload, key: string): string | undefined {
  const value = payload.metadata?.[key];
  return value ? Buffer.from(value).toString('utf8') : undefined;
}

function isCarrier(payload: HistoryPayload): boolean {
  return metadataText(payload, CARRIER_METADATA_KEY) === MARK;
}

function readCarrier(payload: HistoryPayload): Carrier {
  const carrier = parse(payload, 'a journal carrier');
  const valid =
    isJsonObject(carrier) &&
    carrier.v === 1 &&
    Array.isArray(carrier.at) &&
    Array.isArray(carrier.entries) &&
    carrier.at.length === carrier.entries.length;
  if (!valid)
    throw new HostError('history_undecodable', { reason: 'a journal carrier has an unknown form' });
  return carrier as unknown as Carrier;
}

/** The carriers among `payloads`, in order. Throws HostError history_undecodable for a marked one that is unreadable. */
export function carriersIn(payloads: readonly HistoryPayload[] | null | undefined): Carrier[] {
  return (payloads ?? []).filter(isCarrier).map(readCarrier);
}

/** Result of an activity; undefined when it returned something that is no step result (it has no events then). */
export function stepResultIn(
  payloads: readonly HistoryPayload[] | null | undefined,
): StepResult<JsonValue, RecordedEvent> | undefined {
  const payload = payloads?.[0];
  if (!payload || !metadataText(payload, 'encoding')?.startsWith('json/')) return undefined;
  const result = parse(payload, 'an activity result');
  return isJsonObject(result) && Array.isArray(result.events)
    ? (result as unknown as StepResult<JsonValue, RecordedEvent>)
    : undefined;
}

/** The one value among `payloads`. Throws HostError history_undecodable. */
export function jsonIn(
  payloads: readonly HistoryPayload[] | null | undefined,
  what: string,
): JsonValue {
  const [payload] = payloads ?? [];
  return payload ? (parse(payload, what) as JsonValue) : null;
}

/** A timestamp of protobuf as ms epoch, or a duration as ms, cut to whole milliseconds; absent: 0. */
export function msOf(
  time: { seconds?: { toString(): string } | null; nanos?: number | null } | null | undefined,
): number {
  const { seconds, nanos } = time ?? {};
  return Number((seconds ?? 0).toString()) * 1000 + Math.trunc((nanos ?? 0) / 1_000_000);
}

/** Time of a history event in ms epoch. */
export function eventTimeMs(event: HistoryEvent): number {
  return msOf(event.eventTime);
}

/** Position of a history event in its segment, from 1. */
export function historyEventIdOf(event: HistoryEvent): number {
  return Number((event.eventId ?? 0).toString());
}
