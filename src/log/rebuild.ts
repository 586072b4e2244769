// Rebuild (architecture §3.6): rows and head of a run, byte for byte, from its segments in Temporal or in the archive.
// Every recorded delta takes the sequence it had; the entries fill the free numbers in order; times are clamped as the
// append clamps them. What only the log knows, deltas that the end of a run cut off, is kept; a rebuild that would lose
// a row is refused.
//
// Where the database has lost rows that it had confirmed, recorded sequences may not fit any more. Such a log is told again,
// once and for ever (`retoldFrom`): each recorded delta stands before what closes its stream, and the run streams no more.
import type { OpenItem } from '../rules/endings.ts';
import { codeOf, HostError } from '../rules/errors.ts';
import { blockOfKey } from '../rules/ids.ts';
import type { JsonValue } from '../rules/json.ts';
import type { Head, HistoryCursor, LogRow, LogStore } from '../ports/log.ts';
import type { RunRef, RunRow, RunSummary } from '../ports/runs.ts';
import type { ErasedRun } from '../ports/subjects.ts';
import {
  historyEventIdOf,
  translate,
  type LogEntry,
  type PlacedDeltas,
} from '../translate/translate.ts';
import { readPage, type LogParts } from './pages.ts';
import { blocksOf, cutOffItems } from './cut-off.ts';
import { restoreErased } from './erased.ts';
import { fold, summaryOf } from './fold.ts';
import { asRecorded, asStreamed, expanded } from './places.ts';
import { readRows } from './rows.ts';
import { startFailedLog } from './start-failed.ts';

/** Times that a rebuild begins again because the live path went on meanwhile. */
const MAX_TRIES = 3;
/** Pages of one run, over all its segments. */
const MAX_PAGES = 10_000;
const RUNS_PER_PAGE = 100;

interface Told {
  readonly entries: LogEntry[];
  readonly deltas: PlacedDeltas[];
  /** Temporal run ids, in order. */
  readonly segments: string[];
  readonly cursor: HistoryCursor;
  readonly state: JsonValue;
  readonly status: Head['status'];
  readonly closed: boolean;
  /** Streams that had no closing when an ending came that no workflow code wrote. */
  readonly cutOff?: readonly string[];
}

/** The whole history of a run, as its log tells it. */
async function tell(
  parts: LogParts,
  run: RunRow,
  { temporalRunId, openBlocks }: { temporalRunId: string; openBlocks?: readonly OpenItem[] },
): Promise<Told> {
  const { runId } = run;
  const translateVersion = run.input.translateVersion;
  const entries: LogEntry[] = [];
  const deltas: PlacedDeltas[] = [];
  const segments = [temporalRunId];
  let cursor: HistoryCursor = { temporalRunId, historyEventId: 0, token: '' };
  let state: JsonValue = null;
  let status: Head['status'] = 'pending';
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await readPage(parts, { run, ...cursor }, 0);
    const behind = cursor.historyEventId;
    const events = page.events.filter((event) => historyEventIdOf(event) > behind);
    if (events.length === 0)
      return { entries, deltas, segments, cursor, state, status, closed: false };
    const told = translate(events, state, { runId, translateVersion, openBlocks });
    const before = entries.length;
    for (const recorded of told.deltas)
      deltas.push({ ...recorded, entriesBefore: before + recorded.entriesBefore });
    for (const entry of told.entries) entries.push(entry);
    ({ state, status } = told);
    cursor =
      told.next === undefined
        ? {
            temporalRunId: cursor.temporalRunId,
            historyEventId: told.cursorEventId,
            token: page.token,
          }
        : { temporalRunId: told.next, historyEventId: 0, token: '' };
    if (told.next !== undefined) segments.push(told.next);
    const { closed, cutOff } = told;
    if (closed) return { entries, deltas, segments, cursor, state, status, closed, cutOff };
  }
  throw new HostError('internal_error', { reason: `history of run ${runId} has no end` });
}

async function firstSegment({ stores }: LogParts, run: RunRow): Promise<string> {
  const segments = await stores.segments.ofRun(run);
  return segments.find(({ index }) => index === 0)?.temporalRunId ?? run.temporalRunId ?? '';
}

async function storedRows(log: LogStore, run: RunRef): Promise<LogRow[]> {
  const rows: LogRow[] = [];
  for await (const page of readRows(log, run)) for (const row of page) rows.push(row);
  return rows;
}

/** Deltas in the log that no result and no seal records; those that a fork began with are entries. */
function unrecorded(
  runId: string,
  stored: readonly LogRow[],
  { deltas, entries }: Pick<Told, 'deltas' | 'entries'>,
): LogRow[] {
  const known = new Set([...expanded(runId, deltas), ...entries].map(({ key }) => key));
  return stored.filter(({ key }) => blockOfKey(key) !== undefined && !known.has(key));
}

/** What the log held of streams that were cut off, as the live path saw it when it told the ending. */
function cutOffBlocks(
  runId: string,
  told: Told,
  kept: readonly LogRow[],
): ReadonlyMap<string, readonly LogRow[]> {
  const recorded = blocksOf(expanded(runId, told.deltas));
  const blocks = blocksOf(kept);
  for (const activityId of told.cutOff ?? []) {
    const rows = recorded.get(activityId);
    if (rows) blocks.set(activityId, rows);
  }
  return blocks;
}

export interface Rebuilt {
  readonly head: Head;
  readonly rows: readonly LogRow[];
}

interface Retraced extends Rebuilt {
  /** Temporal run ids, in order. */
  readonly segments: readonly string[];
  /** The first sequence of a stored row that stands elsewhere now. */
  readonly movedFrom: number | undefined;
  /** Activities whose streams are recorded. */
  readonly closedBlocks: readonly string[];
  /** The stored head, and rows that it has and the history does not tell. */
  readonly seen: Head | undefined;
  readonly lost: readonly LogRow[];
  /** As the append that made the head kept it. */
  readonly summary: RunSummary;
}

/** What `rebuild` would store, without storing it. Throws HostError run_not_found, history_missing and more. */
export async function retrace(
  parts: LogParts,
  { tenant, runId }: RunRef,
  how: { readonly isRetold?: boolean } = {},
): Promise<Retraced> {
  const { log } = parts.stores;
  const run = await parts.stores.runs.find(tenant, runId);
  if (!run) throw new HostError('run_not_found', { runId });
  const temporalRunId = await firstSegment(parts, run);
  if (temporalRunId === '') {
    if (run.startFailure) {
      const seen = await log.head(run);
      const failed = startFailedLog(run, run.startFailure);
      const summary = summaryOf(failed.head.snapshot, run);
      const none = { segments: [], closedBlocks: [], lost: [], movedFrom: undefined };
      return { ...failed, ...none, seen, summary };
    }
    throw new HostError('history_missing', { runId });
  }
  const isRetold = how.isRetold === true || run.retoldFrom !== undefined;
  let told = await tell(parts, run, { temporalRunId });
  const seen = await log.head(run);
  const stored = await storedRows(log, run);
  // While the run goes on, a result may still record them.
  const kept = told.closed && !isRetold ? unrecorded(runId, stored, told) : [];
  if (told.cutOff) {
    const openBlocks = cutOffItems(cutOffBlocks(runId, told, kept));
    told = await tell(parts, run, { temporalRunId, openBlocks });
  }
  const { entries, deltas } = told;
  const rows = isRetold
    ? asRecorded(runId, entries, deltas)
    : asStreamed(runId, entries, { recorded: deltas, kept });
  const known = rows ?? [...entries, ...expanded(runId, deltas)];
  const eventIds = new Set(known.map(({ eventId }) => eventId));
  const lost = stored.filter(
    ({ key, eventId }) => !eventIds.has(eventId) && !(isRetold && blockOfKey(key) !== undefined),
  );
  const closedBlocks = deltas.map(({ activityId }) => activityId);
  if (!rows) {
    if (lost.length > 0 || (await isStreaming(parts, run, closedBlocks)))
      return conflict(runId, STREAMING);
    return retrace(parts, run, { isRetold: true });
  }
  const head = headOf(run, told, rows);
  const moved = stored.find(({ sequence, eventId }) => rows[sequence]?.eventId !== eventId);
  const movedFrom = moved?.sequence;
  const retoldFrom = Math.min(
    run.retoldFrom ?? firstLost(runId, stored, told),
    movedFrom ?? Infinity,
  );
  return {
    head: isRetold ? { ...head, retoldFrom } : head,
    ...{ rows, movedFrom },
    ...{ segments: told.segments, closedBlocks },
    ...{ seen, lost, summary: summaryOf(head.snapshot, run) },
  };
}

/** The first sequence that may have meant another event: of recorded deltas that stand there no more, or after what is stored. */
function firstLost(runId: string, stored: readonly LogRow[], { deltas }: Told): number {
  const places = new Map(stored.map(({ eventId, sequence }) => [eventId, sequence]));
  return expanded(runId, deltas)
    .filter(({ eventId, sequence }) => places.get(eventId) !== sequence)
    .reduce((first, { sequence }) => Math.min(first, sequence), stored.length);
}

function headOf(run: RunRow, told: Told, rows: readonly LogRow[]): Head {
  const { cursor, state, status, closed } = told;
  return {
    ...{ runId: run.runId, tenant: run.tenant, ...cursor },
    nextSequence: rows.length,
    lastTimestampMs: rows.at(-1)?.timestampMs ?? 0,
    status,
    closed,
    translateVersion: run.input.translateVersion,
    translateState: state,
    snapshot: fold(null, rows, run.input.definition),
  };
}

/** A run that is told for the first time here has none; without them it would never be archived. The last is the head's. */
async function recordSegments(
  { stores }: LogParts,
  run: RunRef,
  { segments, head }: { readonly segments: readonly string[]; readonly head: Head },
): Promise<void> {
  for (const [index, temporalRunId] of segments.entries()) {
    const isClosed = index < segments.length - 1 || head.closed;
    await stores.segments.record(run, { index, temporalRunId, isClosed });
  }
}

const STREAMING = 'The run is streaming: rebuild it later.';
const WOULD_LOSE = 'The log holds what the history does not tell: a rebuild would lose it.';

function conflict(runId: string, reason: string): never {
  throw new HostError('run_state_conflict', { reason, runId });
}

/**
 * Replaces rows and head of a run by what its history says. Throws HostError run_state_conflict while a delta block is
 * open (try again when the run's stream has ended) and when the log has rows that would be lost; run_not_found,
 * history_missing, history_undecodable, key_unavailable.
 */
export async function rebuild(parts: LogParts, run: RunRef): Promise<Rebuilt> {
  const erased = await parts.stores.subjects.erasedRun(run);
  return erased ? rebuildErased(parts, run, erased) : restored(parts, run);
}

/**
 * For a log that lacks what history records, as an append found it at the head `lacking`: as `rebuild` where recorded deltas
 * can stand where they stood. Else each stands before what closes its stream, and what is streamed now leaves the log.
 * Undefined where the log has moved since: whoever appends again sees what it lacks now. Throws service_unavailable where it
 * holds what the history does not tell, and what `retrace` does but for run_state_conflict.
 */
export async function mend(
  parts: LogParts,
  run: RunRef,
  lacking: Head,
): Promise<Rebuilt | undefined> {
  const { segments, lost, ...told } = await toldAgain(parts, run);
  const { head, rows, seen } = told;
  // Somebody else has made it again, or ended it. What fits must not lose its places for that.
  if (!seen || seen.closed || !isAtCursor(seen, lacking)) return undefined;
  if (lost.length > 0)
    throw new HostError('service_unavailable', { reason: WOULD_LOSE, runId: run.runId });
  await recordSegments(parts, run, { segments, head });
  return (await parts.stores.log.restore(run, told, seen)) ? { head, rows } : undefined;
}

/** With the places that streamed text had, where it fits and nothing streams now: else without them. */
async function toldAgain(parts: LogParts, run: RunRef): Promise<Retraced> {
  try {
    const told = await retrace(parts, run);
    if (told.lost.length === 0 && !(await isStreaming(parts, run, told.closedBlocks))) return told;
  } catch (error) {
    if (codeOf(error) !== 'run_state_conflict') throw error;
  }
  return retrace(parts, run, { isRetold: true });
}

function isAtCursor(head: Head, { temporalRunId, historyEventId }: Head): boolean {
  return head.temporalRunId === temporalRunId && head.historyEventId === historyEventId;
}

/** A block is open whose stream no result records. */
async function isStreaming(
  { stores }: LogParts,
  run: RunRef,
  recordedBlocks: readonly string[],
): Promise<boolean> {
  const open = await stores.log.openBlocks(run);
  return open.some((activityId) => !recordedBlocks.includes(activityId));
}

async function restored(parts: LogParts, run: RunRef): Promise<Rebuilt> {
  const { log } = parts.stores;
  let reason = STREAMING;
  for (let left = MAX_TRIES; left > 0; left--) {
    const { segments, lost, ...told } = await retrace(parts, run);
    const { head, rows, seen } = told;
    if (lost.length > 0) reason = seen?.closed ? WOULD_LOSE : STREAMING;
    else {
      // First: once the head is closed nobody would look for what a process that died here had not recorded.
      await recordSegments(parts, run, { segments, head });
      if (await log.restore(run, told, seen)) return { head, rows };
    }
  }
  return conflict(run.runId, reason);
}

/** No history can be read any more: rows and head as they were kept. */
async function rebuildErased(parts: LogParts, run: RunRef, erased: ErasedRun): Promise<Rebuilt> {
  await restoreErased(parts, run, erased);
  const head = await parts.stores.log.head(run);
  if (!head) throw new HostError('run_not_found', { runId: run.runId });
  return { head, rows: await storedRows(parts.stores.log, run) };
}

/** Rebuilds every run; runs that cannot be rebuilt now are returned with the reason, the others are done. */
export async function rebuildAll(
  parts: LogParts,
): Promise<{ rebuilt: number; refused: readonly { runId: string; reason: string }[] }> {
  const refused: { runId: string; reason: string }[] = [];
  let rebuilt = 0;
  for (let after = ''; ;) {
    const runs = await parts.stores.runs.allRuns(after, RUNS_PER_PAGE);
    for (const run of runs) {
      try {
        await rebuild(parts, run);
        rebuilt += 1;
      } catch (error) {
        refused.push({ runId: run.runId, reason: String(error) });
      }
    }
    const last = runs.at(-1);
    if (last === undefined) return { rebuilt, refused };
    after = last.runId;
  }
}
