// What a run is: one workflow execution (or a chain of them) that interprets a workflow definition. It starts the
// nodes that can start, lets each visit run, waits for humans and clocks, and states everything in the journal. It
// ends once: completed, failed or cancelled.
import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  allHandlersFinished,
  continueAsNew,
} from '@temporalio/workflow';
import { graphOf } from '../src/rules/definition-graph.ts';
import { closingsOf } from '../src/rules/endings.ts';
import { TERMINAL_KEY } from '../src/rules/ids.ts';
import type { EventOf } from '../src/rules/events.ts';
import { withOverlay } from '../src/rules/overlay.ts';
import { ownerOf, type RunInput } from '../src/rules/run-input.ts';
import { stateMessage } from './channels.ts';
import { endLeftChildren } from './child-runs.ts';
import { traceCauses } from './causes.ts';
import { startClocks } from './clocks.ts';
import { compareEnd, endBroken, frameRest, stateApart } from './divergence.ts';
import { passCancellation } from './failures.ts';
import { loadFork, openRecord, playRecord, stepsBehind, type Fork } from './fork.ts';
import { loadPatterns, needsPatterns } from '../src/rules/conditions.ts';
import { newScope, type Ending, type Run } from './context.ts';
import { newRunState, restoredRunState } from './frames.ts';
import { emit, endedAs, endJournal, openItems, openJournal, restoreOpenItems } from './journal.ts';
import { answerMessages } from './messages.ts';
import { restorePause } from './pause.ts';
import type { RecordedSteps } from './recorded-steps.ts';
import { clockOf, rehearsed, stateClock } from './rehearsal.ts';
import { startFrames } from './schedule.ts';
import { endSegment, wantsNewSegment } from './segments.ts';
import { runKey, type Steps } from './steps.ts';
import { heldBytesOf, runOutputs, shownVariables } from './values.ts';

export async function runWorkflow(input: RunInput): Promise<void> {
  openJournal(input.tenant);
  const fork = input.fork && (await loadFork(input, input.fork));
  try {
    if (needsPatterns(input.definition)) await loadPatterns();
    const run = open(input, fork?.steps ?? stepsBehind(input));
    // Before a message can come: it must find what was carried, and nothing of its own is restored.
    restorePause(run);
    answerMessages(run);
    if (fork) openRecord(run, fork);
    if (run.state.segment === 0) stateStart(run);
    startFrames(run);
    const ending = await CancellationScope.nonCancellable(() => live(run, fork));
    if (ending.kind === 'continue')
      return continueAsNew<typeof runWorkflow>({ ...input, carried: run.frozen });
    return leave(ending);
  } catch (error) {
    // As it ends.
    if (!fork || endedAs() !== undefined) throw error;
    return endBroken(input, fork, error);
  }
}

/** To its end, or to the end of this segment; shielded, so that only `cancel` stops what runs. */
async function live(run: Run, fork: Fork | undefined): Promise<Ending> {
  if (fork) playRecord(run, fork).catch(passCancellation);
  const ending = await interpret(run, fork?.steps);
  if (ending.kind === 'continue') return ending;
  const end = await close(run, fork);
  return end;
}

function open(asked: RunInput, steps: Steps): Run {
  const { carried } = asked;
  const state =
    carried === undefined
      ? newRunState(asked.rehearsal?.fromMs ?? steps.now(runKey('start')), asked)
      : restoredRunState(carried);
  const input = withOverlay(asked, state.overlay);
  const clock = asked.rehearsal && clockOf(asked.rehearsal, steps, state);
  if (clock) state.clock = clock.state;
  restoreOpenItems(state.open);
  traceCauses(state.causes);
  return {
    input,
    state,
    ...(clock ? { clock, steps: rehearsed(clock) } : { steps }),
    graph: graphOf(input.definition),
    nodes: new Map(input.definition.nodes.map((node) => [node.id, node])),
    scope: newScope(),
    active: new Map(),
    scopes: new Map(),
    inFlight: 0,
    queued: new Set(),
    atRest: new Map(),
    heldBytes: heldBytesOf(state),
    holding: new Set(),
    livedAs: input.runId,
    kin: new Set(),
    progress: 0,
  };
}

const STARTED_KEY = 'run.started';

function stateStart(run: Run): void {
  const { input } = run;
  const { definition, tags, metadata } = input;
  emit(
    'run.started',
    {
      workflowId: definition.id,
      inputs: shownVariables(definition, input.variables),
      transport: 'rest',
      owner: ownerOf(input),
      ...(tags ? { tags: [...tags] } : {}),
      ...(metadata ? { metadata } : {}),
    },
    { key: STARTED_KEY, causedBy: input.header.startedBy },
  );
  traceCauses([['', STARTED_KEY]]);
  stateClock(run);
  stateMessage(run);
}

/** Waits until the run, or this segment of it, has ended. */
async function interpret(run: Run, recorded: RecordedSteps | undefined): Promise<Ending> {
  startClocks(run);
  // No segment of a fork ends before it lives: its history holds what it is made from.
  if (recorded) await recorded.until(() => run.ending !== undefined || recorded.isLive());
  for (;;) {
    await run.steps.until(wantsNewSegment(run));
    if (!run.ending) await endSegment(run);
    if (run.ending) {
      run.clocks?.cancel();
      return run.ending;
    }
  }
}

/** Clean-up for every ending: frames and children come to rest, what is open is closed, and the terminal event is stated. */
async function close(run: Run, fork: Fork | undefined): Promise<End> {
  if (run.active.size > 0) await (fork ? frameRest(run, fork) : Promise.all(run.active.values()));
  await endLeftChildren(run);
  if (fork) stateApart(run, fork);
  const before = endOf(run);
  const reason =
    before.kind === 'failed'
      ? { code: 'run_failed', message: before.error.message }
      : { code: 'cancelled', message: 'Cancelled.' };
  for (const { type, payload, ...options } of closingsOf(openItems(), reason))
    emit(type, payload, options);
  if (fork) compareEnd(run, fork, { ...terminalEvent(run, before), causedBy: run.endedBy });
  const ending = endOf(run);
  const { type, payload } = terminalEvent(run, ending);
  emit(type, payload, { key: TERMINAL_KEY, because: run.endedBy });
  endJournal(ending.kind);
  await tellParent(run);
  if (!allHandlersFinished()) await run.steps.until(allHandlersFinished);
  return ending;
}

type End = Exclude<Ending, { kind: 'continue' }>;

/** What it comes to by now. */
function endOf({ ending }: Run): End {
  if (!ending || ending.kind === 'continue') throw new Error('the run has not ended');
  return ending;
}

/** Its end stands in the log by then: who is told may look at once. */
async function tellParent({ input, steps }: Run): Promise<void> {
  const { parentRunId } = input.header;
  if (parentRunId !== undefined) await steps.tellParent(parentRunId, { childRunId: input.runId });
}

function terminalEvent(
  run: Run,
  ending: End,
): EventOf<'run.completed' | 'run.failed' | 'run.cancelled'> {
  switch (ending.kind) {
    case 'completed':
      return { type: 'run.completed', payload: { outputs: runOutputs(run) } };
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
      const { reason, cancelledBy, parentRunId } = ending;
      return {
        type: 'run.cancelled',
        payload: {
          ...(reason === undefined ? {} : { reason }),
          ...(cancelledBy === undefined ? {} : { cancelledBy }),
          ...(parentRunId === undefined ? {} : { parentRunId }),
        },
      };
    }
  }
}

/** Failed runs fail and cancelled runs cancel the Temporal execution: operators see the same end there. */
function leave(ending: End): void {
  if (ending.kind === 'failed') {
    throw ApplicationFailure.create({
      type: ending.error.code,
      message: ending.error.code,
      nonRetryable: true,
    });
  }
  if (ending.kind === 'cancelled') throw new CancelledFailure('cancelled');
}
