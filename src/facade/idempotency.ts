// Idempotency-Key on the wire (spec/01 §4.1): the header, what a key keeps of an answer, and how a repeat is told it. What
// is kept is the whole answer, status and body with its addresses: a repeat gets the same bytes, also when it came by
// another name of this host, or when a later version of the product would word it otherwise.
import type { Request, Response } from 'express';
import { codeOf, ERRORS, invalid } from '../rules/errors.ts';
import type { JsonValue } from '../rules/json.ts';
import type { StoredResponse } from '../ports/idempotency.ts';
import type { Once, Telling } from '../runs/once.ts';
import { envelopeOf } from './errors.ts';

/** Longest key in characters. */
const MAX_KEY_LENGTH = 255;
export const REPLAY_HEADER = 'openwop-Idempotent-Replay';

export function idempotencyKey(request: Request): string | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || key.length === 0 || key.length > MAX_KEY_LENGTH) {
    throw invalid('Idempotency-Key', `must have 1 to ${MAX_KEY_LENGTH} characters`);
  }
  return key;
}

/** Final are the 4xx that a retry cannot change; 400 validation_error, 401, 403 are never kept. */
function keptRefusal(error: unknown): StoredResponse | undefined {
  const code = codeOf(error);
  if (!code || code === 'validation_error') return undefined;
  const { status, retryable } = ERRORS[code];
  const isFinal = status >= 400 && status < 500 && ![401, 403, 429].includes(status) && !retryable;
  return isFinal ? { status, body: envelopeOf(error).body as unknown as JsonValue } : undefined;
}

/** How a request with this status and body on success is told, and what its key keeps. */
export function toldAs<Data>(status: number, body: (data: Data) => JsonValue): Telling<Data> {
  return { told: (data) => ({ status, body: body(data) }), refused: keptRefusal };
}

/** Sends what was done, or what the key kept of it; a request without a key is not marked. */
export function sendOnce<Data>(response: Response, once: Once<Data>, telling: Telling<Data>): void {
  const { status, body } = once.replayed ? once.kept : telling.told(once.data);
  if (once.replayed !== undefined) response.setHeader(REPLAY_HEADER, String(once.replayed));
  response.status(status).json(body);
}
