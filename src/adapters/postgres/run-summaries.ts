// Summaries of runs for lists: kept with the head by its append, or by whoever had to make one; and the
// rows by which those that wait for a person are found in the order of their deadlines.
import { ASKS_A_PERSON } from '../../rules/status.ts';
import type { Head, HistoryCursor } from '../../ports/log.ts';
import type { RunRef, RunSummary } from '../../ports/runs.ts';
import type { Queries, SqlValue } from './db.ts';
import { PLACES, type Seal } from './seals.ts';

/** Stands for no deadline: behind every other. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;

/**
 * The head's summary is of where its log stands. As a CASE, because the planner takes an equation for rare: it would
 * read all that waits for one page.
 */
export const IS_SUMMED =
  "CASE WHEN h.summary_of = h.temporal_run_id || ':' || h.history_event_id THEN true ELSE false END";

/** summary, summary_of, and until_ms, since_ms, last_until_ms of `run_asks`; without a summary there is none of this place in the log. */
export function summaryValues(
  at: HistoryCursor & Pick<Head, 'runId'>,
  summary: RunSummary | undefined,
  seal: Seal | undefined,
): SqlValue[] {
  if (!summary) return [null, null, null, null, null];
  const asked = summary.waits.filter(({ kind }) => ASKS_A_PERSON[kind]);
  const untils = asked.map(({ deadlineMs = NEVER_MS }) => deadlineMs);
  const sinces = asked.map(({ requestedAtMs }) => requestedAtMs);
  return [
    storedSummary(at.runId, summary, seal),
    `${at.temporalRunId}:${at.historyEventId}`,
    ...(asked.length === 0
      ? [null, null, null]
      : [Math.min(...untils), Math.min(...sinces), Math.max(...untils)]),
  ];
}

interface Summed {
  readonly at: HistoryCursor;
  readonly summary: RunSummary;
  readonly seal: Seal | undefined;
}

/** Times stay when its run is erased; nobody is asked anything then. */
function storedSummary(runId: string, summary: RunSummary, seal: Seal | undefined): string {
  const text = JSON.stringify(summary);
  const kept = JSON.stringify({ ...summary, waits: [] });
  return seal ? seal.text(PLACES.summary(runId), text, kept) : text;
}

/** One statement, behind the head's lock: an append that comes first makes this one void. */
export async function summarize(
  db: Queries,
  { runId, tenant }: RunRef,
  { at, summary, seal }: Summed,
): Promise<void> {
  await db.query(
    `WITH summed AS (
       UPDATE run_heads SET summary = $3, summary_of = $4
       WHERE run_id = $1 AND tenant_id = $2 AND temporal_run_id || ':' || history_event_id = $4::text
       RETURNING 1
     ),
     asked AS (
       INSERT INTO run_asks (run_id, tenant_id, until_ms, since_ms, last_until_ms)
       SELECT $1::text, $2::text, $5::bigint, $6::bigint, $7::bigint FROM summed WHERE $5::bigint IS NOT NULL
       ON CONFLICT (run_id) DO UPDATE SET until_ms = excluded.until_ms, since_ms = excluded.since_ms,
         last_until_ms = excluded.last_until_ms
     ),
     unasked AS (
       DELETE FROM run_asks WHERE run_id = $1 AND tenant_id = $2 AND $5::bigint IS NULL AND EXISTS (SELECT 1 FROM summed)
     )
     SELECT 1`,
    [runId, tenant, ...summaryValues({ ...at, runId }, summary, seal)],
  );
}
