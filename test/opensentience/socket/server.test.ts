// src/opensentience/socket/server.ts and connection.ts over real sockets: who gets in, what reaches whom, and how connections
// end (seed 004 §1, §4, §5, §6).
import { existsSync, lstatSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { Gate, Hello } from '../../../src/opensentience/parts.ts';
import { createAgentServer } from '../../../src/opensentience/socket/server.ts';
import type { ToolProgress } from '../../../src/ports/tools.ts';
import {
  AGENT,
  callOf,
  frameOf,
  helloOf,
  message,
  RawAgent,
  resultText,
  rulesOf,
  startStage,
  toolOf,
  type Stage,
} from '../../support/opensentience/wire.ts';
import { paced } from '../../support/machine.ts';
import { quietFor } from '../../support/waiting.ts';

let stage: Stage;
afterEach(() => stage?.stop());

const ECHO = `${AGENT}/echo`;

describe('seed 004 §1: transport', () => {
  it('§1.1: the socket is its owner’s alone, in a folder of 0700', async () => {
    stage = await startStage();
    const { socketPath } = stage.server;
    expect(lstatSync(dirname(socketPath)).mode & 0o777).toBe(0o700);
    expect(lstatSync(socketPath).mode & 0o777).toBe(0o600);
  });
  it('§1.2: loopback TCP speaks the same, off by default', async () => {
    stage = await startStage();
    expect(stage.server.tcpAddress).toBeUndefined();
    await stage.stop();
    const hellos: Hello[] = [];
    const gate: Gate = async (hello) => {
      hellos.push(hello);
      return { ok: true, attached: true };
    };
    stage = await startStage({}, { gate, tcp: true });
    const [host, port] = (stage.server.tcpAddress ?? '').split(':');
    expect(host).toBe('127.0.0.1');
    const agent = new RawAgent({ port: Number(port) });
    await agent.join();
    expect(hellos[0]).toMatchObject({ transport: 'tcp', agentId: AGENT });
    agent.socket.destroy();
  });
  it('strangers on TCP take no place from agents on the Unix socket', async () => {
    stage = await startStage({ maxUnknownConnections: 2 }, { tcp: true });
    const [, port] = (stage.server.tcpAddress ?? '').split(':');
    const strangers = Array.from({ length: 5 }, () => new RawAgent({ port: Number(port) }));
    await expect
      .poll(() => stage.kinds().filter((kind) => kind === 'connection.refused').length)
      .toBe(3);
    await stage.agent().join();
    for (const { socket } of strangers) socket.destroy();
  });
  it('what is at its path already is left alone', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'os-'));
    const path = join(folder, 'core.sock');
    const options = {
      ...rulesOf(),
      socketPath: path,
      gate: (async () => ({ ok: true, attached: true })) as Gate,
      events: { opened: () => undefined, changed: () => undefined, closed: () => undefined },
      audit: () => undefined,
      logger: { debug: () => undefined, info: () => undefined, warn: () => undefined },
    };
    const taken = { code: 'EADDRINUSE' };
    const living = createServer();
    await new Promise<void>((resolve) => living.listen(path, resolve));
    await expect(createAgentServer(options)).rejects.toMatchObject(taken);
    await new Promise((resolve) => living.close(resolve));
    writeFileSync(path, 'a file of somebody');
    await expect(createAgentServer(options)).rejects.toMatchObject(taken);
    expect(readFileSync(path, 'utf8')).toBe('a file of somebody');
    rmSync(path);
    const server = await createAgentServer(options);
    await server.stop(0);
    expect(existsSync(path)).toBe(false);
    rmSync(folder, { recursive: true });
  });
});

describe('seed 004 §4.1, §5, §6.1: getting in', () => {
  it('§4.1.2: a right hello is welcomed with session id, cadence and limits, in reply to it', async () => {
    stage = await startStage({ heartbeatIntervalMs: 1234 });
    const agent = stage.agent();
    const hello = helloOf();
    agent.send(hello);
    const welcome = await agent.next('core.welcome');
    expect(welcome).toMatchObject({
      v: 1,
      in_reply_to: hello.id,
      payload: {
        accepted_version: 1,
        heartbeat_interval_ms: 1234,
        max_frame_bytes: 4_194_304,
        server: { core_version: '0.1.0', instance_id: 'core-1' },
      },
    });
    expect(welcome.payload.session_id).toBe(stage.session().sessionId);
    expect(new Date(welcome.ts).toISOString()).toBe(welcome.ts);
  });
  it('§4.1.2: a wrong token is answered by core.welcome with protocol.unauthorized, then the end', async () => {
    stage = await startStage();
    const agent = stage.agent();
    agent.send(helloOf(AGENT, 'wrong'));
    const welcome = await agent.next('core.welcome');
    expect(welcome.error).toMatchObject({ code: 'protocol.unauthorized' });
    expect(welcome.payload).toMatchObject({ accepted_version: 0, session_id: '' });
    await agent.ended;
    expect(stage.server.sessions()).toEqual([]);
    expect(stage.kinds()).toContain('hello.refused');
  });
  it('§6.1: no common version is answered and closed, and the token is not asked about', async () => {
    let asked = 0;
    stage = await startStage(
      {},
      { gate: async () => ((asked += 1), { ok: true, attached: true }) },
    );
    const agent = stage.agent();
    const hello = helloOf();
    agent.send({
      ...hello,
      v: 2,
      payload: { ...hello.payload, protocol: { supported_versions: [2, 3], capabilities: [] } },
    });
    const welcome = await agent.next('core.welcome');
    expect(welcome.error?.code).toBe('protocol.unsupported_version');
    await agent.ended;
    expect(asked).toBe(0);
  });
  it('§5.3: messages behind a hello wait for the gate, and are handled in order after it', async () => {
    let admit: (() => void) | undefined;
    const asked = new Promise<void>((resolve) => (admit = resolve));
    stage = await startStage({}, { gate: async () => (await asked, { ok: true, attached: true }) });
    const agent = stage.agent();
    agent.send(helloOf());
    agent.send(message('agent.tools.register', { tools: [toolOf('echo')] }));
    for (let at = 0; at < 500; at += 1) agent.send(message('agent.pong', {}));
    await quietFor(50);
    expect(agent.received).toEqual([]);
    admit?.();
    await agent.next('core.tools.registered');
    expect(stage.session().tools()).toHaveLength(1);
  });
  it('one session an agent id: the second is refused, the first lives, and after its end the place is free', async () => {
    stage = await startStage();
    const first = stage.agent();
    await first.join();
    const second = stage.agent();
    second.send(helloOf());
    expect((await second.next('core.welcome')).error?.code).toBe(
      'protocol.agent_already_connected',
    );
    await second.ended;
    expect(stage.session().routable()).toBe(true);
    first.socket.destroy();
    await expect.poll(() => stage.closed).toEqual([{ agentId: AGENT, reason: 'ended' }]);
    await stage.agent().join();
  });
  it("who comes by the operator's hand goes before a launched one; a launched one before nobody", async () => {
    let attached = false;
    stage = await startStage({}, { gate: async () => ({ ok: true, attached }) });
    const launched = stage.agent();
    await launched.join();
    attached = true;
    const byHand = stage.agent();
    await byHand.join();
    expect((await launched.next('core.goodbye')).payload.reason).toBe('agent.replaced');
    await expect.poll(() => stage.closed).toHaveLength(1);
    expect(stage.session().attached).toBe(true);
    expect(stage.session().routable()).toBe(true);
    attached = false;
    const again = stage.agent();
    again.send(helloOf());
    expect((await again.next('core.welcome')).error?.code).toBe('protocol.agent_already_connected');
  });
  it('a gate that fails lets nobody in, and says nothing of why', async () => {
    stage = await startStage({}, { gate: () => Promise.reject(new Error('password=hunter2')) });
    const agent = stage.agent();
    agent.send(helloOf());
    expect((await agent.next('core.welcome')).error?.code).toBe('protocol.unauthorized');
    expect(JSON.stringify([stage.logs, stage.audit])).not.toContain('hunter2');
  });
  it('more sessions than permitted are refused', async () => {
    stage = await startStage({ maxSessions: 1 });
    await stage.agent().join('agent.one', []);
    const other = stage.agent();
    other.send(helloOf('agent.two'));
    expect((await other.next('core.welcome')).error?.code).toBe('protocol.flood');
  });
});

describe('seed 004 §4.3: calls over the wire', () => {
  it('a call reaches the agent whole, streams come in order, and the output is its answer', async () => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const progress: ToolProgress[] = [];
    const ending = stage
      .session()
      .call(callOf(ECHO, { onProgress: (one) => void progress.push(one) }));
    const call = await agent.next('core.tool.call');
    expect(call).toMatchObject({
      request_id: 'request-1',
      correlation_id: 'run-1',
      causation_id: 'event-1',
      actor: { type: 'system', id: 'host' },
      payload: {
        tool_id: ECHO,
        input: { n: 1 },
        idempotency_key: 'effect-1',
        caller: { type: 'agent', id: 'desk' },
      },
    });
    const ids = { request_id: 'request-1', correlation_id: 'run-1', causation_id: 'event-1' };
    const { call_id } = call.payload;
    for (const seq of [1, 2])
      agent.send(
        message(
          'agent.tool.stream',
          { call_id, seq, channel: 'log', data: { text: `${seq}` } },
          ids,
        ),
      );
    agent.answer(call, { output: { said: 'hi' } });
    await expect(ending).resolves.toEqual({ said: 'hi' });
    expect(progress.map(({ text }) => text)).toEqual(['1', '2']);
    expect(stage.kinds().filter((kind) => kind.startsWith('call.'))).toEqual([]);
  });
  it('§4.4: aborting sends core.tool.cancel, and the agent’s word ends the call', async () => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const aborter = new AbortController();
    const ending = stage.session().call(callOf(ECHO, { signal: aborter.signal }));
    const call = await agent.next('core.tool.call');
    aborter.abort();
    const cancel = await agent.next('core.tool.cancel');
    expect(cancel.payload).toMatchObject({ call_id: call.payload.call_id, reason: 'canceled' });
    agent.answer(call, { status: 'canceled', error: { code: 'tool.canceled', message: 'ok' } });
    await expect(ending).rejects.toMatchObject({ code: 'cancelled', sent: true });
  });
  it('a connection that breaks ends what was sent with sent: true and what was not with sent: false', async () => {
    stage = await startStage({ maxInflightRequests: 1 });
    const agent = stage.agent();
    await agent.join();
    const first = stage.session().call(callOf(ECHO));
    const second = stage.session().call(callOf(ECHO));
    const endings = Promise.allSettled([first, second]);
    await agent.next('core.tool.call');
    agent.socket.destroy();
    const errors = (await endings).map((one) => (one as PromiseRejectedResult).reason as object);
    expect(errors[0]).toMatchObject({ code: 'agent_unavailable', sent: true });
    expect(errors[1]).toMatchObject({ code: 'agent_unavailable', sent: false });
  });
  it('[I103] a result with a number that cannot be kept exactly is refused, with its place', async () => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const ending = stage.session().call(callOf(ECHO));
    const call = await agent.next('core.tool.call');
    agent.write(resultText(call, '{"order":{"id":9007199254740993}}'));
    await expect(ending).rejects.toMatchObject({
      code: 'tool_invalid_output',
      details: { pointer: '/order/id', final: true },
      message: expect.stringContaining(
        '/order/id is a number that cannot be kept exactly',
      ) as unknown,
    });
  });
  it('[I103] a result that has a name twice is refused, with its place', async () => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const ending = stage.session().call(callOf(ECHO));
    const call = await agent.next('core.tool.call');
    agent.write(resultText(call, '{"order":{"id":"A-1","id":"B-2"}}'));
    await expect(ending).rejects.toMatchObject({
      code: 'tool_invalid_output',
      details: { pointer: '/order/id', final: true },
      message: expect.stringContaining('/order/id is a name that its object has twice') as unknown,
    });
    const other = stage.session().call(callOf(ECHO));
    agent.write(resultText(await agent.next('core.tool.call'), '{"id":"A-1"},"output":{}'));
    await expect(other).rejects.toMatchObject({ code: 'tool_invalid_output' });
  });
  it('[I103] a declaration and a piece of progress that have a name twice are refused', async () => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const schema = { properties: { n: { maximum: 1 } } };
    const register = message('agent.tools.register', {
      tools: [toolOf('wide', { input_schema: schema })],
    });
    agent.write(frameOf(register, ['"maximum":1', '"maximum":1,"maximum":500']));
    const { payload } = await agent.next('core.tools.registered');
    expect(payload.rejected?.map(({ error }) => error.details)).toEqual([
      {
        pointer: '/input_schema/properties/n/maximum',
        reason: 'is a name that its object has twice',
      },
    ]);
    const shown: unknown[] = [];
    const onProgress = (progress: unknown): number => shown.push(progress);
    const ending = stage.session().call(callOf(ECHO, { onProgress }));
    const call = await agent.next('core.tool.call');
    const data = { json: { order: 'A-1' } };
    const piece = { call_id: call.payload.call_id, channel: 'partial_result' as const, data };
    agent.write(
      frameOf(message('agent.tool.stream', { ...piece, seq: 1 }), [
        '"order":"A-1"',
        '"order":"A-1","order":"B-2"',
      ]),
    );
    agent.answer(call, { output: { ok: true } });
    await expect(ending).resolves.toEqual({ ok: true });
    expect(shown).toEqual([]);
  });
  it('[I103] so is a declaration, and a number that nobody takes over costs nothing', async () => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const schema = { properties: { n: { maximum: 1 } } };
    const register = message('agent.tools.register', {
      tools: [toolOf('wide', { input_schema: schema })],
    });
    agent.write(frameOf(register, ['"maximum":1', '"maximum":9223372036854775807']));
    const { payload } = await agent.next('core.tools.registered');
    expect(payload.rejected?.map(({ error }) => error.code)).toEqual(['tool.invalid_schema']);
    const beat = { session_id: stage.session().sessionId, uptime_ms: 1, inflight_calls: 0 };
    agent.write(
      frameOf(message('agent.heartbeat', { ...beat, status: 'ok' }), [
        '"uptime_ms":1',
        '"uptime_ms":1764373528123456789',
      ]),
    );
    await expect
      .poll(() => stage.session().view().lastHeartbeatAtMs)
      .toEqual(expect.any(Number) as number);
  });
  it('a result right before the connection ends still counts', async () => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const ending = stage.session().call(callOf(ECHO));
    agent.answer(await agent.next('core.tool.call'), { output: { last: true } });
    agent.socket.end();
    await expect(ending).resolves.toEqual({ last: true });
  });
  it('one that Core had not read when it wrote to an agent that is gone may be lost, but not as unsent: the ledger doubts', async () => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const session = stage.session();
    const first = session.call(callOf(ECHO));
    agent.answer(await agent.next('core.tool.call'), { output: { last: true } });
    agent.socket.destroy();
    await agent.ended;
    const second = session.call(callOf(ECHO));
    const lost = expect.objectContaining({ code: 'agent_unavailable', sent: true }) as unknown;
    // Either it was read in time, or the ledger asks (test/activities/agent-tool.test.ts).
    const [one, two] = await Promise.all(
      [first, second].map((call) => call.catch((e: unknown) => e)),
    );
    expect([{ last: true }, lost]).toContainEqual(one);
    expect(two).toEqual(lost);
  });
  it('a caller that aborts within its own progress gets one ending', async () => {
    stage = await startStage({ cancelMs: 40 });
    const agent = stage.agent();
    await agent.join();
    const aborter = new AbortController();
    const ending = stage
      .session()
      .call(callOf(ECHO, { signal: aborter.signal, onProgress: () => aborter.abort() }));
    const call = await agent.next('core.tool.call');
    const { call_id } = call.payload;
    agent.send(
      message('agent.tool.stream', { call_id, seq: 1, channel: 'log', data: { text: 'x' } }),
    );
    await agent.next('core.tool.cancel');
    await expect(ending).rejects.toMatchObject({ code: 'cancelled', sent: true });
    agent.answer(call);
    await expect.poll(() => stage.kinds()).toContain('call.late_result');
  });
  it('seed 004 §2.2: 256 calls in flight on one connection and 100 that wait all end once', async () => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const calls: Parameters<RawAgent['answer']>[0][] = [];
    agent.onMessage = (one) => {
      if (one.type === 'core.tool.call') calls.push(one);
    };
    let ended = 0;
    const endings = Array.from({ length: 356 }, (_, n) =>
      stage
        .session()
        .call(callOf(ECHO, { input: { n }, requestId: `r${n}` }))
        .then((output) => {
          ended += 1;
          return output.n;
        }),
    );
    await expect.poll(() => calls.length).toBe(256);
    const states = stage
      .session()
      .view()
      .calls.map(({ state }) => state);
    expect(states.filter((state) => state === 'in-flight')).toHaveLength(256);
    expect(states.filter((state) => state === 'queued')).toHaveLength(100);
    expect(ended).toBe(0);
    // Answered in the order last to first, and each as it comes from then on.
    const answer = (call: (typeof calls)[number]): void =>
      agent.answer(call, { output: { n: call.payload.input.n ?? null } });
    agent.onMessage = (one) => {
      if (one.type === 'core.tool.call') answer(one);
    };
    for (const call of calls.reverse()) answer(call);
    expect(await Promise.all(endings)).toEqual(Array.from({ length: 356 }, (_, n) => n));
    expect(ended).toBe(356);
    expect(stage.session().metrics()[0]).toMatchObject({
      calls: 356,
      succeeded: 356,
      unanswered: 0,
    });
    expect(stage.session().view().calls).toEqual([]);
  });
  it('50 agents are connected at once, and each gets its own calls', async () => {
    stage = await startStage();
    const ids = Array.from({ length: 50 }, (_, n) => `agent.number-${n}`);
    await Promise.all(
      ids.map(async (agentId) => {
        const agent = stage.agent();
        agent.onMessage = (one) => {
          if (one.type === 'core.tool.call') agent.answer(one, { output: { by: agentId } });
        };
        await agent.join(agentId);
      }),
    );
    expect(stage.server.sessions()).toHaveLength(50);
    const outputs = await Promise.all(
      ids.map((agentId) => stage.session(agentId).call(callOf(`${agentId}/echo`))),
    );
    expect(outputs).toEqual(ids.map((by) => ({ by })));
  });
});

describe('seed 004 §4.1.3, §4.5: draining and health', () => {
  it('draining says core.goodbye, takes no new calls, waits for those in flight, then closes', async () => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const session = stage.session();
    const ending = session.call(callOf(ECHO));
    const call = await agent.next('core.tool.call');
    const drained = session.drain('core.restarting', 20_000);
    // §4.1.3: and when to come back.
    expect((await agent.next('core.goodbye')).payload).toEqual({
      reason: 'core.restarting',
      retry_after_ms: 5_000,
    });
    expect(session.view().state).toBe('draining');
    await expect(session.call(callOf(ECHO))).rejects.toMatchObject({
      code: 'agent_unavailable',
      sent: false,
    });
    agent.answer(call);
    await expect(ending).resolves.toEqual({});
    await drained;
    await agent.ended;
  });
  it('draining that takes too long is cut short', async () => {
    stage = await startStage({ cancelMs: 40 });
    const agent = stage.agent();
    await agent.join();
    const ending = stage.session().call(callOf(ECHO));
    const outcome = expect(ending).rejects.toMatchObject({ code: 'agent_unavailable', sent: true });
    await agent.next('core.tool.call');
    await stage.session().drain('core.restarting', 20);
    await outcome;
    expect(stage.kinds()).toContain('session.drain_cut_short');
  });
  it('an agent that says agent.goodbye is let go when its calls have ended', async () => {
    stage = await startStage();
    const agent = stage.agent();
    await agent.join();
    const ending = stage.session().call(callOf(ECHO));
    const call = await agent.next('core.tool.call');
    agent.send(message('agent.goodbye', {}));
    await agent.next('core.goodbye');
    agent.answer(call);
    await ending;
    await agent.ended;
    expect(stage.closed).toEqual([{ agentId: AGENT, reason: 'drained' }]);
  });
  it('§4.5.1: an agent without heartbeats is asked, gets no calls, and is closed in the end', async () => {
    stage = await startStage({
      heartbeatIntervalMs: paced(60),
      missedHeartbeats: 2,
      lostHeartbeats: 12,
    });
    const agent = stage.agent();
    const session_id = await agent.join();
    const session = stage.session();
    await agent.next('core.ping');
    await expect.poll(() => session.view().health, { interval: 5 }).toBe('silent');
    expect(session.routable()).toBe(false);
    const beat = { session_id, uptime_ms: 5, inflight_calls: 0, status: 'ok' as const };
    agent.send(message('agent.heartbeat', beat));
    await expect.poll(() => session.view().health, { interval: 5 }).toBe('ok');
    expect((await agent.next('core.goodbye')).error?.code).toBe('protocol.too_slow');
    await agent.ended;
    expect(stage.kinds()).toContain('session.lost');
  });
  it('stop drains every session, ends every connection and takes the socket away', async () => {
    stage = await startStage();
    const [one, two] = [stage.agent(), stage.agent()];
    await one.join('agent.one');
    await stage.server.stop(1_000);
    await Promise.all([one.ended, two.ended]);
    expect(existsSync(stage.server.socketPath)).toBe(false);
    expect((await one.next('core.goodbye')).payload.reason).toBe('core.stopping');
  });
});
