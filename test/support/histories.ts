// Builds Temporal histories as the workflow's journal leaves them, batch by batch, for tests of the pure rooms.
import proto from '@temporalio/proto';
import type { temporal } from '@temporalio/proto';
import {
  CARRIER_MEMO_FIELD,
  CARRIER_METADATA_KEY,
  type RecordedEvent,
  type JournalEntry,
  type RecordedDeltas,
} from '../../src/rules/journal.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import type { HistoryEvent } from '../../src/translate/translate.ts';

const { EventType } = proto.temporal.api.enums.v1;
type Payload = temporal.api.common.v1.IPayload;
/** A command's event: type and attributes. */
export type Command = readonly [number, Attributes];
type Attributes = Omit<HistoryEvent, 'eventId' | 'eventTime' | 'eventType'>;

export function jsonPayload(value: unknown, metadata: Record<string, string> = {}): Payload {
  const entries = Object.entries({ encoding: 'json/plain', ...metadata });
  return {
    metadata: Object.fromEntries(entries.map(([key, text]) => [key, Buffer.from(text)])),
    data: Buffer.from(JSON.stringify(value)),
  };
}

/** Entries with their ordinals, as the interceptor marks them. */
export function carrierPayload(at: readonly number[], entries: readonly JournalEntry[]): Payload {
  return jsonPayload({ v: 1, at, entries }, { [CARRIER_METADATA_KEY]: '1' });
}

export function emitted(
  key: string,
  type: string,
  payload: JsonObject = {},
  more: { nodeId?: string; causedBy?: string } = {},
): JournalEntry {
  return { kind: 'emit', key, type, payload, ...more };
}

export function admitted(activityId: string, k = 0): JournalEntry {
  return { kind: 'admit', activityId, k };
}

/** Whole batches of one segment. Times: the n-th batch is at `startMs` + n * 10 ms. */
export class HistoryBuilder {
  readonly batches: HistoryEvent[][] = [];
  #nextEventId = 1;
  #nextAt = 0;
  readonly #startMs: number;
  readonly #scheduled = new Map<string, number>();

  constructor(startMs = 1_000) {
    this.#startMs = startMs;
    this.#batch([
      [
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
        { workflowExecutionStartedEventAttributes: {} },
      ],
      [EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, { workflowTaskScheduledEventAttributes: {} }],
    ]);
  }

  get events(): HistoryEvent[] {
    return this.batches.flat();
  }

  /** Number of events so far. */
  get length(): number {
    return this.#nextEventId - 1;
  }

  #batch(events: readonly Command[]): void {
    const timeMs = this.#startMs + this.batches.length * 10;
    this.batches.push(
      events.map(([eventType, attributes]) => ({
        eventId: this.#nextEventId++,
        eventTime: { seconds: Math.floor(timeMs / 1000), nanos: (timeMs % 1000) * 1_000_000 },
        eventType,
        ...attributes,
      })) as unknown as HistoryEvent[],
    );
  }

  /** Ordinals for `count` entries: in the order of the calls. */
  ordinals(count: number): number[] {
    return Array.from({ length: count }, () => this.#nextAt++);
  }

  carrier(...entries: JournalEntry[]): Payload {
    return carrierPayload(this.ordinals(entries.length), entries);
  }

  /** A workflow task: WorkflowTaskStarted, then its completion and commands in one batch. */
  task(...commands: readonly Command[]): this {
    this.#batch([
      [EventType.EVENT_TYPE_WORKFLOW_TASK_STARTED, { workflowTaskStartedEventAttributes: {} }],
    ]);
    const first = this.#nextEventId;
    this.#batch([
      [EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED, { workflowTaskCompletedEventAttributes: {} }],
      ...commands,
    ]);
    commands.forEach(([, { activityTaskScheduledEventAttributes: it }], index) => {
      if (it?.activityId) this.#scheduled.set(it.activityId, first + 1 + index);
    });
    return this;
  }

  /** The activity's outcome: started and closed in one batch, with the next workflow task. */
  #outcome(
    activityId: string,
    eventType: number,
    make: (scheduledEventId: number) => Attributes,
  ): this {
    const scheduledEventId = this.#scheduled.get(activityId) ?? -1;
    this.#batch([
      [EventType.EVENT_TYPE_ACTIVITY_TASK_STARTED, { activityTaskStartedEventAttributes: {} }],
      [eventType, make(scheduledEventId)],
      [EventType.EVENT_TYPE_WORKFLOW_TASK_SCHEDULED, { workflowTaskScheduledEventAttributes: {} }],
    ]);
    return this;
  }

  completed(
    activityId: string,
    result: { events?: readonly RecordedEvent[]; output?: JsonValue; deltas?: RecordedDeltas } = {},
  ): this {
    const step = { output: null, events: [], ...result };
    return this.#outcome(activityId, EventType.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, (id) => ({
      activityTaskCompletedEventAttributes: {
        scheduledEventId: id as never,
        result: { payloads: [jsonPayload(step)] },
      },
    }));
  }

  failed(activityId: string): this {
    return this.#outcome(activityId, EventType.EVENT_TYPE_ACTIVITY_TASK_FAILED, (id) => ({
      activityTaskFailedEventAttributes: { scheduledEventId: id as never },
    }));
  }

  /** An event in a batch of its own that no workflow task made. */
  lone(eventType: number, attributes: Attributes): this {
    this.#batch([[eventType, attributes]]);
    return this;
  }
}

export function schedule(activityId: string, ...carriers: Payload[]): Command {
  return [
    EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
    {
      activityTaskScheduledEventAttributes: {
        activityId,
        input: { payloads: [jsonPayload({ context: {} }), ...carriers] },
      },
    },
  ];
}

export function memo(carrier: Payload): Command {
  return [
    EventType.EVENT_TYPE_WORKFLOW_PROPERTIES_MODIFIED,
    {
      workflowPropertiesModifiedEventAttributes: {
        upsertedMemo: { fields: { [CARRIER_MEMO_FIELD]: carrier } },
      },
    },
  ];
}

export function complete(carrier: Payload): Command {
  return [
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED,
    { workflowExecutionCompletedEventAttributes: { result: { payloads: [carrier] } } },
  ];
}

export function continueAsNew(newExecutionRunId: string, carrier: Payload): Command {
  return [
    EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW,
    {
      workflowExecutionContinuedAsNewEventAttributes: {
        newExecutionRunId,
        input: { payloads: [jsonPayload({ carried: true }), carrier] },
      },
    },
  ];
}

export const fail: Command = [
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
  { workflowExecutionFailedEventAttributes: {} },
];

export const cancel: Command = [
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED,
  { workflowExecutionCanceledEventAttributes: {} },
];

export const terminate: Command = [
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
  { workflowExecutionTerminatedEventAttributes: {} },
];

export const timeOut: Command = [
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT,
  { workflowExecutionTimedOutEventAttributes: {} },
];
