// The retention port (architecture §3.7): what is due, holds, forks that read, and entries of expired runs.
import type {
  EndedRun,
  ExpiredRun,
  RetentionStore,
  RetentionOverview,
} from '../../ports/retention.ts';
import type { RunRef } from '../../ports/runs.ts';
import { toldOr } from '../../rules/unreadable.ts';
import { endNeeds, shareNeeds } from './content-refs.ts';
import { eachByItself, type Db } from './db.ts';
import { cleanRun } from './retention-clean.ts';
import { expireFamily, FORK_NOTE_MS } from './retention-expire.ts';
import { refOf } from './run-ref.ts';
import { parsedAt, timeAt } from './seals.ts';

/** A claim that comes again is held twice as long each time, up to 2 to this power: no count, however damaged, fails the others. */
const MAX_DOUBLINGS = 5;

interface Named {
  readonly tenant_id: string;
  readonly run_id: string;
}

export function createRetentionStore(db: Db): RetentionStore {
  return {
    async noteFork(source, forkRunId, goesBy = []) {
      if (!(await noteReads(db, [source, ...goesBy], forkRunId))) return false;
      await shareNeeds(db, source, refOf(source.tenant, forkRunId));
      return true;
    },
    async due(keptMs, limit, leaseMs) {
      const rows = await db.query<Named>(
        `UPDATE ended_runs e SET look_at_ms = openwop_now_ms() + $3::bigint
         FROM (
           SELECT run_id FROM ended_runs
           WHERE ended_at_ms <= openwop_now_ms() - $1::bigint AND look_at_ms <= openwop_now_ms()
             -- A family is looked at once, however many runs it has: by its root.
             AND NOT EXISTS (SELECT FROM session_runs s WHERE s.run_id = ended_runs.run_id AND s.parent_run_id IS NOT NULL)
           ORDER BY ended_at_ms, run_id LIMIT $2 FOR UPDATE SKIP LOCKED
         ) free
         WHERE e.run_id = free.run_id RETURNING e.tenant_id, e.run_id`,
        [keptMs, limit, leaseMs],
      );
      return rows.map(({ tenant_id, run_id }) => refOf(tenant_id, run_id));
    },
    expire: (run, query) => expireFamily(db, run, query),
    async lookAgain({ tenant, runId }, afterMs) {
      await db.query(
        `UPDATE ended_runs SET look_at_ms = openwop_now_ms() + $3::bigint WHERE run_id = $1 AND tenant_id = $2`,
        [runId, tenant, afterMs],
      );
    },
    async claimUnclean(limit, leaseMs) {
      const rows = await db.query<Named>(
        `UPDATE expired_runs e
         SET claims = doubled + 1, clean_at_ms = openwop_now_ms() + $2::bigint * (2 ^ doubled)::bigint
         FROM (
           SELECT run_id, greatest(0, least(claims, $3)) AS doubled FROM expired_runs WHERE cleaned_at_ms IS NULL AND clean_at_ms <= openwop_now_ms()
           ORDER BY clean_at_ms LIMIT $1 FOR UPDATE SKIP LOCKED
         ) free
         WHERE e.run_id = free.run_id RETURNING e.tenant_id, e.run_id`,
        [limit, leaseMs, MAX_DOUBLINGS],
      );
      return rows.map(({ tenant_id, run_id }) => refOf(tenant_id, run_id));
    },
    async executionsOf({ tenant, runId }) {
      const [entry] = await db.query<{ executions: string }>(
        'SELECT executions FROM expired_runs WHERE run_id = $1 AND tenant_id = $2',
        [runId, tenant],
      );
      return entry ? parsedAt<string[]>(`executions ${runId}`, entry.executions, 'array') : [];
    },
    clean: (run, limit) => cleanRun(db, run, limit),
    async markClean({ tenant, runId }) {
      await db.query(
        `UPDATE expired_runs SET cleaned_at_ms = openwop_now_ms(), executions = '[]', session_id = ${digestOf('session_id')}
         WHERE run_id = $1 AND tenant_id = $2 AND cleaned_at_ms IS NULL`,
        [runId, tenant],
      );
    },
    forget: (keptMs, limit) => forget(db, keptMs, limit),
    ...entries(db),
    ...holds(db),
    overview: (tenant, limit) => overview(db, tenant, limit),
  };
}

/** One statement, which waits for who lets one of them expire: the first is the fork's source. */
async function noteReads(db: Db, sources: readonly RunRef[], forkRunId: string): Promise<boolean> {
  const [source] = sources;
  const noted = await db.query(
    `WITH asked AS (
       SELECT DISTINCT * FROM unnest($2::text[], $3::text[]) AS x(run_id, tenant_id)
     ), sources AS MATERIALIZED (
       SELECT run_id FROM runs WHERE (run_id, tenant_id) IN (SELECT run_id, tenant_id FROM asked)
       ORDER BY run_id FOR KEY SHARE
     ), whole AS (
       SELECT 1 WHERE (SELECT count(*) FROM sources) = (SELECT count(*) FROM asked)
         AND NOT EXISTS (SELECT FROM expired_runs WHERE run_id = $1)
     ), reads AS (
       INSERT INTO fork_reads (run_id, tenant_id, source_run_id)
       SELECT $1, $5, sources.run_id FROM sources, whole WHERE sources.run_id <> $4 ON CONFLICT DO NOTHING
     )
     INSERT INTO run_forks (run_id, tenant_id, source_run_id, noted_at_ms)
     SELECT $1, $5, $4, openwop_now_ms() FROM whole
     ON CONFLICT (run_id) DO UPDATE SET noted_at_ms = excluded.noted_at_ms RETURNING 1`,
    [
      forkRunId,
      sources.map(({ runId }) => runId),
      sources.map(({ tenant }) => tenant),
      ...[source?.runId ?? '', source?.tenant ?? ''],
    ],
  );
  return noted.length > 0;
}

function entries(db: Db): Pick<RetentionStore, 'expiredAt' | 'hasExpired'> {
  return {
    async expiredAt(runId) {
      const [entry] = await db.query<{ expired_at_ms: number }>(
        'SELECT expired_at_ms FROM expired_runs WHERE run_id = $1',
        [runId],
      );
      return entry?.expired_at_ms;
    },
    async hasExpired(tenant, sessionId) {
      const found = await db.query(
        `SELECT 1 FROM expired_runs WHERE tenant_id = $1 AND session_id IN ($2, ${digestOf('$2')}) LIMIT 1`,
        [tenant, sessionId],
      );
      return found.length > 0;
    },
  };
}

function holds(db: Db): Pick<RetentionStore, 'hold' | 'release' | 'holdOf'> {
  return {
    async hold({ tenant, runId }, reason) {
      const held = await db.query(
        `INSERT INTO run_holds (run_id, tenant_id, reason, held_at_ms)
         SELECT run_id, tenant_id, $3, openwop_now_ms() FROM runs WHERE run_id = $1 AND tenant_id = $2 FOR KEY SHARE
         ON CONFLICT (run_id) DO UPDATE SET reason = run_holds.reason RETURNING 1`,
        [runId, tenant, reason],
      );
      return held.length > 0;
    },
    async release({ tenant, runId }) {
      await db.query('DELETE FROM run_holds WHERE run_id = $1 AND tenant_id = $2', [runId, tenant]);
    },
    async holdOf({ tenant, runId }) {
      const [hold] = await db.query<{ reason: string; held_at_ms: number }>(
        'SELECT reason, held_at_ms FROM run_holds WHERE run_id = $1 AND tenant_id = $2',
        [runId, tenant],
      );
      return hold && { reason: hold.reason, heldAtMs: hold.held_at_ms };
    },
  };
}

async function forget(db: Db, keptMs: number, limit: number): Promise<number> {
  const entries = await db.query(
    `DELETE FROM expired_runs WHERE run_id IN (
       SELECT run_id FROM expired_runs
       WHERE expired_at_ms <= openwop_now_ms() - $1::bigint AND cleaned_at_ms IS NOT NULL
       ORDER BY expired_at_ms LIMIT $2 FOR UPDATE SKIP LOCKED)
     RETURNING 1`,
    [keptMs, limit],
  );
  const notes = await db.query<Named>(
    `SELECT run_id, tenant_id FROM run_forks f WHERE noted_at_ms <= openwop_now_ms() - $1::bigint
       AND NOT EXISTS (SELECT FROM runs r WHERE r.run_id = f.run_id) ORDER BY noted_at_ms LIMIT $2`,
    [FORK_NOTE_MS, limit],
  );
  const [failed] = await eachByItself(db, notes, ({ tenant_id, run_id }) =>
    forgetNote(db, refOf(tenant_id, run_id), limit),
  );
  if (failed) throw failed.error;
  return entries.length + notes.length;
}

/** A try to make the fork that comes after all waits, and notes it anew. What it would have needed goes with the note. */
function forgetNote(db: Db, fork: RunRef, limit: number): Promise<void> {
  const { tenant, runId } = fork;
  return db.transaction(async (tx) => {
    const locked = await tx.query(
      'SELECT 1 FROM run_forks WHERE run_id = $1 AND tenant_id = $2 FOR UPDATE SKIP LOCKED',
      [runId, tenant],
    );
    if (locked.length === 0) return;
    // A statement of its own: it sees whatever was noted, or accepted, before the note was ours.
    const [late] = await tx.query(
      `SELECT 1 FROM run_forks f WHERE run_id = $1
         AND (noted_at_ms > openwop_now_ms() - ${FORK_NOTE_MS} OR EXISTS (SELECT FROM runs r WHERE r.run_id = f.run_id))`,
      [runId],
    );
    if (late) return;
    while (!(await endNeeds(tx, fork, limit)));
    await tx.query('DELETE FROM fork_reads WHERE run_id = $1', [runId]);
    await tx.query('DELETE FROM run_forks WHERE run_id = $1', [runId]);
  });
}

/** As much of a session's id as is kept of a run of which nothing else is. */
function digestOf(sessionId: string): string {
  return `'sha256:' || encode(sha256(convert_to(${sessionId}, 'UTF8')), 'hex')`;
}

interface EndedRecord {
  readonly run_id: string;
  readonly workflow_id: string;
  readonly ended_at_ms: number;
  readonly is_held: boolean;
}

interface ExpiredRecord {
  readonly run_id: string;
  readonly workflow_id: string;
  readonly expired_at_ms: number;
  readonly is_clean: boolean;
}

async function overview(db: Db, tenant: string, limit: number): Promise<RetentionOverview> {
  const next = await db.query<EndedRecord>(
    `SELECT e.run_id, r.workflow_id, e.ended_at_ms, EXISTS (SELECT FROM run_holds h WHERE h.run_id = e.run_id) AS is_held
     FROM ended_runs e JOIN runs r ON r.run_id = e.run_id
     WHERE e.tenant_id = $1 ORDER BY e.ended_at_ms, e.run_id LIMIT $2`,
    [tenant, limit],
  );
  const expired = await db.query<ExpiredRecord>(
    `SELECT run_id, workflow_id, expired_at_ms, cleaned_at_ms IS NOT NULL AS is_clean FROM expired_runs
     WHERE tenant_id = $1 ORDER BY expired_at_ms DESC, run_id DESC LIMIT $2`,
    [tenant, limit],
  );
  const [counts] = await db.query<{ expired: number; held: number }>(
    `SELECT (SELECT count(*) FROM expired_runs WHERE tenant_id = $1) AS expired,
            (SELECT count(*) FROM run_holds WHERE tenant_id = $1) AS held`,
    [tenant],
  );
  return {
    next: next.map((record): EndedRun => ({
      runId: record.run_id,
      workflowId: record.workflow_id,
      ...toldOr({ endedAtMs: 0 }, () => ({
        endedAtMs: timeAt(`end of ${record.run_id}`, record.ended_at_ms),
      })),
      isHeld: record.is_held,
    })),
    expired: expired.map((record): ExpiredRun => ({
      runId: record.run_id,
      workflowId: record.workflow_id,
      ...toldOr({ expiredAtMs: 0 }, () => ({
        expiredAtMs: timeAt(`expiry of ${record.run_id}`, record.expired_at_ms),
      })),
      isClean: record.is_clean,
    })),
    expiredCount: counts?.expired ?? 0,
    heldCount: counts?.held ?? 0,
  };
}
