// vitest's globalSetup: one Temporal dev server for the whole test run, its address in the environment of every
// test process. A server that is named there already is used as it is.
import { startTestTemporal, TEST_TEMPORAL_VARIABLE } from './temporal.ts';

export async function setup(): Promise<() => Promise<void>> {
  if (process.env[TEST_TEMPORAL_VARIABLE]) return async () => {};
  const temporal = await startTestTemporal({ own: true });
  process.env[TEST_TEMPORAL_VARIABLE] = temporal.address;
  return async () => {
    delete process.env[TEST_TEMPORAL_VARIABLE];
    await temporal.stop();
  };
}
