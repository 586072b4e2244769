// Temporal's histories as the log reads them, and where closed ones are archived (architecture §3.1, §3.6): types only.
import type { temporal } from '@temporalio/proto';
import type { RunRef } from './runs.ts';

export interface Segment {
  readonly runId: string;
  readonly index: number;
  readonly temporalRunId: string;
  /** Content hash of the raw, still encoded history (protobuf temporal.api.history.v1.History); absent = not yet. */
  readonly archive?: string;
}

/** A segment that is to be archived, and whose it is. */
export interface ClosedSegment extends Segment {
  readonly run: RunRef;
}

export interface ArchivedSegment extends Pick<ClosedSegment, 'run' | 'index'> {
  readonly archive: string;
}

export interface SegmentStore {
  /**
   * Idempotent on (run, index). `isClosed`: its history is whole; any other is closed when the run's head leaves it, or ends.
   * Throws HostError run_not_found.
   */
  record(
    run: RunRef,
    segment: Pick<Segment, 'index' | 'temporalRunId'> & { readonly isClosed?: boolean },
  ): Promise<void>;
  /** One statement for all of them. A content hash that stands stays. */
  markArchived(segments: readonly ArchivedSegment[]): Promise<void>;
  ofRun(run: RunRef): Promise<readonly Segment[]>;
  /**
   * Closed segments that lack their archive, for the caller alone: nobody else gets them within `leaseMs`, after which
   * one that still lacks it is given out again, each time for twice as long (at most 32 times the first).
   */
  claimUnarchived(limit: number, leaseMs: number): Promise<readonly ClosedSegment[]>;
}

export type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

export interface HistoryPage {
  /** Payloads that may hold carriers or step results are decoded by the codec; unreadable ones threw. */
  readonly events: readonly HistoryEvent[];
  /**
   * Starts of workflow tasks at the page's end that may not be durable yet: they are where the next page goes on with
   * the id behind theirs. Translate does without them; a recording does not.
   */
  readonly withheld?: readonly HistoryEvent[];
  /** '' when the segment is closed and everything was delivered. */
  readonly token: string;
  /**
   * True: everything was delivered that the server knew of the segment when it was asked. False tells nothing: the next
   * read does. A page without events need not be the tail: events that are not durable yet are left out of pages.
   */
  readonly atTail: boolean;
}

export interface ClosedRuns {
  readonly runIds: readonly string[];
  /** Newest close time up to which all were given; `sinceMs` when there were none. */
  readonly newestMs: number;
  /** Present when there were more than one answer may hold: the others closed after this time. */
  readonly moreAfterMs?: number;
}

export interface HistoryRemover {
  /** An execution that has ended, for good. One that is not there is fine. Throws HostError service_unavailable. */
  remove(runId: string, temporalRunId: string): Promise<void>;
}

export interface HistoryReader {
  /**
   * Events of one segment behind `token` ('' = from the start). `waitMs` 0: answers at once with what is there
   * (long poll with a 900 ms deadline, architecture §3.2); above 0: waits up to that for something new. May return
   * events at or below the cursor again: filter by eventId. Throws HostError history_undecodable, key_unavailable,
   * history_missing, service_unavailable.
   */
  page(runId: string, temporalRunId: string, token: string, waitMs: number): Promise<HistoryPage>;
  /** Raw bytes of a whole closed segment, for the archive. */
  raw(runId: string, temporalRunId: string): Promise<Uint8Array>;
  /** The same events as `page` would give, from archived bytes. */
  decode(raw: Uint8Array): Promise<readonly HistoryEvent[]>;
  /** Runs closed since `sinceMs`, for the sweeper. */
  closedSince(sinceMs: number): Promise<ClosedRuns>;
}
