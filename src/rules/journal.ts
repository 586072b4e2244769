// What workflow code writes and translate reads: the form of the journal inside Temporal history (architecture §2.3,
// §2.4). One carrier holds the entries of one activation.
import type { EventOf } from './events.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { RecordingPage } from './recording.ts';
import type { RunStatus } from './status.ts';

/**
 * Carriers are marked in the payload's *metadata* under this key, so that content never decides what is a carrier and
 * nobody can forge one by sending data.
 */
export const CARRIER_METADATA_KEY = 'openwop-carrier';
/** The one memo field that a workflow task without a better command writes. Its name is readable in history. */
export const CARRIER_MEMO_FIELD = 'openwop';

/** A key of this run, or a key of another run. Kept in carrier and row; on the wire it becomes `causationId`. */
export type CausedBy = string | { readonly runId: string; readonly key: string };

/** A fact that workflow code states itself. */
export interface EmittedEntry {
  readonly kind: 'emit';
  readonly key: string;
  readonly type: string;
  readonly nodeId?: string;
  readonly causedBy?: CausedBy;
  readonly payload: JsonObject;
}

/** The k-th event of an activity's recorded result takes its place in the log here. */
export interface AdmittedEntry {
  readonly kind: 'admit';
  readonly activityId: string;
  readonly k: number;
}

/** Moves the head's status without a row (`pending`, `cancelling`). */
export interface StatusEntry {
  readonly kind: 'status';
  readonly status: RunStatus;
}

/** Of a fork: from here on it lives, having been given so many batches of its source's. It states nothing in the log. */
export interface LiveEntry {
  readonly kind: 'live';
  readonly batches: number;
}

export type JournalEntry = EmittedEntry | AdmittedEntry | StatusEntry | LiveEntry;

/**
 * Content of a carrier payload. `at` are the entries' ordinals within the Temporal run: entries taken back from a
 * cancelled command ride on a later one, and translate sorts the entries of one workflow task by ordinal.
 */
export interface Carrier {
  readonly v: 1;
  readonly at: readonly number[];
  readonly entries: readonly JournalEntry[];
}

/** An event as history has it: another release may have stated it. `nodeId` and `causedBy` as in EmittedEntry. */
export interface RecordedEvent {
  readonly type: string;
  readonly nodeId?: string;
  readonly causedBy?: CausedBy;
  readonly payload: JsonObject;
}

/** An event in an activity's result, admitted by reference. */
export type ActivityEvent = EventOf & Pick<RecordedEvent, 'nodeId' | 'causedBy'>;

/**
 * Live deltas as an activity's result (or a seal) records them (architecture §3.5): the text once, cut offsets (UTF-16,
 * exclusive ends, ascending), and for each delta its log sequence and timestamp. Payload of delta k:
 * `{...base, [field]: text.slice(cuts[k-1] ?? 0, cuts[k]), channel?, sequence: k}`.
 */
export interface RecordedDeltas {
  /** The activity whose block this is; a seal records the block of another activity. */
  readonly activityId: string;
  readonly type: string;
  readonly nodeId?: string;
  /** Of each delta. */
  readonly causedBy?: CausedBy;
  readonly base: JsonObject;
  /** Payload field that holds the text; absent: `delta`. */
  readonly field?: 'chunk';
  /** [channel, count] of runs of deltas of one channel, for all deltas; absent: no delta has a channel. */
  readonly channels?: readonly (readonly [string, number])[];
  readonly text: string;
  readonly cuts: readonly number[];
  /** [first sequence, count] of runs of consecutive sequences. */
  readonly sequences: readonly (readonly [number, number])[];
  /** ms epoch of delta 0, then differences. */
  readonly times: readonly number[];
}

/** What every activity returns. `output` reaches workflow code; events and deltas reach only the log. */
export interface StepResult<Output = JsonValue, Event = ActivityEvent> {
  readonly output: Output;
  readonly events: readonly Event[];
  readonly deltas?: RecordedDeltas;
  /** What a fork is made from. */
  readonly recording?: RecordingPage;
}
