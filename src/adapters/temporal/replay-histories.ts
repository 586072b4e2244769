// Histories of runs, replayed by the workflow code of this build (docs/upgrades.md): Temporal's own check, which finds
// whatever commands differ.
import { Client, type Connection, type DataConverter } from '@temporalio/client';
import { Worker } from '@temporalio/worker';
import { HostError } from '../../rules/errors.ts';
import { RUN_TASK_QUEUE } from '../../rules/run-input.ts';
import { abortAfter } from '../../system/time.ts';
import { withWorkflowThreads } from './workflow-threads.ts';

/** Longest time in ms from one replayed history to the next. */
const REPLAY_LIMIT_MS = 120_000;
const NO_END = 'The replay of a history did not come to an end.';
/** Histories that are fetched at once. */
const FETCHED_AT_ONCE = 4;

export interface ReplaySource {
  readonly connection: Connection;
  readonly namespace: string;
  readonly dataConverter: DataConverter;
  readonly bundle: { readonly codePath: string };
}

/** A segment of a run; `fault`: why this build cannot go on with it. */
export interface ReplayedSegment {
  readonly runId: string;
  readonly temporalRunId: string;
  readonly fault?: string;
}

/** Those that are open: `open`; else at most so many of those that have ended. */
export async function* replayHistories(
  { connection, namespace, dataConverter, bundle }: ReplaySource,
  which: 'open' | { readonly ended: number },
): AsyncGenerator<ReplayedSegment> {
  const client = new Client({ connection, namespace, dataConverter });
  const isOpen = which === 'open';
  const status = `ExecutionStatus ${isOpen ? '=' : '!='} "Running"`;
  const query = `TaskQueue = "${RUN_TASK_QUEUE}" AND ${status}`;
  const histories = client.workflow.list({ query }).intoHistories({ concurrency: FETCHED_AT_ONCE });
  const some = isOpen ? histories : firstOf(histories, which.ended);
  // In a thread of its own, with a limit of time for each workflow task; by default a replay has neither.
  const options = { workflowBundle: bundle, dataConverter, debugMode: false };
  const replays = Worker.runReplayHistories(options, some)[Symbol.asyncIterator]();
  for (;;) {
    const next = await within(
      REPLAY_LIMIT_MS,
      withWorkflowThreads(false, () => replays.next()),
    );
    if (next.done) return;
    const { workflowId, runId, error } = next.value;
    yield {
      ...{ runId: workflowId, temporalRunId: runId },
      ...(error ? { fault: error.message } : {}),
    };
  }
}

/** Code that breaks a run in a way that Temporal cannot tell may never come to an end. */
async function within<Value>(limitMs: number, value: Promise<Value>): Promise<Value> {
  const over = abortAfter(limitMs, new HostError('request_timeout', { reason: NO_END }));
  try {
    return await Promise.race([value, aborted(over.signal)]);
  } finally {
    over.clear();
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

async function* firstOf<Item>(items: AsyncIterable<Item>, count: number): AsyncGenerator<Item> {
  let left = count;
  if (left <= 0) return;
  for await (const item of items) {
    yield item;
    if (--left <= 0) return;
  }
}
