// What a fork is made from (architecture §6): the history of its source, over all segments and from the archive where
// Temporal has forgotten it, and the log that came of it.
import { HostError } from '../rules/errors.ts';
import type { RecordedEntry, Recording } from '../rules/recording.ts';
import type { HistoryEvent } from '../ports/history.ts';
import type { RunRef } from '../ports/runs.ts';
import { recordingOf } from '../translate/recording.ts';
import { historyEventIdOf } from '../translate/translate.ts';
import { readPage, type LogParts } from './advance.ts';
import { readRows } from './rows.ts';

/** Pages of one segment. */
const MAX_PAGES = 10_000;

/**
 * Of the first `length` entries of its log. Throws HostError run_not_found, service_unavailable, history_undecodable,
 * history_missing.
 */
export async function readRecording(
  parts: LogParts,
  run: RunRef,
  length: number,
): Promise<Recording> {
  const entries = await entriesOf(parts, run, length);
  const segments: HistoryEvent[][] = [];
  for (const { temporalRunId } of await parts.stores.segments.ofRun(run))
    segments.push(await eventsOf(parts, run, temporalRunId));
  const row = await parts.stores.runs.find(run.tenant, run.runId);
  return recordingOf(segments, entries, row?.input.fork);
}

async function entriesOf(
  { stores }: LogParts,
  run: RunRef,
  length: number,
): Promise<RecordedEntry[]> {
  const entries: RecordedEntry[] = [];
  for await (const rows of readRows(stores.log, run, { limit: length }))
    for (const { key, type, nodeId, causedBy, payload, timestampMs } of rows)
      entries.push({
        ...{ key, type, payload, timestampMs },
        ...(nodeId === undefined ? {} : { nodeId }),
        ...(causedBy === undefined ? {} : { causedBy }),
      });
  if (entries.length < length) throw new HostError('run_not_found', { runId: run.runId });
  return entries;
}

async function eventsOf(
  parts: LogParts,
  run: RunRef,
  temporalRunId: string,
): Promise<HistoryEvent[]> {
  const events: HistoryEvent[] = [];
  let token = '';
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await readPage(parts, { run, temporalRunId, token }, 0);
    const behind = events.length;
    for (const event of page.events) if (historyEventIdOf(event) > behind) events.push(event);
    ({ token } = page);
    if (token === '' || page.atTail) return events;
  }
  throw new HostError('internal_error', { reason: `history of run ${run.runId} has no end` });
}
