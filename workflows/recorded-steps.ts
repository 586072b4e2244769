// Recorded Steps (architecture §6): the same code as live ones drive, on what its source was given. Each batch is delivered
// when everything stands at a wait, with the source's time; nothing outside is asked. Behind the last one that is delivered
// Steps are live: what was under way is begun again.
import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  TimeoutFailure,
} from '@temporalio/workflow';
import { MESSAGES, type MessageKind, type RunMessage } from '../src/rules/messages.ts';
import { CANCELLATION_GRACE_MS } from '../src/rules/limits.ts';
import type { PayloadOf } from '../src/rules/events.ts';
import { activityEventKey, activityIdOf } from '../src/rules/ids.ts';
import type { ForkOf } from '../src/rules/run-input.ts';
import type { Batch, RecordedOutcome, Stimulus } from '../src/rules/recording.ts';
import { tupleOf, type Place, type Run } from './context.ts';
import { CancelledAfterResult } from './failures.ts';
import { admitRecorded, emit } from './journal.ts';
import { nothingMoves } from './live-steps.ts';
import { overlaid } from './overlay.ts';
import { rest } from './pause.ts';
import {
  runKey,
  type ActivityName,
  type Entered,
  type Inbox,
  type StepInput,
  type StepOutput,
  type StepRequest,
  type Steps,
} from './steps.ts';

/** Steps are live now: whatever waited begins to wait again, until then. */
interface GoOn {
  readonly deadlineMs: number | undefined;
}
/** What is under way is begun again. */
const AGAIN = Symbol('again');

interface Wait {
  deadlineMs: number | undefined;
  readonly ready: () => boolean;
  /** Takes the wait off. */
  settle(as: boolean | GoOn): void;
}

interface PendingStep {
  settle(as: RecordedOutcome | typeof AGAIN): void;
}

/** What a fork's driver does with the Steps of its run. */
export interface RecordedSteps extends Steps {
  /** Time of the source's start. */
  startAt(atMs: number): void;
  /** Messages that waited before anything ran. */
  tell(messages: readonly Stimulus[]): void;
  /** Gives the run what its source was given in one workflow task, and sees everything come to a wait. */
  deliver(batch: Batch, given: readonly Stimulus[]): Promise<void>;
  /**
   * What was under way is begun again, and from now on Steps are live; or, where the source of a fork did so (`atMs`), they
   * go on with what came of that. A replay begins no step: what it lacks is replay_source_missing.
   */
  leave(leaving: Leaving, atMs?: number): void;
  /** As if it were sent now. */
  enter(message: RunMessage): void;
  /** Somebody cancelled the fork itself. */
  readonly isBroken: () => boolean;
  readonly isLive: () => boolean;
}

/** How a fork leaves its source. */
export interface Leaving extends Pick<ForkOf, 'mode' | 'overlay'> {
  /** So much later whatever waits comes to its end. */
  readonly laterMs: number;
  /** What streams had said that were not closed by then, by activity. */
  readonly streams: ReadonlyMap<string, string>;
}

class Player {
  isLive = false;
  isBroken = false;
  /** How a source was left last. */
  left: Leaving | undefined;
  sourcesLeft = 0;
  /** Steps under other names: what their streams said before stands in the log. By activity. */
  readonly renamed = new Map<string, string>();
  /** Streams of the source that are still to be closed. */
  readonly streams = new Map<string, string>();
  atMs = 0;
  batch = 0;
  inbox: Inbox | undefined;
  readonly steps = new Map<string, PendingStep>();
  readonly waits = new Set<Wait>();
  /** Activities that the source had begun by now. */
  readonly begun = new Set<string>();

  readonly #live: Steps;
  /** What waits for a workflow task that has room. */
  #crowd: { readonly run: Run; readonly go: () => void }[] = [];

  constructor(live: Steps) {
    this.#live = live;
  }

  nextTask(run: Run): Promise<void> {
    return new Promise((go) => this.#crowd.push({ run, go }));
  }

  /** Rejects when the scope is cancelled, as a condition of Temporal's does. */
  wait(deadlineMs: number | undefined, ready: () => boolean): Promise<boolean | GoOn> {
    const scope = CancellationScope.current();
    if (scope.consideredCancelled) throw new CancelledFailure('cancelled');
    return new Promise((resolve, reject) => {
      const wait: Wait = {
        deadlineMs,
        ready,
        settle: (as) => {
          if (this.waits.delete(wait)) resolve(as);
        },
      };
      this.waits.add(wait);
      if (ready()) wait.settle(true);
      if (scope.cancellable)
        scope.cancelRequested.catch((cause: Error) => {
          if (this.waits.delete(wait)) reject(cause);
        });
    });
  }

  /** A cancelled step that the source had begun has its grace; one that it had not is cancelled at once. */
  outcome(activityId: string): Promise<RecordedOutcome | typeof AGAIN> {
    const scope = CancellationScope.current();
    if (scope.consideredCancelled) throw new CancelledFailure('cancelled');
    return new Promise((resolve, reject) => {
      const isOpen = () => this.steps.get(activityId) === step;
      const step: PendingStep = {
        settle: (as) => {
          if (this.steps.delete(activityId)) resolve(as);
        },
      };
      this.steps.set(activityId, step);
      if (!scope.cancellable) return;
      scope.cancelRequested.catch((cause: Error) => {
        if (!isOpen()) return;
        if (this.isLive || !this.begun.has(activityId)) return step.settle({ kind: 'cancelled' });
        const grace: Wait = {
          deadlineMs: this.atMs + CANCELLATION_GRACE_MS,
          ready: () => !isOpen(),
          settle: () => {
            this.waits.delete(grace);
            if (!isOpen()) return;
            this.steps.delete(activityId);
            reject(cause);
          },
        };
        this.waits.add(grace);
      });
    });
  }

  async deliver({ atMs, begins, began }: Batch, given: readonly Stimulus[]): Promise<void> {
    this.atMs = atMs;
    this.tell(given, begins === true);
    // A segment that begins waits for nothing that is over.
    if (begins && this.batch > 0) this.#expire((deadlineMs) => deadlineMs <= atMs);
    await this.settled();
    for (const activityId of began) this.begun.add(activityId);
    this.batch++;
  }

  /** The last name of a step that was begun again. */
  nameOf(place: Place, activityId: string): string | undefined {
    const name = this.renamed.get(activityId);
    return name && (this.nameOf(place, activityIdOf(tupleOf(place, name))) ?? name);
  }

  /** Everything stands at a wait for something that has not come. */
  async settled(): Promise<void> {
    for (let isMoving = true; isMoving;) {
      await nothingMoves();
      const ready = [...this.waits].filter((wait) => wait.ready());
      for (const wait of ready) wait.settle(true);
      isMoving = ready.length > 0 || (await this.#makeRoom());
    }
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

  leave(leaving: Leaving, atMs: number | undefined): void {
    this.isLive = atMs === undefined;
    this.left = leaving;
    this.sourcesLeft++;
    this.begun.clear();
    for (const [activityId, said] of leaving.streams) this.streams.set(activityId, said);
    if (atMs === undefined) for (const { go } of this.#crowd.splice(0)) go();
    for (const step of [...this.steps.values()]) step.settle(AGAIN);
    for (const wait of this.waits)
      if (wait.deadlineMs !== undefined) wait.deadlineMs += leaving.laterMs;
    if (atMs === undefined) for (const wait of [...this.waits]) wait.settle(wait);
    else {
      this.atMs = atMs;
      this.#expire((deadlineMs) => deadlineMs <= atMs);
    }
  }

  tell(given: readonly Stimulus[], isBeginning: boolean): void {
    for (const stimulus of given) this.#give(stimulus, isBeginning);
  }

  #give(stimulus: Stimulus, isBeginning: boolean): void {
    switch (stimulus.kind) {
      case 'step':
        return this.steps.get(stimulus.activityId)?.settle(stimulus.outcome);
      case 'timer':
        return this.#expire((deadlineMs) => deadlineMs === stimulus.deadlineMs, 1);
      case 'child-ended':
        return this.inbox?.childEnded(stimulus.childRunId);
      case 'cancel-requested':
        return void this.#cancelled();
      case 'message':
        return this.#enter(stimulus, isBeginning);
    }
  }

  /** What came before it in its task has been stated by then. */
  async #cancelled(): Promise<void> {
    for (let hop = 0; hop < CANCEL_HOPS; hop++) await Promise.resolve();
    this.inbox?.cancelled();
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

  #expire(isOver: (deadlineMs: number) => boolean, limit = Infinity): void {
    const over = [...this.waits].filter(
      ({ deadlineMs }) => deadlineMs !== undefined && isOver(deadlineMs),
    );
    for (const wait of over.slice(0, limit)) wait.settle(wait.ready());
  }
}

function kindOf(update: string): MessageKind {
  const found = Object.entries(MESSAGES).find(([, travel]) => travel.update === update);
  return (found?.[0] ?? 'cancel') as MessageKind;
}

/**
 * Continuations between a job of Temporal's that ends an activity and the step that waits for it, in live Steps: a cancel
 * that comes in the same task has passed down to the step by then.
 */
const RESULT_HOPS = 2;
/** The same of a timer that ends a wait: what an activity of the same task comes to is told before. */
const TIMER_HOPS = 5;
/** The same between a job that cancels the execution and the inbox that is told. */
const CANCEL_HOPS = 2;

/** While the record is read and played nothing can be answered; a cancel ends that. */
function inboxOf(player: Player): Inbox {
  const isClosed = ({ message }: Entered) =>
    player.inbox === undefined || (!player.isLive && message.kind !== 'cancel');
  const opened = () => {
    if (!player.inbox) throw notYet();
    return player.inbox;
  };
  return {
    isClosed,
    check(entered) {
      if (isClosed(entered)) throw notYet();
      opened().check(entered);
    },
    take(entered) {
      player.isBroken ||= !player.isLive;
      return opened().take(entered);
    },
    cancelled() {
      player.isBroken ||= !player.isLive;
      player.inbox?.cancelled();
    },
    childEnded: (childRunId) => player.inbox?.childEnded(childRunId),
  };
}

function notYet(): ApplicationFailure {
  return ApplicationFailure.nonRetryable('not yet', 'service_unavailable');
}

/** A replay that has left its source performs nothing. */
async function begin<Name extends ActivityName>(
  player: Player,
  live: Steps,
  asked: Asked<Name>,
): Promise<StepOutput<Name>> {
  if (!player.left) return perform(player, live, asked);
  const { mode, overlay } = player.left;
  if (asked.name === 'sealBlock') return sealLeft(player, live, asked);
  const { place, request } = asked;
  const activityId = activityIdOf(tupleOf(place, request.step));
  const again = closeStream(player, asked, activityId);
  if (mode === 'branch') {
    const own = overlaid(
      { ...request, step: again },
      { name: asked.name, overlay, activityId, policy: place.run.input.policy },
    );
    return perform(player, live, { ...asked, request: own });
  }
  throw ApplicationFailure.create({
    type: 'replay_source_missing',
    message: 'The source has no record of this step.',
    nonRetryable: true,
  });
}

function perform<Name extends ActivityName>(
  player: Player,
  live: Steps,
  asked: Asked<Name>,
): Promise<StepOutput<Name>> {
  const { place, name, request } = asked;
  return player.isLive ? live.run(place, name, request) : runRecorded(player, live, asked);
}

/**
 * What the source's stream had said when it was left stays said: it is closed with that, and the step is begun again under
 * a name of its own. Returns the step's name.
 */
function closeStream<Name extends ActivityName>(
  player: Player,
  { place, name, request }: Asked<Name>,
  activityId: string,
): string {
  const said = player.streams.get(activityId);
  if (said === undefined) return request.step;
  const again = `${request.step}.again`;
  player.streams.delete(activityId);
  player.renamed.set(activityId, again);
  // A tool's progress has no closing event.
  if (name === 'callTool') return again;
  const { agent, agentId, verbosity } = request.input as unknown as Speaker;
  stateReasoned(place, activityId, {
    agentId: agent?.agentId ?? agentId,
    reasoning: said,
    verbosity,
  });
  return again;
}

/** Of a model's turn, and of a scripted one. */
interface Speaker {
  readonly agent?: { readonly agentId: string };
  readonly agentId: string;
  readonly verbosity: 'summary' | 'full' | 'off';
}

/** As sealBlock states it, by the same key. */
function stateReasoned(
  { frame }: Place,
  activityId: string,
  payload: PayloadOf<'agent.reasoned'>,
): void {
  const { nodeId } = frame;
  emit('agent.reasoned', payload, { key: activityEventKey(`${activityId}.seal`, 0), nodeId });
}

/** Of a stream that the source left open; of a step that goes by another name now; or of one like any other. */
async function sealLeft<Name extends ActivityName>(
  player: Player,
  live: Steps,
  { place, name, request }: Asked<Name>,
): Promise<StepOutput<Name>> {
  const input = request.input as unknown as StepInput<'sealBlock'>;
  const { sealedActivityId: activityId, agentId, verbosity, kind } = input;
  const said = player.streams.get(activityId);
  if (said !== undefined) {
    player.streams.delete(activityId);
    if (kind !== 'tool') stateReasoned(place, activityId, { agentId, reasoning: said, verbosity });
  }
  // Nothing was streamed that would have to be closed.
  if (said !== undefined || player.left?.mode === 'replay')
    return { deltas: 0 } as StepOutput<Name>;
  const again = player.nameOf(place, activityId);
  if (again === undefined) return perform(player, live, { place, name, request });
  const sealed = { ...input, sealedActivityId: activityIdOf(tupleOf(place, again)) };
  const own = { ...request, step: `${again}.seal`, input: sealed as unknown as StepInput<Name> };
  return perform(player, live, { place, name, request: own });
}

/** Takes messages at once: what comes before the run can look at it waits, or is sent again. */
export function recordedSteps(live: Steps): RecordedSteps {
  const player = new Player(live);
  live.receive(inboxOf(player));
  return {
    async run(place, name, request) {
      return begin(player, live, { place, name, request });
    },
    async wait(key, deadlineMs, ready) {
      if (player.isLive) return live.wait(key, deadlineMs, ready);
      if (deadlineMs !== undefined && deadlineMs <= player.atMs) return ready();
      const ended = await player.wait(deadlineMs, ready);
      if (ended === false) for (let hop = 0; hop < TIMER_HOPS; hop++) await Promise.resolve();
      return typeof ended === 'boolean' ? ended : live.wait(key, ended.deadlineMs, ready);
    },
    now: (key) => (player.isLive ? live.now(key) : player.atMs),
    tellParent: (parentRunId, ended) => live.tellParent(parentRunId, ended),
    receive(inbox) {
      player.inbox = inbox;
      // Cancelled while the record was read: behind what the run begins with, as in every run.
      if (player.isBroken) void Promise.resolve().then(() => inbox.cancelled());
    },
    isReplay: () => player.left?.mode === 'replay',
    nextTask: (run) => (player.isLive ? live.nextTask(run) : player.nextTask(run)),
    async until(ready, limitMs) {
      if (player.isLive) return live.until(ready, limitMs);
      const ended = await player.wait(undefined, ready);
      return typeof ended === 'boolean' ? ended : live.until(ready, limitMs);
    },
    startAt(atMs) {
      player.atMs = atMs;
    },
    tell: (messages) => player.tell(messages, true),
    deliver: (batch, given) => player.deliver(batch, given),
    leave: (leaving, atMs) => player.leave(leaving, atMs),
    enter(message) {
      const atMs = player.isLive ? live.now(runKey('overlay')) : player.atMs;
      player.enter({ message, atMs });
    },
    isBroken: () => player.isBroken,
    isLive: () => player.isLive,
  };
}

interface Asked<Name extends ActivityName> {
  readonly place: Place;
  readonly name: Name;
  readonly request: StepRequest<Name>;
}

async function runRecorded<Name extends ActivityName>(
  player: Player,
  live: Steps,
  { place, name, request }: Asked<Name>,
): Promise<StepOutput<Name>> {
  const { run } = place;
  const isHeld = () => run.holding.size > 0 && name !== 'sealBlock' && name !== 'cancelChild';
  while (isHeld() && !player.isLive)
    await rest(place, () => player.wait(undefined, () => run.holding.size === 0));
  if (player.isLive) return begin(player, live, { place, name, request });
  const activityId = activityIdOf(tupleOf(place, request.step));
  let isAgain = false;
  run.inFlight++;
  try {
    const outcome = await player.outcome(activityId);
    for (let hop = 0; hop < RESULT_HOPS; hop++) await Promise.resolve();
    if (outcome !== AGAIN) {
      const { output, events } = resultOf(outcome, { activityId, name });
      admitRecorded(activityId, events);
      if (CancellationScope.current().consideredCancelled) throw new CancelledAfterResult();
      return output as StepOutput<Name>;
    }
    isAgain = true;
  } finally {
    run.inFlight--;
    if (!isAgain) run.progress++;
  }
  return begin(player, live, { place, name, request });
}

/** Throws as Temporal does. */
function resultOf(
  outcome: RecordedOutcome,
  { activityId, name }: { readonly activityId: string; readonly name: string },
): Extract<RecordedOutcome, { kind: 'completed' }>['result'] {
  if (outcome.kind === 'completed') return outcome.result;
  throw new ActivityFailure(
    'activity task failed',
    name,
    activityId,
    'NON_RETRYABLE_FAILURE',
    undefined,
    causeOf(outcome),
  );
}

function causeOf(outcome: Exclude<RecordedOutcome, { kind: 'completed' }>): Error {
  switch (outcome.kind) {
    case 'cancelled':
      return new CancelledFailure('cancelled');
    case 'timed-out':
      return new TimeoutFailure('activity timed out', undefined, outcome.type as 'HEARTBEAT');
    case 'failed': {
      const { code, message, details } = outcome;
      return ApplicationFailure.create({
        ...{ type: code, message, nonRetryable: true },
        ...(details === undefined ? {} : { details: [details] }),
      });
    }
  }
}
