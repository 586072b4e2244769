// What a fork is given while it plays a record (architecture §6): each batch of its source, when everything stands at a
// wait; and what it left its source with.
import { ApplicationFailure } from '@temporalio/workflow';
import { activityIdOf } from '../src/rules/ids.ts';
import { MESSAGES, type MessageKind, type RunMessage } from '../src/rules/messages.ts';
import type { ForkOf } from '../src/rules/run-input.ts';
import type { Batch, RecordedOutcome, Stimulus } from '../src/rules/recording.ts';
import type { When } from './comparison.ts';
import { tupleOf, type Place, type Run } from './context.ts';
import { unlessFault } from './failures.ts';
import { nothingMoves } from './live-steps.ts';
import { RecordedWaits, whileUncancelled } from './recorded-waits.ts';
import type { ActivityName, Entered, Inbox, Steps } from './steps.ts';

/** What is under way is begun again. */
export const AGAIN = Symbol('again');

interface PendingStep {
  settle(as: RecordedOutcome | typeof AGAIN): void;
}

/** How a fork leaves its source. */
export interface Leaving extends Pick<ForkOf, 'mode' | 'overlay'> {
  /** So much later whatever waits comes to its end. */
  readonly laterMs: number;
  /** What streams had said that were not closed by then, by activity. */
  readonly streams: ReadonlyMap<string, string>;
  /** Activities that the log knows already, where they are performed again. */
  readonly performed?: ReadonlySet<string>;
  /** What children that were under way are called from now on. */
  readonly children: ReadonlyMap<string, string>;
  /** Runs below the source: a step that is begun again says nothing to them. */
  readonly strangers?: readonly string[];
}

/** A batch as a run is given it. */
export interface Delivery {
  readonly stimuli: readonly Stimulus[];
  /** Seen from the end of the task. */
  readonly whenStated: (key: string) => When;
  /** A segment of the source begins with it: what came before is left, and after the stimuli the frames are entered. */
  readonly segment?: { leave(): LeftBefore; enter(): void };
}

/** Of a source that was left in a segment before. */
export type LeftBefore = Omit<Leaving, 'mode'>;

export class Player {
  isLive = false;
  isBroken = false;
  /** How a source was left last. */
  left: Leaving | undefined;
  sourcesLeft = 0;
  /** Steps under other names: what their streams said before stands in the log. By activity. */
  readonly renamed = new Map<string, string>();
  /** Streams of the source that are still to be closed. */
  readonly streams = new Map<string, string>();
  /** Children by other names. */
  readonly children = new Map<string, string>();
  /** The fork's own children that have ended before it knows of them. */
  readonly endedEarly = new Set<string>();
  atMs = 0;
  batch = 0;
  /** Of the task that is delivered; a run without a record holds nothing back. */
  whenStated: Delivery['whenStated'] = () => 'by-now';
  inbox: Inbox | undefined;
  readonly steps = new Map<string, PendingStep>();
  readonly waits = new RecordedWaits();
  /** Activities that the source had begun by now. */
  readonly begun = new Set<string>();
  /** Those that it began in this task. */
  #begins = new Set<string>();
  /** Those that it began at all. */
  #recorded: ReadonlySet<string> = new Set();

  readonly #live: Steps;
  /** What Temporal answers at once, in an activation of its own. */
  readonly #next: (() => void)[] = [];
  /** What waits for a workflow task that has room. */
  #crowd: { readonly run: Run; readonly go: () => void }[] = [];

  constructor(live: Steps) {
    this.#live = live;
  }

  nextTask(run: Run): Promise<void> {
    return new Promise((go) => this.#crowd.push({ run, go }));
  }

  /** As the SDK's scheduleActivity. One that the source had not begun is cancelled when nothing else goes on. */
  activity(activityId: string): Promise<RecordedOutcome | typeof AGAIN> {
    return new Promise((resolve, reject) => {
      const step: PendingStep = {
        settle: (as) => {
          if (this.steps.delete(activityId)) resolve(as);
        },
      };
      const isOpen = whileUncancelled((cause) => {
        if (!isOpen) return reject(cause);
        if (this.begun.has(activityId) || this.steps.get(activityId) !== step) return;
        this.#next.push(() => step.settle({ kind: 'cancelled' }));
      });
      if (isOpen) this.steps.set(activityId, step);
    });
  }

  startAt(atMs: number, batches: readonly Batch[]): void {
    this.atMs = atMs;
    this.#recorded = new Set(batches.flatMap(({ began }) => began));
  }

  async deliver({ atMs, began }: Batch, { stimuli, whenStated, segment }: Delivery): Promise<void> {
    this.atMs = atMs;
    this.whenStated = whenStated;
    this.#begins = new Set(began);
    if (segment) this.#begin(stimuli, segment);
    else this.tell(stimuli, false);
    await this.settled();
    for (const activityId of began) this.begun.add(activityId);
    this.batch++;
  }

  /** The source may have held it back, as it does while a segment ends: then it was not under way. */
  mayBegin(activityId: string): boolean {
    return this.begun.has(activityId) || this.#begins.has(activityId);
  }

  /** A step was cut before the source had begun it, or was about to begin it again: nothing was streamed. */
  isUnsealed(name: ActivityName, activityId: string): boolean {
    return name === 'sealBlock' && !this.#recorded.has(activityId);
  }

  /** The last name of a step that was begun again. */
  nameOf(place: Place, activityId: string): string | undefined {
    const name = this.renamed.get(activityId);
    return name && (this.nameOf(place, activityIdOf(tupleOf(place, name))) ?? name);
  }

  /** What a child is called now. */
  childOf(childRunId: string): string {
    const now = this.children.get(childRunId);
    return now === undefined || now === childRunId ? childRunId : this.childOf(now);
  }

  /** Everything stands at a wait for something that has not come. */
  async settled(): Promise<void> {
    for (let isMoving = true; isMoving;) {
      await nothingMoves();
      isMoving = this.waits.settleReady() || this.#answer() || (await this.#makeRoom());
    }
  }

  /** False: nothing is asked. */
  #answer(): boolean {
    const asked = this.#next.splice(0);
    for (const answer of asked) answer();
    return asked.length > 0;
  }

  /** False: nothing waits for it. */
  async #makeRoom(): Promise<boolean> {
    const waiting = this.#crowd;
    const [first] = waiting;
    if (!first) return false;
    this.#crowd = [];
    await this.#live.nextTask(first.run);
    for (const { go } of waiting) go();
    return true;
  }

  /**
   * What came with the beginning waited for it, and is given before the first frame is entered. A fork that has left its
   * source opens its inbox too late for messages that waited (live-steps.ts `held`): they are given after that.
   */
  #begin(stimuli: readonly Stimulus[], segment: NonNullable<Delivery['segment']>): void {
    this.steps.clear();
    // No activity is under way where a segment ends.
    this.begun.clear();
    this.waits.leaveSegment();
    this.#next.length = 0;
    this.#crowd = [];
    let isOpen = this.left === undefined;
    const held = stimuli.filter(({ kind }) => !isOpen && kind === 'message');
    for (const message of held)
      void this.waits.until(() => isOpen).then(() => unlessFault(() => this.#give(message, true)));
    const left = segment.leave();
    if (this.left) {
      this.left = { ...left, mode: this.left.mode };
      for (const former of [this.streams, this.renamed, this.children]) former.clear();
    }
    for (const stimulus of stimuli) if (!held.includes(stimulus)) this.#give(stimulus, true);
    segment.enter();
    isOpen = true;
    while (this.waits.settleReady());
  }

  leave(leaving: Leaving, atMs: number | undefined): void {
    this.isLive = atMs === undefined;
    this.left = leaving;
    this.sourcesLeft++;
    this.begun.clear();
    for (const [activityId, said] of leaving.streams) this.streams.set(activityId, said);
    for (const [before, now] of leaving.children) this.children.set(before, now);
    if (atMs === undefined) for (const { go } of this.#crowd.splice(0)) go();
    for (const step of [...this.steps.values()]) step.settle(AGAIN);
    this.atMs = atMs ?? this.atMs;
    if (atMs === undefined)
      for (const childRunId of this.endedEarly) this.inbox?.childEnded(childRunId);
    this.waits.again(leaving.laterMs);
  }

  /** Behind each, what waited for it goes on: none that follows finds it waiting (the SDK's tryUnblockConditions). */
  tell(given: readonly Stimulus[], isBeginning: boolean): void {
    for (const stimulus of given) {
      this.#give(stimulus, isBeginning);
      while (this.waits.settleReady());
    }
  }

  #give(stimulus: Stimulus, isBeginning: boolean): void {
    switch (stimulus.kind) {
      case 'step':
        return this.steps.get(stimulus.activityId)?.settle(stimulus.outcome);
      case 'timer':
        return this.waits.fire(stimulus.deadlineMs);
      case 'child-ended':
        return this.inbox?.childEnded(stimulus.childRunId);
      case 'cancel-requested':
        // As the scope of the execution, cancelled, tells whoever asked for it.
        return void Promise.resolve().then(() => this.inbox?.cancelled());
      case 'message':
        return this.#enter(stimulus, isBeginning);
    }
  }

  /** One that came with the beginning of a segment was taken in before it was looked at, and may be refused. */
  #enter(
    { message, update, updateId }: Extract<Stimulus, { kind: 'message' }>,
    isBeginning: boolean,
  ): void {
    const entered: Entered = {
      message: { ...(message as object), kind: kindOf(update) } as RunMessage,
      // What a fork is told under an id that its source was told something under is another message.
      updateId: `recorded${this.sourcesLeft}:${updateId}`,
      atMs: this.atMs,
    };
    this.enter(entered, isBeginning);
  }

  /** Refused: nobody is told. */
  enter(entered: Entered, isChecked = true): void {
    try {
      if (isChecked) this.inbox?.check(entered);
      this.inbox?.take(entered);
    } catch (error) {
      if (!(error instanceof ApplicationFailure)) throw error;
    }
  }
}

function kindOf(update: string): MessageKind {
  const found = Object.entries(MESSAGES).find(([, travel]) => travel.update === update);
  return (found?.[0] ?? 'cancel') as MessageKind;
}
