// Defaults of the wire's bounds (seed 004 §2.2, §4.5; design §1 "every wait, queue, buffer and retry has a limit").
import { MAX_FRAME_BYTES, MAX_INFLIGHT_REQUESTS } from './messages.ts';
import type { ProtocolLimits } from './parts.ts';

export const DEFAULT_LIMITS: ProtocolLimits = {
  maxFrameBytes: MAX_FRAME_BYTES,
  helloMs: 5_000,
  frameMs: 30_000,
  heartbeatIntervalMs: 5_000,
  missedHeartbeats: 2,
  lostHeartbeats: 6,
  maxInflightRequests: MAX_INFLIGHT_REQUESTS,
  maxQueuedRequests: 1_024,
  maxTools: 256,
  maxToolBytes: 64 * 1024,
  maxStreamMessages: 2_048,
  maxStreamBytes: 1024 * 1024,
  messagesPerSecond: 5_000,
  maxWriteBytes: 32 * 1024 * 1024,
  maxUnknownConnections: 64,
  maxSessions: 512,
  cancelMs: 1_500,
  rememberedCalls: 2_048,
};
/** Most bytes of a call's input and output where neither operator nor tool says less. */
export const MAX_TOOL_INPUT_BYTES = 256 * 1024;
export const MAX_TOOL_OUTPUT_BYTES = 2 * 1024 * 1024;
