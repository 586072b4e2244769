// Runs workflow code once with scripted activities, on the dev server or the time-skipping server, and returns what
// history holds: all segments and the journal read from their carriers, independently of src/translate.
import { Context } from '@temporalio/activity';
import {
  Client,
  WithStartWorkflowOperation,
  type Connection,
  type WorkflowHandle,
} from '@temporalio/client';
import { defaultPayloadConverter, type DataConverter, type Payload } from '@temporalio/common';
import proto, { type temporal } from '@temporalio/proto';
import {
  Worker,
  type InjectedSinks,
  type NativeConnection,
  type WorkerOptions,
  type WorkflowBundleOption,
} from '@temporalio/worker';
import type { StepContext } from '../../activities/contract.ts';
import { decodeEvents } from '../../src/adapters/temporal/history-payloads.ts';
import { installRuntime } from '../../src/adapters/temporal/worker.ts';
import { withWorkflowThreads } from '../../src/adapters/temporal/workflow-threads.ts';
import { activityEventKey } from '../../src/rules/ids.ts';
import {
  CARRIER_MEMO_FIELD,
  CARRIER_METADATA_KEY,
  type ActivityEvent,
  type Carrier,
  type EmittedEntry,
  type JournalEntry,
  type StatusEntry,
  type StepResult,
} from '../../src/rules/journal.ts';
import type { HistoryEvent } from '../../src/ports/history.ts';
import type { Logger } from '../../src/ports/logger.ts';
import type { JournalSinks } from '../../workflows/interceptors.ts';
import { patient } from './machine.ts';
import { replay } from './replayer.ts';

/** Activity types that workflow code may schedule; a script answers those that it needs. */
const ACTIVITY_TYPES = [
  'prepareInvocation',
  'inferTurn',
  'callTool',
  'checkValue',
  'sealBlock',
  'startChildren',
  'endChild',
  'cancelChild',
  'keepTime',
  'tellReasoning',
  'readRecording',
  'forkChildren',
  'scripted',
] as const;
/** What a scripted run says besides its history is not looked at. */
const silent: Logger = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const { PendingActivityState: ActivityState } = proto.temporal.api.enums.v1;
/** A run in a test may take this long in real time. */
const RUN_LIMIT_MS = patient(60_000);

export type ScriptedActivities = Readonly<Record<string, (input: never) => Promise<unknown>>>;

export interface WorkflowServer {
  readonly connection: Connection;
  readonly nativeConnection: NativeConnection;
  readonly namespace: string;
  /** Set for a time-skipping server: its client skips time while it waits for a result. */
  readonly client?: Client;
}

/** An entry as it stands in history; an admitted one with the event it refers to. */
export type JournalItem = { readonly segment: number; readonly timeMs: number } & (
  | EmittedEntry
  | StatusEntry
  | ({
      readonly kind: 'admit';
      readonly key: string;
      readonly activityId: string;
      readonly k: number;
    } & ActivityEvent)
);

export interface FinishedRun {
  readonly runId: string;
  readonly status: 'completed' | 'failed' | 'cancelled';
  readonly error?: unknown;
  /** Decoded events of each segment, oldest first. */
  readonly segments: readonly (readonly HistoryEvent[])[];
  /** All carriers' entries in the order of the workflow. */
  readonly journal: readonly JournalItem[];
  /** What the workflow told the projector. */
  readonly hints: readonly {
    tenant: string;
    temporalRunId: string;
    historyLength: number;
    terminal: boolean;
  }[];
  /** Replays every segment; throws DeterminismViolationError. */
  replay(): Promise<void>;
}

export interface RunnerOptions {
  readonly server: WorkflowServer;
  readonly bundle: WorkflowBundleOption;
  readonly taskQueue: string;
  readonly dataConverter?: DataConverter;
  /** 0 replays every workflow task from the start, as after a worker restart. */
  readonly maxCachedWorkflows?: number;
}

export interface RunRequest {
  readonly runId: string;
  readonly workflowType: string;
  readonly input: unknown;
  readonly activities?: ScriptedActivities;
  /** Sent in one request with the start: the run's first workflow task has it. */
  readonly withStart?: UpdateWithStart;
  /** Acts on the run while it goes: updates, cancel, time. The run's end is awaited afterwards. */
  readonly script?: (handle: WorkflowHandle) => Promise<void>;
}

export interface UpdateWithStart {
  /** The Update's name. */
  readonly update: string;
  readonly message: object;
}

export interface WorkflowRunner {
  run(request: RunRequest): Promise<FinishedRun>;
  /** A worker that performs the scripted activities of another task queue, until it is stopped. */
  poll(taskQueue: string): Promise<{ stop(): Promise<void> }>;
  close(): Promise<void>;
}

/**
 * Keeps the SDK's own logs out of the test's output. To be called before the first native connection of the process;
 * later it does nothing.
 */
export function quietRuntime(): void {
  try {
    installRuntime(silent);
  } catch (error) {
    if ((error as Error).name !== 'IllegalStateError') throw error;
  }
}

/** One worker for many runs; each run has its own scripted activities. */
export async function createWorkflowRunner(options: RunnerOptions): Promise<WorkflowRunner> {
  const { server, bundle, taskQueue, dataConverter } = options;
  quietRuntime();
  const scripts = new Map<string, ScriptedActivities>();
  const hints = new Map<string, FinishedRun['hints'][number][]>();
  const sinks: InjectedSinks<JournalSinks> = {
    journal: {
      hint: {
        fn: ({ workflowId }, tenant, temporalRunId, historyLength, terminal) =>
          void hints.get(workflowId)?.push({ tenant, temporalRunId, historyLength, terminal }),
        callDuringReplay: false,
      },
    },
  };
  const settings: WorkerOptions = {
    connection: server.nativeConnection,
    namespace: server.namespace,
    taskQueue,
    workflowBundle: bundle,
    dataConverter,
    sinks,
    activities: scriptedActivities(scripts),
    maxCachedWorkflows: options.maxCachedWorkflows ?? 100,
    stickyQueueScheduleToStartTimeout: '1s',
    maxHeartbeatThrottleInterval: '500ms',
  };
  const worker = await withWorkflowThreads(false, () => Worker.create(settings));
  const running = worker.run();
  const client =
    server.client ??
    new Client({ connection: server.connection, namespace: server.namespace, dataConverter });
  return {
    async run(request) {
      scripts.set(request.runId, request.activities ?? {});
      hints.set(request.runId, []);
      const ended = await runToEnd(client, taskQueue, request);
      const segments = await readSegments({
        client,
        runId: request.runId,
        first: ended.firstExecutionRunId,
        dataConverter,
      });
      return {
        runId: request.runId,
        ...ended.outcome,
        segments: segments.map(({ decoded }) => decoded),
        journal: segments.flatMap(({ decoded }, segment) => journalOf(decoded, segment)),
        hints: hints.get(request.runId) ?? [],
        async replay() {
          for (const { raw } of segments) {
            const replayed = { workflowId: request.runId, history: raw };
            const error = await replay({ bundle, dataConverter }, replayed);
            if (error) throw error;
          }
        },
      };
    },
    async poll(queue) {
      const other = await Worker.create({
        connection: server.nativeConnection,
        namespace: server.namespace,
        taskQueue: queue,
        dataConverter,
        activities: scriptedActivities(scripts),
        maxHeartbeatThrottleInterval: '500ms',
      });
      const polling = other.run();
      return {
        async stop() {
          other.shutdown();
          await polling;
        },
      };
    },
    async close() {
      worker.shutdown();
      await running;
    },
  };
}

function scriptedActivities(scripts: ReadonlyMap<string, ScriptedActivities>) {
  return Object.fromEntries(
    ACTIVITY_TYPES.map((type) => [type, (input: unknown) => perform(scripts, type, input)]),
  );
}

async function perform(
  scripts: ReadonlyMap<string, ScriptedActivities>,
  type: string,
  input: unknown,
): Promise<unknown> {
  const runId = Context.current().info.workflowExecution?.workflowId ?? '';
  const activity = scripts.get(runId)?.[type];
  if (!activity) throw new Error(`run ${runId} has no script for ${type}`);
  return withCause(await activity(input as never), input);
}

/** As activities do: what a script states follows from what the activity was asked for, where it says nothing else. */
function withCause(result: unknown, input: unknown): unknown {
  const { cause } = (input as { readonly context?: StepContext }).context ?? {};
  const { events } = (result ?? {}) as Partial<StepResult>;
  if (cause === undefined || !events) return result;
  const caused = events.map((event) => ({ ...event, causedBy: event.causedBy ?? cause }));
  return { ...(result as StepResult), events: caused };
}

async function start(client: Client, taskQueue: string, request: RunRequest) {
  const { workflowType, runId: workflowId, input, withStart } = request;
  const options = { workflowId, taskQueue, args: [input] };
  if (!withStart) {
    const handle = await client.workflow.start(workflowType, options);
    return { handle, firstExecutionRunId: handle.firstExecutionRunId };
  }
  const startWorkflowOperation = new WithStartWorkflowOperation(workflowType, {
    ...options,
    workflowIdConflictPolicy: 'FAIL',
  });
  const { update, message } = withStart;
  await client.workflow.executeUpdateWithStart(update, { args: [message], startWorkflowOperation });
  const handle = await startWorkflowOperation.workflowHandle();
  const { raw } = await handle.describe();
  return { handle, firstExecutionRunId: raw.workflowExecutionInfo?.firstRunId ?? '' };
}

async function runToEnd(client: Client, taskQueue: string, request: RunRequest) {
  const { handle, firstExecutionRunId } = await start(client, taskQueue, request);
  const current = client.workflow.getHandle(request.runId);
  await request.script?.(current);
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`run ${request.runId} did not end in ${RUN_LIMIT_MS} ms`)),
      RUN_LIMIT_MS,
    );
  });
  const outcome = await Promise.race([
    handle.result().then(
      () => ({ status: 'completed' as const }),
      (error: Error) => ({
        status: /cancel/i.test(error.message) ? ('cancelled' as const) : ('failed' as const),
        error,
      }),
    ),
    late,
  ]).finally(() => clearTimeout(timer));
  return { outcome, firstExecutionRunId };
}

interface Chain {
  readonly client: Client;
  readonly runId: string;
  readonly first: string;
  readonly dataConverter?: DataConverter;
}

async function readSegments({ client, runId, first, dataConverter }: Chain) {
  const segments: { raw: temporal.api.history.v1.IHistory; decoded: readonly HistoryEvent[] }[] =
    [];
  for (let at: string | null | undefined = first; at;) {
    const raw = await client.workflow.getHandle(runId, at).fetchHistory();
    const events: readonly HistoryEvent[] = raw.events ?? [];
    const codec = dataConverter?.payloadCodecs?.[0];
    segments.push({ raw, decoded: codec ? await decodeEvents(events, codec) : events });
    at = events.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return segments;
}

function carrierPayloadsIn(event: HistoryEvent): readonly Payload[] {
  const field =
    event.workflowPropertiesModifiedEventAttributes?.upsertedMemo?.fields?.[CARRIER_MEMO_FIELD];
  const candidates = [
    ...(event.activityTaskScheduledEventAttributes?.input?.payloads?.slice(1) ?? []),
    ...(field ? [field] : []),
    ...(event.workflowExecutionCompletedEventAttributes?.result?.payloads ?? []),
    ...(event.workflowExecutionContinuedAsNewEventAttributes?.input?.payloads?.slice(-1) ?? []),
  ];
  return candidates.filter((payload) => payload.metadata?.[CARRIER_METADATA_KEY] !== undefined);
}

/** The carriers that an event holds, decoded. */
export function carriersOf(event: HistoryEvent): readonly Carrier[] {
  return carrierPayloadsIn(event).map((payload) =>
    defaultPayloadConverter.fromPayload<Carrier>(payload),
  );
}

function timeOf(event: HistoryEvent): number {
  return (
    Number(event.eventTime?.seconds ?? 0) * 1000 +
    Math.floor((event.eventTime?.nanos ?? 0) / 1_000_000)
  );
}

interface Result {
  readonly events: readonly ActivityEvent[];
  readonly timeMs: number;
}

function resultsOf(events: readonly HistoryEvent[]): ReadonlyMap<string, Result> {
  const ids = new Map<string, string>();
  const results = new Map<string, Result>();
  for (const event of events) {
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled) ids.set(String(event.eventId), scheduled.activityId ?? '');
    const completed = event.activityTaskCompletedEventAttributes;
    const payload = completed?.result?.payloads?.[0];
    if (!completed || !payload) continue;
    const result = defaultPayloadConverter.fromPayload<StepResult | undefined>(payload);
    const activityId = ids.get(String(completed.scheduledEventId)) ?? '';
    results.set(activityId, { events: result?.events ?? [], timeMs: timeOf(event) });
  }
  return results;
}

/** One segment's entries by their ordinals. Throws when an entry is admitted that no result holds. */
export function journalOf(events: readonly HistoryEvent[], segment = 0): readonly JournalItem[] {
  const results = resultsOf(events);
  const entries: { at: number; timeMs: number; entry: JournalEntry }[] = [];
  for (const event of events) {
    for (const carrier of carriersOf(event)) {
      carrier.entries.forEach((entry, index) =>
        entries.push({ at: carrier.at[index] ?? Number.NaN, timeMs: timeOf(event), entry }),
      );
    }
  }
  entries.sort((a, b) => a.at - b.at);
  return entries.flatMap(({ timeMs, entry }): JournalItem[] => {
    // It says where a fork begins to live, and nothing of the log.
    if (entry.kind === 'live') return [];
    if (entry.kind !== 'admit') return [{ segment, timeMs, ...entry }];
    const result = results.get(entry.activityId);
    const event = result?.events[entry.k];
    if (!result || !event) throw new Error(`no recorded event ${entry.activityId}#${entry.k}`);
    const key = activityEventKey(entry.activityId, entry.k);
    return [{ segment, ...entry, key, ...event, timeMs: result.timeMs }];
  });
}

/**
 * The interrupt that a node last asked, as the run's current segment knows it: from its own entries, else from the
 * state that it was started with; '' when there is none.
 */
export async function askedInterrupt(handle: WorkflowHandle, nodeId: string): Promise<string> {
  const { events } = await handle.fetchHistory();
  const asked = journalOf(events ?? []).findLast(
    (item) => item.kind === 'emit' && item.type === 'node.suspended' && item.nodeId === nodeId,
  );
  if (asked?.kind === 'emit') return asked.payload.interruptId as string;
  const carried = carriedInterrupts(events ?? []);
  return carried.findLast((open) => open.nodeId === nodeId)?.interruptId ?? '';
}

/** Ids of the node's interrupts that nobody has answered yet, oldest first. */
export async function openInterruptIds(handle: WorkflowHandle, nodeId: string): Promise<string[]> {
  const { events } = await handle.fetchHistory();
  const stated = journalOf(events ?? []).filter((item) => item.kind === 'emit');
  const idsOf = (type: string): string[] =>
    stated
      .filter((item) => item.type === type && item.nodeId === nodeId)
      .map(({ payload }) => payload.interruptId as string);
  const carried = carriedInterrupts(events ?? []).filter((open) => open.nodeId === nodeId);
  const closed = new Set(idsOf('interrupt.resolved'));
  return [...carried.map(({ interruptId }) => interruptId), ...idsOf('node.suspended')].filter(
    (id) => !closed.has(id),
  );
}

/** `run.paused` is stated, in this segment or in an earlier one. */
export async function isPaused(handle: WorkflowHandle): Promise<boolean> {
  const { events } = await handle.fetchHistory();
  const isStated = journalOf(events ?? []).some(
    (item) => 'type' in item && item.type === 'run.paused',
  );
  return isStated || carriedState(events ?? [])?.pause?.isEffective === true;
}

/** How many timers of the run's current segment are started and neither fired nor cancelled, and how many fired. */
export async function timersOf(handle: WorkflowHandle): Promise<{ open: number; fired: number }> {
  const events = (await handle.fetchHistory()).events ?? [];
  const started = events.filter((event) => event.timerStartedEventAttributes).length;
  const cancelled = events.filter((event) => event.timerCanceledEventAttributes).length;
  const fired = events.filter((event) => event.timerFiredEventAttributes).length;
  return { open: started - cancelled - fired, fired };
}

/** The activities of the run's current segment that have not ended, and whether its worker has a task to do. */
export async function pendingOf(handle: WorkflowHandle): Promise<Pending> {
  const { pendingActivities, pendingWorkflowTask } = (await handle.describe()).raw;
  const activities = (pendingActivities ?? []).map(({ activityType, state }) => {
    const isTaken = state !== ActivityState.PENDING_ACTIVITY_STATE_SCHEDULED;
    return `${activityType?.name} ${isTaken ? 'taken' : 'scheduled'}`;
  });
  return { activities, hasTask: Boolean(pendingWorkflowTask) };
}

interface Pending {
  /** Each with its type and whether a worker has it: `callTool scheduled`, `callTool taken`. */
  readonly activities: readonly string[];
  readonly hasTask: boolean;
}

/** What the segment began with, those among it whose answer waits for the node. */
function carriedInterrupts(events: readonly HistoryEvent[]): readonly CarriedInterrupt[] {
  return Object.values(carriedState(events)?.interrupts ?? {});
}

function carriedState(events: readonly HistoryEvent[]): Carried | undefined {
  const started = events[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.[0];
  const input = started && defaultPayloadConverter.fromPayload<{ carried?: Carried }>(started);
  return input?.carried;
}

interface CarriedInterrupt {
  readonly interruptId: string;
  readonly nodeId: string;
}

interface Carried {
  readonly interrupts: Readonly<Record<string, CarriedInterrupt>>;
  readonly pause?: { readonly isEffective: boolean };
}
