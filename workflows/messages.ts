// Messages to a run (architecture §4): thin handlers over plain state, one for each kind. Whether a message may still
// be taken is decided here, in the workflow; a repeat of a message gets the outcome of the first, also in a later
// segment.
import { ApplicationFailure } from '@temporalio/workflow';
import { ERRORS, type ErrorCode } from '../src/rules/errors.ts';
import {
  withKept,
  type MessageKind,
  type MessageOf,
  type MessageOutcome,
  type ResolveInterruptMessage,
  type RunMessage,
} from '../src/rules/messages.ts';
import { durationLimitMs } from '../src/rules/run-input.ts';
import { endRun, type Run } from './context.ts';
import { resolve, valueRefusal } from './interrupts.ts';
import { noteStatus } from './journal.ts';
import { isPausing, pause, resume } from './pause.ts';
import { keepTime, keepTimeRefusal, skipRefusal, takeSkip } from './rehearsal.ts';
import type { Entered } from './steps.ts';

/** What a run makes of one kind of message. Both are synchronous: nothing comes between them. */
interface Handler<Message> {
  /** Why the message may not be taken now. Asked of a run whose segment goes on, also of one that is ending. */
  refusal(run: Run, message: Message, atMs: number): ErrorCode | undefined;
  /** Takes it and returns the outcome's status. A replay, which validates nothing, takes what was taken. */
  take(run: Run, message: Message, atMs: number): string;
}

const HANDLERS: { readonly [Kind in MessageKind]: Handler<MessageOf<Kind>> } = {
  'resolve-interrupt': { refusal: resolutionRefusal, take: takeAnswer },
  cancel: {
    refusal: () => undefined,
    take(run, { cancelledBy, reason, parentRunId }) {
      cancel(run, { cancelledBy, reason, parentRunId });
      return 'cancelling';
    },
  },
  pause: {
    refusal: ({ ending, state }) => (ending || state.pause ? 'run_state_conflict' : undefined),
    take(run, message) {
      pause(run, message);
      return 'paused';
    },
  },
  resume: {
    refusal: (run) => (isPausing(run) ? undefined : 'run_state_conflict'),
    take(run, message) {
      resume(run, message);
      return 'running';
    },
  },
  skip: { refusal: skipRefusal, take: takeSkip },
  'keep-time': { refusal: keepTimeRefusal, take: () => 'resting' },
};

function refuse(code: ErrorCode): ApplicationFailure {
  return ApplicationFailure.create({
    type: code,
    message: ERRORS[code].message,
    nonRetryable: true,
  });
}

function knownOutcome(run: Run, { updateId }: Entered): MessageOutcome | undefined {
  return run.state.outcomes.find((known) => known.updateId === updateId)?.outcome;
}

function remember(run: Run, { updateId, atMs }: Entered, outcome: MessageOutcome): MessageOutcome {
  if (updateId !== undefined)
    run.state.outcomes = withKept(run.state.outcomes, { updateId, atMs, outcome });
  return outcome;
}

/** The race rules of interrupt.md, in one place: the interrupt that the message names may be answered now. */
function resolutionRefusal(
  run: Run,
  message: ResolveInterruptMessage,
  atMs: number,
): ErrorCode | undefined {
  if (run.ending)
    return run.ending.kind === 'cancelled' ? 'interrupt_cancelled' : 'run_state_conflict';
  const open = run.state.interrupts[message.interruptId];
  if (open?.nodeId !== message.nodeId) {
    const before = run.state.nodes[message.nodeId]?.resolvedInterrupts ?? 0;
    return before > 0 ? 'interrupt_already_resolved' : 'interrupt_not_found';
  }
  if (open.resolution === 'timeout') return 'interrupt_expired';
  if (open.resolution) return 'interrupt_already_resolved';
  // The end of its time may come in this very workflow task: the question's own, its node's or the run's.
  const runEndMs = run.state.startedAtMs + durationLimitMs(run.input);
  const ends = [open.deadlineMs, run.state.frames[message.nodeId]?.deadlineMs, runEndMs];
  if (ends.some((deadlineMs) => deadlineMs !== undefined && atMs >= deadlineMs))
    return 'interrupt_expired';
  if (open.schemaDigest !== message.schemaDigest) return 'interrupt_already_resolved';
  return valueRefusal(open, message);
}

function takeAnswer(run: Run, message: ResolveInterruptMessage, atMs: number): string {
  const open = run.state.interrupts[message.interruptId];
  if (!open) throw refuse('interrupt_not_found');
  const { value, resolvedBy } = message;
  return resolve(open, { value, resolvedBy, atMs }) ? 'resolved' : 'open';
}

/** Takes messages from now on. Called before anything waits, so that no message finds the run deaf. */
export function answerMessages(run: Run): void {
  run.steps.receive({
    check(entered) {
      const code = refusalOf(run, entered);
      if (code) throw refuse(code);
    },
    take(entered) {
      const known = knownOutcome(run, entered);
      if (known) return known;
      const { message } = entered;
      const status = handlerOf(message).take(run, message, timeOf(run, entered));
      run.progress++;
      const outcome = { bodyDigest: message.bodyDigest, status };
      // It may be told again: what it asks is read anew, and the clock stands where it was told to stand. So no segment
      // carries on what it said, which names each open child.
      if (message.kind === 'keep-time') return { ...outcome, rests: keepTime(run, message) };
      return remember(run, entered, outcome);
    },
    cancelled: () => cancel(run, { cancelledBy: 'temporal' }),
    childEnded(childRunId) {
      const child = run.state.children?.[childRunId];
      if (!child) return;
      child.hasEnded = true;
      run.progress++;
    },
  });
}

function refusalOf(run: Run, entered: Entered): ErrorCode | undefined {
  if (knownOutcome(run, entered)) return undefined;
  // The segment has just ended: the sender tries again and meets the next one.
  if (run.frozen !== undefined) return 'service_unavailable';
  const { message } = entered;
  return handlerOf(message).refusal(run, message, timeOf(run, entered));
}

/** When a message came, by the run's own clock. */
function timeOf({ clock }: Run, { atMs }: Entered): number {
  return clock ? clock.state.nowMs : atMs;
}

/** The table's row for a message is one for its kind. */
function handlerOf(message: RunMessage): Handler<RunMessage> {
  return HANDLERS[message.kind];
}

/** Everything stops; the first cancel's reason stands. */
function cancel(
  run: Run,
  by: { readonly cancelledBy: string; readonly reason?: string; readonly parentRunId?: string },
): void {
  if (run.ending) return;
  noteStatus('cancelling');
  endRun(run, { kind: 'cancelled', ...by });
}
