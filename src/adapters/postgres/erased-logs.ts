// What is kept of the logs of erased runs (migration 018): the digest over their rows as they are stored, and where the rows
// lie, sealed as they are, from which they come back byte for byte.
import type { ErasedRun, StoredRow, SubjectStore } from '../../ports/subjects.ts';
import { HostError } from '../../rules/errors.ts';
import type { Db } from './db.ts';
import { LOG_CHANNEL } from './log-append.ts';
import { EVENT_COLUMNS, HEAD_COLUMNS, INSERT_EVENTS, type EventRecord } from './rows.ts';
import { refOf } from './run-ref.ts';

/** Rows per statement, and the longest time in ms for a whole log. */
const ROWS_PER_INSERT = 500;
const RESTORE_LIMIT_MS = 120_000;

interface ErasedRecord {
  readonly run_id: string;
  readonly erasure_id: string;
  readonly events: number;
  readonly root: string;
  readonly pages: string;
}
const ERASED = 'run_id, erasure_id, events, root, pages';

function erasedOf(record: ErasedRecord): ErasedRun {
  return {
    runId: record.run_id,
    erasureId: record.erasure_id,
    events: record.events,
    root: record.root,
    pages: JSON.parse(record.pages) as string[],
  };
}

function storedRowOf(record: EventRecord): StoredRow {
  return {
    sequence: record.sequence,
    eventId: record.event_id,
    key: record.key,
    type: record.type,
    nodeId: record.node_id,
    causationId: record.causation_id,
    causedBy: record.caused_by,
    payload: record.payload,
    timestampMs: record.timestamp_ms,
  };
}

function recordOf(runId: string, row: StoredRow): EventRecord {
  return {
    run_id: runId,
    sequence: row.sequence,
    event_id: row.eventId,
    key: row.key,
    type: row.type,
    node_id: row.nodeId,
    causation_id: row.causationId,
    caused_by: row.causedBy,
    payload: row.payload,
    timestamp_ms: row.timestampMs,
  };
}

const KEPT_HEAD = `${HEAD_COLUMNS}, workflow_id, created_at_ms, summary, summary_of`;

export function erasedLogs(
  db: Db,
): Pick<
  SubjectStore,
  | 'runsToDigest'
  | 'noteErased'
  | 'erasedRuns'
  | 'erasedRun'
  | 'storedRows'
  | 'storedHead'
  | 'restoreStored'
> {
  return {
    async runsToDigest(keyId, limit) {
      const rows = await db.query<{ tenant_id: string; run_id: string }>(
        `SELECT s.tenant_id, s.run_id FROM subject_runs s
         WHERE s.key_id = $1 AND NOT EXISTS (SELECT 1 FROM erased_runs e WHERE e.run_id = s.run_id)
         ORDER BY s.run_id LIMIT $2`,
        [keyId, limit],
      );
      return rows.map((row) => refOf(row.tenant_id, row.run_id));
    },
    async noteErased({ tenant, runId }, { erasureId, events, root, pages }) {
      await db.query(
        `INSERT INTO erased_runs (run_id, tenant_id, erasure_id, events, root, pages)
         SELECT run_id, tenant_id, $3, $4::integer, $5, $6 FROM runs WHERE run_id = $1 AND tenant_id = $2 FOR KEY SHARE
         ON CONFLICT DO NOTHING`,
        [runId, tenant, erasureId, events, root, JSON.stringify(pages)],
      );
    },
    async erasedRuns(erasureId, { after, limit }) {
      const records = await db.query<ErasedRecord>(
        `SELECT ${ERASED} FROM erased_runs WHERE erasure_id = $1 AND run_id > $2 ORDER BY run_id LIMIT $3`,
        [erasureId, after, limit],
      );
      return records.map(erasedOf);
    },
    async erasedRun({ tenant, runId }) {
      const [record] = await db.query<ErasedRecord>(
        `SELECT ${ERASED} FROM erased_runs WHERE run_id = $1 AND tenant_id = $2`,
        [runId, tenant],
      );
      return record && erasedOf(record);
    },
    async storedRows({ tenant, runId }, { after, limit }) {
      const records = await db.query<EventRecord>(
        `SELECT ${EVENT_COLUMNS} FROM run_events
         WHERE run_id = $1 AND tenant_id = $4 AND sequence > $2 ORDER BY sequence LIMIT $3`,
        [runId, after, limit, tenant],
      );
      return records.map(storedRowOf);
    },
    async storedHead({ tenant, runId }) {
      const [row] = await db.query<{ head: string }>(
        `SELECT row_to_json(kept)::text AS head
         FROM (SELECT ${KEPT_HEAD} FROM run_heads WHERE run_id = $1 AND tenant_id = $2) kept`,
        [runId, tenant],
      );
      return row?.head;
    },
    restoreStored: (run, kept) => restoreStored(db, run, kept),
  };
}

/** Readers of the feed keep the positions that they may have seen: those of rows that come back stay. */
async function restoreStored(
  db: Db,
  { tenant, runId }: Parameters<SubjectStore['restoreStored']>[0],
  { head, rows }: Parameters<SubjectStore['restoreStored']>[1],
): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query('SELECT 1 FROM feed_backfill FOR SHARE');
    const [known] = await tx.query(
      'SELECT 1 FROM runs WHERE run_id = $1 AND tenant_id = $2 FOR UPDATE',
      [runId, tenant],
    );
    if (!known) throw new HostError('run_not_found', { runId });
    await tx.query('DELETE FROM run_events WHERE run_id = $1 AND tenant_id = $2', [runId, tenant]);
    await tx.query('DELETE FROM run_heads WHERE run_id = $1 AND tenant_id = $2', [runId, tenant]);
    for (let at = 0; at < rows.length; at += ROWS_PER_INSERT) {
      const part = rows.slice(at, at + ROWS_PER_INSERT).map((row) => recordOf(runId, row));
      await tx.query(INSERT_EVENTS, [runId, tenant, JSON.stringify(part)]);
    }
    await tx.query(
      `INSERT INTO run_heads (${KEPT_HEAD})
       SELECT ${KEPT_HEAD} FROM json_populate_record(NULL::run_heads, $1::text::json)
       WHERE run_id = $2 AND tenant_id = $3`,
      [head, runId, tenant],
    );
    await tx.query('DELETE FROM run_feed WHERE run_id = $1 AND tenant_id = $3 AND sequence >= $2', [
      ...[runId, rows.length, tenant],
    ]);
    await tx.query(`SELECT pg_notify('${LOG_CHANNEL}', $1::text)`, [`${runId}:${rows.length}`]);
  }, RESTORE_LIMIT_MS);
}
