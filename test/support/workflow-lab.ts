// A place to try workflow code in: the real bundle of workflows/ (or the fixtures), one worker, scripted activities,
// on the dev server or the time-skipping server. `runWorkflowOnce` opens it for a single run.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { NativeConnection, type WorkflowBundleOption } from '@temporalio/worker';
import { workflowBundle } from '../../src/adapters/temporal/bundle.ts';
import type { HostKey } from '../../src/ports/keys.ts';
import { dataConverter } from '../../src/adapters/temporal/codec.ts';
import { RUN_WORKFLOW, type RunInput } from '../../src/rules/run-input.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import {
  createWorkflowRunner,
  quietRuntime,
  type FinishedRun,
  type ScriptedActivities,
  type UpdateWithStart,
  type WorkflowServer,
} from './run-workflow.ts';
import { CACHE_DIR, startTestTemporal } from './temporal.ts';
import { createTimeSkippingEnvironment } from './time-skipping.ts';

export interface LabOptions {
  /** Absent: the dev server. Else the executable of findTimeSkippingServer(). */
  readonly timeSkipping?: { readonly executable: string };
  /** Absent: the bundle of workflows/. */
  readonly bundle?: WorkflowBundleOption;
  readonly encryptionKeys?: readonly HostKey[];
  /** 0: every workflow task replays from the start. */
  readonly maxCachedWorkflows?: number;
}

export interface LabRun {
  readonly input: RunInput;
  readonly activities?: ScriptedActivities;
  readonly withStart?: UpdateWithStart;
  /** Acts on the run: `clock.sleep(ms)` skips time on the time-skipping server and really waits on the other. */
  readonly script?: (handle: WorkflowHandle, clock: LabClock) => Promise<void>;
}

export interface LabClock {
  sleep(ms: number): Promise<void>;
  nowMs(): Promise<number>;
}

export interface WorkflowLab {
  readonly clock: LabClock;
  run(run: LabRun): Promise<FinishedRun>;
  /** A workflow of another bundle, by its type. */
  runOther(
    workflowType: string,
    input: unknown,
    activities?: ScriptedActivities,
  ): Promise<FinishedRun>;
  /** A worker of another task queue with the same scripted activities. */
  poll(taskQueue: string): Promise<{ stop(): Promise<void> }>;
  close(): Promise<void>;
}

interface OpenServer extends WorkflowServer {
  readonly clock: LabClock;
  close(): Promise<void>;
}

async function openTimeSkipping(executable: string): Promise<OpenServer> {
  quietRuntime();
  const environment: TestWorkflowEnvironment = await createTimeSkippingEnvironment({ executable });
  const { connection, nativeConnection, client } = environment;
  return {
    connection,
    nativeConnection,
    client,
    namespace: environment.namespace ?? 'default',
    clock: { sleep: (ms) => environment.sleep(ms), nowMs: () => environment.currentTimeMs() },
    close: () => environment.teardown(),
  };
}

async function openDevServer(): Promise<OpenServer> {
  quietRuntime();
  const temporal = await startTestTemporal();
  const connection = await temporal.connect();
  const nativeConnection = await NativeConnection.connect({ address: temporal.address });
  return {
    connection,
    nativeConnection,
    namespace: 'default',
    clock: {
      sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
      nowMs: async () => Date.now(),
    },
    async close() {
      await nativeConnection.close();
      await connection.close();
      await temporal.stop();
    },
  };
}

export async function openWorkflowLab(options: LabOptions = {}): Promise<WorkflowLab> {
  const converter = dataConverter({ ring: ringOf(options.encryptionKeys ?? []) });
  const { failureConverterPath } = converter;
  const bundle =
    options.bundle ??
    (await workflowBundle({ cacheDir: join(CACHE_DIR, 'bundles'), failureConverterPath }));
  const server = options.timeSkipping
    ? await openTimeSkipping(options.timeSkipping.executable)
    : await openDevServer();
  const runner = await createWorkflowRunner({
    server,
    bundle,
    taskQueue: `lab-${randomUUID()}`,
    dataConverter: converter,
    maxCachedWorkflows: options.maxCachedWorkflows,
  });
  return {
    clock: server.clock,
    run: ({ input, activities, withStart, script }) =>
      runner.run({
        runId: input.runId,
        workflowType: RUN_WORKFLOW,
        input,
        activities,
        withStart,
        script: script && ((handle) => script(handle, server.clock)),
      }),
    runOther: (workflowType, input, activities) =>
      runner.run({ runId: randomUUID(), workflowType, input, activities }),
    poll: (taskQueue) => runner.poll(taskQueue),
    async close() {
      await runner.close();
      await server.close();
    },
  };
}

/** One run in a lab of its own. */
export async function runWorkflowOnce(run: LabRun, options: LabOptions = {}): Promise<FinishedRun> {
  const lab = await openWorkflowLab(options);
  try {
    return await lab.run(run);
  } finally {
    await lab.close();
  }
}
