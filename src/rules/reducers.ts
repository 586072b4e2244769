// Channel reducers (channels-and-reducers.md) and the message reducer (RFC 0002 §G) as pure folds: state and write
// in, new state out. No clock: `nowMs` is the timestamp of the event that is folded.
import { HostError } from './errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';

export const REDUCERS = [
  'replace',
  'append',
  'merge',
  'counter',
  'votes',
  'feedback',
  'message',
] as const;
export type ReducerName = (typeof REDUCERS)[number];

/** Those whose entries have an age. */
export const KEEPS_TIMES: ReadonlySet<ReducerName> = new Set(['append', 'votes', 'feedback']);
/** Longest id of a message in UTF-16 units (conversation-turn.schema.json). */
const MESSAGE_ID_LENGTH = 256;

export function isReducer(name: string): name is ReducerName {
  return (REDUCERS as readonly string[]).includes(name);
}

export interface FoldRules {
  /** Most entries: append, votes and feedback drop the oldest, the others refuse the write. */
  readonly maxSize?: number;
  /** append, votes, feedback: entries are kept as `{value, _ts}` and pruned at write time. */
  readonly ttlMs?: number;
  readonly nowMs: number;
}

/** A message of RFC 0002 §G or of the `message` reducer: only `messageId` is read, the rest is kept verbatim. */
export type Message = JsonObject & { readonly messageId: string };

/** Appends; a `messageId` that is there already changes nothing (the first wins), so folding twice is folding once. */
export function applyMessage(messages: readonly Message[], message: Message): readonly Message[] {
  return messages.some(({ messageId }) => messageId === message.messageId)
    ? messages
    : [...messages, message];
}

function refuse(reason: string): never {
  throw new HostError('validation_error', { reason });
}

function listOf(state: JsonValue | undefined): JsonValue[] {
  return Array.isArray(state) ? state : [];
}

/** Entries with a time to live are wrapped; old ones go first, then the surplus. */
function keep(
  entries: JsonValue[],
  write: JsonValue,
  { maxSize, ttlMs, nowMs }: FoldRules,
): JsonValue[] {
  const alive =
    ttlMs === undefined ? entries : entries.filter((entry) => timeOf(entry) >= nowMs - ttlMs);
  const next = [...alive, ttlMs === undefined ? write : { value: write, _ts: nowMs }];
  return maxSize === undefined ? next : next.slice(-maxSize);
}

function timeOf(entry: JsonValue): number {
  return isJsonObject(entry) && typeof entry._ts === 'number'
    ? entry._ts
    : Number.POSITIVE_INFINITY;
}

function userOf(entry: JsonValue, wrapped: boolean): JsonValue | undefined {
  const vote = wrapped && isJsonObject(entry) ? entry.value : entry;
  return isJsonObject(vote) ? vote.userId : undefined;
}

function vote(state: JsonValue | undefined, write: JsonValue, rules: FoldRules): JsonValue {
  if (!isJsonObject(write) || typeof write.userId !== 'string') refuse('A vote needs a userId.');
  const others = listOf(state).filter(
    (entry) => userOf(entry, rules.ttlMs !== undefined) !== write.userId,
  );
  return keep(others, write, rules);
}

function feedback(state: JsonValue | undefined, write: JsonValue, rules: FoldRules): JsonValue {
  if (!isJsonObject(write) || write.feedback === undefined)
    refuse('Feedback needs the field feedback.');
  return keep(listOf(state), write, rules);
}

function merge(state: JsonValue | undefined, write: JsonValue): JsonValue {
  if (!isJsonObject(write)) refuse('merge takes an object.');
  return { ...(isJsonObject(state) ? state : {}), ...write };
}

function count(state: JsonValue | undefined, write: JsonValue): JsonValue {
  if (typeof write !== 'number' || !Number.isFinite(write))
    refuse('counter takes a finite number.');
  const sum = (typeof state === 'number' ? state : 0) + write;
  // JSON has no word for it.
  return Number.isFinite(sum) ? sum : refuse('The sum is no finite number.');
}

function message(state: JsonValue | undefined, write: JsonValue): JsonValue {
  if (!isJsonObject(write) || typeof write.messageId !== 'string')
    refuse('A message needs a messageId.');
  const { length } = write.messageId;
  if (length < 1 || length > MESSAGE_ID_LENGTH)
    refuse(`A messageId has 1 to ${MESSAGE_ID_LENGTH} characters.`);
  return [...applyMessage(listOf(state) as unknown as Message[], write as Message)];
}

function sizeOf(state: JsonValue): number {
  if (Array.isArray(state)) return state.length;
  return isJsonObject(state) ? Object.keys(state).length : 1;
}

/** Throws HostError validation_error when the write does not fit the reducer or would break maxSize. */
export function reduce(
  reducer: ReducerName,
  { state, write }: { state: JsonValue | undefined; write: JsonValue },
  rules: FoldRules,
): JsonValue {
  const bounded = (next: JsonValue): JsonValue =>
    rules.maxSize !== undefined && sizeOf(next) > rules.maxSize
      ? refuse('The channel is full.')
      : next;
  switch (reducer) {
    case 'replace':
      return bounded(write);
    case 'append':
      return keep(listOf(state), write, rules);
    case 'merge':
      return bounded(merge(state, write));
    case 'counter':
      return count(state, write);
    case 'votes':
      return vote(state, write, rules);
    case 'feedback':
      return feedback(state, write, rules);
    case 'message':
      return bounded(message(state, write));
  }
}
