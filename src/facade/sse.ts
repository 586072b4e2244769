// Server-sent events of one run (stream-modes.md): rows become frames, the log is the only truth, the server closes
// after the terminal event. Nothing is buffered here but one batch: a slow client slows its own reading.
import type { JsonObject } from '../rules/json.ts';
import { isTerminalEvent } from '../rules/status.ts';
import type { LogRow } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import { eventRow } from '../rules/events.ts';
import { rowsShown, withShownIds, type ShownRows } from '../wire/major.ts';
import type { FacadeDeps } from './deps.ts';
import { frameKind, type EventQuery } from './event-query.ts';
import type { ServedMajor } from './majors.ts';
import { renderSnapshot } from './snapshot.ts';
import type { OpenStream } from './stream-registry.ts';

/** Headers of an event stream. */
export const EVENT_STREAM = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-cache',
  'X-Accel-Buffering': 'no',
} as const;

/** Text gathered before it is handed to the socket, in UTF-16 units. */
export const SEND_LENGTH = 64 * 1024;
/** Events in one batch at most. */
const BATCH_EVENTS = 500;

/**
 * The last line of a stream of a run that has ended. A browser's EventSource asks for a stream again whenever one ends, and
 * such a request is answered with 200 (stream-modes.md); so the line sets how long it waits before that: a day, in ms.
 */
export const LAST_LINE = 'retry: 86400000\n\n';

function frame(id: number, event: string, data: string): string {
  return `id: ${id}\nevent: ${event}\ndata: ${data}\n\n`;
}

export interface StreamRequest {
  readonly deps: Pick<FacadeDeps, 'log'>;
  readonly major: ServedMajor;
  readonly row: RunRow;
  readonly query: EventQuery;
  /** Sequence that the client has already. */
  readonly after: number;
}

/** Follows the run until its end, the client's end or the process's. */
export async function streamEvents(request: StreamRequest, stream: OpenStream): Promise<void> {
  const { deps, major, row, query, after } = request;
  const shown = rowsShown(major, row);
  const sink = query.bufferMs > 0 ? createBatcher(query.bufferMs, shown, stream) : undefined;
  for await (const rows of deps.log.follow(row, { after, signal: stream.signal })) {
    const kept = rows.filter((each) => frameKind(query.modes, each) !== undefined);
    const alive = sink ? await sink.add(kept) : await sendRows(kept, { ...request, shown }, stream);
    if (!alive) return;
    if (rows.some(({ type }) => isTerminalEvent(type))) break;
  }
  await sink?.flush();
}

async function sendRows(
  rows: readonly LogRow[],
  { query, major, row: run, shown }: StreamRequest & { readonly shown: ShownRows },
  stream: OpenStream,
): Promise<boolean> {
  let text = '';
  for (const row of rows) {
    text +=
      frameKind(query.modes, row) === 'message'
        ? frame(row.sequence, 'ai.message.chunk', messageChunk(row, major, run.tenant))
        : frame(row.sequence, shown.typeOf(row.type), shown.textOf(row));
    if (text.length < SEND_LENGTH) continue;
    if (!(await stream.send(text))) return false;
    text = '';
  }
  return text === '' || stream.send(text);
}

/** Payload of a piece of an answer, with the fields that the frame promises (stream-modes.md). */
function messageChunk(
  { payload, runId, nodeId }: LogRow,
  major: ServedMajor,
  tenant: string,
): string {
  const chunk = JSON.parse(payload) as JsonObject;
  const fields: JsonObject = { ...(nodeId === undefined ? {} : { nodeId }), runId, ...chunk };
  return JSON.stringify(withShownIds(major, tenant, fields));
}

interface Batcher {
  add(rows: readonly LogRow[]): Promise<boolean>;
  flush(): Promise<boolean>;
}

/** Batches (stream-modes.md): flushed after `bufferMs`, when full, at a suspension and at the end. */
function createBatcher(bufferMs: number, shown: ShownRows, stream: OpenStream): Batcher {
  let pending: LogRow[] = [];
  let timer: NodeJS.Timeout | undefined;
  let sending: Promise<boolean> = Promise.resolve(true);
  const flush = (): Promise<boolean> => {
    clearTimeout(timer);
    timer = undefined;
    const rows = pending;
    pending = [];
    const last = rows.at(-1);
    if (last) {
      const events = rows.map((row) => shown.textOf(row)).join(',');
      const text = frame(last.sequence, 'batch', `[${events}]`);
      sending = sending.then((alive) => alive && stream.send(text));
    }
    return sending;
  };
  stream.signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  return {
    flush,
    async add(rows) {
      for (const row of rows) {
        pending.push(row);
        const { urgent } = eventRow(row.type);
        if ((urgent || pending.length >= BATCH_EVENTS) && !(await flush())) return false;
      }
      if (pending.length > 0) timer ??= setTimeout(() => void flush(), bufferMs);
      return !stream.signal.aborted;
    },
  };
}

/**
 * `values` mode: the state as it is now, then again after each transition; several that are stored together give one
 * snapshot. The id is the last sequence that the snapshot has seen.
 */
export async function streamSnapshots(
  { deps, major, row }: StreamRequest,
  stream: OpenStream,
): Promise<void> {
  let told = -1;
  const send = async (): Promise<boolean> => {
    const head = await deps.log.head(row);
    if (!head || head.nextSequence - 1 <= told) return true;
    told = head.nextSequence - 1;
    const snapshot = JSON.stringify(renderSnapshot(major, head, row));
    return stream.send(frame(told, 'state.snapshot', snapshot));
  };
  if (!(await send())) return;
  for await (const rows of deps.log.follow(row, { after: told, signal: stream.signal })) {
    const moves = rows.some(({ type }) => eventRow(type).values);
    if (moves && !(await send())) return;
    if (rows.some(({ type }) => isTerminalEvent(type))) return;
  }
}
