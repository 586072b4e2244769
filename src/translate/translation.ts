// What a page of history comes to in the log (architecture §3.1): the shapes that all versions of the rules give.
import type { OpenItem } from '../rules/endings.ts';
import type { CausedBy, RecordedDeltas } from '../rules/journal.ts';
import type { JsonValue } from '../rules/json.ts';
import type { RunStatus } from '../rules/status.ts';

/** A row of the log before it has a sequence (the shape of `NewRow` in src/ports). */
export interface LogEntry {
  readonly runId: string;
  readonly eventId: string;
  readonly key: string;
  readonly type: string;
  readonly nodeId?: string;
  readonly causationId?: string;
  readonly causedBy?: CausedBy;
  readonly payload: string;
  readonly timestampMs: number;
}

/** What an activity streamed, as its result or its seal records it. */
export interface PlacedDeltas extends RecordedDeltas {
  /** Entries of the page, or of all that was read, that were told before the recording. */
  readonly entriesBefore: number;
}

export interface TranslatedRun {
  readonly runId: string;
  readonly translateVersion: number;
  /** Streams that were cut off, as the log holds them, for an ending that no workflow code wrote (`cutOff`). */
  readonly openBlocks?: readonly OpenItem[];
}

export interface Translation {
  /** In log order. */
  readonly entries: readonly LogEntry[];
  /** Give it back with the next page. */
  readonly state: JsonValue;
  readonly status: RunStatus;
  /** The terminal entry is written: nothing follows. */
  readonly closed: boolean;
  /** Index of the segment that the next page belongs to. */
  readonly segment: number;
  /** The segment read ends in this page. */
  readonly segmentClosed: boolean;
  /** eventId of the last history event read; 0 when there was none. */
  readonly cursorEventId: number;
  /** Activities whose delta block is closed by a result or a seal in this page. */
  readonly closedBlocks: readonly string[];
  /** What those blocks hold, for the rebuild. */
  readonly deltas: readonly PlacedDeltas[];
  /** Present when no workflow code wrote the ending, which is in this page: activities that had no outcome then. */
  readonly cutOff?: readonly string[];
  /** Temporal run id of the segment that continues the run. */
  readonly next?: string;
}
