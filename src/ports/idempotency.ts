// Requests that happen once per key (idempotency.md §Layer 1).
import type { JsonValue } from '../rules/json.ts';

export interface IdempotencyClaim {
  /** Routed operation, e.g. `POST /v1/runs`. */
  readonly endpoint: string;
  readonly key: string;
  /** Ids of what is asked about. */
  readonly target: readonly string[];
  /** SHA-256 of the target and the canonical body. */
  readonly requestDigest: string;
  /** The key of whose data is asked for: of a new claim digest and answer are kept under it. */
  readonly subjectKey?: string;
}

export interface StoredResponse {
  readonly status: number;
  readonly body: JsonValue;
}

export type ClaimOutcome =
  /** Go on, with what an earlier try of the key is bound to; `owner` completes or releases the claim. */
  | {
      readonly kind: 'claimed';
      readonly owner: string;
      readonly runId?: string;
      /** What an earlier try noted of its message. */
      readonly boundTo?: string;
    }
  | { readonly kind: 'replay'; readonly response: StoredResponse }
  /** Answered, under a key that is destroyed. `runId`: of the run that was accepted. */
  | { readonly kind: 'erased'; readonly runId?: string }
  | { readonly kind: 'mismatch' }
  | {
      readonly kind: 'in-flight';
      readonly retryAfterSeconds: number;
      /** Of an acceptance. */
      readonly runId?: string;
    };

/** Layer 1 (idempotency.md §Layer 1). A run is accepted with a new claim by RunStore. */
export interface IdempotencyStore {
  /**
   * What the key holds for a request already, without claiming anything: an answer, another body, or a run. Whose data is
   * asked for need not be known: the record says it.
   */
  find(
    tenant: string,
    claim: IdempotencyClaim,
  ): Promise<
    | Extract<ClaimOutcome, { kind: 'replay' | 'erased' | 'mismatch' }>
    | { readonly kind: 'accepted'; readonly runId: string }
    | undefined
  >;
  claim(tenant: string, claim: IdempotencyClaim, leaseMs: number): Promise<ClaimOutcome>;
  /**
   * Stores a final response (2xx, non-retryable 4xx), or where the claim's subject was erased that there was one. No effect
   * when `owner` lost the claim.
   */
  complete(
    tenant: string,
    claim: IdempotencyClaim,
    owner: string,
    response: StoredResponse,
  ): Promise<void>;
  /**
   * Notes what the key's message is for, the interrupt of an answer for one; each later claim gives it. False: `owner`
   * lost the claim.
   */
  bind(tenant: string, claim: IdempotencyClaim, owner: string, boundTo: string): Promise<boolean>;
  /** Ends the claim: one that is bound to a run or an interrupt stays so, any other is forgotten. */
  release(tenant: string, claim: IdempotencyClaim, owner: string): Promise<void>;
  /** Deletes records that are at least so old, in ms by the clock that they were made by; returns how many. */
  expire(keptMs: number): Promise<number>;
}
