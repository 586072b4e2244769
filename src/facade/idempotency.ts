// Idempotency-Key on the wire (idempotency.md §Layer 1): the header, what a key keeps of an answer, and how a repeat is
// told it. What is kept is the whole answer, status and body with its addresses: a repeat gets the same bytes, also
// when it came by another name of this host, or when a later version of the product would word it otherwise.
import { codeOf, ERRORS } from '../rules/errors.ts';
import type { JsonValue } from '../rules/json.ts';
import type { StoredResponse } from '../ports/idempotency.ts';
import type { Once, Telling } from '../runs/once.ts';
import { envelopeOf } from './errors.ts';
import { header, text, type Parameter } from './parameters.ts';
import type { Answer, Input } from './route.ts';

type Asker = Pick<Input, 'major' | 'caller'>;

/** Longest key in characters. */
const MAX_KEY_LENGTH = 255;
const REPLAY_HEADER = 'openwop-Idempotent-Replay';

export const IDEMPOTENCY_KEY: Parameter<string | undefined> = {
  ...header(
    'Idempotency-Key',
    text('A retry with the same key and body gives the first answer again, for 24 hours.', {
      ...{ minLength: 1, maxLength: MAX_KEY_LENGTH, example: 'order-4711' },
      reason: `must have 1 to ${MAX_KEY_LENGTH} characters`,
    }),
  ),
  errors: [
    ...(['idempotency_in_flight', 'idempotency_key_mismatch'] as const),
    // What a repeat is about may be gone, erased, or not to be read now.
    ...(['run_not_found', 'run_expired', 'subject_erased'] as const),
    ...(['history_undecodable', 'key_unavailable'] as const),
  ],
};

/** Final are the 4xx that a retry cannot change; 400 validation_error, 401, 403 are never kept. */
function keptRefusal(error: unknown, asked: Asker): StoredResponse | undefined {
  const code = codeOf(error);
  if (!code || code === 'validation_error') return undefined;
  const { status, body } = envelopeOf(error, asked.major, asked.caller.tenant);
  const isFinal =
    status >= 400 && status < 500 && ![401, 403, 429].includes(status) && !ERRORS[code].retryable;
  return isFinal ? { status, body: body as unknown as JsonValue } : undefined;
}

/** How a request with this status and body on success is told, and what its key keeps. */
export function toldAs<Data>(
  asked: Asker,
  status: number,
  body: (data: Data) => JsonValue,
): Telling<Data> {
  return {
    told: (data) => ({ status, body: body(data) }),
    refused: (error) => keptRefusal(error, asked),
  };
}

/** What was done, or what the key kept of it; a request without a key is not marked. */
export function answerOnce<Data>(once: Once<Data>, telling: Telling<Data>): Answer {
  const { status, body } = once.replayed ? once.kept : telling.told(once.data);
  return {
    ...{ status, body },
    ...(once.replayed !== undefined && { headers: { [REPLAY_HEADER]: String(once.replayed) } }),
  };
}
