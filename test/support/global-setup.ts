// vitest's globalSetup for all that needs Temporal: one dev server for the whole test run, its address in the environment of
// every test process. A server that is named there already is used as it is. Programs and databases are made meanwhile.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundlePrograms } from './prepare.ts';
import { PROGRAMS_VARIABLE } from './prepared.ts';
import { setup as setupDatabases } from './setup-databases.ts';
import { startTestTemporal, TEST_TEMPORAL_VARIABLE } from './temporal.ts';

export async function setup(): Promise<() => Promise<void>> {
  const programs = await mkdtemp(join(tmpdir(), 'openwop-programs-'));
  const [temporal, removeDatabases] = await Promise.all([
    startTestTemporal({ own: process.env[TEST_TEMPORAL_VARIABLE] === undefined }),
    setupDatabases(),
    bundlePrograms(programs),
  ]);
  const added = { [TEST_TEMPORAL_VARIABLE]: temporal.address, [PROGRAMS_VARIABLE]: programs };
  Object.assign(process.env, added);
  return async () => {
    for (const name of Object.keys(added)) delete process.env[name];
    await Promise.all([temporal.stop(), removeDatabases()]);
    await rm(programs, { recursive: true, force: true });
  };
}
