// GET /v1/runs/{runId}/events (rest-endpoints.md §SSE): SSE or the whole log as JSON, by Accept.
import { isTerminalEvent } from '../../rules/status.ts';
import type { LogRow } from '../../ports/log.ts';
import type { RunRef } from '../../ports/runs.ts';
import { rowsShown, type ShownRows } from '../../wire/major.ts';
import type { FacadeDeps } from '../deps.ts';
import { isLost, MAX_BUFFER_MS, RESUME_AFTER, resumePoint, STREAM_MODE } from '../event-query.ts';
import { integer } from '../parameters.ts';
import {
  shape,
  streamed,
  type Declaration,
  type Exchange,
  type InputOf,
  type Route,
} from '../route.ts';
import { readHead } from '../read-head.ts';
import { EVENT_STREAM, LAST_LINE, streamEvents, streamSnapshots } from '../sse.ts';
import type { OpenStream, StreamRegistry } from '../stream-registry.ts';

/** Rows read from the store at once. */
const PAGE_ROWS = 100;

export const STREAM_RUN_EVENTS = {
  method: 'get',
  path: '/runs/{runId}/events',
  operationId: 'streamRunEvents',
  summary: 'Events of a run: server-sent events, or the whole log as JSON.',
  access: { scope: 'runs:read', pageSession: 'runId' },
  about: 'run',
  parameters: {
    modes: STREAM_MODE,
    bufferMs: integer('Gather events into batches.', {
      ...{ min: 0, max: MAX_BUFFER_MS, example: 250 },
    }),
    resumeAfter: RESUME_AFTER,
  },
  success: {
    status: 200,
    description: 'The events.',
    schema: shape('RunEventList'),
    mediaTypes: ['text/event-stream', 'application/json'],
  },
} as const satisfies Declaration;

export function eventsRoute(deps: FacadeDeps, streams: StreamRegistry): Route {
  return streamed(STREAM_RUN_EVENTS, (input, exchange) =>
    answerEvents({ ...deps, streams }, input, exchange),
  );
}

async function answerEvents(
  deps: FacadeDeps & { readonly streams: StreamRegistry },
  { caller, major, run: row, parameters }: InputOf<typeof STREAM_RUN_EVENTS>,
  { request, response }: Exchange,
): Promise<void> {
  const { modes, bufferMs = 0, resumeAfter } = parameters;
  // First: history may have an event that the database has lost.
  const { head, headers, isAway } = await readHead(deps, row);
  const { log, stores } = deps;
  const asked = await resumePoint(resumeAfter, row, { log, runs: stores.runs, isAway });
  response.setHeader('Vary', 'Accept');
  response.set(headers);
  const stream = deps.streams.open(caller.subject, response);
  if (request.accepts(['text/event-stream', 'application/json']) !== 'text/event-stream') {
    response.status(200).type('application/json');
    if (request.method !== 'HEAD')
      await sendLog(deps, { run: row, shown: rowsShown(major, row) }, stream);
    stream.end();
    return;
  }
  if (stream.signal.aborted) return;
  const after = (await isLost(deps, row, { head, asked })) ? -1 : asked;
  const nothingLeft = head.closed && after >= head.nextSequence - 1;
  try {
    response.status(200).set(EVENT_STREAM);
    response.flushHeaders();
    if (request.method === 'HEAD') return;
    const streaming = { deps, major, row, query: { modes, bufferMs }, after };
    if (modes.has('values')) await streamSnapshots(streaming, stream);
    else if (!nothingLeft) await streamEvents(streaming, stream);
    // Of a stream that is open still: one that is over for another reason than its run's end sends nothing more.
    await stream.send(LAST_LINE);
  } finally {
    stream.end();
  }
}

/** Page by page, so that a long log does not stand in memory. */
async function sendLog(
  { log }: FacadeDeps,
  { run, shown }: { readonly run: RunRef; readonly shown: ShownRows },
  stream: OpenStream,
): Promise<void> {
  let last: LogRow | undefined;
  if (!(await stream.send('{"events":['))) return;
  for await (const rows of log.rows(run, { pageRows: PAGE_ROWS })) {
    const text = rows.map((row) => shown.textOf(row)).join(',');
    if (!(await stream.send(last ? `,${text}` : text))) return;
    last = rows.at(-1);
  }
  await stream.send(`],"isComplete":${String(last !== undefined && isTerminalEvent(last.type))}}`);
}
