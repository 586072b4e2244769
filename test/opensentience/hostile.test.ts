// What no agent may do to others (seed 004 §2.2, §5, §7): named hostile streams and behaviours over real sockets. None
// takes the server or another agent's session down, and each is audited without content.
import { afterEach, describe, expect, it } from 'vitest';
import { encodeFrame } from '../../src/opensentience/frame.ts';
import { MAX_AUDITS_PER_KIND } from '../../src/opensentience/session/pace.ts';
import type { Gate } from '../../src/opensentience/parts.ts';
import type { ProtocolLimits } from '../../src/opensentience/limits.ts';
import type { ToolProgress } from '../../src/ports/tools.ts';
import { BAD_FRAMES } from './hostile-streams.ts';
import {
  AGENT,
  callOf,
  CANARY,
  helloOf,
  message,
  startStage,
  toolOf,
  type RawAgent,
  type Stage,
} from '../support/opensentience/wire.ts';
import { paced } from '../support/machine.ts';

const GOOD = 'org.example.good';
const LIMIT = 64 * 1024;
let stage: Stage;

/** A stage with one well-behaved agent at work. */
async function begin(limits: Partial<ProtocolLimits> = {}, gate?: Gate): Promise<RawAgent> {
  stage = await startStage({ maxFrameBytes: LIMIT, ...limits }, gate && { gate });
  const good = stage.agent();
  good.onMessage = (one) => {
    if (one.type === 'core.tool.call') good.answer(one, { output: { ok: true } });
  };
  await good.join(GOOD);
  return good;
}

async function goodAgentWorks(): Promise<void> {
  await expect(stage.session(GOOD).call(callOf(`${GOOD}/echo`))).resolves.toEqual({ ok: true });
}

/** After every test: the good agent is served, and what the bad one wrote is nowhere. */
afterEach(async () => {
  await goodAgentWorks();
  const views = stage.server.sessions().map((one) => [one.view(), one.metrics(), one.tools()]);
  expect(JSON.stringify([stage.audit, stage.logs, views])).not.toContain(CANARY);
  await stage.stop();
});

describe('frames', () => {
  for (const { name, bytes, fault } of BAD_FRAMES)
    it(`${name}: its connection ends before and after the hello, ${fault} is audited`, async () => {
      await begin();
      const kind = `frame.${fault.replaceAll('-', '_')}`;
      for (const joined of [false, true]) {
        const bad = stage.agent();
        if (joined) await bad.join();
        bad.write(bytes);
        if (fault === 'truncated') bad.socket.end();
        await bad.ended;
        await expect
          .poll(() => stage.kinds().filter((one) => one === kind).length)
          .toBe(joined ? 2 : 1);
      }
      expect(stage.closed.map(({ agentId }) => agentId)).toEqual([AGENT]);
    });
  it('short ones cut at every byte: the same end each time', async () => {
    await begin();
    for (const { bytes, fault } of BAD_FRAMES.filter((one) => one.bytes.length <= 24))
      for (let cut = 1; cut < bytes.length; cut += 1) {
        const bad = stage.agent();
        bad.write(bytes.subarray(0, cut));
        await new Promise((resolve) => setImmediate(resolve));
        bad.write(bytes.subarray(cut));
        if (fault === 'truncated') bad.socket.end();
        await bad.ended;
      }
    expect(stage.server.sessions().map(({ agentId }) => agentId)).toEqual([GOOD]);
  });
  it('a good stream in single bytes is a good stream', async () => {
    await begin();
    const agent = stage.agent();
    const bytes = Buffer.concat([
      encodeFrame(helloOf(), LIMIT),
      encodeFrame(message('agent.tools.register', { tools: [toolOf('a')] }), LIMIT),
    ]);
    for (const byte of bytes) {
      agent.write(Buffer.from([byte]));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect((await agent.next('core.tools.registered')).payload.registered).toEqual([`${AGENT}/a`]);
  });
  it('bad frames between the good traffic of another agent change none of it', async () => {
    await begin();
    const calls = Array.from({ length: 50 }, () =>
      stage.session(GOOD).call(callOf(`${GOOD}/echo`)),
    );
    for (const { bytes } of BAD_FRAMES) {
      const bad = stage.agent();
      bad.write(bytes);
      bad.socket.end();
      calls.push(stage.session(GOOD).call(callOf(`${GOOD}/echo`)));
      await bad.ended;
    }
    expect(await Promise.all(calls)).toEqual(calls.map(() => ({ ok: true })));
  });
});

describe('time and amount', () => {
  it('slow-loris: a hello byte by byte is not waited for', async () => {
    await begin({ helloMs: paced(150) });
    const bad = stage.agent();
    const bytes = encodeFrame(helloOf(), LIMIT);
    let at = 0;
    const drip = setInterval(() => bad.write(bytes.subarray(at, ++at)), 10);
    await bad.ended;
    clearInterval(drip);
    expect(stage.kinds()).toContain('hello.too_slow');
  });
  it('slow-loris: a frame that an open session does not finish ends it', async () => {
    await begin({ frameMs: paced(100) });
    const bad = stage.agent();
    await bad.join();
    bad.write(encodeFrame(message('agent.pong', {}), LIMIT).subarray(0, 20));
    expect((await bad.next('core.goodbye')).error?.code).toBe('protocol.too_slow');
    await bad.ended;
    expect(stage.kinds()).toContain('frame.too_slow');
  });
  it('connections that say nothing take no place from those who do', async () => {
    await begin({ maxUnknownConnections: 3 });
    const silent = Array.from({ length: 10 }, () => stage.agent());
    await expect
      .poll(() => stage.kinds().filter((one) => one === 'connection.refused').length)
      .toBe(7);
    silent[0]?.socket.destroy();
    silent[1]?.socket.destroy();
    silent[2]?.socket.destroy();
    await expect
      .poll(() => stage.kinds().filter((one) => one === 'connection.closed').length)
      .toBe(3);
    await stage.agent().join();
  });
  it('an agent that sends faster than permitted is read slower, not cut off, and others are served meanwhile', async () => {
    await begin({ messagesPerSecond: 200 });
    const bad = stage.agent();
    await bad.join();
    const pong = encodeFrame(message('agent.pong', {}), LIMIT);
    bad.write(Buffer.concat(Array.from({ length: 600 }, () => pong)));
    const last = message('agent.tools.unregister', { tool_ids: [`${AGENT}/echo`] });
    bad.send(last);
    await goodAgentWorks();
    expect((await bad.next('core.tools.unregistered')).in_reply_to).toBe(last.id);
    expect(stage.session().routable()).toBe(true);
  });
  it('a flood of messages that nobody understands ends its session; the audit stays small', async () => {
    await begin();
    const bad = stage.agent();
    await bad.join();
    const odd = encodeFrame({ ...message('agent.pong', {}), type: `agent.${CANARY}` }, LIMIT);
    bad.write(Buffer.concat(Array.from({ length: 1_500 }, () => odd)));
    expect((await bad.next('core.goodbye')).error?.code).toBe('protocol.flood');
    await bad.ended;
    const notes = stage.kinds().filter((one) => one === 'message.unknown_type').length;
    expect(notes).toBe(MAX_AUDITS_PER_KIND);
    expect(stage.kinds()).toContain('audit.suppressed');
  });
  it('an agent that does not read is closed when too much waits for it, and its calls end', async () => {
    await begin({ maxWriteBytes: 256 * 1024 });
    const bad = stage.agent();
    await bad.join();
    bad.socket.pause();
    const session = stage.session();
    const input = { text: 'x'.repeat(20_000) };
    const calls = Array.from({ length: 100 }, () =>
      session.call(callOf(`${AGENT}/echo`, { input, maxInputBytes: 50_000 })),
    );
    const ends = await Promise.allSettled(calls);
    expect(ends.map(({ status }) => status)).toEqual(ends.map(() => 'rejected'));
    expect(stage.kinds()).toContain('write.too_slow');
  });
});

describe('seed 004 §5: tokens', () => {
  /** Tokens as the gate of Core has them: one agent each, once, until they expire. */
  function scriptedGate(): Gate {
    const tokens = new Map([
      ['right', { agentId: GOOD, expired: false }],
      ['mine', { agentId: AGENT, expired: false }],
      ['old', { agentId: AGENT, expired: true }],
    ]);
    return async ({ agentId, sessionToken }) => {
      const token = tokens.get(sessionToken);
      tokens.delete(sessionToken);
      return token && token.agentId === agentId && !token.expired
        ? { ok: true, attached: true }
        : { ok: false, code: 'protocol.unauthorized', reason: sessionToken };
    };
  }
  const tries: readonly [string, string, string][] = [
    ['a wrong token', AGENT, CANARY],
    ['an expired token', AGENT, 'old'],
    ['a used token', GOOD, 'right'],
    ['the token of another agent', 'org.example.other', 'mine'],
  ];
  for (const [what, agentId, token] of tries)
    it(`${what} opens nothing`, async () => {
      await begin({}, scriptedGate());
      const bad = stage.agent();
      bad.send(helloOf(agentId, token));
      expect((await bad.next('core.welcome')).error?.code).toBe('protocol.unauthorized');
      await bad.ended;
      expect(stage.server.sessions()).toHaveLength(1);
      const note = stage.audit.find(({ kind }) => kind === 'hello.refused');
      expect(note).toMatchObject({ agentId, details: { code: 'protocol.unauthorized' } });
    });
  it('two hellos with one id at the same time: one gets in', async () => {
    await begin();
    const both = [stage.agent(), stage.agent()];
    for (const one of both) one.send(helloOf());
    const welcomes = await Promise.all(both.map((one) => one.next('core.welcome')));
    expect(welcomes.map(({ error }) => error?.code ?? 'in').sort()).toEqual([
      'in',
      'protocol.agent_already_connected',
    ]);
  });
  it('an id that is no id is no hello', async () => {
    await begin();
    for (const agentId of ['', 'a', '../../etc', 'a/b', 'x'.repeat(129), '__proto__']) {
      const bad = stage.agent();
      bad.send(helloOf(agentId));
      expect((await bad.next('core.welcome')).error?.code).toBe('protocol.invalid_message');
      await bad.ended;
    }
  });
});

describe('tools, calls and secrets', () => {
  it('tools outside the namespace and schemas that are too large are refused one by one', async () => {
    await begin();
    const bad = stage.agent();
    await bad.join();
    const big = { type: 'object', description: 'x'.repeat(40_000) };
    const tools = [
      { ...toolOf('steal'), tool_id: `${GOOD}/echo` },
      toolOf('fine'),
      toolOf('loop', { input_schema: { $ref: '#' } }),
      toolOf('slow', { input_schema: { type: 'string', pattern: '(?=a)b' } }),
    ];
    bad.send(message('agent.tools.register', { tools }));
    const { registered, rejected } = (await bad.next('core.tools.registered')).payload;
    expect(registered).toContain(`${AGENT}/fine`);
    expect(registered).not.toContain(`${GOOD}/echo`);
    expect(rejected?.[0]?.error.code).toBe('tool.invalid_id');
    bad.send(
      message('agent.tools.register', {
        tools: [toolOf('big', { input_schema: { ...big, title: 'y'.repeat(20_000) } })],
      }),
    );
    await bad.next('core.tools.registered');
    expect(
      stage
        .session(GOOD)
        .tools()
        .map(({ tool_id }) => tool_id),
    ).toEqual([`${GOOD}/echo`]);
  });
  it('results, streams and acks for calls that never were are dropped', async () => {
    await begin();
    const bad = stage.agent();
    await bad.join();
    bad.send(
      message('agent.tool.result', {
        call_id: CANARY,
        status: 'succeeded',
        output: { secret: CANARY },
      }),
    );
    bad.send(
      message('agent.tool.stream', {
        call_id: CANARY,
        seq: 1,
        channel: 'log',
        data: { text: CANARY },
      }),
    );
    bad.send(message('agent.tool.cancel_ack', { call_id: CANARY, accepted: true, note: CANARY }));
    await expect
      .poll(() => stage.kinds())
      .toEqual(
        expect.arrayContaining([
          'call.unknown_result',
          'call.unknown_stream',
          'call.unknown_cancel_ack',
        ]),
      );
  });
  it('an agent cannot answer the call of another', async () => {
    const good = await begin();
    good.onMessage = () => undefined;
    const bad = stage.agent();
    await bad.join();
    const ending = stage.session(GOOD).call(callOf(`${GOOD}/echo`));
    const call = await good.next('core.tool.call');
    bad.answer(call, { output: { forged: true } });
    await expect.poll(() => stage.kinds()).toContain('call.unknown_result');
    good.answer(call, { output: { ok: true } });
    await expect(ending).resolves.toEqual({ ok: true });
    good.onMessage = (one) => {
      if (one.type === 'core.tool.call') good.answer(one, { output: { ok: true } });
    };
  });
  it('secrets in outputs, errors, streams, notes and unknown fields come through nowhere', async () => {
    await begin();
    const bad = stage.agent();
    const session_id = await bad.join();
    const progress: ToolProgress[] = [];
    const call = () =>
      stage
        .session()
        .call(callOf(`${AGENT}/echo`, { onProgress: (one) => void progress.push(one) }));
    const first = call();
    const one = await bad.next('core.tool.call');
    const { call_id } = one.payload;
    bad.send(
      message('agent.tool.stream', { call_id, seq: 1, channel: 'stdout', data: { text: CANARY } }),
    );
    bad.send(
      message('agent.tool.stream', {
        call_id,
        seq: 2,
        channel: 'partial_result',
        data: { json: { [CANARY]: CANARY } },
      }),
    );
    bad.answer(one, { output: { said: CANARY, [CANARY]: [CANARY] } });
    const second = first.then(call);
    const two = await bad.next('core.tool.call');
    bad.answer(two, {
      status: 'failed',
      error: { code: CANARY, message: CANARY, details: { a: CANARY } },
    });
    const failure = await second.then(
      () => undefined,
      (error: Error & { details?: unknown }) => [error.message, error.details],
    );
    bad.send({
      ...message('agent.heartbeat', {
        session_id,
        uptime_ms: 1,
        inflight_calls: 0,
        status: 'degraded',
        details: { a: CANARY },
      }),
      [CANARY]: 1,
    });
    bad.send({ ...message('agent.pong', {}), type: CANARY, request_id: 'r' });
    bad.send({ ...message('agent.pong', {}), ts: CANARY });
    bad.send(message('agent.goodbye', { reason: CANARY }));
    await bad.ended;
    expect(JSON.stringify([await first, failure, progress])).not.toContain(CANARY);
    expect(JSON.stringify(await first)).toContain('[REDACTED:canary]');
  });
  it('a result whose shape is wrong ends its call all the same', async () => {
    await begin();
    const bad = stage.agent();
    await bad.join();
    const ending = stage.session().call(callOf(`${AGENT}/echo`));
    bad.answer(await bad.next('core.tool.call'), { status: CANARY });
    await expect(ending).rejects.toMatchObject({ code: 'tool_invalid_output', sent: true });
  });
  it('a message with a million faults costs one', async () => {
    await begin({ maxFrameBytes: 4 * 1024 * 1024 });
    const bad = stage.agent();
    await bad.join();
    bad.send({
      ...message('agent.pong', {}),
      type: 'agent.tools.register',
      payload: { tools: Array<number>(1_000_000).fill(1) },
    });
    expect((await bad.next('core.error')).error?.code).toBe('protocol.invalid_message');
  });
});
