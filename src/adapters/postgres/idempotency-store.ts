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
import { randomUUID } from 'node:crypto';
import { codeOf } from '../../rules/errors.ts';
import { sha256Hex } from '../../rules/ids.ts';
import type { JsonValue } from '../../rules/json.ts';
import { IDEMPOTENCY_RETENTION_SECONDS } from '../../rules/limits.ts';
import type { ClaimOutcome, IdempotencyClaim, IdempotencyStore } from '../../ports/idempotency.ts';
import type { SealedDb, SqlValue, Transaction } from './db.ts';
import { AS_IT_IS, atRest, PLACES, type Opener, type Seal } from './seals.ts';

interface RecordRow {
  readonly request_digest: string;
  readonly lease_until_ms: number;
  readonly run_id: string | null;
  readonly interrupt_id: string | null;
  readonly response_status: number | null;
  readonly response_body: string | null;
  readonly created_at_ms: number;
  readonly now_ms: number;
}

const READ_RECORD = `SELECT request_digest, lease_until_ms, run_id, interrupt_id, response_status, response_body, created_at_ms,
    openwop_now_ms() AS now_ms
  FROM idempotency_records WHERE tenant_id = $1 AND endpoint = $2 AND key_digest = $3`;

/** The key itself is not stored: it is the caller's, of any length, and belongs in no log (idempotency.md §Layer 1). */
function recordKey(tenant: string, { endpoint, key }: IdempotencyClaim): [string, string, string] {
  return [tenant, endpoint, sha256Hex(`${tenant}:${endpoint}:${key}`)];
}

/**
 * What is asked about somebody is kept as a keyed digest: nobody can try what it is of. Once the key is destroyed what was
 * asked under it before is another request than any.
 */
export async function keyedClaim(
  { seals }: Pick<SealedDb, 'seals'>,
  claim: IdempotencyClaim,
): Promise<{ readonly claim: IdempotencyClaim; readonly seal: Seal | undefined }> {
  const { subjectKey, requestDigest } = claim;
  if (subjectKey === undefined) return { claim, seal: undefined };
  try {
    const seal = await seals.ofKey(subjectKey);
    return { claim: { ...claim, requestDigest: seal.digest(requestDigest) }, seal };
  } catch (error) {
    if (codeOf(error) === 'subject_erased') return { claim, seal: undefined };
    throw error;
  }
}

/** What stands against a request (keyedClaim) now, without a claim: undefined where one could be had. */
export async function standingOf(
  db: SealedDb,
  tenant: string,
  claim: IdempotencyClaim,
): Promise<ClaimOutcome | undefined> {
  const [record] = await db.query<RecordRow>(READ_RECORD, recordKey(tenant, claim));
  const open = await db.seals.opener([record?.response_body]);
  const standing = record && outcomeOf(record, claim, { tenant, open });
  return typeof standing === 'object' ? standing : undefined;
}

/**
 * Part of a statement: claims a key that nobody has. One row then, else none. Its values (newClaimValues) are the
 * statement's parameters from `first` on.
 */
export function insertClaim(first: number): string {
  const value = (index: number): string => `$${first + index}`;
  return `INSERT INTO idempotency_records
      (tenant_id, endpoint, key_digest, request_digest, owner, run_id, lease_until_ms, created_at_ms)
    VALUES (${[0, 1, 2, 3, 4, 5].map(value).join(', ')}, openwop_now_ms() + ${value(6)}::bigint, openwop_now_ms())
    ON CONFLICT DO NOTHING RETURNING 1`;
}

interface NewClaim {
  readonly claim: IdempotencyClaim;
  readonly owner: string;
  readonly leaseMs: number;
  readonly runId?: string;
}

export function newClaimValues(
  tenant: string,
  { claim, owner, leaseMs, runId }: NewClaim,
): SqlValue[] {
  return [...recordKey(tenant, claim), claim.requestDigest, owner, runId ?? null, leaseMs];
}

interface Claiming {
  /** As of keyedClaim. */
  readonly claim: IdempotencyClaim;
  readonly leaseMs: number;
  readonly runId?: string;
  /** Of the key that the claim names. */
  readonly open: Opener;
}

/** Claims within a transaction of the caller's. `runId` is noted with a claim that is new. */
export async function claimRecord(
  tx: Transaction,
  tenant: string,
  { claim, leaseMs, runId, open }: Claiming,
): Promise<ClaimOutcome> {
  const id = recordKey(tenant, claim);
  const owner = randomUUID();
  const inserted = await tx.query(
    insertClaim(1),
    newClaimValues(tenant, { claim, owner, leaseMs, runId }),
  );
  if (inserted.length > 0) return { kind: 'claimed', owner };
  const [record] = await tx.query<RecordRow>(`${READ_RECORD} FOR UPDATE`, id);
  // Released in between: as if it had not been there.
  if (!record) return claimRecord(tx, tenant, { claim, leaseMs, runId, open });
  const standing = outcomeOf(record, claim, { tenant, open });
  if (standing !== 'fresh' && standing !== 'reclaim') return standing;
  const bound = standing === 'reclaim' ? bindingOf(record) : {};
  await tx.query(
    `UPDATE idempotency_records SET request_digest = $4, owner = $5, lease_until_ms = openwop_now_ms() + $6::bigint,
       run_id = $7, interrupt_id = $8, response_status = NULL, response_body = NULL,
       created_at_ms = CASE WHEN $9::boolean THEN created_at_ms ELSE openwop_now_ms() END
     WHERE tenant_id = $1 AND endpoint = $2 AND key_digest = $3`,
    [
      ...id,
      claim.requestDigest,
      owner,
      leaseMs,
      bound.runId ?? runId ?? null,
      bound.boundTo ?? null,
      standing === 'reclaim',
    ],
  );
  return { kind: 'claimed', owner, ...bound };
}

function bindingOf({ run_id, interrupt_id }: RecordRow): { runId?: string; boundTo?: string } {
  return {
    ...(run_id === null ? {} : { runId: run_id }),
    ...(interrupt_id === null ? {} : { boundTo: interrupt_id }),
  };
}

interface Reading {
  readonly tenant: string;
  readonly open: Opener;
}

function outcomeOf(
  record: RecordRow,
  claim: IdempotencyClaim,
  { tenant, open }: Reading,
): ClaimOutcome | 'fresh' | 'reclaim' {
  if (record.created_at_ms + IDEMPOTENCY_RETENTION_SECONDS * 1000 <= record.now_ms) return 'fresh';
  if (record.request_digest !== claim.requestDigest) return { kind: 'mismatch' };
  if (record.response_status !== null) {
    const { text, erasedAtMs } = open(placeOf(tenant, claim), record.response_body ?? 'null');
    if (erasedAtMs !== undefined) return { kind: 'mismatch' };
    const body = JSON.parse(text) as JsonValue;
    return { kind: 'replay', response: { status: record.response_status, body } };
  }
  if (record.lease_until_ms <= record.now_ms) return 'reclaim';
  const retryAfterSeconds = Math.max(1, Math.ceil((record.lease_until_ms - record.now_ms) / 1000));
  return { kind: 'in-flight', retryAfterSeconds };
}

function placeOf(tenant: string, claim: IdempotencyClaim): string {
  const [, endpoint, keyDigest] = recordKey(tenant, claim);
  return PLACES.response(endpoint, keyDigest);
}

const OWN =
  'tenant_id = $1 AND endpoint = $2 AND key_digest = $3 AND owner = $4 AND response_status IS NULL';

export function createIdempotencyStore(db: SealedDb): IdempotencyStore {
  return {
    async find(tenant, plainClaim) {
      const { claim } = await keyedClaim(db, plainClaim);
      const [record] = await db.query<RecordRow>(READ_RECORD, recordKey(tenant, claim));
      const open = await db.seals.opener([record?.response_body]);
      const standing = record && outcomeOf(record, claim, { tenant, open });
      if (!record || standing === 'fresh') return undefined;
      if (
        typeof standing === 'object' &&
        (standing.kind === 'replay' || standing.kind === 'mismatch')
      )
        return standing;
      return record.run_id === null ? undefined : { kind: 'accepted', runId: record.run_id };
    },
    async claim(tenant, plainClaim, leaseMs) {
      const { claim, seal } = await keyedClaim(db, plainClaim);
      const open = seal?.open ?? AS_IT_IS;
      return db.transaction((tx) => claimRecord(tx, tenant, { claim, leaseMs, open }));
    },
    async complete(tenant, claim, owner, { status, body }) {
      const { seal } = await keyedClaim(db, claim);
      const kept = atRest(seal, { place: placeOf(tenant, claim), json: JSON.stringify(body) });
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
    async expire(beforeMs) {
      const gone = await db.query(
        'DELETE FROM idempotency_records WHERE created_at_ms < $1 RETURNING 1',
        [beforeMs],
      );
      return gone.length;
    },
  };
}
