// The registry of runs (architecture §4, accept): who was accepted with what, whether Temporal has it, and the lists.
import { randomUUID } from 'node:crypto';
import type { RunStatus } from '../../rules/status.ts';
import type { IdempotencyClaim } from '../../ports/idempotency.ts';
import type {
  AcceptOutcome,
  NewRun,
  RunRow,
  RunStore,
  StartFailure,
  UnstartedRun,
} from '../../ports/runs.ts';
import { codeOf, HostError } from '../../rules/errors.ts';
import { CLAIM_LEASE_MS } from '../../rules/limits.ts';
import { isOlder, SqlError, type Db, type Queries, type SealedDb, type SqlValue } from './db.ts';
import { lists } from './run-lists.ts';
import { keptRow, RUN_COLUMNS, runReader, storedInput, type RunRecord } from './run-record.ts';
import { refOf } from './run-ref.ts';
import { joinSession, sessionValues } from './session-store.ts';
import {
  claimedBy,
  claimLeft,
  insertClaim,
  keptRequest,
  newClaimValues,
  type KeptRequest,
  type LeftClaim,
} from './idempotency-store.ts';
import { atRest, PLACES, type Seal, type Seals } from './seals.ts';

/** Inserts a run (runValues, from $1 on) with its head and its place in its session where the CTE `claim` has a row. */
export const INSERT_RUN = `run AS (
    INSERT INTO runs (run_id, tenant_id, workflow_id, input, tags, created_at_ms, workflow_name, cohort_id, subject_key)
    SELECT $1::text, $2::text, $3::text, $4::text, $5::text, $6::bigint, $8::text, $9::text, $20::text FROM claim
  ),
  held AS (
    INSERT INTO subject_runs (run_id, tenant_id, key_id) SELECT $1, $2, $20 FROM claim WHERE $20 IS NOT NULL
  ),
  ${joinSession(10)}
  INSERT INTO run_heads (run_id, tenant_id, workflow_id, created_at_ms, status, closed, next_sequence,
    last_timestamp_ms, temporal_run_id, history_event_id, token, translate_version, translate_state, snapshot)
  SELECT $1, $2, $3, $6, 'pending', false, 0, 0, '', 0, '', $7::integer, 'null', 'null' FROM session
  RETURNING 1`;

/** What seals a new run. Throws HostError subject_erasing: its key was destroyed since it was looked up. */
export async function sealOfNew(
  seals: Seals,
  { subjectKey }: Pick<NewRun, 'subjectKey'>,
): Promise<Seal | undefined> {
  if (subjectKey === undefined) return undefined;
  return seals.ofKey(subjectKey).catch((error: unknown) => {
    if (codeOf(error) === 'subject_erased') throw new HostError('subject_erasing', {}, error);
    throw error;
  });
}

/** SQLSTATE of the schema: the key is being destroyed, and the session has another subject. */
const KEY_CLOSED = 'OW001';
const SESSION_CHANGED = 'OW002';

/** For the statement that inserts a run. */
export function refusedKey(error: unknown): never {
  if (error instanceof SqlError && error.sqlState === KEY_CLOSED)
    throw new HostError('subject_erasing', {}, error);
  throw error;
}

function storedTags({ runId, input: { tags = [] } }: NewRun, seal: Seal | undefined): string {
  return atRest(seal, { place: PLACES.tags(runId), json: JSON.stringify(tags), kept: '[]' });
}

export function runValues(run: NewRun, seal: Seal | undefined): SqlValue[] {
  return [
    run.runId,
    run.tenant,
    run.workflowId,
    storedInput(run, seal),
    storedTags(run, seal),
    run.createdAtMs,
    run.input.translateVersion,
    // No column can hold a NUL.
    run.input.definition.name.replaceAll('\0', ''),
    run.input.fork?.cohortId ?? null,
    ...sessionValues(run, seal),
  ];
}

export function rowOf({ sessionTitle: _, ...run }: NewRun): RunRow {
  return { ...run, ...refOf(run.tenant, run.runId) };
}

export async function findRun(
  db: SealedDb,
  tenant: string,
  runId: string,
): Promise<RunRow | undefined> {
  const record = await readRun(db, tenant, runId);
  return record && (await runReader(db.seals, [record]))(record);
}

async function readRun(db: Db, tenant: string, runId: string): Promise<RunRecord | undefined> {
  const [record] = await db.query<RunRecord>(
    `SELECT ${RUN_COLUMNS.join(', ')} FROM runs WHERE run_id = $1 AND tenant_id = $2`,
    [runId, tenant],
  );
  return record;
}

/** Of a cohort's fork: a member that is stopped, or has come to its end, gets none. Whoever ends it waits, or comes first. */
const OF_OPEN_MEMBER = `SELECT 1 FROM cohort_members WHERE cohort_id = $9 AND tenant_id = $2 AND fork_run_id = $1
  AND stop IS NULL AND outcome IS NULL FOR SHARE`;

/** Throws run_state_conflict: it is a fork that its cohort does not want any more. */
async function insertRun(queries: Queries, run: NewRun, seal: Seal | undefined): Promise<RunRow> {
  const claim = run.input.fork?.cohortId === undefined ? 'SELECT 1' : OF_OPEN_MEMBER;
  const statement = `WITH claim AS MATERIALIZED (${claim}), ${INSERT_RUN}`;
  const inserted = await queries.query(statement, runValues(run, seal)).catch(refusedKey);
  if (inserted.length > 0) return rowOf(run);
  throw new HostError('run_state_conflict', { reason: 'The cohort has ended this member.' });
}

interface Sealed {
  readonly run: NewRun;
  readonly seal: Seal | undefined;
  readonly claim: IdempotencyClaim;
  readonly kept: KeptRequest;
}

/** Claim and run in one statement, which is a transaction and one trip. Undefined where somebody has the key. */
async function acceptNew(
  db: SealedDb,
  { run, seal, ...asked }: Sealed,
): Promise<AcceptOutcome | undefined> {
  const owner = randomUUID();
  const values = runValues(run, seal);
  const inserting = db.query(`WITH claim AS (${insertClaim(values.length + 1)}), ${INSERT_RUN}`, [
    ...values,
    ...newClaimValues(run.tenant, { ...asked, owner, leaseMs: CLAIM_LEASE_MS, runId: run.runId }),
  ]);
  const inserted = await inserting.catch(refusedKey);
  return inserted.length > 0 ? { kind: 'claimed', owner, inserted: rowOf(run) } : undefined;
}

/** A claim that was left behind goes on with its run; of one that is too old there is none. Undefined: somebody else has it. */
function acceptLeft(
  db: SealedDb,
  { run, seal, ...asked }: Sealed,
  left: LeftClaim,
): Promise<AcceptOutcome | undefined> {
  return db.transaction(async (tx) => {
    const { tenant, runId } = run;
    const fresh = { ...asked, owner: randomUUID(), leaseMs: CLAIM_LEASE_MS, runId };
    const taken = await claimLeft(tx, tenant, { ...fresh, left });
    return taken?.runId === runId ? { ...taken, inserted: await insertRun(tx, run, seal) } : taken;
  });
}

function acceptClaimed(db: SealedDb, sealed: Sealed): Promise<AcceptOutcome> {
  const { run, claim } = sealed;
  return claimedBy<AcceptOutcome>(db, run.tenant, {
    claim,
    claimNew: () => acceptNew(db, sealed),
    claimLeft: (left) => acceptLeft(db, sealed, left),
  });
}

export function createRunStore(db: SealedDb): RunStore {
  return {
    ref: refOf,
    async nowMs() {
      const [row] = await db.query<{ now_ms: number }>('SELECT openwop_now_ms() AS now_ms');
      return row?.now_ms ?? 0;
    },
    async accept(run, claim) {
      const seal = await sealOfNew(db.seals, run);
      try {
        if (!claim) return { kind: 'claimed', owner: '', inserted: await insertRun(db, run, seal) };
        return await acceptClaimed(db, { run, seal, claim, kept: await keptRequest(db, claim) });
      } catch (error) {
        if (!(error instanceof SqlError) || error.sqlState !== SESSION_CHANGED) throw error;
        return { kind: 'session-changed' };
      }
    },
    ...starts(db),
    find: (tenant, runId) => findRun(db, tenant, runId),
    async findKept(tenant, runId) {
      const record = await readRun(db, tenant, runId);
      return record && keptRow(record);
    },
    async expiredAt(tenant, runId) {
      const [entry] = await db.query<{ expired_at_ms: number }>(
        'SELECT expired_at_ms FROM expired_runs WHERE run_id = $1 AND tenant_id = $2',
        [runId, tenant],
      );
      return entry?.expired_at_ms;
    },
    ...lists(db),
    async locate(runId) {
      const [row] = await db.query<{ tenant_id: string }>(
        'SELECT tenant_id FROM runs WHERE run_id = $1',
        [runId],
      );
      return row && refOf(row.tenant_id, runId);
    },
    async allRuns(after, limit) {
      const rows = await db.query<{ tenant_id: string; run_id: string }>(
        'SELECT tenant_id, run_id FROM runs WHERE run_id > $1 ORDER BY run_id LIMIT $2',
        [after, limit],
      );
      return rows.map((row) => refOf(row.tenant_id, row.run_id));
    },
  };
}

function starts(
  db: Db,
): Pick<RunStore, 'markStarted' | 'noteRefusal' | 'markStartFailed' | 'unstarted'> {
  return {
    unstarted: (...asked) => unstarted(db, ...asked),
    async markStarted({ tenant, runId }, temporalRunId) {
      const [started] = await db.query<{ status: string | null; was_ended: boolean | null }>(
        `WITH started AS (
           UPDATE runs SET temporal_run_id = coalesce(temporal_run_id, $2)
           WHERE run_id = $1 AND tenant_id = $3 AND (temporal_run_id IS NOT NULL OR start_failure IS NULL) RETURNING temporal_run_id
         ), head AS (
           UPDATE run_heads SET temporal_run_id = started.temporal_run_id FROM started
           WHERE run_id = $1 AND run_heads.temporal_run_id = '' AND NOT closed
         )
         SELECT h.status, h.closed AND (h.temporal_run_id = '' OR started.temporal_run_id <> $2) AS was_ended
         FROM started LEFT JOIN run_heads h ON h.run_id = $1`,
        [runId, temporalRunId, tenant],
      );
      if (!started) return undefined;
      const status = (started.status ?? 'pending') as RunStatus;
      return { status, wasEnded: started.was_ended === true };
    },
    async noteRefusal({ tenant, runId }, apartMs) {
      const [row] = await db.query<{ for_ms: number }>(
        `UPDATE runs SET refused_at_ms = CASE WHEN refused_last_ms > now.ms - $3::bigint THEN refused_at_ms ELSE now.ms END,
           refused_last_ms = now.ms
         FROM (SELECT openwop_now_ms() AS ms) now
         WHERE run_id = $1 AND tenant_id = $2 RETURNING refused_last_ms - refused_at_ms AS for_ms`,
        [runId, tenant, apartMs],
      );
      return row?.for_ms ?? 0;
    },
    async markStartFailed({ tenant, runId }, failure) {
      const [row] = await db.query<{ start_failure: string }>(
        `UPDATE runs SET start_failure = coalesce(start_failure, $2)
         WHERE run_id = $1 AND tenant_id = $3 AND temporal_run_id IS NULL RETURNING start_failure`,
        [runId, JSON.stringify(failure), tenant],
      );
      return row && (JSON.parse(row.start_failure) as StartFailure);
    },
  };
}

async function unstarted(
  db: Db,
  ...[ageMs, limit, behind]: Parameters<RunStore['unstarted']>
): Promise<readonly UnstartedRun[]> {
  const records = await db.query<{ tenant_id: string; run_id: string; created_at_ms: number }>(
    `SELECT tenant_id, run_id, created_at_ms FROM runs WHERE temporal_run_id IS NULL AND ${isOlder('created_at_ms', '$1')}
         AND (created_at_ms, run_id) > ($3::bigint, $4::text)
         AND NOT EXISTS (SELECT 1 FROM run_heads h WHERE h.run_id = runs.run_id AND h.closed)
         AND (start_failure IS NULL OR EXISTS (SELECT 1 FROM run_heads h WHERE h.run_id = runs.run_id))
       ORDER BY created_at_ms, run_id LIMIT $2`,
    [ageMs, limit, behind?.createdAtMs ?? Number.MIN_SAFE_INTEGER, behind?.runId ?? ''],
  );
  return records.map((record) => ({
    ...refOf(record.tenant_id, record.run_id),
    createdAtMs: record.created_at_ms,
  }));
}
