// The append (architecture §3.2): one transaction that locks the head, checks the cursor, numbers and clamps,
// and moves status, cursor and sequence together. Four round trips: BEGIN, lock, write, COMMIT.
import { clampTimestamps } from '../../rules/clamp.ts';
import { HostError } from '../../rules/errors.ts';
import { deltaKey } from '../../rules/ids.ts';
import type { AppendBatch, AppendOutcome, Head, LogRow, NewRow } from '../../ports/log.ts';
import type { RunRef } from '../../ports/runs.ts';
import type { Db, Transaction } from './db.ts';
import { putAsks, summaryValues } from './run-summaries.ts';
import { eventRecords, HEAD_COLUMNS, headOf, INSERT_EVENTS } from './rows.ts';
import type { HeadRecord } from './rows.ts';

export const LOG_CHANNEL = 'openwop_log';

/** The lock that every change of a run's log takes first. */
export async function lockHead(
  tx: Transaction,
  { tenant, runId }: RunRef,
): Promise<Head | undefined> {
  const [record] = await tx.query<HeadRecord>(
    `SELECT ${HEAD_COLUMNS} FROM run_heads WHERE run_id = $1 AND tenant_id = $2 FOR UPDATE`,
    [runId, tenant],
  );
  return record && headOf(record);
}

/** Keeps the end of run $1 of tenant $2, where it has a parent or children, until it is told. Conditions may follow. */
export const KEEP_END = `
    INSERT INTO run_ends (tenant_id, run_id, ended_at_ms)
    SELECT $2::text, $1::text, (extract(epoch FROM clock_timestamp()) * 1000)::bigint WHERE EXISTS (
      SELECT 1 FROM session_runs WHERE run_id = $1 AND tenant_id = $2 AND parent_run_id IS NOT NULL
      UNION ALL SELECT 1 FROM session_runs WHERE tenant_id = $2 AND parent_run_id = $1)`;

const WRITE = `
  WITH added AS (${INSERT_EVENTS}),
  moved AS (
    UPDATE run_heads SET next_sequence = $4, last_timestamp_ms = $5, temporal_run_id = $6, history_event_id = $7,
      token = $8, status = $9, closed = $10, translate_state = $11, snapshot = $12, problem = NULL,
      summary = $15, summary_of = $16
    WHERE run_id = $1 AND tenant_id = $2
  ),
  ${putAsks('SELECT 1', 17)},
  sealed AS (
    INSERT INTO run_blocks (run_id, activity_id, tenant_id, try_number, closed)
    SELECT $1::text, block, $2::text, 0, true FROM unnest($13::text[]) AS block
    ON CONFLICT (run_id, activity_id) DO UPDATE SET closed = true
  ),
  cut_off AS (
    UPDATE run_blocks SET closed = true
    WHERE run_id = $1 AND tenant_id = $2 AND $10 AND NOT closed AND activity_id <> ALL ($13::text[])
  ),
  told AS (${KEEP_END} AND $10 ON CONFLICT DO NOTHING)
  SELECT pg_notify('${LOG_CHANNEL}', $1::text || ':' || $4::bigint::text) WHERE $14::boolean`;

/** Throws HostError run_not_found without a head; SqlError when a fact is appended twice (a bug in its author). */
export function append(db: Db, batch: AppendBatch): Promise<AppendOutcome> {
  return db.transaction(async (tx) => {
    const head = await lockHead(tx, batch.run);
    if (!head) throw new HostError('run_not_found', { runId: batch.run.runId });
    if (head.closed) return { kind: 'closed', head };
    const { behind } = batch;
    if (
      head.temporalRunId !== behind.temporalRunId ||
      head.historyEventId !== behind.historyEventId ||
      head.nextSequence !== (batch.seenSequence ?? head.nextSequence)
    ) {
      return { kind: 'stale', head };
    }
    const rows = number(head, await withoutStoredDeltas(tx, batch));
    const moved: Head = {
      ...head,
      ...batch.cursor,
      nextSequence: head.nextSequence + rows.length,
      lastTimestampMs: rows.at(-1)?.timestampMs ?? head.lastTimestampMs,
      status: batch.status,
      closed: batch.closed,
      translateState: batch.translateState,
      snapshot: batch.fold(head.snapshot, rows),
      problem: undefined,
    };
    await tx.query(WRITE, [
      moved.runId,
      moved.tenant,
      eventRecords(rows),
      moved.nextSequence,
      moved.lastTimestampMs,
      moved.temporalRunId,
      moved.historyEventId,
      moved.token,
      moved.status,
      moved.closed,
      JSON.stringify(moved.translateState),
      JSON.stringify(moved.snapshot),
      [...new Set(batch.closedBlocks)],
      rows.length > 0 || moved.status !== head.status,
      ...summaryValues(moved, batch.summary?.(moved.snapshot)),
    ]);
    return { kind: 'appended', head: moved };
  });
}

/** Gives sequences and clamped timestamps, in the order of the rows. */
export function number(
  head: Pick<Head, 'nextSequence' | 'lastTimestampMs'>,
  rows: readonly NewRow[],
): LogRow[] {
  const timesMs = clampTimestamps(
    head.lastTimestampMs,
    rows.map((row) => row.timestampMs),
  );
  return rows.map((row, index) => ({
    ...row,
    sequence: head.nextSequence + index,
    timestampMs: timesMs[index] ?? row.timestampMs,
  }));
}

/** Recorded deltas were stored when they were streamed; one that is missing now would get a wrong sequence. */
async function withoutStoredDeltas(
  tx: Transaction,
  batch: AppendBatch,
): Promise<readonly NewRow[]> {
  const prefixes = batch.closedBlocks.map((activityId) => deltaKey(activityId, 0).slice(0, -1));
  const isDelta = (row: NewRow): boolean => prefixes.some((prefix) => row.key.startsWith(prefix));
  const deltas = batch.rows.filter(isDelta);
  if (deltas.length === 0) return batch.rows;
  // A stream may be recorded twice: by its seal and by its own late result.
  const eventIds = [...new Set(deltas.map(({ eventId }) => eventId))];
  const stored = await tx.query(
    'SELECT 1 FROM run_events WHERE run_id = $1 AND tenant_id = $3 AND event_id = ANY($2::text[])',
    [batch.run.runId, eventIds, batch.run.tenant],
  );
  if (stored.length !== eventIds.length) {
    throw new HostError('internal_error', {
      reason: 'A recorded delta is not in the log.',
      runId: batch.run.runId,
    });
  }
  return batch.rows.filter((row) => !isDelta(row));
}
