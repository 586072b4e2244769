// Streams of a run whose execution ended without its workflow code (design §3.1, §3.5): their blocks are closed here,
// and what the log holds of them is given to translate for the closing entry.
import { readDelta } from '../core/deltas.ts';
import { cutOffReasoning, type OpenItem } from '../core/endings.ts';
import type { LogRow, LogStore } from '../ports.ts';
import type { Translation } from '../translate/translate.ts';

/** Undefined for a block that shows no reasoning: a tool's progress needs no closing event. */
function itemOf(activityId: string, rows: readonly LogRow[]): OpenItem | undefined {
  const [first] = rows;
  if (first?.type !== 'agent.reasoning.delta') return undefined;
  const { nodeId, type, payload } = first;
  const text = rows.map((row) => readDelta(row.type, row.payload).piece.text).join('');
  return cutOffReasoning(activityId, { nodeId, base: readDelta(type, payload).form.base, text });
}

/**
 * Closed before the ending is appended, so that no delta comes behind the text; asked again after a crash in between,
 * the activities without an outcome lead to the same blocks.
 */
export async function closeCutOff(
  log: LogStore,
  runId: string,
  { cutOff = [], closedBlocks }: Translation,
): Promise<readonly OpenItem[]> {
  const candidates = new Set([...(await log.openBlocks(runId)), ...cutOff]);
  for (const activityId of closedBlocks) candidates.delete(activityId);
  const items: OpenItem[] = [];
  for (const activityId of candidates) {
    const item = itemOf(activityId, await log.closeBlock(runId, activityId));
    if (item) items.push(item);
  }
  return items;
}
