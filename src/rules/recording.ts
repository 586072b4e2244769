// What a fork is made from (architecture §6): the stimuli that a run was given, in its own batches, and the log that came
// of them. JSON: it enters the fork's history page by page, so that the fork's log needs its source no more.
import { eventRow } from './events.ts';
import { answersHeard } from './heard.ts';
import { activityEventKey, indexOfKey } from './ids.ts';
import type { CausedBy, RecordedEvent, StepResult } from './journal.ts';
import type { JsonValue } from './json.ts';
import { MESSAGES } from './messages.ts';
import type { ForkOf } from './run-input.ts';

/** How an activity ended, as workflow code was told. */
export type RecordedOutcome =
  | { readonly kind: 'completed'; readonly result: StepResult<JsonValue, RecordedEvent> }
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly message: string;
      readonly details?: JsonValue;
      /** It would have been tried again: why it was not. */
      readonly untried?: 'TIMEOUT' | 'CANCEL_REQUESTED';
    }
  /** `type`: Temporal's name of the time that was over. `code`: of the last try that failed, where one did. */
  | { readonly kind: 'timed-out'; readonly type: string; readonly code?: string }
  /** It acknowledged a cancellation. */
  | { readonly kind: 'cancelled' };

/** What made a run go on. */
export type Stimulus =
  | { readonly kind: 'step'; readonly activityId: string; readonly outcome: RecordedOutcome }
  /** Timers have no names: one ends whatever waits until just then. */
  | { readonly kind: 'timer'; readonly deadlineMs: number }
  | {
      readonly kind: 'message';
      readonly update: string;
      readonly updateId: string;
      readonly message: JsonValue;
    }
  | { readonly kind: 'child-ended'; readonly childRunId: string }
  | { readonly kind: 'cancel-requested' };

/** What one workflow task brought together, in the order in which workflow code was given it. */
export interface Batch {
  /** Workflow time, in ms. */
  readonly atMs: number;
  /** A segment begins with it: frames that were under way are dropped, and entered again from the run's state. */
  readonly begins?: true;
  /** Log sequence of the first entry that it, or whatever came behind it, stated. */
  readonly position: number;
  readonly stimuli: readonly Stimulus[];
  /** Activities that it began. */
  readonly began: readonly string[];
  /** More stimuli of the batch before: one page holds only so many. */
  readonly isMore?: true;
  /** The run was a fork itself, and left its own source before this. */
  readonly leaves?: ForkOf;
  /** Of a first batch, where the run began by another clock: that of the source that it left at once. */
  readonly beganMs?: number;
  /** The run whose own tasks begin with it: ids of children are made of it (childRunIdOf), whoever is given the batch. */
  readonly lived?: string;
}

/** Part of a recording, as an activity of the fork gives it. */
export interface RecordingPage extends Recording {
  readonly sourceRunId: string;
  /** So many of `entries` are the fork's own log, before anything that it states. */
  readonly prefix: number;
  readonly isLast: boolean;
}

/** A log row of the source, without what is derived from its run. */
export interface RecordedEntry {
  readonly key: string;
  readonly type: string;
  readonly nodeId?: string;
  readonly causedBy?: CausedBy;
  readonly payload: string;
  readonly timestampMs: number;
  /** No code stated it: its run was ended from outside, and translate closed what was open. */
  readonly isDerived?: true;
}

export interface Recording {
  readonly batches: readonly Batch[];
  /** By sequence, from 0. */
  readonly entries: readonly RecordedEntry[];
}

/** What a run by another name is given: whatever names the run names that one, but who lived it. */
export function renamed(batches: readonly Batch[], from: string, to: string): Batch[] {
  return batches.map(({ lived, ...batch }) => ({
    ...(JSON.parse(JSON.stringify(batch).replaceAll(from, to)) as Batch),
    ...(lived === undefined ? {} : { lived }),
  }));
}

/** A run's own record says which of it the run lived itself: of a fork what is behind its source. */
export function livedBy(runId: string, { batches, entries }: Recording, fork?: ForkOf): Recording {
  const own = fork ? batches.findLastIndex(({ leaves }) => leaves !== undefined) : 0;
  return {
    batches: batches.map((batch, at) =>
      at === own && batch.lived === undefined ? { ...batch, lived: runId } : batch,
    ),
    entries,
  };
}

/** Batches as they were before they went into pages. */
export function wholeBatches(parts: readonly Batch[]): Batch[] {
  const batches: Batch[] = [];
  for (const part of parts) {
    const last = batches.at(-1);
    if (part.isMore && last)
      batches[batches.length - 1] = { ...last, stimuli: [...last.stimuli, ...part.stimuli] };
    else batches.push(part);
  }
  return batches;
}

/** The time that a run of this recording begins with, in ms. */
export function beginningMs({ batches }: Pick<Recording, 'batches'>): number {
  const [first] = batches;
  return first?.beganMs ?? first?.atMs ?? 0;
}

/**
 * Where a fork's own log begins: at `fromSeq`, but not behind what no code stated. That tells an end that the fork has not
 * come to.
 */
export function ownFrom(
  { fromSeq }: Pick<ForkOf, 'fromSeq'>,
  entries: readonly RecordedEntry[],
): number {
  const derived = entries.findIndex(({ isDerived }) => isDerived);
  return derived < 0 ? fromSeq : Math.min(fromSeq, derived);
}

/** What a fork is given of a recording. */
export interface Given {
  readonly batches: readonly Batch[];
  /** The last batch lacks a part: what its source stated behind it need not come. */
  readonly isCut: boolean;
  /** The first one that is not given. */
  readonly behind?: Batch | undefined;
}

/**
 * A branch lives from its first batch that stated nothing before `fromSeq`, and does again what came to its end behind it;
 * what was answered behind it is asked.
 * A replay goes on where its source was cancelled, unless what came of that is its log already (replay.md §Modes).
 */
export function givenOf(of: ForkOf, { batches, entries }: Recording): Given {
  const places = new Map(entries.map(({ key }, sequence) => [key, sequence]));
  const isAgain = (stimulus: Stimulus): boolean => {
    if (of.mode === 'replay' || stimulus.kind !== 'step') return false;
    const { activityId, outcome } = stimulus;
    if (outcome.kind !== 'completed' || outcome.result.events.length === 0) return false;
    const first = places.get(activityEventKey(activityId, 0));
    return first !== undefined && first >= of.fromSeq;
  };
  const givenOfAnswers = answersBefore(of, { batches, entries });
  const given: Batch[] = [];
  for (const batch of batches) {
    const { position, stimuli } = batch;
    if (of.mode === 'branch' && position >= of.fromSeq) break;
    const isLeftOut = (it: Stimulus) =>
      of.mode === 'replay' && !of.isWhole && position >= of.fromSeq && isCancel(it);
    const isCut = stimuli.some(isLeftOut);
    const own = stimuli
      .filter((it) => !isLeftOut(it) && !isAgain(it))
      .flatMap((it) => givenOfAnswers(it) ?? []);
    const isWhole = own.length === stimuli.length && own.every((it, at) => it === stimuli[at]);
    given.push(isWhole ? batch : { ...batch, stimuli: own });
    if (isCut) return { batches: given, isCut };
  }
  return { batches: given, isCut: false, behind: batches[given.length] };
}

/**
 * What a branch is given of a message, or of answers that were read in a record: of a question whose answer its source's log
 * tells after `fromSeq`, what was heard before (votes, questions back). The answer of an overlay is part of how a run left its
 * source, and given with that.
 */
function answersBefore(
  { mode, fromSeq }: ForkOf,
  { batches, entries }: Recording,
): (stimulus: Stimulus) => Stimulus | undefined {
  if (mode === 'replay') return (stimulus) => stimulus;
  const answeredAt = answersIn(entries);
  const toldBefore = heardBefore(fromSeq, entries);
  const isAfter = (interruptId: string, place = Infinity) =>
    (answeredAt.get(interruptId) ?? -1) >= fromSeq && place > (toldBefore.get(interruptId) ?? 0);
  const heard = answersHeard(batches);
  const places = new Map(heard.map(({ stimulus, place }) => [stimulus, place]));
  const notGiven = heard.filter(({ interruptId, place }) => isAfter(interruptId, place));
  // Of those that one step has read the first stands.
  const cuts = new Map(notGiven.reverse().map(({ stimulus, index }) => [stimulus, index]));
  return (stimulus) => {
    if (stimulus.kind === 'step')
      return cuts.has(stimulus) ? withAnswers(stimulus, cuts.get(stimulus)) : stimulus;
    if (stimulus.kind !== 'message') return stimulus;
    const { interruptId = '' } = stimulus.message as { interruptId?: string };
    return isAfter(interruptId, places.get(stimulus)) ? undefined : stimulus;
  };
}

/** As if the record had ended there. */
function withAnswers(read: Extract<Stimulus, { kind: 'step' }>, count: number | undefined) {
  if (read.outcome.kind !== 'completed') return read;
  const { result } = read.outcome;
  const { answers, ...more } = result.output as { answers: JsonValue[] };
  const output = { ...more, answers: answers.slice(0, count) };
  return { ...read, outcome: { ...read.outcome, result: { ...result, output } } };
}

/** Where each question was answered. */
function answersIn(entries: readonly RecordedEntry[]): Map<string, number> {
  const answered = new Map<string, number>();
  entries.forEach(({ type, payload }, sequence) => {
    if (eventRow(type).part !== 'wait-ends') return;
    const { interruptId, kind } = JSON.parse(payload) as { interruptId?: string; kind?: string };
    // What closed a conversation has stated that before.
    if (interruptId !== undefined && kind !== 'conversation.exchange')
      answered.set(interruptId, sequence);
  });
  return answered;
}

/** By question: how many of its answers had been heard by the last one that the log tells before `fromSeq`. */
function heardBefore(fromSeq: number, entries: readonly RecordedEntry[]): Map<string, number> {
  const questions = new Map<unknown, string>();
  const heard = new Map<string, number>();
  for (const { key, type, payload, causedBy } of entries.slice(0, fromSeq)) {
    const { part } = eventRow(type);
    if (part === 'wait-opens')
      questions.set(key, (JSON.parse(payload) as { interruptId: string }).interruptId);
    const interruptId = questions.get(causedBy);
    if (interruptId !== undefined && (part === 'vote' || part === 'asked-back'))
      heard.set(interruptId, indexOfKey(key) ?? 0);
  }
  return heard;
}

function isCancel(stimulus: Stimulus): boolean {
  return (
    stimulus.kind === 'cancel-requested' ||
    (stimulus.kind === 'message' && stimulus.update === MESSAGES.cancel.update)
  );
}
