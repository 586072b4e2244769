// Sessions on Postgres (migrations/001-schema.sql says how they are kept): read by place, as lists of runs are.
import { sha256Hex } from '../../rules/ids.ts';
import type { RunStatus } from '../../rules/status.ts';
import { toldOr } from '../../rules/unreadable.ts';
import type { NewRun } from '../../ports/runs.ts';
import type {
  NotedRow,
  PageQuery,
  SaidAt,
  SessionRow,
  SessionRun,
  SessionStore,
} from '../../ports/sessions.ts';
import type { Db, SealedDb, SqlValue } from './db.ts';
import { fedRows, IS_THERE, OF_EVENT, type FedRecord } from './feed-store.ts';
import { behind, digitsOf, nextCursor } from './list-cursor.ts';
import { createdOf, tagsOf } from './run-lists.ts';
import {
  atRest,
  damagedAt,
  parsedAt,
  PLACES,
  timeAt,
  type Opener,
  type Seal,
  type Seals,
} from './seals.ts';

interface SessionRecord {
  readonly session_id: string;
  readonly title: string | null;
  readonly tags: string;
  readonly created_at_ms: number;
  readonly last_activity_ms: number;
}

interface PlacedSession extends SessionRecord {
  readonly place: string;
}

interface RunRecord {
  readonly run_id: string;
  readonly workflow_id: string;
  readonly tags: string;
  readonly created_at_ms: number;
  readonly status: string | null;
  readonly parent_run_id: string | null;
  readonly causation_id: string | null;
  readonly place: string;
}

/** Puts an accepted run (sessionValues, from `$first` on) into its session where the CTE `claim` has a row. */
export function joinSession(first: number): string {
  const [run, tenant, session, created, parent, node, root, call, title, tags, key, asked, left] =
    Array.from({ length: 13 }, (_, index) => `$${first + index}`);
  return `session AS (
    SELECT openwop_join_session(ROW(${run}::text, ${tenant}::text, ${session}::text, ${created}::bigint, ${parent}::text,
      ${node}::text, ${root}::text, ${call}::text, ${left}::boolean)::session_runs, ${title}::text, ${tags}::text[], ${key}::text,
      ${asked}::boolean) FROM claim
  )`;
}

export function sessionValues(
  { runId, tenant, input, createdAtMs, sessionTitle, subjectKey }: NewRun,
  seal: Seal | undefined,
): SqlValue[] {
  const { sessionId, parentRunId, parentNodeId, correlationId, causationId, isDetached } =
    input.header;
  const stored = (text: string): string =>
    atRest(seal, { place: PLACES.ofSession(sessionId), json: JSON.stringify(text) });
  return [
    ...[runId, tenant, sessionId, createdAtMs],
    ...[parentRunId ?? null, storable(parentNodeId) ?? null, correlationId, causationId ?? null],
    sessionTitle === undefined ? null : stored(sessionTitle),
    (input.tags ?? []).map(stored),
    subjectKey ?? null,
    ...[parentRunId === undefined && input.fork === undefined, isDetached === true],
  ];
}

/** No column can hold a NUL. */
function storable(text: string | undefined): string | undefined {
  return text?.replaceAll('\0', '');
}

async function sessionsOf(seals: Seals, records: readonly SessionRecord[]): Promise<SessionRow[]> {
  // An array of SQL may hold no texts, or arrays: sessionOf names them.
  const read = records.map((record) => ({ record, tags: JSON.parse(record.tags) as unknown[] }));
  const texts = read.flatMap(({ record, tags }) => [record.title, ...tags]);
  const open = await seals.opener(texts.filter((text) => typeof text === 'string'));
  return read.map(({ record, tags }) => sessionOf(record, tags, open));
}

/** A title, or a tag, of a run that was erased is none any more. */
function sessionOf(record: SessionRecord, tags: readonly unknown[], open: Opener): SessionRow {
  const place = PLACES.ofSession(record.session_id);
  const shown = (text: unknown): string[] => {
    if (typeof text !== 'string') throw damagedAt(place);
    const opened = open(place, text);
    return opened.erasedAtMs === undefined ? [parsedAt(place, opened.text, 'string')] : [];
  };
  // Runs of several keys, or of none, may have given them: each is read by itself.
  const each = [record.title, ...tags].map((text) =>
    toldOr<{ readonly texts: readonly string[] }>({ texts: [] }, () => ({
      texts: text === null ? [] : shown(text),
    })),
  );
  const times = toldOr({ createdAtMs: 0, lastActivityMs: 0 }, () => ({
    createdAtMs: timeAt(place, record.created_at_ms),
    lastActivityMs: timeAt(place, record.last_activity_ms),
  }));
  const [{ texts: [title] = [] } = {}, ...shownTags] = each;
  const unreadable = [...each, times].find((one) => one.unreadable)?.unreadable;
  return {
    sessionId: record.session_id,
    ...(title === undefined ? {} : { title }),
    tags: shownTags.flatMap(({ texts }) => texts),
    ...times,
    ...(unreadable ? { unreadable } : {}),
  };
}

async function runsOf(seals: Seals, records: readonly RunRecord[]): Promise<SessionRun[]> {
  const open = await seals.opener(records.map(({ tags }) => tags));
  return records.map((record) => runOf(record, open));
}

function runOf(record: RunRecord, open: Opener): SessionRun {
  return {
    runId: record.run_id,
    workflowId: record.workflow_id,
    status: (record.status ?? 'pending') as RunStatus,
    ...createdOf(record),
    ...tagsOf(record, open),
    ...(record.parent_run_id === null ? {} : { parentRunId: record.parent_run_id }),
    ...(record.causation_id === null ? {} : { causationId: record.causation_id }),
  };
}

const SESSION_COLUMNS =
  'session_id, title, array_to_json(tags)::text AS tags, created_at_ms, last_activity_ms';

/** The forks of a cohort are one session, which has the cohort's id. */
const IS_NO_COHORT =
  'NOT EXISTS (SELECT 1 FROM cohorts c WHERE c.cohort_id = session_id AND c.tenant_id = sessions.tenant_id)';

async function list(db: SealedDb, tenant: string, { cursor, limit }: PageQuery) {
  const values: SqlValue[] = [tenant, limit + 1];
  const records = await db.query<PlacedSession>(
    `SELECT ${SESSION_COLUMNS}, ${digitsOf('last_activity_ms')} AS place FROM sessions
     WHERE tenant_id = $1 AND ${IS_NO_COHORT} AND ${behind('(last_activity_ms, session_id)', 'newest', { cursor, values })}
     ORDER BY last_activity_ms DESC, session_id DESC LIMIT $2`,
    values,
  );
  return {
    sessions: await sessionsOf(db.seals, records.slice(0, limit)),
    ...nextCursor(records, limit, (last) => [last.place, last.session_id]),
  };
}

async function runs(
  db: SealedDb,
  { tenant, sessionId }: { readonly tenant: string; readonly sessionId: string },
  { cursor, limit }: PageQuery,
) {
  const values: SqlValue[] = [tenant, sessionId, limit + 1];
  const records = await db.query<RunRecord>(
    `SELECT s.run_id, r.workflow_id, r.tags, s.created_at_ms, h.status, s.parent_run_id, s.causation_id,
       ${digitsOf('s.created_at_ms')} AS place
     FROM session_runs s JOIN runs r ON r.run_id = s.run_id LEFT JOIN run_heads h ON h.run_id = s.run_id
     WHERE s.tenant_id = $1 AND s.session_id = $2 AND ${behind('(s.created_at_ms, s.run_id)', 'newest', { cursor, values })}
     ORDER BY s.created_at_ms DESC, s.run_id DESC LIMIT $3`,
    values,
  );
  return {
    runs: await runsOf(db.seals, records.slice(0, limit)),
    ...nextCursor(records, limit, (last) => [last.place, last.run_id]),
  };
}

interface SessionName {
  readonly tenant: string;
  readonly sessionId: string;
}

/** In the place of a digest: what stands there in the feed cannot be read, and may be a message. */
function unreadAt(position: number): string {
  return `unread ${position}`;
}

/** The first of an id stays; one whose row a rebuild took away gives way to the next. */
async function noteMessages(
  db: Db,
  { tenant, sessionId }: SessionName,
  said: readonly SaidAt[],
): Promise<void> {
  const places = new Map<string, number>();
  for (const { messageId, position } of said) {
    const message = messageId === undefined ? unreadAt(position) : sha256Hex(messageId);
    if (!places.has(message)) places.set(message, position);
  }
  if (places.size === 0) return;
  await db.query(
    `INSERT INTO session_messages AS m (tenant_id, session_id, message, position)
     SELECT $1, $2, message, position FROM unnest($3::text[], $4::bigint[]) AS said (message, position) ORDER BY message
     ON CONFLICT (tenant_id, session_id, message) DO UPDATE SET position = excluded.position
     WHERE NOT EXISTS (SELECT 1 FROM run_feed f WHERE f.tenant_id = m.tenant_id AND f.position = m.position)`,
    [tenant, sessionId, [...places.keys()], [...places.values()]],
  );
}

async function messages(
  db: SealedDb,
  { tenant, sessionId }: SessionName,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<readonly NotedRow[]> {
  const records = await db.query<FedRecord & { readonly message: string }>(
    `SELECT m.message, m.position, ${OF_EVENT} FROM session_messages m
     JOIN run_feed f ON f.tenant_id = m.tenant_id AND f.position = m.position
     JOIN run_events e ON e.run_id = f.run_id AND e.sequence = f.sequence
     WHERE m.tenant_id = $1 AND m.session_id = $2 AND m.position > $3 AND ${IS_THERE} ORDER BY m.position LIMIT $4`,
    [tenant, sessionId, after, limit],
  );
  const rows = await fedRows(db.seals, tenant, records);
  return rows.map((row, at) =>
    records[at]?.message === unreadAt(row.position) ? { ...row, isUnread: true } : row,
  );
}

/** Of an id that is noted elsewhere the first place in the feed stays. */
async function noteRead(
  db: Db,
  { tenant, sessionId }: SessionName,
  read: readonly SaidAt[],
): Promise<void> {
  const said = read.flatMap(({ messageId, position }) =>
    messageId === undefined ? [] : [{ message: sha256Hex(messageId), position }],
  );
  await db.transaction(async (tx) => {
    const values = [tenant, sessionId, read.map(({ position }) => unreadAt(position))];
    await tx.query(
      'DELETE FROM session_messages WHERE tenant_id = $1 AND session_id = $2 AND message = ANY($3::text[])',
      values,
    );
    for (const { message, position } of said)
      await tx.query(
        `INSERT INTO session_messages AS m (tenant_id, session_id, message, position) VALUES ($1, $2, $3, $4)
         ON CONFLICT (tenant_id, session_id, message) DO UPDATE SET position = CASE
           WHEN EXISTS (SELECT 1 FROM run_feed f WHERE f.tenant_id = m.tenant_id AND f.position = m.position)
           THEN least(m.position, excluded.position) ELSE excluded.position END`,
        [tenant, sessionId, message, position],
      );
  });
}

export function createSessionStore(db: SealedDb): SessionStore {
  return {
    async find(tenant, sessionId) {
      const records = await db.query<SessionRecord>(
        `SELECT ${SESSION_COLUMNS} FROM sessions WHERE tenant_id = $1 AND session_id = $2`,
        [tenant, sessionId],
      );
      const [session] = await sessionsOf(db.seals, records);
      return session;
    },
    async sessionOf(tenant, runId) {
      const [place] = await db.query<{ session_id: string }>(
        'SELECT session_id FROM session_runs WHERE run_id = $1 AND tenant_id = $2',
        [runId, tenant],
      );
      return place?.session_id;
    },
    list: (tenant, query) => list(db, tenant, query),
    runs: (tenant, sessionId, query) => runs(db, { tenant, sessionId }, query),
    noteMessages: (tenant, sessionId, said) => noteMessages(db, { tenant, sessionId }, said),
    noteRead: (tenant, sessionId, read) => noteRead(db, { tenant, sessionId }, read),
    messages: (tenant, sessionId, query) => messages(db, { tenant, sessionId }, query),
  };
}
