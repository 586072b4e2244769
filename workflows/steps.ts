// The one seam between workflow code and time, the world and people (architecture §4). Live Steps talk to Temporal
// (live-steps.ts); architecture §6 says what recorded ones do: they give each call what a recording holds under its
// key. So every activity, wait and clock read of a visit has a key of its own, the same in every replay.
import { CancellationScope } from '@temporalio/workflow';
import type { Activities } from '../activities/contract.ts';
import type { ChildEnded } from '../src/rules/children.ts';
import { activityIdOf, encodeTuple } from '../src/rules/ids.ts';
import type { MessageOutcome, RunMessage } from '../src/rules/messages.ts';
import { tupleOf, type Place, type Run } from './context.ts';
import { isTaskFull } from './journal.ts';

/** Those that belong to a node. */
export type ActivityName = Exclude<keyof Activities, 'readRecording' | 'forkChildren'>;
export type StepInput<Name extends ActivityName> = Omit<Parameters<Activities[Name]>[0], 'context'>;
export type StepOutput<Name extends ActivityName> = Awaited<ReturnType<Activities[Name]>>['output'];

/** A task queue of its own for a step, where a worker may be long in coming. */
export interface StepQueue {
  readonly taskQueue: string;
  /** Longest wait in ms for a worker to take it. */
  readonly waitMs: number;
}

export interface StepRequest<Name extends ActivityName> {
  /** Names the step within the node attempt: with the place it is the activity's id. */
  readonly step: string;
  readonly input: StepInput<Name>;
  /** Narrows the time that one try may take, in ms. */
  readonly timeoutMs?: number;
  readonly queue?: StepQueue;
}

/** A message as it entered: when, and under which id it can come again. */
export interface Entered {
  readonly message: RunMessage;
  readonly updateId?: string;
  readonly atMs: number;
}

/** What takes messages. Everything is synchronous: nothing comes between a refusal that was not made and the taking. */
export interface Inbox {
  /** Throws the ApplicationFailure that the sender is refused with. Not asked in a replay. */
  check(entered: Entered): void;
  take(entered: Entered): MessageOutcome;
  /** Of a run that cannot look at it yet: one that has come with the beginning waits. Absent: never. */
  isClosed?(entered: Entered): boolean;
  /** Somebody cancelled the execution itself. */
  cancelled(): void;
  /** A child run has ended; any number of times, also of one that is not known. */
  childEnded(childRunId: string): void;
}

/** Keys are `stepKey` and `runKey`; each is used once in a segment by `wait`, and once by `now`. */
export interface Steps {
  /**
   * Runs one activity as a step of the place, its events admitted and its output handed on in the same breath. Throws
   * ActivityFailure (its cause carries the code as `type`) and CancelledFailure.
   */
  run<Name extends ActivityName>(
    place: Place,
    name: Name,
    request: StepRequest<Name>,
  ): Promise<StepOutput<Name>>;
  /** Waits until `deadlineMs` (workflow time) or until `ready`; true when ready. Without a deadline it waits for ever. */
  wait(key: string, deadlineMs: number | undefined, ready: () => boolean): Promise<boolean>;
  /** Workflow time in ms. */
  now(key: string): number;
  /** As `wait`, `limitMs` at most, by the clock of the world: a rehearsal's stands. */
  lapse(key: string, limitMs: number, ready: () => boolean): Promise<boolean>;
  /** Tells the run that started this one that it has ended. A parent that is not there any more need not know. */
  tellParent(parentRunId: string, ended: ChildEnded): Promise<void>;
  /** From now on messages enter through `inbox`. */
  receive(inbox: Inbox): void;
  /**
   * Waits for the next workflow task: to be called while `isCrowded`, which is asked again in the breath in which
   * something is stated, since all that paused wake together. What is only in hand meanwhile is safe: no segment ends.
   */
  nextTask(run: Run): Promise<void>;
  /** Whether anybody is asked at all: a replay that has left its record performs nothing and asks nobody. */
  readonly isReplay: () => boolean;
  /** True while a record is played whose source had not stated the fact `key` by the end of this task, or never did. */
  readonly isUnstated: (key: string) => boolean;
  /**
   * While a record is played: waits for the task in which its source stated one of `facts`. The record does not say that an
   * attempt was held there, until a segment ended or for a task with room. Undefined: there is nothing to wait for, as always
   * in a live run. The end of the run ends the wait; that the scope is cancelled does not.
   */
  waitForSource(run: Run, facts: SourceFacts): Promise<unknown> | undefined;
  /** For the ends of segments alone: no fact of the run depends on how it ends, so that it needs no key. */
  until(ready: () => boolean, limitMs?: number): Promise<unknown>;
}

/** Facts of which a source stated one where an attempt went on. */
export interface SourceFacts {
  readonly keys: readonly string[];
  /** What a source that stated none of them leads to. True: a wait for the end of the run; false: no wait. */
  readonly waitsIfNone: boolean;
}

/** Key of a wait or a clock read at a place. */
export function stepKey(place: Place, step: string): string {
  return encodeTuple(tupleOf(place, step));
}

/** Key of one that belongs to no visit: no node has an empty id. */
export function runKey(step: string): string {
  return encodeTuple({ nodeId: '', visit: 0, attempt: 0, step });
}

/** The workflow task is full: what is large and has time is stated in the next one. A run that ends waits no more. */
export function isCrowded(run: Run): boolean {
  return isTaskFull() && !run.ending;
}

/**
 * A stream that ended without a result: its block is closed with what was shown, cancelled or not (architecture §3.5).
 */
export async function seal(
  place: Place,
  sealedStep: string,
  block: Omit<StepInput<'sealBlock'>, 'sealedActivityId'>,
): Promise<void> {
  const sealedActivityId = activityIdOf(tupleOf(place, sealedStep));
  await uncancelled(() =>
    place.run.steps.run(place, 'sealBlock', {
      step: `${sealedStep}.seal`,
      input: { sealedActivityId, ...block },
    }),
  );
}

/** Runs something that must happen also while the run is being cancelled. */
export async function uncancelled<T>(fn: () => Promise<T>): Promise<T> {
  return CancellationScope.nonCancellable(fn);
}
