// GET /v1/runs/{runId}/events (spec/02 §3.1): SSE or the whole log as JSON, by Accept.
import { isTerminalEvent } from '../../rules/status.ts';
import { principalOf } from '../../rules/subject.ts';
import type { LogRow } from '../../ports/log.ts';
import { renderEventText } from '../../wire/render.ts';
import { requireRun } from '../../runs/find.ts';
import type { FacadeDeps } from '../deps.ts';
import { parseEventQuery, resumePoint } from '../event-query.ts';
import type { Route, RouteCall } from '../route.ts';
import { readHead } from '../read-head.ts';
import { streamEvents, streamSnapshots } from '../sse.ts';
import type { OpenStream, StreamRegistry } from '../stream-registry.ts';

/** Rows read from the store at once. */
const PAGE_ROWS = 100;
/** A sequence, or the id of an event of this run. */
const RESUME_POINT = { type: 'string', pattern: '^([0-9]{1,15}|evt-[0-9A-Za-z]{27})?$' };

export function eventsRoute(deps: FacadeDeps, streams: StreamRegistry): Route {
  return {
    method: 'get',
    path: '/v1/runs/{runId}/events',
    operationId: 'streamRunEvents',
    summary: 'Events of a run: server-sent events, or the whole log as JSON.',
    access: 'runs:read',
    parameters: [
      {
        name: 'streamMode',
        in: 'query',
        description: 'values, updates, messages, debug, or a comma list of the last three.',
        schema: {
          type: 'string',
          pattern: '^(values|(updates|messages|debug)(,(updates|messages|debug))*)$',
          default: 'updates',
        },
      },
      {
        name: 'bufferMs',
        in: 'query',
        description: 'Gather events into batches.',
        schema: { type: 'integer', minimum: 0, maximum: 5000 },
      },
      {
        name: 'lastEventId',
        in: 'query',
        description: 'As the header, for a first request without it.',
        schema: RESUME_POINT,
      },
      {
        name: 'Last-Event-ID',
        in: 'header',
        description: 'Go on after this sequence or eventId.',
        schema: RESUME_POINT,
      },
    ],
    success: {
      status: 200,
      description: 'The events.',
      schema: { $ref: '#/components/schemas/RunEventList' },
      mediaTypes: ['text/event-stream', 'application/json'],
    },
    errors: [
      'unauthenticated',
      'forbidden',
      'run_not_found',
      'unsupported_stream_mode',
      'validation_error',
      'rate_limited',
      'service_unavailable',
    ],
    handle: (call) => answerEvents(deps, streams, call),
  };
}

async function answerEvents(
  deps: FacadeDeps,
  streams: StreamRegistry,
  call: RouteCall,
): Promise<void> {
  const { request, response, caller, params } = call;
  const row = await requireRun(deps, caller, params.runId ?? '');
  const query = parseEventQuery(request);
  const after = await resumePoint(request, row.runId, deps.stores.log);
  response.setHeader('Vary', 'Accept');
  if (request.accepts(['text/event-stream', 'application/json']) !== 'text/event-stream') {
    await readHead(deps, row.runId, response);
    const stream = streams.open(principalOf(caller.subject), response);
    response.status(200).type('application/json');
    if (request.method !== 'HEAD') await sendLog(deps, row.runId, stream);
    stream.end();
    return;
  }
  const head = await readHead(deps, row.runId, response);
  const stream = streams.open(principalOf(caller.subject), response);
  if (stream.signal.aborted) return;
  const nothingLeft = head.closed && after >= head.nextSequence - 1;
  try {
    response.status(200).set({
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-cache',
      'X-Accel-Buffering': 'no',
    });
    response.flushHeaders();
    if (request.method === 'HEAD') return;
    if (query.modes.has('values')) await streamSnapshots({ deps, row, query, after }, stream);
    else if (!nothingLeft) await streamEvents({ deps, row, query, after }, stream);
  } finally {
    stream.end();
  }
}

/** Page by page, so that a long log does not stand in memory. */
async function sendLog(deps: FacadeDeps, runId: string, stream: OpenStream): Promise<void> {
  let after = -1;
  let last: LogRow | undefined;
  if (!(await stream.send('{"events":['))) return;
  for (;;) {
    const rows = await deps.stores.log.read(runId, { after, limit: PAGE_ROWS });
    const text = rows.map(renderEventText).join(',');
    if (text !== '' && !(await stream.send(last ? `,${text}` : text))) return;
    last = rows.at(-1) ?? last;
    if (rows.length < PAGE_ROWS || !last) break;
    after = last.sequence;
  }
  await stream.send(`],"isComplete":${String(last !== undefined && isTerminalEvent(last.type))}}`);
}
