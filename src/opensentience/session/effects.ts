// What the session machine asks of its connection, and what it knows of the world (seed 004 §4). Effects are performed
// in order; ids, timestamps and sockets are the connection's.
import type { ErrorCode } from '../../rules/errors.ts';
import type { JsonObject } from '../../rules/json.ts';
import type { ToolProgress } from '../../ports/tools.ts';
import {
  PROTOCOL_ERRORS,
  type AgentPayloads,
  type CoreMessageType,
  type CorePayloads,
  type Envelope,
  type ProtocolError,
  type ProtocolErrorCode,
} from '../messages.ts';
import type { AgentServerOptions } from '../parts.ts';

/** A message of Core without what the connection stamps: `v`, `id`, `ts`. */
export type Outgoing = {
  [Type in CoreMessageType]: Omit<Envelope<Type, CorePayloads[Type]>, 'v' | 'id' | 'ts'>;
}[CoreMessageType];

export type CallOutcome =
  | { readonly ok: true; readonly output: JsonObject }
  | {
      readonly ok: false;
      readonly code: ErrorCode;
      /** False when the call was certainly not written to the socket. */
      readonly sent: boolean;
      /** `final: true`: asking again gives the same. `happened: true`: it had its effect. */
      readonly details: JsonObject;
    };

export type Effect =
  /** The gate decides; its word comes back as `admitted` or `refused`. */
  | { readonly kind: 'check'; readonly hello: AgentPayloads['agent.hello'] }
  /** `id`: the message's own, where the machine has to know it. */
  | { readonly kind: 'send'; readonly message: Outgoing; readonly id?: string }
  /** `details` are ids of ours, sizes, counts and codes; never content. */
  | { readonly kind: 'audit'; readonly what: string; readonly details: JsonObject }
  | { readonly kind: 'opened' }
  | { readonly kind: 'changed'; readonly what: 'tools' | 'health' | 'calls' | 'state' }
  | { readonly kind: 'progress'; readonly callId: string; readonly progress: ToolProgress }
  | { readonly kind: 'settle'; readonly callId: string; readonly outcome: CallOutcome }
  /** After what was sent before it. */
  | { readonly kind: 'close'; readonly reason: string };

export type Emit = (effect: Effect) => void;

/** What a session is told once. */
export type SessionRules = Pick<
  AgentServerOptions,
  'limits' | 'instanceId' | 'coreVersion' | 'redactor'
>;

/** Names Core in the `where` of its errors (seed 004 §3.3). */
const WHERE = 'core.session';

export function protocolError(code: ProtocolErrorCode, details?: JsonObject): ProtocolError {
  return {
    code,
    message: PROTOCOL_ERRORS[code],
    ...(details && { details }),
    retryable: RETRYABLE.has(code),
    where: WHERE,
  };
}

const RETRYABLE: ReadonlySet<ProtocolErrorCode> = new Set([
  'protocol.too_slow',
  'protocol.flood',
  'protocol.agent_already_connected',
  'protocol.draining',
  'tool.overloaded',
]);
