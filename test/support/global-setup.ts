// vitest's globalSetup for all that needs Temporal: one dev server for the whole test run, its address in the environment of
// every test process. What is named there already is used as it is: `npm test` names all of it. Programs and databases are
// made meanwhile.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { allOrNone } from './all-or-none.ts';
import { bundlePrograms } from './prepare.ts';
import { PROGRAMS_VARIABLE } from './prepared.ts';
import { setup as setupDatabases } from './setup-databases.ts';
import { startTestTemporal, TEST_TEMPORAL_VARIABLE } from './temporal.ts';

export function setup(): Promise<() => Promise<void>> {
  return allOrNone([setupTemporal(), setupDatabases(), setupPrograms()]);
}

async function setupTemporal(): Promise<() => Promise<void>> {
  const own = process.env[TEST_TEMPORAL_VARIABLE] === undefined;
  const temporal = await startTestTemporal({ own });
  process.env[TEST_TEMPORAL_VARIABLE] = temporal.address;
  return async () => {
    delete process.env[TEST_TEMPORAL_VARIABLE];
    await temporal.stop();
  };
}

async function setupPrograms(): Promise<() => Promise<void>> {
  if (process.env[PROGRAMS_VARIABLE] !== undefined) return async () => {};
  const programs = await mkdtemp(join(tmpdir(), 'openwop-programs-'));
  const remove = () => rm(programs, { recursive: true, force: true });
  try {
    await bundlePrograms(programs);
  } catch (error) {
    await remove();
    throw error;
  }
  process.env[PROGRAMS_VARIABLE] = programs;
  return async () => {
    delete process.env[PROGRAMS_VARIABLE];
    await remove();
  };
}
