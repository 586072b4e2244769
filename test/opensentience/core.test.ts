// Core with real agents over its real socket: calls, tools, rows, audit, secrets, attaching, a registry that is away.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { AgentInstance } from '../../src/ports/agents.ts';
import { mintToken, tokenHash } from '../../src/opensentience/tokens.ts';
import { isThere } from '../../src/system/processes.ts';
import { callOf, startCore, type TestCore } from '../support/opensentience/core-parts.ts';
import { createMemoryRegistry } from '../support/opensentience/memory-registry.ts';
import { RAW_AGENT, writeRawAgent } from '../support/opensentience/raw-agent.ts';
import { tempFolder, writeAgent } from '../support/opensentience/temp.ts';
import { patient } from '../support/machine.ts';

const root = tempFolder();
const linux = process.platform === 'linux';
const running: TestCore[] = [];
const children: ChildProcess[] = [];
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(running.map(({ core }) => core.stop()));
});
let number = 0;

const ID = 'com.example.raw';
const WAIT_MS = patient(20_000);
/** No test waits for so long. */
const NEVER_MS = 3_600_000;

async function given(
  write: (agentsDir: string) => void,
  over: Parameters<typeof startCore>[1] = {},
) {
  const folder = join(root, String(number++));
  write(join(folder, 'agents'));
  const parts = await startCore(folder, over);
  running.push(parts);
  return { ...parts, folder };
}

describe('Core launches agents and runs call their tools', () => {
  it('a call waits for the agent, gets its answer, and the manifest gives context', async () => {
    const context = { project_root: '/srv/project', resource_paths: ['docs'] };
    const { core } = await given((dir) => writeRawAgent(dir, ID, { over: { context } }));
    const call = callOf(`${ID}/echo`, { text: 'hi' }, { context: { run_id: 'run-1' } });
    expect(await core.call(ID, call, WAIT_MS)).toEqual({
      input: { text: 'hi' },
      context: { ...context, run_id: 'run-1' },
    });
    expect(core.routable()).toEqual([ID]);
  });
  it('saves declared tools with the operator’s policy', async () => {
    const policy = { tools: { echo: { approval: 'ask', timeoutMs: 1_000 } } };
    const { registry } = await given((dir) => writeRawAgent(dir, ID, { over: { policy } }));
    await expect.poll(() => registry.tools('default')).toHaveLength(5);
    const [echo, pid] = await registry.tools('default');
    expect(echo).toMatchObject({ toolId: `${ID}/echo`, approval: 'ask', timeoutMs: 1_000 });
    expect(pid).toMatchObject({ toolId: `${ID}/pid`, approval: 'none', timeoutMs: 60_000 });
  });
  it('tells who can be called, and when not any more', async () => {
    const { core } = await given((dir) => writeRawAgent(dir, ID));
    const told: unknown[] = [];
    const end = core.onRoutable((agentId, routable) => told.push([agentId, routable]));
    await core.call(ID, callOf(`${ID}/echo`), WAIT_MS);
    await core.stop();
    end();
    expect(told.at(-1)).toEqual([ID, false]);
    expect(told).toContainEqual([ID, true]);
    expect(core.routable()).toEqual([]);
  });
  it('a call of an agent that is not here, or of a tool that it does not have', async () => {
    const { core } = await given((dir) => writeRawAgent(dir, ID));
    await expect(core.call('nobody', callOf('nobody/x'), WAIT_MS)).rejects.toMatchObject({
      code: 'agent_unavailable',
      sent: false,
    });
    await expect(core.call(ID, callOf(`${ID}/none`), WAIT_MS)).rejects.toMatchObject({
      code: 'tool_not_found',
    });
  });
  it('a call that waits can be cancelled, and ends when Core stops', async () => {
    const { core } = await given((dir) => writeAgent(dir, { id: ID }));
    const controller = new AbortController();
    const { signal } = controller;
    const cancelled = core.call(ID, callOf(`${ID}/x`, {}, { signal }), WAIT_MS);
    const late = core.call(ID, callOf(`${ID}/x`), 20);
    const waiting = core.call(ID, callOf(`${ID}/x`), WAIT_MS);
    controller.abort();
    await expect(cancelled).rejects.toMatchObject({ code: 'cancelled', sent: false });
    await expect(late).rejects.toMatchObject({ code: 'agent_unavailable', sent: false });
    const stopped = core.stop();
    await expect(waiting).rejects.toMatchObject({ code: 'agent_unavailable', sent: false });
    await stopped;
  });
});

describe('operator’s view', () => {
  it('a row per agent, under a lease, removed when Core stops', async () => {
    const { row, registry, core } = await given((dir) => {
      writeRawAgent(dir, ID, { over: { name: 'Raw', version: '9.9.9' } });
      writeAgent(dir, { id: 'com.example.by-hand' });
    });
    await core.call(ID, callOf(`${ID}/echo`), WAIT_MS);
    await expect
      .poll(async () => (await row(ID))?.metrics[0])
      .toMatchObject({ toolId: `${ID}/echo`, calls: 1, succeeded: 1 });
    expect(await row(ID)).toMatchObject({
      name: 'Raw',
      version: '1.2.3',
      launch: 'process',
      status: 'connected',
      restarts: 0,
      session: { attached: false, transport: 'unix', health: 'ok' },
    });
    expect(await row('com.example.by-hand')).toMatchObject({ launch: 'attach', status: 'waiting' });
    await core.stop();
    expect(await registry.instances('default')).toEqual([]);
  });
  it('metrics outlast the session they were counted in', async () => {
    const { row, core } = await given((dir) => writeRawAgent(dir, ID));
    await core.call(ID, callOf(`${ID}/echo`), WAIT_MS);
    await expect(core.call(ID, callOf(`${ID}/die`), WAIT_MS)).rejects.toMatchObject({
      code: 'agent_unavailable',
      sent: true,
    });
    await core.call(ID, callOf(`${ID}/echo`), WAIT_MS);
    const echo = async () =>
      (await row(ID))?.metrics.find(({ toolId }) => toolId === `${ID}/echo`)?.calls;
    await expect.poll(echo).toBe(2);
    expect(await row(ID)).toMatchObject({ restarts: 1, lastExit: { reason: 'SIGKILL' } });
  });
  it('a registry that is away costs nothing but time', async () => {
    const { core, registry, kinds, row } = await given((dir) => writeRawAgent(dir, ID));
    registry.away = true;
    await core.call(ID, callOf(`${ID}/echo`), WAIT_MS);
    registry.away = false;
    await expect.poll(() => kinds(ID)).toContain('agent.started');
    await expect.poll(() => row(ID)).toBeDefined();
    await expect.poll(() => registry.tools('default')).toHaveLength(5);
  });
});

describe('seed 004 §2.2, §4.1.1: what the manifest says of a session', () => {
  it('calls in flight are bounded by it, and drift is told, not refused', async () => {
    const over = { limits: { maxInflightRequests: 1 } };
    const { core, row, kinds } = await given((dir) =>
      writeRawAgent(dir, ID, { env: { MANIFEST_HASH: 'sha256:00' }, over }),
    );
    const calls = [1, 2, 3].map(() => core.call(ID, callOf(`${ID}/slow`), WAIT_MS));
    const states = async () => (await row(ID))?.session?.calls.map(({ state }) => state);
    await expect.poll(states).toEqual(['in-flight', 'queued', 'queued']);
    await Promise.all(calls);
    expect((await row(ID))?.session?.manifestMatches).toBe(false);
    await expect.poll(() => kinds(ID)).toContain('manifest.drift');
  });
});

describe('seed 004 §5.1: the token stays secret', () => {
  it('it is in no log line, log file, audit entry, row or argument list', async () => {
    const { core, registry, logs, folder, row } = await given((dir) =>
      writeRawAgent(dir, ID, { mode: 'leak' }),
    );
    const { names } = await core.call(ID, callOf(`${ID}/environment`), WAIT_MS);
    expect(names).toContain('OPENSENTIENCE_SESSION_TOKEN');
    await expect.poll(() => row(ID)).toMatchObject({ status: 'connected' });
    const pid = (await row(ID))?.session?.pid ?? 0;
    const file = join(folder, 'data', 'opensentience', 'logs', `${ID}.log`);
    await expect.poll(() => readFileSync(file, 'utf8')).toContain('welcome');
    const log = readFileSync(file, 'utf8');
    expect(log).toContain('my token is [REDACTED:session_token].');
    expect(log).toContain('{"token":"[REDACTED:session_token]"}');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    if (!linux) return;
    const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
    const token = /OPENSENTIENCE_SESSION_TOKEN=([\w-]{43})/.exec(environment)?.[1] ?? '';
    expect(token).toHaveLength(43);
    const said = [
      log,
      logs.join('\n'),
      JSON.stringify(registry.entries),
      JSON.stringify(registry.saved),
      readFileSync(`/proc/${pid}/cmdline`, 'utf8'),
      readFileSync(join(folder, 'data', 'opensentience', 'children.json'), 'utf8'),
    ].join('\n');
    // Neither it, nor what a cut line would leave of it.
    expect(said).not.toContain(token.slice(0, 12));
  });
  it('sockets and folders are of their owner only', async () => {
    const { row, folder } = await given((dir) => writeRawAgent(dir, ID));
    await expect.poll(() => row(ID)).toBeDefined();
    const socket = (await row(ID))?.socket ?? '';
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 's')).mode & 0o777).toBe(0o700);
  });
  it('an agent under another name is refused, and audited by reason', async () => {
    const { registry, kinds, row } = await given((dir) =>
      writeRawAgent(dir, ID, {
        env: { CLAIMED_ID: 'com.example.other' },
        over: { restart: { policy: 'never' } },
      }),
    );
    await expect.poll(() => kinds()).toContain('token.refused');
    const refused = registry.entries.find(({ kind }) => kind === 'token.refused');
    expect(refused?.details.reason).toBe('token_of_another_agent');
    await expect.poll(async () => (await row(ID))?.status).toBe('stopped');
  });
});

describe('an externally started agent attaches', () => {
  async function attach(
    parts: TestCore & { folder: string },
    id: string,
    address?: string,
  ): Promise<ChildProcess> {
    const token = mintToken();
    const minted = { tenant: 'default', agentId: id, tokenHash: tokenHash(token) };
    await parts.registry.mintToken(minted, 60_000);
    await expect.poll(() => parts.row(id)).toBeDefined();
    const child = spawn(process.execPath, ['--input-type=module', '-e', RAW_AGENT], {
      env: {
        OPENSENTIENCE_SOCKET: address ?? (await parts.row(id))?.socket,
        OPENSENTIENCE_SESSION_TOKEN: token,
        OPENSENTIENCE_AGENT_ID: id,
      },
      stdio: 'ignore',
    });
    children.push(child);
    return child;
  }
  it('silence is never consent: who asks for a permission that the operator has not acknowledged is neither started nor let in', async () => {
    const permissions = ['filesystem:read:~/notes/**', 'network:egress'];
    const acknowledgedPermissions = ['network:egress'];
    const over = { permissions, policy: { acknowledgedPermissions } };
    const parts = await given((dir) => writeRawAgent(dir, ID, { over }));
    await expect.poll(() => parts.row(ID)).toMatchObject({ status: 'refused', restarts: 0 });
    expect((await parts.row(ID))?.permissions).toEqual([
      { permission: 'filesystem:read:~/notes/**', state: 'refused' },
      { permission: 'network:egress', state: 'acknowledged' },
    ]);
    expect(parts.logs.find((line) => line.startsWith('agent refused'))).toContain(
      '"permissions":["filesystem:read:~/notes/**"]',
    );
    const child = await attach(parts, ID);
    await expect.poll(() => parts.kinds(ID)).toContain('token.refused');
    const refusal = parts.registry.entries.find(({ kind }) => kind === 'token.refused');
    expect(refusal?.details).toMatchObject({ reason: 'permission_not_acknowledged' });
    child.kill('SIGKILL');
    expect(parts.kinds(ID)).not.toContain('agent.started');
    await expect(parts.core.call(ID, callOf(`${ID}/echo`), WAIT_MS)).rejects.toMatchObject({
      code: 'agent_unavailable',
    });
    expect(existsSync(join(parts.folder, 'data', 'opensentience', 'logs', `${ID}.log`))).toBe(
      false,
    );
  });
  it('who has all its permissions acknowledged is started, and each is shown', async () => {
    const permissions = ['network:egress'];
    const over = { permissions, policy: { acknowledgedPermissions: permissions } };
    const parts = await given((dir) => writeRawAgent(dir, ID, { over }));
    await parts.core.call(ID, callOf(`${ID}/echo`), WAIT_MS);
    await expect
      .poll(() => parts.row(ID))
      .toMatchObject({
        status: 'connected',
        permissions: [{ permission: 'network:egress', state: 'acknowledged' }],
      });
  });
  it('with a minted token, and Core waits for it again when it goes', async () => {
    const parts = await given((dir) => writeAgent(dir, { id: ID }));
    const child = await attach(parts, ID);
    const { pid } = await parts.core.call(ID, callOf(`${ID}/pid`), WAIT_MS);
    expect(pid).toBe(child.pid);
    await expect
      .poll(() => parts.row(ID))
      .toMatchObject({ status: 'connected', session: { attached: true } });
    child.kill('SIGKILL');
    await expect.poll(async () => (await parts.row(ID))?.status).toBe('waiting');
  });
  it('seed 004 §1.2: over loopback TCP where the operator asks for it', async () => {
    const parts = await given((dir) => writeAgent(dir, { id: ID }), { tcpPort: 0 });
    const told = parts.logs.find((line) => line.startsWith('agents may connect'));
    const address = /"tcp":"(127\.0\.0\.1:\d+)"/.exec(told ?? '')?.[1];
    const child = await attach(parts, ID, `tcp:${address}`);
    expect(await parts.core.call(ID, callOf(`${ID}/pid`), WAIT_MS)).toEqual({ pid: child.pid });
    await expect.poll(async () => (await parts.row(ID))?.session?.transport).toBe('tcp');
    await expect(
      startCore(join(root, String(number++)), { tcpPort: Number(address?.split(':')[1]) }),
    ).rejects.toMatchObject({ code: 'EADDRINUSE' });
  });
  it('it takes the place of the process that Core started, calls of that one end, and gives it back', async () => {
    const parts = await given((dir) => writeRawAgent(dir, ID));
    const { pid: launched } = await parts.core.call(ID, callOf(`${ID}/pid`), WAIT_MS);
    const child = await attach(parts, ID);
    await expect
      .poll(async () => (await parts.core.call(ID, callOf(`${ID}/pid`), WAIT_MS)).pid)
      .toBe(child.pid);
    await expect
      .poll(() => parts.row(ID))
      .toMatchObject({ status: 'connected', session: { attached: true } });
    await expect.poll(() => isThere(Number(launched))).toBe(false);
    child.kill('SIGKILL');
    await expect
      .poll(() => parts.row(ID))
      .toMatchObject({ status: 'connected', session: { attached: false } });
  });
  it('it takes the place of a process that does not come up, and gives it back', async () => {
    const restart = { crashLoop: { exits: 2, withinMs: 60_000 } };
    const parts = await given((dir) =>
      writeRawAgent(dir, ID, { mode: 'crash', over: { restart } }),
    );
    await expect.poll(async () => (await parts.row(ID))?.status).toBe('crash-loop');
    const child = await attach(parts, ID);
    await expect.poll(async () => (await parts.row(ID))?.status).toBe('connected');
    expect(await parts.core.call(ID, callOf(`${ID}/pid`), WAIT_MS)).toEqual({ pid: child.pid });
    child.kill('SIGKILL');
    await expect.poll(async () => (await parts.row(ID))?.restarts).toBeGreaterThan(1);
  });
  it('calls of an agent in a crash loop end at once with its last exit, until somebody starts it by hand', async () => {
    const restart = { crashLoop: { exits: 2, withinMs: 60_000 } };
    const parts = await given((dir) =>
      writeRawAgent(dir, ID, { mode: 'crash', over: { restart } }),
    );
    const { core } = parts;
    const fallen = {
      code: 'tool_failed',
      sent: false,
      details: { final: true },
      message:
        "The agent's process ended 2 times within 60 s and is not started any more. Its last exit: exit code 3.",
    };
    await expect(core.call(ID, callOf(`${ID}/pid`), WAIT_MS)).rejects.toMatchObject(fallen);
    await expect(core.call(ID, callOf(`${ID}/pid`), WAIT_MS)).rejects.toMatchObject(fallen);
    // Calls that wait on its queue are taken here, and end.
    expect(core.routable()).toEqual([ID]);
    const child = await attach(parts, ID);
    const pid = async () =>
      (await core.call(ID, callOf(`${ID}/pid`), WAIT_MS).catch(() => undefined))?.pid;
    await expect.poll(pid).toBe(child.pid);
  });
  it('an agent that its policy does not start again is given up too, one that ended well is waited for', async () => {
    const restart = { policy: 'never' };
    const parts = await given((dir) => {
      writeRawAgent(dir, ID, { mode: 'crash', over: { restart } });
      const launch = { command: process.execPath, args: ['-e', ''] };
      writeAgent(dir, { id: 'com.example.done', launch, restart });
    });
    await expect(parts.core.call(ID, callOf(`${ID}/pid`), WAIT_MS)).rejects.toMatchObject({
      code: 'tool_failed',
      message: expect.stringContaining('Its last exit: exit code 3.') as unknown,
    });
    await expect.poll(async () => (await parts.row('com.example.done'))?.status).toBe('stopped');
    expect(parts.core.routable()).toEqual([ID]);
  });
  it('one that its policy does not start again is given up again when the one that was started by hand goes', async () => {
    const restart = { policy: 'never' };
    const parts = await given((dir) =>
      writeRawAgent(dir, ID, { mode: 'crash', over: { restart } }),
    );
    await expect.poll(() => parts.core.routable()).toEqual([ID]);
    const child = await attach(parts, ID);
    await expect.poll(async () => (await parts.row(ID))?.status).toBe('connected');
    child.kill('SIGKILL');
    await expect.poll(async () => (await parts.row(ID))?.status).toBe('stopped');
    await expect(parts.core.call(ID, callOf(`${ID}/pid`), NEVER_MS)).rejects.toMatchObject({
      ...{ code: 'tool_failed', sent: false },
      message: expect.stringContaining('Its last exit: exit code 3.') as unknown,
    });
  });
  it.each(['backing-off', 'draining'])(
    'calls of an agent in a crash loop wait, in its queue, where another Core may have it: %s',
    async (status) => {
      const restart = { crashLoop: { exits: 1, withinMs: 60_000 } };
      const registry = createMemoryRegistry();
      const other = { tenant: 'default', agentId: ID, instanceId: 'other', status };
      await registry.saveInstance(other as unknown as AgentInstance, 600_000);
      const parts = await given(
        (dir) => writeRawAgent(dir, ID, { mode: 'crash', over: { restart } }),
        { registry },
      );
      await expect.poll(async () => (await parts.row(ID))?.status).toBe('crash-loop');
      // Not held here for the time that an agent has to connect: the other one may have it now.
      const end = () => parts.core.call(ID, callOf(`${ID}/pid`), NEVER_MS);
      await expect(end()).rejects.toMatchObject({ code: 'agent_unavailable', sent: false });
      expect(parts.core.routable()).toEqual([]);
      await registry.removeInstances('other');
      await expect(end()).rejects.toMatchObject({ code: 'tool_failed', sent: false });
      await registry.saveInstance(other as unknown as AgentInstance, 600_000);
      await expect(end()).rejects.toMatchObject({ code: 'agent_unavailable', sent: false });
    },
  );
  it('a Core that stops says goodbye and leaves nothing behind', async () => {
    const parts = await given((dir) => writeAgent(dir, { id: ID }));
    const child = await attach(parts, ID);
    await parts.core.call(ID, callOf(`${ID}/pid`), WAIT_MS);
    const ended = once(child, 'exit');
    await parts.core.stop();
    expect((await ended)[0]).toBe(0);
    expect(readdirSync(join(parts.folder, 's'))).toEqual([]);
    expect(existsSync(join(parts.folder, 'data', 'opensentience', 'children.json'))).toBe(false);
  });
});
