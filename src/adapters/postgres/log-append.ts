// The append (architecture §3.2): one transaction that locks the heads, checks the cursors, numbers and clamps, and moves
// status, cursor and sequence of each together. Four round trips, for one run or a group of them: BEGIN, lock, write, COMMIT.
import { clampTimestamps } from '../../rules/clamp.ts';
import { HostError } from '../../rules/errors.ts';
import { deltaKey } from '../../rules/ids.ts';
import type { AppendBatch, AppendOutcome, Head, LogRow, NewRow } from '../../ports/log.ts';
import type { RunRef } from '../../ports/runs.ts';
import type { SealedDb, SqlValue, Transaction } from './db.ts';
import { AS_IT_IS, type Seal } from './seals.ts';
import { summaryValues } from './run-summaries.ts';
import { groupRecords, HEAD_COLUMNS, headOf, INSERT_GROUP, storedHead } from './rows.ts';
import type { HeadRecord } from './rows.ts';

export const LOG_CHANNEL = 'openwop_log';

/** The lock that every change of a run's log takes first. */
export async function lockHead(
  tx: Transaction,
  { tenant, runId }: RunRef,
  seal: Seal | undefined,
): Promise<Head | undefined> {
  const [record] = await tx.query<HeadRecord>(
    `SELECT ${HEAD_COLUMNS} FROM run_heads WHERE run_id = $1 AND tenant_id = $2 FOR UPDATE`,
    [runId, tenant],
  );
  return record && headOf(record, seal?.open ?? AS_IT_IS);
}

/** Keeps the end of run $1 of tenant $2, where it has a parent or children, until it is told. Conditions may follow. */
export const KEEP_END = `
    INSERT INTO run_ends (tenant_id, run_id, ended_at_ms)
    SELECT $2::text, $1::text, (extract(epoch FROM clock_timestamp()) * 1000)::bigint WHERE EXISTS (
      SELECT 1 FROM session_runs WHERE run_id = $1 AND tenant_id = $2 AND parent_run_id IS NOT NULL
      UNION ALL SELECT 1 FROM session_runs WHERE tenant_id = $2 AND parent_run_id = $1)`;

/** What a group moves ($1) and adds ($2), the blocks that it closes ($3), and the runs it is about ($4). */
const WRITE = `
  WITH moving AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::text::json) AS x(run_id text, tenant_id text, next_sequence bigint,
      last_timestamp_ms bigint, temporal_run_id text, history_event_id bigint, token text, status text, closed boolean,
      translate_state text, snapshot text, summary text, until_ms bigint, since_ms bigint,
      last_until_ms bigint, told boolean, segment_index integer, segment_run_id text)
  ),
  closing AS MATERIALIZED (
    SELECT * FROM json_to_recordset($3::text::json) AS x(run_id text, tenant_id text, activity_id text)
  ),
  added AS (${INSERT_GROUP}),
  moved AS (
    UPDATE run_heads h SET next_sequence = m.next_sequence, last_timestamp_ms = m.last_timestamp_ms,
      temporal_run_id = m.temporal_run_id, history_event_id = m.history_event_id, token = m.token, status = m.status,
      closed = m.closed, translate_state = m.translate_state, snapshot = m.snapshot, problem = NULL,
      summary = m.summary
    FROM moving m WHERE h.run_id = ANY($4::text[]) AND h.run_id = m.run_id AND h.tenant_id = m.tenant_id
  ),
  recorded AS (
    INSERT INTO run_segments (run_id, segment_index, tenant_id, temporal_run_id, closed)
    SELECT run_id, segment_index, tenant_id, segment_run_id, closed OR temporal_run_id <> segment_run_id
    FROM moving WHERE segment_index IS NOT NULL
    ON CONFLICT DO NOTHING
  ),
  asked AS (
    INSERT INTO run_asks (run_id, tenant_id, until_ms, since_ms, last_until_ms)
    SELECT run_id, tenant_id, until_ms, since_ms, last_until_ms FROM moving WHERE until_ms IS NOT NULL
    ON CONFLICT (run_id) DO UPDATE SET until_ms = excluded.until_ms, since_ms = excluded.since_ms,
      last_until_ms = excluded.last_until_ms
  ),
  unasked AS (
    DELETE FROM run_asks a USING moving m
    WHERE a.run_id = ANY($4::text[]) AND a.run_id = m.run_id AND a.tenant_id = m.tenant_id AND m.until_ms IS NULL
  ),
  sealed AS (
    INSERT INTO run_blocks (run_id, activity_id, tenant_id, try_number, closed)
    SELECT run_id, activity_id, tenant_id, 0, true FROM closing
    ON CONFLICT (run_id, activity_id) DO UPDATE SET closed = true
  ),
  cut_off AS (
    UPDATE run_blocks b SET closed = true FROM moving m
    WHERE b.run_id = ANY($4::text[]) AND b.run_id = m.run_id AND b.tenant_id = m.tenant_id AND m.closed AND NOT b.closed
      AND NOT EXISTS (SELECT FROM closing c WHERE c.run_id = b.run_id AND c.activity_id = b.activity_id)
  ),
  told AS (
    INSERT INTO run_ends (tenant_id, run_id, ended_at_ms)
    SELECT m.tenant_id, m.run_id, openwop_now_ms() FROM moving m WHERE m.closed AND (
      EXISTS (SELECT 1 FROM session_runs s
        WHERE s.run_id = m.run_id AND s.tenant_id = m.tenant_id AND s.parent_run_id IS NOT NULL)
      OR EXISTS (SELECT 1 FROM session_runs s WHERE s.tenant_id = m.tenant_id AND s.parent_run_id = m.run_id))
    ON CONFLICT DO NOTHING
  )
  SELECT pg_notify('${LOG_CHANNEL}', run_id || ':' || next_sequence::text) FROM moving WHERE told`;

/** What one batch of a group makes of its head. */
interface Move {
  readonly before: Head;
  readonly head: Head;
  readonly rows: readonly LogRow[];
  readonly batch: AppendBatch;
  readonly seal: Seal | undefined;
}

/** What seals each run of a group that has a subject. */
type SealsOfRuns = ReadonlyMap<string, Seal | undefined>;

/** `locked`: somebody else holds the head's lock, or there is none. */
export type GroupOutcome = AppendOutcome | 'locked';

/**
 * Batches of different runs in one transaction: each as if it came alone. A head's lock that is not free is waited for with
 * `wait` alone; for those of rows beside heads a group waits GROUP_LOCK_MS (isLockTimeout). Throws HostError run_not_found where one of them, that is waited for, has no head; SqlError when a fact is
 * appended twice (a bug in its author), and subject_erased: then nothing of the group is stored.
 */
export async function appendGroup(
  db: SealedDb,
  batches: readonly AppendBatch[],
  wait: boolean,
): Promise<GroupOutcome[]> {
  const sealing = batches.map(
    async ({ run }) => [run.runId, await db.seals.ofRun(run.runId)] as const,
  );
  const seals: SealsOfRuns = new Map(await Promise.all(sealing));
  return db.transaction(async (tx) => {
    const heads = await lockHeads(tx, { batches, seals, wait });
    const moves: Move[] = [];
    const outcomes: GroupOutcome[] = [];
    for (const batch of batches) {
      const head = heads.get(batch.run.runId);
      if (head?.tenant !== batch.run.tenant) {
        if (wait) throw new HostError('run_not_found', { runId: batch.run.runId });
        outcomes.push('locked');
      } else if (head.closed) outcomes.push({ kind: 'closed', head });
      else if (isStale(head, batch)) outcomes.push({ kind: 'stale', head });
      else {
        const added = await withoutStoredDeltas(tx, head, batch);
        if (!added) {
          outcomes.push({ kind: 'lost', head });
          continue;
        }
        const move = moveOf(head, batch, added);
        moves.push({ ...move, seal: seals.get(head.runId) });
        outcomes.push({ kind: 'appended', head: move.head });
      }
    }
    if (moves.length > 0) await tx.query(WRITE, valuesOf(moves));
    return outcomes;
  });
}

/** Longest wait of a group for a row beside a head that somebody else has locked, in ms. */
const GROUP_LOCK_MS = 250;
/** In the statement that locks the heads: a round trip of its own would be one more for each append. */
const LIMITED = `WITH limited AS MATERIALIZED (
  SELECT set_config('lock_timeout', '${GROUP_LOCK_MS}ms', true) <> '' AS is_set)`;

/** In the order of their ids, so that two groups do not wait for each other. */
async function lockHeads(
  tx: Transaction,
  {
    batches,
    seals,
    wait,
  }: {
    readonly batches: readonly AppendBatch[];
    readonly seals: SealsOfRuns;
    readonly wait: boolean;
  },
): Promise<ReadonlyMap<string, Head>> {
  const records = await tx.query<HeadRecord>(
    `${wait ? '' : LIMITED}
     SELECT ${HEAD_COLUMNS} FROM run_heads
     WHERE run_id = ANY($1::text[]) AND tenant_id = ANY($2::text[]) ${wait ? '' : 'AND (SELECT is_set FROM limited)'}
     ORDER BY run_id FOR UPDATE ${wait ? '' : 'SKIP LOCKED'}`,
    [batches.map(({ run }) => run.runId), [...new Set(batches.map(({ run }) => run.tenant))]],
  );
  return new Map(
    records.map((record) => {
      const { run_id: runId } = record;
      return [runId, headOf(record, seals.get(runId)?.open ?? AS_IT_IS)];
    }),
  );
}

function isStale(head: Head, { behind, seenSequence }: AppendBatch): boolean {
  return (
    head.temporalRunId !== behind.temporalRunId ||
    head.historyEventId !== behind.historyEventId ||
    head.nextSequence !== (seenSequence ?? head.nextSequence)
  );
}

function moveOf(before: Head, batch: AppendBatch, added: readonly NewRow[]): Omit<Move, 'seal'> {
  const rows = number(before, added);
  const head: Head = {
    ...before,
    ...batch.cursor,
    nextSequence: before.nextSequence + rows.length,
    lastTimestampMs: rows.at(-1)?.timestampMs ?? before.lastTimestampMs,
    status: batch.status,
    closed: batch.closed,
    translateState: batch.translateState,
    snapshot: batch.fold(before.snapshot, rows),
    problem: undefined,
  };
  return { before, head, rows, batch };
}

function valuesOf(moves: readonly Move[]): SqlValue[] {
  const moving = moves.map(({ before, head, rows, batch, seal }) => {
    const [summary, untilMs, sinceMs, lastUntilMs] = summaryValues(
      head.runId,
      batch.summary(head.snapshot),
      seal,
    );
    const [translateState, snapshot] = storedHead(head, seal);
    return {
      run_id: head.runId,
      tenant_id: head.tenant,
      next_sequence: head.nextSequence,
      last_timestamp_ms: head.lastTimestampMs,
      temporal_run_id: head.temporalRunId,
      history_event_id: head.historyEventId,
      token: head.token,
      status: head.status,
      closed: head.closed,
      translate_state: translateState,
      snapshot,
      summary,
      until_ms: untilMs,
      since_ms: sinceMs,
      last_until_ms: lastUntilMs,
      told: rows.length > 0 || head.status !== before.status,
      segment_index: batch.segment?.index,
      segment_run_id: batch.segment?.temporalRunId,
    };
  });
  const closing = moves.flatMap(({ head, batch }) =>
    [...new Set(batch.closedBlocks)].map((activityId) => ({
      run_id: head.runId,
      tenant_id: head.tenant,
      activity_id: activityId,
    })),
  );
  return [
    JSON.stringify(moving),
    groupRecords(moves.map(({ head, rows, seal }) => ({ tenant: head.tenant, rows, seal }))),
    JSON.stringify(closing),
    moves.map(({ head }) => head.runId),
  ];
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

/**
 * Recorded deltas were stored when they were streamed. Undefined where one is missing now, since it would get a wrong sequence;
 * a log without their places takes it.
 */
async function withoutStoredDeltas(
  tx: Transaction,
  head: Head,
  batch: AppendBatch,
): Promise<readonly NewRow[] | undefined> {
  const prefixes = batch.closedBlocks.map((activityId) => deltaKey(activityId, 0).slice(0, -1));
  const isDelta = (row: NewRow): boolean => prefixes.some((prefix) => row.key.startsWith(prefix));
  const deltas = batch.rows.filter(isDelta);
  if (deltas.length === 0) return batch.rows;
  // A stream may be recorded twice: by its seal and by its own late result.
  const eventIds = [...new Set(deltas.map(({ eventId }) => eventId))];
  const records = await tx.query<{ event_id: string }>(
    'SELECT event_id FROM run_events WHERE run_id = $1 AND tenant_id = $3 AND event_id = ANY($2::text[])',
    [batch.run.runId, eventIds, batch.run.tenant],
  );
  const stored = new Set(records.map(({ event_id: eventId }) => eventId));
  if (head.retoldFrom === undefined && stored.size < eventIds.length) return undefined;
  return batch.rows.filter((row) => !isDelta(row) || !stored.has(row.eventId));
}
