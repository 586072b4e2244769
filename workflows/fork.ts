// A fork (architecture §6): the same code as every run, first on what its source was given, held against what that
// stated, and live from where it leaves the record.
//
//   mode    is given                          then
//   branch  what came before `fromSeq`        lives: what was under way there is begun again
//   replay  everything but a cancel           a step that the record lacks is replay_source_missing; clocks run on
//
// The first difference is stated (replay.diverged), and ends the fork.
import { CancellationScope } from '@temporalio/workflow';
import { MESSAGES } from '../src/rules/messages.ts';
import { eventIdOf, activityEventKey } from '../src/rules/ids.ts';
import type { Batch, RecordedEntry, Recording, Stimulus } from '../src/rules/recording.ts';
import type { ForkOf, RunInput } from '../src/rules/run-input.ts';
import { Comparison } from './comparison.ts';
import { endRun, type Run } from './context.ts';
import type { RunState } from './frames.ts';
import { compareWith, emit } from './journal.ts';
import { liveSteps, readRecording } from './live-steps.ts';
import { takeOverlay } from './overlay.ts';
import { recordedSteps, type RecordedSteps } from './recorded-steps.ts';
import { isCrowded, type Steps } from './steps.ts';

/** Pages of one recording. */
const MAX_PAGES = 2_000;
/** Batches that are delivered in one workflow task. */
const BATCHES_PER_TASK = 100;

export interface Fork {
  readonly of: ForkOf;
  readonly steps: RecordedSteps;
  readonly batches: readonly Batch[];
  readonly comparison: Comparison;
}

/** Undefined: the run is no fork, or lives already. */
export async function loadFork(input: RunInput, fork: ForkOf): Promise<Fork | undefined> {
  if (input.carried !== undefined) return undefined;
  const steps = recordedSteps(liveSteps());
  const { batches, entries } = await CancellationScope.nonCancellable(() => read(input, fork));
  const comparison = new Comparison(input.runId, fork, entries);
  compareWith(comparison);
  steps.startAt(batches[0]?.atMs ?? 0);
  return { of: fork, steps, batches, comparison };
}

async function read({ runId, tenant }: RunInput, fork: ForkOf): Promise<Recording> {
  const batches: Batch[] = [];
  const entries: RecordedEntry[] = [];
  for (let page = 0, isLast = false; !isLast && page < MAX_PAGES; page++) {
    const recording = await readRecording({ runId, tenant, fork, page });
    batches.push(...recording.batches);
    entries.push(...recording.entries);
    ({ isLast } = recording);
  }
  return { batches, entries };
}

/** Of a run that plays no record in this segment: a fork that has left its own goes on as it did. */
export function stepsBehind({ fork }: RunInput): Steps {
  if (!fork) return liveSteps();
  const steps = recordedSteps(liveSteps());
  const { mode, overlay } = fork;
  steps.goLive({ mode, overlay, laterMs: 0, streams: new Map() });
  return steps;
}

/** Gives the run what its source was given, as far as the fork goes, and lets it live then. */
export async function playRecord(run: Run, fork: Fork): Promise<void> {
  const { steps, comparison } = fork;
  for (const [index, batch] of fork.batches.entries()) {
    if (isBehind(fork, batch)) break;
    const isCut = batch.stimuli.some((it) => isLeftOut(fork, batch, it));
    const given = [...(index === 0 ? [] : messagesOf(fork, batch)), ...worldOf(fork, batch)];
    await steps.deliver(batch, given);
    if (isCut) break;
    comparison.reached(reachedBy(fork, index));
    if (steps.isBroken() || diverged(run, fork)) break;
    const isLong = index % BATCHES_PER_TASK === BATCHES_PER_TASK - 1;
    if (isLong || isCrowded(run)) await liveSteps().nextTask(run);
  }
  comparison.end();
  leaveRecord(run, fork);
}

/** A branch lives from its first batch that stated nothing before `fromSeq`. */
function isBehind({ of }: Fork, batch: Batch): boolean {
  return of.mode === 'branch' && batch.position >= of.fromSeq;
}

/** Before anything runs: a message that waited is taken first. */
export function openRecord(fork: Fork): void {
  const [first] = fork.batches;
  if (first && !isBehind(fork, first)) fork.steps.tell(messagesOf(fork, first));
}

function messagesOf(fork: Fork, batch: Batch): readonly Stimulus[] {
  return batch.stimuli.filter((it) => it.kind === 'message' && !isLeftOut(fork, batch, it));
}

function worldOf(fork: Fork, batch: Batch): readonly Stimulus[] {
  return batch.stimuli.filter(
    (it) => it.kind !== 'message' && !isLeftOut(fork, batch, it) && !isAgain(it, fork),
  );
}

/** A replay goes on where its source was cancelled, unless what came of that is its log already (replay.md §Modes). */
function isLeftOut({ of }: Fork, { position }: Batch, stimulus: Stimulus): boolean {
  return of.mode === 'replay' && position >= of.fromSeq && isCancel(stimulus);
}

function isCancel(stimulus: Stimulus): boolean {
  return (
    stimulus.kind === 'cancel-requested' ||
    (stimulus.kind === 'message' && stimulus.update === MESSAGES.cancel.update)
  );
}

/** What a step came to stands behind `fromSeq`: a branch does it again. */
function isAgain(stimulus: Stimulus, { of, comparison }: Fork): boolean {
  if (of.mode === 'replay') return false;
  if (stimulus.kind !== 'step' || stimulus.outcome.kind !== 'completed') return false;
  if (stimulus.outcome.result.events.length === 0) return false;
  const first = comparison.sequenceOf(activityEventKey(stimulus.activityId, 0));
  return first !== undefined && first >= of.fromSeq;
}

/** Where the batch behind it begins; a branch is held to nothing that it does again. */
function reachedBy({ of, batches, comparison }: Fork, index: number): number {
  const next = batches[index + 1]?.position ?? comparison.length;
  return of.mode === 'branch' ? Math.min(next, of.fromSeq) : next;
}

/** Engine and people see where it left its source, and why it ended (replay.md §Divergence). */
function diverged(run: Run, { of, comparison }: Fork): boolean {
  const found = comparison.divergence;
  if (!found) return false;
  const { kind, atSequence, key, type } = found;
  const { runId } = run.input;
  const stated = kind !== 'missing';
  const recorded = kind !== 'extra';
  emit(
    'replay.diverged',
    {
      ...{ sourceRunId: of.sourceRunId, atSequence, divergenceKind: kind, divergencePoint: type },
      ...(recorded ? { originalEventId: eventIdOf(of.sourceRunId, key) } : {}),
      ...(stated ? { replayEventId: eventIdOf(runId, key) } : {}),
    },
    { key: DIVERGED_KEY },
  );
  const message = `The fork states something else than its source at ${atSequence}.`;
  endRun(run, {
    kind: 'failed',
    error: { code: 'replay_diverged', message, details: { atSequence, divergenceKind: kind } },
  });
  return true;
}

const DIVERGED_KEY = 'replay.diverged';

/** Steps are live; deadlines count from when the fork was made as they counted from where it leaves its source. */
function leaveRecord(run: Run, { steps, of, comparison }: Fork): void {
  const { mode, laterMs, overlay } = of;
  shiftDeadlines(run.state, laterMs);
  takeOverlay(run, overlay);
  steps.goLive({ mode, laterMs, overlay, streams: comparison.openStreams() });
  if (overlay?.answer?.kind === 'message') steps.enter(overlay.answer.message);
  const isAsking = Object.values(run.state.interrupts).some(({ resolution }) => !resolution);
  if (steps.isReplay() && isAsking) endRun(run, { kind: 'failed', error: UNANSWERED });
}

const UNANSWERED = {
  code: 'replay_source_missing',
  message: 'The source has no record of an answer to what it asked.',
};

/** Whatever the state holds that ends at a time. */
function shiftDeadlines(state: RunState, laterMs: number): void {
  state.startedAtMs += laterMs;
  for (const frame of Object.values(state.frames)) {
    if (frame.deadlineMs !== undefined) frame.deadlineMs += laterMs;
    if (frame.resumeAtMs !== undefined) frame.resumeAtMs += laterMs;
    if (typeof frame.data.untilMs === 'number') frame.data.untilMs += laterMs;
  }
  for (const open of Object.values(state.interrupts))
    if (open.deadlineMs !== undefined) open.deadlineMs += laterMs;
}
