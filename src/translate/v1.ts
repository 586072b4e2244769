// Translation rules, version 1 (architecture §3.1): history events in, log entries out. Pure and incremental:
// whatever batches the pages hold, the entries are the same. Runs are pinned to their version for ever: a change that
// alters the entries of any history is a new version beside this one.
//
//   event                       | what it does
//   WorkflowTaskCompleted       | drains the entries of the task before
//   ActivityTaskScheduled       | carriers; remembers which activity it is
//   ActivityTaskCompleted       | drains; keeps the result's events until they are admitted; hands out recorded deltas
//   ActivityTaskFailed, …       | drains; forgets the activity
//   WorkflowPropertiesModified  | carriers
//   Completed, ContinuedAsNew   | carriers, drain; a new segment starts with empty activity maps
//   Failed, Canceled, TimedOut, | drain; writes the ending where no workflow code did
//   Terminated                  |
import { closingsOf, trackOpen, type Ending, type OpenItem } from '../rules/endings.ts';
import { ERRORS, HostError, type ErrorCode } from '../rules/errors.ts';
import { activityEventKey, causeFields, eventIdOf, TERMINAL_KEY } from '../rules/ids.ts';
import {
  CARRIER_MEMO_FIELD,
  type RecordedEvent,
  type Carrier,
  type JournalEntry,
  type RecordedDeltas,
} from '../rules/journal.ts';
import { eventRow, type EventOf } from '../rules/events.ts';
import type { RecordingPage } from '../rules/recording.ts';
import type { JsonObject } from '../rules/json.ts';
import {
  foldStatus,
  INITIAL_STATUS,
  isTerminalEvent,
  statusOf,
  type StatusState,
} from '../rules/status.ts';
import {
  carriersIn,
  eventTimeMs,
  historyEventIdOf,
  stepResultIn,
  type HistoryEvent,
} from './payloads.ts';
import type { LogEntry, PlacedDeltas, TranslatedRun, Translation } from './translation.ts';

interface KeptResult {
  readonly timeMs: number;
  /** null where admitted. */
  readonly events: (RecordedEvent | null)[];
}

/** Small JSON, kept in the head from page to page. */
interface State {
  readonly v: 1;
  /** Which segment of the run this is, from 0. */
  segment: number;
  /** scheduledEventId -> activityId of activities without an outcome. */
  activities: Record<string, string>;
  /** activityId -> events recorded and not yet admitted. */
  results: Record<string, KeptResult>;
  /**
   * Activity that streamed, or may have -> the activity whose admitted events close its stream: itself, or its seal. Those
   * whose stream is closed in the log are not in it.
   */
  streams: Record<string, string>;
  status: StatusState;
  open: readonly OpenItem[];
  ended: boolean;
  /** What the run's first node follows from; absent before it. */
  causes?: string;
}

/**
 * Streams that are kept for the ending, the newest ones. Activities that failed are among them until they are sealed, and
 * one that showed nothing never is.
 */
const MAX_STREAMS = 200;

interface Pending {
  readonly at: number;
  readonly timeMs: number;
  readonly entry: JournalEntry;
}

interface Fact {
  readonly key: string;
  readonly event: RecordedEvent;
  readonly timeMs: number;
}

function initialState(): State {
  return {
    v: 1,
    segment: 0,
    activities: {},
    results: {},
    streams: {},
    status: INITIAL_STATUS,
    open: [],
    ended: false,
  };
}

/** One call's work: the state it moves and what it has found so far. */
class Page {
  readonly entries: LogEntry[] = [];
  readonly deltas: PlacedDeltas[] = [];
  next: string | undefined;
  segmentClosed = false;
  lastEventId = 0;
  cutOff: readonly string[] | undefined;
  #pending: Pending[] = [];
  readonly #runId: string;
  readonly #openBlocks: readonly OpenItem[];
  readonly #state: State;

  constructor({ runId, openBlocks = [] }: TranslatedRun, state: State) {
    this.#runId = runId;
    this.#openBlocks = openBlocks;
    this.#state = state;
  }

  read(event: HistoryEvent): void {
    this.lastEventId = historyEventIdOf(event);
    const timeMs = eventTimeMs(event);
    if (event.workflowTaskCompletedEventAttributes) this.drain();
    this.#readActivity(event, timeMs);
    const memo =
      event.workflowPropertiesModifiedEventAttributes?.upsertedMemo?.fields?.[CARRIER_MEMO_FIELD];
    if (memo) this.#take(carriersIn([memo]), timeMs);
    this.#readEnd(event, timeMs);
  }

  #readActivity(event: HistoryEvent, timeMs: number): void {
    const scheduled = event.activityTaskScheduledEventAttributes;
    if (scheduled) {
      this.#state.activities[String(this.lastEventId)] = scheduled.activityId ?? '';
      this.#take(carriersIn(scheduled.input?.payloads), timeMs);
      return;
    }
    const completed = event.activityTaskCompletedEventAttributes;
    const outcome =
      event.activityTaskFailedEventAttributes ??
      event.activityTaskTimedOutEventAttributes ??
      event.activityTaskCanceledEventAttributes;
    // The commands of the task before are all read, whether a page ends here or not.
    if (completed ?? outcome) this.drain();
    if (completed) {
      const activityId = this.#settle(completed.scheduledEventId);
      const result = stepResultIn(completed.result?.payloads);
      if (activityId === undefined || !result) return;
      if (result.recording) this.#copy(result.recording);
      if (result.deltas) {
        this.deltas.push({ ...result.deltas, entriesBefore: this.entries.length });
        this.#noteStream(result.deltas, activityId);
      }
      if (result.events.length > 0) {
        this.#state.results[activityId] = { timeMs, events: [...result.events] };
      }
      return;
    }
    const ended = outcome ? this.#settle(outcome.scheduledEventId) : undefined;
    if (ended !== undefined && this.#streams[ended] === undefined) this.#keepStream(ended, ended);
  }

  /** The log that a fork begins with: the source's, under its own ids. */
  #copy({ sourceRunId, prefix, entries }: RecordingPage): void {
    for (const { payload, timestampMs, ...entry } of entries.slice(0, prefix)) {
      const own = JSON.parse(payload.replaceAll(sourceRunId, this.#runId)) as JsonObject;
      this.#write({ key: entry.key, event: { ...entry, payload: own }, timeMs: timestampMs });
    }
  }

  get #streams(): Record<string, string> {
    return this.#state.streams;
  }

  /** A seal has the last word on a stream. */
  #noteStream(recorded: RecordedDeltas, author: string): void {
    const { activityId } = recorded;
    if (!eventRow(recorded.type).opens) delete this.#streams[activityId];
    else if (author !== activityId || this.#streams[activityId] === undefined)
      this.#keepStream(activityId, author);
  }

  #keepStream(activityId: string, author: string): void {
    this.#streams[activityId] = author;
    const [oldest = '', ...others] = Object.keys(this.#streams);
    if (others.length >= MAX_STREAMS) delete this.#streams[oldest];
  }

  #streamsClosedBy(author: string): void {
    for (const [activityId, closing] of Object.entries(this.#streams)) {
      if (closing !== author) continue;
      delete this.#streams[activityId];
      // Abandoned before it was sealed: whatever it comes to, its stream is closed.
      for (const [id, running] of Object.entries(this.#state.activities)) {
        if (running === activityId) delete this.#state.activities[id];
      }
    }
  }

  #settle(scheduledEventId: unknown): string | undefined {
    const id = String(scheduledEventId);
    const activityId = this.#state.activities[id];
    delete this.#state.activities[id];
    return activityId;
  }

  #readEnd(event: HistoryEvent, timeMs: number): void {
    const continued = event.workflowExecutionContinuedAsNewEventAttributes;
    const completed = event.workflowExecutionCompletedEventAttributes;
    if (continued) {
      this.#take(carriersIn(continued.input?.payloads), timeMs);
      this.drain();
      this.#state.activities = {};
      this.#state.results = {};
      this.#state.streams = {};
      this.#state.segment += 1;
      this.next = continued.newExecutionRunId ?? undefined;
      this.segmentClosed = true;
    } else if (completed) {
      this.#take(carriersIn(completed.result?.payloads), timeMs);
      this.#close('internal_error', timeMs);
    } else if (event.workflowExecutionFailedEventAttributes) this.#close('internal_error', timeMs);
    else if (event.workflowExecutionCanceledEventAttributes) this.#close('cancelled', timeMs);
    else if (event.workflowExecutionTimedOutEventAttributes) this.#close('run_timeout', timeMs);
    else if (event.workflowExecutionTerminatedEventAttributes)
      this.#close('run_terminated', timeMs);
  }

  #take(carriers: readonly Carrier[], timeMs: number): void {
    for (const { at, entries } of carriers) {
      entries.forEach((entry, index) => this.#pending.push({ at: at[index] ?? 0, timeMs, entry }));
    }
  }

  /** Entries of one workflow task in the order in which workflow code stated them, whatever commands carried them. */
  drain(): void {
    const pending = this.#pending.sort((a, b) => a.at - b.at);
    this.#pending = [];
    for (const { entry, timeMs } of pending) this.#enter(entry, timeMs);
  }

  #enter(entry: JournalEntry, timeMs: number): void {
    switch (entry.kind) {
      case 'emit': {
        const { key, type, nodeId, causedBy, payload } = entry;
        this.#write({ key, event: { type, nodeId, causedBy, payload }, timeMs });
        return;
      }
      case 'admit':
        this.#write(this.#admitted(entry.activityId, entry.k));
        return;
      case 'status':
        if (!this.#state.ended) this.#state.status = { ...this.#state.status, base: entry.status };
        return;
      case 'live':
    }
  }

  #admitted(activityId: string, k: number): Fact {
    const result = this.#state.results[activityId];
    const event = result?.events[k];
    if (!result || !event) {
      const reason = `the journal admits event ${k} of ${activityId}, which history does not hold`;
      throw new HostError('internal_error', { reason });
    }
    result.events[k] = null;
    if (result.events.every((kept) => kept === null)) delete this.#state.results[activityId];
    this.#streamsClosedBy(activityId);
    return { key: activityEventKey(activityId, k), event, timeMs: result.timeMs };
  }

  #write({ key, event, timeMs }: Fact): void {
    if (this.#state.ended) return;
    const { type, nodeId, causedBy, payload } = event;
    this.entries.push({
      runId: this.#runId,
      eventId: eventIdOf(this.#runId, key),
      key,
      type,
      ...(nodeId === undefined ? {} : { nodeId }),
      ...causeFields(this.#runId, causedBy),
      payload: JSON.stringify(payload),
      timestampMs: timeMs,
    });
    if (typeof causedBy === 'string' && eventRow(type).part === 'node-starts')
      this.#state.causes ??= causedBy;
    this.#state.status = foldStatus(this.#state.status, type, payload);
    this.#state.open = trackOpen(this.#state.open, { type, key, nodeId, payload });
    this.#state.ended = isTerminalEvent(type);
  }

  /** The execution is over. Where workflow code did not write the ending, this does. */
  #close(code: ErrorCode, timeMs: number): void {
    this.drain();
    this.segmentClosed = true;
    if (this.#state.ended) return;
    this.cutOff = [...Object.values(this.#state.activities), ...Object.keys(this.#streams)];
    const ending: Ending = { code, message: ERRORS[code].message };
    const open = [...this.#state.open, ...this.#openBlocks];
    const { causes } = this.#state;
    for (const { key, type, nodeId, payload, because, ...closing } of closingsOf(open, ending)) {
      const causedBy = closing.causedBy ?? because;
      this.#write({ key, event: { type, nodeId, causedBy, payload }, timeMs });
    }
    const event: EventOf =
      code === 'cancelled'
        ? { type: 'run.cancelled', payload: {} }
        : { type: 'run.failed', payload: { error: { ...ending } } };
    this.#write({ key: TERMINAL_KEY, event: { ...event, causedBy: causes }, timeMs });
  }
}

/** See `translate`. The given state is left as it is. */
export function translateV1(
  events: readonly HistoryEvent[],
  stored: unknown,
  run: TranslatedRun,
): Translation {
  const state = stored === null ? initialState() : structuredClone(stored as State);
  const page = new Page(run, state);
  for (const event of events) page.read(event);
  page.drain();
  return {
    entries: page.entries,
    state: state as unknown as JsonObject,
    status: statusOf(state.status),
    closed: state.ended,
    segment: state.segment,
    segmentClosed: page.segmentClosed,
    cursorEventId: page.lastEventId,
    closedBlocks: page.deltas.map(({ activityId }) => activityId),
    deltas: page.deltas,
    ...(page.cutOff === undefined ? {} : { cutOff: page.cutOff }),
    ...(page.next === undefined ? {} : { next: page.next }),
  };
}
