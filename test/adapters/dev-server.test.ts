// Obtaining, adopting, restarting and ending Temporal's dev server (design §7).
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { Connection } from '@temporalio/client';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { obtainBinary } from '../../src/adapters/temporal/dev-server-binary.ts';
import { isRunning, recordProcess } from '../../src/system/processes.ts';
import {
  obtainDevServer,
  type DevServer,
  type DevServerOptions,
} from '../../src/adapters/temporal/dev-server.ts';
import { createLogger } from '../../src/app/logger.ts';

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

/** A file that answers `--version` and nothing else. */
async function fakeTemporal(path: string, versionLine: string): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, `#!/bin/sh\necho "${versionLine}"\n`);
  await chmod(path, 0o755);
}

const NOWHERE = 'http://127.0.0.1:9';

describe('design §7 the binary is obtained in a fixed order', () => {
  const cases: readonly [string, string, boolean][] = [
    [
      'a released version at the minimum',
      'temporal version 1.5.0 (Server 1.29.0, UI 2.42.1)',
      true,
    ],
    ['a newer one', 'temporal version 2.0.0 (Server 2.0.0, UI 3.0.0)', true],
    [
      'a build without release number, by its server',
      'temporal version 0.0.0-DEV (Server 1.29.1, UI 2.42.1)',
      true,
    ],
    ['an old release', 'temporal version 1.4.9 (Server 1.29.0, UI 2.42.1)', false],
    ['a build with an old server', 'temporal version 0.0.0-DEV (Server 1.28.3, UI 2.40.0)', false],
    ['something else of that name', 'hello', false],
  ];
  it.each(cases)('on PATH: %s', async (_name, versionLine, usable) => {
    await fakeTemporal(join(folder, 'bin/temporal'), versionLine);
    const options = {
      cacheDir: join(folder, 'cache'),
      env: { PATH: join(folder, 'bin') },
      report,
      downloadService: NOWHERE,
    };
    if (usable) expect(await obtainBinary(options)).toBe(join(folder, 'bin/temporal'));
    else {
      await expect(obtainBinary(options)).rejects.toMatchObject({ code: 'temporal_not_found' });
      expect(lines[0]).toMatch(/too old|does not tell its version/);
    }
  });

  it('an old one on PATH is passed over for the cached one', async () => {
    await fakeTemporal(
      join(folder, 'bin/temporal'),
      'temporal version 1.0.0 (Server 1.24.0, UI 2.0.0)',
    );
    await fakeTemporal(
      join(folder, 'cache/temporal-v1.5.1'),
      'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)',
    );
    const options = { cacheDir: join(folder, 'cache'), env: { PATH: join(folder, 'bin') }, report };
    expect(await obtainBinary(options)).toBe(join(folder, 'cache/temporal-v1.5.1'));
    expect(lines).toHaveLength(2);
  });

  it('when all fail: one line per step, and one message that says what to do', async () => {
    const options = {
      cacheDir: join(folder, 'cache'),
      env: { PATH: folder },
      report,
      downloadService: NOWHERE,
    };
    await expect(obtainBinary(options)).rejects.toThrow(
      /Install the Temporal CLI .* or set TEMPORAL_ADDRESS/,
    );
    expect(
      lines.filter((line) => /no `temporal`|none cached|download failed|no `go`/.test(line)),
    ).toHaveLength(4);
  });

  it('a download service that never answers is given up at the limit', async () => {
    const silent = createServer(() => undefined);
    const service = await listening(silent);
    const env = { PATH: folder };
    const options = {
      cacheDir: join(folder, 'cache'),
      env,
      report,
      downloadService: service,
      downloadLimitMs: 200,
    };
    await expect(obtainBinary(options)).rejects.toMatchObject({ code: 'temporal_not_found' });
    expect(lines.join('\n')).toMatch(/no answer in 0.2 s/);
    silent.closeAllConnections();
    silent.close();
  });

  it('a downloaded archive is unpacked, checked, cached and used from then on', async () => {
    await fakeTemporal(
      join(folder, 'pack/temporal'),
      'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)',
    );
    execFileSync('tar', ['-czf', join(folder, 'a.tar.gz'), '-C', join(folder, 'pack'), 'temporal']);
    const archive = await readFile(join(folder, 'a.tar.gz'));
    let downloads = 0;
    const server = createServer((request, response) => {
      if (request.url?.startsWith('/cli/')) {
        const { port } = server.address() as AddressInfo;
        response.end(
          JSON.stringify({ archiveUrl: `http://127.0.0.1:${port}/a`, fileToExtract: 'temporal' }),
        );
      } else {
        downloads++;
        response.end(archive);
      }
    });
    const downloadService = await listening(server);
    // tar and gzip stay reachable; `temporal` and `go` are not on this PATH.
    const options = {
      cacheDir: join(folder, 'cache'),
      env: { PATH: folder },
      report,
      downloadService,
    };
    const first = await obtainBinary(options);
    expect(await obtainBinary(options)).toBe(first);
    expect(downloads).toBe(1);
    server.close();
  });
});

function listening(server: Server): Promise<string> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () =>
      resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    );
  });
}

describe('design §7 a process is known by pid and start time', () => {
  it('this process runs; the same pid with another start does not', () => {
    const own = recordProcess(process.pid);
    expect(own && isRunning(own)).toBe(true);
    expect(isRunning({ pid: process.pid, startedAt: 'another time' })).toBe(false);
    expect(recordProcess(2 ** 22 + 1)).toBeUndefined();
  });
});

describe('design §7 the dev server of a data folder', () => {
  const options = (): DevServerOptions => ({
    dataDir: join(folder, 'data'),
    ui: false,
    binary: { cacheDir: join(folder, 'cache'), env: process.env, report },
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

  it('is started again on the same port when it dies', async () => {
    const server = await obtain({ inMemory: true });
    const pid = server.pid() as number;
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => server.pid() ?? pid, { timeout: 15_000 }).not.toBe(pid);
    await expect
      .poll(() => retentionOf(server.address).catch(() => 0), { timeout: 15_000 })
      .toBe(30 * 24 * 3600);
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

  it('a server that does not start says why', async () => {
    await fakeTemporal(
      join(folder, 'bin/temporal'),
      'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)',
    );
    const PATH = [join(folder, 'bin'), process.env.PATH].join(delimiter);
    const binary = { cacheDir: join(folder, 'cache'), env: { PATH }, report };
    await expect(obtain({ binary })).rejects.toMatchObject({ code: 'temporal_not_started' });
  });
});
