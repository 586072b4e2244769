// Channels of a run (channels-and-reducers.md): who may use one, what a write is kept as, and the fold of recorded
// writes, the same in workflow code and in the log. Times are those of the writes: a fold reads no clock.
import { isJsonObject, type JsonValue } from './json.ts';
import { isReducer, KEEPS_TIMES, reduce, type ReducerName } from './reducers.ts';
import type { ChannelDeclaration, WorkflowDefinition } from '../../schemas/types.generated.ts';

type Channels = NonNullable<WorkflowDefinition['channels']>;
type Access = ChannelDeclaration['access'];

/** How a channel's writes are reduced: of its declaration, or of the node that writes one without. */
export interface ChannelRules {
  readonly reducer: ReducerName;
  readonly maxSize?: number;
  /** Absent where the reducer keeps no times, whatever was declared (channels-and-reducers.md §Channel TTL). */
  readonly ttlMs?: number;
}

export function channelRules({
  reducer,
  maxSize,
  ttlMs,
}: Pick<ChannelDeclaration, 'reducer' | 'maxSize' | 'ttlMs'>): ChannelRules {
  // Others are refused when the definition is loaded; to whoever reads them all the same they replace.
  const known = isReducer(reducer) ? reducer : 'replace';
  return {
    reducer: known,
    ...(maxSize === undefined ? {} : { maxSize }),
    ...(ttlMs === undefined || !KEEPS_TIMES.has(known) ? {} : { ttlMs }),
  };
}

/** The declaration of a channel; undefined for any other name. */
export function channelOf(
  channels: Channels | undefined,
  name: string,
): ChannelDeclaration | undefined {
  return channels && Object.hasOwn(channels, name) ? channels[name] : undefined;
}

/** Whether a node may read or write: a side that is not listed is open, a list is strict, `private` closes both. */
export function mayUse(
  access: Access,
  side: 'readers' | 'writers',
  { id, typeId }: { readonly id: string; readonly typeId: string },
): boolean {
  if (access === undefined || access === 'public') return true;
  if (access === 'private') return false;
  const entries = access[side];
  return !entries || entries.some((entry) => entry === id || isOfKind(entry, typeId));
}

/** `core.ai.*` means every type below `core.ai`, and `*` every type. */
function isOfKind(entry: string, typeId: string): boolean {
  return entry === '*' || (entry.endsWith('.*') && typeId.startsWith(entry.slice(0, -1)));
}

/** What a write is recorded and kept as: of a channel with a time to live an entry with its time, in ms. */
export function entryOf({ ttlMs }: ChannelRules, value: JsonValue, atMs: number): JsonValue {
  return ttlMs === undefined ? value : { value, _ts: atMs };
}

/**
 * The channel after one more recorded write. Throws HostError validation_error when it does not fit its reducer, or
 * would make a channel larger than `maxSize` that drops nothing.
 */
export function foldWrite(
  { reducer, ...rules }: ChannelRules,
  state: JsonValue | undefined,
  entry: JsonValue,
): JsonValue {
  if (rules.ttlMs === undefined || !isJsonObject(entry) || typeof entry._ts !== 'number')
    return reduce(reducer, { state, write: entry }, { maxSize: rules.maxSize, nowMs: 0 });
  return reduce(reducer, { state, write: entry.value ?? null }, { ...rules, nowMs: entry._ts });
}

/** A time of a run as its payloads say it. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** Every declared channel that holds something, or has a default. */
export function channelValues(
  channels: Channels | undefined,
  written: Readonly<Record<string, JsonValue>>,
): Record<string, JsonValue> {
  return Object.fromEntries(
    Object.entries(channels ?? {}).flatMap(([name, declared]): [string, JsonValue][] => {
      const value = Object.hasOwn(written, name) ? written[name] : declared.default;
      return value === undefined ? [] : [[name, value as JsonValue]];
    }),
  );
}
