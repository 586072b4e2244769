// What is deleted of a run that has expired (architecture §3.7): bounded pieces, each of which may be done again. Nothing
// of it is found any more meanwhile.
import { IDEMPOTENCY_RETENTION_SECONDS } from '../../rules/limits.ts';
import type { RunRef } from '../../ports/runs.ts';
import { endNeeds } from './content-refs.ts';
import type { Db, SqlValue } from './db.ts';

/** Of these a run has few. */
export const FEW_ROWS = ['run_blocks', 'effects', 'page_links', 'page_sessions'];

/**
 * At most `limit` rows of what a run has many of. Events before their places in the feed: whoever fills the feed in finds
 * none to be placed. True: nothing is left.
 */
export async function cleanRun(db: Db, run: RunRef, limit: number): Promise<boolean> {
  const values = [run.runId, run.tenant, limit];
  const events = await removed(
    db,
    `DELETE FROM run_events WHERE run_id = $1 AND tenant_id = $2 AND sequence IN (
       SELECT sequence FROM run_events WHERE run_id = $1 AND tenant_id = $2 ORDER BY sequence LIMIT $3)
     RETURNING 1`,
    values,
  );
  if (events >= limit) return false;
  const places = await removed(
    db,
    `WITH gone AS (
       DELETE FROM run_feed WHERE run_id = $1 AND tenant_id = $2 AND sequence IN (
         SELECT sequence FROM run_feed WHERE run_id = $1 AND tenant_id = $2 ORDER BY sequence LIMIT $3)
       RETURNING tenant_id, session_id, position
     ), said AS (
       DELETE FROM session_messages m USING gone g
       WHERE m.tenant_id = g.tenant_id AND m.session_id = g.session_id AND m.position = g.position
     )
     SELECT 1 FROM gone`,
    values,
  );
  if (places >= limit) return false;
  await reindex(db, run);
  for (const table of FEW_ROWS)
    await db.query(`DELETE FROM ${table} WHERE run_id = $1 AND tenant_id = $2`, [
      run.runId,
      run.tenant,
    ]);
  await endKeys(db, run);
  return endNeeds(db, run, limit);
}

/** Its key served its time long ago, but where the run was made to expire: the table is read through for no other. */
async function endKeys(db: Db, { tenant, runId }: RunRef): Promise<void> {
  await db.query(
    `DELETE FROM idempotency_records WHERE tenant_id = $2 AND run_id = $1 AND (
       SELECT ended_at_ms > expired_at_ms - $3::bigint FROM expired_runs WHERE run_id = $1 AND tenant_id = $2)`,
    [runId, tenant, 2 * IDEMPOTENCY_RETENTION_SECONDS * 1000],
  );
}

async function removed(db: Db, statement: string, values: readonly SqlValue[]): Promise<number> {
  return (await db.query(statement, values)).length;
}

/**
 * Of a message that several runs of a session say the index has the first: that one may be gone. The next reader goes
 * through what is left of the session, once.
 */
async function reindex(db: Db, { tenant, runId }: RunRef): Promise<void> {
  await db.query(
    `DELETE FROM feed_cursors WHERE tenant_id = $2 AND consumer = (
       SELECT 'conversation:' || session_id FROM expired_runs WHERE run_id = $1 AND tenant_id = $2)`,
    [runId, tenant],
  );
}
