// The compact record of a delta block as it goes into history (architecture §3.5), made from the rows that the log
// stores.
import { readDelta } from '../src/rules/deltas.ts';
import type { RecordedDeltas } from '../src/rules/journal.ts';
import type { LogRow } from '../src/ports/log.ts';

/** Text of all deltas of a block, by channel; '' for deltas without one. */
export function deltaTexts(rows: readonly LogRow[]): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { type, payload } of rows) {
    const { text, channel = '' } = readDelta(type, payload).piece;
    texts.set(channel, (texts.get(channel) ?? '') + text);
  }
  return texts;
}

/** Undefined when the block holds no delta. `rows` are all rows of the block in their order. */
export function recordDeltas(
  activityId: string,
  rows: readonly LogRow[],
): RecordedDeltas | undefined {
  const [first] = rows;
  if (!first) return undefined;
  const { type } = first;
  let text = '';
  const cuts: number[] = [];
  const channels: [string, number][] = [];
  const sequences: [number, number][] = [];
  const times: number[] = [];
  let before = 0;
  for (const row of rows) {
    const { piece } = readDelta(type, row.payload);
    text += piece.text;
    cuts.push(text.length);
    if (piece.channel !== undefined) countChannel(channels, piece.channel);
    countSequence(sequences, row.sequence);
    times.push(row.timestampMs - before);
    before = row.timestampMs;
  }
  return {
    activityId,
    type,
    ...(first.nodeId === undefined ? {} : { nodeId: first.nodeId }),
    ...(first.causedBy === undefined ? {} : { causedBy: first.causedBy }),
    ...readDelta(type, first.payload).form,
    ...(channels.length === 0 ? {} : { channels }),
    text,
    cuts,
    sequences,
    times,
  };
}

function countChannel(runs: [string, number][], channel: string): void {
  const open = runs.at(-1);
  if (open?.[0] === channel) open[1]++;
  else runs.push([channel, 1]);
}

function countSequence(runs: [number, number][], sequence: number): void {
  const open = runs.at(-1);
  if (open && open[0] + open[1] === sequence) open[1]++;
  else runs.push([sequence, 1]);
}
