// Summaries of runs for lists: kept with the head by whatever moves it; and the rows by which those that wait for a
// person are found in the order of their deadlines.
import { ASKS_A_PERSON } from '../../rules/status.ts';
import type { RunRef, RunSummary } from '../../ports/runs.ts';
import type { Queries, SqlValue } from './db.ts';
import { atRest, PLACES, type Seal } from './seals.ts';

/** Stands for no deadline: behind every other. */
const NEVER_MS = Number.MAX_SAFE_INTEGER;

/** summary, and until_ms, since_ms, last_until_ms of `run_asks`: null where the run asks nobody. */
export function summaryValues(
  runId: string,
  summary: RunSummary,
  seal: Seal | undefined,
): SqlValue[] {
  const asked = summary.waits.filter(({ kind }) => ASKS_A_PERSON[kind]);
  const untils = asked.map(({ deadlineMs = NEVER_MS }) => deadlineMs);
  const sinces = asked.map(({ requestedAtMs }) => requestedAtMs);
  return [
    storedSummary(runId, summary, seal),
    ...(asked.length === 0
      ? [null, null, null]
      : [Math.min(...untils), Math.min(...sinces), Math.max(...untils)]),
  ];
}

interface Summed {
  readonly summary: RunSummary;
  readonly seal: Seal | undefined;
}

/** Times stay when its run is erased; nobody is asked anything then. */
function storedSummary(runId: string, summary: RunSummary, seal: Seal | undefined): string {
  const kept = JSON.stringify({ ...summary, waits: [] });
  return atRest(seal, { place: PLACES.summary(runId), json: JSON.stringify(summary), kept });
}

/** Of a head that was put anew, behind its lock. */
export async function keepSummary(
  db: Queries,
  { runId, tenant }: RunRef,
  { summary, seal }: Summed,
): Promise<void> {
  await db.query(
    `WITH summed AS (
       UPDATE run_heads SET summary = $3 WHERE run_id = $1 AND tenant_id = $2
     ),
     unasked AS (
       DELETE FROM run_asks WHERE run_id = $1 AND tenant_id = $2 AND $4::bigint IS NULL
     )
     INSERT INTO run_asks (run_id, tenant_id, until_ms, since_ms, last_until_ms)
     SELECT $1::text, $2::text, $4::bigint, $5::bigint, $6::bigint WHERE $4::bigint IS NOT NULL
     ON CONFLICT (run_id) DO UPDATE SET until_ms = excluded.until_ms, since_ms = excluded.since_ms,
       last_until_ms = excluded.last_until_ms`,
    [runId, tenant, ...summaryValues(runId, summary, seal)],
  );
}
