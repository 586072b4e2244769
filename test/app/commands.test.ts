// The commands as processes: what a user sees, what a kill of `npm run temporal` leaves behind, and the clear line for each
// fault. A kill of `npm start` is in node-versions.test.ts.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { recordProcess } from '../../src/system/processes.ts';
import { apiClient, spawnCommand, spawnHost, until, type SpawnedHost } from '../support/host.ts';
import { copyDatabase } from '../support/prepared.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { CACHE_DIR, startTestTemporal } from '../support/temporal.ts';

let folder: string;
const spawned: SpawnedHost[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'openwop-commands-'));
});
afterEach(async () => {
  for (const { process: child, kill } of spawned.splice(0))
    if (child.exitCode === null) await kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
});

const spawnOf = async (...command: Parameters<typeof spawnHost>) => {
  const host = await spawnHost(...command);
  spawned.push(host);
  return host;
};
const env = (home = folder) => ({
  OPENWOP_PORT: '0',
  OPENWOP_DATA_DIR: join(home, 'data'),
  OPENWOP_CACHE_DIR: CACHE_DIR,
});
const kept = (name: string, home = folder) => readFileSync(join(home, 'data', name), 'utf8').trim();
const serverPid = () =>
  (JSON.parse(kept('temporal.json')) as { process: { pid: number } }).process.pid;

describe('npm start', () => {
  let home: string;
  let host: SpawnedHost;
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'openwop-start-'));
    host = await spawnHost('start', env(home));
  });
  afterAll(async () => {
    await host?.kill('SIGTERM');
    rmSync(home, { recursive: true, force: true });
  });

  it('the link that it prints signs in, once, and leads to the demo run too', async () => {
    await until(() => host.stdout().includes('/pages/runs/'), 'the demo run is printed');
    const [line = '', link = ''] =
      /^Open +(\S+) +\(signs in once, within 10 minutes\)$/m.exec(host.stdout()) ?? [];
    // What a newcomer should click stands before all other addresses of the host.
    expect(host.stdout().indexOf(host.url)).toBe(host.stdout().indexOf(line) + line.indexOf(link));
    const opened = await fetch(link, { method: 'POST', redirect: 'manual' });
    expect([opened.status, opened.headers.get('location')]).toEqual([303, '/pages']);
    expect((await fetch(link, { method: 'POST' })).status).toBe(410);
    const cookie = opened.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const page = await fetch(`${host.url}/pages/runs/${kept('demo-run', home)}`, {
      headers: { cookie },
    });
    expect(page.status).toBe(200);
  });

  it('a second one on the folder, and a busy port: one clear line each', async () => {
    const second = spawnCommand('start', env(home));
    expect(await second.exited).toBe(1);
    expect(second.stderr().trim().split('\n')).toEqual([
      expect.stringMatching(/data folder \S+ is in use by process/),
    ]);
    expect(host.process.exitCode).toBe(null);

    const { port } = new URL(host.url);
    // On a database and beside a server that are there: it comes to its port sooner.
    await copyDatabase(CACHE_DIR, join(folder, 'data', 'postgres'));
    const temporal = await startTestTemporal();
    const third = spawnCommand('start', {
      ...{ ...env(), OPENWOP_PORT: port, TEMPORAL_ADDRESS: temporal.address },
      TEMPORAL_NAMESPACE: await temporal.namespace(),
    });
    expect(await third.exited).toBe(1);
    expect(third.stderr().trim().split('\n')).toEqual([
      expect.stringMatching(new RegExp(`Port ${port} .* is in use`)),
    ]);
    await temporal.stop();
  });

  it('every fault of the configuration is one line', async () => {
    const { exited, stderr } = spawnCommand('start', { OPENWOP_PORT: 'x', OPENWOP_TEST_MODE: 'y' });
    expect(await exited).toBe(1);
    expect(stderr().trim().split('\n')).toEqual([
      expect.stringMatching(/^openwop-temporal: OPENWOP_PORT must be/),
      expect.stringMatching(/^openwop-temporal: OPENWOP_TEST_MODE must be/),
    ]);
  });
});

describe('npm run temporal', () => {
  it('starts the server that halves share; it survives kill -9, is gone on with, and ends by a signal to npm: no shell stands between', async () => {
    const first = await spawnOf('temporal', env());
    const connection = await Connection.connect({ address: first.url });
    const { namespaceInfo } = await connection.workflowService.describeNamespace({
      namespace: /TEMPORAL_NAMESPACE=(\S+)/.exec(first.stdout())?.[1],
    });
    expect(namespaceInfo?.name).toBe('default');
    await connection.close();
    const beside = spawnCommand('temporal', env());
    expect(await beside.exited).toBe(1);
    expect(beside.stderr()).toMatch(/data folder \S+ is in use by process/);

    await first.kill('SIGKILL');
    const npm = spawn('npm', ['run', '-s', 'temporal'], { env: { ...process.env, ...env() } });
    const ended = once(npm, 'close');
    let out = '';
    npm.stdout.setEncoding('utf8').on('data', (piece: string) => (out += piece));
    await until(() => out.includes('TEMPORAL_ADDRESS='), 'the server is there');
    expect(out).toContain(`TEMPORAL_ADDRESS=${first.url}`);
    expect(out).toContain('going on with the server that is still running');
    const pid = serverPid();
    npm.kill('SIGTERM');
    expect((await ended)[0]).toBe(0);
    expect(recordProcess(pid)).toBeUndefined();
    expect(existsSync(join(folder, 'data/owner.lock'))).toBe(false);
  });

  it('beside a server that is named there is nothing to start: one line', async () => {
    const { exited, stderr } = spawnCommand('temporal', { ...env(), TEMPORAL_ADDRESS: '[::1]:1' });
    expect(await exited).toBe(1);
    expect(stderr().trim()).toMatch(/^openwop-temporal: TEMPORAL_ADDRESS names a server/);
  });
});

describe('npm run serve, npm run worker', () => {
  it.each([
    ['serve', 3],
    ['worker', 2],
  ] as const)('%s alone says what it needs', async (kind, lines) => {
    const { exited, stderr } = spawnCommand(kind, env());
    expect(await exited).toBe(1);
    expect(stderr().trim().split('\n')).toHaveLength(lines);
    expect(stderr()).toMatch(/TEMPORAL_ADDRESS is needed by `npm run/);
  });

  it('as npm runs them they share runs, and each ends by SIGTERM', async ({ skip }) => {
    const postgres = await sharePostgres();
    if ('missing' in postgres) return skip(postgres.missing);
    const temporal = await startTestTemporal();
    const shared = {
      ...env(),
      OPENWOP_API_KEY: 'a-key-for-both-halves',
      OPENWOP_FIXTURES_DIR: join(import.meta.dirname, '../fixtures/definitions'),
      DATABASE_URL: await postgres.createDatabase(),
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: await temporal.namespace(),
    };
    try {
      const [facade] = await Promise.all([spawnOf('serve', shared), spawnOf('worker', shared)]);
      const client = apiClient(facade.url, shared.OPENWOP_API_KEY);
      const runId = await client.startRun({ workflowId: 'chain' });
      await client.waitFor(runId, ({ status }) => status === 'completed');
      for (const host of spawned.splice(0)) expect(await host.kill('SIGTERM')).toBe(0);
    } finally {
      await temporal.stop();
      await postgres.stop();
    }
  });
});
