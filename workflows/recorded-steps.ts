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
import { MAX_DESCENDANTS } from '../src/rules/children.ts';
import { CANCELLATION_GRACE_MS } from '../src/rules/limits.ts';
import type { PayloadOf } from '../src/rules/events.ts';
import { activityEventKey, activityIdOf } from '../src/rules/ids.ts';
import type { ForkOf } from '../src/rules/run-input.ts';
import type { Batch, RecordedOutcome, Stimulus } from '../src/rules/recording.ts';
import { tupleOf, type Place, type Run } from './context.ts';
import { CancelledAfterResult } from './failures.ts';
import { admitRecorded, emit } from './journal.ts';
import { nothingMoves, withGrace } from './live-steps.ts';
import { overlaid } from './overlay.ts';
import { rest } from './pause.ts';
import { RecordedWaits, whileUncancelled } from './recorded-waits.ts';
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

/** What is under way is begun again. */
const AGAIN = Symbol('again');

interface PendingStep {
  settle(as: RecordedOutcome | typeof AGAIN): void;
}

/** What a fork's driver does with the Steps of its run. */
export interface RecordedSteps extends Steps {
  /** Time of the source's start, and all that it was given from there on. */
  startAt(atMs: number, batches: readonly Batch[]): void;
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
  /** Sources that were left so far. */
  readonly timesLeft: () => number;
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
  /** Children by other names. */
  readonly children = new Map<string, string>();
  /** The fork's own children that have ended before it knows of them. */
  readonly endedEarly = new Set<string>();
  atMs = 0;
  batch = 0;
  /** Of the source. */
  segment = 0;
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

  async deliver({ atMs, begins, began }: Batch, given: readonly Stimulus[]): Promise<void> {
    this.atMs = atMs;
    this.#begins = new Set(began);
    this.tell(given, begins === true);
    // A segment that begins waits for nothing that is over.
    if (begins) this.segment++;
    if (begins && this.batch > 0) this.waits.again(0);
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
    childEnded(childRunId) {
      if (player.isLive) player.inbox?.childEnded(childRunId);
      else if (player.endedEarly.size < MAX_DESCENDANTS) player.endedEarly.add(childRunId);
    },
  };
}

function notYet(): ApplicationFailure {
  return ApplicationFailure.nonRetryable('not yet', 'service_unavailable');
}

interface Awaited {
  readonly key: string;
  readonly deadlineMs: number | undefined;
  readonly ready: () => boolean;
}

function wait(player: Player, live: Steps, { key, deadlineMs, ready }: Awaited): Promise<boolean> {
  if (player.isLive) return live.wait(key, deadlineMs, ready);
  return waitRecorded(player, live, { key, deadlineMs, ready });
}

async function waitRecorded(
  player: Player,
  live: Steps,
  { key, deadlineMs, ready }: Awaited,
): Promise<boolean> {
  if (deadlineMs !== undefined && deadlineMs <= player.atMs) return ready();
  const ended = await player.waits.condition(ready, deadlineMs);
  if (typeof ended === 'boolean') return ended;
  return wait(player, live, { key, ready, deadlineMs: ended.deadlineMs });
}

interface Limited {
  readonly ready: () => boolean;
  readonly limitMs: number | undefined;
}

function until(player: Player, live: Steps, { ready, limitMs }: Limited): Promise<unknown> {
  return player.isLive
    ? live.until(ready, limitMs)
    : untilRecorded(player, live, { ready, limitMs });
}

async function untilRecorded(player: Player, live: Steps, limited: Limited): Promise<unknown> {
  const ended = await player.waits.until(limited.ready);
  return ended === true ? ended : until(player, live, limited);
}

function begin<Name extends ActivityName>(
  player: Player,
  live: Steps,
  asked: Asked<Name>,
): Promise<StepOutput<Name>> {
  return player.left ? beginLeft(player, live, asked) : perform(player, live, asked);
}

/** A replay that has left its source performs nothing. */
async function beginLeft<Name extends ActivityName>(
  player: Player,
  live: Steps,
  asked: Asked<Name>,
): Promise<StepOutput<Name>> {
  const { mode, overlay } = player.left ?? {};
  if (asked.name === 'sealBlock') return sealLeft(player, live, asked);
  const { place, request } = asked;
  const activityId = activityIdOf(tupleOf(place, request.step));
  const again = closeStream(player, asked, activityId);
  // A child performs: where calls get what they got, none is begun.
  const isHeld = asked.name === 'startChildren' && player.isLive && Boolean(overlay?.recordedTools);
  if (mode === 'branch' && !isHeld) {
    const own = overlaid(
      { ...ofChildren(player, request), step: again },
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
  const again = `${request.step}.again`;
  if (said === undefined) {
    if (!player.left?.performed?.has(activityId)) return request.step;
    player.renamed.set(activityId, again);
    return again;
  }
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

/** A request may have been put together before its children went by other names. */
function ofChildren<Name extends ActivityName>(
  player: Player,
  request: StepRequest<Name>,
): StepRequest<Name> {
  const { childRunId, requests } = request.input as Partial<
    StepInput<'endChild'> & StepInput<'startChildren'>
  >;
  const changed = {
    ...(childRunId === undefined ? {} : { childRunId: player.childOf(childRunId) }),
    ...(requests
      ? { requests: requests.map((one) => ({ ...one, runId: player.childOf(one.runId) })) }
      : {}),
  };
  return { ...request, input: { ...request.input, ...changed } };
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
    run: (place, name, request) => begin(player, live, { place, name, request }),
    wait: (key, deadlineMs, ready) => wait(player, live, { key, deadlineMs, ready }),
    async lapse(key, limitMs, ready) {
      if (player.isLive) return live.lapse(key, limitMs, ready);
      return wait(player, live, { key, deadlineMs: player.atMs + limitMs, ready });
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
    until: (ready, limitMs) => until(player, live, { ready, limitMs }),
    startAt: (atMs, batches) => player.startAt(atMs, batches),
    tell: (messages) => player.tell(messages, true),
    deliver: (batch, given) => player.deliver(batch, given),
    leave: (leaving, atMs) => player.leave(leaving, atMs),
    enter(message) {
      const atMs = player.isLive ? live.now(runKey('overlay')) : player.atMs;
      player.enter({ message, atMs });
    },
    isBroken: () => player.isBroken,
    isLive: () => player.isLive,
    timesLeft: () => player.sourcesLeft,
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
  const activityId = activityIdOf(tupleOf(place, request.step));
  const { sourcesLeft } = player;
  const waits = name !== 'sealBlock' && name !== 'cancelChild';
  const isHeld = () =>
    player.sourcesLeft === sourcesLeft && (run.holding.size > 0 || !player.mayBegin(activityId));
  if (waits && isHeld()) await holdBack(player, run, { place, isHeld });
  // As one that was under way then.
  if (player.sourcesLeft > sourcesLeft) return begin(player, live, { place, name, request });
  if (player.isUnsealed(name, activityId)) return { deltas: 0 } as StepOutput<Name>;
  let isAgain = false;
  run.inFlight++;
  try {
    const outcome = await withGrace(player.activity(activityId), () =>
      player.waits.sleep(player.atMs + CANCELLATION_GRACE_MS),
    );
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

/**
 * Waits until the source has begun the step, too, or was left. One that is held back because a segment ends keeps it from
 * coming to rest until the next one begins.
 */
async function holdBack(
  player: Player,
  run: Run,
  { place, isHeld }: { readonly place: Place; readonly isHeld: () => boolean },
): Promise<void> {
  const { segment } = player;
  while (isHeld()) {
    const count = run.holding.size === 0 && player.segment === segment ? 1 : 0;
    run.inFlight += count;
    await rest(place, () => player.waits.condition(() => !isHeld())).finally(() => {
      run.inFlight -= count;
    });
  }
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
