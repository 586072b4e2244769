// Timeouts and retries of every activity, explicit, and the queue that a step may have of its own. Temporal's own tries
// appear in no id and have no maximum: an outage of the host's own parts ends no step (architecture §4.1). Which failure
// is the last is the activity's to say (activities/failures.ts); the times of the node and of the run bound it all.
import type { ActivityOptions } from '@temporalio/workflow';
import { HEARTBEAT_TIMEOUT_MS } from '../src/rules/limits.ts';
import type { ActivityName, StepQueue } from './steps.ts';

const RETRY = { initialInterval: 1_000, backoffCoefficient: 2, maximumInterval: 30_000 };
/** Of a step that waits for others to come to rest: asked again soon. */
const RETRY_SOON = { ...RETRY, initialInterval: 100 };
const SHORT: ActivityOptions = { startToCloseTimeout: 30_000, retry: RETRY };

function long(startToCloseTimeout: number): ActivityOptions {
  return { startToCloseTimeout, heartbeatTimeout: HEARTBEAT_TIMEOUT_MS, retry: RETRY };
}

const OPTIONS: Record<ActivityName, ActivityOptions> = {
  checkValue: SHORT,
  prepareInvocation: SHORT,
  inferTurn: long(600_000),
  callTool: long(300_000),
  startChildren: long(120_000),
  endChild: { ...SHORT, retry: { ...RETRY_SOON, maximumInterval: 10_000 } },
  cancelChild: SHORT,
  keepTime: { ...long(120_000), retry: { ...RETRY_SOON, maximumInterval: 5_000 } },
  tellReasoning: long(60_000),
  recordedAnswers: long(120_000),
  sealBlock: SHORT,
};

/** Of an activity that belongs to the run alone. */
export const RECORDING_OPTIONS: ActivityOptions = long(120_000);

/** Of as many runs as one may have below it, each with a log to be read. */
export const FAMILY_OPTIONS: ActivityOptions = long(600_000);

/** Longest time in ms that a tool's answer is kept by the try that got it, while it cannot be stored. */
const ANSWER_HELD_MS = 600_000;
/** Limit of a step on a queue that names none, in ms. */
const QUEUED_WORK_MS = 300_000;
/** Times its own limit that such a step may work, besides waiting. */
const QUEUED_WORK = 4;

function onQueue({ taskQueue, waitMs }: StepQueue, workMs: number): ActivityOptions {
  return {
    taskQueue,
    scheduleToStartTimeout: waitMs,
    scheduleToCloseTimeout: waitMs + QUEUED_WORK * workMs + ANSWER_HELD_MS,
  };
}

/** `timeoutMs` narrows the time of one try; a queue has times of its own. */
export function optionsOf(
  name: ActivityName,
  { timeoutMs, queue }: { timeoutMs?: number; queue?: StepQueue },
): ActivityOptions {
  const heldMs = name === 'callTool' ? ANSWER_HELD_MS : 0;
  return {
    ...OPTIONS[name],
    ...(timeoutMs === undefined ? {} : { startToCloseTimeout: timeoutMs + heldMs }),
    ...(queue ? onQueue(queue, timeoutMs ?? QUEUED_WORK_MS) : {}),
  };
}
