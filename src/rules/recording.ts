// What a fork is made from (architecture §6): the stimuli that a run was given, in its own batches, and the log that came
// of them. JSON: it enters the fork's history page by page, so that the fork's log needs its source no more.
import type { CausedBy, RecordedEvent, StepResult } from './journal.ts';
import type { JsonValue } from './json.ts';

/** How an activity ended, as workflow code was told. */
export type RecordedOutcome =
  | { readonly kind: 'completed'; readonly result: StepResult<JsonValue, RecordedEvent> }
  | {
      readonly kind: 'failed';
      readonly code: string;
      readonly message: string;
      readonly details?: JsonValue;
    }
  /** `type`: Temporal's name of the time that was over. */
  | { readonly kind: 'timed-out'; readonly type: string }
  /** It acknowledged a cancellation. */
  | { readonly kind: 'cancelled' };

/** What made a run go on. */
export type Stimulus =
  | { readonly kind: 'step'; readonly activityId: string; readonly outcome: RecordedOutcome }
  /** Timers have no names: one ends whatever waits until just then. */
  | { readonly kind: 'timer'; readonly deadlineMs: number }
  | {
      readonly kind: 'message';
      readonly update: string;
      readonly updateId: string;
      readonly message: JsonValue;
    }
  | { readonly kind: 'child-ended'; readonly childRunId: string }
  | { readonly kind: 'cancel-requested' };

/** What one workflow task brought together, in the order in which workflow code was given it. */
export interface Batch {
  /** Workflow time, in ms. */
  readonly atMs: number;
  /** A segment begins with it: whatever waited begins to wait again. */
  readonly begins?: true;
  /** Log sequence of the first entry that it, or whatever came behind it, stated. */
  readonly position: number;
  readonly stimuli: readonly Stimulus[];
  /** Activities that it began. */
  readonly began: readonly string[];
}

/** Part of a recording, as an activity of the fork gives it. */
export interface RecordingPage extends Recording {
  readonly sourceRunId: string;
  /** So many of `entries` are the fork's own log, before anything that it states. */
  readonly prefix: number;
  readonly isLast: boolean;
}

/** A log row of the source, without what is derived from its run. */
export interface RecordedEntry {
  readonly key: string;
  readonly type: string;
  readonly nodeId?: string;
  readonly causedBy?: CausedBy;
  readonly payload: string;
  readonly timestampMs: number;
}

export interface Recording {
  readonly batches: readonly Batch[];
  /** By sequence, from 0. */
  readonly entries: readonly RecordedEntry[];
}
