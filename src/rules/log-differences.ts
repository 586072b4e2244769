// Two logs held against each other, fact by fact (RFC 0054): a fact has the same key in each run that states it
// (architecture §2.1). Left out is what two tellings of one thing may differ in (replay.md §Divergence): ids that a run
// mints, clocks, durations, what a model's use came to, and how a stream was cut.
import { eventRow } from './events.ts';
import { blockOfKey } from './ids.ts';
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue } from './json.ts';

/** A row of a log, as far as it is compared. */
export interface ComparedRow {
  readonly sequence: number;
  readonly eventId: string;
  readonly key: string;
  readonly type: string;
  readonly nodeId?: string;
  /** JSON text. */
  readonly payload: string;
}

/** A run's log from its first row on. */
export interface ComparedLog<Row extends ComparedRow = ComparedRow> {
  readonly runId: string;
  readonly rows: readonly Row[];
  /** Nothing comes behind the last row: else what it lacks there may still come, and is no difference. */
  readonly isWhole: boolean;
}

/** A fact that is not the same: it has both rows, or only that of the log which has it. */
export interface LogDifference<Row extends ComparedRow = ComparedRow> {
  /** Where it stands in a's log; in b's where a lacks it. */
  readonly seq: number;
  readonly a?: Row;
  readonly b?: Row;
}

/** Payload fields whose values a run mints: other ones for the same fact in each run. */
const MINTED_FIELDS = [
  'callId',
  'invocationId',
  'interruptId',
  'conversationId',
  'childRunId',
  'artifactId',
];
/** Of src/rules/ids.ts, and of the effect ledger. */
const MAY_MINT = new RegExp(`"(?:${MINTED_FIELDS.join('|')})":`);
const MINTED = /\b(?:[a-z]+-[0-9A-Za-z]{27}|eff-[0-9a-f]{64})\b/g;
const IS_MINTED = /^(?:[a-z]+-[0-9A-Za-z]{27}|eff-[0-9a-f]{64})$/;

/** Payload fields that say when, how long, at what cost, or the same as another field by its digest. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...['writtenAt', 'decidedAt', 'durationMs', 'traceId', 'argsHash'],
]);
/** All that is compared of a model's use. */
const USED: readonly string[] = ['provider', 'model'];

/** Each minted id of a run by the fact that names it first, and that fact's field. */
export class MintedIds {
  readonly runId: string;
  readonly byFact = new Map<string, string>();
  readonly #known = new Set<string>();

  constructor(runId: string) {
    this.runId = runId;
  }

  /** Rows come in their order. Pieces of streams are no facts: a replay may have less of them. */
  take({ key, eventId, payload }: ComparedRow): void {
    if (blockOfKey(key) !== undefined) return;
    this.byFact.set(`event ${key}`, eventId);
    if (!MAY_MINT.test(payload)) return;
    const body = JSON.parse(payload) as JsonObject;
    for (const field of MINTED_FIELDS) {
      const id = body[field];
      if (typeof id !== 'string' || !IS_MINTED.test(id) || this.#known.has(id)) continue;
      this.#known.add(id);
      this.byFact.set(`${field} ${key}`, id);
    }
  }
}

function mintedIn({ runId, rows }: ComparedLog): MintedIds {
  const minted = new MintedIds(runId);
  for (const row of rows) minted.take(row);
  return minted;
}

/** Says a text of b in the ids of a, so that what both say of the same fact is the same text. */
export type Renaming = (text: string) => string;

export function renaming(a: ComparedLog, b: ComparedLog): Renaming {
  return renamingBy(mintedIn(a), mintedIn(b));
}

export function renamingBy(a: MintedIds, b: MintedIds): Renaming {
  const names = new Map<string, string>();
  for (const [fact, id] of b.byFact) names.set(id, a.byFact.get(fact) ?? id);
  return (text) => text.replaceAll(b.runId, a.runId).replace(MINTED, (id) => names.get(id) ?? id);
}

/** With one word for each id that a run mints, and without members that are named by one. */
export function withoutIds(value: JsonValue, runId: string): JsonValue {
  const plain = (text: string): string => text.replaceAll(runId, '(id)').replace(MINTED, '(id)');
  if (typeof value === 'string') return plain(value);
  if (Array.isArray(value)) return value.map((item) => withoutIds(item, runId));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) =>
      plain(name) === name ? [[name, withoutIds(member, runId)]] : [],
    ),
  );
}

/** A payload without what does not count. */
export function comparedPayload({
  type,
  payload,
}: Pick<ComparedRow, 'type' | 'payload'>): JsonValue {
  const whole = JSON.parse(payload) as JsonValue;
  const body = payload.includes('"messageId"') ? withoutClocks(whole) : whole;
  if (!isJsonObject(body)) return body;
  const { part } = eventRow(type);
  const counts = ([name]: [string, JsonValue]): boolean =>
    part === 'usage' ? USED.includes(name) : !LEFT_OUT.has(name);
  return Object.fromEntries(Object.entries(body).filter(counts));
}

/** Messages say when they were said (RFC 0005). */
export function withoutClocks(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutClocks);
  if (!isJsonObject(value)) return value;
  const isMessage = typeof value.messageId === 'string' && typeof value.ts === 'number';
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) =>
      isMessage && name === 'ts' ? [] : [[name, withoutClocks(member)]],
    ),
  );
}

interface Fact<Row> {
  readonly row: Row;
  /** In the ids of a. */
  readonly payload: string;
}

/** Most facts are the same to the letter: only the others are read. */
function isSame(one: Fact<ComparedRow>, other: Fact<ComparedRow>): boolean {
  if (one.row.type !== other.row.type || one.row.nodeId !== other.row.nodeId) return false;
  if (one.payload === other.payload) return true;
  const said = ({ row, payload }: Fact<ComparedRow>): string => saidText({ ...row, payload });
  return said(one) === said(other);
}

/** What a fact says: facts of two runs that say the same have the same text. */
export function saidText(row: Pick<ComparedRow, 'type' | 'nodeId' | 'payload'>): string {
  return canonicalJson([row.type, row.nodeId ?? null, comparedPayload(row)]);
}

/** By sequence. */
export function logDifferences<Row extends ComparedRow>(
  a: ComparedLog<Row>,
  b: ComparedLog<Row>,
): LogDifference<Row>[] {
  const rename = renaming(a, b);
  const [ofA, ofB] = [factsOf(a, (text) => text), factsOf(b, rename)];
  const [lackedByB, lackedByA] = [lacking(ofA, ofB, b), lacking(ofB, ofA, a)];
  const changed = [...ofA].flatMap(([key, fact]): LogDifference<Row>[] => {
    const other = ofB.get(key);
    if (!other || isSame(fact, other)) return [];
    return [{ seq: fact.row.sequence, a: fact.row, b: other.row }];
  });
  const found = [
    ...changed,
    ...lackedByB.map((row): LogDifference<Row> => ({ seq: row.sequence, a: row })),
    ...lackedByA.map((row): LogDifference<Row> => ({ seq: row.sequence, b: row })),
    ...streamDifferences(a, b, rename),
  ];
  return found.sort((one, other) => one.seq - other.seq);
}

/** Streams are no facts of theirs: what they came to is stated by another, but for those below. */
function factsOf<Row extends ComparedRow>(
  { rows }: ComparedLog<Row>,
  rename: Renaming,
): Map<string, Fact<Row>> {
  return new Map(
    rows.flatMap((row): [string, Fact<Row>][] => {
      const { key, payload } = row;
      if (blockOfKey(key) !== undefined) return [];
      return [[key, { row, payload: rename(payload) }]];
    }),
  );
}

/** Rows whose facts `other` lacks and cannot state any more: it has ended, or its node has gone on. */
function lacking<Row extends ComparedRow>(
  facts: ReadonlyMap<string, Fact<Row>>,
  other: ReadonlyMap<string, Fact<Row>>,
  { isWhole }: ComparedLog,
): Row[] {
  const reached = new Map<string, number>();
  for (const [key, { row }] of facts)
    if (other.has(key)) reached.set(row.nodeId ?? '', row.sequence);
  return [...facts].flatMap(([key, { row }]) => {
    const mayCome = !isWhole && row.sequence > (reached.get(row.nodeId ?? '') ?? -1);
    return other.has(key) || mayCome ? [] : [row];
  });
}

interface Streamed<Row> {
  readonly first: Row;
  text: string;
}

/** A piece of a stream that is told nowhere else. */
export interface StreamPiece {
  /** Of the stream. */
  readonly name: string;
  readonly text: string;
}

export function streamPieceOf({ type, key, payload }: ComparedRow): StreamPiece | undefined {
  const { piece } = eventRow(type);
  const block = blockOfKey(key);
  if (!piece || piece.whole !== null || block === undefined) return undefined;
  const body = JSON.parse(payload) as JsonObject;
  const text = body[piece.text];
  return {
    name: `${block} ${typeof body.channel === 'string' ? body.channel : ''}`,
    text: typeof text === 'string' ? text : '',
  };
}

/**
 * Of what is told nowhere else: the text as a whole, where both have it and neither is the beginning of the other. A
 * replay performs nothing, so it may have less of a stream, or none.
 */
function streamDifferences<Row extends ComparedRow>(
  a: ComparedLog<Row>,
  b: ComparedLog<Row>,
  rename: Renaming,
): LogDifference<Row>[] {
  const ofB = streamsOf(b);
  return [...streamsOf(a)].flatMap(([block, { first, text }]): LogDifference<Row>[] => {
    const other = ofB.get(block);
    if (!other || isSameStream(text, rename(other.text))) return [];
    return [{ seq: first.sequence, a: first, b: other.first }];
  });
}

function streamsOf<Row extends ComparedRow>({
  rows,
}: ComparedLog<Row>): Map<string, Streamed<Row>> {
  const streams = new Map<string, Streamed<Row>>();
  for (const row of rows) {
    const piece = streamPieceOf(row);
    if (!piece) continue;
    const stream = streams.get(piece.name) ?? { first: row, text: '' };
    streams.set(piece.name, stream);
    stream.text += piece.text;
  }
  return streams;
}

/** A replay performs nothing, so it may have less of a stream. */
export function isSameStream(one: string, other: string): boolean {
  return one.startsWith(other) || other.startsWith(one);
}
