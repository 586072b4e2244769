// What holds of every run on a real server (architecture §8): the log is what workflow code emitted, dense, valid, with
// one ending; history tells it again byte for byte; and the workflow code replays deterministically.
import assert from 'node:assert/strict';
import { Client, type Connection } from '@temporalio/client';
import proto from '@temporalio/proto';
import type { temporal } from '@temporalio/proto';
import { workflowBundle } from '../../src/adapters/temporal/bundle.ts';
import {
  createEncryption,
  dataConverter,
  parseEncryptionKeys,
} from '../../src/adapters/temporal/codec.ts';
import { connectTemporal, type TemporalTarget } from '../../src/adapters/temporal/connection.ts';
import { createHistoryReader } from '../../src/adapters/temporal/history.ts';
import { expandDeltas } from '../../src/rules/deltas.ts';
import { eventIdOf, TERMINAL_KEY } from '../../src/rules/ids.ts';
import type { StepResult } from '../../src/rules/journal.ts';
import { eventRow } from '../../src/rules/events.ts';
import { isTerminalEvent, TERMINAL_STATUSES } from '../../src/rules/status.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import { createLog } from '../../src/log/log.ts';
import { retrace } from '../../src/log/rebuild.ts';
import type { HistoryEvent, HistoryReader } from '../../src/ports/history.ts';
import type { Head, LogRow } from '../../src/ports/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { neverByChance } from './broken.ts';
import { shownEvent } from './shown-event.ts';
import { validateEvent } from '../../src/wire/validators.ts';
import { silentLogger } from './log-parts.ts';
import { journalOf } from './run-workflow.ts';
import { CACHE_DIR } from './temporal.ts';
import { replay } from './replayer.ts';
import { runRef } from './run-ref.ts';

/** What is looked at: a TestHost fits. */
export interface InspectedHost {
  readonly stores: Stores;
  readonly temporal: TemporalTarget;
  /** OPENWOP_ENCRYPTION_KEYS is read, to decode and to replay, and OPENWOP_CACHE_DIR, where its workflow code lies. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

interface Inspection {
  readonly runId: string;
  readonly stores: Stores;
  readonly history: HistoryReader;
  readonly client: Client;
}

interface SegmentHistory {
  readonly raw: temporal.api.history.v1.IHistory;
  readonly events: readonly HistoryEvent[];
}

const READ_ROWS = 500;
const DELTA_KEY = /#d\d+$/;

async function readLog(stores: Stores, runId: string): Promise<LogRow[]> {
  const rows: LogRow[] = [];
  for (;;) {
    const page = await stores.log.read(runRef(runId), { after: rows.length - 1, limit: READ_ROWS });
    rows.push(...page);
    if (page.length < READ_ROWS) return rows;
  }
}

const { History } = proto.temporal.api.history.v1;

/** Every segment's history, as the client fetches it and not page by page. */
async function readSegments({
  runId,
  stores,
  client,
  history,
}: Inspection): Promise<SegmentHistory[]> {
  const segments: SegmentHistory[] = [];
  for (const { temporalRunId } of await stores.segments.ofRun(runRef(runId))) {
    const raw = await client.workflow.getHandle(runId, temporalRunId).fetchHistory();
    segments.push({ raw, events: await history.decode(History.encode(raw).finish()) });
  }
  return segments;
}

/** Every event but the first names its cause, which stands before it, or in another run (seed 003 §1.2). */
function checkCauses(rows: readonly LogRow[]): void {
  const places = new Map(rows.map(({ eventId, sequence }) => [eventId, sequence]));
  for (const { runId, sequence, type, causationId, causedBy } of rows) {
    if (sequence === 0) continue;
    const place = typeof causedBy === 'object' ? -1 : (places.get(causationId ?? '') ?? sequence);
    assert.ok(place < sequence, `${runId}: ${type} at ${sequence} names its cause: ${causationId}`);
  }
}

function checkRows(rows: readonly LogRow[], head: Head): void {
  const { runId } = head;
  assert.deepEqual(
    rows.map(({ sequence }) => sequence),
    rows.map((_, index) => index),
    `${runId}: sequences are dense from 0`,
  );
  assert.equal(head.nextSequence, rows.length, `${runId}: the head's next sequence is free`);
  rows.forEach((row, index) => {
    const before = rows[index - 1];
    assert.ok(!before || before.timestampMs <= row.timestampMs, `${runId}: times never go back`);
    assert.equal(row.eventId, eventIdOf(runId, row.key), `${runId}: ids come from keys`);
    const checked = validateEvent(shownEvent(row));
    assert.ok(
      checked.ok,
      `${runId}: ${row.type} at ${row.sequence} is valid: ${checked.ok ? '' : JSON.stringify(checked.errors)} ${row.payload}`,
    );
  });
  assert.equal(new Set(rows.map(({ eventId }) => eventId)).size, rows.length, 'ids are unique');
  checkCauses(rows);
  checkEnding(rows, head);
}

/** A fork may end before it begins. */
const ENDED_BEFORE = ['replay.diverged', 'run.failed'];

function checkEnding(rows: readonly LogRow[], head: Head): void {
  const endings = rows.filter(({ type }) => isTerminalEvent(type));
  assert.equal(endings.length, head.closed ? 1 : 0, `${head.runId}: one ending, when closed`);
  assert.equal(
    TERMINAL_STATUSES.has(head.status),
    head.closed,
    `${head.runId}: status ${head.status}`,
  );
  if (!head.closed) return;
  const last = rows.at(-1);
  assert.equal(last?.key, TERMINAL_KEY, `${head.runId}: the ending is last`);
  assert.equal(eventRow(last?.type ?? '').run, head.status);
  assert.ok(['run.started', ...ENDED_BEFORE].includes(rows[0]?.type ?? ''));
}

function described({
  key,
  type,
  nodeId,
  payload,
}: {
  key: string;
  type: string;
  nodeId?: string;
  payload: unknown;
}) {
  return { key, type, nodeId: nodeId ?? null, payload };
}

/** Entries of the source that a fork's log begins with, as its pages say. */
function prefixIn(segments: readonly SegmentHistory[]): number {
  const results = segments.flatMap(({ events }) =>
    events.flatMap((event) => {
      const [payload] = event.activityTaskCompletedEventAttributes?.result?.payloads ?? [];
      return payload?.data ? [JSON.parse(Buffer.from(payload.data).toString()) as StepResult] : [];
    }),
  );
  return results.reduce((sum, { recording }) => sum + (recording?.prefix ?? 0), 0);
}

/** The journal, decoded independently of translate, is the log; only an ending without workflow code comes on top. */
function checkEmissions(rows: readonly LogRow[], segments: readonly SegmentHistory[]): void {
  const emitted = segments
    .flatMap(({ events }, index) => journalOf(events, index))
    .flatMap((item) => (item.kind === 'status' ? [] : [described(item)]));
  const stored = rows
    .filter(({ key }) => !DELTA_KEY.test(key))
    .map((row) => described({ ...row, payload: JSON.parse(row.payload) as unknown }));
  const authored = emitted.some(({ key }) => key === TERMINAL_KEY);
  assert.deepEqual(
    authored ? stored : stored.slice(0, emitted.length),
    emitted,
    'log == emissions',
  );
  if (authored) return;
  const added = stored.slice(emitted.length).map(({ type }) => type);
  const closings = [
    'agent.reasoned',
    'agent.toolReturned',
    'agent.invocation.completed',
    'node.cancelled',
  ];
  for (const type of added)
    assert.ok(isTerminalEvent(type) || closings.includes(type), `${type} was emitted`);
}

function recordedDeltas(segments: readonly SegmentHistory[], runId: string) {
  return segments
    .flatMap(({ events }) => events)
    .flatMap((event) => {
      const payload = event.activityTaskCompletedEventAttributes?.result?.payloads?.[0];
      if (!payload?.data?.length) return [];
      const result = JSON.parse(Buffer.from(payload.data).toString()) as StepResult | null;
      return result?.deltas ? expandDeltas(runId, result.deltas) : [];
    });
}

function checkDeltas(
  rows: readonly LogRow[],
  segments: readonly SegmentHistory[],
  runId: string,
): void {
  const recorded = recordedDeltas(segments, runId);
  const stored = rows
    .filter(({ key }) => DELTA_KEY.test(key))
    .map(({ key, sequence, payload, timestampMs }) => ({ key, sequence, payload, timestampMs }));
  const told = recorded.map(({ key, sequence, payload, timestampMs }) => ({
    key,
    sequence,
    payload,
    timestampMs,
  }));
  assert.deepEqual(
    stored,
    told.sort((a, b) => a.sequence - b.sequence),
    `${runId}: deltas == recordings`,
  );
}

/** Of a log that was made again without their places (architecture §3.6). */
function checkRetoldDeltas(
  rows: readonly LogRow[],
  segments: readonly SegmentHistory[],
  runId: string,
): void {
  const texts = (deltas: readonly { key: string; payload: string }[]) =>
    deltas.map(({ key, payload }) => `${key} ${payload}`).sort();
  const stored = rows.filter(({ key }) => DELTA_KEY.test(key));
  assert.deepEqual(
    texts(stored),
    texts(recordedDeltas(segments, runId)),
    `${runId}: deltas == recordings`,
  );
}

async function checkRebuild(
  inspection: Inspection,
  rows: readonly LogRow[],
  head: Head,
): Promise<void> {
  const { stores, history, runId } = inspection;
  const rebuilt = await retrace({ stores, history, logger: silentLogger }, runRef(runId));
  const bytes = (of: readonly LogRow[]) =>
    of.map((row) => JSON.stringify(Object.entries(row).sort()));
  assert.deepEqual(bytes(rebuilt.rows), bytes(rows), `${runId}: a rebuild gives the same rows`);
  const kept = ({ status, closed, nextSequence, snapshot, lastTimestampMs, retoldFrom }: Head) => ({
    retoldFrom,
    status,
    closed,
    nextSequence,
    snapshot,
    lastTimestampMs,
  });
  assert.deepEqual(kept(rebuilt.head), kept(head), `${runId}: a rebuild gives the same head`);
}

async function checkRun(inspection: Inspection): Promise<SegmentHistory[]> {
  const { stores, history, runId } = inspection;
  const log = createLog({ stores, history, logger: silentLogger, processId: 'invariants' });
  const head = await log.catchUp(runRef(runId)).finally(() => log.close());
  const rows = await readLog(stores, runId);
  const row = await stores.runs.find(head.tenant, runId);
  checkRows(rows, head);
  const segments = await readSegments(inspection);
  // A fork's log begins with that of its source, which no command of its own carries.
  const own = rows.slice(row?.input.fork ? prefixIn(segments) : 0);
  checkEmissions(own, segments);
  const check = head.retoldFrom === undefined ? checkDeltas : checkRetoldDeltas;
  if (head.closed) check(own, segments, runId);
  if ((await stores.log.openBlocks(runRef(runId))).length === 0)
    await checkRebuild(inspection, rows, head);
  return segments;
}

async function checkReplay(
  histories: readonly { runId: string; raw: temporal.api.history.v1.IHistory }[],
  converter: ReturnType<typeof dataConverter>,
  cacheDir: string,
): Promise<void> {
  const { failureConverterPath } = converter;
  const bundle = await workflowBundle({ cacheDir, failureConverterPath });
  for (const { runId, raw } of histories) {
    const replayed = { workflowId: runId, history: raw };
    const error = await replay({ bundle, dataConverter: converter }, replayed);
    assert.equal(error, undefined, `${runId} replays: ${error?.message}`);
  }
}

const converters = new Map<string, ReturnType<typeof dataConverter>>();

/** The same object for the same keys: replays are done by one worker for each. */
function converterOf(keys: string): ReturnType<typeof dataConverter> {
  const known = converters.get(keys);
  if (known) return known;
  const made = dataConverter({ ring: ringOf(keys ? parseEncryptionKeys(keys) : []) });
  converters.set(keys, made);
  return made;
}

/**
 * Holds the invariants of one run or of several, open or closed; throws an AssertionError, called Broken, that names the
 * first one that does not hold. Stores nothing but what a read would catch up anyway.
 */
export async function checkInvariants(
  host: InspectedHost,
  runIds: string | readonly string[],
): Promise<void> {
  const encryption = host.env?.OPENWOP_ENCRYPTION_KEYS;
  const keys = encryption ? parseEncryptionKeys(encryption) : [];
  const converter = converterOf(encryption ?? '');
  const codec = createEncryption({ ring: ringOf(keys) });
  const connection: Connection = connectTemporal(host.temporal);
  const { namespace } = host.temporal;
  const history = createHistoryReader({ connection, namespace, codec });
  const client = new Client({ connection, namespace, dataConverter: converter });
  const hold = async (): Promise<void> => {
    const histories: { runId: string; raw: temporal.api.history.v1.IHistory }[] = [];
    for (const runId of [runIds].flat()) {
      const segments = await checkRun({ runId, stores: host.stores, history, client });
      histories.push(...segments.map(({ raw }) => ({ runId, raw })));
    }
    await checkReplay(histories, converter, host.env?.OPENWOP_CACHE_DIR ?? CACHE_DIR);
  };
  try {
    await neverByChance(hold);
  } finally {
    await history.close();
    await connection.close();
  }
}
