// Rebuild (architecture §3.6): rows and head of a run, byte for byte, from its segments in Temporal or in the archive.
// Every recorded delta takes the sequence it had; the entries fill the free numbers in order; times are clamped as the
// append clamps them. What only the log knows, deltas that the end of a run cut off, is kept; a rebuild that would lose
// a row is refused.
import { clampTimestamps } from '../rules/clamp.ts';
import { expandDeltas } from '../rules/deltas.ts';
import type { OpenItem } from '../rules/endings.ts';
import { HostError } from '../rules/errors.ts';
import { blockOfKey } from '../rules/ids.ts';
import type { RecordedDeltas } from '../rules/journal.ts';
import type { JsonValue } from '../rules/json.ts';
import type { Head, HistoryCursor, LogRow, LogStore, NewRow } from '../ports/log.ts';
import type { RunRef, RunRow, RunSummary } from '../ports/runs.ts';
import type { ErasedRun } from '../ports/subjects.ts';
import { historyEventIdOf, translate, type LogEntry } from '../translate/translate.ts';
import { readPage, type LogParts } from './advance.ts';
import { cutOffItems } from './cut-off.ts';
import { restoreErased } from './erased.ts';
import { fold, summaryOf } from './fold.ts';
import { readRows } from './rows.ts';
import { startFailedLog } from './start-failed.ts';

/** Times that a rebuild begins again because the live path went on meanwhile. */
const MAX_TRIES = 3;
/** Pages of one run, over all its segments. */
const MAX_PAGES = 10_000;
const RUNS_PER_PAGE = 100;

interface Retold {
  readonly entries: LogEntry[];
  readonly deltas: RecordedDeltas[];
  /** Temporal run ids, in order. */
  readonly segments: string[];
  readonly cursor: HistoryCursor;
  readonly state: JsonValue;
  readonly status: Head['status'];
  readonly closed: boolean;
  /** Streams that had no closing when an ending came that no workflow code wrote. */
  readonly cutOff?: readonly string[];
}

/** The whole history of a run, told anew. */
async function retell(
  parts: LogParts,
  run: RunRow,
  { temporalRunId, openBlocks }: { temporalRunId: string; openBlocks?: readonly OpenItem[] },
): Promise<Retold> {
  const { runId } = run;
  const translateVersion = run.input.translateVersion;
  const entries: LogEntry[] = [];
  const deltas: RecordedDeltas[] = [];
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
    for (const entry of told.entries) entries.push(entry);
    for (const recorded of told.deltas) deltas.push(recorded);
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

/** Each once: a stream that was sealed may be recorded by its own result as well. */
function expanded(runId: string, recorded: readonly RecordedDeltas[]): LogRow[] {
  const deltas = recorded
    .flatMap((recording) => expandDeltas(runId, recording))
    .map((delta) => ({ runId, ...delta }));
  return [...new Map(deltas.map((delta) => [delta.key, delta])).values()];
}

/** Entries and deltas, which have their sequences, in their one order. Throws HostError internal_error at a gap. */
export function interleave(
  runId: string,
  entries: readonly NewRow[],
  { recorded, kept = [] }: { recorded: readonly RecordedDeltas[]; kept?: readonly LogRow[] },
): LogRow[] {
  const deltas = new Map(
    [...kept, ...expanded(runId, recorded)].map((delta) => [delta.sequence, delta] as const),
  );
  const rows: LogRow[] = [];
  const total = entries.length + deltas.size;
  let taken = 0;
  for (let sequence = 0; sequence < total; sequence++) {
    const row = deltas.get(sequence) ?? entries[taken++];
    if (!row) {
      throw new HostError('internal_error', { reason: `run ${runId} has no row for ${sequence}` });
    }
    rows.push({ ...row, sequence });
  }
  const times = clampTimestamps(
    0,
    rows.map(({ timestampMs }) => timestampMs),
  );
  return rows.map((row, at) => ({ ...row, timestampMs: times[at] ?? row.timestampMs }));
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

function byBlock(deltas: readonly LogRow[]): Map<string, LogRow[]> {
  const blocks = new Map<string, LogRow[]>();
  for (const delta of deltas) {
    const activityId = blockOfKey(delta.key) ?? '';
    const block = blocks.get(activityId) ?? [];
    block.push(delta);
    blocks.set(activityId, block);
  }
  return blocks;
}

/** Deltas in the log that no result and no seal records; those that a fork began with are entries. */
function unrecorded(
  runId: string,
  stored: readonly LogRow[],
  { deltas, entries }: Pick<Retold, 'deltas' | 'entries'>,
): LogRow[] {
  const known = new Set([...expanded(runId, deltas), ...entries].map(({ key }) => key));
  return stored.filter(({ key }) => blockOfKey(key) !== undefined && !known.has(key));
}

/** What the log held of streams that were cut off, as the live path saw it when it told the ending. */
function cutOffBlocks(
  runId: string,
  told: Retold,
  kept: readonly LogRow[],
): ReadonlyMap<string, readonly LogRow[]> {
  const recorded = byBlock(expanded(runId, told.deltas));
  const blocks = byBlock(kept);
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
  /** The stored head, and rows that it has and the history does not tell. */
  readonly seen: Head | undefined;
  readonly lost: readonly LogRow[];
  /** As the append that made the head kept it. */
  readonly summary: RunSummary;
}

/** What `rebuild` would store, without storing it. Throws HostError run_not_found, history_missing and more. */
export async function retrace(parts: LogParts, { tenant, runId }: RunRef): Promise<Retraced> {
  const { log } = parts.stores;
  const run = await parts.stores.runs.find(tenant, runId);
  if (!run) throw new HostError('run_not_found', { runId });
  const temporalRunId = await firstSegment(parts, run);
  if (temporalRunId === '') {
    if (run.startFailure) {
      const seen = await log.head(run);
      const failed = startFailedLog(run, run.startFailure);
      const summary = summaryOf(failed.head.snapshot, run);
      return { ...failed, segments: [], seen, lost: [], summary };
    }
    throw new HostError('history_missing', { runId });
  }
  let told = await retell(parts, run, { temporalRunId });
  const seen = await log.head(run);
  const stored = await storedRows(log, run);
  // While the run goes on, a result may still record them.
  const kept = told.closed ? unrecorded(runId, stored, told) : [];
  if (told.cutOff) {
    const openBlocks = cutOffItems(cutOffBlocks(runId, told, kept));
    told = await retell(parts, run, { temporalRunId, openBlocks });
  }
  const { entries, deltas, cursor, state, status, closed } = told;
  const rows = interleave(runId, entries, { recorded: deltas, kept });
  const eventIds = new Set(rows.map(({ eventId }) => eventId));
  const head: Head = {
    runId,
    tenant: run.tenant,
    ...cursor,
    nextSequence: rows.length,
    lastTimestampMs: rows.at(-1)?.timestampMs ?? 0,
    status,
    closed,
    translateVersion: run.input.translateVersion,
    translateState: state,
    snapshot: fold(null, rows, run.input.definition),
  };
  const lost = stored.filter(({ eventId }) => !eventIds.has(eventId));
  return {
    head,
    rows,
    segments: told.segments,
    seen,
    lost,
    summary: summaryOf(head.snapshot, run),
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

/**
 * Replaces rows and head of a run by what its history says. Throws HostError run_state_conflict while a delta block is
 * open (try again when the run's stream has ended) and when the log has rows that would be lost; run_not_found,
 * history_missing, history_undecodable, key_unavailable.
 */
export async function rebuild(parts: LogParts, run: RunRef): Promise<Rebuilt> {
  const { log, subjects } = parts.stores;
  const erased = await subjects.erasedRun(run);
  if (erased) return rebuildErased(parts, run, erased);
  let reason = STREAMING;
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const open = await log.openBlocks(run);
    if (open.length > 0) break;
    const { head, rows, segments, seen, lost, summary } = await retrace(parts, run);
    if (lost.length > 0) reason = seen?.closed ? WOULD_LOSE : STREAMING;
    else {
      // First: once the head is closed nobody would look for what a process that died here had not recorded.
      await recordSegments(parts, run, { segments, head });
      if (await log.restore(run, { head, rows, summary }, seen)) return { head, rows };
    }
  }
  throw new HostError('run_state_conflict', { reason, runId: run.runId });
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
