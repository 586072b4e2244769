// A visit of a node, from node.started to its end: attempts, time limits and the closing of what an attempt left
// open (architecture §4). Node retries are a loop here, not Temporal's: each attempt is in the log.
import { CancellationScope, CancelledFailure, isCancellation } from '@temporalio/workflow';
import { closingsOf, cutCalls, type Ending as ClosingReason } from '../src/rules/endings.ts';
import type { PayloadOf } from '../src/rules/events.ts';
import { emissionKey } from '../src/rules/ids.ts';
import { isJsonObject, type JsonObject } from '../src/rules/json.ts';
import { inTheWakeOf } from './causes.ts';
import {
  attemptKey,
  emitFact,
  endRun,
  nodeState,
  tupleOf,
  type Run,
  type NodeOutcome,
  type Visit,
  noteLeft,
} from './context.ts';
import type { Frame, NodeError } from './frames.ts';
import { emit, openItems } from './journal.ts';
import { failureOf } from './failures.ts';
import { stateTakeovers } from './handoff.ts';
import { closeInterrupt } from './interrupts.ts';
import { kindOf } from './nodes/kinds.ts';
import { gate, isPausing } from './pause.ts';
import { missingRequirement } from './nodes/requires-missing.ts';
import { isCrowded, stepKey, type SourceFacts } from './steps.ts';
import { isLeftToNextSegment, noteFullTask } from './segments.ts';
import { bounded, dropOutputs, hold, shownOutputs } from './values.ts';

/** `node.settings` of a definition; absent means one attempt without a time limit. */
interface NodeSettings {
  readonly retry?: {
    maxAttempts?: number;
    initialDelayMs?: number;
    backoff?: number;
    maxDelayMs?: number;
  };
  readonly timeoutMs?: number;
}

const DEFAULT_RETRY = { maxAttempts: 1, initialDelayMs: 1_000, backoff: 2, maxDelayMs: 60_000 };

/** Failures that another attempt cannot mend: somebody decided, or the same input gives the same answer. */
const FINAL_CODES: ReadonlySet<string> = new Set([
  'approval_rejected',
  'escalation_rejected',
  'escalation_limit',
  'interrupt_timeout',
  'handoff_task_schema_violation',
  'envelope_refusal',
  'effect_skipped',
  'payload_too_large',
  'unknown_child_workflow',
  'child_limit_exceeded',
  'handoff_limit_exceeded',
  'no_pending_decision',
  'fan_out_unsupported',
  'loop_limit_exceeded',
]);

/** Waits of an attempt: for its end within its time, and for its beginning after the last one failed. */
const DEADLINE = 'node.deadline';
const RETRY = 'node.retry';
/** Types that state the end of an attempt; one that is cut or cancelled states none of them. */
const END_TYPES = ['node.completed', 'node.failed', 'node.retried'];

export type VisitEnd = NodeOutcome;

const EXECUTIONS = 'executions';

/**
 * True when the node may start; else the run ends with `recursion_limit_exceeded` (capabilities.md §Engine-enforced
 * limits node-executions).
 */
function countExecution(visit: Visit): boolean {
  const { run, frame } = visit;
  const limit = Math.min(
    typeof run.input.configurable.recursionLimit === 'number'
      ? run.input.configurable.recursionLimit
      : Infinity,
    run.input.limits.maxNodeExecutions,
  );
  const executions = run.state.executions - (run.state.cuts ?? 0);
  if (executions >= limit) {
    const observed = executions + 1;
    const { nodeId } = frame;
    const breached = emitFact(visit, 'cap.breached', {
      step: EXECUTIONS,
      payload: { kind: 'node-executions', limit, observed, nodeId },
    });
    const error = {
      code: 'recursion_limit_exceeded',
      message: `The run may start at most ${limit} nodes.`,
      details: { limit, observed },
    };
    inTheWakeOf(breached, () => endRun(run, { kind: 'failed', error }));
    return false;
  }
  run.state.executions++;
  return true;
}

/** The node's pin, without its memory: a host without long-term memory never names one (RFC 0002 §A). */
function agentField({ node }: Visit): Pick<PayloadOf<'node.started'>, 'agent'> {
  if (!node.agent) return {};
  const shown = Object.entries(node.agent).filter(([name]) => name !== 'memoryRef');
  return { agent: Object.fromEntries(shown) as PayloadOf<'node.started'>['agent'] };
}

function start(visit: Visit): boolean {
  const { frame, node, run } = visit;
  if (frame.phase === 'started') return true;
  if (!countExecution(visit)) return false;
  emitFact(visit, 'node.started', {
    step: 'node',
    payload: {
      nodeId: frame.nodeId,
      typeId: node.typeId,
      attempt: frame.attempt,
      ...agentField(visit),
    },
  });
  frame.phase = 'started';
  stateTakeovers(visit);
  const { timeoutMs } = (node.settings ?? {}) as NodeSettings;
  if (timeoutMs !== undefined)
    frame.deadlineMs = run.steps.now(stepKey(visit, DEADLINE)) + timeoutMs;
  return true;
}

/** Runs the node kind within the attempt's time. */
async function attempt(visit: Visit, deadlineMs: number): Promise<NodeOutcome> {
  const { run } = visit;
  const scope = new CancellationScope();
  let done = false;
  let left = false;
  const work = scope
    .run(() => kindOf(visit.node)(visit))
    .finally(() => {
      done = true;
      // The kind has done all, and nothing of it is stated yet: no segment may end here, where it would be done again.
      if (!left) run.inFlight++;
    });
  work.catch(() => undefined);
  try {
    if (await run.steps.wait(stepKey(visit, DEADLINE), deadlineMs, () => done)) return work;
    scope.cancel();
    await work.catch((error: unknown) => {
      if (!isCancellation(error) && !failureOf(error)) throw error;
    });
  } catch (error) {
    // The run's end, and the next attempt of a node that a pause cut, come when nothing of this one is under way: what
    // it streams is sealed first.
    await work.catch(() => undefined);
    throw error;
  } finally {
    left = true;
    if (done) run.inFlight--;
  }
  return {
    kind: 'failed',
    error: { code: 'node_timeout', message: 'The node took longer than permitted.' },
  };
}

/** An attempt's outcome, whatever it threw. Cancellation and bugs of our own go on up. */
async function outcomeOf(visit: Visit): Promise<NodeOutcome> {
  try {
    const outcome = await (visit.frame.deadlineMs === undefined
      ? kindOf(visit.node)(visit)
      : attempt(visit, visit.frame.deadlineMs));
    if (outcome.kind === 'completed') bounded(outcome.outputs, 'the outputs of the node');
    return outcome;
  } catch (error) {
    if (isCancellation(error)) throw new CancelledFailure('the node was cancelled');
    return failedWith(error);
  }
}

/** Throws what is a bug of our own. */
function failedWith(error: unknown): NodeOutcome {
  const failure = failureOf(error);
  if (!failure) throw error;
  const { code, message, details } = failure;
  return {
    kind: 'failed',
    error: { code, message, ...(isJsonObject(details) ? { details } : {}) },
  };
}

/**
 * Counts the outputs among the values of the run, or fails the attempt. It is called directly before they are stored: an
 * attempt that a pause cuts while it waits for that counts nothing.
 */
function counted({ run, frame }: Visit, outcome: NodeOutcome): NodeOutcome {
  if (outcome.kind !== 'completed') return outcome;
  try {
    hold(run, nodeState(run, frame.nodeId).outputs, outcome.outputs);
    return outcome;
  } catch (error) {
    return failedWith(error);
  }
}

/** Closes calls and brackets that the attempt left open; the interrupts that it waited for are gone. */
function closeAttempt(visit: Visit, reason: ClosingReason): void {
  const { run, frame } = visit;
  const left = openItems().filter((item) => item.type !== 'node.started');
  noteLeft(run, cutCalls(left, frame.nodeId));
  for (const { type, payload, ...options } of closingsOf(left, reason, frame.nodeId))
    emit(type, payload, options);
  for (const standing of Object.values(run.state.interrupts))
    if (standing.nodeId === frame.nodeId) closeInterrupt(run, standing, reason.code);
}

function retryDelayMs(retry: typeof DEFAULT_RETRY, failedAttempts: number): number {
  return Math.min(retry.initialDelayMs * retry.backoff ** (failedAttempts - 1), retry.maxDelayMs);
}

/** Prepares the next attempt; false when the budget is used up. */
function retry(visit: Visit, outcome: NodeOutcome & { kind: 'failed' }): boolean {
  const { frame, node, run } = visit;
  const policy = { ...DEFAULT_RETRY, ...((node.settings ?? {}) as NodeSettings).retry };
  const failedAttempts = frame.attempt + 1 - (frame.cuts ?? 0);
  if (FINAL_CODES.has(outcome.error.code) || failedAttempts >= policy.maxAttempts) return false;
  const delayMs = retryDelayMs(policy, failedAttempts);
  emitFact(visit, 'node.retried', {
    step: 'node',
    payload: {
      nodeId: frame.nodeId,
      attempt: frame.attempt + 1,
      delayMs,
      lastError: errorPayload(outcome.error),
    },
  });
  nextAttempt(frame);
  frame.resumeAtMs = run.steps.now(stepKey(visit, RETRY)) + delayMs;
  return true;
}

function nextAttempt(frame: Frame): void {
  frame.attempt++;
  frame.phase = 'ready';
  frame.data = {};
  frame.deadlineMs = undefined;
}

/** After a pause cut the attempt: what it left open is closed, and the next one has not begun. */
export function beginAnew(run: Run, frame: Frame): void {
  delete frame.isCut;
  // It had failed by itself, and the next one stands ready: it waits for the resume in the place of its delay.
  if (frame.phase === 'ready') {
    frame.resumeAtMs = undefined;
    return;
  }
  const node = run.nodes.get(frame.nodeId);
  if (node) closeAttempt({ run, node, frame }, { code: 'paused', message: 'The run was paused.' });
  nextAttempt(frame);
  frame.cuts = (frame.cuts ?? 0) + 1;
  run.state.cuts = (run.state.cuts ?? 0) + 1;
}

function errorPayload({ code, message, details }: NodeError): PayloadOf<'node.failed'>['error'] {
  return { code, message, ...(details ? { details } : {}) };
}

/** A source stated the start, or the limit that forbade it (`countExecution`), or neither if its run ended first. */
function factsOfStart(visit: Visit): SourceFacts {
  const breached = emissionKey('cap.breached', tupleOf(visit, EXECUTIONS));
  return { keys: [attemptKey(visit), breached], waitsIfNone: true };
}

/** What the attempt waits for before it starts. One that an earlier segment began waits for a task with room alone. */
function beforeStart(visit: Visit): Promise<unknown> | undefined {
  const { run, frame } = visit;
  if (frame.phase !== 'ready') return waitForRoom(run);
  if (isPausing(run)) return gate(visit, 'node.start');
  if (isLeftToNextSegment(run)) return run.steps.until(() => !isLeftToNextSegment(run));
  return run.steps.waitForSource(run, factsOfStart(visit)) ?? waitForRoom(run);
}

/** What the attempt waits for before its end is stated: its source's, while a record is played, else a task with room. */
function beforeEnd(visit: Visit): Promise<unknown> | undefined {
  const { run } = visit;
  const keys = END_TYPES.map((type) => emissionKey(type, tupleOf(visit, 'node')));
  return run.steps.waitForSource(run, { keys, waitsIfNone: false }) ?? waitForRoom(run);
}

function waitForRoom(run: Run): Promise<void> | undefined {
  if (!isCrowded(run)) return undefined;
  noteFullTask(run);
  return run.steps.nextTask(run);
}

/** Runs attempts until one completes or the budget is used up. Undefined: the run ended before the node started. */
export async function visitNode(run: Run, frame: Frame): Promise<VisitEnd | undefined> {
  const node = run.nodes.get(frame.nodeId);
  if (!node) throw new Error(`node ${frame.nodeId} is not in the definition`);
  const visit: Visit = { run, node, frame };
  const missing = missingRequirement(node.typeId);
  if (missing) {
    fail(visit, missing);
    return { kind: 'failed', error: missing };
  }
  for (;;) {
    // The attempt failed by itself as a pause cut it: what comes next waits beyond the scope that was cancelled.
    if (frame.isCut) throw new CancelledFailure('the node was cut');
    if (frame.resumeAtMs !== undefined)
      await run.steps.wait(stepKey(visit, RETRY), frame.resumeAtMs, () => false);
    frame.resumeAtMs = undefined;
    // Without a function of their own: where there is nothing to wait for, not even a promise stands between.
    for (let wait = beforeStart(visit); wait; wait = beforeStart(visit)) await wait;
    if (run.ending || !start(visit)) return undefined;
    const found = await outcomeOf(visit);
    for (let wait = beforeEnd(visit); wait; wait = beforeEnd(visit)) await wait;
    const outcome = counted(visit, found);
    if (outcome.kind === 'completed') {
      complete(visit, outcome.outputs);
      return outcome;
    }
    closeAttempt(visit, outcome.error);
    if (retry(visit, outcome)) continue;
    fail(visit, outcome.error);
    return outcome;
  }
}

function complete(visit: Visit, outputs: JsonObject): void {
  const { frame, run } = visit;
  const state = nodeState(run, frame.nodeId);
  state.outcome = 'completed';
  state.outputs = outputs;
  state.error = undefined;
  emitFact(visit, 'node.completed', {
    step: 'node',
    payload: { nodeId: frame.nodeId, outputs: shownOutputs(visit, outputs), ...agentField(visit) },
  });
}

function fail(visit: Visit, error: NodeError): void {
  const { frame, run } = visit;
  const state = nodeState(run, frame.nodeId);
  state.outcome = 'failed';
  state.error = error;
  dropOutputs(run, frame.nodeId);
  // A node that was never started was never attempted.
  const attempts: { attempts?: number } =
    frame.phase === 'ready' ? {} : { attempts: frame.attempt + 1 };
  emitFact(visit, 'node.failed', {
    step: 'node',
    payload: { nodeId: frame.nodeId, error: errorPayload(error), ...attempts },
  });
}
