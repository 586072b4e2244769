// Temporal history -> recording (architecture §6): what each workflow task of a run was given, over all its segments. Pure.
//
//   event                        | what it is
//   WorkflowTaskStarted          | the time of the batch, if its task completes
//   WorkflowTaskCompleted        | the batch: everything that came before its task began
//   WorkflowExecutionUpdateAccepted | a message of that batch, which history notes behind its task
//   WorkflowExecutionUpdateCompleted | the message was taken, unless the outcome is a failure: then the run was not given it
//   TimerStarted                 | its end, by which the timer is known from then on
//   ActivityTaskCompleted, …     | stimuli of the next batch
//   TimerFired, Signaled, CancelRequested |
import { HostError } from '../rules/errors.ts';
import { CHILD_ENDED_SIGNAL, type ChildEnded } from '../rules/children.ts';
import { activityEventKey, blockOfKey } from '../rules/ids.ts';
import { CARRIER_MEMO_FIELD } from '../rules/journal.ts';
import {
  beginningMs,
  givenOf,
  type Batch,
  type RecordedEntry,
  type RecordedOutcome,
  type Recording,
  type RecordingPage,
  type Stimulus,
  wholeBatches,
} from '../rules/recording.ts';
import type { ForkOf } from '../rules/run-input.ts';
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
  readonly stated: Stated[];
  readonly leaves?: ForkOf;
}

/** An entry that a task stated, by its place in the segment. */
interface Stated {
  readonly ordinal: number;
  readonly key?: string;
  /** Of a fork that leaves its source: the batches that it was given of it. */
  readonly live?: number;
}

type Failure = NonNullable<
  NonNullable<HistoryEvent['activityTaskFailedEventAttributes']>['failure']
>;

/** One segment's tasks. */
class SegmentTasks {
  readonly #tasks: Task[] = [];
  /** Of a fork: what it was made from. */
  readonly pages: RecordingPage[] = [];
  readonly #activities = new Map<number, string>();
  /** By the event that started the timer: when it ends. */
  readonly #timers = new Map<number, number>();
  /** By the event of its acceptance: a message that the run has not taken, or has refused. */
  readonly #untaken = new Map<number, Stimulus>();
  #came: Stimulus[] = [];
  /** What came before the task that is under way began. */
  #given: readonly Stimulus[] = [];
  #startedMs = 0;

  /**
   * A message that was refused has changed nothing (workflows/messages.ts looks at it before it takes it): nobody who goes by the
   * record is given it. One that is not answered yet waits, since a message is answered in the task that takes it.
   */
  tasks(): Task[] {
    const untaken = new Set(this.#untaken.values());
    return this.#tasks.map((task) => ({
      ...task,
      messages: task.messages.filter((message) => !untaken.has(message)),
    }));
  }

  read(event: HistoryEvent): void {
    if (event.workflowTaskStartedEventAttributes) {
      this.#startedMs = eventTimeMs(event);
      this.#given = [...this.#came];
    } else if (event.workflowTaskCompletedEventAttributes) {
      const begins = this.#tasks.length === 0;
      const given = { atMs: this.#startedMs, begins, others: this.#given };
      this.#tasks.push({ ...given, messages: [], began: [], stated: [] });
      // What came while the task ran is history's behind it, or it was not completed.
      this.#came = this.#came.slice(this.#given.length);
      this.#given = [];
    } else this.#readCommand(event);
    const stimulus = this.#stimulusOf(event);
    if (stimulus) this.#came.push(stimulus);
  }

  #readCommand(event: HistoryEvent): void {
    const scheduled = event.activityTaskScheduledEventAttributes;
    const task = this.#tasks.at(-1);
    if (scheduled) {
      this.#activities.set(historyEventIdOf(event), scheduled.activityId ?? '');
      task?.began.push(scheduled.activityId ?? '');
    }
    const timer = event.timerStartedEventAttributes;
    if (timer && task)
      this.#timers.set(historyEventIdOf(event), task.atMs + msOf(timer.startToFireTimeout));
    if (task) this.#readMessage(event, task);
    task?.stated.push(...statedIn(event));
  }

  #readMessage(event: HistoryEvent, task: Task): void {
    const accepted = event.workflowExecutionUpdateAcceptedEventAttributes;
    const answered = event.workflowExecutionUpdateCompletedEventAttributes;
    const request = accepted?.acceptedRequest;
    if (accepted) {
      const message: Stimulus = {
        kind: 'message',
        update: request?.input?.name ?? '',
        updateId: request?.meta?.updateId ?? '',
        message: jsonIn(request?.input?.args?.payloads, 'a message'),
      };
      task.messages.push(message);
      this.#untaken.set(historyEventIdOf(event), message);
    }
    if (answered && !answered.outcome?.failure)
      this.#untaken.delete(Number(answered.acceptedEventId));
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
      if (result.recording) {
        this.pages.push(result.recording);
        return undefined;
      }
      // Live text is in the log.
      const { output, events } = result;
      return step(completed.scheduledEventId, { kind: 'completed', result: { output, events } });
    }
    const failed = event.activityTaskFailedEventAttributes;
    if (failed)
      return step(failed.scheduledEventId, failedOf(failed.failure ?? {}, failed.retryState));
    const timedOut = event.activityTaskTimedOutEventAttributes;
    if (timedOut) {
      const type = TIMEOUTS[timedOut.failure?.timeoutFailureInfo?.timeoutType ?? 0] ?? '';
      const code = timedOut.failure?.cause?.applicationFailureInfo?.type;
      const outcome = { kind: 'timed-out' as const, type, ...(code ? { code } : {}) };
      return step(timedOut.scheduledEventId, outcome);
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

/** By Temporal's number of the retry state: those in which a try that would have come did not. */
const UNTRIED: Readonly<Record<number, 'TIMEOUT' | 'CANCEL_REQUESTED'>> = {
  3: 'TIMEOUT',
  7: 'CANCEL_REQUESTED',
};

function failedOf(failure: Failure, retryState: number | null | undefined): RecordedOutcome {
  const { type, details, nonRetryable } = failure.applicationFailureInfo ?? {};
  const [detail] = details?.payloads ?? [];
  const untried = nonRetryable ? undefined : UNTRIED[retryState ?? 0];
  return {
    kind: 'failed',
    code: type ?? 'internal_error',
    message: failure.message ?? '',
    ...(detail ? { details: jsonIn([detail], 'details of a failure') } : {}),
    ...(untried ? { untried } : {}),
  };
}

/** What rides on a command of the task, but for what moves the status alone. */
function statedIn(event: HistoryEvent): Stated[] {
  const field =
    event.workflowPropertiesModifiedEventAttributes?.upsertedMemo?.fields?.[CARRIER_MEMO_FIELD];
  const carriers = carriersIn([
    ...(event.activityTaskScheduledEventAttributes?.input?.payloads ?? []),
    ...(field ? [field] : []),
    ...(event.workflowExecutionCompletedEventAttributes?.result?.payloads ?? []),
    ...(event.workflowExecutionContinuedAsNewEventAttributes?.input?.payloads ?? []),
  ]);
  return carriers.flatMap(({ at, entries }) =>
    entries.flatMap((entry, index): Stated[] => {
      const ordinal = at[index] ?? 0;
      if (entry.kind === 'emit') return [{ ordinal, key: entry.key }];
      if (entry.kind === 'live') return [{ ordinal, live: entry.batches }];
      if (entry.kind === 'status') return [];
      return [{ ordinal, key: activityEventKey(entry.activityId, entry.k) }];
    }),
  );
}

/**
 * `segments`: the history of each, in order; `entries`: the log, whole or its beginning. Where the run has gone on since,
 * what came then is left out. `fork`: of a run that is one. Throws HostError history_undecodable.
 */
export function recordingOf(
  segments: readonly (readonly HistoryEvent[])[],
  entries: readonly RecordedEntry[],
  fork?: ForkOf,
): Recording {
  const read = segments.map((events) => {
    const segment = new SegmentTasks();
    for (const event of events) segment.read(event);
    return segment;
  });
  const tasks = read.flatMap((segment) => segment.tasks());
  const places = new Map(entries.map(({ key }, sequence) => [key, sequence]));
  const own = fork ? livedBy(fork, tasks) : tasks;
  const isLater = (task: Task) => {
    const keys = keysOf(task);
    return keys.length > 0 && !keys.some((key) => places.has(key));
  };
  const later = own.findIndex(isLater);
  const batches = batchesOf(later < 0 ? own : own.slice(0, later), places, entries.length);
  if (!fork) return { batches, entries: withDerived(entries, tasks) };
  const source = pagesOf(read.flatMap(({ pages }) => pages));
  const given = givenBefore(fork, { source, tasks, places, behind: batches[0]?.position });
  const [leaving, ...behind] = batches;
  const left = leaving ? [{ ...leaving, beganMs: beginningMs(source) }, ...behind] : [];
  return { batches: [...given, ...left], entries: withDerived(entries, tasks, source) };
}

/** From the end: what stated nothing stands where the next one does. */
function batchesOf(
  tasks: readonly Task[],
  places: ReadonlyMap<string, number>,
  length: number,
): Batch[] {
  let position = length;
  const batches: Batch[] = [];
  for (const task of [...tasks].reverse()) {
    const { atMs, begins, leaves, messages, others, began } = task;
    const stimuli = [...messages, ...others];
    position = Math.min(position, ...keysOf(task).flatMap((key) => places.get(key) ?? []));
    batches.unshift({
      ...{ atMs, position, stimuli, began },
      ...(begins ? { begins } : {}),
      ...(leaves ? { leaves } : {}),
    });
  }
  return batches;
}

/** Of a fork: the task in which it left its source, having been told by then what anybody told it, its children too, and those behind. */
function livedBy(fork: ForkOf, tasks: readonly Task[]): Task[] {
  const at = tasks.findIndex(({ stated }) => stated.some(({ live }) => live !== undefined));
  const task = tasks[at];
  if (!task) return [];
  const before = tasks.slice(0, at + 1);
  const messages = before.flatMap((each) => each.messages);
  const others = before.flatMap((each) => each.others.filter(({ kind }) => kind === 'child-ended'));
  const left = task.stated.find(({ live }) => live !== undefined)?.ordinal ?? 0;
  const stated = task.stated.filter(({ ordinal }) => ordinal > left);
  const leaving = { ...task, begins: false, messages, others, stated, leaves: fork };
  return [leaving, ...tasks.slice(at + 1)];
}

function pagesOf(pages: readonly RecordingPage[]): Recording {
  return {
    batches: wholeBatches(pages.flatMap(({ batches }) => batches)),
    entries: pages.flatMap(({ entries }) => entries),
  };
}

/** What a fork was given of its source, where its own log has it. */
function givenBefore(
  fork: ForkOf,
  of: {
    readonly source: Recording;
    readonly tasks: readonly Task[];
    readonly places: ReadonlyMap<string, number>;
    readonly behind: number | undefined;
  },
): Batch[] {
  const { source, tasks, places } = of;
  const marks = tasks.flatMap(({ stated }) => stated.flatMap(({ live }) => live ?? []));
  const firstFrom = (entries: readonly RecordedEntry[], from: number): number => {
    for (let at = from; at < entries.length; at++) {
      const place = places.get(entries[at]?.key ?? '');
      if (place !== undefined) return place;
    }
    return Infinity;
  };
  const behindAll = (entries: readonly RecordedEntry[]) =>
    entries.reduce((behind, { key }) => Math.max(behind, (places.get(key) ?? -1) + 1), 0);
  const { batches, isCut } = givenOf(fork, source);
  const cut = isCut ? batches.at(-1) : undefined;
  let position = of.behind ?? places.size;
  const given: Batch[] = [];
  for (const batch of batches.slice(0, marks[0]).reverse()) {
    const { entries } = source;
    // What came of one that was cut is the fork's own: it stands behind all that came before.
    const place =
      batch === cut
        ? behindAll(entries.slice(0, batch.position))
        : firstFrom(entries, batch.position);
    position = Math.min(position, place);
    given.unshift({ ...batch, position });
  }
  return given;
}

/** Live text is stated by activities. */
function withDerived(
  entries: readonly RecordedEntry[],
  tasks: readonly Task[],
  source?: Recording,
): RecordedEntry[] {
  const stated = new Set(tasks.flatMap(keysOf));
  for (const { key, isDerived } of source?.entries ?? []) if (!isDerived) stated.add(key);
  return entries.map((entry) =>
    stated.has(entry.key) || blockOfKey(entry.key) !== undefined
      ? entry
      : { ...entry, isDerived: true },
  );
}

function keysOf({ stated }: Task): string[] {
  return stated.flatMap(({ key }) => key ?? []);
}
