// The one transaction that expires a family (architecture §3.7). What it deletes is what the rest of the host finds runs
// by: behind its commit nothing reads them, appends to them, starts, rebuilds or archives them, in whatever process.
import type { ExpireOutcome, ExpireQuery, Kept } from '../../ports/retention.ts';
import type { RunRef } from '../../ports/runs.ts';
import type { Db, SqlValue, Transaction } from './db.ts';
import { refOf } from './run-ref.ts';

/** Longest time in ms for a family of as many runs as there may be. */
const EXPIRE_LIMIT_MS = 120_000;

/** Ids of root $1 of tenant $2 and of everything below it. */
const FAMILY = `(SELECT $1::text UNION ALL SELECT run_id FROM session_runs
  WHERE tenant_id = $2 AND correlation_id = $1 AND parent_run_id IS NOT NULL)`;

/** A fork that was noted and never accepted stands against nothing after this, in ms. */
export const FORK_NOTE_MS = 3_600_000;

export function expireFamily(db: Db, run: RunRef, query: ExpireQuery): Promise<ExpireOutcome> {
  return db.transaction(async (tx) => {
    const { tenant } = run;
    const root = await rootOf(tx, run);
    // Whoever notes a fork, or a need of content, waits here, or is seen below.
    const locked = await tx.query<{ run_id: string }>(
      `SELECT run_id FROM runs WHERE tenant_id = $2 AND run_id IN ${FAMILY} ORDER BY run_id FOR UPDATE`,
      [root, tenant],
    );
    if (!locked.some(({ run_id }) => run_id === run.runId)) return { kind: 'none' };
    await tx.query(
      `SELECT 1 FROM run_heads WHERE tenant_id = $2 AND run_id IN ${FAMILY} ORDER BY run_id FOR UPDATE`,
      [root, tenant],
    );
    const runIds = locked.map(({ run_id }) => run_id);
    const why = await whyKept(tx, [root, tenant, query.keptMs, runIds.length]);
    if (why) return { kind: 'kept', why };
    await leaveEntries(tx, [runIds, tenant, query.restMs]);
    await leaveSessions(tx, runIds, tenant);
    for (const table of FOUND_BY)
      await tx.query(`DELETE FROM ${table} WHERE run_id = ANY($1::text[]) AND tenant_id = $2`, [
        runIds,
        tenant,
      ]);
    await tx.query(
      'DELETE FROM run_families WHERE root_run_id = ANY($1::text[]) AND tenant_id = $2',
      [runIds, tenant],
    );
    return { kind: 'expired', runs: runIds.map((runId) => refOf(tenant, runId)) };
  }, EXPIRE_LIMIT_MS);
}

/** A run without a parent is a root; of others the header names it. */
async function rootOf(tx: Transaction, { tenant, runId }: RunRef): Promise<string> {
  const [place] = await tx.query<{ root: string }>(
    `SELECT correlation_id AS root FROM session_runs
     WHERE run_id = $1 AND tenant_id = $2 AND parent_run_id IS NOT NULL`,
    [runId, tenant],
  );
  return place?.root ?? runId;
}

async function whyKept(tx: Transaction, values: readonly SqlValue[]): Promise<Kept | undefined> {
  const [found] = await tx.query<Record<Kept, boolean>>(
    `SELECT
       -- A child that was accepted, and ended, since the rows were locked counts as one that has not.
       coalesce(bool_or(h.closed IS NOT TRUE OR e.ended_at_ms IS NULL), true) OR count(*) <> $4::bigint AS open,
       coalesce(max(e.ended_at_ms) > openwop_now_ms() - $3::bigint, true) AS young,
       EXISTS (SELECT FROM run_holds WHERE tenant_id = $2 AND run_id IN ${FAMILY}) AS held,
       EXISTS (
         SELECT FROM run_forks f
         LEFT JOIN runs r ON r.run_id = f.run_id LEFT JOIN run_heads h ON h.run_id = f.run_id
         WHERE f.tenant_id = $2 AND f.run_id NOT IN ${FAMILY} AND f.run_id IN (
             SELECT run_id FROM run_forks WHERE source_run_id IN ${FAMILY}
             UNION ALL SELECT run_id FROM fork_reads WHERE source_run_id IN ${FAMILY})
           AND CASE WHEN r.run_id IS NULL THEN f.noted_at_ms > openwop_now_ms() - ${FORK_NOTE_MS}
               ELSE h.closed IS NOT TRUE END
       ) AS forked
     FROM runs r LEFT JOIN run_heads h ON h.run_id = r.run_id LEFT JOIN ended_runs e ON e.run_id = r.run_id
     WHERE r.tenant_id = $2 AND r.run_id IN ${FAMILY}`,
    values,
  );
  const reasons = ['open', 'young', 'held', 'forked'] as const;
  return reasons.find((why) => found?.[why] !== false);
}

/** What is left to say of each run, and what of it is to be deleted: its executions, and its archive, however old. */
async function leaveEntries(tx: Transaction, values: readonly SqlValue[]): Promise<void> {
  const [runIds = [], tenant = ''] = values;
  await tx.query(
    `INSERT INTO expired_runs (tenant_id, run_id, workflow_id, session_id, executions, ended_at_ms, expired_at_ms, clean_at_ms)
     SELECT r.tenant_id, r.run_id, r.workflow_id, coalesce(s.session_id, r.run_id),
       coalesce((
         SELECT json_agg(DISTINCT x.id)::text FROM (
           SELECT temporal_run_id AS id FROM run_segments g WHERE g.run_id = r.run_id
           UNION ALL SELECT h.temporal_run_id UNION ALL SELECT r.temporal_run_id
         ) x WHERE x.id <> ''), '[]'),
       e.ended_at_ms, openwop_now_ms(), openwop_now_ms() + $3::bigint
     FROM runs r JOIN run_heads h ON h.run_id = r.run_id JOIN ended_runs e ON e.run_id = r.run_id
     LEFT JOIN session_runs s ON s.run_id = r.run_id
     WHERE r.run_id = ANY($1::text[]) AND r.tenant_id = $2`,
    values,
  );
  await tx.query(
    `INSERT INTO content_refs (run_id, tenant_id, hash, of_archive)
     SELECT DISTINCT run_id, tenant_id, archive, true FROM run_segments
     WHERE run_id = ANY($1::text[]) AND tenant_id = $2 AND archive LIKE 'sha256:%'
     ON CONFLICT (run_id, tenant_id, hash) DO UPDATE SET of_archive = true`,
    [runIds, tenant],
  );
}

/**
 * A session without runs goes with its last one, and a tag with the last run that gave it; the title stays. Its row is locked
 * first: a run that joins it is seen, or waits.
 */
async function leaveSessions(
  tx: Transaction,
  runIds: readonly string[],
  tenant: string,
): Promise<void> {
  const sessions = await tx.query<{ session_id: string }>(
    `SELECT session_id FROM sessions WHERE tenant_id = $2 AND session_id IN (
       SELECT session_id FROM session_runs WHERE run_id = ANY($1::text[]) AND tenant_id = $2)
     ORDER BY session_id FOR UPDATE`,
    [runIds, tenant],
  );
  await tx.query('DELETE FROM session_runs WHERE run_id = ANY($1::text[]) AND tenant_id = $2', [
    runIds,
    tenant,
  ]);
  await tx.query(
    `DELETE FROM sessions s WHERE tenant_id = $2 AND session_id = ANY($1::text[])
       AND NOT EXISTS (SELECT FROM session_runs r WHERE r.tenant_id = s.tenant_id AND r.session_id = s.session_id)`,
    [sessions.map(({ session_id }) => session_id), tenant],
  );
  await leaveTags(tx, runIds, tenant);
}

/** A session has few tags, and each is looked for by an index: it costs the same, however many runs a session has. */
async function leaveTags(
  tx: Transaction,
  runIds: readonly string[],
  tenant: string,
): Promise<void> {
  const given = await tx.query<{ session_id: string }>(
    `WITH given AS (
       DELETE FROM session_tags WHERE run_id = ANY($1::text[]) AND tenant_id = $2 RETURNING session_id
     )
     SELECT DISTINCT session_id FROM given`,
    [runIds, tenant],
  );
  if (given.length === 0) return;
  await tx.query(
    `UPDATE sessions s SET tags = (
       SELECT coalesce(array_agg(tag ORDER BY at), '{}') FROM unnest(s.tags) WITH ORDINALITY AS t (tag, at)
       WHERE EXISTS (SELECT FROM session_tags g WHERE g.tenant_id = s.tenant_id AND g.session_id = s.session_id
         AND g.tag_digest = openwop_tag_digest(tag)))
     WHERE tenant_id = $2 AND session_id = ANY($1::text[])`,
    [given.map(({ session_id }) => session_id), tenant],
  );
}

/** What runs are found by; the registry last. */
export const FOUND_BY = [
  'run_segments',
  'run_asks',
  'run_ends',
  'run_forks',
  'fork_reads',
  'run_holds',
  'run_watches',
  'subject_runs',
  'erased_runs',
  'ended_runs',
  'run_heads',
  'runs',
];
