// What tests of the Temporal adapters share: a server, a worker for the fixture workflows, and a connection as the
// host makes it.
import { fileURLToPath } from 'node:url';
import { Client, type Connection } from '@temporalio/client';
import type { DataConverter } from '@temporalio/common';
import {
  bundleWorkflowCode,
  NativeConnection,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import {
  createWorkflowRunner,
  quietRuntime,
  type WorkflowRunner,
  type WorkflowServer,
} from './run-workflow.ts';
import { startTestTemporal, type TestTemporal } from './temporal.ts';

export interface TemporalFixture {
  readonly temporal: TestTemporal;
  readonly connection: Connection;
  readonly client: Client;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly runner: WorkflowRunner;
  readonly server: WorkflowServer;
  readonly bundle: WorkflowBundleWithSourceMap;
  stop(): Promise<void>;
}

/** The bundle of test/support/fixtures-workflows; a converter's failure converter goes into it. */
export function bundleFixtures(
  dataConverter: DataConverter = {},
): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({
    workflowsPath: fileURLToPath(new URL('./fixtures-workflows/index.ts', import.meta.url)),
    failureConverterPath: dataConverter.failureConverterPath,
    logger: { log() {}, trace() {}, debug() {}, info() {}, warn() {}, error() {} },
  });
}

/** A worker on a task queue of its own, on the test run's server. */
export async function startTemporalFixture(
  taskQueue: string,
  options: {
    dataConverter?: DataConverter;
    ownNamespace?: boolean;
    /** Absent: the dev server of the test run. */
    temporal?: TestTemporal;
  } = {},
): Promise<TemporalFixture> {
  quietRuntime();
  const temporal = options.temporal ?? (await startTestTemporal());
  const namespace = options.ownNamespace ? await temporal.namespace() : 'default';
  const connection = await temporal.connect();
  const nativeConnection = await NativeConnection.connect({ address: temporal.address });
  const bundle = await bundleFixtures(options.dataConverter);
  const server = { connection, nativeConnection, namespace };
  const runner = await createWorkflowRunner({
    server,
    bundle,
    taskQueue,
    dataConverter: options.dataConverter,
  });
  return {
    temporal,
    connection,
    client: new Client({ connection, namespace, dataConverter: options.dataConverter }),
    namespace,
    taskQueue,
    runner,
    server,
    bundle,
    async stop() {
      await runner.close();
      await nativeConnection.close();
      await connection.close();
      await temporal.stop();
    },
  };
}
