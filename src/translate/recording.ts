// Temporal history -> recording (architecture §6): what each workflow task of a run was given, over all its segments. Pure.
//
//   event                        | what it is
//   WorkflowTaskStarted          | the time of the batch, if its task completes
//   WorkflowTaskCompleted        | the batch: everything that came before its task began
//   WorkflowExecutionUpdateAccepted | a message of that batch, which history notes behind its task
//   TimerStarted                 | its end, by which the timer is known from then on
//   ActivityTaskCompleted, …     | stimuli of the next batch
//   TimerFired, Signaled, CancelRequested |
import { HostError } from '../rules/errors.ts';
import { CHILD_ENDED_SIGNAL, type ChildEnded } from '../rules/children.ts';
import { activityEventKey } from '../rules/ids.ts';
import { CARRIER_MEMO_FIELD } from '../rules/journal.ts';
import type {
  Batch,
  RecordedEntry,
  RecordedOutcome,
  Recording,
  Stimulus,
} from '../rules/recording.ts';
import {
  carriersIn,
  eventTimeMs,
  historyEventIdOf,
  jsonIn,
  msOf,
  stepResultIn,
  type HistoryEvent,
} from './payloads.ts';

/** A batch under construction. */
interface Task {
  readonly atMs: number;
  readonly begins: boolean;
  readonly messages: Stimulus[];
  readonly others: readonly Stimulus[];
  readonly began: string[];
  /** Keys of what it stated. */
  readonly keys: string[];
}

type Failure = NonNullable<
  NonNullable<HistoryEvent['activityTaskFailedEventAttributes']>['failure']
>;

/** One segment's tasks. */
class SegmentTasks {
  readonly tasks: Task[] = [];
  readonly #activities = new Map<number, string>();
  /** By the event that started the timer: when it ends. */
  readonly #timers = new Map<number, number>();
  #came: Stimulus[] = [];
  /** What came before the task that is under way began. */
  #given: readonly Stimulus[] = [];
  #startedMs = 0;

  read(event: HistoryEvent): void {
    if (event.workflowTaskStartedEventAttributes) {
      this.#startedMs = eventTimeMs(event);
      this.#given = [...this.#came];
    } else if (event.workflowTaskCompletedEventAttributes) {
      const begins = this.tasks.length === 0;
      const given = { atMs: this.#startedMs, begins, others: this.#given };
      this.tasks.push({ ...given, messages: [], began: [], keys: [] });
      // What came while the task ran is history's behind it, or it was not completed.
      this.#came = this.#came.slice(this.#given.length);
      this.#given = [];
    } else this.#readCommand(event);
    const stimulus = this.#stimulusOf(event);
    if (stimulus) this.#came.push(stimulus);
  }

  #readCommand(event: HistoryEvent): void {
    const scheduled = event.activityTaskScheduledEventAttributes;
    const task = this.tasks.at(-1);
    if (scheduled) {
      this.#activities.set(historyEventIdOf(event), scheduled.activityId ?? '');
      task?.began.push(scheduled.activityId ?? '');
    }
    const timer = event.timerStartedEventAttributes;
    if (timer && task)
      this.#timers.set(historyEventIdOf(event), task.atMs + msOf(timer.startToFireTimeout));
    const accepted = event.workflowExecutionUpdateAcceptedEventAttributes;
    const request = accepted?.acceptedRequest;
    if (accepted && task)
      task.messages.push({
        kind: 'message',
        update: request?.input?.name ?? '',
        updateId: request?.meta?.updateId ?? '',
        message: jsonIn(request?.input?.args?.payloads, 'a message'),
      });
    task?.keys.push(...statedIn(event));
  }

  #stimulusOf(event: HistoryEvent): Stimulus | undefined {
    const fired = event.timerFiredEventAttributes;
    if (fired) {
      const deadlineMs = this.#timers.get(Number(fired.startedEventId));
      return deadlineMs === undefined ? undefined : { kind: 'timer', deadlineMs };
    }
    const signal = event.workflowExecutionSignaledEventAttributes;
    if (signal?.signalName === CHILD_ENDED_SIGNAL) {
      const told = jsonIn(signal.input?.payloads, 'a signal') as unknown as ChildEnded;
      return { kind: 'child-ended', childRunId: told.childRunId };
    }
    if (event.workflowExecutionCancelRequestedEventAttributes) return { kind: 'cancel-requested' };
    return this.#stepOf(event);
  }

  #stepOf(event: HistoryEvent): Stimulus | undefined {
    const step = (scheduledEventId: unknown, outcome: RecordedOutcome): Stimulus => ({
      kind: 'step',
      activityId: this.#activities.get(Number(scheduledEventId)) ?? '',
      outcome,
    });
    const completed = event.activityTaskCompletedEventAttributes;
    if (completed) {
      const result = stepResultIn(completed.result?.payloads);
      if (!result) throw unreadable('an activity result');
      return step(completed.scheduledEventId, { kind: 'completed', result });
    }
    const failed = event.activityTaskFailedEventAttributes;
    if (failed) return step(failed.scheduledEventId, failedOf(failed.failure ?? {}));
    const timedOut = event.activityTaskTimedOutEventAttributes;
    if (timedOut) {
      const type = TIMEOUTS[timedOut.failure?.timeoutFailureInfo?.timeoutType ?? 0] ?? '';
      return step(timedOut.scheduledEventId, { kind: 'timed-out', type });
    }
    const canceled = event.activityTaskCanceledEventAttributes;
    return canceled ? step(canceled.scheduledEventId, { kind: 'cancelled' }) : undefined;
  }
}

/** By Temporal's number. */
const TIMEOUTS = ['', 'START_TO_CLOSE', 'SCHEDULE_TO_START', 'SCHEDULE_TO_CLOSE', 'HEARTBEAT'];

function unreadable(what: string): HostError {
  return new HostError('history_undecodable', { reason: `${what} has an unknown form` });
}

function failedOf(failure: Failure): RecordedOutcome {
  const { type, details } = failure.applicationFailureInfo ?? {};
  const [detail] = details?.payloads ?? [];
  return {
    kind: 'failed',
    code: type ?? 'internal_error',
    message: failure.message ?? '',
    ...(detail ? { details: jsonIn([detail], 'details of a failure') } : {}),
  };
}

/** Keys of the entries that ride on a command of the task, in the order of their carriers. */
function statedIn(event: HistoryEvent): string[] {
  const field =
    event.workflowPropertiesModifiedEventAttributes?.upsertedMemo?.fields?.[CARRIER_MEMO_FIELD];
  const carriers = carriersIn([
    ...(event.activityTaskScheduledEventAttributes?.input?.payloads ?? []),
    ...(field ? [field] : []),
    ...(event.workflowExecutionCompletedEventAttributes?.result?.payloads ?? []),
    ...(event.workflowExecutionContinuedAsNewEventAttributes?.input?.payloads ?? []),
  ]);
  return carriers.flatMap(({ entries }) =>
    entries.flatMap((entry) => {
      if (entry.kind === 'emit') return [entry.key];
      return entry.kind === 'admit' ? [activityEventKey(entry.activityId, entry.k)] : [];
    }),
  );
}

/**
 * `segments`: the history of each, in order; `entries`: the log, whole or its beginning. Where the run has gone on since,
 * what came then is left out. Throws HostError history_undecodable.
 */
export function recordingOf(
  segments: readonly (readonly HistoryEvent[])[],
  entries: readonly RecordedEntry[],
): Recording {
  const tasks = segments.flatMap((events) => {
    const segment = new SegmentTasks();
    for (const event of events) segment.read(event);
    return segment.tasks;
  });
  const places = new Map(entries.map(({ key }, sequence) => [key, sequence]));
  const isLater = ({ keys }: Task) => keys.length > 0 && !keys.some((key) => places.has(key));
  const later = tasks.findIndex(isLater);
  const own = later < 0 ? tasks : tasks.slice(0, later);
  let position = entries.length;
  const batches: Batch[] = [];
  // From the end: what stated nothing stands where the next one does.
  for (const { atMs, begins, messages, others, began, keys } of own.reverse()) {
    const stimuli = [...messages, ...others];
    const stated = keys.flatMap((key) => places.get(key) ?? []);
    position = Math.min(position, ...stated);
    batches.unshift({ atMs, ...(begins ? { begins } : {}), position, stimuli, began });
  }
  return { batches, entries };
}
