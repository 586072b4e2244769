// How the SDK's agent ends and comes back (seed 004 §4.1.3, §5.1; §4.3.3 for the calls in flight): goodbye from either
// side, signals, lost connections, reconnection with fresh credentials; and a launched process as a whole.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { TYPESCRIPT } from '../../src/system/compiled.ts';
import { agent, tool, type AgentOptions, type Reconnect } from '../../src/agent-sdk/index.ts';
import { startScriptedCore } from '../support/opensentience/scripted-core.ts';
import { attach, surroundingsOf, TOKEN, type Attached } from './attached.ts';

const EMPTY = { type: 'object' } as const;
const waits = tool({
  name: 'waits',
  description: 'Ends when its signal says so.',
  input: EMPTY,
  run: async (_, { signal }) => {
    await once(signal, 'abort');
    signal.throwIfAborted();
  },
});
const ID = 'com.example.test/waits';

let open: Attached | undefined;
const attached = async (options: Partial<AgentOptions> = {}) =>
  (open = await attach({ tools: [waits], ...options }));
afterEach(async () => {
  await open?.stop();
  open = undefined;
});

describe('goodbye', () => {
  it('seed 004 §4.1.3: core.goodbye: no new calls, those in flight end, then closed', async () => {
    const { connection, ended, exits } = await attached();
    const { callId } = connection.call(ID, {});
    connection.send('core.goodbye', { reason: 'restart' });
    const refused = connection.call(ID, {});
    expect((await connection.result(refused.callId)).payload.error.code).toBe('protocol.draining');
    expect(connection.closed).toBe(false);
    connection.send('core.tool.cancel', { call_id: callId });
    expect((await connection.result(callId)).payload.status).toBe('canceled');
    await expect(ended).resolves.toEqual({ how: 'goodbye', reason: 'restart' });
    expect(exits).toEqual([0]);
  });
  it('calls that do not end within drainMs are canceled', async () => {
    const { connection, ended } = await attached({ limits: { drainMs: 20 } });
    const { callId } = connection.call(ID, {});
    connection.send('core.goodbye', { reason: 'restart' });
    expect((await connection.result(callId)).payload).toMatchObject({
      status: 'canceled',
      error: { code: 'tool.canceled' },
    });
    await expect(ended).resolves.toMatchObject({ how: 'goodbye' });
  });
  it('SIGTERM: agent.goodbye, the calls in flight, then exit code 0', async () => {
    const { connection, ended, signal, exits } = await attached({ limits: { drainMs: 20 } });
    const { callId } = connection.call(ID, {});
    // Answered behind the call: it is in flight.
    connection.send('core.ping', {});
    await connection.next('agent.pong');
    signal('SIGTERM');
    const goodbye = await connection.next('agent.goodbye');
    expect(goodbye.payload).toEqual({ reason: 'SIGTERM' });
    expect((await connection.result(callId)).payload.status).toBe('canceled');
    await expect(ended).resolves.toEqual({ how: 'stopped', reason: 'SIGTERM' });
    expect(exits).toEqual([0]);
  });
  it('both sides may say goodbye at once', async () => {
    const { connection, ended, agent: one } = await attached();
    connection.send('core.goodbye', { reason: 'restart' });
    await one.stop('enough');
    await expect(ended).resolves.toMatchObject({ how: 'stopped' });
  });
});

describe('a lost connection', () => {
  it('seed 004 §5.1: a launched agent ends with its connection: its token is spent', async () => {
    const aborted: unknown[] = [];
    const notes = tool({
      name: 'waits',
      description: 'Notes its end.',
      input: EMPTY,
      run: async (_, { signal }) => {
        await once(signal, 'abort');
        aborted.push(signal.reason);
      },
    });
    const { connection, ended, exits } = await attached({ tools: [notes] });
    connection.call(ID, {});
    connection.send('core.ping', {});
    await connection.next('agent.pong');
    connection.socket.destroy();
    await expect(ended).resolves.toEqual({ how: 'lost', reason: 'connection_lost' });
    expect(exits).toEqual([1]);
    expect(aborted).toHaveLength(1);
  });
  it('an attached agent connects again with fresh credentials, and registers again', async () => {
    const core = await startScriptedCore();
    const { surroundings, exits } = surroundingsOf(core.socket);
    let minted = 0;
    const credentials = async () => ({ socket: core.socket, token: `token-${(minted += 1)}` });
    const reconnect: Reconnect = { credentials, firstMs: 1, mostMs: 5 };
    const options = { id: 'com.example.test', version: '1.0.0', tools: [waits] };
    const one = agent({ ...options, surroundings, reconnect });
    const ended = one.run();
    const first = await core.connection();
    expect((await first.greet()).hello.payload.session_token).toBe(TOKEN);
    first.socket.destroy();
    const second = await core.connection();
    // A refusal is tried again, with another token.
    const hello = await second.next('agent.hello');
    const error = { code: 'protocol.unauthorized', message: 'No.' };
    second.send('core.welcome', { accepted_version: 0 }, { in_reply_to: hello.id, error });
    const third = await core.connection();
    const { hello: last, register } = await third.greet();
    expect(last.payload.session_token).toBe('token-2');
    expect(register.payload.tools).toHaveLength(1);
    third.send('core.goodbye', { reason: 'restart', retry_after_ms: 5 });
    const fourth = await core.connection();
    await fourth.greet();
    await one.stop();
    await expect(ended).resolves.toEqual({ how: 'stopped', reason: 'stopped' });
    expect(exits).toEqual([]);
    await core.stop();
  });
  it('failures in a row are bounded', async () => {
    const { surroundings, log } = surroundingsOf('/nowhere/core.sock');
    const credentials = async () => ({ socket: '/nowhere/core.sock', token: 'x' });
    const reconnect: Reconnect = { credentials, firstMs: 1, mostMs: 2, attempts: 3 };
    const one = agent({ id: 'com.example.test', version: '1.0.0', surroundings, reconnect });
    await expect(one.run()).resolves.toEqual({ how: 'refused', reason: 'agent.unreachable' });
    expect(log.filter((line) => line.includes('connects again'))).toHaveLength(2);
  });
  it('an agent that waits to connect again can be stopped', async () => {
    const { surroundings } = surroundingsOf('/nowhere/core.sock');
    const credentials = () => Promise.reject(new Error('no'));
    const reconnect: Reconnect = { credentials, firstMs: 60_000, mostMs: 60_000 };
    const one = agent({ id: 'com.example.test', version: '1.0.0', surroundings, reconnect });
    const ended = one.run();
    await one.stop('enough');
    await expect(ended).resolves.toEqual({ how: 'stopped', reason: 'enough' });
  });
  it('without credentials there is no agent', async () => {
    const surroundings = { ...surroundingsOf('').surroundings, env: {} };
    const one = agent({ id: 'com.example.test', version: '1.0.0', surroundings });
    await expect(one.run()).resolves.toEqual({ how: 'refused', reason: 'agent.no_credentials' });
  });
});

describe('a process of its own', () => {
  const hello = fileURLToPath(new URL('./hello-agent.ts', import.meta.url));
  const launch = (socket: string, [file, cwd]: readonly [string, string?] = [hello]) => {
    const loader = cwd === undefined ? TYPESCRIPT : 'openwop-temporal/typescript';
    const env = {
      ...process.env,
      OPENSENTIENCE_SOCKET: socket,
      OPENSENTIENCE_SESSION_TOKEN: TOKEN,
    };
    const child = spawn(process.execPath, ['--import', loader, file], {
      cwd,
      env,
      stdio: 'pipe',
    });
    let written = '';
    child.stdout.on('data', (chunk: Buffer) => (written += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (written += chunk.toString()));
    return { child, written: () => written, exit: once(child, 'exit') };
  };
  it('seed 004 §5: ten lines are an agent; crash reports and children know no token', async () => {
    const core = await startScriptedCore();
    const { written, exit } = launch(core.socket);
    const connection = await core.connection();
    const greeting = await connection.greet();
    expect(greeting.hello.payload.session_token).toBe(TOKEN);
    const { callId } = connection.call('com.example.hello/greet', { name: 'Ada' });
    const { payload } = await connection.result(callId);
    expect(payload.output).toEqual({ greeting: 'Hello Ada' });
    const asked = connection.call('com.example.hello/report', {});
    expect((await connection.result(asked.callId)).payload.output).toEqual({ hasToken: false });
    connection.send('core.goodbye', { reason: 'restart' });
    expect(await exit).toEqual([0, null]);
    expect(written()).not.toContain(TOKEN);
    await core.stop();
  });
  it('the README’s ten lines run outside of the checkout, as it says', async () => {
    const checkout = fileURLToPath(new URL('../..', import.meta.url));
    const readme = readFileSync(join(checkout, 'README.md'), 'utf8');
    const [, lines = ''] = /```ts\n(.*?)```/s.exec(readme) ?? [];
    const [, file = ''] = /node --import openwop-temporal\/typescript (\S+)`/.exec(readme) ?? [];
    const folder = mkdtempSync(join(tmpdir(), 'openwop-agent-'));
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(checkout, join(folder, 'node_modules/openwop-temporal'));
    writeFileSync(join(folder, file), lines);
    const core = await startScriptedCore();
    const { written, exit } = launch(core.socket, [file, folder]);
    const connection = await Promise.race([core.connection(), exit]).then((come) => {
      if (Array.isArray(come)) throw new Error(written());
      return come;
    });
    await connection.greet();
    const { callId } = connection.call('com.example.hello/greet', { name: 'Ada' });
    const { payload } = await connection.result(callId);
    expect(payload.output).toEqual({ greeting: 'Hello Ada' });
    connection.send('core.goodbye', { reason: 'restart' });
    expect(await exit).toEqual([0, null]);
    await core.stop();
    rmSync(folder, { recursive: true });
  });

  it('SIGTERM drains; a lost connection is exit code 1, even with work that does not end', async () => {
    const core = await startScriptedCore();
    const first = launch(core.socket);
    const one = await core.connection();
    await one.greet();
    first.child.kill('SIGTERM');
    await one.next('agent.goodbye');
    expect(await first.exit).toEqual([0, null]);
    const second = launch(core.socket);
    const two = await core.connection();
    await two.greet();
    two.call('com.example.hello/forever', {});
    two.send('core.ping', {});
    await two.next('agent.pong');
    two.socket.destroy();
    expect(await second.exit).toEqual([1, null]);
    await core.stop();
  });
});
