// Rebuild (design §3.6): rows and head of a run, byte for byte, from its segments in Temporal or in the archive. Every
// recorded delta takes the sequence it had; the entries fill the free numbers in order; times are clamped as the
// append clamps them.
import { clampTimestamps } from '../core/clamp.ts';
import { expandDeltas } from '../core/deltas.ts';
import { HostError } from '../core/errors.ts';
import type { RecordedDeltas } from '../core/journal.ts';
import type { JsonValue } from '../core/json.ts';
import type { Head, HistoryCursor, LogRow, RunRow } from '../ports.ts';
import { historyEventIdOf, translate, type LogEntry } from '../translate/translate.ts';
import { readPage, type LogParts } from './advance.ts';
import { fold } from './fold.ts';
import { startFailedLog } from './start-failed.ts';

/** Times that a rebuild begins again because the live path went on meanwhile. */
const MAX_TRIES = 3;
/** Pages of one run, over all its segments. */
const MAX_PAGES = 10_000;
const RUNS_PER_PAGE = 100;

interface Retold {
  readonly entries: LogEntry[];
  readonly deltas: RecordedDeltas[];
  readonly cursor: HistoryCursor;
  readonly state: JsonValue;
  readonly status: Head['status'];
  readonly closed: boolean;
}

/** The whole history of a run, told anew. */
async function retell(parts: LogParts, run: RunRow, temporalRunId: string): Promise<Retold> {
  const { runId, tenant } = run;
  const translateVersion = run.input.translateVersion;
  const entries: LogEntry[] = [];
  const deltas: RecordedDeltas[] = [];
  let cursor: HistoryCursor = { temporalRunId, historyEventId: 0, token: '' };
  let state: JsonValue = null;
  let status: Head['status'] = 'pending';
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await readPage(parts, { runId, tenant, ...cursor }, 0);
    const behind = cursor.historyEventId;
    const events = page.events.filter((event) => historyEventIdOf(event) > behind);
    if (events.length === 0) return { entries, deltas, cursor, state, status, closed: false };
    const told = translate(events, state, { runId, translateVersion });
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
    if (told.closed) return { entries, deltas, cursor, state, status, closed: true };
  }
  throw new HostError('internal_error', { reason: `history of run ${runId} has no end` });
}

/** Entries and recorded deltas in their one order. Throws HostError internal_error where they leave a gap. */
export function interleave(
  runId: string,
  entries: readonly LogEntry[],
  recorded: readonly RecordedDeltas[],
): LogRow[] {
  const deltas = new Map(
    recorded
      .flatMap((recording) => expandDeltas(runId, recording))
      .map((delta) => [delta.sequence, { runId, ...delta }] as const),
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
  const segments = await stores.segments.ofRun(run.runId);
  return segments.find(({ index }) => index === 0)?.temporalRunId ?? run.temporalRunId ?? '';
}

export interface Rebuilt {
  readonly head: Head;
  readonly rows: readonly LogRow[];
}

/** What `rebuild` would store, without storing it. Throws HostError run_not_found, history_missing and more. */
export async function retrace(parts: LogParts, runId: string): Promise<Rebuilt> {
  const run = await parts.stores.runs.load(runId);
  if (!run) throw new HostError('run_not_found', { runId });
  const temporalRunId = await firstSegment(parts, run);
  if (temporalRunId === '') {
    if (run.startFailure) return startFailedLog(run, run.startFailure);
    throw new HostError('history_missing', { runId });
  }
  const { entries, deltas, cursor, state, status, closed } = await retell(
    parts,
    run,
    temporalRunId,
  );
  const rows = interleave(runId, entries, deltas);
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
    snapshot: fold(null, rows),
  };
  return { head, rows };
}

/**
 * Replaces rows and head of a run by what its history says. Throws HostError run_state_conflict while a delta block is
 * open (try again when the run's stream has ended), run_not_found, history_missing, history_undecodable.
 */
export async function rebuild(parts: LogParts, runId: string): Promise<Rebuilt> {
  const { log } = parts.stores;
  for (let tries = 1; tries <= MAX_TRIES; tries++) {
    const open = await log.openBlocks(runId);
    if (open.length > 0) break;
    const rebuilt = await retrace(parts, runId);
    const now = await log.head(runId);
    const overtaken = (now?.nextSequence ?? 0) > rebuilt.head.nextSequence;
    if (overtaken && tries < MAX_TRIES) continue;
    if (overtaken && !now?.closed) break;
    if (await log.restore(rebuilt.head, rebuilt.rows, now)) return rebuilt;
  }
  throw new HostError('run_state_conflict', {
    reason: 'The run is streaming: rebuild it later.',
    runId,
  });
}

/** Rebuilds every run; runs that cannot be rebuilt now are returned with the reason, the others are done. */
export async function rebuildAll(
  parts: LogParts,
): Promise<{ rebuilt: number; refused: readonly { runId: string; reason: string }[] }> {
  const refused: { runId: string; reason: string }[] = [];
  let rebuilt = 0;
  for (let after = ''; ;) {
    const runIds = await parts.stores.runs.allRuns(after, RUNS_PER_PAGE);
    for (const runId of runIds) {
      try {
        await rebuild(parts, runId);
        rebuilt += 1;
      } catch (error) {
        refused.push({ runId, reason: String(error) });
      }
    }
    const last = runIds.at(-1);
    if (last === undefined) return { rebuilt, refused };
    after = last;
  }
}
