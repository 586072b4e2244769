// Pause and resume (rest-endpoints.md): an operator's hold on a run, beside whatever its nodes wait for. Time runs on
// meanwhile: a run or a node that is out of time ends, and a question keeps its deadline.
//
// | pause    | by                        | new attempts | running ones                   | left by            |
// |----------|---------------------------|--------------|--------------------------------|--------------------|
// | asked    | drain-current-node        | wait         | go on to their end or question | quiet: paused      |
// | asked    | immediate                 | wait         | are cut, or begin no step      | quiet: paused      |
// | paused   | `run.paused`              | wait         | those that ask wait; no step   | resume             |
//
// A resume that comes while it is only asked takes it back, and nothing is stated.
import type { PauseRunMessage, ResumeRunMessage } from '../src/rules/messages.ts';
import { passCancellation } from './failures.ts';
import type { Run, Visit } from './context.ts';
import type { Frame } from './frames.ts';
import { emit } from './journal.ts';
import { runKey, stepKey } from './steps.ts';

type Pause = NonNullable<Run['state']['pause']>;

export function pause(run: Run, { reason, drainPolicy }: PauseRunMessage): void {
  const number = (run.state.pauses ?? 0) + 1;
  run.state.pauses = number;
  run.state.pause = {
    number,
    drainPolicy,
    isEffective: false,
    ...(reason === undefined ? {} : { reason }),
  };
  if (drainPolicy === 'immediate') {
    run.holding.add('paused');
    for (const frame of runningFrames(run)) cut(run, frame);
  }
  awaitQuiet(run);
}

export function resume(run: Run, { reason }: ResumeRunMessage): void {
  const { pause: held } = run.state;
  run.state.pause = undefined;
  run.holding.delete('paused');
  if (!held?.isEffective) return;
  emit(
    'run.resumed',
    { ...(reason === undefined ? {} : { reason }) },
    { key: `run.resumed|${held.number}`, because: pausedKey(held) },
  );
}

/** Goes on with what an earlier segment carried. */
export function restorePause(run: Run): void {
  if (isPaused(run)) run.holding.add('paused');
  if (!run.state.pause?.isEffective) awaitQuiet(run);
}

/** Nothing that has not begun may begin. */
export function isPausing({ state, ending }: Run): boolean {
  return state.pause !== undefined && !ending;
}

/** Nothing goes on, not even what was answered. */
export function isPaused(run: Run): boolean {
  return isPausing(run) && isStopped(run);
}

/** As `isPaused`, also of a run that has ended since. */
export function isStopped({ state: { pause: held } }: Run): boolean {
  return held?.isEffective === true || held?.drainPolicy === 'immediate';
}

/** Waits for the end of this pause, or of the run. */
export async function gate(visit: Visit, step: string): Promise<void> {
  const { run } = visit;
  const number = run.state.pause?.number;
  const isOver = () => run.state.pause?.number !== number || run.ending !== undefined;
  const key = stepKey(visit, `${step}.pause${number}`);
  await rest(visit, () => run.steps.wait(key, undefined, isOver));
}

/** A strand of the node's work that is held back: the node is quiet where no other one goes on. */
export async function rest(
  { run, frame: { nodeId } }: Pick<Visit, 'run' | 'frame'>,
  wait: () => Promise<unknown>,
): Promise<void> {
  const add = (count: number) => run.atRest.set(nodeId, (run.atRest.get(nodeId) ?? 0) + count);
  add(1);
  await wait().finally(() => add(-1));
}

function awaitQuiet(run: Run): void {
  const { pause: asked } = run.state;
  if (asked) watch(run, asked).catch(passCancellation);
}

/** What was quiet may not be so any more when the wait ends: it is looked at again in the breath of the statement. */
async function watch(run: Run, asked: Pause): Promise<void> {
  const isOver = () => run.ending !== undefined || run.state.pause !== asked;
  const isDue = () => isQuiet(run) && !run.steps.isUnstated(pausedKey(asked));
  for (let round = 0; !isOver(); round++) {
    const key = runKey(`pause${asked.number}.${round}`);
    await run.steps.wait(key, undefined, () => isOver() || isDue());
    if (!isOver() && isDue()) return takeEffect(run, asked);
  }
}

const pausedKey = ({ number }: Pause): string => `run.paused|${number}`;

function takeEffect(run: Run, asked: Pause): void {
  asked.isEffective = true;
  run.holding.add('paused');
  run.progress++;
  const { reason, drainPolicy } = asked;
  emit(
    'run.paused',
    { drainPolicy, ...(reason === undefined ? {} : { reason }) },
    { key: pausedKey(asked) },
  );
}

/** No attempt is under way but those that wait for a human, and no step of any. */
function isQuiet(run: Run): boolean {
  return run.inFlight === 0 && runningFrames(run).every(({ nodeId }) => isHeld(run, nodeId));
}

function runningFrames(run: Run): Frame[] {
  // Where an answer is kept for the resume, its node rests.
  const isKept = isPaused(run);
  const asking = new Set(
    Object.values(run.state.interrupts)
      .filter(({ resolution }) => resolution === undefined || isKept)
      .map(({ nodeId }) => nodeId),
  );
  // One that waits for a child rests as well: to cut it would end the child.
  const waiting = new Set(Object.values(run.state.children ?? {}).map(({ nodeId }) => nodeId));
  return Object.values(run.state.frames).filter(
    ({ phase, nodeId }) => phase === 'started' && !asking.has(nodeId) && !waiting.has(nodeId),
  );
}

/** Its child ended, or was refused, while the pause was asked for: what comes next is held back. */
function isHeld(run: Run, nodeId: string): boolean {
  return isPaused(run) && (run.atRest.get(nodeId) ?? 0) > 0;
}

/** Its attempt ends without an event of its own, and the next one waits for the resume. */
function cut(run: Run, frame: Frame): void {
  frame.isCut = true;
  run.scopes.get(frame.nodeId)?.cancel();
}
