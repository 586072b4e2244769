// Child runs (RFC 0007, RFC 0022; seed 003 §3.4). A child is a run of its own that an activity accepts, under an id that
// this code fixes before; it tells by a signal that it has ended, and what it came to is read from its log by another
// activity, so that a child which could tell nothing any more ends the same way.
//
//   phase     what happens                                         next
//   asked     its id is known, and that this run waits for it      running, or it is refused
//   running   it is there: node.dispatched                         ended: it told so, was cancelled, or took too long
//   held      it was running where a branch by recorded tools      running, as the record has it
//             left its source
//
// A branch by recorded tools begins none: each is one that the record has, which came to its end there. Those of a node give
// what they have in the order in which that was taken there.
//
// A wait that is cancelled cancels its child, and sees it end before the run that waited comes to its own end.
import { isCancellation } from '@temporalio/workflow';
import type { EndChildInput, EndChildOutput } from '../activities/contract.ts';
import {
  CHILD_CANCEL_MS,
  CHILD_TIMEOUT,
  MAX_FAN_OUT,
  MAX_OPEN_CHILDREN,
  RECORDED_TURN_MS,
  type ChildRequest,
  type ChildStart,
} from '../src/rules/children.ts';
import { childPlaceOf, childRunIdOf, emissionKey } from '../src/rules/ids.ts';
import {
  emitFact,
  nodeFailure,
  nodeState,
  tupleOf,
  type Kin,
  type Run,
  type Visit,
} from './context.ts';
import { newFrame, type OpenChild } from './frames.ts';
import { gate, isPaused } from './pause.ts';
import { stepKey, uncancelled } from './steps.ts';

/** A type, not an interface: it is part of a frame's JSON. */
export type Child = {
  /** Names it within the node attempt. */
  readonly step: string;
  /** Another one in a fork, once that has left its source. */
  runId: string;
  readonly callId: string;
  /** The same at each attempt of its node (childPlaceOf). */
  readonly place: string;
  /** Of a running one: what it runs. */
  workflowId?: string;
  phase: 'asked' | 'running' | 'held' | 'refused';
  /** It is a child of this run, and has ended. */
  recordedOf?: string;
  /** It outlives the run that waits for it. */
  readonly isDetached?: true;
  refusal?: { code: string; message: string };
  /** End of its time (workflow time), where it has one. */
  deadlineMs?: number;
  /** It was told to end, and why. */
  dismissed?: 'timeout' | 'not-needed';
};

/** What is asked of a child beside its identity. */
export type Asked = Omit<
  ChildRequest,
  'runId' | 'callId' | 'nodeId' | 'place' | 'leftTools' | 'isDetached' | 'clockMs'
>;

/** A child to be started. `timeoutMs`: of its whole life. */
export interface Wanted {
  readonly child: Child;
  readonly asked: Asked;
  readonly timeoutMs?: number;
}

export type ChildResult = EndChildOutput & { readonly childRunId: string };

/**
 * The first child of a call. It is known from now on: what it tells is taken, however early it comes. `place`: names it
 * within the visit of its node, and is the same at each attempt.
 */
export function newChild(
  visit: Visit,
  { step, callId, place: name, isDetached }: Omit<Child, 'runId' | 'phase'>,
): Child {
  const { run, frame } = visit;
  const runId = childRunIdOf(run.livedAs, callId, 0);
  const detached = isDetached ? { isDetached } : {};
  (run.state.children ??= {})[runId] = { nodeId: frame.nodeId, ...detached };
  const place = childPlaceOf(frame, name);
  const child: Child = { step, runId, callId, place, phase: 'asked', ...detached };
  run.kin.add({ visit, child });
  return child;
}

/** Throws child_limit_exceeded where a batch, or what is open with it, would be more than permitted. */
export function requireRoom(visit: Visit, step: string, count: number): void {
  if (count > MAX_FAN_OUT)
    throw breached(visit, step, { kind: 'child-fan-out', limit: MAX_FAN_OUT, observed: count });
  const observed = Object.keys(visit.run.state.children ?? {}).length + count;
  if (observed > MAX_OPEN_CHILDREN)
    throw breached(visit, step, { kind: 'child-open', limit: MAX_OPEN_CHILDREN, observed });
}

type Breach = {
  readonly kind: 'child-depth' | 'child-fan-out' | 'child-open' | 'child-runs';
  readonly limit: number;
  readonly observed: number;
};

/** States the bound; returns what the node fails with. */
function breached(visit: Visit, step: string, breach: Breach) {
  const { nodeId } = visit.frame;
  emitFact(visit, 'cap.breached', { step: `${step}.bound`, payload: { ...breach, nodeId } });
  const { kind, limit, observed } = breach;
  return nodeFailure('child_limit_exceeded', `More child runs than permitted (${kind} ${limit}).`, {
    ...{ kind, limit, observed },
  });
}

/**
 * Starts those of a batch that are not started, in their order, and states node.dispatched for each that is. A child that
 * is refused says why in `refusal`.
 */
export async function startChildren(
  visit: Visit,
  step: string,
  batch: readonly Wanted[],
): Promise<void> {
  const { run } = visit;
  const wanted = batch.filter(({ child }) => child.phase === 'asked');
  if (wanted.length === 0) return;
  const { leftTools, sourceLength } = run.state;
  const input = {
    requests: wanted.map((one) => requestOf(visit, one)),
    ...(leftTools && sourceLength !== undefined ? { sourceLength } : {}),
  };
  const children = wanted.map(({ child }) => child);
  for (const child of children) noteComing(run, child);
  const { starts } = await orEnded(visit, children, () =>
    run.steps.run(visit, 'startChildren', { step: `${step}.start`, input }),
  ).finally(() => {
    for (const child of children) delete run.state.children?.[child.runId]?.isComing;
  });
  const atMs = run.steps.now(stepKey(visit, `${step}.started`));
  wanted.forEach((one, index) => {
    const start = starts[index];
    if (start?.kind === 'started') noteStarted(visit, one, { ...start, atMs });
    else if (start?.kind === 'recorded') noteRecorded(visit, one, start);
    else noteRefused(visit, one.child, start);
  });
}

function requestOf({ run, frame }: Visit, { child, asked }: Wanted): ChildRequest {
  const { runId, callId, place, isDetached } = child;
  const { nodeId } = frame;
  const { leftTools } = run.state;
  return {
    ...{ ...asked, runId, callId, nodeId, place },
    ...(leftTools ? { leftTools } : {}),
    ...(isDetached ? { isDetached } : {}),
    ...(run.clock && { clockMs: run.clock.state.nowMs }),
  };
}

function noteStarted(
  visit: Visit,
  { child, asked, timeoutMs }: Wanted,
  { workflowId, atMs }: { readonly workflowId: string; readonly atMs: number },
): void {
  child.phase = 'running';
  child.workflowId = workflowId;
  if (timeoutMs !== undefined) child.deadlineMs = atMs + timeoutMs;
  stateDispatched(visit, child, { step: child.step, causedBy: asked.startedBy });
}

function noteRecorded(
  visit: Visit,
  { child, asked }: Pick<Wanted, 'child' | 'asked'>,
  start: Recorded,
): void {
  takeRecorded(visit, child, start);
  stateDispatched(visit, child, { step: child.step, causedBy: asked.startedBy });
}

type Recorded = Extract<ChildStart, { kind: 'recorded' }>;

/** From now on it goes by the name that it has there, and has ended. */
function takeRecorded({ run, frame }: Visit, child: Child, start: Recorded): void {
  const { childRunId, workflowId, recordedOf, turn, hasTimedOut } = start;
  const { children = {} } = run.state;
  delete children[child.runId];
  const ordered = turn === undefined ? {} : { turn };
  children[childRunId] = { nodeId: frame.nodeId, hasEnded: true, ...ordered };
  run.state.children = children;
  Object.assign(child, { phase: 'running', runId: childRunId, workflowId, recordedOf });
  if (hasTimedOut) child.dismissed = 'timeout';
}

function stateDispatched(
  visit: Visit,
  { runId: childRunId, workflowId: childWorkflowId = '' }: Child,
  { step, causedBy }: { readonly step: string; readonly causedBy: string },
): void {
  const payload = { childRunId, childWorkflowId };
  emitFact(visit, 'node.dispatched', { step, payload, causedBy });
}

function noteRefused(
  visit: Visit,
  child: Child,
  refusal: Extract<ChildStart, { kind: 'refused' }> | undefined,
): void {
  const { code = 'internal_error', message = 'It was not started.', breach } = refusal ?? {};
  if (breach) breached(visit, child.step, { ...breach, observed: breach.limit + 1 });
  refuse(child, code, message);
  forget(visit.run, child);
}

/** It is not started, and ends as this says. */
export function refuse(child: Child, code: string, message: string): void {
  child.phase = 'refused';
  child.refusal = { code, message };
}

/**
 * Waits for the end of a child; one that takes too long is cancelled, and ends as `child_timeout`. `isNeeded`: once it
 * says no, the child is told to end.
 */
export async function endOf(
  visit: Visit,
  child: Child,
  { isNeeded = () => true, ...taken }: Taking,
): Promise<ChildResult> {
  const { run } = visit;
  const { refusal } = child;
  try {
    await orEnded(visit, [child], () => ended(visit, child, isNeeded));
    if (child.phase === 'held') await recall(visit, child);
    if (child.recordedOf !== undefined) {
      noteComing(run, child);
      await recordedTurn(visit, child);
    }
    while (isPaused(run)) await gate(visit, child.step);
    const { runId, recordedOf } = child;
    const result = await run.steps.run(visit, 'endChild', {
      step: `${child.step}.end`,
      input: {
        ...{ childRunId: runId, ...taken },
        ...(refusal ? { refused: refusal } : {}),
        ...(recordedOf === undefined ? {} : { recordedOf }),
      },
    });
    // Another than it was, where the run has left its source meanwhile.
    const { runId: childRunId, dismissed } = child;
    if (dismissed !== 'timeout' || result.status === 'completed') return { ...result, childRunId };
    const message = 'The child run took longer than permitted.';
    return { ...result, childRunId, error: { code: CHILD_TIMEOUT, message } };
  } finally {
    forget(run, child);
  }
}

type Taking = Pick<EndChildInput, 'harvest' | 'tool'> & {
  readonly isNeeded?: () => boolean;
};

/** It was under way where the run left its source: the record says what became of it. */
async function recall(visit: Visit, child: Child): Promise<void> {
  const { run } = visit;
  const step = `${child.step}.recalled`;
  const { starts } = await run.steps.run(visit, 'startChildren', {
    step,
    input: { requests: [], underWay: [child.callId] },
  });
  const [start] = starts;
  // A branch of the branch left it here, and performs again: what the child was given is not known.
  if (start?.kind !== 'recorded')
    throw nodeFailure('replay_source_missing', 'The source has no record of this child run.');
  const { runId } = child;
  takeRecorded(visit, child, start);
  if (child.runId === runId) return;
  const causedBy = emissionKey('node.dispatched', tupleOf(visit, child.step));
  stateDispatched(visit, child, { step, causedBy });
}

function noteComing({ state: { children } }: Run, { runId }: Child): void {
  const open = children?.[runId];
  if (open) open.isComing = true;
}

/**
 * Those whose ends the record tells before come first: a join may be decided by one of them. So do those that had ended where
 * the run left its source, which it has as its own. What is coming is waited for without a limit: an outage may be long.
 */
async function recordedTurn(visit: Visit, child: Child): Promise<void> {
  const { run, frame } = visit;
  const { nodeId } = frame;
  const own = run.state.children?.[child.runId]?.turn;
  if (own === undefined) return;
  const isBefore = ([runId, other]: [string, OpenChild]) =>
    other.nodeId === nodeId && runId !== child.runId && (other.turn ?? -1) < own;
  const isToCome = ({ visit: { frame: at }, child: { phase }, isEarlier }: Kin) =>
    !isEarlier && at.nodeId === nodeId && (phase === 'asked' || phase === 'held');
  const before = () => Object.entries(run.state.children ?? {}).filter(isBefore);
  const isTurn = () => before().length === 0 && ![...run.kin].some(isToCome);
  for (let waits = 0; !isTurn(); waits++) {
    const key = stepKey(visit, `${child.step}.turn${waits || ''}`);
    const isInTime = await run.steps.wait(key, run.steps.now(key) + RECORDED_TURN_MS, isTurn);
    if (isInTime || isPaused(run)) return;
    const isComing =
      before().some(([, other]) => other.isComing) ||
      [...run.kin].some((kin) => isToCome(kin) && kin.child.phase === 'held');
    if (!isComing)
      throw nodeFailure('replay_source_missing', 'What the record tells before did not come.');
  }
}

async function ended(visit: Visit, child: Child, isNeeded: () => boolean): Promise<void> {
  if (child.phase !== 'running') return;
  const { run } = visit;
  const isOver = () => !isOpen(run, child) || !isNeeded();
  const key = stepKey(visit, `${child.step}.wait`);
  if (await run.steps.wait(key, child.deadlineMs, isOver))
    return dismiss(visit, child, 'not-needed');
  child.dismissed ??= 'timeout';
  await cancelChild(visit, child, { step: 'timeout', reason: CHILD_TIMEOUT });
}

/** Ends a child that nobody needs any more: who waits for it finds out what it came to. */
export async function dismiss(visit: Visit, child: Child, reason: string): Promise<void> {
  if (child.phase !== 'running' || child.dismissed || !isOpen(visit.run, child)) return;
  child.dismissed = 'not-needed';
  await cancelChild(visit, child, { step: 'dismissed', reason });
}

/**
 * Of a run that ends: children whose nodes do not run in this segment any more. Nobody else tells them before the run's
 * own end.
 */
export async function endLeftChildren(run: Run): Promise<void> {
  const left = Object.entries(run.state.children ?? {}).filter(
    ([, { hasEnded, isDetached }]) => !hasEnded && !isDetached,
  );
  const by = { step: 'cascade', reason: reasonOf(run) };
  const told = left.map(([runId, { nodeId }]) => {
    const frame = run.state.frames[nodeId] ?? newFrame(nodeId, nodeState(run, nodeId).visits);
    return cancelChild({ run, frame }, { step: `left.${runId}`, runId }, by).catch(() => undefined);
  });
  await Promise.all(told);
}

/** Tells the child, and waits for its end, no longer than CHILD_CANCEL_MS: that it was told is durable. */
async function cancelChild(
  visit: Pick<Visit, 'run' | 'frame'>,
  child: Pick<Child, 'step' | 'runId'>,
  { step, reason }: { readonly step: string; readonly reason: string },
): Promise<void> {
  const { run } = visit;
  const { runId: childRunId } = child;
  const name = `${child.step}.${step}`;
  const input = { childRunId, reason };
  const { found } = await run.steps.run(visit, 'cancelChild', { step: name, input });
  if (found !== 'open') return;
  const isOver = () => !isOpen(run, child);
  await run.steps.lapse(stepKey(visit, name), CHILD_CANCEL_MS, isOver);
}

/**
 * Whatever cancels the work cancels these children, each before this run's own end (RFC 0007 §D, cascade). A run that
 * fails or an attempt that is over ends them too, and so does a step that fails when some of them have begun: nobody
 * would take what they come to.
 */
async function orEnded<T>(
  visit: Visit,
  children: readonly Child[],
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { run } = visit;
    // A detached one outlives the wait for it, but nobody knows of one whose start is not noted.
    const isLeft = ({ isDetached, phase }: Child) =>
      isDetached && (isCancellation(error) || phase === 'running');
    const open = children.filter((child) => !isLeft(child) && isOpen(run, child));
    const by = { step: 'cascade', reason: reasonOf(run) };
    // What cannot be told now the family keeper tells, once this run has ended.
    await inFlight(run, () =>
      uncancelled(() =>
        Promise.all(open.map((child) => cancelChild(visit, child, by).catch(() => undefined))),
      ),
    );
    for (const child of children) forget(run, child);
    throw error;
  }
}

/** The next segment would begin the step again that failed here. */
async function inFlight(run: Run, work: () => Promise<unknown>): Promise<void> {
  run.inFlight++;
  await work().finally(() => {
    run.inFlight--;
    run.progress++;
  });
}

function isOpen(run: Run, { runId }: Pick<Child, 'runId'>): boolean {
  const child = run.state.children?.[runId];
  return child !== undefined && child.hasEnded !== true;
}

function forget(run: Run, { runId }: Child): void {
  delete run.state.children?.[runId];
  for (const kin of run.kin) if (kin.child.runId === runId) run.kin.delete(kin);
}

/** `parent-cancelled` is the protocol's word (run.cancelled). */
function reasonOf({ ending }: Run): string {
  if (ending?.kind === 'failed') return 'parent-failed';
  if (ending?.kind === 'completed') return 'parent-completed';
  return ending ? 'parent-cancelled' : 'not-needed';
}
