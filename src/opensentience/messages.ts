// The messages of the OpenSentience runtime protocol (seed 004 §3, §4) as both sides see them: types, names and
// defaults, with no dependency, so that Core and the agent SDK speak from one page.

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

/** Seed 004 §3.2: metadata, never an authorization. */
export interface Actor {
  readonly type: 'human' | 'agent' | 'system';
  readonly id: string;
  readonly display?: string;
}

/** Seed 004 §3.3. `message` and `details` hold no secrets. */
export interface ProtocolError {
  readonly code: string;
  readonly message: string;
  readonly details?: JsonMap;
  readonly retryable?: boolean;
  readonly where?: string;
  readonly debug?: JsonMap;
}

/** Seed 004 §3.1: echoed on every message that belongs to a request. */
export interface Correlation {
  readonly request_id?: string;
  readonly correlation_id?: string;
  readonly causation_id?: string;
}

/** Seed 004 §3. */
export interface Envelope<Type extends string = string, Payload = JsonMap> extends Correlation {
  readonly v: number;
  readonly type: Type;
  readonly id: string;
  /** RFC 3339. */
  readonly ts: string;
  readonly payload: Payload;
  readonly in_reply_to?: string;
  readonly actor?: Actor;
  readonly error?: ProtocolError;
}

/** Seed 004 §4.2.1. */
export interface DeclaredTool {
  /** `<agent_id>/<name>`. */
  readonly tool_id: string;
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonMap;
  readonly output_schema?: JsonMap;
  /** `streaming`, `cancellation`, `idempotency` (repeats with one idempotency_key have one effect). */
  readonly capabilities?: readonly string[];
  readonly side_effects?: boolean;
  readonly requires_directive?: boolean;
  readonly tags?: readonly string[];
}

export type StreamChannel = 'stdout' | 'stderr' | 'log' | 'partial_result' | 'status';
export type AgentHealth = 'ok' | 'degraded' | 'unhealthy';

/** Payloads of what an agent sends. */
export interface AgentPayloads {
  'agent.hello': {
    readonly session_token: string;
    readonly agent_id: string;
    readonly agent_version: string;
    readonly manifest_hash?: string;
    readonly protocol: {
      readonly supported_versions: readonly number[];
      readonly capabilities: readonly string[];
    };
    readonly sdk?: { readonly name: string; readonly version: string };
  };
  'agent.tools.register': { readonly tools: readonly DeclaredTool[]; readonly replace?: boolean };
  'agent.tools.unregister': { readonly tool_ids: readonly string[] };
  'agent.tool.stream': {
    readonly call_id: string;
    /** From 1, by one. */
    readonly seq: number;
    readonly channel: StreamChannel;
    readonly data: { readonly text?: string; readonly json?: JsonMap };
    readonly done?: boolean;
  };
  'agent.tool.result': {
    readonly call_id: string;
    readonly status: 'succeeded' | 'failed' | 'canceled';
    readonly output?: JsonMap;
    readonly error?: ProtocolError;
    readonly started_at?: string;
    readonly finished_at?: string;
    readonly metrics?: JsonMap;
  };
  'agent.tool.cancel_ack': {
    readonly call_id: string;
    readonly accepted: boolean;
    readonly note?: string;
  };
  'agent.heartbeat': {
    readonly session_id: string;
    readonly uptime_ms: number;
    readonly inflight_calls: number;
    readonly status: AgentHealth;
    readonly details?: JsonMap;
  };
  'agent.pong': JsonMap;
  /** The agent will close the connection: Core sends no further calls and awaits those in flight. Not in seed 004. */
  'agent.goodbye': { readonly reason?: string };
  /** As core.error, from the agent; answers also what cannot have a result (a repeated call_id). Not in seed 004. */
  'agent.error': JsonMap;
}

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
