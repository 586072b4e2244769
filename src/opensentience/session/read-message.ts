// From a decoded frame to a message of an agent, or what is wrong with it (seed 004 §3, §6.2). Faults name fields and
// rules, never what an agent wrote: types that are not known, ids and values stay out of every audit.
import { validate } from '../../wire/validators.ts';
import type { FrameValue } from '../frame.ts';
import {
  PROTOCOL_VERSION,
  type AgentMessage,
  type AgentMessageType,
  type Correlation,
  type Envelope,
  type ProtocolErrorCode,
} from '../messages.ts';

/** Longest id that is repeated in an answer. */
const MAX_ID_LENGTH = 512;
export const MAX_POINTER_LENGTH = 200;

export interface MessageFault {
  readonly code: Extract<
    ProtocolErrorCode,
    'protocol.invalid_message' | 'protocol.unknown_type' | 'protocol.unsupported_version'
  >;
  /** JSON pointer to the first fault; '' is the whole message. */
  readonly pointer: string;
  /** Absent when the type is not one that an agent sends. */
  readonly type?: AgentMessageType;
  readonly expectsReply: boolean;
  readonly reply: Reply;
  /** The call that the message claims to be about. */
  readonly callId?: string;
  /** It says that its tool succeeded; what it gives as the output is none. */
  readonly hasUselessOutput?: true;
}

type Reply = Pick<Envelope, 'in_reply_to'> & Correlation;

export type ReadMessage =
  | { readonly ok: true; readonly message: AgentMessage }
  | { readonly ok: false; readonly fault: MessageFault };

/** Whether the sender waits for an answer; `undefined` types: see `expectsReply`. */
const ANSWERED: Record<AgentMessageType, boolean> = {
  'agent.hello': true,
  'agent.tools.register': true,
  'agent.tools.unregister': true,
  'agent.tool.stream': false,
  'agent.tool.result': false,
  'agent.tool.cancel_ack': false,
  'agent.heartbeat': false,
  'agent.pong': false,
  'agent.goodbye': false,
  'agent.error': false,
};

/** The value must be what FrameDecoder gave: an object of bounded depth. */
export function readMessage(value: FrameValue): ReadMessage {
  const type = knownType(value.type);
  const envelope = validate.openSentienceEnvelope(value);
  if (!envelope.ok) return fault(value, 'protocol.invalid_message', envelope.errors[0].pointer);
  if (type === undefined) return fault(value, 'protocol.unknown_type', '/type');
  if (type === 'agent.hello' && speaksOtherVersions(envelope.value.payload))
    return fault(value, 'protocol.unsupported_version', '/payload/protocol/supported_versions');
  // A hello says in its payload what it speaks (§6.1); every message after it is of the version agreed on.
  if (type !== 'agent.hello' && envelope.value.v !== PROTOCOL_VERSION)
    return fault(value, 'protocol.invalid_message', '/v');
  const payload = validate.agentMessage(type, envelope.value.payload);
  if (!payload.ok)
    return fault(value, 'protocol.invalid_message', `/payload${payload.errors[0].pointer}`);
  return { ok: true, message: value as unknown as AgentMessage };
}

function knownType(type: unknown): AgentMessageType | undefined {
  return typeof type === 'string' && Object.hasOwn(ANSWERED, type)
    ? (type as AgentMessageType)
    : undefined;
}

/** Readable where the rest of a later version's hello may not be. */
function speaksOtherVersions(payload: { protocol?: unknown }): boolean {
  const versions = (payload.protocol as { supported_versions?: unknown } | undefined | null)
    ?.supported_versions;
  return (
    Array.isArray(versions) &&
    versions.every((version) => Number.isInteger(version)) &&
    !versions.includes(PROTOCOL_VERSION)
  );
}

function fault(value: FrameValue, code: MessageFault['code'], pointer: string): ReadMessage {
  const type = knownType(value.type);
  const reply = replyTo(value);
  const said = value.payload as { call_id?: unknown; status?: unknown } | null | undefined;
  const callId = idOf(said?.call_id);
  const hasUselessOutput = said?.status === 'succeeded' && pointer === '/payload/output';
  return {
    ok: false,
    fault: {
      code,
      pointer: pointer.slice(0, MAX_POINTER_LENGTH),
      ...(type && { type }),
      expectsReply: reply.in_reply_to !== undefined && expectsReply(value, type),
      reply,
      ...(callId !== undefined && { callId }),
      ...(hasUselessOutput && { hasUselessOutput }),
    },
  };
}

/** A message of unknown type begins a request when it has a `request_id` and is itself no reply. */
function expectsReply(value: FrameValue, type: AgentMessageType | undefined): boolean {
  if (type) return ANSWERED[type];
  return idOf(value.request_id) !== undefined && value.in_reply_to === undefined;
}

type Ids = { readonly [Field in 'id' | keyof Correlation]?: unknown };

/** What an answer to the message names: its id, where it has one, and the ids that are echoed. */
export function replyTo(message: Ids): Reply {
  const id = idOf(message.id);
  return { ...(id !== undefined && { in_reply_to: id }), ...correlationOf(message) };
}

export const CORRELATION = ['request_id', 'correlation_id', 'causation_id'] as const;

/** The ids that an answer echoes (§3.1). */
export function correlationOf(message: Ids): Correlation {
  const ids = CORRELATION.map((field) => [field, idOf(message[field])] as const);
  return Object.fromEntries(ids.filter(([, id]) => id !== undefined));
}

function idOf(value: unknown): string | undefined {
  const fits = typeof value === 'string' && value.length > 0 && value.length <= MAX_ID_LENGTH;
  return fits ? value : undefined;
}
