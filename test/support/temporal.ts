// A Temporal dev server for tests (architecture §7): in memory, on a free port, with quick timers. One serves a whole
// test run (global-setup.ts); suites take a namespace of their own where they look at more than their own runs.
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { openCacheFolder } from '../../src/app/cache-folder.js';
import { readConfig } from '../../src/app/config.ts';
import { obtainDevServer } from '../../src/adapters/temporal/dev-server.ts';
import { CONNECTION_DEFAULTS } from '../../src/adapters/temporal/rpc.ts';
import type { Logger } from '../../src/ports/logger.ts';
import { patient } from './machine.ts';

export const TEST_TEMPORAL_VARIABLE = 'OPENWOP_TEST_TEMPORAL';
const { cacheDir, temporalDownload } = readConfig({
  OPENWOP_CACHE_DIR: process.env.OPENWOP_CACHE_DIR,
  OPENWOP_TEMPORAL_DOWNLOAD: process.env.OPENWOP_TEMPORAL_DOWNLOAD,
  XDG_CACHE_HOME: process.env.XDG_CACHE_HOME,
});
/** Where binaries, jars and bundles are kept between runs: what `npm start` obtained, tests need not obtain again. */
export const CACHE_DIR = cacheDir;
openCacheFolder(CACHE_DIR);
/** By the ways of `npm start`. */
export const PROGRAM = { cacheDir, downloadService: temporalDownload, env: process.env };
const DAY_SECONDS = 24 * 3600;
const NAMESPACE_LIMIT_MS = 20_000;
const NAMESPACE_PROBE_MS = 100;

export interface TestTemporal {
  readonly address: string;
  /** Registers a namespace and waits until it can be used. */
  namespace(): Promise<string>;
  /** A connection as the host makes it; the caller closes it. */
  connect(): Promise<Connection>;
  /** pid of an own server; undefined when it is shared or restarting. */
  pid(): number | undefined;
  stop(): Promise<void>;
}

const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

async function registerNamespace(address: string): Promise<string> {
  const namespace = `test-${randomUUID()}`;
  const connection = await Connection.connect({ ...CONNECTION_DEFAULTS, address });
  try {
    const seconds = DAY_SECONDS as unknown as Long;
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: { seconds },
    });
    const until = Date.now() + patient(NAMESPACE_LIMIT_MS);
    for (;;) {
      const usable = await connection.workflowService.listWorkflowExecutions({ namespace }).then(
        () => true,
        (error: unknown) => {
          if (Date.now() > until) throw error;
          return false;
        },
      );
      if (usable) return namespace;
      await sleep(NAMESPACE_PROBE_MS);
    }
  } finally {
    await connection.close();
  }
}

type Long = NonNullable<
  NonNullable<
    Parameters<
      Connection['workflowService']['registerNamespace']
    >[0]['workflowExecutionRetentionPeriod']
  >['seconds']
>;

function testTemporal(
  address: string,
  server?: { pid(): number | undefined; stop(): Promise<void> },
): TestTemporal {
  return {
    address,
    namespace: () => registerNamespace(address),
    connect: () => Connection.connect({ ...CONNECTION_DEFAULTS, address }),
    pid: () => server?.pid(),
    stop: async () => server?.stop(),
  };
}

/** The shared server of the test run if there is one and `own` is not set; else one for the caller alone. */
export async function startTestTemporal(options: { own?: boolean } = {}): Promise<TestTemporal> {
  const shared = process.env[TEST_TEMPORAL_VARIABLE];
  if (shared && !options.own) return testTemporal(shared);
  const dataDir = await mkdtemp(join(tmpdir(), 'openwop-temporal-'));
  const server = await obtainDevServer({
    dataDir,
    inMemory: true,
    ui: false,
    program: { ...PROGRAM, report: () => {} },
    logger: silent,
  }).catch(async (error: unknown) => {
    await rm(dataDir, { recursive: true, force: true });
    throw error;
  });
  return testTemporal(server.address, {
    pid: () => server.pid(),
    async stop() {
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  });
}
