// A model of Temporal's server and of its core, for one execution: history, workflow tasks, timers, activities, Updates
// and their races, in a model of time. It gives workflow code the activations that core gives (and in a replay no
// others), writes the events that the server writes, and dies where it is told to. What it leaves out: queries,
// retries of activities (a longer time to the one outcome that history knows) and Temporal's own timeouts of runs.
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import type { HistoryEvent } from '../../../src/ports/history.ts';
import type { Agenda } from './agenda.ts';
import { activityFailure, activityOutcome, type ActivityEnd } from './outcomes.ts';
import type { Command, Instance, Isolate, Job } from './isolate.ts';

export interface ScheduledActivity {
  readonly activityId: string;
  readonly type: string;
  readonly input: unknown;
}

/** When an activity ends, counted from now, and how. */
export interface ActivityFate {
  readonly afterMs: number;
  readonly end: ActivityEnd;
}

/** `lost`: the worker died with the task's completion; `evicted`: it died before, and the next one replays. */
export type TaskFate = 'done' | 'evicted' | 'lost';

export interface Update {
  readonly id: string;
  readonly name: string;
  readonly message: unknown;
}

export type UpdateAnswer =
  | { readonly kind: 'taken'; readonly outcome: unknown }
  | { readonly kind: 'refused'; readonly code: string }
  /** The execution ended before it saw the Update. */
  | { readonly kind: 'unseen' };

/** What happens to an execution beside what it does itself. */
export interface World {
  begin(activity: ScheduledActivity): ActivityFate;
  /** What an activity does that is asked to stop; undefined: it goes on as before. */
  stop(activity: ScheduledActivity): ActivityFate | undefined;
  task(): { readonly fate: TaskFate; readonly latencyMs: number };
  answered(update: Update, answer: UpdateAnswer): void;
  /** `events`: the newest of history, whole batches. */
  recorded(events: readonly HistoryEvent[]): void;
}

/** A workflow task as history has it: what it was given, and the commands that came of it. */
interface Task {
  readonly nowMs: number;
  readonly historyLength: number;
  readonly activations: readonly (readonly Job[])[];
  readonly patches: readonly string[];
  readonly commands: string;
}

interface Running extends ScheduledActivity {
  readonly scheduledEventId: number;
  takeOff(): void;
}

export type ExecutionEnd =
  | { readonly kind: 'completed' | 'failed' | 'cancelled' }
  | { readonly kind: 'continued'; readonly input: unknown };

export interface Execution {
  readonly history: readonly HistoryEvent[];
  readonly end: () => ExecutionEnd | undefined;
  update(update: Update): void;
  signal(name: string, argument: unknown): void;
  requestCancel(): void;
  /** From the start, as a worker that never saw it; throws where anything comes out otherwise. */
  replay(): Promise<void>;
  dispose(): Promise<void>;
}

export interface ExecutionOptions {
  readonly isolate: Isolate;
  readonly agenda: Agenda;
  readonly world: World;
  readonly workflowId: string;
  readonly temporalRunId: string;
  readonly input: unknown;
  /** Updates that wait since before the first task. */
  readonly updates?: readonly Update[];
}

/** Core gives the jobs of an activation in this order. */
function placeOf(job: Job): number {
  if (job.initializeWorkflow) return 0;
  if (job.notifyHasPatch) return 1;
  return job.doUpdate || job.signalWorkflow ? 2 : 3;
}

function ordered(jobs: readonly Job[]): Job[] {
  return [...jobs].sort((a, b) => placeOf(a) - placeOf(b));
}

/** Updates that were refused before they were taken in: they are in no history. */
function refusedIn(commands: readonly Command[]): Set<string> {
  const responses = commands.flatMap(({ updateResponse }) => updateResponse ?? []);
  const accepted = responses.flatMap((it) => (it.accepted ? [it.protocolInstanceId] : []));
  const rejected = responses.flatMap((it) => (it.rejected ? [it.protocolInstanceId ?? ''] : []));
  return new Set(rejected.filter((id) => !accepted.includes(id)));
}

/** What two runs of one task are compared by. */
function written(commands: readonly Command[]): string {
  const refused = refusedIn(commands);
  return JSON.stringify(
    commands.filter(({ updateResponse: it }) => !it || !refused.has(it.protocolInstanceId ?? '')),
    (name, value: unknown) => {
      if (name === 'stackTrace' || name === 'userMetadata') return undefined;
      return ArrayBuffer.isView(value)
        ? Buffer.from(value as Uint8Array).toString('base64')
        : value;
    },
  );
}

/** Milliseconds of a protobuf duration. */
function msOf(
  duration: { seconds?: { toString(): string } | null; nanos?: number | null } | null | undefined,
): number {
  return Number((duration?.seconds ?? 0).toString()) * 1000 + (duration?.nanos ?? 0) / 1_000_000;
}

/** Commands of a task that is not over: what it schedules and takes back again never reaches the server. */
class TaskCommands {
  #commands: Command[] = [];

  /** Takes what an activation gave; returns the jobs that core answers with at once. */
  take(commands: readonly Command[]): Job[] {
    const jobs: Job[] = [];
    for (const command of commands) {
      const activitySeq = command.requestCancelActivity?.seq;
      const timerSeq = command.cancelTimer?.seq;
      if (
        activitySeq !== undefined &&
        this.#drop(({ scheduleActivity: it }) => it?.seq === activitySeq)
      )
        jobs.push({
          resolveActivity: {
            seq: activitySeq,
            result: { cancelled: { failure: activityFailure('cancelled') } },
          },
        });
      else if (timerSeq === undefined || !this.#drop(({ startTimer: it }) => it?.seq === timerSeq))
        this.#commands.push(command);
    }
    return jobs;
  }

  all(): readonly Command[] {
    return this.#commands;
  }

  #drop(is: (command: Command) => boolean): boolean {
    const index = this.#commands.findIndex(is);
    if (index >= 0) this.#commands.splice(index, 1);
    return index >= 0;
  }
}

class ModelledExecution implements Execution {
  readonly history: HistoryEvent[] = [];
  readonly #of: ExecutionOptions;
  readonly #tasks: Task[] = [];
  readonly #running = new Map<number, Running>();
  readonly #timers = new Map<number, { startedEventId: number; takeOff(): void }>();
  readonly #patches = new Set<string>();
  #instance: Instance | undefined;
  #jobs: Job[];
  #updates: Update[];
  /** Ids that this execution knows: the server itself answers one that comes again. */
  readonly #seen: Set<string>;
  readonly #accepted = new Map<string, Update>();
  /** By the Update's id: the event of its acceptance. */
  readonly #acceptedAt = new Map<string, number>();
  #flags: readonly number[] = [];
  #isTaskDue = false;
  /** Events of history that the world knows. */
  #told = 0;
  #end: ExecutionEnd | undefined;

  constructor(options: ExecutionOptions) {
    this.#of = options;
    const { workflowId, input, agenda } = options;
    const seconds = Math.floor(agenda.nowMs() / 1000);
    this.#jobs = [
      {
        initializeWorkflow: {
          workflowId,
          arguments: [defaultPayloadConverter.toPayload(input)],
          startTime: { seconds: seconds as never, nanos: 0 },
        },
      },
    ];
    this.#updates = [...(options.updates ?? [])];
    this.#seen = new Set(this.#updates.map(({ id }) => id));
    this.#record({
      workflowExecutionStartedEventAttributes: {
        input: { payloads: [defaultPayloadConverter.toPayload(input)] },
      },
    });
    this.#wake();
  }

  end(): ExecutionEnd | undefined {
    return this.#end;
  }

  update(update: Update): void {
    if (this.#end) return this.#of.world.answered(update, { kind: 'unseen' });
    if (this.#seen.has(update.id)) return;
    this.#seen.add(update.id);
    this.#updates.push(update);
    this.#wake();
  }

  signal(name: string, argument: unknown): void {
    if (this.#end) return;
    const input = [defaultPayloadConverter.toPayload(argument)];
    this.#record({
      workflowExecutionSignaledEventAttributes: { signalName: name, input: { payloads: input } },
    });
    this.#jobs.push({ signalWorkflow: { signalName: name, input, identity: 'model' } });
    this.#wake();
  }

  requestCancel(): void {
    if (this.#end) return;
    this.#record({ workflowExecutionCancelRequestedEventAttributes: {} });
    this.#jobs.push({ cancelWorkflow: {} });
    this.#wake();
  }

  async replay(): Promise<void> {
    await (await this.#revived()).dispose();
  }

  async dispose(): Promise<void> {
    await this.#instance?.dispose();
    this.#instance = undefined;
  }

  /** Returns the event's id: from 1, without gaps. */
  #record(attributes: HistoryEvent): number {
    const nowMs = this.#of.agenda.nowMs();
    const eventId = this.history.length + 1;
    this.history.push({
      eventId: eventId as never,
      eventTime: { seconds: Math.floor(nowMs / 1000) as never, nanos: (nowMs % 1000) * 1_000_000 },
      ...attributes,
    });
    return eventId;
  }

  /** Several things that happen before the task begins are told in one. */
  #wake(): void {
    if (this.#isTaskDue || this.#end) return;
    this.#isTaskDue = true;
    const { agenda, world } = this.#of;
    const { fate, latencyMs } = world.task();
    agenda.at(agenda.nowMs() + latencyMs, async () => {
      this.#isTaskDue = false;
      await this.#runTask(fate);
    });
  }

  async #runTask(fate: TaskFate): Promise<void> {
    const { agenda } = this.#of;
    const before = this.history.length;
    this.#record({ workflowTaskScheduledEventAttributes: {} });
    const historyLength = this.#record({ workflowTaskStartedEventAttributes: {} });
    if (fate === 'evicted') await this.dispose();
    this.#instance ??= await this.#revived();
    const updates = this.#updates.map((update): Job => ({
      doUpdate: {
        id: update.id,
        protocolInstanceId: update.id,
        name: update.name,
        input: [defaultPayloadConverter.toPayload(update.message)],
        meta: { updateId: update.id, identity: 'model' },
        runValidator: true,
      },
    }));
    const commands = new TaskCommands();
    const activations: Job[][] = [];
    let flags = this.#flags;
    for (let jobs = ordered([...this.#jobs, ...updates]); jobs.length > 0;) {
      activations.push(jobs);
      const done = await this.#instance.activate({
        jobs,
        nowMs: agenda.nowMs(),
        isReplaying: false,
        historyLength,
        flags,
      });
      ({ flags } = done);
      jobs = commands.take(done.commands);
    }
    if (fate === 'lost') return this.#lose();
    const refused = refusedIn(commands.all());
    const isEmpty = commands
      .all()
      .every(({ updateResponse: it }) => it && refused.has(it.protocolInstanceId ?? ''));
    this.#flags = flags;
    const sent = this.#updates;
    this.#updates = [];
    for (const update of sent) this.#accepted.set(update.id, update);
    // A server forgets a task that only refused.
    if (isEmpty && this.#jobs.length === 0) this.history.length = before;
    else
      this.#complete({
        nowMs: agenda.nowMs(),
        historyLength,
        activations,
        commands: commands.all(),
      });
    this.#answer(sent, commands.all());
  }

  #tell(): void {
    const events = this.history.slice(this.#told);
    this.#told = this.history.length;
    this.#of.world.recorded(events);
  }

  /** The task failed with its worker: history says so, and what it was told is told again. */
  async #lose(): Promise<void> {
    await this.dispose();
    this.#record({ workflowTaskTimedOutEventAttributes: {} });
    this.#tell();
    this.#wake();
  }

  #complete(task: Omit<Task, 'patches' | 'commands'> & { commands: readonly Command[] }): void {
    const { commands, activations, ...times } = task;
    const refused = refusedIn(commands);
    this.#jobs = [];
    this.#record({ workflowTaskCompletedEventAttributes: {} });
    const patches = commands.flatMap(({ setPatchMarker: it }) => (it?.patchId ? [it.patchId] : []));
    this.#tasks.push({
      ...times,
      patches,
      activations: activations.map((jobs) =>
        jobs.filter(({ doUpdate: it }) => !refused.has(it?.protocolInstanceId ?? '')),
      ),
      commands: written(commands),
    });
    for (const command of commands) this.#perform(command);
    this.#tell();
  }

  #answer(sent: readonly Update[], commands: readonly Command[]): void {
    for (const update of sent) {
      const responses = commands.flatMap(({ updateResponse: it }) =>
        it?.protocolInstanceId === update.id ? [it] : [],
      );
      const refused = responses.find(({ rejected }) => rejected)?.rejected;
      const completed = responses.find((it) => it.completed)?.completed;
      const cause = refused?.applicationFailureInfo ?? refused?.cause?.applicationFailureInfo;
      if (refused) {
        // It is in no history, and may come again.
        this.#seen.delete(update.id);
        this.#of.world.answered(update, { kind: 'refused', code: cause?.type ?? '' });
      } else if (completed)
        this.#of.world.answered(update, {
          kind: 'taken',
          outcome: defaultPayloadConverter.fromPayload(completed),
        });
      else throw new Error(`Update ${update.id} was neither taken nor refused`);
    }
  }

  #perform(command: Command): void {
    const {
      scheduleActivity,
      requestCancelActivity,
      startTimer,
      cancelTimer,
      modifyWorkflowProperties,
    } = command;
    if (scheduleActivity) return this.#schedule(scheduleActivity);
    if (requestCancelActivity) return this.#requestStop(requestCancelActivity.seq ?? 0);
    if (startTimer)
      return this.#startTimer(startTimer.seq ?? 0, msOf(startTimer.startToFireTimeout));
    if (cancelTimer) return this.#cancelTimer(cancelTimer.seq ?? 0);
    const { setPatchMarker, updateResponse } = command;
    if (modifyWorkflowProperties)
      this.#record({
        workflowPropertiesModifiedEventAttributes: {
          upsertedMemo: modifyWorkflowProperties.upsertedMemo,
        },
      });
    else if (setPatchMarker) this.#mark(setPatchMarker.patchId ?? '');
    else if (updateResponse) this.#respond(updateResponse);
    else this.#finish(command);
  }

  #respond({
    protocolInstanceId,
    accepted,
    rejected,
    completed,
  }: NonNullable<Command['updateResponse']>): void {
    const updateId = protocolInstanceId ?? '';
    const acceptedEventId = this.#acceptedAt.get(updateId);
    if (accepted) {
      const acceptedRequest = this.#requestOf(updateId);
      const at = this.#record({
        workflowExecutionUpdateAcceptedEventAttributes: { acceptedRequest },
      });
      this.#acceptedAt.set(updateId, at);
      return;
    }
    const success = { payloads: completed ? [completed] : [] };
    this.#record({
      workflowExecutionUpdateCompletedEventAttributes: {
        meta: { updateId },
        // Of one that was refused before it was taken in a server writes nothing; known cases count this event.
        ...(acceptedEventId === undefined ? {} : { acceptedEventId: acceptedEventId as never }),
        outcome: rejected ? { failure: rejected } : { success },
      },
    });
  }

  #requestOf(id: string) {
    const { name = '', message } = this.#accepted.get(id) ?? {};
    const payloads = [defaultPayloadConverter.toPayload(message)];
    return { meta: { updateId: id }, input: { name, args: { payloads } } };
  }

  #mark(patchId: string): void {
    if (this.#patches.has(patchId)) return;
    this.#patches.add(patchId);
    this.#record({ markerRecordedEventAttributes: { markerName: 'core_patch' } });
  }

  #finish(command: Command): void {
    const { completeWorkflowExecution, failWorkflowExecution, cancelWorkflowExecution } = command;
    const continued = command.continueAsNewWorkflowExecution;
    if (completeWorkflowExecution) {
      const { result } = completeWorkflowExecution;
      this.#record({
        workflowExecutionCompletedEventAttributes: result ? { result: { payloads: [result] } } : {},
      });
      this.#end = { kind: 'completed' };
    } else if (failWorkflowExecution) {
      this.#record({
        workflowExecutionFailedEventAttributes: { failure: failWorkflowExecution.failure },
      });
      this.#end = { kind: 'failed' };
    } else if (cancelWorkflowExecution) {
      this.#record({ workflowExecutionCanceledEventAttributes: {} });
      this.#end = { kind: 'cancelled' };
    } else if (continued) {
      const payloads = continued.arguments ?? [];
      this.#record({
        workflowExecutionContinuedAsNewEventAttributes: {
          input: { payloads },
          newExecutionRunId: 'next',
        },
      });
      this.#end = {
        kind: 'continued',
        input: defaultPayloadConverter.fromPayload(payloads[0] as Payload),
      };
    } else throw new Error(`the model knows no command ${Object.keys(command).join(' ')}`);
    for (const planned of [...this.#running.values(), ...this.#timers.values()]) planned.takeOff();
  }

  #schedule({
    seq,
    activityId,
    activityType,
    arguments: args,
  }: NonNullable<Command['scheduleActivity']>): void {
    const payloads = args ?? [];
    const scheduledEventId = this.#record({
      activityTaskScheduledEventAttributes: {
        activityId,
        activityType: { name: activityType },
        input: { payloads },
      },
    });
    const activity: ScheduledActivity = {
      activityId: activityId ?? '',
      type: activityType ?? '',
      input: defaultPayloadConverter.fromPayload(payloads[0] as Payload),
    };
    const takeOff = this.#planEnd(seq ?? 0, this.#of.world.begin(activity));
    this.#running.set(seq ?? 0, { ...activity, scheduledEventId, takeOff });
  }

  #planEnd(seq: number, { afterMs, end }: ActivityFate): () => void {
    const { agenda } = this.#of;
    return agenda.at(agenda.nowMs() + afterMs, () => this.#endActivity(seq, end));
  }

  #requestStop(seq: number): void {
    const running = this.#running.get(seq);
    if (!running) return;
    this.#record({
      activityTaskCancelRequestedEventAttributes: {
        scheduledEventId: running.scheduledEventId as never,
      },
    });
    const fate = this.#of.world.stop(running);
    if (!fate) return;
    running.takeOff();
    this.#running.set(seq, { ...running, takeOff: this.#planEnd(seq, fate) });
  }

  #endActivity(seq: number, end: ActivityEnd): void {
    const running = this.#running.get(seq);
    if (!running || this.#end) return;
    this.#running.delete(seq);
    const scheduledEventId = running.scheduledEventId as never;
    this.#record({ activityTaskStartedEventAttributes: { scheduledEventId } });
    const { event, result } = activityOutcome(end, scheduledEventId);
    this.#record(event);
    this.#jobs.push({ resolveActivity: { seq, result } });
    this.#wake();
  }

  #startTimer(seq: number, ms: number): void {
    const { agenda } = this.#of;
    const startToFireTimeout = {
      seconds: Math.floor(ms / 1000) as never,
      nanos: (ms % 1000) * 1_000_000,
    };
    const startedEventId = this.#record({
      timerStartedEventAttributes: { timerId: String(seq), startToFireTimeout },
    });
    const takeOff = agenda.at(agenda.nowMs() + Math.max(ms, 1), () => {
      if (this.#end) return;
      this.#timers.delete(seq);
      this.#record({
        timerFiredEventAttributes: {
          timerId: String(seq),
          startedEventId: startedEventId as never,
        },
      });
      this.#jobs.push({ fireTimer: { seq } });
      this.#wake();
    });
    this.#timers.set(seq, { startedEventId, takeOff });
  }

  #cancelTimer(seq: number): void {
    this.#timers.get(seq)?.takeOff();
    this.#timers.delete(seq);
    this.#record({ timerCanceledEventAttributes: { timerId: String(seq) } });
  }

  /** A worker that knows nothing but history. */
  async #revived(): Promise<Instance> {
    const { isolate, workflowId, temporalRunId } = this.#of;
    const started = this.#tasks[0]?.nowMs ?? this.#of.agenda.nowMs();
    const instance = await isolate.start(workflowId, temporalRunId, started);
    for (const task of this.#tasks) {
      const commands = new TaskCommands();
      for (const [index, live] of task.activations.entries()) {
        const patches =
          index > 0 ? [] : task.patches.map((patchId): Job => ({ notifyHasPatch: { patchId } }));
        const jobs = live.map((job) =>
          job.doUpdate ? { doUpdate: { ...job.doUpdate, runValidator: false } } : job,
        );
        if (jobs.length === 0) continue;
        const { nowMs, historyLength } = task;
        const replayed = await instance.activate({
          jobs: ordered([...patches, ...jobs]),
          nowMs,
          historyLength,
          isReplaying: true,
          flags: this.#flags,
        });
        commands.take(replayed.commands);
      }
      const again = written(commands.all());
      if (again !== task.commands)
        throw new Error(
          `a replay gives other commands at ${task.historyLength}:\n${task.commands}\n${again}`,
        );
    }
    return instance;
  }
}

export function startExecution(options: ExecutionOptions): Execution {
  return new ModelledExecution(options);
}
