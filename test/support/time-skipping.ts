// The time-skipping twin (architecture §7): Temporal's Java test server out of Maven Central, for workflow logic
// with long timers. Where Java or Maven is absent the reason is given, so that suites can name what they skipped.
import { Connection } from '@temporalio/client';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { CONNECTION_DEFAULTS } from '../../src/adapters/temporal/rpc.ts';
import { obtainTestServer } from '../../src/adapters/temporal/server-program/index.ts';
import { CACHE_DIR, type TestTemporal } from './temporal.ts';

/** `<name>,<name>`: twins that must be there; a missing one is an error instead of a skip. */
const REQUIRED = (process.env.OPENWOP_TEST_REQUIRE ?? '').split(',');

export type TimeSkippingServer =
  | { readonly available: true; readonly executable: string }
  | { readonly available: false; readonly reason: string };

/**
 * The server's executable, fetched once into the cache. `available: false` with the reason when it cannot be had,
 * unless OPENWOP_TEST_REQUIRE contains `java`: then it throws.
 */
export async function findTimeSkippingServer(): Promise<TimeSkippingServer> {
  try {
    const options = { cacheDir: CACHE_DIR, env: process.env, report: () => {} };
    const { path } = await obtainTestServer(options);
    return { available: true, executable: path };
  } catch (error) {
    const reason = (error as Error).message;
    if (REQUIRED.includes('java'))
      throw new Error(`The time-skipping server is required, but: ${reason}`, { cause: error });
    return { available: false, reason };
  }
}

/** The SDK gives a server 5 s to start, on any machine. */
const STARTS = 3;

/** A server of its own with its own clock, on a free port. The caller tears it down. */
export async function createTimeSkippingEnvironment(server: {
  executable: string;
}): Promise<TestWorkflowEnvironment> {
  const executable = { type: 'existing-path', path: server.executable } as const;
  for (let start = 1; ; start++) {
    try {
      return await TestWorkflowEnvironment.createTimeSkipping({ server: { executable } });
    } catch (error) {
      if (start === STARTS) throw error;
    }
  }
}

/** The same server with its clock left alone, as the host would use it without any other server. */
export async function startInMemoryTemporal(server: { executable: string }): Promise<TestTemporal> {
  const environment = await createTimeSkippingEnvironment(server);
  const { address } = environment;
  return {
    address,
    namespace: async () => {
      throw new Error('This server has one namespace.');
    },
    connect: () => Connection.connect({ ...CONNECTION_DEFAULTS, address }),
    pid: () => undefined,
    stop: () => environment.teardown(),
  };
}
