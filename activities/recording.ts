// What a fork is made from, page by page (architecture §6). A page is a function of the source's log up to where it was
// forked, and of the history that this came of: each try gives the same.
import { jsonBytes } from '../src/rules/json.ts';
import type { StepResult } from '../src/rules/journal.ts';
import {
  renamed,
  type Batch,
  type RecordedEntry,
  type RecordingPage,
} from '../src/rules/recording.ts';
import type { ReadRecordingInput } from './contract.ts';
import type { ActivityPorts } from './ports.ts';

/** Of one page, but for an item that is larger alone. */
const PAGE_BYTES = 400 * 1024;

export async function readRecording(
  { log, stores }: Pick<ActivityPorts, 'log' | 'stores'>,
  { tenant, runId, fork, page }: ReadRecordingInput,
): Promise<StepResult<null>> {
  const { sourceRunId, length, fromSeq } = fork;
  const { entries, batches } = await log.recording(stores.runs.ref(tenant, sourceRunId), length);
  const pages = [
    ...inPages(entries).map((some) => ({ entries: some, batches: [] })),
    ...inPages(batches).map((some) => ({ entries: [], batches: some })),
  ];
  const { entries: own = [], batches: given = [] } = pages[page] ?? {};
  // What the fork was given speaks of the fork; what its source stated stays that run's.
  const before = pages.slice(0, page).reduce((sum, it) => sum + it.entries.length, 0);
  const recording: RecordingPage = {
    ...{ sourceRunId, entries: own, batches: renamed(given, sourceRunId, runId) },
    prefix: Math.max(0, Math.min(own.length, fromSeq - before)),
    isLast: page >= pages.length - 1,
  };
  return { output: null, events: [], recording };
}

function inPages<Item extends Batch | RecordedEntry>(items: readonly Item[]): Item[][] {
  const pages: Item[][] = [];
  let bytes = Infinity;
  for (const item of items) {
    const itemBytes = jsonBytes(item);
    if (bytes + itemBytes > PAGE_BYTES) {
      pages.push([]);
      bytes = 0;
    }
    pages.at(-1)?.push(item);
    bytes += itemBytes;
  }
  return pages;
}
