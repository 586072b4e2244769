// Who wants which run now, which processes live, and how far the sweep got (architecture §3.4). All times are the
// database's.
import type { ProjectionStore, TakenLease } from '../../ports/projection.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Db } from './db.ts';
import { deleteExpired } from './free-rows.ts';
import { refOf } from './run-ref.ts';

interface NamedRecord {
  readonly tenant_id: string;
  readonly run_id: string;
}

/** How far a watermark may be ahead of the database's clock, by which nobody made it, in ms. */
const AHEAD_MS = 60_000;

const TAKEN_COLUMNS = 'holder, expires_at_ms AS "expiresAtMs"';

/** runIds that somebody begins to watch. */
const WATCH_CHANNEL = 'openwop_watch';

/** Resolves when watches of every process are heard. */
export async function createProjectionStore(db: Db, logger: Logger): Promise<ProjectionStore> {
  const listeners = new Set<(runId: string) => void>();
  await db.listen(WATCH_CHANNEL, (runId) => {
    for (const listener of [...listeners])
      try {
        listener(runId);
      } catch (error) {
        logger.error('a listener to watches failed', { error: String(error) });
      }
  });
  return {
    ...watches(db),
    ...progress(db),
    onWatch(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function watches(db: Db): Pick<ProjectionStore, 'watch' | 'unwatch' | 'watched'> {
  return {
    async watch({ tenant, runId }, watcher, ttlMs) {
      // Of a row that was inserted alone: a watch that is renewed is no news.
      await db.query(
        `WITH watch AS (
           INSERT INTO run_watches (run_id, watcher, tenant_id, expires_at_ms)
           SELECT run_id, $2::text, tenant_id, openwop_now_ms() + $3::bigint FROM runs WHERE run_id = $1 AND tenant_id = $4
           ON CONFLICT (run_id, watcher) DO UPDATE SET expires_at_ms = excluded.expires_at_ms
           RETURNING run_id, xmax = 0 AS is_new
         )
         SELECT pg_notify('${WATCH_CHANNEL}', run_id) FROM watch WHERE is_new`,
        [runId, watcher, ttlMs, tenant],
      );
    },
    async unwatch({ tenant, runId }, watcher) {
      await db.query(
        'DELETE FROM run_watches WHERE run_id = $1 AND tenant_id = $3 AND watcher = $2',
        [runId, watcher, tenant],
      );
    },
    async watched(runs) {
      const rows = await db.query<{ run_id: string }>(
        `SELECT DISTINCT w.run_id FROM run_watches w
         JOIN unnest($1::text[], $2::text[]) AS asked(run_id, tenant_id) USING (run_id, tenant_id)
         WHERE w.expires_at_ms > openwop_now_ms()`,
        [runs.map(({ runId }) => runId), runs.map(({ tenant }) => tenant)],
      );
      return new Set(rows.map((row) => row.run_id));
    },
  };
}

function progress(db: Db): Omit<ProjectionStore, 'onWatch' | keyof ReturnType<typeof watches>> {
  return {
    async renewLease(holder, ttlMs) {
      // The same beat clears watches whose watcher died.
      await db.query(
        `WITH gone AS (${deleteExpired('run_watches')})
         INSERT INTO process_leases (holder, expires_at_ms) VALUES ($1, openwop_now_ms() + $2::bigint)
         ON CONFLICT (holder) DO UPDATE SET expires_at_ms = excluded.expires_at_ms`,
        [holder, ttlMs],
      );
    },
    async takeExpiredLease(ttlMs) {
      const [taken] = await db.query<TakenLease>(
        `UPDATE process_leases SET expires_at_ms = openwop_now_ms() + $1::bigint WHERE holder = (
           SELECT holder FROM process_leases WHERE expires_at_ms <= openwop_now_ms()
           ORDER BY expires_at_ms LIMIT 1 FOR UPDATE SKIP LOCKED
         ) RETURNING ${TAKEN_COLUMNS}`,
        [ttlMs],
      );
      return taken;
    },
    async renewTaken({ holder, expiresAtMs }, ttlMs) {
      const [renewed] = await db.query<TakenLease>(
        `UPDATE process_leases SET expires_at_ms = openwop_now_ms() + $3::bigint
         WHERE holder = $1 AND expires_at_ms = $2 RETURNING ${TAKEN_COLUMNS}`,
        [holder, expiresAtMs, ttlMs],
      );
      return renewed;
    },
    async releaseTaken({ holder, expiresAtMs }) {
      await db.query('DELETE FROM process_leases WHERE holder = $1 AND expires_at_ms = $2', [
        holder,
        expiresAtMs,
      ]);
    },
    async releaseLease(holder) {
      await db.query('DELETE FROM process_leases WHERE holder = $1', [holder]);
    },
    async openRuns(after, limit) {
      const rows = await db.query<NamedRecord>(
        'SELECT tenant_id, run_id FROM run_heads WHERE NOT closed AND run_id > $1 ORDER BY run_id LIMIT $2',
        [after, limit],
      );
      return rows.map((row) => refOf(row.tenant_id, row.run_id));
    },
    async stillOpen(runIds) {
      const rows = await db.query<NamedRecord>(
        'SELECT tenant_id, run_id FROM run_heads WHERE NOT closed AND run_id = ANY($1::text[])',
        [runIds],
      );
      return rows.map((row) => refOf(row.tenant_id, row.run_id));
    },
    async sweepWatermark() {
      const [row] = await db.query<{ watermark_ms: number }>(
        'SELECT watermark_ms FROM sweep_progress WHERE watermark_ms <= openwop_now_ms() + $1::bigint',
        [AHEAD_MS],
      );
      return row?.watermark_ms;
    },
    async setSweepWatermark(ms) {
      // Two sweepers may finish out of order; progress is never taken back, unless it is ahead of now.
      await db.query(
        `INSERT INTO sweep_progress (watermark_ms) VALUES ($1) ON CONFLICT (only_row)
         DO UPDATE SET watermark_ms = CASE WHEN sweep_progress.watermark_ms > openwop_now_ms() + $2::bigint
           THEN excluded.watermark_ms ELSE greatest(sweep_progress.watermark_ms, excluded.watermark_ms) END`,
        [ms, AHEAD_MS],
      );
    },
  };
}
