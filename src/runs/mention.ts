// The entry `chat-mention` (RFC 0077 §D): a message in a session that mentions an agent starts that agent's run there. The
// run is accepted as every run is, and keeps the message as the first thing that it states.
import { HostError, invalid } from '../rules/errors.ts';
import { jsonBytes, type JsonObject } from '../rules/json.ts';
import { INLINE_VALUE_BYTES } from '../rules/limits.ts';
import { mentionedAgents } from '../rules/mentions.ts';
import type { Caller } from '../ports/caller.ts';
import { acceptRun, repeated, type AcceptedRun, type AcceptRequest } from './accept.ts';
import type { Once } from './once.ts';
import { kept } from './secrets.ts';

/** What a message has besides its content: ids and a time. */
const MESSAGE_FRAME_BYTES = 1024;
/** What is said, in UTF-8 bytes of JSON: a message is one value of a channel. */
export const CONTENT_BYTES = INLINE_VALUE_BYTES - MESSAGE_FRAME_BYTES;

export interface SaidInSession {
  /** Of a session that is there. */
  readonly sessionId: string;
  readonly content: string;
  /** In ms epoch. */
  readonly atMs: number;
}

interface Mention extends Pick<AcceptRequest, 'once'> {
  readonly said: SaidInSession;
  /** Throws where the session is not there. A repeat does not need it. */
  readonly place?: () => Promise<unknown>;
  readonly configurable?: JsonObject;
}

/**
 * One message, one agent, one run: of several agents none is started, so that nothing is half done. Throws
 * validation_error (no agent is mentioned, or several, or it holds a secret), payload_too_large, agent_not_found,
 * handoff_task_schema_violation, and what acceptRun throws.
 */
export async function mention(
  deps: Parameters<typeof acceptRun>[0],
  caller: Caller,
  { said, place, once, configurable = {} }: Mention,
): Promise<Once<AcceptedRun>> {
  const { sessionId, content: text, atMs } = said;
  const asked = { sessionId, inputs: {}, configurable };
  const earlier = once && (await repeated(deps, caller, { once, run: asked }));
  if (earlier) return earlier;
  await place?.();
  if (jsonBytes(text) > CONTENT_BYTES)
    throw new HostError('payload_too_large', { field: '/content', limit: CONTENT_BYTES });
  const [agentId, ...others] = mentionedAgents(text);
  if (agentId === undefined) throw invalid('/content', 'must mention an agent: @ and its agentId');
  if (others.length > 0)
    throw invalid('/content', 'must mention one agent: a message starts one run');
  kept(deps, text, { field: '/content', name: 'The message' });
  const run = { ...asked, agentId, said: { text, atMs } };
  return acceptRun(deps, caller, { run, once, isNew: true });
}
