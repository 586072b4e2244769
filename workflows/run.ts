// What a run is: one workflow execution (or a chain of them) that interprets a workflow definition. It starts the
// nodes that can start, lets each visit run, waits for humans and clocks, and states everything in the journal. It
// ends once: completed, failed or cancelled.
import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  allHandlersFinished,
  condition,
  continueAsNew,
  workflowInfo,
} from '@temporalio/workflow';
import { graphOf } from '../src/rules/definition-graph.ts';
import { closingsOf } from '../src/rules/endings.ts';
import { TERMINAL_KEY } from '../src/rules/ids.ts';
import type { EventOf } from '../src/rules/events.ts';
import { jsonBytes, type JsonValue } from '../src/rules/json.ts';
import { SEGMENT_BYTES } from '../src/rules/limits.ts';
import { durationLimitMs, type RunInput } from '../src/rules/run-input.ts';
import { loadPatterns, needsPatterns } from './conditions.ts';
import { endRun, type Ending, type Run } from './context.ts';
import { newRunState, type NodeError, type RunState } from './frames.ts';
import { emit, endJournal, freezeJournal, openItems, restoreOpenItems } from './journal.ts';
import { answerMessages, cancel } from './messages.ts';
import { durationError, startFrames } from './schedule.ts';
import { heldBytesOf, shownVariables } from './values.ts';

/** New steps are held back this long while a segment tries to end; then the run goes on and tries again. */
const DRAIN_MS = 30_000;
/** From this many history events on, a segment waits for its end however long it takes (the server's wall: 51,200). */
const DRAIN_ALWAYS_EVENTS = 20_000;
/** The same in bytes of history (the server's wall: 50 MiB). */
const DRAIN_ALWAYS_BYTES = 20 * 1024 * 1024;
/** Where only calls that wait on an agent's queue are under way, this long: the agent may be absent for days. */
const DRAIN_QUEUED_MS = 2_000;
/** Tests force at most this many segments. */
const FORCED_SEGMENTS = 5;

export async function runWorkflow(input: RunInput): Promise<void> {
  if (needsPatterns(input.definition)) await loadPatterns();
  const run = open(input);
  answerMessages(run);
  if (run.state.segment === 0) stateStart(run);
  startFrames(run);
  const ending = await CancellationScope.nonCancellable(() => live(run));
  if (ending.kind === 'continue') {
    return continueAsNew<typeof runWorkflow>({ ...input, carried: run.frozen });
  }
  return leave(ending);
}

/** To its end, or to the end of this segment; shielded, so that only `cancel` stops what runs. */
async function live(run: Run): Promise<Ending> {
  const ending = await interpret(run);
  if (ending.kind !== 'continue') await close(run, ending);
  return ending;
}

function open(input: RunInput): Run {
  const carried = input.carried as unknown as RunState | undefined;
  const state = carried ?? newRunState(Date.now(), input.variables);
  restoreOpenItems(state.open);
  const shield = new CancellationScope({ cancellable: false });
  const run: Run = {
    input,
    state,
    graph: graphOf(input.definition),
    nodes: new Map(input.definition.nodes.map((node) => [node.id, node])),
    scope: new CancellationScope({ cancellable: true, parent: shield }),
    active: new Map(),
    inFlight: 0,
    queued: new Set(),
    heldBytes: heldBytesOf(state),
    holding: false,
    progress: 0,
  };
  // Temporal's own cancel request takes the same way as the Update: through `cancel`, never past it.
  CancellationScope.current().cancelRequested.catch(() => cancel(run, 'temporal'));
  return run;
}

function stateStart({ input }: Run): void {
  const { definition, tenant, principal, tags, metadata } = input;
  emit(
    'run.started',
    {
      workflowId: definition.id,
      inputs: shownVariables(definition, input.variables),
      transport: 'rest',
      owner: { tenant, principal },
      ...(tags ? { tags: [...tags] } : {}),
      ...(metadata ? { metadata } : {}),
    },
    { key: 'run.started' },
  );
}

/** Waits until the run, or this segment of it, has ended. */
async function interpret(run: Run): Promise<Ending> {
  const clock = startClock(run);
  for (;;) {
    await condition(wantsNewSegment(run));
    if (!run.ending) await endSegment(run);
    if (run.ending) {
      clock?.cancel();
      return run.ending;
    }
  }
}

/** Only for a limit that somebody asked for: the ceiling alone is Temporal's own timeout. */
function startClock(run: Run): CancellationScope | undefined {
  const limitMs = durationLimitMs(run.input);
  if (limitMs >= run.input.limits.maxRunDurationMs) return undefined;
  const clock = new CancellationScope();
  clock.run(() => watchDuration(run, limitMs)).catch(() => undefined);
  return clock;
}

/** Ends the run when its time is over (spec/01 §8 run-duration). */
async function watchDuration(run: Run, limit: number): Promise<void> {
  const leftMs = run.state.startedAtMs + limit - Date.now();
  await condition(() => run.ending !== undefined, Math.max(leftMs, 1));
  if (run.ending) return;
  const observed = Math.max(Date.now() - run.state.startedAtMs, limit + 1);
  emit(
    'cap.breached',
    { kind: 'run-duration', limit, observed },
    { key: 'cap.breached|run-duration' },
  );
  endRun(run, { kind: 'failed', error: durationError(limit, observed) });
}

/**
 * Looks once after each progress of the run, never in between: a workflow task that only refuses a message leaves no
 * job in history, and a replay would not look there.
 */
function wantsNewSegment(run: Run): () => boolean {
  let seen = run.progress;
  return () => {
    if (run.ending) return true;
    if (run.progress === seen) return false;
    seen = run.progress;
    const { continueAsNewSuggested, historyLength } = workflowInfo();
    if (continueAsNewSuggested) return true;
    return (
      historyLength >= (run.input.forceContinueAsNewAfter ?? Infinity) &&
      run.state.segment < FORCED_SEGMENTS
    );
  };
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
    const state: RunState = { ...run.state, segment: run.state.segment + 1, open: openItems() };
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

/** Holds new steps back until nothing is in flight; else lets the run go on until something has settled. */
async function endSegment(run: Run): Promise<void> {
  const { historyLength, historySize } = workflowInfo();
  const always = historyLength >= DRAIN_ALWAYS_EVENTS || historySize >= DRAIN_ALWAYS_BYTES;
  const oversize = await drain(run, always);
  if (run.ending) return;
  if (oversize && always) return endRun(run, { kind: 'failed', error: STATE_TOO_LARGE });
  const before = run.progress;
  await condition(() => run.ending !== undefined || run.progress > before);
}

const STATE_TOO_LARGE: NodeError = {
  code: 'payload_too_large',
  message: `The state of the run is larger than ${SEGMENT_BYTES} bytes: it cannot be carried on.`,
};

/** True when the segment could end but for the size of its state. */
async function drain(run: Run, always: boolean): Promise<boolean> {
  let oversize = false;
  const frozen = () => freezeWhenDrained(run, () => (oversize = true));
  if (always) {
    run.holding = true;
    await condition(frozen());
  } else if (![...run.queued].some(({ outlasted }) => outlasted)) {
    run.holding = true;
    await drainInTime(run, frozen);
    for (const step of run.queued) step.outlasted = true;
  }
  if (!run.ending) run.holding = false;
  return oversize;
}

/** Branches do not stand beside a call that waits for an agent: nobody knows when one comes. */
async function drainInTime(run: Run, frozen: () => () => boolean): Promise<void> {
  const isOnlyQueued = () => run.queued.size > 0 && run.queued.size === run.inFlight;
  const isFrozen = frozen();
  await condition(() => isFrozen() || isOnlyQueued(), DRAIN_MS);
  if (!run.ending && isOnlyQueued()) await condition(frozen(), DRAIN_QUEUED_MS);
}

/** Clean-up for every ending: frames come to rest, what is open is closed, and the terminal event is stated. */
async function close(run: Run, ending: Exclude<Ending, { kind: 'continue' }>): Promise<void> {
  if (run.active.size > 0) await Promise.all(run.active.values());
  const reason =
    ending.kind === 'failed'
      ? { code: 'run_failed', message: ending.error.message }
      : { code: 'cancelled', message: 'Cancelled.' };
  for (const { type, payload, ...options } of closingsOf(openItems(), reason))
    emit(type, payload, options);
  const { type, payload } = terminalEvent(run, ending);
  emit(type, payload, { key: TERMINAL_KEY });
  endJournal(ending.kind);
  if (!allHandlersFinished()) await condition(allHandlersFinished);
}

function terminalEvent(
  run: Run,
  ending: Exclude<Ending, { kind: 'continue' }>,
): EventOf<'run.completed' | 'run.failed' | 'run.cancelled'> {
  switch (ending.kind) {
    case 'completed':
      return { type: 'run.completed', payload: { outputs: run.state.outputs } };
    case 'failed': {
      const { code, message, details } = ending.error;
      const error = { code, message, ...(details ? { details } : {}) };
      const { failedNodeId } = ending;
      return {
        type: 'run.failed',
        payload: { error, ...(failedNodeId === undefined ? {} : { failedNodeId }) },
      };
    }
    case 'cancelled': {
      const { reason, cancelledBy } = ending;
      return {
        type: 'run.cancelled',
        payload: {
          ...(reason === undefined ? {} : { reason }),
          ...(cancelledBy === undefined ? {} : { cancelledBy }),
        },
      };
    }
  }
}

/** Failed runs fail and cancelled runs cancel the Temporal execution: operators see the same end there. */
function leave(ending: Exclude<Ending, { kind: 'continue' }>): void {
  if (ending.kind === 'failed') {
    throw ApplicationFailure.create({
      type: ending.error.code,
      message: ending.error.code,
      nonRetryable: true,
    });
  }
  if (ending.kind === 'cancelled') throw new CancelledFailure('cancelled');
}
