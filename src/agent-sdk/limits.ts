// Bounds of an agent (seed 004 §2.2, §7.3): every wait, queue and buffer of the SDK, named. Core's own may be lower.
import { MAX_FRAME_BYTES, MAX_INFLIGHT_REQUESTS } from '../opensentience/messages.ts';

export const AGENT_LIMITS = {
  /** Frames in either direction until core.welcome says otherwise. */
  maxFrameBytes: MAX_FRAME_BYTES,
  /** From the call for a connection to the connection, in ms. */
  connectMs: 10_000,
  /** For core.welcome, core.tools.registered and core.tools.unregistered, in ms. */
  replyMs: 10_000,
  /** Calls at one time; above it a call ends with `tool.overloaded`. */
  maxInflightCalls: MAX_INFLIGHT_REQUESTS,
  /** A result's output as JSON text. */
  maxOutputBytes: 2 * 1024 * 1024,
  /** Stream messages and bytes of text or JSON of one call; what follows is dropped, and noted once. */
  maxStreamMessages: 2_048,
  maxStreamBytes: 1024 * 1024,
  /** Characters of one stream message; longer text is split. */
  maxTextChars: 16_384,
  /** ms that a tool has to end after its signal, where Core names no deadline. */
  cancelMs: 1_500,
  /** ms that calls in flight have to end once the agent drains. */
  drainMs: 10_000,
  /** Bytes that Core has not taken yet; above it streams are dropped, and at twice as many the connection ends. */
  maxWriteBytes: 16 * 1024 * 1024,
  /** Ended calls whose repeated `call_id` is recognised. */
  rememberedCalls: 2_048,
  /** ms from the end of a launched agent's connection to the end of its process. */
  exitMs: 2_000,
};
export type AgentLimits = Readonly<typeof AGENT_LIMITS>;

/** Shortest and longest time between heartbeats that is accepted from core.welcome. */
export const HEARTBEAT_MS = { least: 50, most: 5 * 60_000 } as const;
/** JSON text of a heartbeat's details; longer ones are left out. */
export const MAX_HEALTH_BYTES = 4 * 1024;
/** Node's timers take no longer wait. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
