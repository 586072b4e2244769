// Timeouts and retries of every activity, explicit, and the queue that a step may have of its own. Attempts are
// Temporal's own tries: they appear in no id.
import type { ActivityOptions } from '@temporalio/workflow';
import { HEARTBEAT_TIMEOUT_MS } from '../src/rules/limits.ts';
import type { ActivityName, StepQueue } from './steps.ts';

const RETRY = { initialInterval: 1_000, backoffCoefficient: 2, maximumInterval: 30_000 };

const OPTIONS: Record<ActivityName, ActivityOptions> = {
  checkValue: { startToCloseTimeout: 30_000, retry: { ...RETRY, maximumAttempts: 5 } },
  prepareInvocation: { startToCloseTimeout: 30_000, retry: { ...RETRY, maximumAttempts: 5 } },
  inferTurn: {
    startToCloseTimeout: 600_000,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    retry: { ...RETRY, maximumAttempts: 6 },
  },
  callTool: {
    startToCloseTimeout: 300_000,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    retry: { ...RETRY, maximumAttempts: 8 },
  },
  startChildren: {
    startToCloseTimeout: 120_000,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    retry: { ...RETRY, maximumAttempts: 20 },
  },
  // Its child's last words may be under way: asked again soon, and for minutes.
  endChild: {
    startToCloseTimeout: 30_000,
    retry: {
      initialInterval: 100,
      backoffCoefficient: 2,
      maximumInterval: 10_000,
      maximumAttempts: 60,
    },
  },
  cancelChild: { startToCloseTimeout: 30_000, retry: { ...RETRY, maximumAttempts: 10 } },
  // Those below may be long in coming to rest.
  keepTime: {
    startToCloseTimeout: 120_000,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    retry: { ...RETRY, initialInterval: 100, maximumInterval: 5_000 },
  },
  tellReasoning: {
    startToCloseTimeout: 60_000,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    retry: { ...RETRY, maximumAttempts: 6 },
  },
  recordedAnswers: {
    startToCloseTimeout: 120_000,
    heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
    retry: { ...RETRY, maximumAttempts: 20 },
  },
  sealBlock: { startToCloseTimeout: 30_000, retry: { ...RETRY, maximumAttempts: 20 } },
};

/** Of an activity that belongs to the run alone. */
export const RECORDING_OPTIONS: ActivityOptions = {
  startToCloseTimeout: 120_000,
  heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
  retry: { ...RETRY, maximumAttempts: 20 },
};

/** Of as many runs as one may have below it, each with a log to be read. */
export const FAMILY_OPTIONS: ActivityOptions = {
  startToCloseTimeout: 600_000,
  heartbeatTimeout: HEARTBEAT_TIMEOUT_MS,
  retry: { ...RETRY, maximumAttempts: 20 },
};

/** Times that a step on its own queue may be begun: a worker that lost the agent hands the call back. */
const QUEUED_ATTEMPTS = 1_000;
/** Limit of such a step that names none, in ms. */
const QUEUED_WORK_MS = 300_000;
/** Times its own limit that such a step may work, besides waiting. */
const QUEUED_WORK = 4;

function onQueue({ taskQueue, waitMs }: StepQueue, workMs: number): ActivityOptions {
  return {
    taskQueue,
    scheduleToStartTimeout: waitMs,
    scheduleToCloseTimeout: waitMs + QUEUED_WORK * workMs,
    retry: { ...RETRY, maximumAttempts: QUEUED_ATTEMPTS },
  };
}

/** `startToCloseTimeout` may be narrowed by `timeoutMs`; a queue has times of its own. */
export function optionsOf(
  name: ActivityName,
  { timeoutMs, queue }: { timeoutMs?: number; queue?: StepQueue },
): ActivityOptions {
  return {
    ...OPTIONS[name],
    ...(timeoutMs === undefined ? {} : { startToCloseTimeout: timeoutMs }),
    ...(queue ? onQueue(queue, timeoutMs ?? QUEUED_WORK_MS) : {}),
  };
}
