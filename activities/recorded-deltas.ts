// The compact record of a delta block as it goes into history (design §3.5), made from the rows that the log stores.
import type { RecordedDeltas } from '../src/core/journal.ts';
import type { JsonObject } from '../src/core/json.ts';
import type { LogRow } from '../src/ports.ts';

export const DELTA_TYPE = 'agent.reasoning.delta';

/** Text of all deltas of a block. */
export function deltaText(rows: readonly LogRow[]): string {
  return rows.map((row) => payloadOf(row).delta).join('');
}

function payloadOf(row: LogRow): JsonObject & { delta: string } {
  return JSON.parse(row.payload) as JsonObject & { delta: string };
}

/** Undefined when the block holds no delta. `rows` are all rows of the block in their order. */
export function recordDeltas(
  activityId: string,
  rows: readonly LogRow[],
): RecordedDeltas | undefined {
  const [first] = rows;
  if (!first) return undefined;
  const base: JsonObject = { ...payloadOf(first) };
  delete base.delta;
  delete base.sequence;
  let text = '';
  const cuts: number[] = [];
  const sequences: [number, number][] = [];
  const times: number[] = [];
  let before = 0;
  for (const row of rows) {
    text += payloadOf(row).delta;
    cuts.push(text.length);
    const open = sequences.at(-1);
    if (open && open[0] + open[1] === row.sequence) open[1]++;
    else sequences.push([row.sequence, 1]);
    times.push(row.timestampMs - before);
    before = row.timestampMs;
  }
  const nodeId = first.nodeId === undefined ? {} : { nodeId: first.nodeId };
  return { activityId, type: first.type, ...nodeId, base, text, cuts, sequences, times };
}
