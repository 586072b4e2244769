// Identities (architecture §2.1, §2.2; seed 003 §3): everything that names a fact is a function of the run and the
// place in it where the fact arose, so that a replay, a retry or a rebuild gives the same id. No clock, no randomness.
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { CausedBy } from './journal.ts';
import { utf8Length } from './json.ts';

/** The identity of everything: where in the run, which visit, which node attempt, which step of it. */
export interface Tuple {
  readonly nodeId: string;
  /** 1 for the first visit of the node in this run; a back edge starts the next. */
  readonly visit: number;
  /** 0 for the first node attempt of the visit (`node.started.attempt` is zero-based). */
  readonly attempt: number;
  /** Name of the step within the attempt, made of segments joined by dots, e.g. `i0.t2.infer`. */
  readonly step: string;
}

/** Longest plain form of a tuple in bytes; above it the tuple is hashed. Temporal's own id limit is 1,000. */
const TUPLE_BYTES = 200;

export function sha256Hex(text: string): string {
  return bytesToHex(sha256(utf8ToBytes(text)));
}

/** Injective text of a tuple: the parts are percent-encoded, so the separator `/` occurs in none of them. */
export function encodeTuple(tuple: Tuple): string {
  const plain = `${encodeURIComponent(tuple.nodeId)}/${tuple.visit}/${tuple.attempt}/${encodeURIComponent(tuple.step)}`;
  return utf8Length(plain) <= TUPLE_BYTES ? plain : `h:${sha256Hex(plain)}`;
}

/** Temporal activityId of a step (architecture §2.2). */
export function activityIdOf(tuple: Tuple): string {
  return encodeTuple(tuple);
}

/** Key of a fact that workflow code emits: its type, its tuple and, where a step emits several, an index. */
export function emissionKey(type: string, tuple: Tuple, index?: number): string {
  return index === undefined
    ? `${type}|${encodeTuple(tuple)}`
    : `${type}|${encodeTuple(tuple)}|${index}`;
}

/** The index that such a key ends with; undefined: it has none. */
export function indexOfKey(key: string): number | undefined {
  const [, index] = /^[^|]+\|[^|]+\|([0-9]+)$/.exec(key) ?? [];
  return index === undefined ? undefined : Number(index);
}

/** Key of the k-th event in an activity's result. */
export function activityEventKey(activityId: string, k: number): string {
  return `${activityId}#${k}`;
}

/** Key of the k-th live delta of an activity. */
export function deltaKey(activityId: string, k: number): string {
  return `${activityId}#d${k}`;
}

/** The activity whose live delta this key names; undefined for the key of anything else. */
export function blockOfKey(key: string): string | undefined {
  return /^([^#]+)#d[0-9]+$/.exec(key)?.[1];
}

/** Key of the one terminal event, whoever writes it. */
/** Of what says that a branch lives on its own from where it went apart from its source. */
export const WENT_ON_KEY = 'fork.went-on';
export const TERMINAL_KEY = 'terminal';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** 27 base62 characters of a 20-byte value: the text form of a KSUID. */
function ksuidText(bytes: Uint8Array): string {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  let text = '';
  for (let index = 0; index < 27; index++) {
    text = BASE62.charAt(Number(value % 62n)) + text;
    value /= 62n;
  }
  return text;
}

/** The form of an event's id on the wire, as part of a regular expression. */
export const EVENT_ID = 'evt-[0-9A-Za-z]{27}';

/** Wire id of an event: `evt-` + KSUID of SHA-256(runId NUL key) (architecture §2.1, seed 003 §3.2). */
export function eventIdOf(runId: string, key: string): string {
  return `evt-${ksuidText(sha256(utf8ToBytes(`${runId}\0${key}`)).subarray(0, 20))}`;
}

/** Id of a child run: the same for every try to start it (seed 003 §3.4). */
export function childRunIdOf(parentRunId: string, callId: string, index: number): string {
  const name = JSON.stringify([parentRunId, callId, index]);
  return `run-${ksuidText(sha256(utf8ToBytes(`child\0${name}`)).subarray(0, 20))}`;
}

/** Place of a child run in its parent, whatever the attempt: `name` names it within the visit of the node. */
export function childPlaceOf(
  { nodeId, visit }: Pick<Tuple, 'nodeId' | 'visit'>,
  name: string,
): string {
  return sha256Hex(JSON.stringify([nodeId, visit, name]));
}

/**
 * Series of a child run: itself and the runs that later attempts of its node start in its place. What one of them performed
 * the next ones do not perform again silently (architecture §5).
 */
export function childSeriesOf(parentSeries: string, place: string): string {
  return `series-${sha256Hex(JSON.stringify([parentSeries, place]))}`;
}

const COHORT_ID = /^cohort-[0-9A-Za-z]{27}$/;

/** What Temporal knows by such an id is no run. */
export function isCohortId(id: string): boolean {
  return COHORT_ID.test(id);
}

/** Id of a cohort's fork of a run: the same for every try to make it. */
export function cohortForkIdOf(cohortId: string, sourceRunId: string): string {
  const name = JSON.stringify([cohortId, sourceRunId]);
  return `run-${ksuidText(sha256(utf8ToBytes(`cohort\0${name}`)).subarray(0, 20))}`;
}

export type PayloadIdKind = 'call' | 'inv' | 'int' | 'conv';

/**
 * Id inside a payload (`callId`, `invocationId`, `interruptId`): a hash of the id seed and the tuple. The seed is the
 * run's own id, and in the recorded part of a fork the source's: unique over siblings, equal over replays.
 */
export function payloadId(kind: PayloadIdKind, idSeed: string, tuple: Tuple): string {
  return `${kind}-${ksuidText(sha256(utf8ToBytes(`${kind}\0${idSeed}\0${encodeTuple(tuple)}`)).subarray(0, 20))}`;
}

/** SHA-256 of an UTF-8 text in the form used on the wire: `sha256:<64 hex>`. */
export function digestOf(text: string): string {
  return `sha256:${sha256Hex(text)}`;
}

/** `<agent_id>/<tool_name>` (seed 004 §4.2): a tool of an agent process. */
export function isAgentToolId(toolId: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}\/[A-Za-z0-9_.-]{1,128}$/.test(toolId);
}

/** A cause as rows hold it: as it was authored, and the id of its event. */
export function causeFields(
  runId: string,
  causedBy: CausedBy | undefined,
): { readonly causedBy?: CausedBy; readonly causationId?: string } {
  if (causedBy === undefined) return {};
  const { runId: of, key } = typeof causedBy === 'string' ? { runId, key: causedBy } : causedBy;
  return { causedBy, causationId: eventIdOf(of, key) };
}
