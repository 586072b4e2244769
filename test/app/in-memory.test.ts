// [java] `npm start` where nothing but Java's test server can be had (architecture §7): a trial that says so, and
// forgets.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findOnPath } from '../../src/system/programs.ts';
import {
  apiClient,
  spawnCommand,
  spawnHost,
  TEST_API_KEY,
  until,
  type SpawnedHost,
} from '../support/host.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { findTimeSkippingServer } from '../support/time-skipping.ts';
import { patient } from '../support/machine.ts';

const java = await findTimeSkippingServer();

let folder: string;
const spawned: SpawnedHost[] = [];
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'openwop-in-memory-'));
  mkdirSync(join(folder, 'bin'));
  mkdirSync(join(folder, 'cache'));
  for (const name of ['java', 'sh', 'dirname']) {
    const path = await findOnPath(name, process.env.PATH);
    if (path) symlinkSync(path, join(folder, 'bin', name));
  }
  // All that is cached, bundles too, less the servers that keep their runs.
  for (const name of readdirSync(CACHE_DIR)) {
    if (!/^(dev-server|temporal)-/.test(name))
      symlinkSync(join(CACHE_DIR, name), join(folder, 'cache', name));
  }
});
afterEach(async () => {
  for (const { process: child, kill } of spawned.splice(0))
    if (child.exitCode === null) await kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
});

const environment = () => ({
  PATH: join(folder, 'bin'),
  OPENWOP_PORT: '0',
  OPENWOP_API_KEY: TEST_API_KEY,
  OPENWOP_DATA_DIR: join(folder, 'data'),
  OPENWOP_CACHE_DIR: join(folder, 'cache'),
});

async function start(): Promise<SpawnedHost> {
  const host = await spawnHost('start', environment());
  spawned.push(host);
  await until(() => host.stdout().includes('/interrupts/'), 'the question is printed');
  return host;
}

const waiting = async (url: string) => {
  const client = apiClient(url, TEST_API_KEY);
  const answer = await client.api<{ runs: { runId: string }[] }>(
    '/v1/runs?status=waiting-approval',
  );
  return answer.body.runs.map(({ runId }) => runId);
};

describe.skipIf(!java.available)('[java] a host on the in-memory server', () => {
  it(
    'says that nothing is kept, begins anew in a folder of an earlier one, and runs the demo to its end',
    { timeout: patient(180_000) },
    async () => {
      const left = join(folder, 'data/in-memory/postgres');
      mkdirSync(left, { recursive: true });
      // A database that cannot be opened.
      writeFileSync(join(left, 'PG_VERSION'), 'of one that was killed');
      const first = await start();
      expect(first.stdout()).toMatch(/NOTHING IS KEPT: Temporal runs in memory/);
      const client = apiClient(first.url, TEST_API_KEY);
      const ready = await client.api('/readyz');
      expect(ready).toMatchObject({ status: 200, body: { engine: 'temporal-in-memory' } });
      const discovery = await client.api<{ implementation: { version: string } }>(
        '/.well-known/openwop',
      );
      expect(discovery.body.implementation.version).toMatch(/\+in-memory-temporal$/);

      const [runId = '', ...more] = await waiting(first.url);
      expect(more).toEqual([]);
      const body = { resumeValue: { action: 'accept' } };
      await client.api(`/v1/runs/${runId}/interrupts/triage`, { body });
      await client.waitFor(runId, ({ status }) => status === 'completed');
    },
  );

  it(
    'runs that are kept in the data folder do not seem to be gone: the host does not start',
    { timeout: patient(180_000) },
    async () => {
      mkdirSync(join(folder, 'data'));
      writeFileSync(join(folder, 'data/temporal.db'), '');
      const command = spawnCommand('start', environment());
      expect(await command.exited).toBe(1);
      expect(command.stderr()).toMatch(/No Temporal server could be had/);
    },
  );
});
