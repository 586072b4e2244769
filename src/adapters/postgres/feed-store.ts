// The feed's port on Postgres (architecture §3.6). Its rows are written by a trigger in the transaction of each append
// (migrations/001-schema.sql says how readers know what may still commit).
import { HostError } from '../../rules/errors.ts';
import type {
  FedRow,
  FeedPage,
  FeedPlace,
  FeedQuery,
  FeedRow,
  FeedStore,
} from '../../ports/feed.ts';
import type { Db, SealedDb, SqlValue } from './db.ts';
import { EVENT_COLUMNS, eachRowOf, type EventRecord } from './rows.ts';
import type { Seals } from './seals.ts';
import { refOf } from './run-ref.ts';

interface FeedRecord {
  readonly position: number;
  readonly session_id: string;
  readonly run_id: string;
  readonly sequence: number;
}

/** A row with its place in the feed. */
export type FedRecord = EventRecord & { readonly position: number };

/** Columns of run_events as `e`. */
export const OF_EVENT = EVENT_COLUMNS.split(', ')
  .map((column) => `e.${column}`)
  .join(', ');

/** Part of a statement: the run of `e` has not expired. */
export const IS_THERE = 'EXISTS (SELECT FROM runs r WHERE r.run_id = e.run_id)';

export async function fedRows(
  seals: Seals,
  tenant: string,
  records: readonly FedRecord[],
): Promise<readonly FedRow[]> {
  const rows = await eachRowOf(seals, records);
  return rows.map((row, at) => ({
    position: records[at]?.position ?? 0,
    run: refOf(tenant, row.runId),
    row,
  }));
}

async function endOf(db: Db): Promise<{ given: number; endsAt: number }> {
  const [end] = await db.query<{ given: number; ends_at: number }>(
    'SELECT given, ends_at FROM openwop_feed_end()',
  );
  return { given: end?.given ?? 0, endsAt: end?.ends_at ?? 0 };
}

/** The end for who reads after a position. Throws HostError service_unavailable where this server never gave that one. */
async function endAfter(db: Db, after: number): Promise<{ given: number; endsAt: number }> {
  const end = await endOf(db);
  if (end.given >= after) return end;
  const reason = 'The database has lost the position after which the feed is read.';
  throw new HostError('service_unavailable', { reason });
}

/**
 * Two statements, in this order: the end is what no row that the second does not see can lie below. `select` takes the
 * tenant ($1), the places between (`> $2`, `<= $3`), the limit ($4) and the session ($5) where there is one.
 */
async function readTo<Stored>(
  db: Db,
  { tenant, sessionId, after, limit }: FeedQuery,
  select: string,
): Promise<{ readonly rows: readonly Stored[]; readonly heldBack: boolean }> {
  const { given, endsAt } = await endAfter(db, after);
  const heldBack = endsAt < given;
  if (endsAt <= after) return { rows: [], heldBack };
  const values: SqlValue[] = [tenant, after, endsAt, limit];
  if (sessionId !== undefined) values.push(sessionId);
  const rows = await db.query<Stored>(select, values);
  return { rows, heldBack: heldBack && rows.length < limit };
}

async function read(db: Db, query: FeedQuery): Promise<FeedPage> {
  const ofSession = query.sessionId === undefined ? '' : 'AND session_id = $5';
  const { rows, heldBack } = await readTo<FeedRecord>(
    db,
    query,
    `SELECT position, session_id, run_id, sequence FROM run_feed
      WHERE tenant_id = $1 AND position > $2 AND position <= $3 ${ofSession} ORDER BY position LIMIT $4`,
  );
  const fed = rows.map((record): FeedRow => ({
    position: record.position,
    sessionId: record.session_id,
    run: refOf(query.tenant, record.run_id),
    sequence: record.sequence,
  }));
  return { rows: fed, heldBack };
}

async function events(db: SealedDb, query: FeedQuery & { readonly sessionId: string }) {
  const { rows, heldBack } = await readTo<FedRecord>(
    db,
    query,
    `SELECT f.position, ${OF_EVENT}
      FROM run_feed f JOIN run_events e ON e.run_id = f.run_id AND e.sequence = f.sequence
      WHERE f.tenant_id = $1 AND f.position > $2 AND f.position <= $3 AND f.session_id = $5 AND ${IS_THERE}
      ORDER BY f.position LIMIT $4`,
  );
  return { rows: await fedRows(db.seals, query.tenant, rows), heldBack };
}

interface TypedRecord extends EventRecord {
  readonly read_to: number | null;
  /** Null where none of the rows read is of the types. */
  readonly position: number | null;
}

async function eventsOf(
  db: SealedDb,
  query: FeedQuery & { readonly sessionId: string; readonly types: readonly string[] },
): Promise<{ readonly rows: readonly FedRow[]; readonly readTo?: number }> {
  const { tenant, sessionId, after, limit, types } = query;
  const { endsAt } = await endAfter(db, after);
  if (endsAt <= after) return { rows: [] };
  const records = await db.query<TypedRecord>(
    `WITH page AS MATERIALIZED (
       SELECT position, run_id, sequence FROM run_feed
       WHERE tenant_id = $1 AND position > $2 AND position <= $3 AND session_id = $5 ORDER BY position LIMIT $4
     )
     SELECT ended.read_to, of_types.* FROM (SELECT max(position) AS read_to FROM page) ended
     LEFT JOIN (
       SELECT page.position, ${OF_EVENT} FROM page
       JOIN run_events e ON e.run_id = page.run_id AND e.sequence = page.sequence
       WHERE e.type = ANY($6::text[]) AND ${IS_THERE}
     ) of_types ON true
     ORDER BY of_types.position`,
    [tenant, after, endsAt, limit, sessionId, types],
  );
  const readTo = records[0]?.read_to ?? undefined;
  const found = records.flatMap((record) =>
    record.position === null ? [] : [{ ...record, position: record.position }],
  );
  return {
    rows: await fedRows(db.seals, tenant, found),
    ...(readTo === undefined ? {} : { readTo }),
  };
}

/** `stays`: of the event's run, it or the last before those that may have moved. */
async function resumeAfter(
  db: Db,
  { tenant, sessionId }: { readonly tenant: string; readonly sessionId: string },
  eventId: string,
): Promise<FeedPlace | 'first' | undefined> {
  const [found] = await db.query<{ position: number | null; run_id: string; event_id: string }>(
    `SELECT place.position, e.run_id, stays.event_id
     FROM run_events e JOIN run_feed f ON f.run_id = e.run_id AND f.sequence = e.sequence
     LEFT JOIN runs r ON r.run_id = e.run_id
     LEFT JOIN run_events stays ON stays.run_id = e.run_id AND stays.sequence = least(e.sequence, r.retold_from - 1)
     LEFT JOIN run_feed place ON place.run_id = stays.run_id AND place.sequence = stays.sequence
     WHERE e.event_id = $1 AND f.tenant_id = $2 AND f.session_id = $3`,
    [eventId, tenant, sessionId],
  );
  if (!found) return undefined;
  const { position, run_id: runId, event_id: stays } = found;
  return position === null ? 'first' : { position, runId, eventId: stays };
}

export function createFeedStore(db: SealedDb): FeedStore {
  return {
    read: (query) => read(db, query),
    events: (query) => events(db, query),
    eventsOf: (query) => eventsOf(db, query),
    async positionOf(tenant, sessionId, eventId) {
      const [found] = await db.query<{ position: number }>(
        `SELECT f.position FROM run_events e JOIN run_feed f ON f.run_id = e.run_id AND f.sequence = e.sequence
         WHERE e.event_id = $1 AND f.tenant_id = $2 AND f.session_id = $3`,
        [eventId, tenant, sessionId],
      );
      return found?.position;
    },
    resumeAfter: (tenant, sessionId, eventId) => resumeAfter(db, { tenant, sessionId }, eventId),
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
