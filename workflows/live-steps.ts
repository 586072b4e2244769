// Live Steps (architecture §4): activities, timers, clock and Updates of Temporal. No other file of workflow code
// touches them. How many promises stand between a job of Temporal's and what continues is part of what replays: two
// branches that wake in one workflow task give their commands in that order.
import {
  ActivityCancellationType,
  ApplicationFailure,
  CancellationScope,
  condition,
  currentUpdateInfo,
  defineSignal,
  defineUpdate,
  getExternalWorkflowHandle,
  isCancellation,
  scheduleActivity,
  setHandler,
  sleep,
  type ActivityOptions,
} from '@temporalio/workflow';
import type { ForkChildrenInput, ReadRecordingInput, StepContext } from '../activities/contract.ts';
import { CHILD_ENDED_SIGNAL, type ChildEnded } from '../src/rules/children.ts';
import { activityIdOf } from '../src/rules/ids.ts';
import type { RecordingPage } from '../src/rules/recording.ts';
import { ownPrincipal } from '../src/rules/run-input.ts';
import type { StepResult } from '../src/rules/journal.ts';
import { jsonBytes } from '../src/rules/json.ts';
import { CANCELLATION_GRACE_MS, MAX_PENDING_STEPS, MAX_QUEUED_STEPS } from '../src/rules/limits.ts';
import {
  MESSAGES,
  type MessageKind,
  type MessageOutcome,
  type RunMessage,
} from '../src/rules/messages.ts';
import { FAMILY_OPTIONS, optionsOf, RECORDING_OPTIONS } from './activity-options.ts';
import { causeOf } from './causes.ts';
import { tupleOf, type Place, type QueuedStep, type Run } from './context.ts';
import { CancelledAfterResult, CancelledBeforeStart, stepError } from './failures.ts';
import { admit, isBeginning, spend } from './journal.ts';
import { rest } from './pause.ts';
import {
  isCrowded,
  type ActivityName,
  type Entered,
  type Inbox,
  type StepOutput,
  type StepRequest,
  type Steps,
} from './steps.ts';

/** Shortest timer of Temporal, in ms: it ends the workflow task. */
const PAUSE_MS = 1;

export function liveSteps(): Steps {
  const waited = new Set<string>();
  const read = new Set<string>();
  return {
    run: runStep,
    wait(key, deadlineMs, ready) {
      claim(waited, key);
      return waitUntil(deadlineMs, ready);
    },
    now(key) {
      claim(read, key);
      return Date.now();
    },
    lapse(key, limitMs, ready) {
      claim(waited, key);
      return waitUntil(Date.now() + limitMs, ready);
    },
    tellParent,
    receive,
    nextTask: nextTaskOf(),
    isReplay: () => false,
    isUnstated: () => false,
    waitForSource: () => undefined,
    until: (ready, limitMs) =>
      limitMs === undefined ? condition(ready) : condition(ready, limitMs),
  };
}

/** A key that comes again is a bug that tests catch: a recording could not tell the two apart. */
function claim(keys: Set<string>, key: string): void {
  if (keys.has(key))
    throw ApplicationFailure.nonRetryable(`key ${key} of a step is used twice`, 'internal_error');
  keys.add(key);
}

async function waitUntil(deadlineMs: number | undefined, ready: () => boolean): Promise<boolean> {
  if (deadlineMs === undefined) {
    await condition(ready);
    return true;
  }
  const leftMs = deadlineMs - Date.now();
  if (leftMs <= 0) return ready();
  return condition(ready, leftMs);
}

/** All that pause in one workflow task wait for one timer. */
function nextTaskOf(): Steps['nextTask'] {
  let pause: Promise<void> | undefined;
  return async (run) => {
    run.inFlight++;
    pause ??= run.scope
      .run(() => sleep(PAUSE_MS))
      .catch(() => undefined)
      .finally(() => {
        pause = undefined;
      });
    await pause;
    run.inFlight--;
  };
}

/**
 * Steps wait while a segment tries to end or the run is paused. What closes a block does not: both come behind it. Nor
 * does what ends a child: the time of a node or of its child runs on in a pause.
 */
function isHeld(run: Run, name: ActivityName): boolean {
  if (name === 'cancelChild') return run.frozen !== undefined;
  return run.holding.size > 0 && name !== 'sealBlock';
}

/** As many activities are under way as may be. What ends a stream or a child waits for nothing. */
function isFull(run: Run, name: ActivityName, isQueued: boolean): boolean {
  if (name === 'cancelChild' || name === 'sealBlock' || run.ending) return false;
  return run.inFlight >= MAX_PENDING_STEPS || (isQueued && run.queued.size >= MAX_QUEUED_STEPS);
}

/** Waits for its turn. Throws CancelledBeforeStart. */
async function begins(ready: () => boolean): Promise<void> {
  await condition(ready).catch((error: unknown) => {
    if (!isCancellation(error)) throw error;
  });
  if (CancellationScope.current().consideredCancelled) throw new CancelledBeforeStart();
}

async function runStep<Name extends ActivityName>(
  place: Place,
  name: Name,
  request: StepRequest<Name>,
): Promise<StepOutput<Name>> {
  const { run } = place;
  const isQueued = request.queue !== undefined;
  // Looked at again right before it is spent: many wake at once, and only the first finds the task empty.
  for (;;) {
    if (isHeld(run, name))
      await rest(place, () => condition(() => run.holding.size === 0 && !run.frozen));
    else if (isCrowded(run)) await run.steps.nextTask(run);
    else if (isFull(run, name, isQueued)) await begins(() => !isFull(run, name, isQueued));
    else break;
  }
  const activityId = activityIdOf(tupleOf(place, request.step));
  const options: ActivityOptions = {
    ...optionsOf(name, request),
    activityId,
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  };
  const context = contextOf(place, activityId);
  const queued: QueuedStep | undefined = request.queue && { outlasted: false };
  run.inFlight++;
  if (queued) run.queued.add(queued);
  const input = { ...request.input, context };
  spend(jsonBytes(input));
  try {
    const result = await withGrace(
      scheduleActivity<StepResult<StepOutput<Name>>>(name, [input], options),
      () => sleep(CANCELLATION_GRACE_MS),
    );
    while (isCrowded(run)) await run.steps.nextTask(run);
    admit(activityId, result.events);
    // What follows from it states it again: many that come in one task are taken in one after the other.
    spend(jsonBytes(result.output));
    // What happened stands in the log; what would follow from it does not happen any more.
    if (CancellationScope.current().consideredCancelled) throw new CancelledAfterResult();
    return result.output;
  } catch (error) {
    throw stepError(error);
  } finally {
    run.inFlight--;
    if (queued) run.queued.delete(queued);
    run.progress++;
  }
}

/** For ids and isolation on the other side. */
function contextOf(place: Place, activityId: string): StepContext {
  const { run, frame } = place;
  const cause = causeOf(frame.nodeId);
  if (cause === undefined) throw new Error('a step before anything was stated');
  return {
    runId: run.input.runId,
    tenant: run.input.tenant,
    principal: ownPrincipal(run.input),
    header: run.input.header,
    workflowId: run.input.definition.id,
    nodeId: frame.nodeId,
    visit: frame.visit,
    attempt: frame.attempt,
    activityId,
    cause,
  };
}

/**
 * A cancelled activity has CANCELLATION_GRACE_MS to acknowledge; then it is abandoned and its result never admitted.
 * `rests` waits so long.
 */
export function withGrace<T>(result: Promise<T>, rests: () => Promise<unknown>): Promise<T> {
  const scope = CancellationScope.current();
  if (!scope.cancellable) return result;
  // By hand and not by Promise.race: every promise of workflow code may cost a recorded stack.
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
      grace.run(rests).then(
        () => reject(cause),
        () => undefined,
      );
    });
  });
}

/** Work that a cancel leaves `graceMs` more; then it is cancelled. */
export function spared<T>(work: () => Promise<T>, graceMs: number): Promise<T> {
  const scope = new CancellationScope({ cancellable: true, parent: shield() });
  let isOver = false;
  CancellationScope.current().cancelRequested.catch(() => {
    if (isOver) return;
    void CancellationScope.nonCancellable(() => sleep(graceMs)).then(() => scope.cancel());
  });
  return scope.run(work).finally(() => {
    isOver = true;
  });
}

/** A parent that hands no cancellation down. */
function shield(): CancellationScope {
  return new CancellationScope({ cancellable: false });
}

/** Longest time in ms that a run which has ended stays for the sake of its parent; the family keeper tells it then. */
const TELL_LIMIT_MS = 60_000;

async function tellParent(parentRunId: string, ended: ChildEnded): Promise<void> {
  const signalled = getExternalWorkflowHandle(parentRunId)
    .signal(CHILD_ENDED_SIGNAL, ended)
    .catch(() => undefined);
  let isTold = false;
  void signalled.then(() => (isTold = true));
  await condition(() => isTold, TELL_LIMIT_MS);
}

/** One handler for each kind of message; Temporal's own cancel request comes in the same way. */
function receive(inbox: Inbox): void {
  CancellationScope.current().cancelRequested.catch(() => inbox.cancelled());
  setHandler(defineSignal<[ChildEnded]>(CHILD_ENDED_SIGNAL), ({ childRunId }) =>
    inbox.childEnded(childRunId),
  );
  for (const kind of Object.keys(MESSAGES) as MessageKind[]) receiveKind(inbox, kind);
}

function receiveKind(inbox: Inbox, kind: MessageKind): void {
  // The Update's name says the kind, whatever the message says.
  const enter = (message: RunMessage): Entered => ({
    message: { ...message, kind } as RunMessage,
    updateId: currentUpdateInfo()?.id,
    atMs: Date.now(),
  });
  const receive = (entered: Entered): MessageOutcome => {
    if (isBeginning()) inbox.check(entered);
    return inbox.take(entered);
  };
  setHandler(
    defineUpdate<MessageOutcome, [RunMessage]>(MESSAGES[kind].update),
    (message) => {
      const entered = enter(message);
      return inbox.isClosed?.(entered) ? held(inbox, entered) : receive(entered);
    },
    {
      validator: (message: RunMessage): void => {
        // A server forgets a workflow task that only refused, also a run's first one: a replay would then begin in
        // another task than this worker did. There the message is taken in, and the handler refuses it.
        if (!isBeginning()) inbox.check(enter(message));
      },
    },
  );
}

/** A message whose id would stand for a refusal from now on waits until it can be looked at. */
async function held(inbox: Inbox, entered: Entered): Promise<MessageOutcome> {
  await condition(() => !inbox.isClosed?.(entered));
  const now = { ...entered, atMs: Date.now() };
  inbox.check(now);
  return inbox.take(now);
}

/** Between two continuations of this workflow task: the SDK checks a condition only when nothing else goes on. */
export async function nothingMoves(): Promise<void> {
  let isFirst = true;
  await condition(() => {
    const was = isFirst;
    isFirst = false;
    return !was;
  });
}

/** A page of what a fork is made from: an activity that belongs to no node. */
export async function readRecording(
  input: ReadRecordingInput,
  scheduleToCloseTimeout: number,
): Promise<RecordingPage> {
  const activityId = `fork/page${input.page}`;
  const options = { ...RECORDING_OPTIONS, scheduleToCloseTimeout, activityId };
  const { recording } = await scheduleActivity<StepResult>('readRecording', [input], options);
  if (!recording)
    throw ApplicationFailure.nonRetryable('a page of the recording is none', 'internal_error');
  return recording;
}

/** The child runs that a fork has of its source: they are there when this has ended, or none of its run is. */
export async function forkChildren(
  input: ForkChildrenInput,
  scheduleToCloseTimeout: number,
): Promise<void> {
  const options = { ...FAMILY_OPTIONS, scheduleToCloseTimeout, activityId: 'fork/children' };
  await scheduleActivity<StepResult>('forkChildren', [input], options);
}
