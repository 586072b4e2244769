// Cohorts on Postgres: which runs one picked, and what became of each fork. What a member came to stands
// once; a member that is settled again stays as it is.
import { unreadableFor } from '../../rules/unreadable.ts';
import type {
  CohortState,
  CohortStore,
  CohortTotals,
  MemberName,
  NewCohort,
} from '../../ports/cohorts.ts';
import type { RunRow } from '../../ports/runs.ts';
import {
  COHORT_COLUMNS,
  cohortOf,
  MEMBER_COLUMNS,
  memberOf,
  TotalsSum,
  type CohortRecord,
  type MemberRecord,
  type SettledRecord,
} from './cohort-rows.ts';
import { isOlder, isUniqueViolation, type Db, type SealedDb, type SqlValue } from './db.ts';
import { behind, digitsOf, nextCursor } from './list-cursor.ts';
import { RUN_COLUMNS, runReader, type RunRecord } from './run-record.ts';

const candidates =
  (db: SealedDb): CohortStore['candidates'] =>
  async (tenant, query) => {
    const values: SqlValue[] = [tenant];
    const bind = (value: SqlValue): string => `$${values.push(value)}`;
    // What a cohort keeps of a run is not sealed: none of a data subject is in one.
    const where = [
      ...['r.tenant_id = $1', 'r.cohort_id IS NULL', 'h.closed'],
      'r.subject_key IS NULL',
    ];
    const { workflowId, status, tag, sessionId, fromMs, untilMs, cursor, limit } = query;
    if (workflowId !== undefined) where.push(`r.workflow_id = ${bind(workflowId)}`);
    if (status !== undefined) where.push(`h.status = ${bind(status)}`);
    if (sessionId !== undefined) where.push(`s.session_id = ${bind(sessionId)}`);
    if (fromMs !== undefined) where.push(`r.created_at_ms >= ${bind(fromMs)}::bigint`);
    if (untilMs !== undefined) where.push(`r.created_at_ms < ${bind(untilMs)}::bigint`);
    // As JSON text, where a tag stands as it is written.
    if (tag !== undefined) where.push(`strpos(r.tags, ${bind(JSON.stringify(tag))}) > 0`);
    const place = { values, ...(cursor === undefined ? {} : { cursor }) };
    where.push(behind('(r.created_at_ms, r.run_id)', 'newest', place));
    const records = await db.query<RunRecord & { readonly place: string }>(
      `SELECT ${RUN_COLUMNS.map((name) => `r.${name}`).join(', ')}, ${digitsOf('r.created_at_ms')} AS place
       FROM runs r JOIN run_heads h ON h.run_id = r.run_id JOIN session_runs s ON s.run_id = r.run_id
       WHERE ${where.join(' AND ')} AND s.parent_run_id IS NULL
       ORDER BY r.created_at_ms DESC, r.run_id DESC LIMIT ${bind(limit + 1)}`,
      values,
    );
    const page = records.slice(0, limit);
    return {
      ...readEach(page, await runReader(db.seals, page)),
      ...nextCursor(records, limit, (last) => [last.place, last.run_id]),
    };
  };

function readEach(
  records: readonly RunRecord[],
  read: (record: RunRecord) => RunRow,
): Pick<Awaited<ReturnType<CohortStore['candidates']>>, 'runs' | 'unreadable'> {
  const runs: RunRow[] = [];
  const unreadable: { readonly runId: string; readonly createdAtMs: number }[] = [];
  for (const record of records)
    try {
      runs.push(read(record));
    } catch (error) {
      if (!unreadableFor(error)) throw error;
      unreadable.push({ runId: record.run_id, createdAtMs: record.created_at_ms });
    }
  return { runs, unreadable };
}

/** One statement: the cohort, where there is room for it, and its members. */
async function insert(db: Db, cohort: NewCohort, maxOpen: number): Promise<boolean> {
  const { cohortId, tenant, createdAtMs, request, members } = cohort;
  const sources = members.map(({ sourceRunId }) => sourceRunId);
  const forks = members.map(({ forkRunId }) => forkRunId);
  return db.transaction(async (tx) => {
    // Those that ask at once wait for each other: no two see the same room.
    await tx.query("SELECT pg_advisory_xact_lock(hashtext('openwop cohorts ' || $1))", [tenant]);
    const known = await tx.query('SELECT 1 FROM cohorts WHERE cohort_id = $1 AND tenant_id = $2', [
      cohortId,
      tenant,
    ]);
    if (known.length > 0) return true;
    const open = await tx.query(
      'SELECT 1 FROM cohorts WHERE tenant_id = $1 AND ended_at_ms IS NULL LIMIT $2',
      [tenant, maxOpen],
    );
    if (open.length >= maxOpen) return false;
    await tx.query(
      `INSERT INTO cohorts (cohort_id, tenant_id, created_at_ms, request, members, state)
       VALUES ($1, $2, $3, $4, $5, 'running')`,
      [cohortId, tenant, createdAtMs, JSON.stringify(request), members.length],
    );
    await tx.query(
      `INSERT INTO cohort_members (cohort_id, position, tenant_id, source_run_id, fork_run_id)
       SELECT $1, at - 1, $2, source, fork
       FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS picked (source, fork, at)`,
      [cohortId, tenant, sources, forks],
    );
    return true;
  });
}

/** Settled members that are read at once to be summed. */
const SUMMED_MEMBERS = 500;

/** Page by page: a report may be long, and a cohort has many. */
async function totalsOf(
  db: Db,
  tenant: string,
  cohortIds: readonly string[],
): Promise<ReadonlyMap<string, CohortTotals>> {
  const sums = new Map(cohortIds.map((id) => [id, new TotalsSum()]));
  let last: SettledRecord | undefined;
  do {
    const rows = await db.query<SettledRecord>(
      `SELECT cohort_id, position, outcome, report FROM cohort_members
       WHERE cohort_id = ANY($1::text[]) AND tenant_id = $2 AND outcome IS NOT NULL
         AND (cohort_id, position) > ($3::text, $4::bigint)
       ORDER BY cohort_id, position LIMIT $5`,
      [cohortIds, tenant, last?.cohort_id ?? '', last?.position ?? -1, SUMMED_MEMBERS],
    );
    for (const row of rows) sums.get(row.cohort_id)?.add(row);
    last = rows[SUMMED_MEMBERS - 1];
  } while (last);
  return new Map([...sums].map(([id, sum]) => [id, sum.totals()]));
}

const OF_MEMBER = 'cohort_id = $1 AND tenant_id = $2 AND position = $3';

function nameValues({ cohortId, tenant, position }: MemberName): SqlValue[] {
  return [cohortId, tenant, position];
}

function memberWrites(
  db: Db,
): Pick<CohortStore, 'noteStop' | 'noteAsks' | 'settle' | 'settleUnmade'> {
  return {
    async noteStop(name, stop) {
      await db.query(
        `UPDATE cohort_members SET stop = $4 WHERE ${OF_MEMBER} AND stop IS NULL AND outcome IS NULL`,
        [...nameValues(name), stop],
      );
    },
    async noteAsks(tenant, forkRunId, question) {
      await db.query(
        `UPDATE cohort_members SET stop = 'asks', question = $3
         WHERE fork_run_id = $1 AND tenant_id = $2 AND stop IS NULL AND outcome IS NULL`,
        [forkRunId, tenant, JSON.stringify(question)],
      );
    },
    async settle(name, { outcome, report }) {
      await db.query(
        `UPDATE cohort_members SET outcome = $4, report = $5 WHERE ${OF_MEMBER} AND outcome IS NULL`,
        [...nameValues(name), outcome, JSON.stringify(report)],
      );
    },
    settleUnmade: (name, { outcome, report }) =>
      db.transaction(async (tx) => {
        // Who accepts its fork takes this lock as well: by the next statement there is one, or there will be none.
        const [left] = await tx.query<{ fork_run_id: string }>(
          `SELECT fork_run_id FROM cohort_members WHERE ${OF_MEMBER} AND outcome IS NULL FOR UPDATE`,
          nameValues(name),
        );
        if (!left) return true;
        const made = await tx.query('SELECT 1 FROM runs WHERE run_id = $1', [left.fork_run_id]);
        if (made.length > 0) return false;
        await tx.query(`UPDATE cohort_members SET outcome = $4, report = $5 WHERE ${OF_MEMBER}`, [
          ...nameValues(name),
          ...[outcome, JSON.stringify(report)],
        ]);
        return true;
      }),
  };
}

function memberReads(db: Db): Pick<CohortStore, 'totals' | 'left' | 'members' | 'member'> {
  return {
    totals: (tenant, cohortIds) => totalsOf(db, tenant, cohortIds),
    async left(tenant, cohortId) {
      const rows = await db.query<Pick<MemberRecord, 'position'>>(
        `SELECT position FROM cohort_members
         WHERE cohort_id = $1 AND tenant_id = $2 AND outcome IS NULL ORDER BY position`,
        [cohortId, tenant],
      );
      return rows.map(({ position }) => position);
    },
    async members(tenant, cohortId, { from, limit, outcome }) {
      const records = await db.query<MemberRecord>(
        `SELECT ${MEMBER_COLUMNS} FROM cohort_members
         WHERE cohort_id = $1 AND tenant_id = $2 AND position >= $3 AND ($5::text IS NULL OR outcome = $5)
         ORDER BY position LIMIT $4`,
        [cohortId, tenant, from, limit, outcome ?? null],
      );
      return records.map(memberOf);
    },
    async member(name) {
      const [record] = await db.query<MemberRecord>(
        `SELECT ${MEMBER_COLUMNS} FROM cohort_members WHERE ${OF_MEMBER}`,
        nameValues(name),
      );
      return record && memberOf(record);
    },
  };
}

function moves(db: Db): Pick<CohortStore, 'markStarted' | 'cancelling' | 'end'> {
  return {
    async markStarted(tenant, cohortId) {
      await db.query(
        'UPDATE cohorts SET is_started = true WHERE cohort_id = $1 AND tenant_id = $2',
        [cohortId, tenant],
      );
    },
    async cancelling(tenant, cohortId) {
      const [row] = await db.query<{ state: string }>(
        `UPDATE cohorts SET state = CASE WHEN state = 'running' THEN 'cancelling' ELSE state END
         WHERE cohort_id = $1 AND tenant_id = $2 RETURNING state`,
        [cohortId, tenant],
      );
      return row && (row.state as CohortState);
    },
    async end(tenant, cohortId, atMs) {
      const [row] = await db.query<{ state: string }>(
        `UPDATE cohorts SET
           state = CASE state WHEN 'running' THEN 'completed' WHEN 'cancelling' THEN 'cancelled' ELSE state END,
           ended_at_ms = coalesce(ended_at_ms, $3)
         WHERE cohort_id = $1 AND tenant_id = $2 RETURNING state`,
        [cohortId, tenant, atMs],
      );
      return row && (row.state as CohortState);
    },
  };
}

export function createCohortStore(db: SealedDb): CohortStore {
  return {
    candidates: candidates(db),
    async insert(cohort, maxOpen) {
      try {
        return await insert(db, cohort, maxOpen);
      } catch (error) {
        // Of another tenant: no id of this one is that.
        if (isUniqueViolation(error)) return false;
        throw error;
      }
    },
    async find(tenant, cohortId) {
      const [record] = await db.query<CohortRecord>(
        `SELECT ${COHORT_COLUMNS} FROM cohorts WHERE cohort_id = $1 AND tenant_id = $2`,
        [cohortId, tenant],
      );
      return record && cohortOf(record);
    },
    async list(tenant, { cursor, limit }) {
      const values: SqlValue[] = [tenant, limit + 1];
      const records = await db.query<CohortRecord & { readonly place: string }>(
        `SELECT ${COHORT_COLUMNS}, ${digitsOf('created_at_ms')} AS place FROM cohorts
         WHERE tenant_id = $1 AND ${behind('(created_at_ms, cohort_id)', 'newest', { cursor, values })}
         ORDER BY created_at_ms DESC, cohort_id DESC LIMIT $2`,
        values,
      );
      return {
        cohorts: records.slice(0, limit).map(cohortOf),
        ...nextCursor(records, limit, (last) => [last.place, last.cohort_id]),
      };
    },
    async unstarted(ageMs, limit, behind) {
      const records = await db.query<
        Pick<CohortRecord, 'cohort_id' | 'tenant_id' | 'created_at_ms'>
      >(
        `SELECT cohort_id, tenant_id, created_at_ms FROM cohorts
         WHERE ended_at_ms IS NULL AND NOT is_started AND ${isOlder('created_at_ms', '$1')}
           AND (created_at_ms, cohort_id) > ($3::bigint, $4::text)
         ORDER BY created_at_ms, cohort_id LIMIT $2`,
        [ageMs, limit, behind?.createdAtMs ?? Number.MIN_SAFE_INTEGER, behind?.cohortId ?? ''],
      );
      return records.map((record) => ({
        cohortId: record.cohort_id,
        tenant: record.tenant_id,
        createdAtMs: record.created_at_ms,
      }));
    },
    async expire(keptMs, limit) {
      const gone = await db.query(
        `WITH due AS (
           SELECT cohort_id FROM cohorts c
           WHERE ended_at_ms <= openwop_now_ms() - $1::bigint AND NOT EXISTS (
             SELECT FROM cohort_members m JOIN runs r ON r.run_id = m.fork_run_id WHERE m.cohort_id = c.cohort_id)
           ORDER BY ended_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED
         ), members AS (
           DELETE FROM cohort_members m USING due WHERE m.cohort_id = due.cohort_id
         )
         DELETE FROM cohorts c USING due WHERE c.cohort_id = due.cohort_id RETURNING 1`,
        [keptMs, limit],
      );
      return gone.length;
    },
    ...memberReads(db),
    ...memberWrites(db),
    ...moves(db),
  };
}
