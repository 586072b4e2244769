// What Temporal's server is asked about the worker's builds (docs/upgrades.md): one deployment per namespace, as there is
// one task queue of runs. Each call ends within its deadline.
import type { Connection } from '@temporalio/client';
import proto from '@temporalio/proto';
import { COHORT_WORKFLOW } from '../../rules/cohort.ts';
import { codeOf, HostError } from '../../rules/errors.ts';
import { RUN_TASK_QUEUE } from '../../rules/run-input.ts';
import { Deadline, rest } from '../../system/time.ts';
import { GRPC, grpcStatus, rpc, toHostError } from './rpc.ts';
import { toMs } from './timestamps.ts';

const { TaskQueueType, WorkerVersioningMode } = proto.temporal.api.enums.v1;
const { PinnedOverrideBehavior } = proto.temporal.api.workflow.v1.VersioningOverride;
/** Of the deployment; the server permits neither "." nor ":" in it. */
export const DEPLOYMENT = RUN_TASK_QUEUE;
const READ_DEADLINE_MS = 5_000;
/**
 * The server asks a workflow of its own, which may be starting, or busy, and then gives no answer at all: asked again. Server 1.29
 * also loses an answer that comes before it has noted who waits for one, and gives none for 6 s once it was asked for a change
 * that changed nothing within a second of another.
 */
const QUERY_DEADLINE_MS = 2_500;
const QUERY_TRIES = 4;
/** The server tells each queue of it, and waits until it has spread. It may give no answer here either. */
const CHANGE_DEADLINE_MS = 15_000;
const CHANGE_TRIES = 2;
/**
 * A worker is seen by the first of its polls, and the server may not have heard of all of its queues by then: it refuses a
 * build that lacks one which the current build has. For so long it is asked again.
 */
const QUEUES_WAIT_MS = 10_000;
const QUEUES_PAUSE_MS = 250;
const LACKS_QUEUES = /missing active task queues/i;
const TRIES = 20;
/**
 * The server says that there is none while the workflow of its own that knows it continues as new, as it does behind a
 * change: believed when it is said so often.
 */
const NONE_TRIES = 4;
/**
 * For so long, from the first time on, it may say that this workflow has no task yet: when a worker first names a build, and while
 * a run of the workflow that continues as new waits longer than a query may take. After changes that follow each other closely it
 * waits a second for each. Nobody knows then which builds there are.
 */
const BEGINNING_LIMIT_MS = 5_000;
const PAUSE_MS = 100;
const IDENTITY = 'openwop';

export interface DeploymentSource {
  readonly connection: Connection;
  readonly namespace: string;
  /** Ends what is being asked. */
  readonly signal?: AbortSignal;
  /** Tests only. Default BEGINNING_LIMIT_MS. */
  readonly beginningMs?: number;
}

type Described = Awaited<ReturnType<Connection['workflowService']['describeWorkerDeployment']>>;
export type DeploymentInfo = NonNullable<Described['workerDeploymentInfo']>;

/** `none`: no worker ever named a build. `unsupported`: the server is too old, has it switched off, or is the Java one. */
export type FoundDeployment =
  { readonly info: DeploymentInfo; readonly conflictToken: Uint8Array } | 'none' | 'unsupported';

const UNTOLD = { reason: 'Temporal does not say yet which builds there are.' };

/** Throws service_unavailable: an absent server is no server without the feature. */
export async function describeDeployment(source: DeploymentSource): Promise<FoundDeployment> {
  if (!(await knowsBuilds(source))) return 'unsupported';
  const { signal, beginningMs = BEGINNING_LIMIT_MS } = source;
  let deadline: Deadline | undefined;
  for (let left = NONE_TRIES; ;) {
    const found = await describeOnce(source);
    if (found === 'beginning') {
      deadline ??= new Deadline(beginningMs);
      if (signal?.aborted || deadline.isOver()) throw new HostError('service_unavailable', UNTOLD);
    } else if (found !== 'none' || --left === 0 || signal?.aborted) return found;
    await rest(PAUSE_MS, signal);
  }
}

async function describeOnce(source: DeploymentSource): Promise<FoundDeployment | 'beginning'> {
  const { connection, namespace } = source;
  try {
    const { workerDeploymentInfo: info, conflictToken } = await query(source, () =>
      connection.workflowService.describeWorkerDeployment({
        namespace,
        deploymentName: DEPLOYMENT,
      }),
    );
    return info ? { info, conflictToken } : 'none';
  } catch (error) {
    const status = grpcStatus(error);
    if (status?.code === GRPC.NOT_FOUND && /worker deployment/i.test(status.details)) return 'none';
    const isBeginning = /not scheduled yet/i.test(status?.details ?? '');
    if (status?.code === GRPC.FAILED_PRECONDITION && isBeginning) return 'beginning';
    throw toHostError(error);
  }
}

/** By the list: where it is switched off a server refuses that, and describes all the same. Throws service_unavailable. */
export async function knowsBuilds(source: DeploymentSource): Promise<boolean> {
  const { connection, namespace } = source;
  try {
    await read(source, () =>
      connection.workflowService.listWorkerDeployments({ namespace, pageSize: 1 }),
    );
    return true;
  } catch (error) {
    const status = grpcStatus(error);
    const isOff = status?.code === GRPC.PERMISSION_DENIED && /deployment/i.test(status.details);
    if (isOff || status?.code === GRPC.UNIMPLEMENTED) return false;
    throw toHostError(error);
  }
}

/** What the server refuses, as a value of ours: the build is not there yet, or something else changed meanwhile. */
function refused(error: unknown): unknown {
  const status = grpcStatus(error);
  if (status?.code === GRPC.FAILED_PRECONDITION || status?.code === GRPC.INVALID_ARGUMENT)
    return new HostError('build_conflict', { reason: status.details }, error);
  if (status?.code === GRPC.NOT_FOUND && !/namespace/i.test(status.details))
    return new HostError('build_not_found', undefined, error);
  return toHostError(error);
}

/** '' is none: workers without a build id take new runs. With a token nothing else changed since it was read. */
export async function setCurrent(
  source: DeploymentSource,
  buildId: string,
  conflictToken?: Uint8Array,
): Promise<void> {
  const { connection, namespace } = source;
  await changeOnceHeard(source, () =>
    connection.workflowService.setWorkerDeploymentCurrentVersion({
      ...{ namespace, deploymentName: DEPLOYMENT, buildId, identity: IDENTITY },
      ...(conflictToken ? { conflictToken } : {}),
    }),
  );
}

/** 0 percent of none ends the ramp. */
export async function setRamping(
  source: DeploymentSource,
  buildId: string,
  percentage: number,
): Promise<void> {
  const { connection, namespace } = source;
  await changeOnceHeard(source, () =>
    connection.workflowService.setWorkerDeploymentRampingVersion({
      ...{ namespace, deploymentName: DEPLOYMENT, buildId, percentage, identity: IDENTITY },
    }),
  );
}

export interface Asker {
  /** Undefined: a worker without a build id, which takes what comes. */
  readonly buildId?: string;
  readonly lastAskedMs: number;
}

/**
 * Who asked for tasks of runs in the last minutes, as the server remembers. It tells of one part of a queue, and a worker's
 * polls are spread over all: both kinds of tasks are looked at, so that one of its many polls is there.
 */
export async function askers(source: DeploymentSource): Promise<Asker[]> {
  const { TASK_QUEUE_TYPE_ACTIVITY, TASK_QUEUE_TYPE_WORKFLOW } = TaskQueueType;
  const kinds = [TASK_QUEUE_TYPE_WORKFLOW, TASK_QUEUE_TYPE_ACTIVITY];
  return (await Promise.all(kinds.map((kind) => askersOf(source, kind)))).flat();
}

async function askersOf(source: DeploymentSource, taskQueueType: number): Promise<Asker[]> {
  const { connection, namespace } = source;
  const taskQueue = { name: RUN_TASK_QUEUE };
  const { pollers } = await read(source, () =>
    connection.workflowService.describeTaskQueue({ namespace, taskQueue, taskQueueType }),
  ).catch((error: unknown) => {
    throw toHostError(error);
  });
  return (pollers ?? []).map(({ lastAccessTime, deploymentOptions }) => {
    const isVersioned =
      deploymentOptions?.workerVersioningMode ===
      WorkerVersioningMode.WORKER_VERSIONING_MODE_VERSIONED;
    const lastAskedMs = toMs(lastAccessTime) ?? 0;
    return isVersioned
      ? { lastAskedMs, buildId: deploymentOptions?.buildId ?? '' }
      : { lastAskedMs };
  });
}

export async function countRuns(source: DeploymentSource, which: string): Promise<number> {
  const { connection, namespace } = source;
  const { count } = await read(source, () =>
    connection.workflowService.countWorkflowExecutions({ namespace, query: openRuns(which) }),
  ).catch((error: unknown) => {
    throw toHostError(error);
  });
  return Number(count ?? 0);
}

/** A cohort is no run, and goes on with whatever build is current. */
export function openRuns(which: string): string {
  return openWorkflows(`WorkflowType != '${COHORT_WORKFLOW}' AND ${which}`);
}

/** Cohorts included. */
export function openWorkflows(which: string): string {
  return `TaskQueue = '${RUN_TASK_QUEUE}' AND ExecutionStatus = 'Running' AND ${which}`;
}

export const ANY = "WorkflowType != ''";

/** Whose last task this build performed, or which were moved to it. */
export function onBuild(buildId: string): string {
  return `TemporalWorkerDeploymentVersion = '${DEPLOYMENT}:${buildId}'`;
}

/** Which no other build goes on with. */
export function heldBy(buildId: string): string {
  return `BuildIds = 'pinned:${DEPLOYMENT}:${buildId}'`;
}

export type Override = { readonly buildId: string } | 'auto-upgrade';

/** Which build a run goes on with. Nothing enters its history but the change itself, and nothing runs by it. */
export async function overrideVersion(
  source: DeploymentSource,
  runId: string,
  to: Override,
): Promise<void> {
  const { connection, namespace } = source;
  const override =
    to === 'auto-upgrade'
      ? { autoUpgrade: true }
      : {
          pinned: {
            behavior: PinnedOverrideBehavior.PINNED_OVERRIDE_BEHAVIOR_PINNED,
            version: { deploymentName: DEPLOYMENT, buildId: to.buildId },
          },
        };
  await change(source, () =>
    connection.workflowService.updateWorkflowExecutionOptions({
      namespace,
      workflowExecution: { workflowId: runId },
      workflowExecutionOptions: { versioningOverride: override },
      updateMask: { paths: ['versioning_override'] },
      identity: IDENTITY,
    }),
  );
}

async function query<T>(
  { connection, signal }: DeploymentSource,
  call: () => Promise<T>,
): Promise<T> {
  const limits = { deadlineMs: QUERY_DEADLINE_MS, tries: TRIES, signal };
  return askedAnew(QUERY_TRIES, signal, () => rpc(connection, limits, call));
}

/** Asks again what got no answer in time. */
async function askedAnew<T>(
  tries: number,
  signal: AbortSignal | undefined,
  ask: () => Promise<T>,
): Promise<T> {
  for (let left = tries; ; left--) {
    try {
      return await ask();
    } catch (error) {
      const isLate = codeOf(toHostError(error)) === 'service_unavailable';
      if (!isLate || left <= 1 || signal?.aborted) throw error;
    }
  }
}

export function read<T>(source: DeploymentSource, call: () => Promise<T>): Promise<T> {
  const { connection, signal } = source;
  return rpc(connection, { deadlineMs: READ_DEADLINE_MS, tries: TRIES, signal }, call);
}

/** As `change`, and once the server has heard of all queues of the build's worker. */
async function changeOnceHeard<T>(source: DeploymentSource, call: () => Promise<T>): Promise<T> {
  const deadline = new Deadline(QUEUES_WAIT_MS);
  for (;;) {
    try {
      return await change(source, call);
    } catch (error) {
      const { reason } = error instanceof HostError ? { ...error.details } : {};
      const isEarly = typeof reason === 'string' && LACKS_QUEUES.test(reason);
      if (!isEarly || source.signal?.aborted || deadline.leftMs() <= QUEUES_PAUSE_MS) throw error;
      await rest(QUEUES_PAUSE_MS, source.signal);
    }
  }
}

/** Each change says what is to be, so that it can be asked for twice. */
async function change<T>(source: DeploymentSource, call: () => Promise<T>): Promise<T> {
  const { connection, signal } = source;
  const limits = { deadlineMs: CHANGE_DEADLINE_MS, tries: TRIES, signal };
  try {
    return await askedAnew(CHANGE_TRIES, signal, () => rpc(connection, limits, call));
  } catch (error) {
    throw refused(error);
  }
}
