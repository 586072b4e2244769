// How rows of the log tables read and write: column lists and the mapping to the port's types, in one place.
import type { CausedBy } from '../../rules/journal.ts';
import type { JsonValue } from '../../rules/json.ts';
import type { RunStatus } from '../../rules/status.ts';
import type { Head, LogRow, LogLink } from '../../ports/log.ts';
import { erasedSnapshot } from '../../rules/erased.ts';
import { toldOr } from '../../rules/unreadable.ts';
import { erasedPayload } from '../../wire/erased-payload.ts';
import {
  atRest,
  openOrKept,
  parsedAt,
  PLACES,
  type Opened,
  type Opener,
  type Seal,
  type Seals,
} from './seals.ts';

export const EVENT_COLUMNS =
  'run_id, sequence, event_id, key, type, node_id, causation_id, caused_by, payload, timestamp_ms';

export interface EventRecord {
  readonly run_id: string;
  readonly sequence: number;
  readonly event_id: string;
  readonly key: string;
  readonly type: string;
  readonly node_id: string | null;
  readonly causation_id: string | null;
  readonly caused_by: string | null;
  readonly payload: string;
  readonly timestamp_ms: number;
}

/** Rows of one run in their order. Throws HostError history_undecodable or key_unavailable of the first that cannot be read. */
export async function logRowsOf(
  seals: Seals,
  records: readonly EventRecord[],
): Promise<readonly LogRow[]> {
  const open = await seals.opener(records.map(({ payload }) => payload));
  return records.map((record) => ({
    ...logRowOf(record, open(placeOf(record), record.payload)),
    ...causeOf(record),
  }));
}

/** Rows of several runs in their order: one that cannot be read says so in its place. */
export async function eachRowOf(
  seals: Seals,
  records: readonly EventRecord[],
): Promise<readonly LogRow[]> {
  const open = await seals.opener(records.map(({ payload }) => payload));
  return records.map((record) => {
    const { unreadable, ...opened } = openOrKept(open, placeOf(record), record.payload);
    const row = logRowOf(record, opened);
    return { ...row, ...toldOr({}, () => causeOf(record)), ...(unreadable && { unreadable }) };
  });
}

function placeOf({ run_id: runId, key }: EventRecord): string {
  return PLACES.payload(runId, key);
}

function causeOf({ run_id: runId, key, caused_by: text }: EventRecord): Pick<LogRow, 'causedBy'> {
  return text === null ? {} : { causedBy: parsedAt<CausedBy>(`cause ${runId} ${key}`, text) };
}

function logRowOf(record: EventRecord, { text: payload, erasedAtMs }: Opened): LogRow {
  return {
    runId: record.run_id,
    sequence: record.sequence,
    eventId: record.event_id,
    key: record.key,
    type: record.type,
    ...(record.node_id === null ? {} : { nodeId: record.node_id }),
    ...(record.causation_id === null ? {} : { causationId: record.causation_id }),
    payload,
    timestampMs: record.timestamp_ms,
    ...(erasedAtMs === undefined ? {} : { isErased: true }),
  };
}

export const LINK_COLUMNS = 'run_id, sequence, event_id, type, node_id, causation_id, timestamp_ms';

export type LinkRecord = Omit<EventRecord, 'key' | 'caused_by' | 'payload'>;

export function linkOf(record: LinkRecord): LogLink {
  return {
    runId: record.run_id,
    sequence: record.sequence,
    eventId: record.event_id,
    type: record.type,
    ...(record.node_id === null ? {} : { nodeId: record.node_id }),
    ...(record.causation_id === null ? {} : { causationId: record.causation_id }),
    timestampMs: record.timestamp_ms,
  };
}

function storedPayload({ runId, key, type, payload }: LogRow, seal: Seal | undefined): string {
  const place = PLACES.payload(runId, key);
  const kept = seal && erasedPayload(type, payload);
  return atRest(seal, { place, json: payload, kept });
}

function recordOf(row: LogRow, seal: Seal | undefined): EventRecord {
  return {
    run_id: row.runId,
    sequence: row.sequence,
    event_id: row.eventId,
    key: row.key,
    type: row.type,
    node_id: row.nodeId ?? null,
    causation_id: row.causationId ?? null,
    caused_by: row.causedBy === undefined ? null : JSON.stringify(row.causedBy),
    payload: storedPayload(row, seal),
    timestamp_ms: row.timestampMs,
  };
}

/** All rows as one JSON text: the value of INSERT_EVENTS. */
export function eventRecords(rows: readonly LogRow[], seal: Seal | undefined): string {
  return JSON.stringify(rows.map((row) => recordOf(row, seal)));
}

/** The same of several runs, for INSERT_GROUP. */
export function groupRecords(
  groups: readonly {
    readonly tenant: string;
    readonly rows: readonly LogRow[];
    readonly seal: Seal | undefined;
  }[],
): string {
  return JSON.stringify(
    groups.flatMap(({ tenant, rows, seal }) =>
      rows.map((row) => ({ ...recordOf(row, seal), tenant_id: tenant })),
    ),
  );
}

const RECORD_COLUMNS = `sequence bigint, event_id text, key text, type text, node_id text, causation_id text,
       caused_by text, payload text, timestamp_ms bigint`;

/** Takes the run ($1), the tenant ($2) and eventRecords ($3). */
export const INSERT_EVENTS = `INSERT INTO run_events (tenant_id, ${EVENT_COLUMNS})
  SELECT $2::text, $1::text, x.sequence, x.event_id, x.key, x.type, x.node_id, x.causation_id, x.caused_by, x.payload,
         x.timestamp_ms
  FROM json_to_recordset($3::text::json) AS x(${RECORD_COLUMNS})`;

/** Takes groupRecords ($2). */
export const INSERT_GROUP = `INSERT INTO run_events (tenant_id, ${EVENT_COLUMNS})
  SELECT x.tenant_id, ${EVENT_COLUMNS.split(', ')
    .map((column) => `x.${column}`)
    .join(', ')}
  FROM json_to_recordset($2::text::json) AS x(tenant_id text, run_id text, ${RECORD_COLUMNS})`;

export const HEAD_COLUMNS = `run_id, tenant_id, status, closed, next_sequence, last_timestamp_ms, temporal_run_id,
  history_event_id, token, translate_version, translate_state, snapshot, problem, retold_from`;

export interface HeadRecord {
  readonly run_id: string;
  readonly tenant_id: string;
  readonly status: string;
  readonly closed: boolean;
  readonly next_sequence: number;
  readonly last_timestamp_ms: number;
  readonly temporal_run_id: string;
  readonly history_event_id: number;
  readonly token: string;
  readonly translate_version: number;
  readonly translate_state: string;
  readonly snapshot: string;
  readonly problem: string | null;
  readonly retold_from: number | null;
}

/** `translate_state` and `snapshot` of a head as they are stored. */
export function storedHead(
  { runId, translateState, snapshot }: Pick<Head, 'runId' | 'translateState' | 'snapshot'>,
  seal: Seal | undefined,
): [state: string, snapshot: string] {
  const [state, folded] = [JSON.stringify(translateState), JSON.stringify(snapshot)];
  const kept = seal && JSON.stringify(erasedSnapshot(snapshot));
  return [
    atRest(seal, { place: PLACES.state(runId), json: state, kept: 'null' }),
    atRest(seal, { place: PLACES.snapshot(runId), json: folded, kept }),
  ];
}

/** What of a head may be sealed. */
export function sealedOfHead(record: HeadRecord | undefined): readonly (string | undefined)[] {
  return [record?.translate_state, record?.snapshot];
}

export function headOf(record: HeadRecord, open: Opener): Head {
  const { run_id: runId } = record;
  const [folded, state] = [PLACES.snapshot(runId), PLACES.state(runId)];
  const { text, erasedAtMs } = open(folded, record.snapshot);
  return {
    runId: record.run_id,
    tenant: record.tenant_id,
    status: record.status as RunStatus,
    closed: record.closed,
    nextSequence: record.next_sequence,
    lastTimestampMs: record.last_timestamp_ms,
    temporalRunId: record.temporal_run_id,
    historyEventId: record.history_event_id,
    token: record.token,
    translateVersion: record.translate_version,
    translateState: parsedAt<JsonValue>(state, open(state, record.translate_state).text),
    snapshot: parsedAt<JsonValue>(folded, text),
    ...(erasedAtMs === undefined ? {} : { erasedAtMs }),
    ...(record.problem === null ? {} : { problem: record.problem }),
    ...(record.retold_from === null ? {} : { retoldFrom: record.retold_from }),
  };
}
