// A fork (architecture §6): the same code as every run, first on what its source was given, held against what that
// stated, and live from where it leaves the record.
//
//   mode    is given                          then
//   branch  what came before `fromSeq`        lives: what was under way there is begun again
//   replay  everything but a cancel           a step that the record lacks is replay_source_missing; clocks run on
//   whole   everything                        rests: there is nothing but the record (replays of bundles)
//
// The first difference ends the fork, or a branch lives from there (divergence.ts).
import { ApplicationFailure, CancelledFailure, isCancellation } from '@temporalio/workflow';
import type { PayloadOf } from '../src/rules/events.ts';
import { TERMINAL_KEY } from '../src/rules/ids.ts';
import { goesByOther } from '../src/rules/overlay.ts';
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
import { durationLimitMs, madeAtMs, type ForkOf, type RunInput } from '../src/rules/run-input.ts';
import { renameChildren, shiftChildren } from './child-forks.ts';
import { Comparison, namesBeside, performedBy } from './comparison.ts';
import { endRun, type Run } from './context.ts';
import { breakOff, stateApart, watchRecord, type Played } from './divergence.ts';
import { dropWords } from './former-words.ts';
import { restoredRunState, type RunState } from './frames.ts';
import { failureOf, isUnreached } from './failures.ts';
import { compareWith, emit, endJournal, noteLive } from './journal.ts';
import { forkChildren, liveSteps, readRecording, spared } from './live-steps.ts';
import { takeOverlay } from './overlay.ts';
import { tellNobody } from './rehearsal.ts';
import type { Delivery, LeftBefore } from './recorded-player.ts';
import { recordedSteps } from './recorded-steps.ts';
import { enterSegment, leaveSegment } from './source-segments.ts';
import { isCrowded, type Steps } from './steps.ts';

/** Pages of one recording. */
const MAX_PAGES = 2_000;
/** Time in ms that each step of loading may take besides the run's own, which runs from when the record is there. */
const LOAD_LIMIT_MS = 600_000;
/** Time in ms that a cancel leaves for it: then the fork ends without. */
const LOAD_GRACE_MS = 30_000;
/** Batches that are delivered in one workflow task. */
const BATCHES_PER_TASK = 100;

export interface Fork extends Played {
  readonly given: Given;
  /** By its source's clock. */
  readonly beganMs: number;
}

/** Undefined: the run is no fork, or lives already. */
export async function loadFork(input: RunInput, asked: ForkOf): Promise<Fork | undefined> {
  if (input.carried !== undefined) return undefined;
  const steps = recordedSteps(liveSteps());
  const limitMs = durationLimitMs(input);
  const recording = await spared(
    () => made(input, asked, limitMs + LOAD_LIMIT_MS),
    LOAD_GRACE_MS,
  ).catch(endUnread);
  const fork = { ...asked, fromSeq: ownFrom(asked, recording.entries) };
  const given = givenOf(fork, recording);
  const comparison = new Comparison(input.runId, { fork, entries: recording.entries });
  compareWith(comparison);
  const beganMs = beginningMs(recording);
  steps.startAt(beganMs, recording.batches);
  return { of: fork, steps, given, beganMs, comparison };
}

function unreadError(
  { code, message }: { readonly code: string; readonly message: string },
  isLate: boolean,
): PayloadOf<'run.failed'>['error'] {
  if (isLate)
    return { code: 'run_timeout', message: 'The record of the source was not read in time.' };
  return {
    code: 'replay_source_missing',
    message: 'The record of the source cannot be read.',
    details: { cause: code, reason: message },
  };
}

/** The fork says why it is none, and ends. */
function endUnread(failed: unknown): never {
  if (isCancellation(failed)) {
    emit('run.cancelled', {}, { key: TERMINAL_KEY });
    endJournal('cancelled');
    throw new CancelledFailure('cancelled');
  }
  const cause = failureOf(failed);
  if (!cause) throw failed;
  const error = unreadError(cause, isUnreached(failed));
  emit('run.failed', { error }, { key: TERMINAL_KEY });
  endJournal('failed');
  const { code } = error;
  throw ApplicationFailure.create({ type: code, message: code, nonRetryable: true });
}

/** Its children first: no log of this run ends by then, so that none of them comes too late. */
async function made(input: RunInput, fork: ForkOf, limitMs: number): Promise<Recording> {
  const { runId, tenant } = input;
  if (fork.hasChildren) await forkChildren({ runId, tenant, fork }, limitMs);
  return read(input, fork, limitMs);
}

async function read(
  { runId, tenant, header }: RunInput,
  fork: ForkOf,
  limitMs: number,
): Promise<Recording> {
  const batches: Batch[] = [];
  const entries: RecordedEntry[] = [];
  for (let page = 0, isLast = false; !isLast && page < MAX_PAGES; page++) {
    const { startedBy } = header;
    const asked = { runId, tenant, fork, page, ...(startedBy ? { startedBy } : {}) };
    const recording = await readRecording(asked, limitMs);
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
  const state: Partial<RunState> = carried === undefined ? {} : restoredRunState(carried);
  steps.leave({ ...behind(state), mode: fork.mode });
  if (state.standing) compareWith(namesBeside(state.standing));
  return steps;
}

/** What a segment goes by whose run left its source in one before it. */
function behind({
  overlay,
  standing,
}: Pick<Partial<RunState>, 'overlay' | 'standing'>): LeftBefore {
  const none = { laterMs: 0, streams: new Map(), children: new Map() };
  return { ...none, overlay, ...(standing ? { performed: performedBy(standing) } : {}) };
}

/** Gives the run what its source was given, as far as the fork goes, and lets it live then. */
export async function playRecord(run: Run, fork: Fork): Promise<void> {
  const { of, steps, comparison, given } = fork;
  const { batches, isCut } = given;
  let count = 0;
  let atMs = fork.beganMs;
  // In one function: no promise stands between the last batch and the leaving, as none does where a fork of this one leaves.
  try {
    for (const batch of batches) {
      if (batch.leaves) {
        const { leaves, lived = run.livedAs } = batch;
        leave(run, fork, { of: leaves, lived, fromMs: atMs, atMs: batch.atMs });
      }
      const isOther = isCut && count === batches.length - 1;
      if (isOther) comparison.end();
      const next = endOf(fork, count);
      const stimuli = count === 0 ? batch.stimuli.filter(isOfWorld) : inOrder(batch);
      const delivery = { stimuli, whenStated: whenStatedBy(fork, count) };
      const begins = batch.begins && count > 0 && !run.ending;
      await steps.deliver(batch, begins ? { ...delivery, segment: segmentOf(run) } : delivery);
      atMs = batch.atMs;
      count++;
      if (isOther) break;
      comparison.reached(next);
      if (steps.isBroken() || comparison.divergence) break;
      if (count % BATCHES_PER_TASK === 0 || isCrowded(run)) await liveSteps().nextTask(run);
    }
  } catch (error) {
    if (!breakOff(run, fork, error)) throw error;
  }
  comparison.end();
  stateApart(run, fork);
  if (of.isWhole) return;
  noteLive(count);
  leave(run, fork, { of, lived: run.input.runId, fromMs: atMs });
}

/** Before anything runs: a message that waited is taken first. */
export function openRecord(run: Run, fork: Fork): void {
  const { of, steps, given, comparison } = fork;
  watchRecord(run, fork);
  // What a batch lacks makes another story of all that comes of it.
  if (given.isCut && given.batches.length === 1) comparison.end();
  const [first] = given.batches;
  run.livedAs = (first?.leaves ?? of).sourceRunId;
  if (first?.lived !== undefined && !first.leaves) run.livedAs = first.lived;
  if (!first) return;
  const stimuli = first.stimuli.filter((it) => !isOfWorld(it));
  steps.tell({ stimuli, whenStated: whenStatedBy(fork, 0) });
}

/** Sequence of the first entry that the source stated after this batch. */
function endOf({ given, comparison }: Fork, batch: number): number {
  return (given.batches[batch + 1] ?? given.behind)?.position ?? comparison.length;
}

/** Seen from the end of this batch. */
function whenStatedBy(fork: Fork, batch: number): Delivery['whenStated'] {
  const next = endOf(fork, batch);
  return (key) => fork.comparison.whenStated(key, next);
}

function segmentOf(run: Run): NonNullable<Delivery['segment']> {
  return {
    leave() {
      leaveSegment(run);
      return behind(run.state);
    },
    enter: () => enterSegment(run),
  };
}

function isOfWorld({ kind }: Stimulus): boolean {
  return kind !== 'message';
}

/** As workflow code is given them: what children tell, messages, and then all else. */
function inOrder({ stimuli }: Batch): Stimulus[] {
  const placeOf = ({ kind }: Stimulus) => (kind === 'child-ended' ? 0 : kind === 'message' ? 1 : 2);
  return [...stimuli].sort((one, other) => placeOf(one) - placeOf(other));
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
  dropWords(run.state);
  if (mode === 'branch') {
    run.state.sourceLength = fromSeq;
    for (const frame of Object.values(run.state.frames)) frame.sourceLength = fromSeq;
  }
  const before = run.state.overlay;
  takeOverlay(run, inherited);
  takeOverlay(run, overlay);
  const streams = comparison.openStreams(fromSeq);
  // Of all that it is a fork of, too; an answer is given once.
  const own = { ...run.state.overlay, answer: overlay?.answer };
  const standing = comparison.standing();
  if (standing.length > 0) run.state.standing = standing;
  const performed = performedBy(standing);
  const times = steps.timesLeft() + 1;
  // A replay begins nothing again.
  const children = mode === 'branch' ? renameChildren(run, { livedAs: lived, times }) : new Map();
  const strangers = tellNobody(run);
  steps.leave({ mode, laterMs, overlay: own, streams, performed, children, strangers }, atMs);
  // The overlay's answer takes the place of the one that its source heard there.
  if (overlay?.answer?.kind === 'message') steps.enter(overlay.answer.message);
  if (mode === 'branch') askRecordAgain(run.state);
  if (goesByOther(before, run.state.overlay)) noteHeard(run.state);
  if (!steps.isReplay()) return;
  const { interrupts, pause, children: begun = {} } = run.state;
  const isAsking = Object.values(interrupts).some(({ resolution }) => !resolution);
  // Nobody is asked, and nobody lets it go on.
  if (isAsking || pause) endRun(run, { kind: 'failed', error: UNANSWERED });
  if (Object.values(begun).some(({ hasEnded }) => !hasEnded))
    endRun(run, { kind: 'failed', error: UNENDED });
}

/** It may have been left in the middle of what it was given of its record, or goes by another one. */
function askRecordAgain({ interrupts }: RunState): void {
  for (const open of Object.values(interrupts)) {
    delete open.isSought;
    delete open.isUnnoted;
  }
}

/** What was heard so far are answers of the record that the fork goes by. */
function noteHeard({ interrupts }: RunState): void {
  for (const open of Object.values(interrupts)) open.heardOfRecord = open.heard;
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
