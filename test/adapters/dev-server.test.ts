// Starting, adopting, restarting and ending Temporal's dev server (architecture §7).
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { connect, createServer as createProxy, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Connection } from '@temporalio/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isRunning, recordProcess } from '../../src/system/processes.ts';
import {
  obtainDevServer,
  type DevServer,
  type DevServerOptions,
} from '../../src/adapters/temporal/dev-server.ts';
import { obtainProgram } from '../../src/adapters/temporal/server-program/index.ts';
import { createLogger } from '../../src/app/logger.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { fakeProgram, fakeTemporal } from '../support/fake-temporal.ts';

let folder: string;
let lines: string[];
const running: DevServer[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'owop-dev-'));
  lines = [];
});

afterEach(async () => {
  for (const server of running.splice(0)) await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const report = (line: string) => void lines.push(line);

function listening(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () =>
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    );
  });
}

/** Listens on a port as soon as it is free, and answers with what a server on another port says. */
async function takesPort(port: number, target: number): Promise<{ close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const proxy = createProxy((socket) => {
    const to = connect(target, '127.0.0.1');
    for (const each of [socket, to]) sockets.add(each.on('error', () => each.destroy()));
    socket.pipe(to).pipe(socket);
  });
  const listens = () =>
    new Promise<boolean>((resolve) => {
      proxy.once('error', () => resolve(false));
      proxy.listen(port, '127.0.0.1', () => resolve(true));
    });
  while (!(await listens())) await new Promise(setImmediate);
  return {
    close: async () => {
      for (const each of sockets) each.destroy();
      await new Promise((closed) => proxy.close(closed));
    },
  };
}

describe('architecture §7 a process is known by pid and start time', () => {
  it('this process runs; the same pid with another start does not', () => {
    const own = recordProcess(process.pid);
    expect(own && isRunning(own)).toBe(true);
    expect(isRunning({ pid: process.pid, startedAt: 'another time' })).toBe(false);
    expect(recordProcess(2 ** 22 + 1)).toBeUndefined();
  });
});

describe('architecture §7 the dev server of a data folder', () => {
  const options = (): DevServerOptions => ({
    dataDir: join(folder, 'data'),
    ui: false,
    program: { cacheDir: CACHE_DIR, env: process.env, report },
    logger: createLogger({ level: 'error', write: () => undefined }),
  });
  const obtain = async (more: Partial<DevServerOptions> = {}) => {
    const server = await obtainDevServer({ ...options(), ...more });
    running.push(server);
    return server;
  };
  const retentionOf = async (address: string) => {
    const connection = await Connection.connect({ address });
    const { config } = await connection.workflowService.describeNamespace({ namespace: 'default' });
    await connection.close();
    return Number(config?.workflowExecutionRetentionTtl?.seconds);
  };

  it('answers, keeps histories 30 days, is adopted by the next process and ends with it', async () => {
    const first = await obtain();
    expect(await retentionOf(first.address)).toBe(30 * 24 * 3600);
    const pid = first.pid();
    const second = await obtain();
    expect(second).toMatchObject({ adopted: true, address: first.address });
    expect(second.pid()).toBe(pid);
    await Promise.all([second.stop(), first.stop()]);
    expect(recordProcess(pid as number)).toBeUndefined();
    const third = await obtain();
    expect(third).toMatchObject({ adopted: false, address: first.address });
  });

  it.skipIf(!existsSync('/proc/self/environ'))(
    'has of the environment what any program needs, and no key',
    async () => {
      const env = { ...process.env, TMPDIR: folder, OPENAI_API_KEY: 'sk-x' };
      const server = await obtain({ inMemory: true, program: { ...options().program, env } });
      const text = readFileSync(`/proc/${server.pid()}/environ`, 'utf8');
      // By its temporary folder a test run knows what it left behind (test/runner/place.ts).
      expect(text).toContain(`TMPDIR=${folder}\0`);
      expect(text.match(/^\w+(?==)|(?<=\0)\w+(?==)/g)?.sort()).toEqual(['HOME', 'PATH', 'TMPDIR']);
    },
  );
  it('is started again on the same port when it dies', async () => {
    const server = await obtain({ inMemory: true });
    const pid = server.pid() as number;
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => server.pid() ?? pid).not.toBe(pid);
    await expect.poll(() => retentionOf(server.address).catch(() => 0)).toBe(30 * 24 * 3600);
  });

  it('another server on its port is not taken for it, and it is started when the port is free', async () => {
    const said: string[] = [];
    const logger = createLogger({ level: 'warn', write: (line) => void said.push(line) });
    const server = await obtain({ inMemory: true, logger });
    const other = await obtain({ dataDir: join(folder, 'other'), inMemory: true });
    const port = Number(server.address.split(':')[1]);
    const pid = server.pid() as number;
    process.kill(pid, 'SIGKILL');
    const stranger = await takesPort(port, Number(other.address.split(':')[1]));
    const refusals = () => said.filter((line) => line.includes(`Port ${port} is taken`)).length;
    await expect.poll(refusals).toBeGreaterThan(2);
    expect(await retentionOf(server.address)).toBeGreaterThan(0);
    expect(server.pid()).toBeUndefined();
    // Each try waits longer than the one before.
    expect(said.length).toBeLessThan(20);
    await stranger.close();
    await expect.poll(() => server.pid() ?? pid).not.toBe(pid);
    await expect.poll(() => retentionOf(server.address).catch(() => 0)).toBe(30 * 24 * 3600);
  });

  it('a record of a stranger is not ended, and a taken port is replaced', async () => {
    const stranger = createServer();
    const port = Number(new URL(await listening(stranger)).port);
    await mkdir(join(folder, 'data'));
    const record = {
      port,
      uiPort: port,
      args: [],
      process: { pid: process.pid, startedAt: 'long ago' },
    };
    await writeFile(join(folder, 'data/temporal.json'), JSON.stringify(record));
    const server = await obtain({ inMemory: true });
    expect(server.address).not.toContain(String(port));
    expect(lines.join('\n')).toContain(`port ${port} is taken`);
    stranger.close();
  });

  it('asks nobody outside whether there is a newer version', async () => {
    const said = join(folder, 'args');
    await fakeProgram(
      join(folder, 'bin/temporal'),
      `if [ "$1" = --version ]; then echo 'temporal version 1.5.1 (Server 1.29.1)'; exit; fi
echo "$@" > "${said}"`,
    );
    const PATH = [join(folder, 'bin'), process.env.PATH].join(delimiter);
    const program = { cacheDir: join(folder, 'cache'), env: { PATH }, report };
    await expect(obtain({ program })).rejects.toMatchObject({ code: 'temporal_not_started' });
    const check = '--dynamic-config-value frontend.enableServerVersionCheck=false';
    expect(await readFile(said, 'utf8')).toContain(check);
  });

  it('a port that somebody takes before the server has it is replaced', async () => {
    const { path: real } = await obtainProgram(options().program);
    const taken = join(folder, 'taken');
    const take = `require('net').createServer().listen(+process.argv[process.argv.indexOf('--port') + 1], '127.0.0.1', () => require('fs').writeFileSync('${taken}', String(process.pid)))`;
    await fakeProgram(
      join(folder, 'bin/temporal'),
      `if [ "$1" = --version ]; then echo 'temporal version 1.5.1 (Server 1.29.1)'; exit; fi
if [ -e "${taken}" ]; then exec "${real}" "$@"; fi
"${process.execPath}" -e "${take}" -- "$@" &
while [ ! -e "${taken}" ]; do sleep 0.1; done
exit 1`,
    );
    const PATH = [join(folder, 'bin'), process.env.PATH].join(delimiter);
    const program = { cacheDir: join(folder, 'cache'), env: { ...process.env, PATH }, report };
    try {
      const server = await obtain({ program, inMemory: true });
      expect(await retentionOf(server.address)).toBeGreaterThan(0);
    } finally {
      process.kill(Number(await readFile(taken, 'utf8')));
    }
  });

  it('a port inside it that somebody takes is replaced, too', async () => {
    const { path: real } = await obtainProgram(options().program);
    const started = join(folder, 'started');
    await fakeProgram(
      join(folder, 'bin/temporal'),
      `if [ "$1" = --version ]; then echo 'temporal version 1.5.1 (Server 1.29.1)'; exit; fi
if [ -e "${started}" ]; then exec "${real}" "$@"; fi
: > "${started}"
echo '{"error":"listen tcp 127.0.0.1:40123: bind: address already in use"}' >&2
exit 1`,
    );
    const PATH = [join(folder, 'bin'), process.env.PATH].join(delimiter);
    const program = { cacheDir: join(folder, 'cache'), env: { ...process.env, PATH }, report };
    const server = await obtain({ program, inMemory: true });
    expect(await retentionOf(server.address)).toBeGreaterThan(0);
  });

  it('a server that does not start says why', async () => {
    await fakeTemporal(
      join(folder, 'bin/temporal'),
      'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)',
    );
    const PATH = [join(folder, 'bin'), process.env.PATH].join(delimiter);
    const program = { cacheDir: join(folder, 'cache'), env: { PATH }, report };
    await expect(obtain({ program })).rejects.toThrow('did not start: it ended with');
  });
});
