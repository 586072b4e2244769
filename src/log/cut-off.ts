// Streams of a run whose execution ended without its workflow code (architecture §3.1, §3.5): what the log holds of
// each is given to translate for the closing entry. Nothing is changed here: the append of the ending closes their
// blocks, and is refused when a delta came meanwhile, so neither a crash nor another process stands between what is
// read and written.
import { readDelta } from '../rules/deltas.ts';
import { cutOffItem, type OpenItem } from '../rules/endings.ts';
import { blockOfKey } from '../rules/ids.ts';
import type { LogRow, LogStore } from '../ports/log.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Translation } from '../translate/translate.ts';
import { expanded } from './places.ts';

type DeltaRow = Pick<LogRow, 'type' | 'nodeId' | 'payload'>;

/** Undefined for a block of a tool's progress, which needs no closing event. */
function itemOf(activityId: string, rows: readonly DeltaRow[]): OpenItem | undefined {
  const [first] = rows;
  if (!first) return undefined;
  const { nodeId, type, payload } = first;
  const text = rows.map((row) => readDelta(row.type, row.payload).piece.text).join('');
  const { base } = readDelta(type, payload).form;
  return cutOffItem(activityId, { type, nodeId, base, text });
}

/** What is open of these blocks, always in the same order: a rebuild asks with the same ones. */
export function cutOffItems(blocks: ReadonlyMap<string, readonly DeltaRow[]>): OpenItem[] {
  return [...blocks.keys()]
    .sort()
    .flatMap((activityId) => itemOf(activityId, blocks.get(activityId) ?? []) ?? []);
}

/** Deltas of several streams, by their activity. */
export function blocksOf(deltas: readonly LogRow[]): Map<string, LogRow[]> {
  const blocks = new Map<string, LogRow[]>();
  for (const delta of deltas) {
    const activityId = blockOfKey(delta.key) ?? '';
    const block = blocks.get(activityId) ?? [];
    block.push(delta);
    blocks.set(activityId, block);
  }
  return blocks;
}

export interface CutOff {
  readonly openBlocks: readonly OpenItem[];
  /** Where the log ended before it was read. */
  readonly nextSequence: number;
}

/** What the log holds now of the streams that the ending in this page cut off. */
export async function readCutOff(
  log: LogStore,
  run: RunRef,
  { cutOff = [], closedBlocks, deltas }: Translation,
): Promise<CutOff> {
  const recorded = blocksOf(expanded(run.runId, deltas));
  const tail = await log.tail(run);
  const open = (await log.openBlocks(run)).filter((id) => !closedBlocks.includes(id));
  const blocks = new Map<string, readonly LogRow[]>();
  for (const activityId of new Set([...open, ...cutOff])) {
    const rows = recorded.get(activityId) ?? (await log.storedDeltas(run, activityId));
    blocks.set(activityId, rows);
  }
  return { openBlocks: cutOffItems(blocks), nextSequence: tail?.nextSequence ?? 0 };
}
