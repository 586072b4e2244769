// Temporal history -> log entries (design §3.1). Each run is read with the version of the rules that it was started
// with; old versions stay in this folder as long as runs of theirs may be read.
import { HostError } from '../core/errors.ts';
import type { CausedBy, RecordedDeltas } from '../core/journal.ts';
import type { JsonValue } from '../core/json.ts';
import type { RunStatus } from '../core/status.ts';
import type { HistoryEvent } from './payloads.ts';
import { translateV1 } from './v1.ts';

export { historyEventIdOf, type HistoryEvent } from './payloads.ts';

/** A row of the log before it has a sequence (the shape of `NewRow` in ports.ts). */
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
  readonly deltas: readonly RecordedDeltas[];
  /** Temporal run id of the segment that continues the run. */
  readonly next?: string;
}

type Version = (events: readonly HistoryEvent[], state: JsonValue, runId: string) => Translation;

const VERSIONS: Readonly<Record<number, Version>> = { 1: translateV1 };

/**
 * Pure. `events` are whole batches of one segment, behind those that gave `state` (null for a run's first). Throws
 * HostError history_undecodable (a carrier or result that cannot be read, an unknown version) and internal_error (the
 * journal refers to what history does not hold): the run's projection stops there, nothing is skipped.
 */
export function translate(
  events: readonly HistoryEvent[],
  state: JsonValue,
  run: { readonly runId: string; readonly translateVersion: number },
): Translation {
  const version = VERSIONS[run.translateVersion];
  if (!version) {
    const reason = `translation version ${run.translateVersion} is not known to this release`;
    throw new HostError('history_undecodable', { reason });
  }
  return version(events, state, run.runId);
}
