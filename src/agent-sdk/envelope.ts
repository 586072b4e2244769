// The envelope of every message (seed 004 §3): made for what the agent sends, read from what Core sends.
import { randomUUID } from 'node:crypto';
import {
  PROTOCOL_VERSION,
  type AgentMessage,
  type AgentMessageType,
  type AgentPayloads,
  type Correlation,
  type Envelope,
  type JsonMap,
} from '../opensentience/messages.ts';

type Extras = Omit<Partial<Envelope>, 'v' | 'type' | 'id' | 'ts' | 'payload'>;

export function envelope<Type extends AgentMessageType>(
  type: Type,
  payload: AgentPayloads[Type],
  extras: Extras = {},
): AgentMessage {
  const [id, ts] = [randomUUID(), new Date().toISOString()];
  return { v: PROTOCOL_VERSION, type, id, ts, ...extras, payload } as AgentMessage;
}

/** What the agent MUST echo on all messages of a request (seed 004 §3.1). */
export function correlationOf(message: Envelope): Correlation {
  const { request_id, correlation_id, causation_id } = message;
  return {
    ...(typeof request_id === 'string' && { request_id }),
    ...(typeof correlation_id === 'string' && { correlation_id }),
    ...(typeof causation_id === 'string' && { causation_id }),
  };
}

export function isMap(value: unknown): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Undefined when it is none of this version. Unknown members are ignored (seed 004 §6.2). */
export function readEnvelope(value: { [key: string]: unknown }): Envelope | undefined {
  const { v, type, id, payload } = value;
  const valid =
    v === PROTOCOL_VERSION && typeof type === 'string' && typeof id === 'string' && isMap(payload);
  return valid ? (value as unknown as Envelope) : undefined;
}
