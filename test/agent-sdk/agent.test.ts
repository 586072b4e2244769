// The SDK's agent against a scripted Core over a real socket: its session (seed 004 §3, §4.1, §4.2, §4.5, §5, §6).
import { createHash } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { agent, tool, type AgentOptions } from '../../src/agent-sdk/index.ts';
import type { JsonMap } from '../../src/opensentience/messages.ts';
import { startScriptedCore } from '../support/opensentience/scripted-core.ts';
import { attach, surroundingsOf, TOKEN, type Attached } from './attached.ts';

const EMPTY = { type: 'object' } as const;
const greet = tool({
  name: 'greet',
  description: 'Greets.',
  input: {
    type: 'object',
    properties: { name: { type: 'string' } },
    required: ['name'],
    additionalProperties: false,
  },
  tags: ['demo'],
  run: ({ name }) => ({ greeting: `Hello ${name}` }),
});
const named = (name: string) =>
  tool({ name, description: name, input: EMPTY, run: () => ({ name }) });

let open: Attached | undefined;
const attached = async (options: Partial<AgentOptions> = {}, welcome: object = {}) =>
  (open = await attach({ tools: [greet], ...options }, welcome));
afterEach(async () => {
  await open?.stop();
  open = undefined;
});

describe('hello and welcome', () => {
  it('seed 004 §4.1.1: hello is the first message, with token, id, version, protocol and sdk', async () => {
    const { hello, connection } = await attached();
    expect(connection.received[0]).toBe(hello);
    expect(hello).toMatchObject({
      v: 1,
      type: 'agent.hello',
      payload: {
        session_token: TOKEN,
        agent_id: 'com.example.test',
        agent_version: '1.2.3',
        protocol: { supported_versions: [1], capabilities: ['tools', 'streaming', 'cancellation'] },
        sdk: { name: 'openwop_temporal_agent_sdk', version: '1.0.0' },
      },
    });
    expect(hello.payload).not.toHaveProperty('manifest_hash');
    expect(new Date(hello.ts).toISOString()).toBe(hello.ts);
  });
  it('seed 004 §4.1.1: manifest_hash is that of the manifest file', async () => {
    const manifest = join(mkdtempSync(join(tmpdir(), 'manifest-')), 'opensentience.agent.json');
    writeFileSync(manifest, '{"id":"com.example.test"}');
    const { hello } = await attached({ manifest });
    const hash = createHash('sha256').update('{"id":"com.example.test"}').digest('hex');
    expect(hello.payload.manifest_hash).toBe(`sha256:${hash}`);
  });
  it('seed 004 §5.1: the token is gone from the environment before anything runs, and never logged', async () => {
    const { surroundings, env, log } = surroundingsOf('/nowhere/core.sock');
    const one = agent({ id: 'com.example.test', version: '1.0.0', surroundings });
    expect(env).toEqual({});
    await expect(one.run()).resolves.toEqual({ how: 'refused', reason: 'agent.unreachable' });
    expect(log.join('\n')).not.toContain(TOKEN);
  });
  it.each([
    ['protocol.unauthorized', { accepted_version: 0 }],
    ['protocol.unsupported_version', { accepted_version: 0 }],
    ['protocol.agent_already_connected', {}],
  ])('seed 004 §4.1.2: a welcome with error %s ends the agent', async (code, payload) => {
    const core = await startScriptedCore();
    const { surroundings, exits } = surroundingsOf(core.socket);
    const ended = agent({ id: 'com.example.test', version: '1.0.0', surroundings }).run();
    const connection = await core.connection();
    const hello = await connection.next('agent.hello');
    const error = { code, message: 'No.' };
    connection.send('core.welcome', payload, { in_reply_to: hello.id, error });
    await expect(ended).resolves.toEqual({ how: 'refused', reason: code });
    expect(exits).toEqual([1]);
    await core.stop();
  });
  it('seed 004 §6.1: another version than ours is refused by the agent', async () => {
    const core = await startScriptedCore();
    const { surroundings } = surroundingsOf(core.socket);
    const ended = agent({ id: 'com.example.test', version: '1.0.0', surroundings }).run();
    const connection = await core.connection();
    connection.welcome(await connection.next('agent.hello'), { accepted_version: 2 });
    await expect(ended).resolves.toMatchObject({ reason: 'protocol.unsupported_version' });
    await core.stop();
  });
  it('a Core that does not answer hello is left after replyMs', async () => {
    const core = await startScriptedCore();
    const { surroundings } = surroundingsOf(core.socket);
    const limits = { replyMs: 50 };
    const one = agent({ id: 'com.example.test', version: '1.0.0', surroundings, limits });
    await expect(one.run()).resolves.toEqual({ how: 'refused', reason: 'protocol.too_slow' });
    await core.stop();
  });
  it('seed 004 §1.2: loopback TCP with identical framing; another host is refused', async () => {
    const core = await startScriptedCore('tcp');
    const { surroundings } = surroundingsOf(core.socket);
    const one = agent({ id: 'com.example.test', version: '1.0.0', surroundings, tools: [greet] });
    const ended = one.run();
    const connection = await core.connection();
    await connection.greet();
    const { callId } = connection.call('com.example.test/greet', { name: 'Ada' });
    expect((await connection.result(callId)).payload.output).toEqual({ greeting: 'Hello Ada' });
    await one.stop();
    await expect(ended).resolves.toEqual({ how: 'stopped', reason: 'stopped' });
    await core.stop();
    const far = surroundingsOf('tcp:192.0.2.1:7411').surroundings;
    const away = agent({ id: 'com.example.test', version: '1.0.0', surroundings: far });
    await expect(away.run()).resolves.toMatchObject({ reason: 'agent.unreachable' });
  });
});

describe('tools', () => {
  it('seed 004 §4.2.1: tools are declared namespaced, with schemas and capabilities', async () => {
    const sideEffects = tool({
      name: 'pay',
      description: 'Pays.',
      input: EMPTY,
      output: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
      sideEffects: true,
      requiresDirective: true,
      idempotent: true,
      streaming: true,
      run: () => ({ id: 'p-1' }),
    });
    const { register } = await attached({ tools: [greet, sideEffects] });
    expect(register.payload.tools).toEqual([
      {
        tool_id: 'com.example.test/greet',
        name: 'greet',
        description: 'Greets.',
        input_schema: {
          type: 'object',
          properties: { name: { type: 'string' } },
          required: ['name'],
          additionalProperties: false,
        },
        // Not a word on effects that its author did not say: the host takes it that there are some.
        capabilities: ['cancellation'],
        requires_directive: false,
        tags: ['demo'],
      },
      {
        tool_id: 'com.example.test/pay',
        name: 'pay',
        description: 'Pays.',
        input_schema: { type: 'object' },
        output_schema: {
          type: 'object',
          properties: { id: { type: 'string' } },
          required: ['id'],
        },
        capabilities: ['cancellation', 'streaming', 'idempotency'],
        side_effects: true,
        requires_directive: true,
      },
    ]);
  });
  it('seed 004 §4.2.2: a rejected tool is named in the log, the others work', async () => {
    const core = await startScriptedCore();
    const { surroundings, log } = surroundingsOf(core.socket);
    const tools = [greet, named('odd')];
    const one = agent({ id: 'com.example.test', version: '1.0.0', surroundings, tools });
    const ended = one.run();
    const connection = await core.connection();
    connection.welcome(await connection.next('agent.hello'));
    const register = await connection.next('agent.tools.register');
    const error = { code: 'tool.invalid_schema', message: 'No.' };
    const rejected = [{ tool_id: 'com.example.test/odd', error }];
    const payload = { registered: ['com.example.test/greet'], rejected };
    connection.send('core.tools.registered', payload, { in_reply_to: register.id });
    const { callId } = connection.call('com.example.test/greet', { name: 'Ada' });
    expect((await connection.result(callId)).payload.status).toBe('succeeded');
    expect(log).toEqual([
      '[com.example.test] com.example.test/odd was rejected: tool.invalid_schema',
    ]);
    connection.socket.destroy();
    await ended;
    await core.stop();
  });
  it('seed 004 §4.2.1, §4.2.3: tools come and go while the session lasts', async () => {
    const { agent: one, connection } = await attached();
    const registering = one.register(named('late'));
    const register = await connection.next('agent.tools.register');
    expect(register.payload).not.toHaveProperty('replace');
    const registered = ['com.example.test/late'];
    connection.send('core.tools.registered', { registered }, { in_reply_to: register.id });
    await expect(registering).resolves.toEqual({ registered, rejected: [] });
    const late = connection.call('com.example.test/late', {});
    expect((await connection.result(late.callId)).payload.output).toEqual({ name: 'late' });

    const unregistering = one.unregister('late');
    const unregister = await connection.next('agent.tools.unregister');
    expect(unregister.payload).toEqual({ tool_ids: ['com.example.test/late'] });
    connection.send('core.tools.unregistered', unregister.payload, {
      in_reply_to: unregister.id,
    });
    await unregistering;
    const gone = connection.call('com.example.test/late', {});
    expect((await connection.result(gone.callId)).payload.error.code).toBe('tool.not_found');
  });
  it('seed 004 §4.2.1 replace: a tool registered again takes the place of the one of its name, the others stay', async () => {
    const { agent: one, connection } = await attached({ tools: [named('a'), named('b')] });
    const other = tool({ name: 'a', description: 'Other.', input: EMPTY, run: () => ({ v: 2 }) });
    const registering = one.register(other);
    const register = await connection.next('agent.tools.register');
    expect(register.payload).toMatchObject({ replace: true });
    const ids = register.payload.tools.map(({ tool_id }) => tool_id);
    expect(ids).toEqual(['com.example.test/a', 'com.example.test/b']);
    const payload = { registered: ids };
    connection.send('core.tools.registered', payload, { in_reply_to: register.id });
    await expect(registering).resolves.toEqual({
      registered: ['com.example.test/a'],
      rejected: [],
    });
    const { callId } = connection.call('com.example.test/a', {});
    expect((await connection.result(callId)).payload.output).toEqual({ v: 2 });
  });
  const answered = async (one: Attached, codes: Readonly<Record<string, string>>) => {
    const { connection } = one;
    const register = await connection.next('agent.tools.register');
    const ids = register.payload.tools.map(({ tool_id }) => tool_id);
    const rejected = ids
      .filter((id) => codes[id])
      .map((tool_id) => ({ tool_id, error: { code: codes[tool_id], message: 'No.' } }));
    const payload = { registered: ids.filter((id) => !codes[id]), rejected };
    connection.send('core.tools.registered', payload, { in_reply_to: register.id });
    return ids;
  };
  it('a tool that Core drops when others are replaced is told, whoever asked for what', async () => {
    const one = await attached({ tools: [named('a'), named('b')] });
    const registering = one.agent.register(named('b'));
    const ids = await answered(one, { 'com.example.test/a': 'tool.too_many' });
    // What was asked for is in the first message, which forgets.
    expect(ids).toEqual(['com.example.test/b', 'com.example.test/a']);
    await expect(registering).resolves.toEqual({
      registered: ['com.example.test/b'],
      rejected: [{ toolId: 'com.example.test/a', code: 'tool.too_many' }],
    });
  });
  it('a replacement that Core wants later leaves the tool that stood there at work', async () => {
    const one = await attached({ tools: [named('a')] });
    const other = tool({ name: 'a', description: 'Other.', input: EMPTY, run: () => ({ v: 2 }) });
    const registering = one.agent.register(other);
    await answered(one, { 'com.example.test/a': 'protocol.flood' });
    await expect(registering).resolves.toMatchObject({
      rejected: [{ toolId: 'com.example.test/a', code: 'protocol.flood' }],
    });
    const { callId } = one.connection.call('com.example.test/a', {});
    expect((await one.connection.result(callId)).payload.output).toEqual({ name: 'a' });
  });
  it('declarations that do not fit one frame go in several', async () => {
    const wide = (name: string) =>
      tool({ name, description: 'x'.repeat(3_000), input: EMPTY, run: () => ({}) });
    const core = await startScriptedCore();
    const { surroundings } = surroundingsOf(core.socket);
    const tools = ['a', 'b', 'c', 'd'].map(wide);
    const one = agent({ id: 'com.example.test', version: '1.0.0', surroundings, tools });
    const ended = one.run();
    const connection = await core.connection();
    await connection.greet({ max_frame_bytes: 16_384 });
    const second = await connection.next('agent.tools.register');
    expect(second.payload.tools).toHaveLength(2);
    connection.socket.destroy();
    await ended;
    await core.stop();
  });
  it.each(['', 'a/b', '-x', 'x'.repeat(129)])('a tool cannot be called %j', (name) => {
    expect(() => named(name)).toThrow(TypeError);
  });
});

describe('heartbeats, ping and what is not known', () => {
  it('seed 004 §4.5.1: heartbeats come at the interval of the welcome, with health', async () => {
    const details = { queue: 3 };
    const health = () => ({ status: 'degraded' as const, details });
    const { connection } = await attached({ health }, { heartbeat_interval_ms: 50 });
    const first = await connection.next('agent.heartbeat');
    const second = await connection.next('agent.heartbeat');
    expect(first.payload).toEqual({
      session_id: 'session-1',
      uptime_ms: expect.any(Number) as number,
      inflight_calls: 0,
      status: 'degraded',
      details,
    });
    expect(second.payload.uptime_ms).toBeGreaterThanOrEqual(first.payload.uptime_ms);
  });
  it('seed 004 §4.5.1: a health that throws is degraded, details that cannot be sent are left out', async () => {
    // Core would end the connection at so many levels.
    let nested: object = {};
    for (let levels = 0; levels < 70; levels += 1) nested = { in: nested };
    const given = [
      () => {
        throw new Error('secret');
      },
      () => ({ status: 'ok' as const, details: { all: 'x'.repeat(5_000) } }),
      () => ({ status: 'ok' as const, details: { id: 7n } as unknown as JsonMap }),
      () => ({ status: 'ok' as const, details: nested as JsonMap }),
    ];
    const health = () => (given.shift() ?? (() => 'unhealthy' as const))();
    const { connection } = await attached({ health }, { heartbeat_interval_ms: 50 });
    const told = [];
    for (let n = 0; n < 5; n += 1) told.push((await connection.next('agent.heartbeat')).payload);
    expect(told.map(({ status, details }) => [status, details])).toEqual([
      ['degraded', undefined],
      ['ok', undefined],
      ['ok', undefined],
      ['ok', undefined],
      ['unhealthy', undefined],
    ]);
  });
  it('seed 004 §4.5.2: ping is answered by pong', async () => {
    const { connection } = await attached();
    const ping = connection.send('core.ping', {}, { request_id: 'r-1' });
    const pong = await connection.next('agent.pong');
    expect(pong).toMatchObject({ in_reply_to: ping.id, request_id: 'r-1', payload: {} });
  });
  it('seed 004 §6.2: an unknown type that expects a reply gets a structured error', async () => {
    const { connection } = await attached();
    const asked = connection.send('core.dance', { steps: 3 }, { request_id: 'r-1' });
    const answer = await connection.next('agent.error');
    expect(answer).toMatchObject({
      in_reply_to: asked.id,
      request_id: 'r-1',
      error: { code: 'protocol.unknown_type' },
    });
  });
  it('seed 004 §6.2: an unknown type that is unsolicited, and unknown fields, are ignored', async () => {
    const { connection } = await attached();
    connection.send('core.news', { text: 'x' });
    connection.send('core.news', { text: 'x' }, { request_id: 'r', in_reply_to: 'm' });
    connection.send('toString', {});
    connection.sendBytes(Buffer.from([0, 0, 0, 2, 0x7b, 0x7d]));
    const ping = connection.send('core.ping', { later: true }, { future: { x: 1 } });
    await expect(connection.next('agent.pong')).resolves.toMatchObject({ in_reply_to: ping.id });
    expect(connection.received.filter(({ type }) => type === 'agent.error')).toEqual([]);
  });
  it.each([
    ['§2.2: a frame above max_frame_bytes', Buffer.from([0x7f, 0, 0, 0])],
    ['§2.1: an empty frame', Buffer.from([0, 0, 0, 0])],
    ['§2.1: a frame of no JSON', Buffer.from([0, 0, 0, 1, 0x7b])],
  ])('seed 004 %s ends the connection', async (_, bytes) => {
    const { connection, ended } = await attached();
    connection.sendBytes(bytes);
    await expect(ended).resolves.toMatchObject({
      how: 'lost',
      reason: expect.stringMatching(/^protocol\.(frame_too_large|invalid_frame)$/) as string,
    });
  });
});
