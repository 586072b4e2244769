// What a fork is made from, page by page (architecture §6). A page is a function of the source's log up to where it was
// forked, and of the history that this came of: each try gives the same.
import { Context } from '@temporalio/activity';
import { jsonBytes } from '../src/rules/json.ts';
import type { StepResult } from '../src/rules/journal.ts';
import {
  ownFrom,
  renamed,
  wholeBatches,
  type Batch,
  type RecordedEntry,
  type Recording,
  type RecordingPage,
  type Stimulus,
} from '../src/rules/recording.ts';
import type { ForkOf } from '../src/rules/run-input.ts';
import type { CausedBy } from '../src/rules/journal.ts';
import type { ForkChildrenInput, ReadRecordingInput } from './contract.ts';
import { Brief } from '../src/system/recent.ts';
import { inheritAll } from './former-effects.ts';
import { beating } from './heartbeat.ts';
import type { ActivityPorts } from './ports.ts';

/** Of one page, but for an item that is larger alone. */
const PAGE_BYTES = 400 * 1024;

/**
 * Recordings that are kept while their pages are asked for, since each is read from its whole history; and how long, in ms,
 * after the last page. They are in the clear: once nobody asks they do not stay in memory.
 */
const KEPT = 4;
const KEPT_MS = 30_000;

type Ports = Pick<ActivityPorts, 'log' | 'stores'>;

type Pages = Promise<readonly Recording[]>;

const kept = new WeakMap<Ports['log'], Brief<string, Pages>>();

export async function readRecording(
  ports: Ports,
  { tenant, runId, fork, page, startedBy }: ReadRecordingInput,
): Promise<StepResult<null>> {
  const { sourceRunId } = fork;
  const pages = await pagesOf(ports, tenant, fork);
  // What the source has come to need since its fork was noted.
  const { runs, content } = ports.stores;
  if (page === 0) await content.share(runs.ref(tenant, sourceRunId), runs.ref(tenant, runId));
  const { entries: own = [], batches: given = [] } = pages[page] ?? {};
  const from = ownFrom(
    fork,
    pages.flatMap(({ entries }) => entries),
  );
  // What the fork was given speaks of the fork; what its source stated stays that run's.
  const before = pages.slice(0, page).reduce((sum, it) => sum + it.entries.length, 0);
  const recording: RecordingPage = {
    ...{ sourceRunId, batches: renamed(given, sourceRunId, runId) },
    entries: startedBy === undefined ? own : own.map((entry) => begunBy(startedBy, entry)),
    prefix: Math.max(0, Math.min(own.length, from - before)),
    isLast: page >= pages.length - 1,
  };
  return { output: null, events: [], recording };
}

/** What a child began with is its parent's, whose fork has another one. */
function begunBy(startedBy: CausedBy, entry: RecordedEntry): RecordedEntry {
  return typeof entry.causedBy === 'object' ? { ...entry, causedBy: startedBy } : entry;
}

/** Before the fork reads anything: what it cannot have with it, it does not begin without. */
export async function forkChildren(
  ports: ActivityPorts,
  { tenant, runId, fork }: ForkChildrenInput,
): Promise<StepResult<null>> {
  const { stores, children } = ports;
  const { cancellationSignal } = Context.current();
  return beating(async () => {
    await children.fork(stores.runs.ref(tenant, runId), await wholeOf(ports, tenant, fork), {
      signal: cancellationSignal,
      effects: {
        note: ({ input: { header } }, rows, keeper) =>
          inheritAll(ports, { tenant, runId: keeper.runId, header }, rows),
        recordingOf: (below) => wholeOf(ports, tenant, below),
      },
    });
    return { output: null, events: [] };
  });
}

async function wholeOf(ports: Ports, tenant: string, fork: ForkOf): Promise<Recording> {
  const pages = await pagesOf(ports, tenant, fork);
  return {
    batches: wholeBatches(pages.flatMap(({ batches }) => batches)),
    entries: pages.flatMap(({ entries }) => entries),
  };
}

function pagesOf(ports: Ports, tenant: string, fork: ForkOf): Pages {
  const { sourceRunId, length } = fork;
  const all = kept.get(ports.log) ?? new Brief<string, Pages>({ limit: KEPT, keptMs: KEPT_MS });
  kept.set(ports.log, all);
  const key = JSON.stringify([tenant, sourceRunId, length]);
  const known = all.get(key);
  if (known) return known;
  const pages = readPages(ports, tenant, fork);
  all.set(key, pages);
  pages.then(
    // It may have been read for longer than it is kept.
    () => all.set(key, pages),
    () => void (all.get(key) === pages && all.delete(key)),
  );
  return pages;
}

async function readPages(
  { log, stores }: Ports,
  tenant: string,
  { sourceRunId, length }: ForkOf,
): Promise<readonly Recording[]> {
  const { entries, batches } = await log.recording(stores.runs.ref(tenant, sourceRunId), length);
  return [
    ...inPages(entries).map((some) => ({ entries: some, batches: [] })),
    ...inPages(batches.flatMap(inParts)).map((some) => ({ entries: [], batches: some })),
  ];
}

/** A batch that is larger than a page, in parts of one page each. */
function inParts(batch: Batch): Batch[] {
  if (jsonBytes(batch) <= PAGE_BYTES) return [batch];
  const { stimuli, ...rest } = batch;
  const [first = [], ...more] = inPages(stimuli);
  const { atMs, position } = rest;
  const others = more.map((some) => ({
    atMs,
    position,
    stimuli: some,
    began: [],
    isMore: true as const,
  }));
  return [{ ...rest, stimuli: first }, ...others];
}

function inPages<Item extends Batch | RecordedEntry | Stimulus>(items: readonly Item[]): Item[][] {
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
