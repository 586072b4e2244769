// What is kept of the logs of erased runs: the digest over their rows as they are stored, and where the rows
// lie, sealed as they are, from which they come back byte for byte.
import type { NewRow } from '../../ports/log.ts';
import type { RunRef } from '../../ports/runs.ts';
import type { ErasedRun, StoredRow, SubjectStore } from '../../ports/subjects.ts';
import { eventRow } from '../../rules/events.ts';
import { TERMINAL_KEY } from '../../rules/ids.ts';
import { TERMINAL_STATUSES, type RunStatus } from '../../rules/status.ts';
import { toldOr } from '../../rules/unreadable.ts';
import type { Db, Transaction } from './db.ts';
import { lockForRestore, putRows, RESTORE_LIMIT_MS, tellRestored } from './log-restore.ts';
import { KEEP_END } from './log-append.ts';
import { EVENT_COLUMNS, eventRecords, HEAD_COLUMNS, type EventRecord } from './rows.ts';
import { refOf } from './run-ref.ts';
import { textsAt } from './seals.ts';

interface ErasedRecord {
  readonly run_id: string;
  readonly erasure_id: string;
  readonly events: number;
  readonly root: string;
  readonly pages: string;
}
const ERASED = 'run_id, erasure_id, events, root, pages';

/** Row `e` of erasure `erasureId` as it was written, as far as its form says so. One that is damaged is written again. */
const isWhole = (e: string, erasureId: string) =>
  `(${e}.erasure_id = ${erasureId} AND ${e}.events >= 0 AND ${e}.root ~ '^[0-9a-f]{64}$'
    AND ${e}.pages ~ '^\\[("sha256:[0-9a-f]{64}"(,"sha256:[0-9a-f]{64}")*)?\\]$')`;

function erasedOf(record: ErasedRecord): ErasedRun {
  return {
    runId: record.run_id,
    erasureId: record.erasure_id,
    events: record.events,
    root: record.root,
    ...toldOr<Pick<ErasedRun, 'pages'>>({ pages: [] }, () => ({
      pages: textsAt(`pages ${record.run_id}`, record.pages),
    })),
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

/** Runs of a key behind a run id: also those that their own row alone names. */
export function runsOfKey(key: string, after: string): string {
  return `SELECT tenant_id, run_id FROM subject_runs WHERE key_id = ${key} AND run_id > ${after}
    UNION ALL SELECT r.tenant_id, r.run_id FROM runs r WHERE r.subject_key = ${key} AND r.run_id > ${after}
      AND NOT EXISTS (SELECT FROM subject_runs o WHERE o.run_id = r.run_id AND o.key_id = ${key})`;
}

const TO_DIGEST = `SELECT s.tenant_id, s.run_id FROM (${runsOfKey('$1', '$3')}) s
  WHERE NOT EXISTS (
    SELECT 1 FROM erased_runs e WHERE e.run_id = s.run_id
      AND ${isWhole('e', '(SELECT erasure_id FROM subject_erasures WHERE key_id = $1)')})
  ORDER BY s.run_id LIMIT $2`;

const KEPT_HEAD = `${HEAD_COLUMNS}, workflow_id, created_at_ms, summary`;

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
  | 'closeUnread'
> {
  return {
    async runsToDigest(keyId, { after, limit }) {
      const rows = await db.query<{ tenant_id: string; run_id: string }>(TO_DIGEST, [
        keyId,
        limit,
        after,
      ]);
      return rows.map((row) => refOf(row.tenant_id, row.run_id));
    },
    async noteErased({ tenant, runId }, { erasureId, events, root, pages }) {
      await db.query(
        `INSERT INTO erased_runs (run_id, tenant_id, erasure_id, events, root, pages)
         SELECT $1, $2, $3, $4::bigint, $5, $6
         WHERE EXISTS (SELECT FROM subject_runs WHERE run_id = $1 AND tenant_id = $2 FOR KEY SHARE)
           OR EXISTS (SELECT FROM runs WHERE run_id = $1 AND tenant_id = $2 FOR KEY SHARE)
         ON CONFLICT (run_id) DO UPDATE SET
           erasure_id = excluded.erasure_id, events = excluded.events, root = excluded.root, pages = excluded.pages
         WHERE NOT ${isWhole('erased_runs', 'excluded.erasure_id')}`,
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
    closeUnread: (run, end) => closeUnread(db, run, end),
  };
}

/** The head of run $1 of tenant $2 where it has a row, and none: open, after what is left of its log. */
const PUT_LOST_HEAD = `
  INSERT INTO run_heads (run_id, tenant_id, workflow_id, created_at_ms, status, closed, next_sequence, last_timestamp_ms,
    temporal_run_id, history_event_id, token, translate_version, translate_state, snapshot)
  SELECT run_id, tenant_id, workflow_id, created_at_ms, 'pending', false, 0, 0, coalesce(temporal_run_id, ''), 0, '', 0, 'null', 'null'
  FROM runs WHERE run_id = $1 AND tenant_id = $2 FOR KEY SHARE
  ON CONFLICT DO NOTHING`;

interface LogEnd {
  readonly next: number;
  readonly last_ms: number;
  /** Type of the entry that says that the run has ended. */
  readonly ended_by: string | null;
}

/** By the entries themselves: a head that was lost says nothing, and one that is damaged may say anything. */
async function endOf(tx: Transaction, { tenant, runId }: RunRef): Promise<LogEnd> {
  const [end] = await tx.query<LogEnd>(
    `SELECT coalesce(max(sequence) + 1, 0) AS next, coalesce(max(timestamp_ms), 0) AS last_ms,
       max(type) FILTER (WHERE key = $3) AS ended_by
     FROM run_events WHERE run_id = $1 AND tenant_id = $2`,
    [runId, tenant, TERMINAL_KEY],
  );
  return end ?? { next: 0, last_ms: 0, ended_by: null };
}

/** The status of a run whose last entry has this type. */
function endedWith(type: string): RunStatus {
  const { run } = eventRow(type);
  return run !== null && TERMINAL_STATUSES.has(run) ? run : 'failed';
}

/** Under the lock that every append takes: of the head only what is no content is read. */
async function closeUnread(db: Db, run: RunRef, end: NewRow): Promise<void> {
  const { tenant, runId } = run;
  await db.transaction(async (tx) => {
    await tx.query(PUT_LOST_HEAD, [runId, tenant]);
    const [head] = await tx.query<{ next_sequence: number; last_timestamp_ms: number }>(
      `SELECT next_sequence, last_timestamp_ms FROM run_heads
       WHERE run_id = $1 AND tenant_id = $2 AND NOT closed FOR UPDATE`,
      [runId, tenant],
    );
    if (!head) return;
    const { next, last_ms: lastMs, ended_by: endedBy } = await endOf(tx, run);
    const sequence = Math.max(head.next_sequence, next);
    const atMs = Math.max(head.last_timestamp_ms, lastMs);
    const timestampMs = endedBy === null ? Math.max(end.timestampMs, atMs) : atMs;
    const rows = endedBy === null ? [{ ...end, sequence, timestampMs }] : [];
    const status = endedWith(endedBy ?? end.type);
    const nextSequence = sequence + rows.length;
    await putRows(tx, run, { rows, recordsOf: (part) => eventRecords(part, undefined) });
    await tx.query(
      `UPDATE run_heads SET closed = true, status = $5, next_sequence = $3, last_timestamp_ms = $4, problem = NULL
       WHERE run_id = $1 AND tenant_id = $2`,
      [runId, tenant, nextSequence, timestampMs, status],
    );
    for (const statement of [
      'DELETE FROM run_asks WHERE run_id = $1 AND tenant_id = $2',
      'UPDATE run_blocks SET closed = true WHERE run_id = $1 AND tenant_id = $2 AND NOT closed',
      `${KEEP_END} ON CONFLICT DO NOTHING`,
    ])
      await tx.query(statement, [runId, tenant]);
    await tellRestored(tx, run, nextSequence);
  });
}

/** Readers of the feed keep the positions that they may have seen: those of rows that come back stay. */
async function restoreStored(
  db: Db,
  run: RunRef,
  { head, rows }: Parameters<SubjectStore['restoreStored']>[1],
): Promise<void> {
  const { tenant, runId } = run;
  const recordsOf = (part: readonly StoredRow[]) =>
    JSON.stringify(part.map((row) => recordOf(runId, row)));
  await db.transaction(async (tx) => {
    await lockForRestore(tx, run);
    await tx.query('DELETE FROM run_events WHERE run_id = $1 AND tenant_id = $2', [runId, tenant]);
    await tx.query('DELETE FROM run_heads WHERE run_id = $1 AND tenant_id = $2', [runId, tenant]);
    await putRows(tx, run, { rows, recordsOf });
    await tx.query(
      `INSERT INTO run_heads (${KEPT_HEAD})
       SELECT ${KEPT_HEAD} FROM json_populate_record(NULL::run_heads, $1::text::json)
       WHERE run_id = $2 AND tenant_id = $3`,
      [head, runId, tenant],
    );
    await tellRestored(tx, run, rows.length);
  }, RESTORE_LIMIT_MS);
}
