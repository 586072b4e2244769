// Reads Temporal history (architecture §3.1, §3.2; the exact read semantics are architecture §3.2): pages behind a
// token for the projection, whole segments for the archive, and closed runs for the sweeper. Only payloads that
// translate needs are decoded; what arrives encoded in the archive stays encoded.
import { setMaxListeners } from 'node:events';
import type { Connection } from '@temporalio/client';
import type { PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto';
import { HostError } from '../../rules/errors.ts';
import { RUN_TASK_QUEUE } from '../../rules/run-input.ts';
import type { HistoryEvent, HistoryPage, HistoryReader } from '../../ports/history.ts';
import { closedSince } from './closed-runs.ts';
import { decodeEvents, durable } from './history-payloads.ts';
import {
  GRPC,
  grpcStatus,
  isNamespaceUnknown,
  rpc,
  toHostError,
  withPageSize,
  type Limits,
} from './rpc.ts';
import { FULL_SERVER, type ServerTraits } from './server-traits.ts';
import { endsSegment, pageOfWhole } from './whole-history.ts';

const HistoryProto = proto.temporal.api.history.v1.History;

/** Below one second the server answers a long poll at once instead of parking it (architecture §3.2). */
const TAIL_DEADLINE_MS = 900;
/** A server too slow for that is asked once more, parking at most this long less one second. */
const SLOW_TAIL_DEADLINE_MS = 2_500;
/** The server answers a parked poll this long before the client's deadline. */
const SERVER_MARGIN_MS = 1_000;
/** Longest park of one call; the server's own limit is 20 s. */
const MAX_WAIT_MS = 19_000;
const READ_DEADLINE_MS = 5_000;
const PAGE_EVENTS = 256;
/** 51,200 events are the server's limit of a segment; pages hold whole batches and may be smaller. */
const MAX_SEGMENT_PAGES = 2_000;

export interface HistoryReaderOptions {
  readonly connection: Connection;
  readonly namespace: string;
  /** `createEncryption(keys)`, also without keys: it recognises what it cannot read. */
  readonly codec: PayloadCodec;
  readonly taskQueue?: string;
  /** FULL_SERVER when absent. */
  readonly traits?: ServerTraits;
  /** For tests: closed runs of one answer. */
  readonly windowRuns?: number;
}

export interface ClosableHistoryReader extends HistoryReader {
  /** Ends parked polls. Call it before the connection is closed (architecture §3.2). */
  close(): Promise<void>;
}

interface Source extends HistoryReaderOptions {
  readonly taskQueue: string;
  readonly traits: ServerTraits;
  readonly stopped: AbortController;
  readonly running: Set<Promise<unknown>>;
}

interface Place {
  readonly runId: string;
  readonly temporalRunId: string;
}

interface RawPage {
  readonly events: readonly HistoryEvent[];
  readonly token: Uint8Array;
}

async function fetchPage(
  source: Source,
  place: Place,
  read: { token: Uint8Array; tail: boolean; limits: Limits },
): Promise<RawPage> {
  const request = {
    namespace: source.namespace,
    execution: { workflowId: place.runId, runId: place.temporalRunId },
    waitNewEvent: read.tail,
    nextPageToken: read.token,
    skipArchival: true,
  };
  const limits = { ...read.limits, signal: source.stopped.signal };
  const page = await withPageSize(PAGE_EVENTS, (maximumPageSize) =>
    rpc(source.connection, limits, () =>
      source.connection.workflowService.getWorkflowExecutionHistory({
        ...request,
        maximumPageSize,
      }),
    ),
  );
  return { events: page.history?.events ?? [], token: page.nextPageToken ?? new Uint8Array() };
}

/** From the start, without waiting. */
const WHOLE = { token: new Uint8Array(), tail: false } as const;

function isStatus(error: unknown, code: number): boolean {
  return grpcStatus(error)?.code === code;
}

/** The non-blocking read; one more try where a busy server missed the short deadline. */
async function readNow(source: Source, place: Place, token: Uint8Array): Promise<RawPage> {
  const first = token.length === 0 ? READ_DEADLINE_MS : TAIL_DEADLINE_MS;
  try {
    return await fetchPage(source, place, {
      token,
      tail: true,
      limits: { deadlineMs: first, tries: 2 },
    });
  } catch (error) {
    if (token.length === 0 || !isStatus(error, GRPC.DEADLINE_EXCEEDED)) throw error;
    return fetchPage(source, place, {
      token,
      tail: true,
      limits: { deadlineMs: SLOW_TAIL_DEADLINE_MS, tries: 1 },
    });
  }
}

async function readWaiting(
  source: Source,
  place: Place,
  read: { token: Uint8Array; waitMs: number },
): Promise<RawPage> {
  const deadlineMs = Math.min(read.waitMs, MAX_WAIT_MS) + SERVER_MARGIN_MS;
  try {
    return await fetchPage(source, place, {
      token: read.token,
      tail: true,
      limits: { deadlineMs, tries: 1 },
    });
  } catch (error) {
    // A poll that ran out says nothing about the server: a read that must not wait decides.
    if (source.stopped.signal.aborted || !isStatus(error, GRPC.DEADLINE_EXCEEDED)) throw error;
    return readNow(source, place, read.token);
  }
}

function historyError(error: unknown): unknown {
  if (isStatus(error, GRPC.NOT_FOUND) && !isNamespaceUnknown(error))
    return new HostError('history_missing', undefined, error);
  return toHostError(error);
}

/** For a server without tails; it gives whole histories in one piece. */
async function untailedPage(
  source: Source,
  place: Place,
  read: { token: Uint8Array; waitMs: number },
): Promise<HistoryPage> {
  const limits = { deadlineMs: READ_DEADLINE_MS, tries: 3 };
  const whole = async () => (await fetchPage(source, place, { ...WHOLE, limits })).events;
  try {
    const { events, token } = await pageOfWhole({
      temporalRunId: place.temporalRunId,
      token: read.token,
      waitMs: Math.min(read.waitMs, MAX_WAIT_MS),
      signal: source.stopped.signal,
      whole,
    });
    const decoded = await decodeEvents(events, source.codec);
    return { events: decoded, token: Buffer.from(token).toString('base64'), atTail: true };
  } catch (error) {
    throw historyError(error);
  }
}

async function page(
  source: Source,
  place: Place,
  read: { token: string; waitMs: number },
): Promise<HistoryPage> {
  const token = new Uint8Array(Buffer.from(read.token, 'base64'));
  if (!source.traits.historyTail) return untailedPage(source, place, { ...read, token });
  const once = (from: Uint8Array) =>
    read.waitMs > 0 && from.length > 0
      ? readWaiting(source, place, { token: from, waitMs: read.waitMs })
      : readNow(source, place, from);
  try {
    const raw = await once(token).catch((error: unknown) => {
      // The server refuses tokens of a changed branch: from the start, known events are filtered by their ids.
      if (token.length > 0 && isStatus(error, GRPC.INVALID_ARGUMENT)) return once(new Uint8Array());
      throw error;
    });
    const known = durable(raw.events);
    const events = await decodeEvents(known, source.codec);
    const withheld = raw.events.slice(known.length);
    // The server answers without events only where it has none behind the token, which it looks up when it is asked.
    const atTail = raw.events.length === 0 || raw.token.length === 0;
    return { events, withheld, token: Buffer.from(raw.token).toString('base64'), atTail };
  } catch (error) {
    throw historyError(error);
  }
}

/** Without `waitNewEvent` the server pages through what is there and gives no token at the end. */
async function raw(source: Source, place: Place): Promise<Uint8Array> {
  const events: HistoryEvent[] = [];
  let token = new Uint8Array();
  try {
    for (let count = 0; count === 0 || token.length > 0; count++) {
      if (count >= MAX_SEGMENT_PAGES)
        throw new HostError('internal_error', { reason: 'A segment has too many pages.' });
      const next = await fetchPage(source, place, {
        token,
        tail: false,
        limits: { deadlineMs: READ_DEADLINE_MS, tries: 3 },
      });
      for (const event of next.events) events.push(event);
      token = new Uint8Array(next.token);
    }
  } catch (error) {
    throw historyError(error);
  }
  if (!endsSegment(events)) {
    throw new HostError('internal_error', { reason: 'Only closed segments are archived.' });
  }
  return HistoryProto.encode(HistoryProto.fromObject({ events })).finish();
}

function decodeHistory(bytes: Uint8Array): readonly HistoryEvent[] {
  try {
    return HistoryProto.decode(bytes).events;
  } catch (error) {
    throw new HostError('history_undecodable', { reason: 'The archive is damaged.' }, error);
  }
}

export function createHistoryReader(options: HistoryReaderOptions): ClosableHistoryReader {
  const source: Source = {
    ...options,
    taskQueue: options.taskQueue ?? RUN_TASK_QUEUE,
    traits: options.traits ?? FULL_SERVER,
    stopped: new AbortController(),
    running: new Set(),
  };
  // One listener for each call that is running; they are removed as calls end.
  setMaxListeners(0, source.stopped.signal);
  const track = <T>(work: Promise<T>): Promise<T> => {
    const settled = work.then(
      () => undefined,
      () => undefined,
    );
    source.running.add(settled);
    void settled.then(() => source.running.delete(settled));
    return work;
  };
  return {
    page: (runId, temporalRunId, token, waitMs) =>
      track(page(source, { runId, temporalRunId }, { token, waitMs })),
    raw: (runId, temporalRunId) => track(raw(source, { runId, temporalRunId })),
    decode: async (bytes) => decodeEvents(durable(decodeHistory(bytes)), source.codec),
    closedSince: async (sinceMs) =>
      source.traits.visibility
        ? track(closedSince({ ...source, signal: source.stopped.signal }, sinceMs))
        : { runIds: [], newestMs: sinceMs },
    async close() {
      source.stopped.abort();
      await Promise.all(source.running);
    },
  };
}
