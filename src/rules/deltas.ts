// Live deltas as rows and as recorded compactly (architecture §3.5): one form for what a model thinks and what a tool
// says while it works, written by the activity when it streams and when it records, read by the rebuild.
import { eventRow } from './events.ts';
import { causeFields, deltaKey, eventIdOf } from './ids.ts';
import type { CausedBy, RecordedDeltas } from './journal.ts';
import type { JsonObject } from './json.ts';

/** A recorded delta with everything that its row has. */
export interface ExpandedDelta {
  readonly key: string;
  readonly eventId: string;
  readonly type: string;
  readonly nodeId?: string;
  readonly causedBy?: CausedBy;
  readonly causationId?: string;
  /** JSON text, byte for byte as streamed. */
  readonly payload: string;
  readonly sequence: number;
  readonly timestampMs: number;
}

/** Channels of tools, as against those of an answer (stream-modes.md), begin with this. */
const TOOL_CHANNEL = 'tool.';

/** Channel of a piece of output as a tool's `channel` goes by. */
export function toolChannel(channel: string): string {
  return `${TOOL_CHANNEL}${channel}`;
}

export function isToolChannel(channel: unknown): boolean {
  return typeof channel === 'string' && channel.startsWith(TOOL_CHANNEL);
}

/** What all deltas of a block share. */
export type DeltaForm = Pick<RecordedDeltas, 'base' | 'field'>;

/** What one delta says. */
export interface DeltaPiece {
  readonly text: string;
  readonly channel?: string;
}

/** JSON text of the k-th delta's payload, the same when it is streamed and when it is rebuilt. */
export function deltaPayload({ base, field }: DeltaForm, piece: DeltaPiece, k: number): string {
  const { text, channel } = piece;
  return JSON.stringify({
    ...base,
    [field ?? 'delta']: text,
    ...(channel === undefined ? {} : { channel }),
    sequence: k,
  });
}

function without(whole: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(Object.entries(whole).filter(([name]) => !names.includes(name)));
}

/** Form and piece of a delta's payload, as `deltaPayload` joined them. */
export function readDelta(type: string, payload: string): { form: DeltaForm; piece: DeltaPiece } {
  const whole = JSON.parse(payload) as JsonObject & Record<'delta' | 'chunk' | 'channel', string>;
  if (eventRow(type).piece?.text !== 'chunk') {
    const base = without(whole, ['delta', 'sequence']);
    return { form: { base }, piece: { text: whole.delta } };
  }
  const base = without(whole, ['chunk', 'channel', 'sequence']);
  return { form: { base, field: 'chunk' }, piece: { text: whole.chunk, channel: whole.channel } };
}

function allSequences(ranges: RecordedDeltas['sequences']): number[] {
  return ranges.flatMap(([first, count]) => Array.from({ length: count }, (_, at) => first + at));
}

function allChannels({ channels = [] }: RecordedDeltas): string[] {
  return channels.flatMap(([channel, count]) => Array<string>(count).fill(channel));
}

/** The deltas of one recording, in order. */
export function expandDeltas(runId: string, recorded: RecordedDeltas): ExpandedDelta[] {
  const { activityId, type, nodeId, causedBy, text, cuts, times } = recorded;
  const sequences = allSequences(recorded.sequences);
  const channels = allChannels(recorded);
  let timestampMs = 0;
  return cuts.map((cut, k) => {
    timestampMs += times[k] ?? 0;
    const key = deltaKey(activityId, k);
    const channel = channels[k];
    const piece = {
      text: text.slice(cuts[k - 1] ?? 0, cut),
      ...(channel === undefined ? {} : { channel }),
    };
    return {
      key,
      eventId: eventIdOf(runId, key),
      type,
      ...(nodeId === undefined ? {} : { nodeId }),
      ...causeFields(runId, causedBy),
      payload: deltaPayload(recorded, piece, k),
      sequence: sequences[k] ?? -1,
      timestampMs,
    };
  });
}
