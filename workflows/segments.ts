// Where a run's history ends and the next one begins (continue-as-new, architecture §4): when a segment should end, how
// new steps and attempts are held back until nothing is in flight, and the breath in which state and journal are frozen.
import { allHandlersFinished, workflowInfo } from '@temporalio/workflow';
import { tracedCauses } from './causes.ts';
import { jsonBytes, type JsonValue } from '../src/rules/json.ts';
import { SEGMENT_BYTES } from '../src/rules/limits.ts';
import { endRun, type Run } from './context.ts';
import type { NodeError, RunState } from './frames.ts';
import { freezeJournal, openItems } from './journal.ts';

/** New steps are held back this long while a segment tries to end; then the run goes on and tries again. */
const DRAIN_MS = 30_000;
/** From this many history events on, a segment waits for its end however long it takes (the server's limit: 51,200). */
const LIMIT_EVENTS = 20_000;
/** The same in bytes of history (the server's limit: 50 MiB). */
const LIMIT_BYTES = 20 * 1024 * 1024;
/** Where only calls that wait on an agent's queue are under way, this long: the agent may be absent for days. */
const DRAIN_QUEUED_MS = 2_000;
/** Tests force at most this many segments. */
const FORCED_SEGMENTS = 5;

export function wantsNewSegment(run: Run): () => boolean {
  const isAsked = afterProgress(run, () => {
    const { continueAsNewSuggested, historyLength } = workflowInfo();
    if (continueAsNewSuggested) return true;
    return (
      historyLength >= (run.input.forceContinueAsNewAfter ?? Infinity) &&
      run.state.segment < FORCED_SEGMENTS
    );
  });
  return () => run.ending !== undefined || isAsked();
}

/**
 * Looks once after each progress of the run, never in between: a workflow task that only refuses a message leaves no
 * job in history, and a replay would not look there.
 */
function afterProgress(run: Run, ask: () => boolean): () => boolean {
  let seen = run.progress;
  return () => {
    if (run.progress === seen) return false;
    seen = run.progress;
    return ask();
  };
}

/** An attempt waits for the next workflow task, since this one is full: a segment that drains waits for no more of them. */
export function noteFullTask({ holding }: Run): void {
  if (holding.has('segment')) holding.add('full');
}

/**
 * True while an attempt must not start: nothing is in flight in a segment that drains and has filled a task meanwhile (nodes
 * without steps would not let it end), or the server's limit on a history is near. False once the run or the segment has
 * ended, so that whoever waits sees that.
 */
export function isLeftToNextSegment({ holding, inFlight, ending }: Run): boolean {
  if (ending) return false;
  return holding.has('limit') || (holding.has('full') && inFlight === 0);
}

/** Too large to be carried on: the run goes on in this segment while it may. */
const OVERSIZE = 'oversize';

/**
 * Ends the segment where every frame stands at a wait: state and journal are frozen in one breath, inside the check
 * itself, which the SDK makes between continuations. The first check of a condition is made within one: it says no.
 */
function freezeWhenDrained(run: Run, note: (found: typeof OVERSIZE) => void): () => boolean {
  let between = false;
  return () => {
    if (run.ending) return true;
    const drained = between && run.inFlight === 0 && allHandlersFinished();
    between = true;
    if (!drained) return false;
    const state: RunState = {
      ...run.state,
      ...{ segment: run.state.segment + 1, open: openItems(), causes: tracedCauses() },
    };
    const carried = JSON.parse(JSON.stringify(state)) as JsonValue;
    if (jsonBytes({ ...run.input, carried }) > SEGMENT_BYTES) {
      note(OVERSIZE);
      return true;
    }
    run.frozen = carried;
    run.ending = { kind: 'continue' };
    freezeJournal();
    return true;
  };
}

/** Holds new steps and attempts back until nothing is in flight; else lets the run go on until something has settled. */
export async function endSegment(run: Run): Promise<void> {
  const isDue = isNearLimit();
  const oversize = await drain(run, isDue);
  if (run.ending) return;
  if (oversize && isDue) return endRun(run, { kind: 'failed', error: STATE_TOO_LARGE });
  // It came near while this one drained.
  if (!isDue && isNearLimit()) return endSegment(run);
  const before = run.progress;
  await run.steps.until(() => run.ending !== undefined || run.progress > before);
}

const STATE_TOO_LARGE: NodeError = {
  code: 'payload_too_large',
  message: `The state of the run is larger than ${SEGMENT_BYTES} bytes: it cannot be carried on.`,
};

/** True when the segment could end but for the size of its state. */
async function drain(run: Run, isDue: boolean): Promise<boolean> {
  let oversize = false;
  const frozen = () => freezeWhenDrained(run, () => (oversize = true));
  if (isDue) {
    run.holding.add('limit');
    await run.steps.until(frozen());
  } else if (![...run.queued].some(({ outlasted }) => outlasted)) {
    run.holding.add('segment');
    await drainInTime(run, frozen);
    for (const step of run.queued) step.outlasted = true;
  }
  if (!run.ending) {
    run.holding.delete('segment');
    run.holding.delete('full');
  }
  return oversize;
}

function isNearLimit(): boolean {
  const { historyLength, historySize } = workflowInfo();
  return historyLength >= LIMIT_EVENTS || historySize >= LIMIT_BYTES;
}

/** Branches do not stand beside a call that waits for an agent: nobody knows when one comes. */
async function drainInTime(run: Run, frozen: () => () => boolean): Promise<void> {
  const isOnlyQueued = () => run.queued.size > 0 && run.queued.size === run.inFlight;
  const isFrozen = frozen();
  const isDue = afterProgress(run, isNearLimit);
  await run.steps.until(() => isFrozen() || isOnlyQueued() || isDue(), DRAIN_MS);
  if (!run.ending && isOnlyQueued()) await run.steps.until(frozen(), DRAIN_QUEUED_MS);
}
