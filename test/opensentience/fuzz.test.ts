// A seeded fuzzer over the codec and the session machine (seed 004 §2 to §4): whatever bytes come, the machine stands,
// every call ends at most once, and no audit holds what an agent wrote. A failure names its seed.
import { describe, expect, it } from 'vitest';
import type { Effect } from '../../src/opensentience/session/effects.ts';
import { encodeFrame, FrameDecoder } from '../../src/opensentience/frame.ts';
import { readMessage } from '../../src/opensentience/session/read-message.ts';
import { Session, type SessionInput } from '../../src/opensentience/session/session.ts';
import {
  AGENT,
  callOf,
  CANARY,
  helloOf,
  message,
  rulesOf,
  toolOf,
} from '../support/opensentience/wire.ts';

/** Streams that are tried. A failure names its seed: begin with it to see it alone. */
const ROUNDS = 3_000;
const FIRST_SEED = 1;
const MAX_FRAME = 16 * 1024;
const MAX_MUTATIONS = 6;
const MAX_CHUNK = 400;
const T0 = 1_000_000;

/** mulberry32: the same numbers for the same seed, everywhere. */
function randomOf(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const ODD: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1.5,
  1e308,
  '',
  CANARY,
  'x'.repeat(600),
  [],
  [CANARY],
  {},
  { a: CANARY },
  '\u0000',
  '__proto__',
];

/** What an agent might say: the calls `call-0` to `call-3` are real. */
function script(random: (below: number) => number): object[] {
  const call_id = `call-${random(6)}`;
  const ids = { request_id: 'request-1', correlation_id: 'run-1', causation_id: 'event-1' };
  const lines: object[] = [
    helloOf(),
    message('agent.tools.register', {
      tools: [toolOf('echo'), toolOf(`t${random(9)}`)],
      replace: random(2) === 0,
    }),
    message('agent.tools.unregister', { tool_ids: [`${AGENT}/t${random(9)}`] }),
    message(
      'agent.tool.stream',
      { call_id, seq: random(4), channel: 'log', data: { text: CANARY } },
      ids,
    ),
    message('agent.tool.result', { call_id, status: 'succeeded', output: { a: CANARY } }, ids),
    message(
      'agent.tool.result',
      { call_id, status: 'failed', error: { code: CANARY, message: CANARY } },
      ids,
    ),
    message('agent.tool.cancel_ack', { call_id, accepted: true }, ids),
    message('agent.heartbeat', {
      session_id: 'session-1',
      uptime_ms: 1,
      inflight_calls: 0,
      status: 'ok',
    }),
    message('agent.pong', {}),
    message('agent.error', { a: CANARY }, { in_reply_to: `m-${call_id}` }),
  ];
  return Array.from({ length: 1 + random(8) }, () =>
    spoiled(lines[random(lines.length)] as object, random),
  );
}

/** Now and then one member, somewhere, is something else. */
function spoiled(value: object, random: (below: number) => number): object {
  if (random(3) > 0) return value;
  const copy = structuredClone(value) as Record<string, unknown>;
  let place = copy;
  for (;;) {
    const keys = Object.keys(place);
    const key = keys[random(keys.length)] ?? 'new';
    const inner = place[key];
    if (typeof inner === 'object' && inner !== null && random(3) > 0) place = inner as typeof copy;
    else {
      if (random(4) === 0) delete place[key];
      else place[key] = ODD[random(ODD.length)];
      return copy;
    }
  }
}

function mutated(bytes: Buffer, random: (below: number) => number): Buffer {
  let now = Buffer.from(bytes);
  if (random(2) === 0) return now;
  for (let n = 1 + random(MAX_MUTATIONS); n > 0 && now.length > 0; n -= 1) {
    const at = random(now.length);
    const to = Math.min(now.length, at + random(40));
    if (random(4) === 0) now = now.subarray(0, at);
    else if (random(3) === 0) now = Buffer.concat([now.subarray(0, at), now.subarray(to)]);
    else if (random(2) === 0) now = Buffer.concat([now.subarray(0, to), now.subarray(at)]);
    else now[at] = random(256);
  }
  return now;
}

class Round {
  readonly settled = new Map<string, number>();
  readonly audit: Effect[] = [];
  readonly progress: Effect[] = [];
  readonly session: Session;
  readonly #random: (below: number) => number;
  #now = T0;

  constructor(seed: number) {
    this.#random = randomOf(seed);
    const limits = {
      maxFrameBytes: MAX_FRAME,
      maxInflightRequests: 3,
      maxStreamMessages: 2,
      cancelMs: 50,
    };
    this.session = new Session(rulesOf(limits), 'unix', T0);
  }

  give(input: SessionInput): void {
    for (const effect of this.session.step(input, this.#now)) {
      if (effect.kind === 'settle')
        this.settled.set(effect.callId, (this.settled.get(effect.callId) ?? 0) + 1);
      if (effect.kind === 'audit') this.audit.push(effect);
      if (effect.kind === 'progress' || effect.kind === 'settle') this.progress.push(effect);
      if (effect.kind === 'send') encodeFrame(effect.message, 16 * MAX_FRAME);
      if (effect.kind === 'check') this.#answerGate();
    }
  }

  #answerGate(): void {
    const admission = { ok: true as const, attached: true };
    const input: SessionInput =
      this.#random(8) === 0
        ? { name: 'refused', of: { code: 'protocol.unauthorized' } }
        : { name: 'admitted', of: { sessionId: 'session-1', admission } };
    this.#waiting.push(input);
  }

  readonly #waiting: SessionInput[] = [];

  run(): void {
    const random = this.#random;
    // Most rounds begin with a session that works: what lies behind the hello is reached.
    const opening =
      random(4) > 0
        ? [helloOf(), message('agent.tools.register', { tools: [toolOf('echo')] })]
        : [];
    this.#hear(Buffer.concat(opening.map((one) => encodeFrame(one, MAX_FRAME))), false);
    for (let n = 0; n < 4; n += 1) {
      const request = callOf(`${AGENT}/echo`, { timeoutMs: 1 + random(200) });
      this.give({ name: 'call', of: { callId: `call-${n}`, messageId: `m-call-${n}`, request } });
    }
    const bytes = Buffer.concat(script(random).map((one) => encodeFrame(one, 4 * MAX_FRAME)));
    this.#hear(mutated(bytes, random), true);
    this.give({ name: 'ended', of: {} });
  }

  #hear(bytes: Buffer, disturbed: boolean): void {
    const decoder = new FrameDecoder(MAX_FRAME);
    for (let at = 0; at < bytes.length;) {
      const size = 1 + this.#random(MAX_CHUNK);
      for (const frame of decoder.push(bytes.subarray(at, at + size))) this.#take(frame);
      at += size;
      if (disturbed) this.#disturb();
    }
    const fault = disturbed ? decoder.end() : undefined;
    if (fault) this.give({ name: 'frame-fault', of: { fault } });
  }

  #take(frame: ReturnType<FrameDecoder['push']>[number]): void {
    if (!frame.ok) return this.give({ name: 'frame-fault', of: { fault: frame.fault } });
    const read = readMessage(frame.value);
    if (read.ok) this.give({ name: read.message.type, of: read.message } as SessionInput);
    else {
      const unknown = read.fault.code === 'protocol.unknown_type';
      this.give({ name: unknown ? 'unknown-type' : 'invalid', of: read.fault });
    }
    for (let input = this.#waiting.shift(); input; input = this.#waiting.shift()) this.give(input);
  }

  #disturb(): void {
    this.#now += this.#random(60);
    const kind = this.#random(8);
    if (kind < 3) this.give({ name: 'tick', of: {} });
    if (kind === 3) this.give({ name: 'cancel', of: { callId: `call-${this.#random(5)}` } });
    if (kind === 4 && this.#random(8) === 0)
      this.give({ name: 'drain', of: { reason: 'fuzz', deadlineMs: 100 } });
  }
}

describe('fuzz', () => {
  it(`${ROUNDS} mutated streams: the machine stands, calls end once, audits hold no content`, () => {
    const reached = new Set<string>();
    for (let seed = FIRST_SEED; seed < FIRST_SEED + ROUNDS; seed += 1) {
      const round = new Round(seed);
      const told = `seed ${seed}`;
      expect(() => round.run(), told).not.toThrow();
      expect(round.session.state, told).toBe('closed');
      expect([...round.settled], told).toEqual(
        expect.arrayContaining([0, 1, 2, 3].map((n) => [`call-${n}`, 1])),
      );
      expect(round.settled.size, told).toBe(4);
      expect(
        JSON.stringify([
          round.audit,
          round.progress,
          round.session.view({ bytesIn: 0, bytesOut: 0 }),
        ]),
        told,
      ).not.toContain(CANARY);
      for (const effect of round.audit) if (effect.kind === 'audit') reached.add(effect.what);
    }
    // A fuzzer that stops reaching the machine proves nothing.
    for (const kind of [
      'session.opened',
      'session.second_hello',
      'message.invalid',
      'message.unknown_type',
      'frame.not_json',
      'frame.too_large',
      'frame.truncated',
      'call.second_result',
      'call.unknown_result',
      'call.given_up',
      'stream.gap',
    ])
      expect(reached).toContain(kind);
  });
});
