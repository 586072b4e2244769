// Lists of runs (rest-endpoints.md; migration 010): pages by place, without any run's snapshot or input.
import type { RunInput } from '../../rules/run-input.ts';
import { MAY_WAIT, type RunStatus } from '../../rules/status.ts';
import type { OverviewQuery, OverviewRow, RunStore, RunSummary } from '../../ports/runs.ts';
import type { Db, SqlValue } from './db.ts';
import { cursorOf, cursorText, NEWEST_FIRST, SOONEST_FIRST } from './list-cursor.ts';
import { refOf } from './run-ref.ts';
import { IS_SUMMED } from './run-summaries.ts';

interface OverviewRecord {
  readonly run_id: string;
  readonly tenant_id: string;
  readonly workflow_id: string;
  readonly workflow_name: string | null;
  /** Of runs from before names were kept. */
  readonly input: string | null;
  readonly tags: string;
  readonly created_at_ms: number;
  readonly status: string | null;
  readonly summary: string | null;
  readonly is_new: boolean;
  readonly until_ms: number;
  readonly since_ms: number;
}

const COLUMNS = `r.run_id, r.tenant_id, r.workflow_id, r.workflow_name, r.tags, r.created_at_ms, h.status,
  CASE WHEN r.workflow_name IS NULL THEN r.input END AS input,
  CASE WHEN ${IS_SUMMED} THEN h.summary END AS summary, coalesce(h.next_sequence, 0) = 0 AS is_new`;

/** Nobody can answer any more what a paused run's time ran out for. */
const IS_ASKED = (nowMs: string): string =>
  `${IS_SUMMED} AND NOT h.closed AND (h.status <> 'paused' OR a.last_until_ms > ${nowMs}::bigint)`;

/** No row of the log yet: nothing can be told of the run. */
const NOTHING_YET: RunSummary = { waits: [] };

function rowOf(record: OverviewRecord): OverviewRow {
  const { run_id: runId, workflow_id: workflowId, workflow_name: name, input, summary } = record;
  const told = summary === null ? undefined : (JSON.parse(summary) as RunSummary);
  return {
    ...{ runId, workflowId },
    run: refOf(record.tenant_id, runId),
    status: (record.status ?? 'pending') as RunStatus,
    createdAtMs: record.created_at_ms,
    tags: JSON.parse(record.tags) as string[],
    workflowName: name ?? (JSON.parse(input ?? '{}') as Partial<RunInput>).definition?.name ?? '',
    summary: told ?? (record.is_new ? NOTHING_YET : undefined),
  };
}

interface Page {
  readonly runs: readonly OverviewRow[];
  readonly nextCursor?: string;
}

function pageOf(
  records: readonly OverviewRecord[],
  limit: number,
  placeOf: (record: OverviewRecord) => readonly (string | number)[],
): Page {
  const runs = records.slice(0, limit).map(rowOf);
  const last = records[limit - 1];
  return records.length > limit && last
    ? { runs, nextCursor: cursorText(placeOf(last)) }
    : { runs };
}

/** The registry leads; with a status the heads do, because their index holds it. */
async function newest(db: Db, tenant: string, query: OverviewQuery): Promise<Page> {
  const values: SqlValue[] = [tenant];
  const bind = (value: SqlValue): string => `$${values.push(value)}`;
  const lead = query.status === undefined ? 'r' : 'h';
  const where = [`${lead}.tenant_id = $1`];
  if (query.status !== undefined) where.push(`h.status = ${bind(query.status)}`);
  if (query.workflowId !== undefined) where.push(`${lead}.workflow_id = ${bind(query.workflowId)}`);
  if (query.cursor !== undefined) {
    const [createdAtMs, runId] = cursorOf(query.cursor, NEWEST_FIRST);
    where.push(
      `(${lead}.created_at_ms, ${lead}.run_id) < (${bind(createdAtMs)}::bigint, ${bind(runId)}::text)`,
    );
  }
  const records = await db.query<OverviewRecord>(
    `SELECT ${COLUMNS}, 0 AS until_ms, 0 AS since_ms
     FROM runs r ${query.status === undefined ? 'LEFT JOIN' : 'JOIN'} run_heads h ON h.run_id = r.run_id
     WHERE ${where.join(' AND ')}
     ORDER BY ${lead}.created_at_ms DESC, ${lead}.run_id DESC LIMIT ${bind(query.limit + 1)}`,
    values,
  );
  return pageOf(records, query.limit, (last) => [last.created_at_ms, last.run_id]);
}

async function soonest(
  db: Db,
  { tenant, nowMs }: { readonly tenant: string; readonly nowMs: number },
  query: OverviewQuery,
): Promise<Page> {
  const values: SqlValue[] = [tenant, nowMs];
  const bind = (value: SqlValue): string => `$${values.push(value)}`;
  const where = ['a.tenant_id = $1', 'h.tenant_id = $1', IS_ASKED('$2')];
  if (query.status !== undefined) where.push(`h.status = ${bind(query.status)}`);
  if (query.workflowId !== undefined) where.push(`h.workflow_id = ${bind(query.workflowId)}`);
  if (query.cursor !== undefined) {
    const [untilMs, sinceMs, runId] = cursorOf(query.cursor, SOONEST_FIRST);
    where.push(
      `(a.until_ms, a.since_ms, a.run_id) > (${bind(untilMs)}::bigint, ${bind(sinceMs)}::bigint, ${bind(runId)}::text)`,
    );
  }
  const records = await db.query<OverviewRecord>(
    `SELECT ${COLUMNS}, a.until_ms, a.since_ms
     FROM run_asks a JOIN run_heads h ON h.run_id = a.run_id JOIN runs r ON r.run_id = a.run_id
     WHERE ${where.join(' AND ')}
     ORDER BY a.until_ms, a.since_ms, a.run_id LIMIT ${bind(query.limit + 1)}`,
    values,
  );
  return pageOf(records, query.limit, (last) => [last.until_ms, last.since_ms, last.run_id]);
}

export function lists(db: Db): Pick<RunStore, 'list' | 'overview' | 'countWaiting' | 'unsummed'> {
  return {
    async list(tenant, query) {
      const page = await newest(db, tenant, query);
      const runs = page.runs.map(({ runId, workflowId, status, createdAtMs, tags }) => ({
        ...{ runId, workflowId, status, createdAtMs, tags },
      }));
      return { ...page, runs };
    },
    overview: (tenant, query, nowMs) =>
      query.waiting ? soonest(db, { tenant, nowMs }, query) : newest(db, tenant, query),
    async countWaiting(tenant, limit, nowMs) {
      const [row] = await db.query<{ waiting: number }>(
        `SELECT count(*) AS waiting FROM (
           SELECT 1 FROM run_asks a JOIN run_heads h ON h.run_id = a.run_id
           WHERE a.tenant_id = $1 AND h.tenant_id = $1 AND ${IS_ASKED('$2')} LIMIT $3
         ) counted`,
        [tenant, nowMs, limit],
      );
      return row?.waiting ?? 0;
    },
    async unsummed(tenant, limit) {
      const rows = await db.query<{ run_id: string }>(
        `SELECT h.run_id FROM run_heads h
         WHERE h.tenant_id = $1 AND h.status = ANY($2::text[]) AND NOT h.closed AND h.next_sequence > 0
           AND NOT ${IS_SUMMED}
         LIMIT $3`,
        [tenant, [...MAY_WAIT], limit],
      );
      return rows.map(({ run_id }) => refOf(tenant, run_id));
    },
  };
}
