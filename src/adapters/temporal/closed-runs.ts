// Closed runs of a task queue since a watermark, for the sweeper (design §3.4; spec/07 §3.2): one list query, paged,
// whose window is narrowed when it holds more than one sweep may read.
import type { Connection } from '@temporalio/client';
import { HostError } from '../../core/errors.ts';
import { rpc, toHostError } from './rpc.ts';

const SWEEP_PAGE = 500;
/** Pages of one sweep; with more, the window is narrowed to its older half. */
const MAX_SWEEP_PAGES = 40;
const SWEEP_DEADLINE_MS = 10_000;

function toMs(time: { seconds?: unknown; nanos?: number | null } | null | undefined): number {
  return Number(time?.seconds ?? 0) * 1000 + Math.floor((time?.nanos ?? 0) / 1_000_000);
}

/** Undefined when the window holds more than one sweep may read. */
async function sweep(
  source: SweepSource,
  sinceMs: number,
  untilMs: number,
): Promise<{ runIds: readonly string[]; newestMs: number } | undefined> {
  const after = new Date(sinceMs).toISOString();
  const until = new Date(untilMs).toISOString();
  const query = `TaskQueue='${source.taskQueue}' AND CloseTime > '${after}' AND CloseTime <= '${until}'`;
  const runIds = new Set<string>();
  let newestMs = sinceMs;
  let nextPageToken = new Uint8Array();
  for (let count = 0; count < MAX_SWEEP_PAGES; count++) {
    const limits = { deadlineMs: SWEEP_DEADLINE_MS, tries: 5, signal: source.signal };
    const list = await rpc(source.connection, limits, () =>
      source.connection.workflowService.listWorkflowExecutions({
        namespace: source.namespace,
        pageSize: SWEEP_PAGE,
        query,
        nextPageToken,
      }),
    );
    for (const { execution, closeTime } of list.executions ?? []) {
      if (execution?.workflowId) runIds.add(execution.workflowId);
      newestMs = Math.max(newestMs, toMs(closeTime));
    }
    nextPageToken = new Uint8Array(list.nextPageToken ?? []);
    if (nextPageToken.length === 0) return { runIds: [...runIds], newestMs };
  }
  return undefined;
}

/** How far beyond this process's clock a close time may lie, in ms. */
const CLOCK_SKEW_MS = 24 * 3600 * 1000;

export interface SweepSource {
  readonly connection: Connection;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly signal: AbortSignal;
}

/** See HistoryReader.closedSince. */
export async function closedSince(
  source: SweepSource,
  sinceMs: number,
): Promise<{ runIds: readonly string[]; newestMs: number }> {
  try {
    const wholeMs = Math.max(1, Date.now() + CLOCK_SKEW_MS - sinceMs);
    for (let spanMs = wholeMs; spanMs >= 1; spanMs = Math.floor(spanMs / 2)) {
      const found = await sweep(source, sinceMs, sinceMs + spanMs);
      if (!found) continue;
      // The older part of an overfull window was read to its end: the next sweep begins there.
      return spanMs === wholeMs
        ? found
        : { ...found, newestMs: Math.min(sinceMs + spanMs, Date.now()) };
    }
  } catch (error) {
    throw toHostError(error);
  }
  throw new HostError('internal_error', { reason: 'Too many runs closed within one millisecond.' });
}
