// Waiting for somebody outside (interrupt.md; architecture §4): an interrupt is raised once, stands in the run's state
// until its frame takes the resolution, and ends by an answer, by its deadline or with the run.
import { CancellationScope, CancelledFailure } from '@temporalio/workflow';
import type { ErrorCode } from '../src/rules/errors.ts';
import type { PayloadOf } from '../src/rules/events.ts';
import { answersLeft } from '../src/rules/heard.ts';
import { actionIn, reasonOf } from '../src/rules/gate-actions.ts';
import { digestOf, emissionKey, payloadId } from '../src/rules/ids.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import type { InterruptKind } from '../src/rules/status.ts';
import { principalOf } from '../src/rules/subject.ts';
import { tallyOf } from '../src/rules/votes.ts';
import { emitFact, nodeFailure, nodeState, tupleOf, type Run, type Visit } from './context.ts';
import type { Interrupt, NodeError, Resolution } from './frames.ts';
import { approvalRefusal, judgingOf, receivedAction, takeApproval } from './approvals.ts';
import { abandonConversation, takeTurn, turnRefusal } from './conversation.ts';
import { emit } from './journal.ts';
import { gate, isPaused, isStopped } from './pause.ts';
import { isCrowded, stepKey } from './steps.ts';

export interface InterruptRequest {
  /** Step of the visit that asks: with the tuple it identifies the interrupt. */
  readonly step: string;
  readonly kind: InterruptKind;
  readonly data: JsonObject;
  readonly resumeSchema: JsonObject;
  /** Absent: the node's, else the run's. */
  readonly timeoutMs?: number;
  /** Key of the fact that it is asked for, where that is not what its node came to last. */
  readonly because?: string;
  /** Further fields of node.suspended (low confidence: reason, agentId, threshold, observed). */
  readonly suspended?: JsonObject;
  /** Right behind what raises it, once. */
  readonly onRaised?: (open: Interrupt) => void;
  /** Why the answer is not needed any more, once it is not: the question is closed, and its wait fails with that. */
  readonly withdrawnBy?: () => NodeError | undefined;
  /** `accept` has a call performed that may have been before: of a record it is taken only where tools go by that, too. */
  readonly mayRepeat?: true;
}

/** How long the question stands. An agent's node has one time for all that it asks: decisions, calls, effects. */
function timeoutOf({ run, node }: Visit, { timeoutMs }: InterruptRequest): number {
  const { escalationTimeoutMs } = node.config as { escalationTimeoutMs?: number };
  return timeoutMs ?? escalationTimeoutMs ?? run.input.limits.interruptTimeoutMs;
}

function interruptIdOf(visit: Visit, { step }: InterruptRequest): string {
  return payloadId('int', visit.run.input.idSeed, tupleOf(visit, step));
}

/** States the facts of a new interrupt, in the order of interrupt.md, and opens it. */
function raise(visit: Visit, request: InterruptRequest): Interrupt {
  const { run, frame } = visit;
  if (run.steps.isReplay())
    throw nodeFailure('replay_source_missing', 'The source has no record of an answer.');
  const { nodeId } = frame;
  const { step, kind, data, resumeSchema } = request;
  const timeoutMs = timeoutOf(visit, request);
  const interruptId = interruptIdOf(visit, request);
  const key = `${nodeId}:${frame.visit}:${frame.attempt}:${step}`.slice(0, 256);
  const suspendedKey = emitFact(visit, 'node.suspended', {
    step,
    payload: { nodeId, interruptId, kind, key, ...request.suspended },
    because: request.because,
  });
  emitFact(visit, 'interrupt.requested', {
    step,
    causedBy: suspendedKey,
    payload: { kind, key, data, resumeSchema, timeoutMs },
  });
  emitShadow(visit, request, { interruptId, suspendedKey });
  const interrupt: Interrupt = {
    interruptId,
    nodeId,
    kind,
    step,
    judging: judgingOf(data),
    heard: 0,
    askedBack: 0,
    schemaDigest: digestOf(canonicalJson(resumeSchema)),
    suspendedKey,
    visit: frame.visit,
    attempt: frame.attempt,
    deadlineMs: run.steps.now(stepKey(visit, step)) + timeoutMs,
    votes: [],
  };
  run.state.interrupts[interruptId] = interrupt;
  request.onRaised?.(interrupt);
  return interrupt;
}

/** Actions that approval.requested knows. */
type LegacyAction = PayloadOf<'approval.requested'>['actions'][number];
const LEGACY_ACTIONS: readonly LegacyAction[] = ['accept', 'reject', 'refine', 'edit', 'ask'];

function isLegacyAction(action: string): action is LegacyAction {
  return (LEGACY_ACTIONS as readonly string[]).includes(action);
}

/** The legacy names of a request, which older clients read (run-event-payloads.schema.json). */
function emitShadow(
  visit: Visit,
  { step, kind, data }: InterruptRequest,
  { interruptId, suspendedKey }: Pick<Interrupt, 'interruptId' | 'suspendedKey'>,
): void {
  const { nodeId } = visit.frame;
  if (kind === 'approval') {
    const [first, ...others] = (data.actions as string[])
      .map((action) => (action === 'edit-accept' ? 'edit' : action))
      .filter(isLegacyAction);
    if (first === undefined) return;
    const asked = data as Partial<PayloadOf<'approval.requested'>>;
    const { artifactId = nodeId, artifactType = 'approval', title = '', requiredApprovals } = asked;
    emitFact(visit, 'approval.requested', {
      step,
      because: suspendedKey,
      payload: {
        nodeId,
        interruptId,
        artifactId,
        artifactType,
        title,
        actions: [first, ...others],
        ...(requiredApprovals === undefined ? {} : { requiredApprovals }),
      },
    });
  } else if (kind === 'clarification') {
    const { questions = [] } = data as Partial<PayloadOf<'clarification.requested'>>;
    emitFact(visit, 'clarification.requested', {
      step,
      because: suspendedKey,
      payload: { nodeId, interruptId, questions },
    });
  }
}

/** The run's own deadline bounds every wait. */
function earlier(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined) return b;
  return b === undefined ? a : Math.min(a, b);
}

/**
 * Raises the interrupt (once: a frame entered again finds it open or resolved) and waits for its resolution. Throws
 * the node failure `interrupt_timeout` at the deadline; a node's own time limit wakes the wait too.
 */
export async function interrupt(visit: Visit, request: InterruptRequest): Promise<Resolution> {
  const { run, frame } = visit;
  while (isCrowded(run)) await run.steps.nextTask(run);
  if (CancellationScope.current().consideredCancelled) throw new CancelledFailure('cancelled');
  const { withdrawnBy = () => undefined } = request;
  const open = run.state.interrupts[interruptIdOf(visit, request)] ?? raise(visit, request);
  // Asked for when it is needed: a fork moves deadlines when it leaves its source.
  const endMs = () => earlier(open.deadlineMs, frame.deadlineMs);
  const key = factKey(open, 'interrupt.resolved');
  const isWithdrawn = () => withdrawnBy() !== undefined && !run.steps.isUnstated(key);
  const isOver = () => open.resolution !== undefined || isWithdrawn();
  const isReady = () => isOver() || isToSeek(run, open) || isToNote(run, open);
  const waitAs = (name: string) => run.steps.wait(stepKey(visit, name), endMs(), isReady);
  let isInTime = await waitAs(request.step);
  for (let times = 1; isInTime && !isOver(); times++) {
    const again = times > 1 ? `${times}` : '';
    if (isToSeek(run, open)) await takeRecorded(visit, { ...request, again }, open);
    if (!isOver() && isToNote(run, open)) await noteLeft(visit, request, open);
    isInTime = await waitAs(`${request.step}.sought${again}`);
  }
  // Who answered meanwhile has answered; what follows from it waits for the resume.
  while (isPaused(run)) await gate(visit, request.step);
  // The run ended in the moment of the answer: there is no resume.
  if (run.ending && isStopped(run)) throw new CancelledFailure('cancelled');
  if (open.resolution === undefined) {
    const cause = isInTime ? withdrawnBy() : undefined;
    // Questions of one moment end in one moment: the first to find out is not why the others end.
    const atMs = cause && run.steps.now(stepKey(visit, `${request.step}.withdrawn`));
    if (cause && (atMs ?? 0) < (endMs() ?? Infinity)) {
      closeInterrupt(run, open, cause.code);
      throw nodeFailure(cause.code, cause.message, cause.details);
    }
    expire(open);
  }
  remove(run, open);
  if (open.resolution === 'timeout' || open.resolution === undefined) {
    throw nodeFailure('interrupt_timeout', 'Nobody answered within the time allowed.', {
      interruptId: open.interruptId,
    });
  }
  return open.resolution;
}

/** A fork that goes by recorded answers asks the record first (replay.md §Modes): once, each time that it leaves a source. */
function isToSeek({ state }: Run, { isSought }: Interrupt): boolean {
  return Boolean(state.overlay?.recordedAnswers) && !isSought;
}

/** The end of a segment may have come between. */
function isToNote({ state }: Run, { isUnnoted }: Interrupt): boolean {
  return Boolean(state.overlay?.recordedAnswers && isUnnoted);
}

/** What the record is asked about a question. */
function seekOf({ kind, data, resumeSchema, mayRepeat }: InterruptRequest, open: Interrupt) {
  const { interruptId } = open;
  return {
    askedKey: factKey(open, 'interrupt.requested'),
    interruptId,
    question: { kind, data, resumeSchema },
    ...(mayRepeat ? { mayRepeat } : {}),
  };
}

/** Takes what people answered to the same question of the source. What nobody answered there stands: silence is no answer. */
async function takeRecorded(
  visit: Visit,
  { again, ...request }: InterruptRequest & { readonly again: string },
  open: Interrupt,
): Promise<void> {
  const { steps, state } = visit.run;
  const recordedBy = state.overlay?.recordedAnswers;
  if (!recordedBy) return;
  const { mayRepeat } = request;
  const step = `${request.step}.recorded`;
  const input = { recordedBy, ...seekOf(request, open) };
  const { answers } = await steps.run(visit, 'recordedAnswers', { step, input });
  open.isSought = true;
  // It was asked for before the fork left another source, and now it goes by no record.
  if (!state.overlay?.recordedAnswers) return;
  const atMs = steps.now(stepKey(visit, `${step}${again}`));
  // Some of them it may have been given before it left its source. What people say meanwhile is none of them.
  const heardBefore = open.heardOfRecord ?? 0;
  const left = answersLeft(answers, { heardBefore, mayRepeat, overlay: state.overlay });
  open.heardOfRecord = heardBefore + left.length;
  for (const answer of left) {
    if (open.resolution) return;
    // Also one that is not taken has its place: who reads the record counts all (answersHeard).
    if (valueRefusal(open, answer)) open.heard++;
    else resolve(open, { ...answer, atMs, isRecorded: true });
  }
  if (!open.resolution && answers.length > 0) open.isUnnoted = true;
}

/** The record has no more to say: whoever waits for no people learns that the question waits for them. */
async function noteLeft(visit: Visit, request: InterruptRequest, open: Interrupt): Promise<void> {
  const { steps, state } = visit.run;
  const recordedBy = state.overlay?.recordedAnswers;
  if (!recordedBy) return;
  const input = { recordedBy, ...seekOf(request, open), isLeft: true as const };
  await steps.run(visit, 'recordedAnswers', { step: `${request.step}.left`, input });
  delete open.isUnnoted;
}

function remove(run: Run, { interruptId, nodeId }: Interrupt): void {
  delete run.state.interrupts[interruptId];
  nodeState(run, nodeId).resolvedInterrupts++;
}

/** Nobody waits for it any more; where nobody answered it either, the log says why. */
export function closeInterrupt(run: Run, open: Interrupt, reason: string): void {
  remove(run, open);
  if (open.resolution) return;
  abandonConversation(open, reason);
  const { nodeId, interruptId, kind, suspendedKey } = open;
  emit(
    'interrupt.resolved',
    { nodeId, interruptId, kind, outcome: 'rejected', reason },
    { key: factKey(open, 'interrupt.resolved'), nodeId, causedBy: suspendedKey },
  );
}

function factKey(open: Interrupt, type: string): string {
  const { nodeId, visit, attempt, step } = open;
  return emissionKey(type, { nodeId, visit, attempt, step });
}

/** A gate that nobody answers never grants (interrupt.md). */
function expire(open: Interrupt): void {
  const { nodeId, interruptId, kind } = open;
  open.resolution = 'timeout';
  abandonConversation(open, 'timeout');
  const key = factKey(open, 'interrupt.resolved');
  emit(
    'interrupt.resolved',
    { nodeId, interruptId, kind, outcome: 'rejected', reason: 'timeout' },
    { key, nodeId, causedBy: open.suspendedKey },
  );
  if (kind === 'approval') {
    emit(
      'approval.received',
      { nodeId, action: 'timeout' },
      { key: factKey(open, 'approval.received'), nodeId, causedBy: key },
    );
  }
}

/** Answers as an object keyed by question id: clients send an object or a list of {id, answer}. */
export function answersOf(value: JsonValue): JsonObject {
  const answers = isJsonObject(value) ? value.answers : undefined;
  if (isJsonObject(answers)) return answers;
  if (!Array.isArray(answers)) return {};
  return Object.fromEntries(
    answers
      .filter(isJsonObject)
      .map((item) => [typeof item.id === 'string' ? item.id : '', item.answer ?? null]),
  );
}

interface Answered extends Pick<Resolution, 'value' | 'resolvedBy' | 'isRecorded'> {
  readonly atMs: number;
}

/** Why a question that is open takes no such answer now, whoever gives it: a person, or the record of a fork's source. */
export function valueRefusal(
  open: Interrupt,
  { value, resolvedBy }: Pick<Answered, 'value' | 'resolvedBy'>,
): ErrorCode | undefined {
  return turnRefusal(open, value) ?? approvalRefusal(open, value, principalOf(resolvedBy));
}

/**
 * Takes an answer: called by the Update's handler, synchronous. Returns whether it ended the wait; a vote that does
 * not complete the quorum leaves the interrupt open.
 */
export function resolve(open: Interrupt, answered: Answered): boolean {
  const { value, resolvedBy, atMs, isRecorded } = answered;
  const { nodeId, interruptId, kind, conversation } = open;
  const principal = principalOf(resolvedBy);
  open.heard++;
  const closedKey = conversation && takeTurn(open, { value, by: principal, atMs });
  if (conversation && closedKey === undefined) return false;
  if (kind === 'approval' && isJsonObject(value) && !takeApproval(open, { value, by: principal }))
    return false;
  const key = factKey(open, 'interrupt.resolved');
  emit(
    'interrupt.resolved',
    { nodeId, interruptId, kind, resumeValue: value, resolvedBy },
    { key, nodeId, causedBy: closedKey ?? open.suspendedKey },
  );
  if (kind === 'approval') emitReceived(open, { value, principal, causedBy: key });
  if (kind === 'clarification') {
    emit(
      'clarification.resolved',
      { nodeId, answers: answersOf(value), answeredBy: principal },
      { key: factKey(open, 'clarification.resolved'), nodeId, causedBy: key },
    );
  }
  emit(
    'node.resumed',
    { nodeId, interruptId, resumeValue: value },
    { key: factKey(open, 'node.resumed'), nodeId, causedBy: key },
  );
  const turnCount = conversation?.turns;
  open.resolution = {
    ...{ value, resolvedBy, key },
    ...(turnCount === undefined ? {} : { turnCount }),
    ...(isRecorded ? { isRecorded } : {}),
  };
  return true;
}

function emitReceived(
  open: Interrupt,
  {
    value,
    principal,
    causedBy,
  }: { readonly value: JsonValue; readonly principal: string; readonly causedBy: string },
): void {
  const given = isJsonObject(value) ? value : {};
  const answer = actionIn(value);
  const action = receivedAction(open, answer);
  const feedback = reasonOf(given);
  const last = open.votes.at(-1);
  const decided = last ? tallyOf(open.votes, last, open.judging).votes : 0;
  emit(
    'approval.received',
    {
      nodeId: open.nodeId,
      action,
      ...(answer === action ? {} : { answer }),
      decidedBy:
        open.votes.length > 1 ? `quorum:${decided}-of-${open.judging.required}` : principal,
      ...(feedback === undefined ? {} : { feedback }),
      ...(isJsonObject(given.refineFeedback) && action === 'refine'
        ? {
            refineFeedback:
              given.refineFeedback as PayloadOf<'approval.received'>['refineFeedback'],
          }
        : {}),
      ...(given.editedArtifactData === undefined
        ? {}
        : { editedArtifactData: given.editedArtifactData }),
    },
    { key: factKey(open, 'approval.received'), nodeId: open.nodeId, causedBy },
  );
}
