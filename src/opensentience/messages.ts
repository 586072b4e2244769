// The messages of the OpenSentience runtime protocol (seed 004 §3, §4) as both sides see them: types, names and
// defaults, with no dependency, so that Core and the agent SDK speak from one page. What an agent sends has its schemas.
import type * as Wire from '../../schemas/types.generated.ts';

export const PROTOCOL_VERSION = 1;
/** Seed 004 §2.2: a receiver closes the connection on a longer frame. */
export const MAX_FRAME_BYTES = 4 * 1024 * 1024;
/** Seed 004 §2.2, per agent connection; further calls wait in a queue. */
export const MAX_INFLIGHT_REQUESTS = 256;

/** Environment of a launched agent (seed 004 §5.2). The token is taken out of the environment by the SDK at once. */
export const SOCKET_VARIABLE = 'OPENSENTIENCE_SOCKET';
export const TOKEN_VARIABLE = 'OPENSENTIENCE_SESSION_TOKEN';
/** Begins the value of SOCKET_VARIABLE where Core listens on loopback TCP: `tcp:127.0.0.1:7411`. */
export const TCP_PREFIX = 'tcp:';

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonMap = { [key: string]: Json };

/** A shape of the wire as code reads and writes it: the fields that its schema names; a free object is JSON. */
type Named<Shape> = Shape extends readonly (infer One)[]
  ? readonly Named<One>[]
  : Shape extends object
    ? keyof KnownFields<Shape> extends never
      ? JsonMap
      : { readonly [Field in keyof KnownFields<Shape>]: Named<KnownFields<Shape>[Field]> }
    : Shape;
type KnownFields<Shape> = {
  [Field in keyof Shape as string extends Field ? never : Field]: Shape[Field];
};

/** Seed 004 §3.2: metadata, never an authorization. */
export type Actor = Named<Wire.OpenSentienceActor>;
/** Seed 004 §3.3. `message` and `details` hold no secrets. */
export type ProtocolError = Named<Wire.OpenSentienceError>;
/** Seed 004 §4.2.1. `tool_id` is `<agent_id>/<name>`; `capabilities`: `streaming`, `cancellation`, `idempotency`. */
export type DeclaredTool = Named<Wire.DeclaredAgentTool>;
/** Seed 004 §3.1: echoed on every message that belongs to a request. */
export type Correlation = Pick<Envelope, 'request_id' | 'correlation_id' | 'causation_id'>;
/** Seed 004 §3. */
export type Envelope<Type extends string = string, Payload = JsonMap> = Omit<
  Named<Wire.OpenSentienceEnvelope>,
  'type' | 'payload'
> & { readonly type: Type; readonly payload: Payload };

/** Payloads of what an agent sends. agent.goodbye and agent.error are not in seed 004: the agent's core.goodbye, core.error. */
export type AgentPayloads = Omit<Named<Wire.OpenSentiencePayloads>, 'declared-tool'> & {
  readonly 'agent.tools.register': { readonly tools: readonly DeclaredTool[] };
};
export type StreamChannel = AgentPayloads['agent.tool.stream']['channel'];
export type AgentHealth = AgentPayloads['agent.heartbeat']['status'];

/** Payloads of what Core sends. */
export interface CorePayloads {
  'core.welcome': {
    /** 0 with an error. */
    readonly accepted_version: number;
    readonly session_id: string;
    readonly heartbeat_interval_ms: number;
    readonly max_frame_bytes: number;
    readonly server: { readonly core_version: string; readonly instance_id: string };
  };
  'core.goodbye': { readonly reason: string; readonly retry_after_ms?: number };
  'core.tools.registered': {
    readonly registered: readonly string[];
    readonly rejected?: readonly { readonly tool_id: string; readonly error: ProtocolError }[];
  };
  'core.tools.unregistered': { readonly tool_ids: readonly string[] };
  'core.tool.call': {
    readonly call_id: string;
    readonly tool_id: string;
    readonly input: JsonMap;
    readonly timeout_ms?: number;
    readonly idempotency_key?: string;
    readonly caller?: { readonly type: Actor['type']; readonly id: string };
    readonly context?: JsonMap;
  };
  'core.tool.cancel': {
    readonly call_id: string;
    readonly reason?: string;
    readonly deadline_ms?: number;
  };
  'core.ping': JsonMap;
  /** The structured error that answers a message of unknown type which expects a reply (seed 004 §6.2). */
  'core.error': JsonMap;
}

export type AgentMessageType = keyof AgentPayloads;
export type CoreMessageType = keyof CorePayloads;
export type AgentMessage = {
  [Type in AgentMessageType]: Envelope<Type, AgentPayloads[Type]>;
}[AgentMessageType];
export type CoreMessage = {
  [Type in CoreMessageType]: Envelope<Type, CorePayloads[Type]>;
}[CoreMessageType];

/** Codes of protocol errors (seed 004 §3.3): the first part names who is at fault, the second what. */
export const PROTOCOL_ERRORS = {
  'protocol.unauthorized': 'The session token is not valid.',
  'protocol.unsupported_version': 'There is no protocol version that both sides speak.',
  'protocol.unknown_type': 'The type of the message is not known.',
  'protocol.invalid_message': 'The message is not valid.',
  'protocol.unexpected_message': 'The message is not expected now.',
  'protocol.frame_too_large': 'The frame is larger than permitted.',
  'protocol.invalid_frame': 'The frame does not hold one JSON object in UTF-8.',
  'protocol.too_slow': 'The other side took longer than permitted.',
  'protocol.flood': 'The other side sent more than permitted.',
  'protocol.agent_already_connected': 'An agent with this id is connected.',
  'protocol.draining': 'The session takes no new calls.',
  'tool.invalid_id': "The tool's id is not <agent_id>/<name> of this agent.",
  'tool.duplicate_name': 'The name is declared twice.',
  'tool.invalid_schema': 'The schema is not valid or larger than permitted.',
  'tool.too_many': 'The agent declares more tools than permitted.',
  'tool.not_found': 'There is no such tool.',
  'tool.invalid_input': "The input does not match the tool's schema.",
  'tool.invalid_output': "The output does not match the tool's schema.",
  'tool.input_too_large': 'The input is larger than permitted.',
  'tool.output_too_large': 'The output is larger than permitted.',
  'tool.canceled': 'The call was canceled.',
  'tool.timeout': 'The call took longer than permitted.',
  'tool.failed': 'The tool failed.',
  'tool.overloaded': 'More calls wait than permitted.',
} as const satisfies Record<string, string>;

export type ProtocolErrorCode = keyof typeof PROTOCOL_ERRORS;
