// Bounds of an agent (seed 004 §2.2, §7.3): every wait, queue and buffer of the SDK, named. Core's own may be lower.
import { MAX_FRAME_BYTES, MAX_INFLIGHT_REQUESTS } from '../opensentience/messages.ts';

export interface AgentLimits {
  /** Frames in either direction until core.welcome says otherwise. */
  readonly maxFrameBytes: number;
  /** From the call for a connection to the connection, in ms. */
  readonly connectMs: number;
  /** For core.welcome, core.tools.registered and core.tools.unregistered, in ms. */
  readonly replyMs: number;
  /** Calls at one time; above it a call ends with `tool.overloaded`. */
  readonly maxInflightCalls: number;
  /** A result's output as JSON text. */
  readonly maxOutputBytes: number;
  /** Stream messages and bytes of text or JSON of one call; what follows is dropped, and noted once. */
  readonly maxStreamMessages: number;
  readonly maxStreamBytes: number;
  /** Characters of one stream message; longer text is split. */
  readonly maxTextChars: number;
  /** ms that a tool has to end after its signal, where Core names no deadline. */
  readonly cancelMs: number;
  /** ms that calls in flight have to end once the agent drains. */
  readonly drainMs: number;
  /** Bytes that Core has not taken yet; above it streams are dropped, and at twice as many the connection ends. */
  readonly maxWriteBytes: number;
  /** Ended calls whose repeated `call_id` is recognised. */
  readonly rememberedCalls: number;
  /** ms from the end of a launched agent's connection to the end of its process. */
  readonly exitMs: number;
}

export const AGENT_LIMITS: AgentLimits = {
  maxFrameBytes: MAX_FRAME_BYTES,
  connectMs: 10_000,
  replyMs: 10_000,
  maxInflightCalls: MAX_INFLIGHT_REQUESTS,
  maxOutputBytes: 2 * 1024 * 1024,
  maxStreamMessages: 2_048,
  maxStreamBytes: 1024 * 1024,
  maxTextChars: 16_384,
  cancelMs: 1_500,
  drainMs: 10_000,
  maxWriteBytes: 16 * 1024 * 1024,
  rememberedCalls: 2_048,
  exitMs: 2_000,
};

/** Shortest and longest time between heartbeats that is accepted from core.welcome. */
export const HEARTBEAT_MS = { least: 50, most: 5 * 60_000 } as const;
/** JSON text of a heartbeat's details; longer ones are left out. */
export const MAX_HEALTH_BYTES = 4 * 1024;
/** Node's timers take no longer wait. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
