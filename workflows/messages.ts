// Messages to a run (design §4): thin Update handlers over plain state. A validator decides, in the workflow, whether
// an answer may still be taken; a repeat of a message gets the outcome of the first, also in a later segment.
import {
  ApplicationFailure,
  currentUpdateInfo,
  defineUpdate,
  setHandler,
} from '@temporalio/workflow';
import { ERRORS, type ErrorCode } from '../src/rules/errors.ts';
import {
  MESSAGES,
  type MessageKind,
  type MessageOf,
  type MessageOutcome,
  type ResolveInterruptMessage,
} from '../src/rules/messages.ts';
import { durationLimitMs } from '../src/rules/run-input.ts';
import { endRun, type Run } from './context.ts';
import { resolve } from './interrupts.ts';
import { isBeginning, noteStatus } from './journal.ts';

/** Outcomes kept for repeats: 24 h, at most 200 (design §4). */
const OUTCOMES_KEPT = 200;
const OUTCOMES_KEPT_MS = 24 * 3600 * 1000;

/** What a run makes of one kind of message. Both are synchronous: nothing comes between them. */
interface Handler<Message> {
  /** Why the message may not be taken now. Asked of a run whose segment goes on, also of one that is ending. */
  refusal(run: Run, message: Message): ErrorCode | undefined;
  /** Takes it and returns the outcome's status. A replay, which validates nothing, takes what was taken. */
  take(run: Run, message: Message): string;
}

const HANDLERS: { readonly [Kind in MessageKind]: Handler<MessageOf<Kind>> } = {
  'resolve-interrupt': { refusal: resolutionRefusal, take: takeAnswer },
  cancel: {
    refusal: () => undefined,
    take(run, { cancelledBy, reason }) {
      cancel(run, cancelledBy, reason);
      return 'cancelling';
    },
  },
};

function refuse(code: ErrorCode): ApplicationFailure {
  return ApplicationFailure.create({
    type: code,
    message: ERRORS[code].message,
    nonRetryable: true,
  });
}

function knownOutcome(run: Run): MessageOutcome | undefined {
  const id = currentUpdateInfo()?.id;
  return run.state.outcomes.find(({ updateId }) => updateId === id)?.outcome;
}

function remember(run: Run, outcome: MessageOutcome): MessageOutcome {
  const updateId = currentUpdateInfo()?.id;
  if (updateId !== undefined) {
    const atMs = Date.now();
    const kept = run.state.outcomes
      .filter((known) => known.atMs > atMs - OUTCOMES_KEPT_MS)
      .slice(1 - OUTCOMES_KEPT);
    run.state.outcomes = [...kept, { updateId, atMs, outcome }];
  }
  return outcome;
}

/** The race rules of spec/02 §4.4, in one place: the interrupt that the message names may be answered now. */
function resolutionRefusal(run: Run, message: ResolveInterruptMessage): ErrorCode | undefined {
  if (run.ending)
    return run.ending.kind === 'cancelled' ? 'interrupt_cancelled' : 'run_state_conflict';
  const open = run.state.interrupts[message.nodeId];
  if (open?.interruptId !== message.interruptId) {
    const before = run.state.nodes[message.nodeId]?.resolvedInterrupts ?? 0;
    return before > 0 ? 'interrupt_already_resolved' : 'interrupt_not_found';
  }
  if (open.resolution === 'timeout') return 'interrupt_expired';
  if (open.resolution) return 'interrupt_already_resolved';
  // The end of its time may come in this very workflow task: the question's own, its node's or the run's.
  const runEndMs = run.state.startedAtMs + durationLimitMs(run.input);
  const ends = [open.deadlineMs, run.state.frames[message.nodeId]?.deadlineMs, runEndMs];
  if (ends.some((deadlineMs) => deadlineMs !== undefined && Date.now() >= deadlineMs))
    return 'interrupt_expired';
  return open.schemaDigest === message.schemaDigest ? undefined : 'interrupt_already_resolved';
}

function takeAnswer(run: Run, message: ResolveInterruptMessage): string {
  const open = run.state.interrupts[message.nodeId];
  if (!open) throw refuse('interrupt_not_found');
  return resolve(open, message.value, message.resolvedBy) ? 'resolved' : 'open';
}

/** Registers the handlers. Called before anything waits, so that no message finds the run deaf. */
export function answerMessages(run: Run): void {
  for (const kind of Object.keys(HANDLERS) as MessageKind[]) answer(run, kind);
}

function answer<Kind extends MessageKind>(run: Run, kind: Kind): void {
  const handler: Handler<MessageOf<Kind>> = HANDLERS[kind];
  const check = (message: MessageOf<Kind>): void => {
    if (knownOutcome(run)) return;
    // The segment has just ended: the sender tries again and meets the next one.
    const code = run.frozen === undefined ? handler.refusal(run, message) : 'service_unavailable';
    if (code) throw refuse(code);
  };
  setHandler(
    defineUpdate<MessageOutcome, [MessageOf<Kind>]>(MESSAGES[kind].update),
    (message) => {
      const known = knownOutcome(run);
      if (known) return known;
      if (isBeginning()) check(message);
      const status = handler.take(run, message);
      run.progress++;
      return remember(run, { bodyDigest: message.bodyDigest, status });
    },
    {
      validator: (message: MessageOf<Kind>): void => {
        // A server forgets a workflow task that only refused, also a run's first one: a replay would then begin in
        // another task than this worker did. There the message is taken in, and the handler refuses it.
        if (!isBeginning()) check(message);
      },
    },
  );
}

/** Everything stops; the first cancel's reason stands. */
export function cancel(run: Run, cancelledBy: string, reason?: string): void {
  if (run.ending) return;
  noteStatus('cancelling');
  endRun(run, { kind: 'cancelled', cancelledBy, reason });
}
