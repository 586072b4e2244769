// A fork (architecture §6): the same code as every run, first on what its source was given, held against what that
// stated, and live from where it leaves the record.
//
//   mode    is given                          then
//   branch  what came before `fromSeq`        lives: what was under way there is begun again
//   replay  everything but a cancel           a step that the record lacks is replay_source_missing; clocks run on
//   whole   everything                        rests: there is nothing but the record (replays of bundles)
//
// The first difference is stated (replay.diverged), and ends the fork, or a branch lives from there (onDivergence).
import { ApplicationFailure, CancellationScope } from '@temporalio/workflow';
import { closingsOf } from '../src/rules/endings.ts';
import { eventIdOf, TERMINAL_KEY, WENT_ON_KEY } from '../src/rules/ids.ts';
import {
  beginningMs,
  givenOf,
  type Batch,
  type Given,
  type RecordedEntry,
  type Recording,
  ownFrom,
  wholeBatches,
  type Stimulus,
} from '../src/rules/recording.ts';
import { madeAtMs, type ForkOf, type RunInput } from '../src/rules/run-input.ts';
import { renameChildren, shiftChildren } from './child-forks.ts';
import { Comparison, type Divergence } from './comparison.ts';
import { endRun, type Run } from './context.ts';
import { restoredRunState, type RunState } from './frames.ts';
import { failureOf } from './failures.ts';
import { compareWith, emit, endJournal, noteLive, openItems } from './journal.ts';
import { forkChildren, liveSteps, readRecording } from './live-steps.ts';
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
  readonly given: Given;
  /** By its source's clock. */
  readonly beganMs: number;
  readonly comparison: Comparison;
}

/** Undefined: the run is no fork, or lives already. */
export async function loadFork(input: RunInput, asked: ForkOf): Promise<Fork | undefined> {
  if (input.carried !== undefined) return undefined;
  const steps = recordedSteps(liveSteps());
  const recording = await CancellationScope.nonCancellable(() => made(input, asked)).catch(
    endUnread,
  );
  const fork = { ...asked, fromSeq: ownFrom(asked, recording.entries) };
  const given = givenOf(fork, recording);
  const goesOn =
    fork.overlay?.onDivergence === 'live'
      ? (found: Divergence) => stateGoingOn(input, comparison, { of: fork, found })
      : undefined;
  const comparison: Comparison = new Comparison(input.runId, {
    fork,
    entries: recording.entries,
    goesOn,
  });
  compareWith(comparison);
  const beganMs = beginningMs(recording);
  steps.startAt(beganMs, recording.batches);
  return { of: fork, steps, given, beganMs, comparison };
}

/** The fork says why it is none, and ends. */
function endUnread(error: unknown): never {
  const cause = failureOf(error);
  if (!cause) throw error;
  const code = 'replay_source_missing';
  const message = 'The record of the source cannot be read.';
  const details = { cause: cause.code, reason: cause.message };
  const payload = { error: { code, message, details } };
  emit('run.failed', payload, { key: TERMINAL_KEY });
  endJournal('failed');
  throw ApplicationFailure.create({ type: code, message: code, nonRetryable: true });
}

/** Its children first: no log of this run ends by then, so that none of them comes too late. */
async function made(input: RunInput, fork: ForkOf): Promise<Recording> {
  const { runId, tenant } = input;
  if (fork.hasChildren) await forkChildren({ runId, tenant, fork });
  return read(input, fork);
}

async function read({ runId, tenant, header }: RunInput, fork: ForkOf): Promise<Recording> {
  const batches: Batch[] = [];
  const entries: RecordedEntry[] = [];
  for (let page = 0, isLast = false; !isLast && page < MAX_PAGES; page++) {
    const { startedBy } = header;
    const asked = { runId, tenant, fork, page, ...(startedBy ? { startedBy } : {}) };
    const recording = await readRecording(asked);
    batches.push(...recording.batches);
    entries.push(...recording.entries);
    ({ isLast } = recording);
  }
  return { batches: wholeBatches(batches), entries };
}

/** Of a run that plays no record in this segment: a fork that has left its own goes on as it did. */
export function stepsBehind({ fork, carried }: RunInput): Steps {
  if (!fork) return liveSteps();
  const steps = recordedSteps(liveSteps());
  const overlay = carried === undefined ? undefined : restoredRunState(carried).overlay;
  const children = new Map();
  steps.leave({ mode: fork.mode, overlay, laterMs: 0, streams: new Map(), children });
  return steps;
}

/** Gives the run what its source was given, as far as the fork goes, and lets it live then. */
export async function playRecord(run: Run, fork: Fork): Promise<void> {
  const { of, steps, comparison, given } = fork;
  const { batches, isCut } = given;
  let count = 0;
  let atMs = fork.beganMs;
  for (const batch of batches) {
    if (batch.leaves) {
      const { leaves, lived = run.livedAs } = batch;
      leave(run, fork, { of: leaves, lived, fromMs: atMs, atMs: batch.atMs });
    }
    await steps.deliver(batch, count === 0 ? batch.stimuli.filter(isOfWorld) : inOrder(batch));
    atMs = batch.atMs;
    const next = batches[++count]?.position ?? comparison.length;
    if (isCut && count === batches.length) break;
    // A branch is held to nothing that it does again.
    comparison.reached(of.mode === 'branch' ? Math.min(next, of.fromSeq) : next);
    if (steps.isBroken() || diverged(run, fork)) break;
    if (count % BATCHES_PER_TASK === 0 || isCrowded(run)) await liveSteps().nextTask(run);
  }
  comparison.end();
  if (of.isWhole) return;
  noteLive(count);
  leave(run, fork, { of, lived: run.input.runId, fromMs: atMs });
}

/** Before anything runs: a message that waited is taken first. */
export function openRecord(run: Run, { of, steps, given }: Fork): void {
  const [first] = given.batches;
  run.livedAs = (first?.leaves ?? of).sourceRunId;
  if (first?.lived !== undefined && !first.leaves) run.livedAs = first.lived;
  if (first) steps.tell(first.stimuli.filter((it) => !isOfWorld(it)));
}

function isOfWorld({ kind }: Stimulus): boolean {
  return kind !== 'message';
}

/** As workflow code is given them: what children tell, messages, and then all else. */
function inOrder({ stimuli }: Batch): Stimulus[] {
  const placeOf = ({ kind }: Stimulus) => (kind === 'child-ended' ? 0 : kind === 'message' ? 1 : 2);
  return [...stimuli].sort((one, other) => placeOf(one) - placeOf(other));
}

/** Engine and people see where it left its source, and why it ended (replay.md §Divergence). */
function diverged(run: Run, { of, comparison }: Fork): boolean {
  const found = comparison.divergence;
  if (!found) return false;
  if (of.overlay?.onDivergence === 'live') return true;
  stateDiverged(run.input, { of, found, key: DIVERGED_KEY });
  const { kind, atSequence } = found;
  const message = `The fork states something else than its source at ${atSequence}.`;
  endRun(run, {
    kind: 'failed',
    error: { code: 'replay_diverged', message, details: { atSequence, divergenceKind: kind } },
  });
  return true;
}

/** Before the first fact of its own: what its log has open from its source, and its own code does not know, is over. */
function stateGoingOn(
  input: RunInput,
  comparison: Comparison,
  { of, found }: { readonly of: ForkOf; readonly found: Divergence },
): void {
  stateDiverged(input, { of, found, key: WENT_ON_KEY });
  const reason = { code: 'replay_diverged', message: 'The fork lives on its own from before it.' };
  for (const { type, payload, ...options } of closingsOf(
    comparison.openBeside(openItems()),
    reason,
  ))
    emit(type, payload, { ...options, because: WENT_ON_KEY });
}

const DIVERGED_KEY = 'replay.diverged';

function stateDiverged(
  { runId }: RunInput,
  {
    of,
    found,
    ...named
  }: { readonly of: ForkOf; readonly found: Divergence; readonly key: string },
): void {
  const { kind, atSequence, key, type } = found;
  const stated = kind !== 'missing';
  const recorded = kind !== 'extra';
  emit(
    'replay.diverged',
    {
      ...{ sourceRunId: of.sourceRunId, atSequence, divergenceKind: kind, divergencePoint: type },
      ...(recorded ? { originalEventId: eventIdOf(of.sourceRunId, key) } : {}),
      ...(stated ? { replayEventId: eventIdOf(runId, key) } : {}),
    },
    named,
  );
}

/**
 * The run leaves its source at the source's time `fromMs`, or did where it is the source of this one (`atMs`): what is under
 * way is begun again, and deadlines count from when the fork was made as they counted from there.
 */
function leave(run: Run, { steps, comparison }: Fork, { of, lived, fromMs, atMs }: Leaves): void {
  const { mode, inherited, overlay, fromSeq } = of;
  // The clock of a rehearsal goes with it.
  const laterMs = run.clock ? 0 : madeAtMs(of) - fromMs;
  shiftDeadlines(run.state, laterMs);
  shiftChildren(run, laterMs);
  takeOverlay(run, inherited);
  takeOverlay(run, overlay);
  const streams = comparison.openStreams(fromSeq);
  // Of all that it is a fork of, too; an answer is given once.
  const own = { ...run.state.overlay, answer: overlay?.answer };
  const performed = comparison.performed();
  const times = steps.timesLeft() + 1;
  // A replay begins nothing again.
  const children = mode === 'branch' ? renameChildren(run, { livedAs: lived, times }) : new Map();
  steps.leave({ mode, laterMs, overlay: own, streams, performed, children }, atMs);
  if (overlay?.answer?.kind === 'message') steps.enter(overlay.answer.message);
  if (!steps.isReplay()) return;
  const { interrupts, pause, children: begun = {} } = run.state;
  const isAsking = Object.values(interrupts).some(({ resolution }) => !resolution);
  // Nobody is asked, and nobody lets it go on.
  if (isAsking || pause) endRun(run, { kind: 'failed', error: UNANSWERED });
  if (Object.values(begun).some(({ hasEnded }) => !hasEnded))
    endRun(run, { kind: 'failed', error: UNENDED });
}

interface Leaves {
  readonly of: ForkOf;
  /** The run that lives from now on. */
  readonly lived: string;
  readonly fromMs: number;
  readonly atMs?: number;
}

const UNENDED = {
  code: 'replay_source_missing',
  message: 'The source has no record of the end of a child run.',
};

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
