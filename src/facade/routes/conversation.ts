// GET /v1/host/openwop-temporal/sessions/{sessionId}/conversation (seed 000 §G): what was said in a session. An extension
// of this host.
import { invalid } from '../../rules/errors.ts';
import type { FacadeDeps } from '../deps.ts';
import { integer } from '../parameters.ts';
import {
  answered,
  shape,
  type Answer,
  type Declaration,
  type InputOf,
  type Route,
} from '../route.ts';
import { RUN_LIST } from './runs.ts';
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

export function conversationRoutes(deps: FacadeDeps): Route[] {
  return [answered(GET_CONVERSATION, (input) => getConversation(deps, input))];
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
  const { messages, next } = await deps.log.conversation({ tenant, sessionId, after, limit });
  const body = {
    messages: messages.map(({ more, runId, eventId, ...message }) => ({
      ...message,
      ...more,
      ...{ runId: major.ids.bind('run', runId, tenant), eventId },
    })),
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
