// The feed's port on Postgres (architecture §3.6). Its rows are written by a trigger in the transaction of each append
// (migration 008, which says how readers know what may still commit).
import type { FeedPage, FeedQuery, FeedStore } from '../../ports/feed.ts';
import type { Db, SqlValue } from './db.ts';
import { refOf } from './run-ref.ts';

interface FeedRecord {
  readonly position: number;
  readonly session_id: string;
  readonly run_id: string;
  readonly sequence: number;
}

async function endOf(db: Db): Promise<{ given: number; endsAt: number }> {
  const [end] = await db.query<{ given: number; ends_at: number }>(
    'SELECT given, ends_at FROM openwop_feed_end()',
  );
  return { given: end?.given ?? 0, endsAt: end?.ends_at ?? 0 };
}

/** Two statements, in this order: the end is what no row that the second does not see can lie below. */
async function read(db: Db, { tenant, sessionId, after, limit }: FeedQuery): Promise<FeedPage> {
  const { given, endsAt } = await endOf(db);
  const heldBack = endsAt < given;
  if (endsAt <= after) return { rows: [], heldBack };
  const values: SqlValue[] = [tenant, after, endsAt, limit];
  if (sessionId !== undefined) values.push(sessionId);
  const records = await db.query<FeedRecord>(
    `SELECT position, session_id, run_id, sequence FROM run_feed
     WHERE tenant_id = $1 AND position > $2 AND position <= $3 ${sessionId === undefined ? '' : 'AND session_id = $5'}
     ORDER BY position LIMIT $4`,
    values,
  );
  const rows = records.map((record) => ({
    position: record.position,
    sessionId: record.session_id,
    run: refOf(tenant, record.run_id),
    sequence: record.sequence,
  }));
  return { rows, heldBack: heldBack && rows.length < limit };
}

export function createFeedStore(db: Db): FeedStore {
  return {
    read: (query) => read(db, query),
    end: async () => (await endOf(db)).endsAt,
    async cursor(tenant, consumer) {
      const [row] = await db.query<{ position: number }>(
        'SELECT position FROM feed_cursors WHERE tenant_id = $1 AND consumer = $2',
        [tenant, consumer],
      );
      return row?.position ?? 0;
    },
    async advance(tenant, consumer, position) {
      const [row] = await db.query<{ position: number }>(
        `INSERT INTO feed_cursors (tenant_id, consumer, position) VALUES ($1, $2, $3)
         ON CONFLICT (tenant_id, consumer)
         DO UPDATE SET position = greatest(feed_cursors.position, excluded.position)
         RETURNING position`,
        [tenant, consumer, position],
      );
      return row?.position ?? position;
    },
  };
}
