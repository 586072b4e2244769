// The one seam through which a run touches the world (design §4): every activity and every wait of a node goes
// through here. A result is admitted and its output handed on in the same breath: no reference crosses a segment.
import {
  ActivityCancellationType,
  ActivityFailure,
  CancellationScope,
  CancelledFailure,
  TimeoutFailure,
  condition,
  isCancellation,
  scheduleActivity,
  sleep,
  type ActivityOptions,
} from '@temporalio/workflow';
import type { Activities, StepContext } from '../activities/contract.ts';
import { activityIdOf } from '../src/rules/ids.ts';
import type { StepResult } from '../src/rules/journal.ts';
import { jsonBytes } from '../src/rules/json.ts';
import { CANCELLATION_GRACE_MS, HEARTBEAT_TIMEOUT_MS } from '../src/rules/limits.ts';
import { tupleOf, type QueuedStep, type Run, type Visit } from './context.ts';
import { admit, isTaskFull, spend } from './journal.ts';

export type ActivityName = keyof Activities;
type Input<Name extends ActivityName> = Omit<Parameters<Activities[Name]>[0], 'context'>;
type Output<Name extends ActivityName> = Awaited<ReturnType<Activities[Name]>>['output'];

const RETRY = { initialInterval: 1_000, backoffCoefficient: 2, maximumInterval: 30_000 };

/** Timeouts and retries of every activity, explicit. Attempts are Temporal's own tries: they appear in no id. */
const OPTIONS: Record<ActivityName, ActivityOptions> = {
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
  sealBlock: { startToCloseTimeout: 30_000, retry: { ...RETRY, maximumAttempts: 20 } },
};

/** A task queue of its own for a step, where a worker may be long in coming. */
export interface StepQueue {
  readonly taskQueue: string;
  /** Longest wait in ms for a worker to take it. */
  readonly waitMs: number;
}
/** Times that a step on its own queue may be begun: a worker that lost the agent hands the call back. */
const QUEUED_ATTEMPTS = 1_000;
/** Limit of such a step that names none, in ms. */
const QUEUED_WORK_MS = 300_000;
/** Times its own limit that such a step may work, besides waiting. */
const QUEUED_WORK = 4;

/** No worker took the step in time, or none finished it before its whole time was over. */
export function isUnreached(error: unknown): boolean {
  if (!(error instanceof ActivityFailure)) return false;
  const { cause } = error;
  const type = cause instanceof TimeoutFailure ? cause.timeoutType : undefined;
  return type === 'SCHEDULE_TO_START' || type === 'SCHEDULE_TO_CLOSE';
}

function onQueue({ taskQueue, waitMs }: StepQueue, workMs: number): ActivityOptions {
  return {
    taskQueue,
    scheduleToStartTimeout: waitMs,
    scheduleToCloseTimeout: waitMs + QUEUED_WORK * workMs,
    retry: { ...RETRY, maximumAttempts: QUEUED_ATTEMPTS },
  };
}

/** The context of an activity, for ids and isolation on the other side. */
function contextOf(visit: Visit, activityId: string): StepContext {
  const { run, frame } = visit;
  return {
    runId: run.input.runId,
    tenant: run.input.tenant,
    principal: run.input.principal,
    workflowId: run.input.definition.id,
    nodeId: frame.nodeId,
    visit: frame.visit,
    attempt: frame.attempt,
    activityId,
  };
}

/** The step was cancelled, but its activity ended well within the grace: its events are admitted, its block is closed. */
export class CancelledAfterResult extends CancelledFailure {
  constructor() {
    super('cancelled when the result was there');
  }
}

/** A cancelled activity has CANCELLATION_GRACE_MS to acknowledge; then it is abandoned and its result never admitted. */
function withGrace<T>(result: Promise<T>): Promise<T> {
  const scope = CancellationScope.current();
  if (!scope.cancellable) return result;
  // By hand and not by Promise.race: every promise of workflow code costs a recorded stack.
  return new Promise<T>((resolve, reject) => {
    let grace: CancellationScope | undefined;
    let over = false;
    const end = (settle: () => void) => {
      over = true;
      grace?.cancel();
      settle();
    };
    result.then(
      (value) => end(() => resolve(value)),
      (error: Error) => end(() => reject(error)),
    );
    scope.cancelRequested.catch((cause: Error) => {
      if (over) return;
      grace = new CancellationScope({ cancellable: true, parent: shield() });
      grace
        .run(() => sleep(CANCELLATION_GRACE_MS))
        .then(
          () => reject(cause),
          () => undefined,
        );
    });
  });
}

/** A parent that hands no cancellation down. */
function shield(): CancellationScope {
  return new CancellationScope({ cancellable: false });
}

/** Shortest timer of Temporal, in ms: it ends the workflow task. */
const PAUSE_MS = 1;

/** The workflow task is full: what is large and has time is stated in the next one. A run that ends waits no more. */
export function isCrowded(run: Run): boolean {
  return isTaskFull() && !run.ending;
}

/**
 * Waits for the next workflow task: to be called while `isCrowded`, which is asked again in the breath in which
 * something is stated, since all that paused wake together. What is only in hand meanwhile is safe: no segment ends.
 */
export async function pause(run: Run): Promise<void> {
  run.inFlight++;
  run.pause ??= run.scope
    .run(() => sleep(PAUSE_MS))
    .catch(() => undefined)
    .finally(() => {
      run.pause = undefined;
    });
  await run.pause;
  run.inFlight--;
}

/** Steps wait while a segment tries to end. What closes a block does not: the segment ends behind it. */
function isHeld(run: Run, name: ActivityName): boolean {
  return run.holding && name !== 'sealBlock';
}

/**
 * Runs one activity as step `name` of the visit. Throws ActivityFailure (its cause carries the code as `type`) and
 * CancelledFailure. `startToCloseTimeout` may be narrowed by `timeoutMs`.
 */
export async function step<Name extends ActivityName>(
  visit: Visit,
  name: Name,
  request: { step: string; input: Input<Name>; timeoutMs?: number; queue?: StepQueue },
): Promise<Output<Name>> {
  const { run } = visit;
  // Looked at again right before it is spent: many wake at once, and only the first finds the task empty.
  while (isHeld(run, name) || isCrowded(run))
    await (isHeld(run, name) ? condition(() => !run.holding && !run.frozen) : pause(run));
  const activityId = activityIdOf(tupleOf(visit, request.step));
  const options: ActivityOptions = {
    ...OPTIONS[name],
    ...(request.timeoutMs === undefined ? {} : { startToCloseTimeout: request.timeoutMs }),
    ...(request.queue ? onQueue(request.queue, request.timeoutMs ?? QUEUED_WORK_MS) : {}),
    activityId,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  };
  const input = { ...request.input, context: contextOf(visit, activityId) };
  const queued: QueuedStep | undefined = request.queue && { outlasted: false };
  run.inFlight++;
  if (queued) run.queued.add(queued);
  spend(jsonBytes(input));
  try {
    const result = await withGrace(
      scheduleActivity<StepResult<Output<Name>>>(name, [input], options),
    );
    while (isCrowded(run)) await pause(run);
    admit(activityId, result.events);
    // What happened stands in the log; what would follow from it does not happen any more.
    if (CancellationScope.current().consideredCancelled) throw new CancelledAfterResult();
    return result.output;
  } finally {
    run.inFlight--;
    if (queued) run.queued.delete(queued);
    run.progress++;
  }
}

/** Waits until `deadlineMs` (workflow time) or until `ready`; true when ready. Without a deadline it waits for ever. */
export async function waitUntil(
  deadlineMs: number | undefined,
  ready: () => boolean,
): Promise<boolean> {
  if (deadlineMs === undefined) {
    await condition(ready);
    return true;
  }
  const leftMs = deadlineMs - Date.now();
  if (leftMs <= 0) return ready();
  return condition(ready, leftMs);
}

/** Code, message and details of whatever a step threw; undefined for a cancellation. */
export function failureOf(
  error: unknown,
): { code: string; message: string; details?: unknown } | undefined {
  if (isCancellation(error)) return undefined;
  if (error instanceof ActivityFailure) {
    const { cause } = error;
    if (cause?.name === 'TimeoutFailure')
      return { code: 'node_timeout', message: 'An activity of the node timed out.' };
    return cause ? failureOf(cause) : { code: 'internal_error', message: 'An activity failed.' };
  }
  const failure = error as { type?: string | null; message?: string; details?: unknown[] | null };
  if (typeof failure?.type === 'string' && failure.type !== '') {
    return {
      code: failure.type,
      message: failure.message ?? failure.type,
      details: failure.details?.[0],
    };
  }
  return undefined;
}

/** Runs something that must happen also while the run is being cancelled. */
export async function uncancelled<T>(fn: () => Promise<T>): Promise<T> {
  return CancellationScope.nonCancellable(fn);
}

/** A stream that ended without a result: its block is closed with what was shown, cancelled or not (design §3.5). */
export async function seal(
  visit: Visit,
  sealedStep: string,
  block: Omit<Input<'sealBlock'>, 'sealedActivityId'>,
): Promise<void> {
  const sealedActivityId = activityIdOf(tupleOf(visit, sealedStep));
  await uncancelled(() =>
    step(visit, 'sealBlock', {
      step: `${sealedStep}.seal`,
      input: { sealedActivityId, ...block },
    }),
  );
}
