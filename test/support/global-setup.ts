// vitest's globalSetup: one Temporal dev server for the whole test run, its address in the environment of every
// test process. A server that is named there already is used as it is. What prepared.ts makes is made meanwhile.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundlePrograms, prepareDatabase } from './prepare.ts';
import { PROGRAMS_VARIABLE } from './prepared.ts';
import { CACHE_DIR, startTestTemporal, TEST_TEMPORAL_VARIABLE } from './temporal.ts';

export async function setup(): Promise<() => Promise<void>> {
  const programs = await mkdtemp(join(tmpdir(), 'openwop-programs-'));
  const [temporal] = await Promise.all([
    startTestTemporal({ own: process.env[TEST_TEMPORAL_VARIABLE] === undefined }),
    prepareDatabase(CACHE_DIR),
    bundlePrograms(programs),
  ]);
  const added = { [TEST_TEMPORAL_VARIABLE]: temporal.address, [PROGRAMS_VARIABLE]: programs };
  Object.assign(process.env, added);
  return async () => {
    for (const name of Object.keys(added)) delete process.env[name];
    await temporal.stop();
    await rm(programs, { recursive: true, force: true });
  };
}
