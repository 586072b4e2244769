// Lists of runs (rest-endpoints.md): pages by place, without any run's snapshot or input.
import { isTime } from '../../rules/forms.ts';
import { isJsonObject } from '../../rules/json.ts';
import { ASKS_A_PERSON, type RunStatus } from '../../rules/status.ts';
import { toldOr } from '../../rules/unreadable.ts';
import type {
  OverviewQuery,
  OverviewRow,
  RunListItem,
  RunStore,
  RunSummary,
} from '../../ports/runs.ts';
import type { Db, SealedDb, SqlValue } from './db.ts';
import { damagedAt, parsedAt, PLACES, textsAt, timeAt, type Opener, type Seals } from './seals.ts';
import { cursorOf, digitsOf, NEWEST_FIRST, nextCursor, SOONEST_FIRST } from './list-cursor.ts';
import { refOf } from './run-ref.ts';

interface ListRecord {
  readonly run_id: string;
  readonly workflow_id: string;
  readonly tags: string;
  readonly created_at_ms: number;
  readonly status: string | null;
}

interface PlacedRecord {
  readonly place: string;
}

interface OverviewRecord extends ListRecord {
  readonly tenant_id: string;
  readonly workflow_name: string;
  readonly summary: string | null;
}

interface WaitingRecord extends OverviewRecord {
  readonly until: string;
  readonly since: string;
}

const LISTED = 'r.run_id, r.workflow_id, r.tags, r.created_at_ms, h.status';
const OVERVIEW = `${LISTED}, r.tenant_id, r.workflow_name,
  h.summary`;

/** Nobody can answer any more what a paused run's time ran out for. */
const IS_ASKED = (nowMs: string): string =>
  `NOT h.closed AND (h.status <> 'paused' OR a.last_until_ms > ${nowMs}::bigint)`;

/** No row of the log yet, or none that can be read: nothing can be told of the run. */
const NOTHING_YET: RunSummary = { waits: [] };

async function listedOf(seals: Seals, records: readonly ListRecord[]): Promise<RunListItem[]> {
  const open = await seals.opener(records.map(({ tags }) => tags));
  return records.map((record) => listed(record, open));
}

function listed(record: ListRecord, open: Opener): RunListItem {
  return {
    runId: record.run_id,
    workflowId: record.workflow_id,
    status: (record.status ?? 'pending') as RunStatus,
    ...createdOf(record),
    ...tagsOf(record, open),
  };
}

/** When a run was accepted, for lists; 1970 in the place of what is no time. */
export function createdOf({
  run_id: runId,
  created_at_ms: atMs,
}: Pick<ListRecord, 'run_id' | 'created_at_ms'>): Pick<RunListItem, 'createdAtMs' | 'unreadable'> {
  return toldOr({ createdAtMs: 0 }, () => ({ createdAtMs: timeAt(`created ${runId}`, atMs) }));
}

/** Tags of a run, for lists. */
export function tagsOf(
  { run_id: runId, tags }: Pick<ListRecord, 'run_id' | 'tags'>,
  open: Opener,
): Pick<RunListItem, 'tags' | 'unreadable'> {
  const place = PLACES.tags(runId);
  return toldOr({ tags: [] }, () => ({
    tags: textsAt(place, open(place, tags).text),
  }));
}

async function overviewRows(
  seals: Seals,
  records: readonly OverviewRecord[],
): Promise<OverviewRow[]> {
  const open = await seals.opener(records.flatMap(({ tags, summary }) => [tags, summary]));
  return records.map((record) => overviewRow(record, open));
}

function overviewRow(record: OverviewRecord, open: Opener): OverviewRow {
  const { run_id: runId, workflow_name: workflowName, summary } = record;
  return {
    ...listed(record, open),
    run: refOf(record.tenant_id, record.run_id),
    workflowName,
    ...toldOr({ summary: NOTHING_YET }, () => ({
      summary: summary === null ? NOTHING_YET : summaryAt(open, PLACES.summary(runId), summary),
    })),
  };
}

function summaryAt(open: Opener, place: string, text: string): RunSummary {
  const summary = parsedAt<RunSummary>(place, open(place, text).text, 'object');
  const { startedAtMs, endedAtMs, waits } = summary;
  const isWhole =
    [startedAtMs, endedAtMs].every((ms) => ms === undefined || isTime(ms)) &&
    Array.isArray(waits) &&
    waits.every(isWait);
  if (!isWhole) throw damagedAt(place);
  return summary;
}

function isWait(wait: unknown): boolean {
  if (!isJsonObject(wait)) return false;
  const { nodeId, nodeName, interruptId, kind, requestedAtMs, deadlineMs, data } = wait;
  return (
    [nodeId, nodeName, interruptId].every((text) => typeof text === 'string') &&
    typeof kind === 'string' &&
    Object.hasOwn(ASKS_A_PERSON, kind) &&
    isTime(requestedAtMs) &&
    (deadlineMs === undefined || isTime(deadlineMs)) &&
    isJsonObject(data)
  );
}

interface Page<Row> {
  readonly runs: readonly Row[];
  readonly nextCursor?: string;
}

function pageOf<Row>(
  rows: readonly Row[],
  limit: number,
  placeOf: (row: Row) => readonly string[],
): Page<Row> {
  return { runs: rows.slice(0, limit), ...nextCursor(rows, limit, placeOf) };
}

/** Forks of a cohort are in no list but its own. */
function ofCohort({ cohortId }: OverviewQuery, bind: (value: SqlValue) => string): string {
  return cohortId === undefined ? 'r.cohort_id IS NULL' : `r.cohort_id = ${bind(cohortId)}`;
}

/** The registry leads; with a status the heads do, because their index holds it. */
async function newest<Stored extends ListRecord>(
  db: Db,
  { tenant, columns }: { readonly tenant: string; readonly columns: string },
  query: OverviewQuery,
): Promise<Page<Stored>> {
  const values: SqlValue[] = [tenant];
  const bind = (value: SqlValue): string => `$${values.push(value)}`;
  const lead = query.status === undefined ? 'r' : 'h';
  const where = [`${lead}.tenant_id = $1`, ofCohort(query, bind)];
  if (query.status !== undefined) where.push(`h.status = ${bind(query.status)}`);
  if (query.workflowId !== undefined) where.push(`${lead}.workflow_id = ${bind(query.workflowId)}`);
  if (query.cursor !== undefined) {
    const [createdAtMs, runId] = cursorOf(query.cursor, NEWEST_FIRST);
    where.push(
      `(${lead}.created_at_ms, ${lead}.run_id) < (${bind(createdAtMs)}::bigint, ${bind(runId)}::text)`,
    );
  }
  const records = await db.query<Stored & PlacedRecord>(
    `SELECT ${columns}, ${digitsOf(`${lead}.created_at_ms`)} AS place
     FROM runs r ${query.status === undefined ? 'LEFT JOIN' : 'JOIN'} run_heads h ON h.run_id = r.run_id
     WHERE ${where.join(' AND ')}
     ORDER BY ${lead}.created_at_ms DESC, ${lead}.run_id DESC LIMIT ${bind(query.limit + 1)}`,
    values,
  );
  return pageOf(records, query.limit, (last) => [last.place, last.run_id]);
}

async function soonest(
  db: Db,
  { tenant, nowMs }: { readonly tenant: string; readonly nowMs: number },
  query: OverviewQuery,
): Promise<Page<OverviewRecord>> {
  const values: SqlValue[] = [tenant, nowMs];
  const bind = (value: SqlValue): string => `$${values.push(value)}`;
  const where = ['a.tenant_id = $1', 'h.tenant_id = $1', IS_ASKED('$2'), ofCohort(query, bind)];
  if (query.status !== undefined) where.push(`h.status = ${bind(query.status)}`);
  if (query.workflowId !== undefined) where.push(`h.workflow_id = ${bind(query.workflowId)}`);
  if (query.cursor !== undefined) {
    const [untilMs, sinceMs, runId] = cursorOf(query.cursor, SOONEST_FIRST);
    where.push(
      `(a.until_ms, a.since_ms, a.run_id) > (${bind(untilMs)}::bigint, ${bind(sinceMs)}::bigint, ${bind(runId)}::text)`,
    );
  }
  const records = await db.query<WaitingRecord>(
    `SELECT ${OVERVIEW}, ${digitsOf('a.until_ms')} AS until, ${digitsOf('a.since_ms')} AS since
     FROM run_asks a JOIN run_heads h ON h.run_id = a.run_id JOIN runs r ON r.run_id = a.run_id
     WHERE ${where.join(' AND ')}
     ORDER BY a.until_ms, a.since_ms, a.run_id LIMIT ${bind(query.limit + 1)}`,
    values,
  );
  return pageOf(records, query.limit, (last) => [last.until, last.since, last.run_id]);
}

export function lists(db: SealedDb): Pick<RunStore, 'list' | 'overview' | 'countWaiting'> {
  return {
    async list(tenant, query) {
      const page = await newest(db, { tenant, columns: LISTED }, query);
      return { ...page, runs: await listedOf(db.seals, page.runs) };
    },
    async overview(tenant, query, nowMs) {
      const page = await (query.waiting
        ? soonest(db, { tenant, nowMs }, query)
        : newest<OverviewRecord>(db, { tenant, columns: OVERVIEW }, query));
      return { ...page, runs: await overviewRows(db.seals, page.runs) };
    },
    async countWaiting(tenant, limit, nowMs) {
      const [row] = await db.query<{ waiting: number }>(
        `SELECT count(*) AS waiting FROM (
           SELECT 1 FROM run_asks a JOIN run_heads h ON h.run_id = a.run_id JOIN runs r ON r.run_id = a.run_id
           WHERE r.cohort_id IS NULL AND a.tenant_id = $1 AND h.tenant_id = $1 AND ${IS_ASKED('$2')} LIMIT $3
         ) counted`,
        [tenant, nowMs, limit],
      );
      return row?.waiting ?? 0;
    },
  };
}
