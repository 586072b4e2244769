// Agents that fall, hang, eat memory or do not listen: real processes, real signals, a real Core.
import { spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { openChildren } from '../../../src/opensentience/process/children.ts';
import { groupMembers, isRunning, recordProcess } from '../../../src/system/processes.ts';
import { callOf, startCore, type TestCore } from '../../support/opensentience/core-parts.ts';
import { writeRawAgent, type RawMode } from '../../support/opensentience/raw-agent.ts';
import { tempFolder } from '../../support/opensentience/temp.ts';
import { quietLogger } from '../../support/quiet-logger.ts';
import { programArgs } from '../../support/prepared.ts';
import { paced, patient } from '../../support/machine.ts';

const root = tempFolder();
const linux = process.platform === 'linux';
const ID = 'com.example.raw';
const WAIT_MS = patient(20_000);
const CORE_PROCESS = new URL('../../support/opensentience/core-process.ts', import.meta.url);
const running: TestCore[] = [];
const children: ChildProcess[] = [];
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await Promise.all(running.map(({ core }) => core.stop()));
});
let number = 0;

type Over = Parameters<typeof writeRawAgent>[2] & Parameters<typeof startCore>[1];

async function given(mode: RawMode, { env, over, ...options }: Over = {}) {
  const folder = join(root, String(number++));
  writeRawAgent(join(folder, 'agents'), ID, {
    mode,
    ...(env ? { env } : {}),
    ...(over ? { over } : {}),
  });
  const parts = await startCore(folder, options);
  running.push(parts);
  const status = async () => (await parts.row(ID))?.status;
  const starts = () => parts.kinds(ID).filter((kind) => kind === 'agent.started').length;
  const pidOf = async () => {
    const { pid } = await parts.core.call(ID, callOf(`${ID}/pid`), WAIT_MS);
    return pid as number;
  };
  const reasons = () =>
    parts.registry.entries
      .filter(({ kind }) => kind === 'agent.exited')
      .map(({ details }) => details.reason);
  return { ...parts, folder, status, starts, pidOf, reasons };
}

describe('restart policy', () => {
  it('an agent that is killed comes back, each time', async () => {
    const parts = await given('plain');
    const pids = new Set<number>();
    for (let n = 0; n < 3; n++) {
      const pid = await parts.pidOf();
      expect(pids.has(pid)).toBe(false);
      pids.add(pid);
      process.kill(pid, 'SIGKILL');
      await expect.poll(parts.starts).toBe(n + 2);
    }
    await parts.pidOf();
    await expect.poll(() => parts.row(ID)).toMatchObject({ restarts: 3, status: 'connected' });
    expect((await parts.row(ID))?.lastExit?.reason).toBe('SIGKILL');
  });
  it('one that ends again and again is stopped, and that is told once with reason and log file', async () => {
    const { status, starts, logs, reasons, row } = await given('crash');
    await expect.poll(status).toBe('crash-loop');
    await expect.poll(starts).toBe(5);
    expect(reasons()).toEqual(Array(5).fill('exit code 3'));
    const told = logs.filter((line) => line.startsWith('agent ends again and again'));
    expect(told).toHaveLength(1);
    expect(told[0]).toContain('exit code 3');
    const file = (JSON.parse(told[0]?.slice(told[0].indexOf('{')) ?? '') as { logFile: string })
      .logFile;
    expect(readFileSync(file, 'utf8')).toContain('stderr I crash');
    expect(await row(ID)).toMatchObject({ restarts: 4, lastExit: { reason: 'exit code 3' } });
  });
  it('policy never: it stays down', async () => {
    const { status, starts } = await given('crash', { over: { restart: { policy: 'never' } } });
    await expect.poll(status).toBe('stopped');
    expect(starts()).toBe(1);
  });
  it('a process that never says hello is killed, and that counts', async () => {
    const over = { restart: { crashLoop: { exits: 2, withinMs: 60_000 } } };
    const { status, reasons } = await given('mute', { over, processLimits: { startMs: 150 } });
    await expect.poll(status).toBe('crash-loop');
    await expect.poll(reasons).toEqual(Array(2).fill('no hello within 150 ms'));
  });
  it('starts in a row without a hello are a crash loop, however far apart', async () => {
    const processLimits = { crashExits: 1_000, startsWithoutTool: 3, firstDelayMs: 10 };
    const { status, reasons, core } = await given('crash', { processLimits });
    await expect.poll(status).toBe('crash-loop');
    await expect.poll(reasons).toEqual(Array(3).fill('exit code 3'));
    await expect(core.call(ID, callOf(`${ID}/pid`), WAIT_MS)).rejects.toMatchObject({
      message:
        "The agent's process ended 3 times in a row without an accepted tool and is not started any more. Its last exit: exit code 3.",
    });
  });
  it('and so are those with a hello that come to no accepted tool', async () => {
    const processLimits = { crashExits: 1_000, startsWithoutTool: 3, leaveMs: WAIT_MS };
    const { status, reasons, core } = await given('malformed', { processLimits });
    await expect(core.call(ID, callOf(`${ID}/die`), WAIT_MS)).rejects.toMatchObject({ sent: true });
    await expect.poll(status).toBe('crash-loop');
    await expect.poll(reasons).toEqual(['SIGKILL', ...Array<string>(3).fill('exit code 0')]);
  });
  it('one whose tools were accepted is started again, however often it ends', async () => {
    const processLimits = { crashExits: 1_000, startsWithoutTool: 2 };
    const { core, status, starts } = await given('plain', { processLimits });
    for (let n = 1; n < 4; n++) {
      await core.call(ID, callOf(`${ID}/die`), WAIT_MS).catch(() => undefined);
      await expect.poll(starts).toBe(n + 1);
    }
    await expect.poll(status).toBe('connected');
  });
  it('one that cannot be started ends in the crash loop, too', async () => {
    const over = { launch: { command: './not-there' } };
    const { status, reasons } = await given('plain', { over });
    await expect.poll(status).toBe('crash-loop');
    await expect.poll(reasons).toEqual(Array(5).fill('could not be started (ENOENT)'));
  });
});

describe('architecture §1: every wait has a limit', () => {
  it('many agents start a few at a time; Core can stop meanwhile', async () => {
    const folder = join(root, String(number++));
    const ids = Array.from({ length: 20 }, (_, n) => `com.example.mute-${n}`);
    for (const id of ids) writeRawAgent(join(folder, 'agents'), id, { mode: 'mute' });
    const parts = await startCore(folder);
    running.push(parts);
    const starts = () => parts.kinds().filter((kind) => kind === 'agent.started').length;
    await expect.poll(starts).toBe(16);
    await parts.core.stop();
    expect(starts()).toBe(16);
  });
});

describe('seed 004 §4.5.1: heartbeats and health', () => {
  const limits = { heartbeatIntervalMs: paced(250) };
  it('lost heartbeats: no calls, then a new process', async () => {
    const { starts, core, kinds } = await given('silent', { limits });
    await expect.poll(starts).toBeGreaterThan(1);
    expect(kinds(ID)).toContain('session.lost');
    await core.stop();
  });
  it('a process that is stopped from outside is ended by SIGKILL', async () => {
    const { pidOf, reasons, starts } = await given('plain', { limits });
    process.kill(await pidOf(), 'SIGSTOP');
    await expect.poll(starts).toBe(2);
    expect(reasons()).toEqual(['SIGKILL']);
  });
  it('one that says that it is unhealthy gets no calls, and is started anew', async () => {
    const { reasons, core, kinds } = await given('unhealthy', {
      limits,
      processLimits: { unhealthyMs: paced(200) },
    });
    await expect.poll(reasons).toContain('unhealthy');
    expect(kinds(ID)).toContain('agent.unhealthy');
    // A new session is not known to be unhealthy before its first heartbeat.
    await expect.poll(() => core.routable()).toEqual([]);
  });
});

describe('resource limits', () => {
  it.runIf(linux)('over its memory it is killed, and audited', async () => {
    const over = {
      limits: { memoryBytes: 160 * 1024 * 1024 },
      restart: { policy: 'never' },
    };
    const { status, reasons, kinds } = await given('eater', { over });
    await expect.poll(status).toBe('stopped');
    await expect.poll(reasons).toEqual([`more than ${160 * 1024 * 1024} bytes of memory`]);
    expect(kinds(ID)).toContain('agent.over_memory');
  });
});

describe('graceful drain (core.goodbye)', () => {
  it('a call in flight gets its answer, then the agent ends by itself', async () => {
    const { core, reasons, pidOf, row } = await given('plain');
    const pid = await pidOf();
    const call = core.call(ID, callOf(`${ID}/slow`), WAIT_MS);
    await expect.poll(async () => (await row(ID))?.session?.calls).toHaveLength(1);
    const stopped = core.stop();
    await expect(call).resolves.toEqual({ slow: true });
    await stopped;
    expect(recordProcess(pid)).toBeUndefined();
    expect(reasons()).toEqual(['exit code 0']);
  });
  it('one that does not listen, and what it started, ends by SIGKILL', async () => {
    const { core, pidOf, reasons, folder } = await given('stubborn', { env: { CHILD: 'yes' } });
    const pid = await pidOf();
    if (linux) await expect.poll(() => groupMembers().get(pid)?.length).toBe(2);
    await core.stop();
    expect(reasons()).toEqual(['SIGKILL']);
    // Its leader is gone; what the leader started has the same signal, and its own time to go.
    await expect.poll(() => groupMembers().get(pid)).toBeUndefined();
    expect(readFileSync(join(folder, 'data', 'opensentience', 'children.json'), 'utf8')).toBe('[]');
  });
  it('starting, backing off and crash loop end at once', async () => {
    const parts = await Promise.all([
      given('mute'),
      given('crash', { over: { restart: { firstDelayMs: 60_000, maxDelayMs: 60_000 } } }),
      given('crash', { over: { restart: { crashLoop: { exits: 1, withinMs: 60_000 } } } }),
    ]);
    const [mute, crash, loop] = parts;
    await expect.poll(mute.status).toBe('starting');
    await expect.poll(crash.status).toBe('backing-off');
    await expect.poll(loop.status).toBe('crash-loop');
    await Promise.all(parts.map(({ core }) => core.stop()));
    expect(parts.map(({ starts }) => starts())).toEqual([1, 1, 1]);
  });
});

describe('nothing is left of a Core that was killed', () => {
  it('the next Core ends its agents', async () => {
    const folder = join(root, String(number++));
    writeRawAgent(join(folder, 'agents'), ID, { mode: 'stubborn' });
    const core = spawn(process.execPath, [...programArgs(CORE_PROCESS), folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(core);
    for await (const line of createInterface({ input: core.stdout })) if (line === 'running') break;
    const list = () =>
      JSON.parse(readFileSync(join(folder, 'data', 'opensentience', 'children.json'), 'utf8')) as {
        process: { pid: number; startedAt: string };
      }[];
    const log = () =>
      readFileSync(join(folder, 'data', 'opensentience', 'logs', `${ID}.log`), 'utf8');
    await expect.poll(log).toContain('welcome');
    const [orphan] = list();
    core.kill('SIGKILL');
    await expect.poll(() => recordProcess(core.pid ?? 0)).toBeUndefined();
    expect(orphan && isRunning(orphan.process)).toBe(true);
    const next = await startCore(folder);
    running.push(next);
    expect(orphan && isRunning(orphan.process)).toBe(false);
    await expect.poll(() => next.kinds(ID)).toContain('agent.orphan_ended');
    await next.core.call(ID, callOf(`${ID}/pid`), WAIT_MS);
  });
  it.runIf(linux)(
    'what outlived the leader of its group is ended; strangers are not touched',
    async () => {
      const path = join(root, 'list', 'children.json');
      mkdirSync(join(root, 'list'));
      const leader = spawn('/bin/sh', ['-c', 'sleep 1000 & read line'], {
        detached: true,
        stdio: ['pipe', 'ignore', 'ignore'],
      });
      const stranger = spawn('/bin/sh', ['-c', 'read line'], {
        detached: true,
        stdio: ['pipe', 'ignore', 'ignore'],
      });
      children.push(leader, stranger);
      const pid = leader.pid ?? 0;
      await expect.poll(() => groupMembers().get(pid)?.length).toBe(2);
      const record = recordProcess(pid);
      const dead = { pid: 2 ** 22 + 1, startedAt: 'gone:1' };
      const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
      writeFileSync(
        path,
        JSON.stringify([
          { agentId: 'left', process: record, core: dead },
          { agentId: 'reused', process: { pid: stranger.pid, startedAt: `${boot}:1` }, core: dead },
          {
            agentId: 'ours',
            process: recordProcess(stranger.pid ?? 0),
            core: recordProcess(process.pid),
          },
          { agentId: 'broken', process: { pid: -1, startedAt: '' }, core: dead },
          'nonsense',
        ]),
      );
      leader.kill('SIGKILL');
      await expect.poll(() => groupMembers().get(pid)?.length).toBe(1);
      expect(await openChildren(path, quietLogger).endOrphans()).toEqual(['left']);
      await expect.poll(() => groupMembers().get(pid)).toBeUndefined();
      expect(recordProcess(stranger.pid ?? 0)).toBeDefined();
      expect(readFileSync(path, 'utf8')).toContain('ours');
      expect(readFileSync(path, 'utf8')).not.toContain('left');
    },
  );
  it.runIf(linux)('what ignores SIGTERM is gone once its end is reported', async () => {
    const path = join(root, 'deaf.json');
    const leader = spawn('/bin/sh', ['-c', 'trap "" TERM; echo deaf; read line'], {
      detached: true,
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    children.push(leader);
    for await (const line of createInterface({ input: leader.stdout })) if (line === 'deaf') break;
    const pid = leader.pid ?? 0;
    const core = { pid: 2 ** 22 + 1, startedAt: 'gone:1' };
    writeFileSync(path, JSON.stringify([{ agentId: 'deaf', process: recordProcess(pid), core }]));
    // A kernel that takes its time: who does not wait after SIGKILL is done before the signal is there.
    const kill = process.kill.bind(process);
    const slowKill = vi.spyOn(process, 'kill').mockImplementation((target, signal) => {
      if (signal !== 'SIGKILL') return kill(target, signal);
      setImmediate(() => leader.kill(signal));
      return true;
    });
    try {
      expect(await openChildren(path, quietLogger).endOrphans()).toEqual(['deaf']);
      expect(recordProcess(pid)).toBeUndefined();
      expect(slowKill).toHaveBeenCalledWith(-pid, 'SIGKILL');
    } finally {
      slowKill.mockRestore();
    }
  });
  it('a list that cannot be read ends nobody', async () => {
    const path = join(root, 'broken.json');
    for (const text of ['', '{', '{"pid":1}', 'null']) {
      writeFileSync(path, text);
      expect(await openChildren(path, quietLogger).endOrphans()).toEqual([]);
    }
  });
});
