// Sessions on Postgres (migration 011, which says how they are kept): read by place, as lists of runs are.
import type { RunInput } from '../../rules/run-input.ts';
import type { RunStatus } from '../../rules/status.ts';
import type { NewRun } from '../../ports/runs.ts';
import type { PageQuery, SessionRow, SessionRun, SessionStore } from '../../ports/sessions.ts';
import type { Db, SqlValue } from './db.ts';
import { behind, nextCursor } from './list-cursor.ts';

interface SessionRecord {
  readonly session_id: string;
  readonly title: string | null;
  readonly tags: string;
  readonly created_at_ms: number;
  readonly last_activity_ms: number;
}

interface RunRecord {
  readonly run_id: string;
  readonly workflow_id: string;
  readonly tags: string;
  readonly created_at_ms: number;
  readonly status: string | null;
  readonly parent_run_id: string | null;
  readonly causation_id: string | null;
}

/** Puts an accepted run (sessionValues, from `$first` on) into its session where the CTE `claim` has a row. */
export function joinSession(first: number): string {
  const [run, tenant, session, created, parent, node, root, call, title, tags] = Array.from(
    { length: 10 },
    (_, index) => `$${first + index}`,
  );
  return `session AS (
    SELECT openwop_join_session(ROW(${run}::text, ${tenant}::text, ${session}::text, ${created}::bigint, ${parent}::text,
      ${node}::text, ${root}::text, ${call}::text)::session_runs, ${title}::text, ${tags}::text[]) FROM claim
  )`;
}

export function sessionValues({
  runId,
  tenant,
  input,
  createdAtMs,
  sessionTitle,
}: NewRun): SqlValue[] {
  const { sessionId, parentRunId, parentNodeId, correlationId, causationId } = input.header;
  return [
    ...[runId, tenant, sessionId, createdAtMs],
    ...[parentRunId ?? null, storable(parentNodeId) ?? null, correlationId, causationId ?? null],
    storable(sessionTitle) ?? null,
    tagsOf(input),
  ];
}

/** No column can hold a NUL. */
function storable(text: string | undefined): string | undefined {
  return text?.replaceAll('\0', '');
}

function tagsOf({ tags = [] }: RunInput): string[] {
  return tags.map((tag) => tag.replaceAll('\0', ''));
}

function sessionOf(record: SessionRecord): SessionRow {
  return {
    sessionId: record.session_id,
    ...(record.title === null ? {} : { title: record.title }),
    tags: JSON.parse(record.tags) as string[],
    createdAtMs: record.created_at_ms,
    lastActivityMs: record.last_activity_ms,
  };
}

function runOf(record: RunRecord): SessionRun {
  return {
    runId: record.run_id,
    workflowId: record.workflow_id,
    status: (record.status ?? 'pending') as RunStatus,
    createdAtMs: record.created_at_ms,
    tags: JSON.parse(record.tags) as string[],
    ...(record.parent_run_id === null ? {} : { parentRunId: record.parent_run_id }),
    ...(record.causation_id === null ? {} : { causationId: record.causation_id }),
  };
}

const SESSION_COLUMNS =
  'session_id, title, array_to_json(tags)::text AS tags, created_at_ms, last_activity_ms';

async function list(db: Db, tenant: string, { cursor, limit }: PageQuery) {
  const values: SqlValue[] = [tenant, limit + 1];
  const records = await db.query<SessionRecord>(
    `SELECT ${SESSION_COLUMNS} FROM sessions
     WHERE tenant_id = $1 AND ${behind('(last_activity_ms, session_id)', 'newest', { cursor, values })}
     ORDER BY last_activity_ms DESC, session_id DESC LIMIT $2`,
    values,
  );
  return {
    sessions: records.slice(0, limit).map(sessionOf),
    ...nextCursor(records, limit, (last) => [last.last_activity_ms, last.session_id]),
  };
}

async function runs(
  db: Db,
  { tenant, sessionId }: { readonly tenant: string; readonly sessionId: string },
  { cursor, limit }: PageQuery,
) {
  const values: SqlValue[] = [tenant, sessionId, limit + 1];
  const records = await db.query<RunRecord>(
    `SELECT s.run_id, r.workflow_id, r.tags, s.created_at_ms, h.status, s.parent_run_id, s.causation_id
     FROM session_runs s JOIN runs r ON r.run_id = s.run_id LEFT JOIN run_heads h ON h.run_id = s.run_id
     WHERE s.tenant_id = $1 AND s.session_id = $2 AND ${behind('(s.created_at_ms, s.run_id)', 'newest', { cursor, values })}
     ORDER BY s.created_at_ms DESC, s.run_id DESC LIMIT $3`,
    values,
  );
  return {
    runs: records.slice(0, limit).map(runOf),
    ...nextCursor(records, limit, (last) => [last.created_at_ms, last.run_id]),
  };
}

export function createSessionStore(db: Db): SessionStore {
  return {
    async find(tenant, sessionId) {
      const [record] = await db.query<SessionRecord>(
        `SELECT ${SESSION_COLUMNS} FROM sessions WHERE tenant_id = $1 AND session_id = $2`,
        [tenant, sessionId],
      );
      return record && sessionOf(record);
    },
    async holds(tenant, sessionId, runId) {
      const held = await db.query(
        'SELECT 1 FROM session_runs WHERE run_id = $1 AND tenant_id = $2 AND session_id = $3',
        [runId, tenant, sessionId],
      );
      return held.length > 0;
    },
    list: (tenant, query) => list(db, tenant, query),
    runs: (tenant, sessionId, query) => runs(db, { tenant, sessionId }, query),
  };
}
