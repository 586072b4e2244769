// A run as it was at an event of its log: its rows up to there, folded as the log folds them. Nothing is asked of Temporal.
import { payloadOf } from '../rules/damaged.ts';
import { erasedSnapshot } from '../rules/erased.ts';
import { HostError } from '../rules/errors.ts';
import { eventRow } from '../rules/events.ts';
import { isJsonObject, type JsonObject } from '../rules/json.ts';
import { foldStatus, INITIAL_STATUS, statusOf } from '../rules/status.ts';
import { fold, openInterrupts, snapshotOf, type OpenInterrupt } from '../log/fold.ts';
import type { Head, LogRow } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import type { RunSnapshot } from '../../schemas/types.generated.ts';
import type { RunsDeps } from './deps.ts';

/** Rows that are folded for one answer. What stands behind them is told by the log itself. */
export const MAX_FOLDED_ROWS = 20_000;

export interface RunAt {
  readonly event: LogRow;
  /** Entries that the log has now. */
  readonly length: number;
  readonly snapshot: RunSnapshot;
  /** What waited for an answer then, oldest first. */
  readonly open: readonly OpenInterrupt[];
  /** Error code of each node that failed by then, by node id: of its last failure. */
  readonly nodeErrors: ReadonlyMap<string, string>;
}

/** Throws not_found where the log has no such event, and capability_not_provided behind MAX_FOLDED_ROWS. */
export async function runAt(
  { log }: { readonly log: Pick<RunsDeps['log'], 'fresh' | 'rows'> },
  run: RunRow,
  sequence: number,
): Promise<RunAt & { readonly stale: boolean }> {
  const { head, stale } = await log.fresh(run);
  if (!(sequence < head.nextSequence)) throw new HostError('not_found');
  if (sequence >= MAX_FOLDED_ROWS)
    throw new HostError('capability_not_provided', {
      capability: `runs as they were, behind event ${MAX_FOLDED_ROWS - 1}`,
    });
  let past: Pick<Head, 'snapshot'> = { snapshot: null };
  let status = INITIAL_STATUS;
  let event: LogRow | undefined;
  const nodeErrors = new Map<string, string>();
  for await (const rows of log.rows(run, { limit: sequence + 1 })) {
    past = { snapshot: fold(past.snapshot, rows, run.input.definition) };
    for (const row of rows) {
      const payload = payloadOf(row);
      status = foldStatus(status, row.type, payload);
      const code = errorOf(row, payload);
      if (row.nodeId !== undefined && code !== undefined) nodeErrors.set(row.nodeId, code);
    }
    event = rows.at(-1);
  }
  if (!event) throw new HostError('not_found');
  if (run.erasedAtMs !== undefined) past = { snapshot: erasedSnapshot(past.snapshot) };
  const was: Head = { ...head, ...past, status: statusOf(status), nextSequence: sequence + 1 };
  const snapshot = snapshotOf(was, run, event.timestampMs);
  const open = openInterrupts(was.snapshot);
  return { event, length: head.nextSequence, snapshot, open, nodeErrors, stale };
}

function errorOf({ type }: LogRow, { error }: JsonObject): string | undefined {
  if (eventRow(type).node !== 'failed' || !isJsonObject(error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
