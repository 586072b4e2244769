// Where the recorded deltas of a run stand among the entries of its log (architecture §3.5, §3.6): where they were streamed, or
// where their recording is in history. The second is for a log whose streamed text was lost with the database that held it.
import { clampTimestamps } from '../rules/clamp.ts';
import { expandDeltas } from '../rules/deltas.ts';
import type { LogRow, NewRow } from '../ports/log.ts';
import type { PlacedDeltas } from '../translate/translate.ts';

interface PlacedRow {
  readonly row: LogRow;
  readonly entriesBefore: number;
}

/** Each once: a stream that was sealed may be recorded by its own result as well. */
function placedRows(runId: string, recorded: readonly PlacedDeltas[]): PlacedRow[] {
  const byKey = new Map<string, PlacedRow>();
  for (const { entriesBefore, ...recording } of recorded)
    for (const delta of expandDeltas(runId, recording))
      if (!byKey.has(delta.key)) byKey.set(delta.key, { row: { runId, ...delta }, entriesBefore });
  return [...byKey.values()];
}

/** All recorded deltas of a run, with the sequences that they were streamed at. */
export function expanded(runId: string, recorded: readonly PlacedDeltas[]): LogRow[] {
  return placedRows(runId, recorded).map(({ row }) => row);
}

/**
 * Entries and deltas in their one order, each delta at the sequence that it was streamed at; `kept` are deltas that only the log
 * knows. Undefined where that cannot be: two deltas have one sequence, entries are missing before one, or an entry would stand
 * before a delta that was recorded before it was told. The log has then lost what stood between them.
 */
export function asStreamed(
  runId: string,
  entries: readonly NewRow[],
  { recorded, kept = [] }: { recorded: readonly PlacedDeltas[]; kept?: readonly LogRow[] },
): LogRow[] | undefined {
  const deltas = [
    ...placedRows(runId, recorded),
    ...kept.map((row) => ({ row, entriesBefore: Infinity })),
  ].sort((a, b) => a.row.sequence - b.row.sequence);
  const rows: NewRow[] = [];
  let taken = 0;
  for (const { row, entriesBefore } of deltas) {
    const free = row.sequence - rows.length;
    if (free < 0 || taken + free > Math.min(entries.length, entriesBefore)) return undefined;
    rows.push(...entries.slice(taken, taken + free), row);
    taken += free;
  }
  return inOrder([...rows, ...entries.slice(taken)]);
}

/** Entries and deltas in their one order, each delta before what was told after its recording. */
export function asRecorded(
  runId: string,
  entries: readonly NewRow[],
  recorded: readonly PlacedDeltas[],
): LogRow[] {
  return inOrder(beforeClosings(runId, entries, recorded));
}

/** The same, without sequences: for an append. */
export function beforeClosings(
  runId: string,
  entries: readonly NewRow[],
  recorded: readonly PlacedDeltas[],
): NewRow[] {
  const rows: NewRow[] = [];
  let taken = 0;
  for (const { row, entriesBefore } of placedRows(runId, recorded)) {
    rows.push(...entries.slice(taken, entriesBefore));
    taken = Math.max(taken, entriesBefore);
    rows.push(withoutSequence(row));
  }
  return [...rows, ...entries.slice(taken)];
}

const withoutSequence = ({ sequence: _, ...row }: LogRow): NewRow => row;

/** With sequences, and times as the append clamps them. */
function inOrder(rows: readonly NewRow[]): LogRow[] {
  const times = clampTimestamps(
    0,
    rows.map(({ timestampMs }) => timestampMs),
  );
  return rows.map((row, sequence) => ({
    ...row,
    sequence,
    timestampMs: times[sequence] ?? row.timestampMs,
  }));
}
