// Layer 1 idempotency (idempotency.md §Layer 1): one record per tenant, endpoint and caller's key, claimed with a
// lease.
//
// | record              | same body                                   | other body |
// |---------------------|---------------------------------------------|------------|
// | none, or over 24 h  | claimed                                     | claimed    |
// | pending, leased     | in-flight                                   | mismatch   |
// | pending, lease over | claimed by compare-and-set, with what it is | mismatch   |
// |                     | bound to: its run or its interrupt          |            |
// | answered            | replay                                      | mismatch   |
// | of somebody erased  | erased, or as above; the body is not known  | the same   |
//
// What is asked about somebody is kept as a keyed digest: nobody can try what it is of. The record says by which key, so that
// a repeat is compared under that one, whatever subject it would have today. Once that key is destroyed only the ids of what was
// asked about can be compared, and the caller's key; what was answered is `erased`.
import { randomUUID } from 'node:crypto';
import { codeOf } from '../../rules/errors.ts';
import { sha256Hex } from '../../rules/ids.ts';
import { canonicalJson, type JsonValue } from '../../rules/json.ts';
import { IDEMPOTENCY_RETENTION_SECONDS } from '../../rules/limits.ts';
import type { ClaimOutcome, IdempotencyClaim, IdempotencyStore } from '../../ports/idempotency.ts';
import { agoMs, type Queries, type SealedDb, type SqlValue } from './db.ts';
import { deleteFree } from './free-rows.ts';
import { atRest, PLACES, type Seal } from './seals.ts';

/** How often a claim is tried that somebody else changes meanwhile. */
const CLAIM_TRIES = 3;

interface RecordRow {
  readonly target_digest: string;
  readonly request_digest: string;
  readonly subject_key: string | null;
  readonly owner: string;
  readonly lease_until_ms: number;
  readonly run_id: string | null;
  readonly interrupt_id: string | null;
  readonly response_status: number | null;
  readonly response_body: string | null;
  readonly created_at_ms: number;
  readonly now_ms: number;
}

const READ_RECORD = `SELECT target_digest, request_digest, subject_key, owner, lease_until_ms, run_id, interrupt_id,
    response_status, response_body, created_at_ms, openwop_now_ms() AS now_ms
  FROM idempotency_records WHERE tenant_id = $1 AND endpoint = $2 AND key_digest = $3`;

/** The key itself is not stored: it is the caller's, of any length, and belongs in no log (idempotency.md §Layer 1). */
function recordKey(tenant: string, { endpoint, key }: IdempotencyClaim): [string, string, string] {
  return [tenant, endpoint, sha256Hex(`${tenant}:${endpoint}:${key}`)];
}

/** Undefined: it was destroyed. */
async function sealOf(
  { seals }: Pick<SealedDb, 'seals'>,
  keyId: string,
): Promise<Seal | undefined> {
  try {
    return await seals.ofKey(keyId);
  } catch (error) {
    if (codeOf(error) === 'subject_erased') return undefined;
    throw error;
  }
}

/** A request as a new record keeps it. */
export interface KeptRequest {
  readonly digest: string;
  /** By which the digest is made. */
  readonly subjectKey?: string;
}

export async function keptRequest(
  db: Pick<SealedDb, 'seals'>,
  { subjectKey, requestDigest }: IdempotencyClaim,
): Promise<KeptRequest> {
  if (subjectKey === undefined) return { digest: requestDigest };
  const seal = await sealOf(db, subjectKey);
  // Of somebody who was erased nothing is kept that a guess could be held against.
  return { digest: seal?.digest(requestDigest) ?? '', subjectKey };
}

/** A claim that was left behind, or one that is too old to count. */
export interface LeftClaim {
  readonly kind: 'left';
  readonly owner: string;
  /** It is as if it had not been there. */
  readonly isOld: boolean;
  /** Of an acceptance that was never answered. */
  readonly runId?: string;
}

/** What stands against a request, without a claim. Undefined: nothing. */
async function standingOf(
  db: SealedDb,
  tenant: string,
  claim: IdempotencyClaim,
): Promise<Exclude<ClaimOutcome, { kind: 'claimed' }> | LeftClaim | undefined> {
  const [record] = await db.query<RecordRow>(READ_RECORD, recordKey(tenant, claim));
  if (!record) return undefined;
  const { owner, created_at_ms: sinceMs, now_ms: nowMs, lease_until_ms: untilMs } = record;
  const bound = record.run_id === null ? {} : { runId: record.run_id };
  if (sinceMs + IDEMPOTENCY_RETENTION_SECONDS * 1000 <= nowMs)
    return { kind: 'left', owner, isOld: true };
  if (!(await isSameRequest(db, record, claim))) return { kind: 'mismatch' };
  if (record.response_status !== null) return answerOf(db, record, { tenant, claim });
  if (untilMs <= nowMs) return { kind: 'left', owner, isOld: false, ...bound };
  const retryAfterSeconds = Math.max(1, Math.ceil((untilMs - nowMs) / 1000));
  return { kind: 'in-flight', retryAfterSeconds, ...bound };
}

function targetDigest({ target }: IdempotencyClaim): string {
  return sha256Hex(canonicalJson(target));
}

async function isSameRequest(
  db: SealedDb,
  { subject_key: keyId, request_digest: kept, target_digest: target }: RecordRow,
  claim: IdempotencyClaim,
): Promise<boolean> {
  const { requestDigest } = claim;
  if (target !== targetDigest(claim)) return false;
  if (keyId === null) return kept === requestDigest;
  const seal = await sealOf(db, keyId);
  return seal === undefined || seal.digest(requestDigest) === kept;
}

async function answerOf(
  db: SealedDb,
  { response_status: status, response_body: kept, run_id: runId }: RecordRow,
  { tenant, claim }: { readonly tenant: string; readonly claim: IdempotencyClaim },
): Promise<Exclude<ClaimOutcome, { kind: 'claimed' }>> {
  const open = await db.seals.opener([kept]);
  const { text, erasedAtMs } = open(placeOf(tenant, claim), kept ?? 'null');
  if (erasedAtMs !== undefined || kept === null)
    return { kind: 'erased', ...(runId === null ? {} : { runId }) };
  return {
    kind: 'replay',
    response: { status: status ?? 0, body: JSON.parse(text) as JsonValue },
  };
}

/**
 * Part of a statement: claims a key that nobody has. One row then, else none. Its values (newClaimValues) are the
 * statement's parameters from `first` on.
 */
export function insertClaim(first: number): string {
  const value = (index: number): string => `$${first + index}`;
  return `INSERT INTO idempotency_records
      (tenant_id, endpoint, key_digest, target_digest, request_digest, subject_key, owner, run_id, lease_until_ms, created_at_ms)
    VALUES (${[0, 1, 2, 3, 4, 5, 6, 7].map(value).join(', ')}, openwop_now_ms() + ${value(8)}::bigint, openwop_now_ms())
    ON CONFLICT DO NOTHING RETURNING 1`;
}

interface NewClaim {
  readonly claim: IdempotencyClaim;
  readonly kept: KeptRequest;
  readonly owner: string;
  readonly leaseMs: number;
  readonly runId?: string;
}

export function newClaimValues(
  tenant: string,
  { claim, kept, owner, leaseMs, runId }: NewClaim,
): SqlValue[] {
  const { digest, subjectKey } = kept;
  return [
    ...[...recordKey(tenant, claim), targetDigest(claim), digest],
    ...[subjectKey ?? null, owner, runId ?? null, leaseMs],
  ];
}

/**
 * Takes over a claim that was left behind, by compare-and-set, with what it is bound to: where that is nothing, with what the
 * new one is. Undefined: somebody else has.
 */
async function takeOver(
  db: Queries,
  tenant: string,
  { claim, left, owner, leaseMs, runId }: ClaimOfLeft,
): Promise<Claimed | undefined> {
  const [taken] = await db.query<Pick<RecordRow, 'run_id' | 'interrupt_id'>>(
    `UPDATE idempotency_records SET owner = $5, lease_until_ms = openwop_now_ms() + $6::bigint, run_id = coalesce(run_id, $7)
     WHERE ${OWN} AND lease_until_ms <= openwop_now_ms() RETURNING run_id, interrupt_id`,
    [...recordKey(tenant, claim), left.owner, owner, leaseMs, runId ?? null],
  );
  if (!taken) return undefined;
  const { run_id: boundRun, interrupt_id: boundTo } = taken;
  return {
    ...{ kind: 'claimed', owner },
    ...(boundRun === null ? {} : { runId: boundRun }),
    ...(boundTo === null ? {} : { boundTo }),
  };
}

/** Of one that is too old to count nothing stays. Undefined: somebody else has taken it. */
async function replaceOld(
  db: Queries,
  tenant: string,
  { left, ...fresh }: ClaimOfLeft,
): Promise<Claimed | undefined> {
  await db.query(
    'DELETE FROM idempotency_records WHERE tenant_id = $1 AND endpoint = $2 AND key_digest = $3 AND owner = $4',
    [...recordKey(tenant, fresh.claim), left.owner],
  );
  return insertNew(db, tenant, fresh);
}

type ClaimOfLeft = NewClaim & { readonly left: LeftClaim };

/** Undefined: somebody else has come first. */
export function claimLeft(
  db: Queries,
  tenant: string,
  asked: ClaimOfLeft,
): Promise<Claimed | undefined> {
  return asked.left.isOld ? replaceOld(db, tenant, asked) : takeOver(db, tenant, asked);
}

type Claimed = Extract<ClaimOutcome, { kind: 'claimed' }>;

/** Each gives undefined where somebody else has come first. */
interface Ways<Outcome> {
  readonly claim: IdempotencyClaim;
  readonly claimNew: () => Promise<Outcome | undefined>;
  readonly claimLeft: (left: LeftClaim) => Promise<Outcome | undefined>;
}

/** A claim, or what stands against it: what was answered, or is under way. */
export async function claimedBy<Outcome>(
  db: SealedDb,
  tenant: string,
  { claim, claimNew, claimLeft }: Ways<Outcome>,
): Promise<Outcome | Exclude<ClaimOutcome, { kind: 'claimed' }>> {
  for (let tries = 0; tries < CLAIM_TRIES; tries++) {
    const fresh = await claimNew();
    if (fresh) return fresh;
    const standing = await standingOf(db, tenant, claim);
    if (standing && standing.kind !== 'left') return standing;
    const taken = standing && (await claimLeft(standing));
    if (taken) return taken;
  }
  return { kind: 'in-flight', retryAfterSeconds: 1 };
}

async function insertNew(
  db: Queries,
  tenant: string,
  fresh: NewClaim,
): Promise<Claimed | undefined> {
  const { owner, runId } = fresh;
  const inserted = await db.query(insertClaim(1), newClaimValues(tenant, fresh));
  if (inserted.length === 0) return undefined;
  return { kind: 'claimed', owner, ...(runId === undefined ? {} : { runId }) };
}

function placeOf(tenant: string, claim: IdempotencyClaim): string {
  const [, endpoint, keyDigest] = recordKey(tenant, claim);
  return PLACES.response(endpoint, keyDigest);
}

const OWN =
  'tenant_id = $1 AND endpoint = $2 AND key_digest = $3 AND owner = $4 AND response_status IS NULL';

export function createIdempotencyStore(db: SealedDb): IdempotencyStore {
  return {
    async find(tenant, claim) {
      const standing = await standingOf(db, tenant, claim);
      if (standing?.kind !== 'left' && standing?.kind !== 'in-flight') return standing;
      const { runId } = standing;
      return runId === undefined ? undefined : { kind: 'accepted', runId };
    },
    async claim(tenant, claim, leaseMs) {
      const fresh = { claim, kept: await keptRequest(db, claim), leaseMs, owner: randomUUID() };
      return claimedBy<Claimed>(db, tenant, {
        claim,
        claimNew: () => insertNew(db, tenant, fresh),
        claimLeft: (left) => claimLeft(db, tenant, { ...fresh, left }),
      });
    },
    async complete(tenant, claim, owner, { status, body }) {
      const { subjectKey } = claim;
      const seal = subjectKey === undefined ? undefined : await sealOf(db, subjectKey);
      // Of somebody who was erased meanwhile only that it was answered.
      const isErased = subjectKey !== undefined && !seal;
      const place = placeOf(tenant, claim);
      const kept = isErased ? null : atRest(seal, { place, json: JSON.stringify(body) });
      await db.query(
        `UPDATE idempotency_records SET response_status = $5, response_body = $6 WHERE ${OWN}`,
        [...recordKey(tenant, claim), owner, status, kept],
      );
    },
    async bind(tenant, claim, owner, boundTo) {
      const bound = await db.query(
        `UPDATE idempotency_records SET interrupt_id = $5 WHERE ${OWN} RETURNING 1`,
        [...recordKey(tenant, claim), owner, boundTo],
      );
      return bound.length > 0;
    },
    async release(tenant, claim, owner) {
      // Else the next request would start a second run, or answer a second question.
      await db.query(
        `WITH forgotten AS (
           DELETE FROM idempotency_records WHERE ${OWN} AND run_id IS NULL AND interrupt_id IS NULL
         )
         UPDATE idempotency_records SET lease_until_ms = 0
         WHERE ${OWN} AND (run_id IS NOT NULL OR interrupt_id IS NOT NULL)`,
        [...recordKey(tenant, claim), owner],
      );
    },
    async expire(keptMs) {
      const gone = await db.query(
        `${deleteFree('idempotency_records', `created_at_ms <= ${agoMs('$1')}`)} RETURNING 1`,
        [keptMs],
      );
      return gone.length;
    },
  };
}
