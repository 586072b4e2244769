// A run's record played without Temporal (architecture §6): the workflow code of this release in the SDK's sandbox, given
// the record and nothing else. No activity runs but the one that reads the record, which is answered here; timers end at
// once, in their order.
import { defaultPayloadConverter, type Payload } from '@temporalio/common';
import { HostError } from '../../rules/errors.ts';
import { CARRIER_METADATA_KEY, type Carrier, type StepResult } from '../../rules/journal.ts';
import type { Recording, RecordingPage } from '../../rules/recording.ts';
import type { StatedEntry } from '../../rules/replayed.ts';
import type { ForkOf, RunInput } from '../../rules/run-input.ts';
import { openIsolate, type Command, type Instance, type Isolate, type Job } from './isolate.ts';

/** The one activity of a replay (workflows/live-steps.ts). */
const READ_RECORDING = 'readRecording';
const TEMPORAL_RUN_ID = 'offline';
/** Workflow tasks of one replay. */
const MAX_TASKS = 200_000;
/** Facts that are stated beyond those of the record: more tell nothing that the first does not. */
const MAX_MORE = 1_000;
/** Longest time in ms that workflow code may take without coming to a wait: what is played was not made here. */
const CALL_LIMIT_MS = 60_000;
/** The replay found a difference by itself: what follows is how it ends. */
const DIVERGED = 'replay.diverged';

/** Everything that the run stated again, in order. Throws HostError internal_error where workflow code fails. */
export async function replayOffline(
  cacheDir: string,
  { input, recording }: { readonly input: RunInput; readonly recording: Recording },
): Promise<readonly StatedEntry[]> {
  const options = { cacheDir, activityNames: [READ_RECORDING], limitMs: CALL_LIMIT_MS };
  const isolate = await openIsolate(options);
  try {
    return await playIn(isolate, { input, recording });
  } finally {
    await isolate.close();
  }
}

export async function playIn(
  isolate: Isolate,
  { input, recording }: { readonly input: RunInput; readonly recording: Recording },
): Promise<readonly StatedEntry[]> {
  const [first] = recording.batches;
  // No workflow ever ran for it.
  if (!first) return [];
  const { runId } = input;
  const length = recording.entries.length;
  const fork: ForkOf = {
    sourceRunId: runId,
    fromSeq: 0,
    length,
    mode: 'replay',
    clocks: [],
    generation: 1,
    isWhole: true,
  };
  const page = { ...recording, sourceRunId: runId, prefix: 0, isLast: true };
  const instance = await isolate.start(runId, TEMPORAL_RUN_ID, first.atMs);
  try {
    const play = new OfflinePlay(instance, page, first.atMs);
    return await play.toItsEnd({ ...input, fork });
  } finally {
    await instance.dispose();
  }
}

class OfflinePlay {
  readonly #stated: StatedEntry[] = [];
  readonly #instance: Instance;
  readonly #page: RecordingPage;
  /** By their number: when they end. */
  readonly #timers = new Map<number, number>();
  readonly #most: number;
  #nowMs: number;
  #isOver = false;

  constructor(instance: Instance, page: RecordingPage, nowMs: number) {
    this.#instance = instance;
    this.#page = page;
    this.#most = page.entries.length + MAX_MORE;
    this.#nowMs = nowMs;
  }

  async toItsEnd(input: RunInput): Promise<readonly StatedEntry[]> {
    let jobs: Job[] = [
      {
        initializeWorkflow: {
          workflowId: input.runId,
          arguments: [defaultPayloadConverter.toPayload(input)],
        },
      },
    ];
    for (let task = 1; jobs.length > 0 && !this.#isOver; task++) {
      if (task > MAX_TASKS) throw new HostError('internal_error', { reason: 'it does not end' });
      const { commands } = await this.#instance.activate({
        ...{ jobs, nowMs: this.#nowMs, isReplaying: false, flags: [] },
        historyLength: task * EVENTS_PER_TASK,
      });
      jobs = commands.flatMap((command) => this.#perform(command));
      if (jobs.length === 0) jobs = this.#nextTimer();
    }
    return this.#stated;
  }

  /** The jobs that it is answered with at once. */
  #perform(command: Command): Job[] {
    this.#take(command);
    const { scheduleActivity, startTimer, cancelTimer, signalExternalWorkflowExecution } = command;
    if (scheduleActivity) {
      const result = defaultPayloadConverter.toPayload(this.#read(scheduleActivity.activityType));
      return [
        { resolveActivity: { seq: scheduleActivity.seq, result: { completed: { result } } } },
      ];
    }
    if (startTimer) {
      const { seconds = 0, nanos = 0 } = startTimer.startToFireTimeout ?? {};
      const ms = Number(String(seconds)) * 1000 + (nanos ?? 0) / 1_000_000;
      this.#timers.set(startTimer.seq ?? 0, this.#nowMs + ms);
    }
    if (cancelTimer) this.#timers.delete(cancelTimer.seq ?? 0);
    // A parent is told of its child's end: nobody is there.
    if (signalExternalWorkflowExecution)
      return [{ resolveSignalExternalWorkflow: { seq: signalExternalWorkflowExecution.seq } }];
    this.#isOver ||= isEnd(command);
    return [];
  }

  /** Nothing else may be asked of the world. */
  #read(activityType: string | null | undefined): StepResult<null> {
    if (activityType !== READ_RECORDING)
      throw new HostError('internal_error', { reason: `a replay began ${activityType}` });
    return { output: null, events: [], recording: this.#page };
  }

  #take(command: Command): void {
    const carriers = payloadsOf(command).filter(isCarrier);
    for (const payload of carriers) {
      const { entries } = defaultPayloadConverter.fromPayload<Carrier>(payload);
      for (const entry of entries) {
        if (this.#isOver || entry.kind !== 'emit') continue;
        if (entry.type === DIVERGED || this.#stated.length >= this.#most) this.#isOver = true;
        else {
          const { key, type, nodeId, payload } = entry;
          this.#stated.push({ key, type, payload, ...(nodeId === undefined ? {} : { nodeId }) });
        }
      }
    }
  }

  #nextTimer(): Job[] {
    const [next] = [...this.#timers].sort(([, a], [, b]) => a - b);
    if (!next) return [];
    const [seq, endMs] = next;
    this.#timers.delete(seq);
    this.#nowMs = Math.max(this.#nowMs, Math.ceil(endMs));
    return [{ fireTimer: { seq } }];
  }
}

/** History events that a workflow task has at least: scheduled, started, completed. */
const EVENTS_PER_TASK = 3;

function isEnd(command: Command): boolean {
  return Boolean(
    command.completeWorkflowExecution ??
    command.failWorkflowExecution ??
    command.cancelWorkflowExecution ??
    command.continueAsNewWorkflowExecution,
  );
}

/** Where a journal rides (architecture §2.3). */
function payloadsOf(command: Command): Payload[] {
  const { scheduleActivity, modifyWorkflowProperties, completeWorkflowExecution } = command;
  const result = completeWorkflowExecution?.result;
  return [
    ...(scheduleActivity?.arguments ?? []),
    ...Object.values(modifyWorkflowProperties?.upsertedMemo?.fields ?? {}),
    ...(result ? [result] : []),
  ];
}

function isCarrier({ metadata }: Payload): boolean {
  return metadata?.[CARRIER_METADATA_KEY] !== undefined;
}
