// Live deltas as rows and as recorded compactly (design §3.5): one form, written by the model activity when it streams
// and when it records, read by the rebuild.
import { deltaKey, eventIdOf } from './ids.ts';
import type { RecordedDeltas } from './journal.ts';
import type { JsonObject } from './json.ts';

/** A recorded delta with everything that its row has. */
export interface ExpandedDelta {
  readonly key: string;
  readonly eventId: string;
  readonly type: string;
  readonly nodeId?: string;
  /** JSON text, byte for byte as streamed. */
  readonly payload: string;
  readonly sequence: number;
  readonly timestampMs: number;
}

/** JSON text of the k-th delta's payload, the same when it is streamed and when it is rebuilt. */
export function deltaPayload(base: JsonObject, delta: string, k: number): string {
  return JSON.stringify({ ...base, delta, sequence: k });
}

function allSequences(ranges: RecordedDeltas['sequences']): number[] {
  return ranges.flatMap(([first, count]) => Array.from({ length: count }, (_, at) => first + at));
}

/** The deltas of one recording, in order. */
export function expandDeltas(runId: string, recorded: RecordedDeltas): ExpandedDelta[] {
  const { activityId, type, nodeId, base, text, cuts, times } = recorded;
  const sequences = allSequences(recorded.sequences);
  let timestampMs = 0;
  return cuts.map((cut, k) => {
    timestampMs += times[k] ?? 0;
    const key = deltaKey(activityId, k);
    return {
      key,
      eventId: eventIdOf(runId, key),
      type,
      ...(nodeId === undefined ? {} : { nodeId }),
      payload: deltaPayload(base, text.slice(cuts[k - 1] ?? 0, cut), k),
      sequence: sequences[k] ?? -1,
      timestampMs,
    };
  });
}
