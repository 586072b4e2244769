// A rehearsal: its clock stands, and moves when somebody says so (the message `skip`). Whatever waits for a time waits by
// that clock, in its run and in the runs below it, so that weeks pass in seconds. What is performed takes its own time,
// and none of the rehearsal's.
//
//   a skip is   what happens                                                    next
//   asked       the run, and all below it, come to rest: nothing is under way   the clock moves to the first end of a
//                                                                               wait, no further than was asked for
//   moving      what ends there goes on, at its own time                        asked, until the clock stands where it
//                                                                               was to stand
//
// Each stop of the clock is stated before what comes of it.
import type { KeepTimeInput, KeepTimeOutput } from '../activities/contract.ts';
import { isoTime } from '../src/rules/channels.ts';
import type { ErrorCode } from '../src/rules/errors.ts';
import { MAX_SKIP_STOPS } from '../src/rules/limits.ts';
import {
  NEXT_DEADLINE,
  type KeepTimeMessage,
  type Resting,
  type SkipMessage,
} from '../src/rules/messages.ts';
import type { Rehearsal } from '../src/rules/run-input.ts';
import type { Run } from './context.ts';
import { failureOf } from './failures.ts';
import { newFrame, type ClockState } from './frames.ts';
import { emit } from './journal.ts';
import { isPausing } from './pause.ts';
import { isCrowded, runKey, type Steps } from './steps.ts';

/** Of a rehearsal: its clock, and what waits by it in this segment. */
export interface Clock {
  readonly state: ClockState;
  readonly waits: Set<Wait>;
  /** Waits by the clock of the world. */
  lapsing: number;
  /** Looks at what goes on, for keys. */
  looks: number;
  /** Steps as the world gives them. */
  readonly world: Steps;
}

interface Wait {
  readonly deadlineMs: number | undefined;
  readonly ready: () => boolean;
  isOver: boolean;
}

/** `state`: of the segment before. */
export function clockOf(
  { fromMs }: Rehearsal,
  world: Steps,
  { startedAtMs, clock }: { readonly startedAtMs: number; readonly clock?: ClockState },
): Clock {
  const state = clock ?? { nowMs: fromMs ?? startedAtMs, stops: 0 };
  return { state, world, waits: new Set(), lapsing: 0, looks: 0 };
}

/** The same Steps by the clock of a rehearsal. */
export function rehearsed(clock: Clock): Steps {
  const { world, state, waits } = clock;
  return {
    ...world,
    now: () => state.nowMs,
    async wait(key, deadlineMs, ready) {
      if (deadlineMs !== undefined && deadlineMs <= state.nowMs) return ready();
      const wait: Wait = { deadlineMs, ready, isOver: false };
      let isReady = false;
      waits.add(wait);
      try {
        await world.wait(key, undefined, () => (isReady = ready()) || wait.isOver);
      } finally {
        waits.delete(wait);
      }
      return isReady;
    },
    // An attempt that its source held: that one's clock stood still.
    waitForSource(run, facts) {
      const held = world.waitForSource(run, facts);
      if (!held) return undefined;
      clock.lapsing++;
      return held.finally(() => clock.lapsing--);
    },
    async lapse(key, limitMs, ready) {
      clock.lapsing++;
      return world.lapse(key, limitMs, ready).finally(() => clock.lapsing--);
    },
  };
}

/** The first event behind a run's start: readers know its clock from there on. */
export function stateClock(run: Run): void {
  if (run.clock) stateStop(run.clock, 0);
}

function stateStop({ state }: Clock, skippedMs: number): void {
  const payload = { now: isoTime(state.nowMs), skippedMs };
  emit('openwop-temporal.clock-set', payload, { key: `clock-set|${state.stops++}` });
}

export function skipRefusal(run: Run): ErrorCode | undefined {
  if (!run.clock) return 'not_a_rehearsal';
  return run.ending || run.clock.state.skip || isPausing(run) ? 'run_state_conflict' : undefined;
}

export function takeSkip({ clock }: Run, { to }: SkipMessage): string {
  if (clock)
    clock.state.skip = {
      ...(to === NEXT_DEADLINE ? {} : { untilMs: clock.state.nowMs + to }),
      stops: 0,
    };
  return 'skipping';
}

/** The run above asks again. */
export function keepTimeRefusal(run: Run): ErrorCode | undefined {
  if (!run.clock) return 'not_a_rehearsal';
  if (run.ending) return 'run_state_conflict';
  return isAtRest(run, run.clock) ? undefined : 'service_unavailable';
}

export function keepTime(run: Run, { toMs }: KeepTimeMessage): Resting {
  const { clock } = run;
  if (clock && toMs !== undefined && toMs > clock.state.nowMs) moveTo(clock, toMs);
  return restingOf(run);
}

function restingOf({ clock, state }: Run): Resting {
  const children = Object.entries(state.children ?? {}).flatMap(([runId, { hasEnded }]) =>
    hasEnded ? [] : [runId],
  );
  const nextMs = [...(clock?.waits ?? [])].reduce(
    (first, { deadlineMs = Infinity }) => Math.min(first, deadlineMs),
    Infinity,
  );
  return { children, ...(nextMs === Infinity ? {} : { nextMs }) };
}

/** What ends there ends now, and is told so before anything else moves. */
function moveTo(clock: Clock, toMs: number): void {
  const skippedMs = toMs - clock.state.nowMs;
  clock.state.nowMs = toMs;
  stateStop(clock, skippedMs);
  for (const wait of clock.waits) wait.isOver ||= (wait.deadlineMs ?? Infinity) <= toMs;
}

/** Nothing is under way, and nothing that waits has what it waits for. */
function isAtRest(run: Run, clock: Clock): boolean {
  if (run.ending || run.inFlight > 0 || run.holding.size > 0 || isPausing(run)) return false;
  const isMoving = [...clock.waits].some(({ ready, isOver }) => isOver || ready());
  return !isMoving && clock.lapsing === 0;
}

/** Until the run, or this segment of it, ends. */
export async function runClock(run: Run): Promise<void> {
  const { clock } = run;
  if (!clock) return;
  const { state } = clock;
  for (;;) {
    await look(clock, () => run.ending !== undefined || isAsked(run, clock));
    if (run.ending) return;
    if (!(await staysSo(clock, () => isAsked(run, clock)))) continue;
    if (isCrowded(run)) await run.steps.nextTask(run);
    else await (state.telling ? tellBelow(run, clock) : stop(run, clock)).catch(giveUp(clock));
  }
}

/** Those below cannot be asked: in a replay nobody is. The clock stays where it is. */
function giveUp({ state }: Clock): (error: unknown) => void {
  return (error) => {
    if (!failureOf(error)) throw error;
    state.skip = undefined;
    state.telling = undefined;
  };
}

function isAsked(run: Run, clock: Clock): boolean {
  return (clock.state.skip ?? clock.state.telling) !== undefined && isAtRest(run, clock);
}

/** Checked when nothing else goes on. */
async function look(clock: Clock, ready: () => boolean): Promise<void> {
  await clock.world.wait(nextKey(clock), undefined, ready);
}

function nextKey(clock: Clock): string {
  return runKey(`clock.${clock.looks++}`);
}

/** What woke in the same moment has moved by then. */
async function staysSo(clock: Clock, holds: () => boolean): Promise<boolean> {
  for (let round = 0; round < LOOKS; round++) {
    let isFirst = true;
    await look(clock, () => !isFirst || (isFirst = false));
    if (!holds()) return false;
  }
  return true;
}

const LOOKS = 2;

/** Moves the clock once, as far as nothing would have ended before. */
async function stop(run: Run, clock: Clock): Promise<void> {
  const { state } = clock;
  const below = await restBelow(run, clock);
  if (!below || !state.skip || !isAtRest(run, clock)) return;
  const nextMs = Math.min(restingOf(run).nextMs ?? Infinity, below.nextMs ?? Infinity);
  const { untilMs = nextMs, stops } = state.skip;
  // Nothing waits for a time: the clock stays where it is, and says so.
  if (untilMs === Infinity) {
    state.skip = undefined;
    return stateStop(clock, 0);
  }
  // Those below may stand behind it: a fork has left its source before they were told.
  const toMs = Math.max(state.nowMs, Math.min(nextMs, untilMs));
  const isThere = toMs >= untilMs || stops + 1 >= MAX_SKIP_STOPS;
  state.skip = isThere ? undefined : { untilMs, stops: stops + 1 };
  moveTo(clock, toMs);
  if (below.children.length === 0) return;
  state.telling = { toMs, children: below.children };
  await tellBelow(run, clock);
}

/** What all below the run wait for, once they are at rest. Undefined: one has ended, and its end is on its way. */
async function restBelow(run: Run, clock: Clock): Promise<KeepTimeOutput | undefined> {
  const { children } = restingOf(run);
  if (children.length === 0) return { children: [] };
  const below = await askBelow(run, clock, { children });
  if (!below.hasEnded) return below;
  const isTold = () => restingOf(run).children.length < children.length;
  const limitMs = WORD_LIMIT_MS;
  await clock.world.lapse(nextKey(clock), limitMs, () => run.ending !== undefined || isTold());
  return undefined;
}

/** The word of a child's end is waited for so long before all are asked again. */
const WORD_LIMIT_MS = 1_000;

/** Those below go on where the clock stands: again where a segment ended meanwhile. */
async function tellBelow(run: Run, clock: Clock): Promise<void> {
  const { state } = clock;
  if (!state.telling) return;
  await askBelow(run, clock, state.telling);
  state.telling = undefined;
}

/**
 * A fork leaves its source: who was to be told were that one's. Its own hear of the clock with the next skip. Returns whom
 * it tells nothing more.
 */
export function tellNobody({ clock }: Run): readonly string[] {
  const { telling } = clock?.state ?? {};
  if (clock) clock.state.telling = undefined;
  return telling?.children ?? [];
}

function askBelow(
  run: Run,
  { state }: Clock,
  input: Omit<KeepTimeInput, 'context'>,
): Promise<KeepTimeOutput> {
  const asks = (state.asks ?? 0) + 1;
  state.asks = asks;
  // It belongs to no visit: no node has an empty id.
  const place = { run, frame: newFrame('', 0) };
  return run.steps.run(place, 'keepTime', { step: `clock.${asks}`, input });
}
