// The wire's bounds by name, and their defaults (seed 004 §2.2, §4.5; architecture §10 "every wait, queue, buffer and
// retry has a named limit").
import { MAX_FRAME_BYTES, MAX_INFLIGHT_REQUESTS } from './messages.ts';

export const DEFAULT_LIMITS = {
  maxFrameBytes: MAX_FRAME_BYTES,
  /** From connection to a valid hello, in ms. */
  helloMs: 5_000,
  /** From the first byte of a frame to its last, in ms (slow senders). */
  frameMs: 30_000,
  heartbeatIntervalMs: 5_000,
  /** Intervals without a heartbeat or an answer to core.ping until the session is `silent` and gets no calls. */
  missedHeartbeats: 2,
  /** Intervals without either until the connection is closed. */
  lostHeartbeats: 6,
  maxInflightRequests: MAX_INFLIGHT_REQUESTS,
  /** Calls that wait for a free place; above it `tool.overloaded`. */
  maxQueuedRequests: 1_024,
  maxTools: 256,
  /** One tool's declaration, both schemas included. */
  maxToolBytes: 64 * 1024,
  /** Stream messages and bytes of text of one call; what follows is dropped, and noted once. */
  maxStreamMessages: 2_048,
  maxStreamBytes: 1024 * 1024,
  /** Messages per second that an agent may send on average; above it its socket is read slower. */
  messagesPerSecond: 5_000,
  /** Bytes that may wait to be taken by the agent; above it the connection is closed. */
  maxWriteBytes: 32 * 1024 * 1024,
  /** Connections of one transport that have not said a valid hello; above it new ones are closed. */
  maxUnknownConnections: 64,
  maxSessions: 512,
  /** ms that an agent has to end a call after core.tool.cancel. */
  cancelMs: 1_500,
  /** Ended calls of a session whose late messages are recognised. */
  rememberedCalls: 2_048,
};
export type ProtocolLimits = Readonly<typeof DEFAULT_LIMITS>;

/** Most bytes of a call's input and output where neither operator nor tool says less. */
export const MAX_TOOL_INPUT_BYTES = 256 * 1024;
export const MAX_TOOL_OUTPUT_BYTES = 2 * 1024 * 1024;
