// The log of runs: rows, heads, and how both grow (architecture §3).
import type { CausedBy } from '../rules/journal.ts';
import type { JsonValue } from '../rules/json.ts';
import type { RunStatus } from '../rules/status.ts';
import type { Unreadable } from '../rules/unreadable.ts';
import type { RunRef, RunSummary } from './runs.ts';

export interface LogRow {
  readonly runId: string;
  readonly sequence: number;
  readonly eventId: string;
  readonly key: string;
  readonly type: string;
  readonly nodeId?: string;
  /** eventId of the cause, as on the wire. */
  readonly causationId?: string;
  /** The cause as authored (`CausedBy`), kept for forks. */
  readonly causedBy?: CausedBy;
  /** JSON text, stored as it is: byte identity. */
  readonly payload: string;
  /** Clamped: never below that of the row before. */
  readonly timestampMs: number;
  /** The key that `payload` was sealed with is destroyed: what stands there is what stays (src/wire/erased-payload.ts). */
  readonly isErased?: true;
  /** Only where rows of several runs are told: why `payload` cannot be read now. What stands there is what would stay. */
  readonly unreadable?: Unreadable;
}

/** A row before the head lock gives it sequence and clamped timestamp. */
export type NewRow = Omit<LogRow, 'sequence'>;

/** A row without what it says: for walks along causes. */
export type LogLink = Omit<LogRow, 'key' | 'causedBy' | 'payload' | 'isErased' | 'unreadable'>;

export interface HistoryCursor {
  /** Segment that is being read. '' before the start is confirmed. */
  readonly temporalRunId: string;
  /** Last history event translated in that segment; 0 before the first. */
  readonly historyEventId: number;
  /** Page token for what follows; '' to read from the segment's start. */
  readonly token: string;
}

export interface Head extends HistoryCursor {
  readonly runId: string;
  readonly tenant: string;
  readonly nextSequence: number;
  readonly lastTimestampMs: number;
  readonly status: RunStatus;
  /** True after the terminal row: everything is refused. */
  readonly closed: boolean;
  readonly translateVersion: number;
  /** Owned by translate; null before the first append. */
  readonly translateState: JsonValue;
  /** Owned by the fold; null before the first append. */
  readonly snapshot: JsonValue;
  /** A code that stopped the projection (`history_undecodable`, `key_unavailable`). */
  readonly problem?: string;
  /** The log was made again from here on, without the places of streamed text that was lost (src/log/places.ts). */
  readonly retoldFrom?: number;
  /** The run's subject was erased then: of the snapshot its structure is left (src/rules/erased.ts). */
  readonly erasedAtMs?: number;
}

export interface AppendBatch {
  readonly run: RunRef;
  /** The cursor that the batch was translated behind; another stored one makes the append `stale`. */
  readonly behind: HistoryCursor;
  /** Where the log ended when the rows were told from it, deltas included; another end makes the append `stale`, too. */
  readonly seenSequence?: number;
  readonly cursor: HistoryCursor;
  /** The segment that these rows are the first of: it is known from then on. */
  readonly segment?: { readonly index: number; readonly temporalRunId: string };
  readonly rows: readonly NewRow[];
  /**
   * Recorded deltas of closed blocks: stored ones are skipped. Where one is missing nothing is appended (`lost`), unless the log
   * was made again without its places: then it is appended where it stands in `rows`.
   */
  readonly closedBlocks: readonly string[];
  readonly status: RunStatus;
  readonly closed: boolean;
  readonly translateState: JsonValue;
  /** Called inside the transaction with the rows as they will be stored. Synchronous, pure. */
  readonly fold: (snapshot: JsonValue, rows: readonly LogRow[]) => JsonValue;
  /** Of the folded snapshot, the same way. */
  readonly summary: (snapshot: JsonValue) => RunSummary;
}

export type AppendOutcome =
  | { readonly kind: 'appended'; readonly head: Head }
  /** Somebody else moved the cursor, or the log's end where that matters. */
  | { readonly kind: 'stale'; readonly head: Head }
  | { readonly kind: 'closed'; readonly head: Head }
  /** The log lacks streamed text that history records: its database has lost what it had confirmed. */
  | { readonly kind: 'lost'; readonly head: Head };

export interface NewDelta {
  readonly k: number;
  readonly row: NewRow;
}

export type DeltaOutcome =
  | {
      readonly kind: 'appended';
      readonly rows: readonly { k: number; sequence: number; timestampMs: number }[];
    }
  | {
      readonly kind: 'refused';
      readonly reason: 'no-head' | 'run-closed' | 'block-closed' | 'superseded' | 'lost';
    };

/** What is asked of a run is asked of its tenant's: under the ref of another one nothing is there, to read or to change. */
export interface LogStore {
  head(run: RunRef): Promise<Head | undefined>;
  /** Of the head no more than where the log ends: what is asked again and again must not carry the snapshot. */
  tail(run: RunRef): Promise<Pick<Head, 'nextSequence' | 'closed'> | undefined>;
  /**
   * One transaction: lock head, check cursor, insert, move status, cursor and sequence together, notify. It may be shared
   * with appends to other runs that come at the same time; what one of them cannot do keeps no other from its own.
   */
  append(batch: AppendBatch): Promise<AppendOutcome>;
  /** Ascending; `after` exclusive (-1 = from the start). */
  read(run: RunRef, query: { after: number; limit: number }): Promise<readonly LogRow[]>;
  /**
   * As `read`, of the rows that tell what became of a node's questions (QUESTION_TYPES) and of no others, the run's own
   * cancellation among them. Costs what there are of them in the run, however long its log is.
   */
  questions(
    run: RunRef,
    query: { nodeId: string; after: number; limit: number },
  ): Promise<readonly LogRow[]>;
  /** Sequence of an eventId of this run. */
  sequenceOf(run: RunRef, eventId: string): Promise<number | undefined>;
  /**
   * An event of the tenant's and what it follows from, one behind the other, over all runs: at most `limit` and itself.
   * Empty: there is no such event.
   */
  causes(tenant: string, eventId: string, limit: number): Promise<readonly LogLink[]>;
  /** As `read`, without what the rows say. */
  links(run: RunRef, query: { after: number; limit: number }): Promise<readonly LogLink[]>;
  /** A closed run gets none: another process could read what this one could not, and nobody would take it back. */
  setProblem(run: RunRef, problem: string | undefined): Promise<void>;
  problems(limit: number): Promise<readonly { runId: string; problem: string }[]>;

  /**
   * Same lock. Opens the block with the first call. A higher `try` supersedes lower ones. `lost`: the delta before the first of
   * these is not stored, or the log was made again without the places of streamed text.
   */
  appendDeltas(
    run: RunRef,
    activityId: string,
    tryNumber: number,
    deltas: readonly NewDelta[],
  ): Promise<DeltaOutcome>;
  /** Closes the block for ever and returns what it holds. Idempotent; a block never opened is closed empty. */
  closeBlock(run: RunRef, activityId: string): Promise<readonly LogRow[]>;
  storedDeltas(run: RunRef, activityId: string): Promise<readonly LogRow[]>;
  openBlocks(run: RunRef): Promise<readonly string[]>;

  /**
   * Rebuild: replaces head and rows of a run in one transaction, and closes `closedBlocks`. Refused (false) while another block
   * is open, and when the stored head is not any more where it was `seen`. From `movedFrom` on rows get new positions in the feed. With `retoldFrom` in the head every block is closed,
   * deltas that came meanwhile are dropped, and from there on the rows get new positions in the feed.
   */
  restore(
    run: RunRef,
    told: {
      readonly head: Head;
      readonly rows: readonly LogRow[];
      readonly summary: RunSummary;
      readonly closedBlocks?: readonly string[];
      readonly movedFrom?: number | undefined;
    },
    seen: Head | undefined,
  ): Promise<boolean>;

  /** Calls back after commits that added rows or moved a status, from any process. At most once per commit. */
  onChange(listener: (change: { runId: string; nextSequence: number }) => void): () => void;
  /** Calls back when the notification connection was lost and is there again: re-read what you watch. */
  onReconnect(listener: () => void): () => void;
}
