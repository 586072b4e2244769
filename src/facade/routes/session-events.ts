// GET /v1/host/openwop-temporal/sessions/{sessionId}/events (seed 003 §3.3): server-sent events over all runs of a
// session. It stays open until the client goes; `id:` is the event's id, by which a client goes on.
import { invalid } from '../../rules/errors.ts';
import { EVENT_ID } from '../../rules/ids.ts';
import { unreadableFor } from '../../rules/unreadable.ts';
import { ERA } from '../../rules/versions.ts';
import type { FedRow, FeedPlace } from '../../ports/feed.ts';
import { Recent } from '../../system/recent.ts';
import type { FacadeDeps } from '../deps.ts';
import { header, text, type Parameter } from '../parameters.ts';
import { streamed, type Declaration, type Exchange, type InputOf, type Route } from '../route.ts';
import { inSession, type RunFacts } from '../session-envelope.ts';
import { EVENT_STREAM, SEND_LENGTH } from '../sse.ts';
import type { OpenStream, StreamRegistry } from '../stream-registry.ts';
import { requireSession } from './sessions.ts';

/** Runs of which a stream keeps what it tells with each event. */
const RUNS_KEPT = 500;

const RESUME_TEXT: Parameter<string | undefined> = {
  ...text('Go on after the event with this id.', {
    pattern: new RegExp(`^(${EVENT_ID})?$`),
    reason: 'is no eventId',
    example: 'evt-1srOrx2ZWZBpBUvZwXKQmoEYga2',
  }),
  emptyIsAbsent: true,
};

/** The query is for clients that cannot send the header with their first request. */
const RESUME_AFTER: Parameter<string | undefined> = {
  ...header('Last-Event-ID', RESUME_TEXT),
  otherwise: { ...RESUME_TEXT, name: 'lastEventId' },
};

export const STREAM_SESSION_EVENTS = {
  method: 'get',
  path: '/host/openwop-temporal/sessions/{sessionId}/events',
  operationId: 'streamSessionEvents',
  summary: 'Events of all runs of a session, as server-sent events. An extension of this host.',
  access: 'runs:read',
  parameters: { resumeAfter: RESUME_AFTER },
  success: {
    status: 200,
    description: 'The events.',
    schema: { type: 'string' },
    mediaTypes: ['text/event-stream'],
  },
  errors: ['not_found', 'service_unavailable'],
} as const satisfies Declaration;

export function sessionEventsRoute(deps: FacadeDeps, streams: StreamRegistry): Route {
  return streamed(STREAM_SESSION_EVENTS, (input, exchange) =>
    answerEvents({ ...deps, streams }, input, exchange),
  );
}

type StreamDeps = FacadeDeps & { readonly streams: StreamRegistry };

async function answerEvents(
  deps: StreamDeps,
  input: InputOf<typeof STREAM_SESSION_EVENTS>,
  { request, response }: Exchange,
): Promise<void> {
  const { caller } = input;
  const { tenant } = caller;
  const { sessionId } = await requireSession(deps, input);
  const stream = deps.streams.open(caller.subject, response);
  const session = { tenant, sessionId, signal: stream.signal };
  // Where this throws, its place is free again with the end of the answer.
  const after = await placeAfter(deps, session, input.parameters.resumeAfter);
  try {
    response.status(200).set(EVENT_STREAM);
    response.flushHeaders();
    if (request.method === 'HEAD' || stream.signal.aborted) return;
    const factsOf = createFacts(deps, { tenant, sessionId });
    const pages = deps.log.followSession({ ...session, after });
    for await (const rows of pages)
      if (!(await send(rows, { major: input.major, factsOf }, stream))) return;
  } finally {
    stream.end();
  }
}

/** Whose session it is. */
interface Asked {
  readonly tenant: string;
  readonly sessionId: string;
}

/** Throws service_unavailable, and validation_error: the session has no such event. */
async function placeAfter(
  { log }: FacadeDeps,
  session: Asked & { readonly signal: AbortSignal },
  eventId: string | undefined,
): Promise<FeedPlace | undefined> {
  if (eventId === undefined) return undefined;
  const place = await log.resumeSession({ ...session, eventId });
  if (place === undefined)
    throw invalid('Last-Event-ID', 'is not the eventId of an event of this session');
  return place === 'first' ? undefined : place;
}

/** Undefined: the run expired since its row was read. */
type FactsOf = (runId: string) => Promise<RunFacts | undefined>;

/** What never changes of a run is read once for a stream; of many runs, of those that came last. */
function createFacts({ stores }: FacadeDeps, { tenant, sessionId }: Asked): FactsOf {
  const kept = new Recent<string, RunFacts>(RUNS_KEPT);
  return async (runId) => {
    const known = kept.get(runId);
    if (known) return known;
    try {
      const found = await stores.runs.findKept(tenant, runId);
      if (!found) return undefined;
      const { header, era } = found.input;
      const facts: RunFacts = { tenant, header, input: { era } };
      kept.set(runId, facts);
      return facts;
    } catch (error) {
      const unreadable = unreadableFor(error);
      if (!unreadable) throw error;
      const header = { sessionId, correlationId: runId };
      return { tenant, header, input: { era: ERA }, unreadable };
    }
  };
}

async function send(
  rows: readonly FedRow[],
  { major, factsOf }: Pick<InputOf<typeof STREAM_SESSION_EVENTS>, 'major'> & { factsOf: FactsOf },
  stream: OpenStream,
): Promise<boolean> {
  let frames = '';
  for (const { row, run } of rows) {
    const facts = await factsOf(run.runId);
    if (!facts) continue;
    const { eventType, text: data } = inSession(major, facts, row);
    frames += `id: ${row.eventId}\nevent: ${eventType}\ndata: ${data}\n\n`;
    if (frames.length < SEND_LENGTH) continue;
    if (!(await stream.send(frames))) return false;
    frames = '';
  }
  return frames === '' || stream.send(frames);
}
