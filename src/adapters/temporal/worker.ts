// The run worker: executes workflow code and activities of the run task queue, and tells the projector about histories
// that grew.
import type { DataConverter } from '@temporalio/common';
import {
  DefaultLogger,
  Runtime,
  Worker,
  makeTelemetryFilterString,
  type FixedSizeSlotSupplier,
  type NativeConnection,
  type RuntimeOptions,
  type WorkerDeploymentOptions,
} from '@temporalio/worker';
import { RUN_TASK_QUEUE } from '../../rules/run-input.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Watch } from '../../system/watch.ts';
import { contextsOfNode } from './async-contexts.js';
import type { TemporalTarget } from './connection.ts';
import { gatedSlots } from './gated-slots.ts';
import { keepWorker, type KeptWorker } from './kept-worker.ts';
import { withWorkflowThreads } from './workflow-threads.ts';

/**
 * Bounds memory (architecture §7): 0.3 MB for each run that the worker keeps as it stands. Runs that wait for people are
 * many and need no place; one without a place is read from its history again at its next task.
 */
const CACHED_RUNS = 64;
/** Tasks of each kind that the worker performs at once. */
const WORKFLOW_TASKS = 40;
const STEPS = 100;
/** After a worker's death its cached runs wait this long for it; 10 s by default (architecture §7). */
const STICKY_TIMEOUT_MS = 1_500;
/** Cancellation reaches an activity with a heartbeat (architecture §4). */
export const HEARTBEAT_THROTTLE_MS = 1_000;
/** Activities in flight may finish within this at shutdown, and are then cancelled. */
export const SHUTDOWN_GRACE_MS = 10_000;
/** After this the worker gives up waiting. */
export const SHUTDOWN_FORCE_MS = 15_000;

/**
 * Warnings of the SDK about what is meant so, or is logged by the step itself (`guarded` of activities/failures.ts): workers of agents'
 * queues perform activities alone, and a worker that ends together with its connection cannot say so to the server.
 */
const MEANT = /^(No workflows registered|shutdown_worker rpc errored|Activity failed$)/;

export interface RunWorkerOptions {
  readonly target: TemporalTarget;
  readonly taskQueue?: string;
  readonly bundle: { readonly codePath: string };
  readonly activities: object;
  readonly dataConverter: DataConverter;
  /** See workflows/interceptors.ts: a run's history will be longer than `historyLength`. */
  readonly hint: (
    run: { readonly tenant: string; readonly runId: string },
    temporalRunId: string,
    historyLength: number,
    terminal: boolean,
  ) => void;
  readonly logger: Logger;
  /** Asked at each connect: the build that it is, where the server knows builds. */
  readonly deployment?: () => Promise<WorkerDeploymentOptions | undefined>;
  /** Temporal's `__stack_trace` queries are answered, at nearly twice the cost of workflow code. Default false. */
  readonly stackTraces?: boolean;
  /** Runs that are kept as they stand between two tasks. Default CACHED_RUNS. */
  readonly cachedRuns?: number;
  /** No step is taken while it is away. Absent: it never is. */
  readonly store?: Pick<Watch, 'isThere' | 'whenThere'>;
  /** For tests; SHUTDOWN_GRACE_MS when absent. */
  readonly graceMs?: number;
}

/** Before anything else of the SDK: its logs become ours, and signals are ours to handle. The first one stays. */
export function installRuntime(logger: Logger): void {
  try {
    Runtime.install(runtimeOptions(logger));
  } catch (error) {
    // The SDK permits one runtime per process; a second host in it uses the first one's.
    if (!(error instanceof Error && error.name === 'IllegalStateError')) throw error;
  }
}

function runtimeOptions(logger: Logger): RuntimeOptions {
  return {
    shutdownSignals: [],
    logger: new DefaultLogger('WARN', ({ level, message, meta }) => {
      const isMeant = MEANT.test(message);
      const at = level === 'ERROR' ? 'error' : level === 'WARN' && !isMeant ? 'warn' : 'debug';
      const { error, workflowId, activityId, sdkComponent } = (meta ?? {}) as Record<
        string,
        unknown
      >;
      logger[at](message, { runId: workflowId, activityId, component: sdkComponent, error });
    }),
    telemetryOptions: {
      logging: { forward: {}, filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }) },
    },
  };
}

async function createWorker(
  options: RunWorkerOptions,
  connection: NativeConnection,
): Promise<Worker> {
  const { target, taskQueue, bundle, activities, dataConverter, hint } = options;
  const workerDeploymentOptions = await options.deployment?.();
  return Worker.create({
    ...(workerDeploymentOptions && { workerDeploymentOptions }),
    connection,
    namespace: target.namespace,
    taskQueue: taskQueue ?? RUN_TASK_QUEUE,
    workflowBundle: bundle,
    activities,
    dataConverter,
    tuner: {
      workflowTaskSlotSupplier: fixed(WORKFLOW_TASKS),
      activityTaskSlotSupplier: options.store ? gatedSlots(STEPS, options.store) : fixed(STEPS),
      // Neither is used; a worker has places for both.
      localActivityTaskSlotSupplier: fixed(1),
      nexusTaskSlotSupplier: fixed(1),
    },
    maxCachedWorkflows: options.cachedRuns ?? CACHED_RUNS,
    stickyQueueScheduleToStartTimeout: STICKY_TIMEOUT_MS,
    maxHeartbeatThrottleInterval: HEARTBEAT_THROTTLE_MS,
    defaultHeartbeatThrottleInterval: HEARTBEAT_THROTTLE_MS,
    shutdownGraceTime: options.graceMs ?? SHUTDOWN_GRACE_MS,
    shutdownForceTime: SHUTDOWN_FORCE_MS,
    sinks: {
      journal: {
        hint: {
          callDuringReplay: false,
          fn: (
            info: { workflowId: string },
            tenant: string,
            temporalRunId: string,
            historyLength: number,
            terminal: boolean,
          ) => hint({ tenant, runId: info.workflowId }, temporalRunId, historyLength, terminal),
        },
      },
    },
  });
}

function fixed(numSlots: number): FixedSizeSlotSupplier {
  return { type: 'fixed-size', numSlots };
}

export function createRunWorker(options: RunWorkerOptions): KeptWorker {
  const { target, logger } = options;
  // Once, not for each thread and each restart.
  if (!contextsOfNode())
    logger.debug('workflow tasks are bounded without async_wrap', { node: process.version });
  return keepWorker({
    target,
    logger,
    create: (connection) =>
      withWorkflowThreads(options.stackTraces ?? false, () => createWorker(options, connection)),
  });
}
