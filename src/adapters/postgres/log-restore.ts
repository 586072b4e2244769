// The end of a rebuild (architecture §3.6): head and rows of one run replaced in one transaction.
import { HostError } from '../../rules/errors.ts';
import type { Head, LogRow } from '../../ports/log.ts';
import type { RunRef, RunRow, RunSummary } from '../../ports/runs.ts';
import type { SealedDb, Transaction } from './db.ts';
import type { Seal } from './seals.ts';
import { KEEP_END, LOG_CHANNEL, lockHead } from './log-append.ts';
import { eventRecords, INSERT_EVENTS, storedHead } from './rows.ts';
import { keepSummary } from './run-summaries.ts';

/** Rows per statement, and the longest time in ms for a whole run. */
const ROWS_PER_INSERT = 500;
export const RESTORE_LIMIT_MS = 120_000;

export interface Restored {
  readonly head: Head;
  readonly rows: readonly LogRow[];
  readonly summary: RunSummary;
  /** Activities whose recording the rows hold. */
  readonly closedBlocks?: readonly string[];
  /** From there on the feed gives the rows again. */
  readonly movedFrom?: number | undefined;
  /** The head as it was when the rows were told. */
  readonly seen: Head | undefined;
}

/**
 * What was appended since is in none of the rows. Without the places of streamed text what is streamed is dropped. A log may
 * have been ended without a word of its history: the cursor does not say so.
 */
function hasMoved(stored: Head | undefined, seen: Head | undefined, isRetold: boolean): boolean {
  return (
    stored?.closed !== seen?.closed ||
    (!isRetold && stored?.nextSequence !== seen?.nextSequence) ||
    stored?.temporalRunId !== seen?.temporalRunId ||
    stored?.historyEventId !== seen?.historyEventId
  );
}

/**
 * False while a block of the run is open: its deltas are in no history yet; and when the log went on. The lock is the registry row's, because
 * the head may be gone. Throws HostError run_not_found when the run is not registered.
 */
export async function restore(
  db: SealedDb,
  run: RunRef,
  { head, rows, seen, summary, closedBlocks = [], movedFrom }: Restored,
): Promise<boolean> {
  const { tenant, runId } = run;
  const seal = await db.seals.ofRun(runId);
  return db.transaction(async (tx) => {
    const before = await lockForRestore(tx, run);
    const stored = await lockHead(tx, run, seal);
    const { retoldFrom } = head;
    const isRetold = retoldFrom !== undefined;
    // Somebody else has made it again meanwhile, without the places that these rows go by.
    if (before.retoldFrom !== undefined && !isRetold) return false;
    if (hasMoved(stored, seen, isRetold)) return false;
    const open = await tx.query(
      `SELECT 1 FROM run_blocks WHERE run_id = $1 AND tenant_id = $2 AND NOT closed AND activity_id <> ALL($3::text[])
       LIMIT 1`,
      [runId, tenant, closedBlocks],
    );
    if (open.length > 0 && !isRetold) return false;
    await tx.query(
      `UPDATE run_blocks SET closed = true WHERE run_id = $1 AND tenant_id = $2 AND NOT closed`,
      [runId, tenant],
    );
    if (isRetold && stored?.retoldFrom !== retoldFrom) await retellFrom(tx, run, retoldFrom);
    else if (movedFrom !== undefined) await leaveFeed(tx, run, movedFrom);
    await tx.query('DELETE FROM run_events WHERE run_id = $1 AND tenant_id = $2', [runId, tenant]);
    await putRows(tx, run, { rows, recordsOf: (part) => eventRecords(part, seal) });
    await putHead(tx, head, seal);
    // An end that no append has brought is found here.
    if (head.closed && !stored?.closed)
      await tx.query(`${KEEP_END} ON CONFLICT DO NOTHING`, [runId, tenant]);
    await keepSummary(tx, run, { summary, seal });
    await tellRestored(tx, run, head.nextSequence);
    return true;
  }, RESTORE_LIMIT_MS);
}

/** Who has read the feed finds rows that have moved at new positions. */
async function retellFrom(tx: Transaction, run: RunRef, from: number): Promise<void> {
  const { tenant, runId } = run;
  await tx.query('UPDATE runs SET retold_from = $2 WHERE run_id = $1 AND tenant_id = $3', [
    ...[runId, from, tenant],
  ]);
  await leaveFeed(tx, run, from);
}

/** Rows from this sequence on take their positions along. */
async function leaveFeed(tx: Transaction, { tenant, runId }: RunRef, from: number): Promise<void> {
  await tx.query('DELETE FROM run_feed WHERE run_id = $1 AND tenant_id = $3 AND sequence >= $2', [
    ...[runId, from, tenant],
  ]);
}

/** Of the registry's row. Throws HostError run_not_found. */
export async function lockForRestore(
  tx: Transaction,
  { tenant, runId }: RunRef,
): Promise<Pick<RunRow, 'retoldFrom'>> {
  const [known] = await tx.query<{ retold_from: number | null }>(
    'SELECT retold_from FROM runs WHERE run_id = $1 AND tenant_id = $2 FOR UPDATE',
    [runId, tenant],
  );
  if (!known) throw new HostError('run_not_found', { runId });
  return known.retold_from === null ? {} : { retoldFrom: known.retold_from };
}

export async function putRows<Row>(
  tx: Transaction,
  { tenant, runId }: RunRef,
  {
    rows,
    recordsOf,
  }: { readonly rows: readonly Row[]; readonly recordsOf: (part: readonly Row[]) => string },
): Promise<void> {
  for (let at = 0; at < rows.length; at += ROWS_PER_INSERT) {
    const part = recordsOf(rows.slice(at, at + ROWS_PER_INSERT));
    await tx.query(INSERT_EVENTS, [runId, tenant, part]);
  }
}

/** Rows that stay keep their positions; those that are no more take theirs along. */
export async function tellRestored(
  tx: Transaction,
  run: RunRef,
  nextSequence: number,
): Promise<void> {
  await leaveFeed(tx, run, nextSequence);
  await tx.query(`SELECT pg_notify('${LOG_CHANNEL}', $1::text)`, [`${run.runId}:${nextSequence}`]);
}

async function putHead(tx: Transaction, head: Head, seal: Seal | undefined): Promise<void> {
  const { tenant, runId } = head;
  await tx.query(
    `INSERT INTO run_heads (run_id, tenant_id, workflow_id, created_at_ms, status, closed, next_sequence,
       last_timestamp_ms, temporal_run_id, history_event_id, token, translate_version, translate_state, snapshot,
       problem, retold_from)
     SELECT run_id, tenant_id, workflow_id, created_at_ms, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $14
     FROM runs WHERE run_id = $1 AND tenant_id = $13
     ON CONFLICT (run_id) DO UPDATE SET status = excluded.status, closed = excluded.closed,
       next_sequence = excluded.next_sequence, last_timestamp_ms = excluded.last_timestamp_ms,
       temporal_run_id = excluded.temporal_run_id, history_event_id = excluded.history_event_id,
       token = excluded.token, translate_version = excluded.translate_version,
       translate_state = excluded.translate_state, snapshot = excluded.snapshot, problem = excluded.problem,
       retold_from = excluded.retold_from`,
    [
      runId,
      head.status,
      head.closed,
      head.nextSequence,
      head.lastTimestampMs,
      head.temporalRunId,
      head.historyEventId,
      head.token,
      head.translateVersion,
      ...storedHead(head, seal),
      head.problem ?? null,
      tenant,
      head.retoldFrom ?? null,
    ],
  );
}
