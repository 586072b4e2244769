// What is stored and cannot be read: a reader names the place and stops, whoever reads, and no later try reads more of it.
import { HostError } from './errors.ts';
import type { JsonObject } from './json.ts';

/** What is damaged may be JSON of another kind. Absent: any. */
type Kind = 'object' | 'array' | 'string';

/** Of what stands at a place, opened. Throws HostError history_undecodable: it is no JSON, or of another kind. */
export function parsedAt<Value>(place: string, json: string, kind?: Kind): Value {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw damagedAt(place, error);
  }
  const found = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value;
  if (kind !== undefined && found !== kind) throw damagedAt(place);
  return value as Value;
}

export function damagedAt(place: string, cause?: unknown): HostError {
  return new HostError(
    'history_undecodable',
    { reason: `What stands at ${place} is damaged.` },
    cause,
  );
}

/** The payload of a stored row of a log. Throws as parsedAt. */
export function payloadOf({
  runId,
  key,
  payload,
}: {
  readonly runId: string;
  readonly key: string;
  readonly payload: string;
}): JsonObject {
  return parsedAt(payloadPlace(runId, key), payload, 'object');
}

/** Where it is stored, and sealed where the run has a subject. */
export function payloadPlace(runId: string, key: string): string {
  return `payload ${runId} ${key}`;
}
