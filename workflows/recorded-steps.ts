// Recorded Steps (architecture §6): the same code as live ones drive, on what its source was given. Each batch is delivered
// when everything stands at a wait, with the source's time; nothing outside is asked. Behind the last one that is delivered
// Steps are live: what was under way is begun again.
import { ApplicationFailure, CancellationScope } from '@temporalio/workflow';
import type { RunMessage } from '../src/rules/messages.ts';
import { MAX_DESCENDANTS } from '../src/rules/children.ts';
import { CANCELLATION_GRACE_MS } from '../src/rules/limits.ts';
import type { PayloadOf } from '../src/rules/events.ts';
import { activityEventKey, activityIdOf } from '../src/rules/ids.ts';
import type { Batch } from '../src/rules/recording.ts';
import { tupleOf, type Place, type Run } from './context.ts';
import { CancelledAfterResult } from './failures.ts';
import { admitRecorded, emit } from './journal.ts';
import { withoutWord } from './former-words.ts';
import { withGrace } from './live-steps.ts';
import { overlaid } from './overlay.ts';
import { resultOf } from './recorded-outcomes.ts';
import { rest } from './pause.ts';
import { AGAIN, Player, type Delivery, type Leaving } from './recorded-player.ts';
import {
  runKey,
  uncancelled,
  type ActivityName,
  type Entered,
  type Inbox,
  type SourceFacts,
  type StepInput,
  type StepOutput,
  type StepRequest,
  type Steps,
} from './steps.ts';

/** What a fork's driver does with the Steps of its run. */
export interface RecordedSteps extends Steps {
  /** Time of the source's start, and all that it was given from there on. */
  startAt(atMs: number, batches: readonly Batch[]): void;
  /** Messages that waited before anything ran, in the first task. */
  tell(delivery: Delivery): void;
  /** Gives the run what its source was given in one workflow task, and sees everything come to a wait. */
  deliver(batch: Batch, delivery: Delivery): Promise<void>;
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

function waitForSource(
  player: Player,
  run: Run,
  { keys, waitsIfNone }: SourceFacts,
): Promise<unknown> | undefined {
  const isHeld = () => {
    const when = keys.map((key) => player.whenStated(key));
    const isNone = when.every((it) => it === 'never');
    return !run.ending && !when.includes('by-now') && (waitsIfNone || !isNone);
  };
  if (!isHeld()) return undefined;
  return uncancelled(() => player.waits.until(() => !isHeld()));
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
  const ended = await player.waits.until(limited.ready, { isLasting: true });
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
  if (mode === 'branch') {
    const own = overlaid(
      { ...requestNow(player, asked), step: again },
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

/** A request may have been put together before its source was left, and its children went by other names. */
function requestNow<Name extends ActivityName>(
  player: Player,
  { place, name, request }: Asked<Name>,
): StepRequest<Name> {
  const { sourceLength } = place.frame;
  const { childRunId, recordedOf, requests, children } = request.input as Partial<
    StepInput<'endChild'> & StepInput<'startChildren'> & StepInput<'keepTime'>
  >;
  const isOwn = (runId: string) =>
    player.children.has(runId) || !player.left?.strangers?.includes(runId);
  const changed = {
    ...(childRunId === undefined || recordedOf !== undefined
      ? {}
      : { childRunId: player.childOf(childRunId) }),
    ...(requests
      ? { requests: requests.map((one) => ({ ...one, runId: player.childOf(one.runId) })) }
      : {}),
    ...(children ? { children: children.filter(isOwn).map((one) => player.childOf(one)) } : {}),
    ...((name === 'callTool' || name === 'startChildren') && sourceLength !== undefined
      ? { sourceLength }
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
      return waitRecorded(player, live, { key, deadlineMs: player.atMs + limitMs, ready });
    },
    now: (key) => (player.isLive ? live.now(key) : player.atMs),
    tellParent: (parentRunId, ended) => live.tellParent(parentRunId, ended),
    receive(inbox) {
      player.inbox = inbox;
      // They came with the beginning of a segment that lives.
      if (player.isLive && player.endedEarly.size > 0)
        for (const childRunId of player.endedEarly) inbox.childEnded(childRunId);
      // Cancelled while the record was read: behind what the run begins with, as in every run.
      if (player.isBroken) void Promise.resolve().then(() => inbox.cancelled());
    },
    isReplay: () => player.left?.mode === 'replay',
    isUnstated: (key) => !player.isLive && player.whenStated(key) !== 'by-now',
    waitForSource: (run, facts) => (player.isLive ? undefined : waitForSource(player, run, facts)),
    nextTask: (run) => (player.isLive ? live.nextTask(run) : player.nextTask(run)),
    until: (ready, limitMs) => until(player, live, { ready, limitMs }),
    startAt: (atMs, batches) => player.startAt(atMs, batches),
    tell({ stimuli, whenStated }) {
      player.whenStated = whenStated;
      player.tell(stimuli, true);
    },
    deliver: (batch, delivery) => player.deliver(batch, delivery),
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

/** A branch asks the record again before it notes that a question is left open. */
async function beginAgain<Name extends ActivityName>(
  player: Player,
  live: Steps,
  { place, name, request }: Asked<Name>,
): Promise<StepOutput<Name>> {
  const { isLeft, interruptId } = request.input as Partial<StepInput<'recordedAnswers'>>;
  if (name === 'recordedAnswers' && isLeft && player.left?.mode === 'branch')
    return { interruptId, answers: [] } as unknown as StepOutput<Name>;
  return begin(player, live, { place, name, request: withoutWord(request) });
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
  if (waits && isHeld()) await holdBack(player, place, isHeld);
  // As one that was under way then.
  const again = () => beginAgain(player, live, { place, name, request });
  if (player.sourcesLeft > sourcesLeft) return again();
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
  return again();
}

/** Waits until the source has begun the step, too, or was left. One that the source held keeps the run from coming to rest. */
async function holdBack(player: Player, place: Place, isHeld: () => boolean): Promise<void> {
  const { run } = place;
  while (isHeld()) {
    const count = run.holding.size === 0 ? 1 : 0;
    // One that a pause holds back meanwhile does not.
    const rests = () => count > 0 && run.holding.size > 0;
    run.inFlight += count;
    await rest(place, () => player.waits.condition(() => !isHeld() || rests())).finally(() => {
      run.inFlight -= count;
    });
  }
}
