// Live deltas (architecture §3.5): rows that an activity appends while its block is open. They take the head's
// lock and move only its sequence and timestamp, so they never make a cursor stale.
//
// | block   | first call | same try | higher try    | lower try  | closeBlock / append that closes it |
// |---------|------------|----------|---------------|------------|------------------------------------|
// | none    | opens      | -        | -             | -          | closed, empty                      |
// | open    | -          | appends  | takes it over | superseded | closed                             |
// | closed  | refused    | refused  | refused       | refused    | stays closed                       |
//
// A delta whose predecessor is not stored is refused as well: the database has lost that one, and to go on would leave a gap.
import { deltaKey, eventIdOf } from '../../rules/ids.ts';
import type { DeltaOutcome, LogRow, NewDelta } from '../../ports/log.ts';
import type { RunRef } from '../../ports/runs.ts';
import type { SealedDb, Transaction } from './db.ts';
import { LOG_CHANNEL, lockHead, number } from './log-append.ts';
import { EVENT_COLUMNS, eventRecords, INSERT_EVENTS, logRowsOf } from './rows.ts';
import type { EventRecord } from './rows.ts';

const WRITE = `
  WITH added AS (${INSERT_EVENTS}),
  moved AS (UPDATE run_heads SET next_sequence = $4, last_timestamp_ms = $5 WHERE run_id = $1 AND tenant_id = $2),
  opened AS (
    INSERT INTO run_blocks (run_id, activity_id, tenant_id, try_number, closed) VALUES ($1, $6, $2, $7, false)
    ON CONFLICT (run_id, activity_id) DO UPDATE SET try_number = excluded.try_number
  )
  SELECT pg_notify('${LOG_CHANNEL}', $1::text || ':' || $4::bigint::text) WHERE $8::boolean`;

export interface DeltaBatch {
  readonly run: RunRef;
  readonly activityId: string;
  readonly tryNumber: number;
  readonly deltas: readonly NewDelta[];
}

/** Deltas that are stored already keep their place: a call whose answer was lost may be repeated. */
export async function appendDeltas(db: SealedDb, batch: DeltaBatch): Promise<DeltaOutcome> {
  const { run, activityId, tryNumber, deltas } = batch;
  const seal = await db.seals.ofRun(run.runId);
  return db.transaction(async (tx) => {
    const head = await lockHead(tx, run, seal);
    if (!head) return { kind: 'refused', reason: 'no-head' };
    if (head.closed) return { kind: 'refused', reason: 'run-closed' };
    const { block, stored, isBehind } = await blockOf(tx, batch);
    if (block?.closed) return { kind: 'refused', reason: 'block-closed' };
    if (block && block.try_number > tryNumber) return { kind: 'refused', reason: 'superseded' };
    if (isBehind || head.retoldFrom !== undefined) return { kind: 'refused', reason: 'lost' };
    const added = number(
      head,
      deltas.filter((delta) => !stored.has(delta.row.eventId)).map((delta) => delta.row),
    );
    if (added.length > 0 || block?.try_number !== tryNumber) {
      await tx.query(WRITE, [
        run.runId,
        run.tenant,
        eventRecords(added, seal),
        head.nextSequence + added.length,
        added.at(-1)?.timestampMs ?? head.lastTimestampMs,
        activityId,
        tryNumber,
        added.length > 0,
      ]);
    }
    const places = new Map([...stored, ...added.map((row) => [row.eventId, row] as const)]);
    return {
      kind: 'appended',
      rows: deltas.map(({ k, row }) => {
        const { sequence, timestampMs } = places.get(row.eventId) ?? {
          sequence: -1,
          timestampMs: row.timestampMs,
        };
        return { k, sequence, timestampMs };
      }),
    };
  });
}

type Place = Pick<LogRow, 'sequence' | 'timestampMs'>;

interface StoredBlock {
  readonly block?: { readonly try_number: number; readonly closed: boolean };
  /** Of the batch's deltas, by their event. */
  readonly stored: Map<string, Place>;
  /** The delta before the batch's first is not there. */
  readonly isBehind: boolean;
}

/** The block, and which of the batch's deltas are stored, in one statement. */
async function blockOf(
  tx: Transaction,
  { run: { tenant, runId }, activityId, deltas }: DeltaBatch,
): Promise<StoredBlock> {
  const [first] = deltas;
  const before = first && first.k > 0 ? eventIdOf(runId, deltaKey(activityId, first.k - 1)) : '';
  const found = await tx.query<{
    try_number: number;
    closed: boolean;
    event_id: string | null;
    sequence: number;
    timestamp_ms: number;
  }>(
    `SELECT b.try_number, b.closed, e.event_id, e.sequence, e.timestamp_ms
     FROM run_blocks b
     LEFT JOIN run_events e ON e.run_id = b.run_id AND e.tenant_id = b.tenant_id AND e.event_id = ANY($3::text[])
     WHERE b.run_id = $1 AND b.tenant_id = $4 AND b.activity_id = $2`,
    [runId, activityId, [before, ...deltas.map((delta) => delta.row.eventId)], tenant],
  );
  const stored = new Map<string, Place>();
  for (const row of found) {
    if (row.event_id !== null)
      stored.set(row.event_id, { sequence: row.sequence, timestampMs: row.timestamp_ms });
  }
  const isBehind = before !== '' && !stored.delete(before);
  return { block: found[0], stored, isBehind };
}

/** Closes the block for ever under the head's lock, and returns what it holds. */
export async function closeBlock(
  db: SealedDb,
  run: RunRef,
  activityId: string,
): Promise<readonly LogRow[]> {
  const { tenant, runId } = run;
  await db.transaction(async (tx) => {
    await tx.query('SELECT 1 FROM run_heads WHERE run_id = $1 AND tenant_id = $2 FOR UPDATE', [
      runId,
      tenant,
    ]);
    await tx.query(
      `INSERT INTO run_blocks (run_id, activity_id, tenant_id, try_number, closed)
       SELECT run_id, $2::text, tenant_id, 0, true FROM runs WHERE run_id = $1 AND tenant_id = $3
       ON CONFLICT (run_id, activity_id) DO UPDATE SET closed = true`,
      [runId, activityId, tenant],
    );
  });
  // Nothing slips in any more.
  return storedDeltas(db, run, activityId);
}

/** In the order streamed. */
export async function storedDeltas(
  db: SealedDb,
  { tenant, runId }: RunRef,
  activityId: string,
): Promise<readonly LogRow[]> {
  const records = await db.query<EventRecord>(
    `SELECT ${EVENT_COLUMNS} FROM run_events WHERE run_id = $1 AND tenant_id = $3 AND block = $2 ORDER BY sequence`,
    [runId, activityId, tenant],
  );
  return logRowsOf(db.seals, records);
}
