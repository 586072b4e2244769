// Requests that are performed once per key (idempotency.md §Layer 1): claim, perform, keep what the asker was told.
// Records are bound to the operation; the digest covers its target and its body. What is kept belongs to the asker, who
// alone knows what an answer looks like; here it goes in and out unread.
import { randomBytes } from 'node:crypto';
import { HostError } from '../rules/errors.ts';
import { sha256Hex } from '../rules/ids.ts';
import { canonicalJson, type JsonValue } from '../rules/json.ts';
import { CLAIM_LEASE_MS } from '../rules/limits.ts';
import type { Caller } from '../ports/caller.ts';
import type { IdempotencyClaim, IdempotencyStore, StoredResponse } from '../ports/idempotency.ts';

/** What is asked for: by this a repeat is known. */
export interface Asked {
  /** Name of the operation, e.g. `POST /v1/runs`. It stands in stored records and never changes. */
  readonly endpoint: string;
  /** Ids of what it is about. */
  readonly target: readonly string[];
  readonly body: JsonValue | undefined;
  /** The asker's own; absent: every request is another one. */
  readonly key?: string;
  /** The key of the subject of the run that is asked about. */
  readonly subjectKey?: string;
}

/** How the asker is told; what a key keeps is made by it. */
export interface Telling<Data> {
  told(data: Data): StoredResponse;
  /** Undefined: a retry may change it, and the key keeps nothing. */
  refused(error: unknown): StoredResponse | undefined;
}

/** What became of a request. `replayed` only where it had a key. */
export type Once<Data> =
  | { readonly replayed?: false; readonly data: Data }
  /** Done by an earlier request, whose asker was told this. */
  | { readonly replayed: true; readonly kept: StoredResponse };

/** SHA-256 of what is asked for: its target and its canonical body. */
export function digestOf({ target, body }: Asked): string {
  return sha256Hex(canonicalJson({ target, body: body ?? null }));
}

/** Id of the message that a request causes: the same for every retry with the same key (architecture §4). */
export function updateIdOf({ endpoint, target, key }: Asked): string {
  if (key === undefined) return `u-${randomBytes(16).toString('hex')}`;
  return `k-${sha256Hex(canonicalJson([endpoint, ...target, key]))}`;
}

/** Undefined without a key. */
export function claimOf(asked: Asked): IdempotencyClaim | undefined {
  const { endpoint, target, key, subjectKey } = asked;
  if (key === undefined) return undefined;
  const requestDigest = digestOf(asked);
  return {
    endpoint,
    key,
    target,
    requestDigest,
    ...(subjectKey === undefined ? {} : { subjectKey }),
  };
}

export function refusedClaim(
  outcome: { kind: 'mismatch' } | { kind: 'in-flight'; retryAfterSeconds: number },
): HostError {
  if (outcome.kind === 'mismatch') return new HostError('idempotency_key_mismatch');
  return new HostError('idempotency_in_flight', {
    retryAfter: Math.max(1, Math.ceil(outcome.retryAfterSeconds)),
  });
}

/** What the tries of one key have in common. */
export interface KeyBinding {
  /** Noted by an earlier try. */
  readonly boundTo?: string;
  /** Notes it for the later ones, before anything is sent. Throws idempotency_in_flight when another try has the key. */
  bind(boundTo: string): Promise<void>;
}

const NO_BINDING: KeyBinding = { bind: async () => {} };

export interface OnceRequest<Data> {
  readonly caller: Caller;
  readonly asked: Asked;
  readonly telling: Telling<Data>;
}

/**
 * Runs `perform` once per key. Throws idempotency_key_mismatch, idempotency_in_flight, subject_erased (it was done, and what
 * was told went with the subject) and what `perform` throws.
 */
export async function performOnce<Data>(
  store: IdempotencyStore,
  { caller: { tenant }, asked, telling }: OnceRequest<Data>,
  perform: (binding: KeyBinding) => Promise<Data>,
): Promise<Once<Data>> {
  const claim = claimOf(asked);
  if (!claim) return { data: await perform(NO_BINDING) };
  const outcome = await store.claim(tenant, claim, CLAIM_LEASE_MS);
  if (outcome.kind === 'replay') return { replayed: true, kept: outcome.response };
  if (outcome.kind === 'erased') throw new HostError('subject_erased');
  if (outcome.kind !== 'claimed') throw refusedClaim(outcome);
  const { owner, boundTo } = outcome;
  const bind = async (found: string): Promise<void> => {
    if (await store.bind(tenant, claim, owner, found)) return;
    throw refusedClaim({ kind: 'in-flight', retryAfterSeconds: CLAIM_LEASE_MS / 1000 });
  };
  try {
    const data = await perform({ boundTo, bind });
    await store.complete(tenant, claim, owner, telling.told(data));
    return { replayed: false, data };
  } catch (error) {
    const kept = telling.refused(error);
    if (kept) await store.complete(tenant, claim, owner, kept);
    // Best effort: an unreleased claim is taken over when its lease ends.
    else await store.release(tenant, claim, owner).catch(() => undefined);
    throw error;
  }
}
