// Layer 1 of idempotency (spec/01 §4.1) for operations other than the acceptance of a run: claim, run once, keep the
// final answer. Records are bound to the routed operation; the digest covers target and body.
import { randomBytes } from 'node:crypto';
import type { Request, Response } from 'express';
import { codeOf, ERRORS, HostError, invalid } from '../rules/errors.ts';
import { sha256Hex } from '../rules/ids.ts';
import { canonicalJson, type JsonValue } from '../rules/json.ts';
import type { Caller } from '../ports/caller.ts';
import type { IdempotencyClaim, IdempotencyStore, StoredResponse } from '../ports/idempotency.ts';
import { envelopeOf } from './errors.ts';

/** Longest key in characters. */
const MAX_KEY_LENGTH = 255;
/** How long in ms one request may hold its claim before another may take it over: above the 5 s of an Update. */
export const CLAIM_LEASE_MS = 15_000;
export const REPLAY_HEADER = 'openwop-Idempotent-Replay';

export function idempotencyKey(request: Request): string | undefined {
  const key = request.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || key.length === 0 || key.length > MAX_KEY_LENGTH) {
    throw invalid('Idempotency-Key', `must have 1 to ${MAX_KEY_LENGTH} characters`);
  }
  return key;
}

/** SHA-256 of what the request asks for: its target and its canonical body. */
export function requestDigest(target: readonly string[], body: JsonValue | undefined): string {
  return sha256Hex(canonicalJson({ target, body: body ?? null }));
}

/** Id of the Update that a request causes: the same for every retry with the same key (design §4). */
export function updateIdOf(
  endpoint: string,
  target: readonly string[],
  key: string | undefined,
): string {
  if (key === undefined) return `u-${randomBytes(16).toString('hex')}`;
  return `k-${sha256Hex(canonicalJson([endpoint, ...target, key]))}`;
}

export function refusedClaim(
  outcome: { kind: 'mismatch' } | { kind: 'in-flight'; retryAfterSeconds: number },
): HostError {
  if (outcome.kind === 'mismatch') return new HostError('idempotency_key_mismatch');
  return new HostError('idempotency_in_flight', {
    retryAfter: Math.max(1, Math.ceil(outcome.retryAfterSeconds)),
  });
}

/** Final are 2xx and the 4xx that a retry cannot change; 400 validation_error, 401, 403 are never kept. */
function isFinalError(error: unknown): boolean {
  const code = codeOf(error);
  if (!code || code === 'validation_error') return false;
  const { status, retryable } = ERRORS[code];
  return (
    status >= 400 &&
    status < 500 &&
    status !== 401 &&
    status !== 403 &&
    status !== 429 &&
    !retryable
  );
}

export interface IdempotentRequest {
  readonly store: IdempotencyStore;
  readonly caller: Caller;
  readonly key: string | undefined;
  readonly endpoint: string;
  readonly digest: string;
}

/** What the tries of one key have in common. */
export interface KeyBinding {
  /** Noted by an earlier try. */
  readonly interruptId?: string;
  /** Notes it for the later ones, before anything is sent. Throws idempotency_in_flight when another try has the key. */
  bind(interruptId: string): Promise<void>;
}

const NO_BINDING: KeyBinding = { bind: async () => {} };

/** Runs `perform` once per key. Throws idempotency_key_mismatch, idempotency_in_flight and what `perform` throws. */
export async function performOnce(
  request: IdempotentRequest,
  perform: (binding: KeyBinding) => Promise<StoredResponse>,
): Promise<StoredResponse & { replayed?: boolean }> {
  const { store, caller, key, endpoint, digest } = request;
  if (key === undefined) return perform(NO_BINDING);
  const claim: IdempotencyClaim = { endpoint, key, requestDigest: digest };
  const outcome = await store.claim(caller.tenant, claim, CLAIM_LEASE_MS);
  if (outcome.kind === 'replay') return { ...outcome.response, replayed: true };
  if (outcome.kind !== 'claimed') throw refusedClaim(outcome);
  try {
    const response = await perform({
      interruptId: outcome.interruptId,
      async bind(interruptId) {
        if (await store.bind(caller.tenant, claim, outcome.owner, interruptId)) return;
        throw refusedClaim({ kind: 'in-flight', retryAfterSeconds: CLAIM_LEASE_MS / 1000 });
      },
    });
    await store.complete(caller.tenant, claim, outcome.owner, response);
    return { ...response, replayed: false };
  } catch (error) {
    if (isFinalError(error)) {
      const { status, body } = envelopeOf(error);
      await store.complete(caller.tenant, claim, outcome.owner, {
        status,
        body: body as unknown as JsonValue,
      });
    } else {
      // Best effort: an unreleased claim is taken over when its lease ends.
      await store.release(caller.tenant, claim, outcome.owner).catch(() => undefined);
    }
    throw error;
  }
}

export function sendStored(
  response: Response,
  stored: StoredResponse & { replayed?: boolean },
): void {
  if (stored.replayed !== undefined) response.setHeader(REPLAY_HEADER, String(stored.replayed));
  response.status(stored.status).json(stored.body);
}
