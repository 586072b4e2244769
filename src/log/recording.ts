// What a fork is made from (architecture §6): the history of its source, over all segments and from the archive where
// Temporal has forgotten it, and the log that came of it.
import { codeOf, HostError, type ErrorCode } from '../rules/errors.ts';
import { blockOfKey, eventIdOf } from '../rules/ids.ts';
import { livedBy, type RecordedEntry, type Recording } from '../rules/recording.ts';
import type { HistoryEvent } from '../ports/history.ts';
import type { RunRef } from '../ports/runs.ts';
import { recordingOf } from '../translate/recording.ts';
import { historyEventIdOf } from '../translate/translate.ts';
import { readPage, type LogParts } from './pages.ts';
import { readRows } from './rows.ts';

/** Pages of one segment. */
const MAX_PAGES = 10_000;
/** A history may be so many times as large as its log: it also holds what activities were asked. */
const HISTORY_PER_LOG = 4;

export interface RecordingQuery {
  /** Entries of the log. */
  readonly length: number;
  /** Above it nothing more is read: of the log's payloads, and of what the histories hold. */
  readonly maxBytes?: number | undefined;
}

/**
 * Of the first entries of its log. Throws HostError run_not_found, service_unavailable (also while the log is only built
 * anew), history_undecodable and history_missing (with the first event whose history cannot be read), key_unavailable,
 * payload_too_large (above `maxBytes`).
 */
export async function readRecording(
  parts: LogParts,
  run: RunRef,
  { length, maxBytes = Infinity }: RecordingQuery,
): Promise<Recording> {
  const entries = await entriesOf(parts, run, { length, maxBytes });
  const segments: HistoryEvent[][] = [];
  const count = bounded(maxBytes * HISTORY_PER_LOG);
  for (const { temporalRunId } of await parts.stores.segments.ofRun(run)) {
    const events = await eventsOf(parts, { run, temporalRunId }, count).catch(
      async (error: unknown) => {
        throw await unread(parts, error, { run, segments, entries });
      },
    );
    segments.push(events);
  }
  // Last: a run that expired meanwhile was not read whole.
  const row = await parts.stores.runs.find(run.tenant, run.runId);
  if (!row) throw new HostError('run_not_found', { runId: run.runId });
  const { fork } = row.input;
  return livedBy(run.runId, recordingOf(segments, entries, fork), fork);
}

/** What stays unreadable, however often it is asked for. */
const UNREADABLE: ReadonlySet<ErrorCode> = new Set(['history_undecodable', 'history_missing']);

/** Of the log, the first event that only this history tells of: what stood before it could be read. */
async function unread(
  { stores }: LogParts,
  error: unknown,
  read: {
    readonly run: RunRef;
    readonly segments: readonly HistoryEvent[][];
    readonly entries: readonly RecordedEntry[];
  },
): Promise<unknown> {
  const code = codeOf(error);
  if (code === undefined || !UNREADABLE.has(code)) return error;
  const { run, segments, entries } = read;
  const row = await stores.runs.find(run.tenant, run.runId);
  const told = segments.length > 0 ? recordingOf(segments, entries, row?.input.fork).entries : [];
  // Of what streamed nothing is told but by what closed it.
  const isTold = ({ key, isDerived }: RecordedEntry) => !isDerived && blockOfKey(key) === undefined;
  const sequence = told.findLastIndex(isTold) + 1;
  const { key, type } = entries[sequence] ?? {};
  if (key === undefined || type === undefined) return error;
  const eventId = eventIdOf(run.runId, key);
  const why = error instanceof Error ? ` ${error.message}` : '';
  const reason = `The history of run ${run.runId} cannot be read from event ${sequence} on (${type}, ${eventId}).${why}`;
  return new HostError(code, { reason, runId: run.runId, sequence, eventId }, error);
}

async function entriesOf(
  { stores }: LogParts,
  run: RunRef,
  { length, maxBytes }: { readonly length: number; readonly maxBytes: number },
): Promise<RecordedEntry[]> {
  const entries: RecordedEntry[] = [];
  const count = bounded(maxBytes);
  for await (const rows of readRows(stores.log, run, { limit: length }))
    for (const { key, type, nodeId, causedBy, payload, timestampMs } of rows) {
      count(payload);
      entries.push({
        ...{ key, type, payload, timestampMs },
        ...(nodeId === undefined ? {} : { nodeId }),
        ...(causedBy === undefined ? {} : { causedBy }),
      });
    }
  if (entries.length < length) throw await shorter(stores, run);
  return entries;
}

/** A log that was dropped comes back (architecture §3.6). */
async function shorter({ log, runs }: LogParts['stores'], run: RunRef): Promise<HostError> {
  const isThere = (await runs.find(run.tenant, run.runId)) !== undefined;
  return isThere && !(await log.head(run))
    ? new HostError('service_unavailable')
    : new HostError('run_not_found', { runId: run.runId });
}

async function eventsOf(
  parts: LogParts,
  { run, temporalRunId }: { readonly run: RunRef; readonly temporalRunId: string },
  count: Counter,
): Promise<HistoryEvent[]> {
  const events: HistoryEvent[] = [];
  let withheld: readonly HistoryEvent[] = [];
  let token = '';
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await readPage(parts, { run, temporalRunId, token }, 0);
    const { withheld: last = [] } = page;
    const begun = continued(withheld, [...page.events, ...last]);
    const known = page.events.length > 0;
    withheld = known ? last : [...begun, ...last];
    const behind = events.length;
    for (const event of known ? [...begun, ...page.events] : [])
      if (historyEventIdOf(event) > behind) {
        count(event);
        events.push(event);
      }
    ({ token } = page);
    if (token === '' || page.atTail) return events;
  }
  throw new HostError('internal_error', { reason: `history of run ${run.runId} has no end` });
}

/** What a page withheld, where the next one goes on behind it: history has kept it. */
function continued(
  withheld: readonly HistoryEvent[],
  [next]: readonly HistoryEvent[],
): readonly HistoryEvent[] {
  const last = withheld.at(-1);
  if (!next || !last) return withheld;
  return historyEventIdOf(last) + 1 === historyEventIdOf(next) ? withheld : [];
}

type Counter = (value: unknown) => void;

/** Adds up what it is given. Throws payload_too_large. */
function bounded(maxBytes: number): Counter {
  let sum = 0;
  return (value) => {
    if (maxBytes === Infinity) return;
    sum += sizeOf(value);
    if (sum <= maxBytes) return;
    const reason = `The record of this run has more than ${maxBytes} bytes.`;
    throw new HostError('payload_too_large', { reason, limit: maxBytes });
  };
}

/** Bytes of its texts and payloads, about. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (value instanceof Uint8Array) return value.byteLength;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce((sum: number, member) => sum + sizeOf(member), 0);
}
