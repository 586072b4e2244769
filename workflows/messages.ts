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
  CANCEL_RUN_UPDATE,
  RESOLVE_INTERRUPT_UPDATE,
  durationLimitMs,
  type CancelRunCommand,
  type MessageOutcome,
  type ResolveInterruptCommand,
} from '../src/rules/run-input.ts';
import { endRun, type Run } from './context.ts';
import { resolve } from './interrupts.ts';
import { isBeginning, noteStatus } from './journal.ts';

/** Outcomes kept for repeats: 24 h, at most 200 (design §4). */
const OUTCOMES_KEPT = 200;
const OUTCOMES_KEPT_MS = 24 * 3600 * 1000;

const resolveInterrupt = defineUpdate<MessageOutcome, [ResolveInterruptCommand]>(
  RESOLVE_INTERRUPT_UPDATE,
);
const cancelRun = defineUpdate<MessageOutcome, [CancelRunCommand]>(CANCEL_RUN_UPDATE);

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

/** The race rules of spec/02 §4.4, in one place: the interrupt that the command names may be answered now. */
function checkResolution(run: Run, command: ResolveInterruptCommand): void {
  if (knownOutcome(run)) return;
  // The segment has just ended: the sender tries again and meets the next one.
  if (run.frozen !== undefined) throw refuse('service_unavailable');
  if (run.ending)
    throw refuse(run.ending.kind === 'cancelled' ? 'interrupt_cancelled' : 'run_state_conflict');
  const open = run.state.interrupts[command.nodeId];
  if (open?.interruptId !== command.interruptId) {
    const before = run.state.nodes[command.nodeId]?.resolvedInterrupts ?? 0;
    throw refuse(before > 0 ? 'interrupt_already_resolved' : 'interrupt_not_found');
  }
  if (open.resolution === 'timeout') throw refuse('interrupt_expired');
  if (open.resolution) throw refuse('interrupt_already_resolved');
  // The end of its time may come in this very workflow task: the question's own, its node's or the run's.
  const runEndMs = run.state.startedAtMs + durationLimitMs(run.input);
  const ends = [open.deadlineMs, run.state.frames[command.nodeId]?.deadlineMs, runEndMs];
  if (ends.some((deadlineMs) => deadlineMs !== undefined && Date.now() >= deadlineMs))
    throw refuse('interrupt_expired');
  if (open.schemaDigest !== command.schemaDigest) throw refuse('interrupt_already_resolved');
}

/** Registers the handlers. Called before anything waits, so that no message finds the run deaf. */
export function answerMessages(run: Run): void {
  setHandler(
    resolveInterrupt,
    (command) => {
      const known = knownOutcome(run);
      if (known) return known;
      if (isBeginning()) checkResolution(run, command);
      // Nothing can come between the validator and this; a replay, which validates nothing, takes what was taken.
      const open = run.state.interrupts[command.nodeId];
      if (!open) throw refuse('interrupt_not_found');
      const ended = resolve(open, command.value, command.resolvedBy);
      run.progress++;
      return remember(run, { bodyDigest: command.bodyDigest, status: ended ? 'resolved' : 'open' });
    },
    {
      validator: (command: ResolveInterruptCommand): void => {
        // A server forgets a workflow task that only refused, also a run's first one: a replay would then begin in
        // another task than this worker did. There the answer is taken in, and the handler refuses it.
        if (!isBeginning()) checkResolution(run, command);
      },
    },
  );
  setHandler(
    cancelRun,
    (command: CancelRunCommand) => {
      const known = knownOutcome(run);
      if (known) return known;
      cancel(run, command.cancelledBy, command.reason);
      return remember(run, { bodyDigest: command.bodyDigest, status: 'cancelling' });
    },
    {
      validator: (_command: CancelRunCommand): void => {
        if (run.frozen !== undefined) throw refuse('service_unavailable');
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
