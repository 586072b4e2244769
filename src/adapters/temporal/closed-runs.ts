// Closed runs of a task queue since a watermark, for the sweeper (architecture §3.4): one window of close times
// per answer, counted first and made smaller until it holds what one answer may.
import type { Connection } from '@temporalio/client';
import { HostError } from '../../rules/errors.ts';
import { COHORT_WORKFLOW } from '../../rules/cohort.ts';
import type { ClosedRuns } from '../../ports/history.ts';
import { rpc, toHostError, withPageSize } from './rpc.ts';
import { toMs } from './timestamps.ts';

/** Each comes with its memo, which may hold what its last task emitted. */
const PAGE_RUNS = 200;
/** Closed runs of one answer; a window with more is halved, down to one millisecond, which is read whatever it holds. */
const WINDOW_RUNS = 10_000;
const MAX_PAGES = 10_000;
const DEADLINE_MS = 10_000;
const TRIES = 5;
/** How far beyond this process's clock a close time may lie, in ms. */
const CLOCK_SKEW_MS = 24 * 3600 * 1000;

export interface ClosedRunsSource {
  readonly connection: Connection;
  readonly namespace: string;
  readonly taskQueue: string;
  readonly signal: AbortSignal;
  /** WINDOW_RUNS when absent. */
  readonly windowRuns?: number;
}

interface Window {
  readonly sinceMs: number;
  readonly untilMs: number;
}

function queryOf({ taskQueue }: ClosedRunsSource, { sinceMs, untilMs }: Window): string {
  const after = new Date(sinceMs).toISOString();
  const until = new Date(untilMs).toISOString();
  return `WorkflowType!='${COHORT_WORKFLOW}' AND TaskQueue='${taskQueue}' AND CloseTime > '${after}' AND CloseTime <= '${until}'`;
}

const limitsOf = ({ signal }: ClosedRunsSource) => ({
  deadlineMs: DEADLINE_MS,
  tries: TRIES,
  signal,
});

async function count(source: ClosedRunsSource, window: Window): Promise<number> {
  const { connection, namespace } = source;
  const counted = await rpc(connection, limitsOf(source), () =>
    connection.workflowService.countWorkflowExecutions({
      namespace,
      query: queryOf(source, window),
    }),
  );
  return Number(counted.count ?? 0);
}

async function list(source: ClosedRunsSource, window: Window): Promise<ClosedRuns> {
  const { connection, namespace } = source;
  const query = queryOf(source, window);
  const runIds = new Set<string>();
  let newestMs = window.sinceMs;
  let nextPageToken = new Uint8Array();
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await withPageSize(PAGE_RUNS, (pageSize) =>
      rpc(connection, limitsOf(source), () =>
        connection.workflowService.listWorkflowExecutions({
          namespace,
          pageSize,
          query,
          nextPageToken,
        }),
      ),
    );
    for (const { execution, closeTime } of page.executions ?? []) {
      if (execution?.workflowId) runIds.add(execution.workflowId);
      // A close time ahead of now moves no watermark beyond what else may close until then.
      newestMs = Math.max(newestMs, Math.min(toMs(closeTime) ?? 0, Date.now()));
    }
    nextPageToken = new Uint8Array(page.nextPageToken ?? []);
    if (nextPageToken.length === 0) return { runIds: [...runIds], newestMs };
  }
  throw new HostError('internal_error', { reason: 'The list of closed runs has no end.' });
}

/** See HistoryReader.closedSince. */
export async function closedSince(source: ClosedRunsSource, sinceMs: number): Promise<ClosedRuns> {
  const windowRuns = source.windowRuns ?? WINDOW_RUNS;
  const lastMs = Math.max(sinceMs + 1, Date.now() + CLOCK_SKEW_MS);
  try {
    let untilMs = lastMs;
    while (untilMs > sinceMs + 1 && (await count(source, { sinceMs, untilMs })) > windowRuns) {
      untilMs = sinceMs + Math.max(1, Math.floor((untilMs - sinceMs) / 2));
    }
    const found = await list(source, { sinceMs, untilMs });
    // Everything up to the end of a smaller window was given, also where nothing was.
    return untilMs === lastMs
      ? found
      : { ...found, newestMs: Math.min(untilMs, Date.now()), moreAfterMs: untilMs };
  } catch (error) {
    throw toHostError(error);
  }
}
