// GET /v1/host/openwop-temporal/sessions/{sessionId}/conversation and POST …/messages (seed 000 §G, RFC 0077 §D): what was
// said in a session, and saying something to an agent there. Extensions of this host.
import { invalid } from '../../rules/errors.ts';
import type { JsonObject } from '../../rules/json.ts';
import { startingMessageId } from '../../rules/run-input.ts';
import type { AcceptedRun } from '../../runs/accept.ts';
import { mention } from '../../runs/mention.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import type { FacadeDeps } from '../deps.ts';
import { answerOnce, IDEMPOTENCY_KEY, toldAs } from '../idempotency.ts';
import { integer } from '../parameters.ts';
import {
  addressOf,
  answered,
  shape,
  type Answer,
  type Declaration,
  type InputOf,
  type Route,
} from '../route.ts';
import { runUrls, shownRunId } from '../urls.ts';
import { RUN_LIST, runIdOf } from './runs.ts';
import { requireSession } from './sessions.ts';

/** Messages of one page: each may be as large as a value (INLINE_VALUE_BYTES). */
const MAX_MESSAGES = 100;

export const GET_CONVERSATION = {
  method: 'get',
  path: '/host/openwop-temporal/sessions/{sessionId}/conversation',
  operationId: 'getConversation',
  summary:
    'What was said in the runs of a session, each message once by its messageId, the first said first: writes to ' +
    "channels of messages, among them those that started a run by a mention, turns of conversations, and agents' final " +
    'answers. Where a page has fewer messages than its limit and names a next one, go on. An extension of this host.',
  access: 'runs:read',
  parameters: {
    cursor: RUN_LIST.cursor,
    limit: integer('Messages in one page.', {
      ...{ min: 1, max: MAX_MESSAGES, default: 50, example: 20 },
    }),
  },
  success: { status: 200, description: 'One page.', schema: shape('Conversation') },
  errors: ['not_found', 'service_unavailable'],
} as const satisfies Declaration;

export const SAY_IN_SESSION = {
  method: 'post',
  path: '/host/openwop-temporal/sessions/{sessionId}/messages',
  operationId: 'sayInSession',
  summary:
    'Say something in a session to the one agent that the message mentions: a run of that agent starts there. Its task is ' +
    'the text, as the one input that its task schema requires, else as `message`. An extension of this host.',
  access: 'runs:create',
  parameters: { idempotencyKey: IDEMPOTENCY_KEY },
  body: {
    required: true,
    schema: shape('SessionMessageRequest'),
    example: { content: '@vendor.example.desk.clerk what became of order 4711?' },
    parse: (body) => mustBeValid(validate.sessionMessageRequest(body)),
  },
  success: {
    status: 201,
    description: 'The run is accepted.',
    schema: shape('SessionMessage'),
  },
  errors: [
    'not_found',
    'agent_not_found',
    'handoff_task_schema_violation',
    'model_unavailable',
    'payload_too_large',
    'subject_erasing',
    'capability_not_provided',
    'service_unavailable',
  ],
} as const satisfies Declaration;

export function conversationRoutes(deps: FacadeDeps): Route[] {
  return [
    answered(GET_CONVERSATION, (input) => getConversation(deps, input)),
    answered(SAY_IN_SESSION, (input) => say(deps, input)),
  ];
}

async function say(deps: FacadeDeps, input: InputOf<typeof SAY_IN_SESSION>): Promise<Answer> {
  const { caller, major, parameters, body, path } = input;
  const { content } = body;
  const { sessionId } = path;
  const telling = toldAs<AcceptedRun>(input, 201, acceptedAs(input));
  const asked = {
    ...{ endpoint: addressOf(SAY_IN_SESSION, major), target: [sessionId] },
    ...{ body: { content }, key: parameters.idempotencyKey },
  };
  const said = { sessionId, content, atMs: Date.now() };
  const place = () => requireSession(deps, input);
  const once = await mention(deps, caller, { said, place, once: { asked, telling } });
  return { ...answerOnce(once, telling), runId: runIdOf(input, once) };
}

function acceptedAs(input: InputOf<typeof SAY_IN_SESSION>): (accepted: AcceptedRun) => JsonObject {
  return ({ runId, sessionId, status }) => ({
    ...{ messageId: startingMessageId(runId), sessionId, runId: shownRunId(input, runId), status },
    ...runUrls(input, runId),
  });
}

async function getConversation(
  deps: FacadeDeps,
  input: InputOf<typeof GET_CONVERSATION>,
): Promise<Answer> {
  const { caller, major, parameters } = input;
  const { tenant } = caller;
  const { limit, cursor } = parameters;
  const { sessionId } = await requireSession(deps, input);
  const after = cursor === undefined ? 0 : positionOf(cursor);
  const query = { tenant, sessionId, after, limit };
  const { messages, unreadable, next } = await deps.log.conversationPage(query);
  const body = {
    messages: messages.map(({ more, runId, eventId, ...message }) => ({
      ...message,
      ...more,
      ...{ runId: major.ids.bind('run', runId, tenant), eventId },
    })),
    ...(unreadable ? { unreadable } : {}),
    ...(next === undefined ? {} : { nextCursor: cursorOf(next) }),
  };
  return { body };
}

function cursorOf(position: number): string {
  return Buffer.from(String(position)).toString('base64url');
}

/** Throws validation_error. */
function positionOf(cursor: string): number {
  const position = Number(/^\d{1,16}$/.exec(Buffer.from(cursor, 'base64url').toString())?.[0]);
  if (Number.isSafeInteger(position)) return position;
  throw invalid('cursor', 'is not one that this host gave');
}
