// Histories of runs, replayed by the workflow code of this build (docs/upgrades.md): Temporal's own check, which finds
// whatever commands differ.
import { Client, type Connection } from '@temporalio/client';
import type { DataConverter, PayloadCodec } from '@temporalio/common';
import type { temporal } from '@temporalio/proto';
import { Worker, type ReplayHistoriesIterable } from '@temporalio/worker';
import { codeOf, HostError } from '../../rules/errors.ts';
import { unreadableFor } from '../../rules/unreadable.ts';
import { RUN_TASK_QUEUE } from '../../rules/run-input.ts';
import { abortAfter } from '../../system/time.ts';
import { ANY, onBuild, openWorkflows } from './deployment-calls.ts';
import { GRPC, grpcStatus } from './rpc.ts';
import { withWorkflowThreads } from './workflow-threads.ts';

/** Longest time in ms from one replayed history to the next. */
const REPLAY_LIMIT_MS = 120_000;
const NO_END = 'The replay of a history did not come to an end.';

export interface ReplaySource {
  readonly connection: Connection;
  readonly namespace: string;
  /** Neither it nor the bundle with a failure converter: one that encodes messages would hide why code failed. */
  readonly dataConverter: Pick<DataConverter, 'payloadCodecs'>;
  readonly bundle: { readonly codePath: string };
}

/** A list comes with memos, which nobody asks for here, and which nobody may be able to read. */
const NAMES_ALONE: Pick<DataConverter, 'payloadCodecs'> = {
  payloadCodecs: [
    {
      encode: async (payloads) => payloads,
      decode: async (payloads) =>
        payloads.map(() => ({ metadata: { encoding: new TextEncoder().encode('binary/null') } })),
    },
  ],
};

/** Nobody follows a replay. A sink that is missing would be reported as an error for each hint. */
const NO_HINTS = { journal: { hint: { fn: () => undefined, callDuringReplay: false } } };

/** A segment of a run; `fault`: why this build cannot go on with it. */
export interface ReplayedSegment {
  readonly runId: string;
  readonly temporalRunId: string;
  readonly fault?: string;
  /** It was not replayed: `fault` says why it cannot be read here. */
  readonly isUnread?: true;
}

/** Those that are open, all or of one build; else at most so many of those that have ended. */
export async function* replayHistories(
  { connection, namespace, dataConverter, bundle }: ReplaySource,
  which: 'open' | { readonly build: string } | { readonly ended: number },
): AsyncGenerator<ReplayedSegment> {
  const client = new Client({ connection, namespace, dataConverter });
  const lister = new Client({ connection, namespace, dataConverter: NAMES_ALONE });
  const listed = lister.workflow.list({ query: queryOf(which) });
  const isSome = which !== 'open' && 'ended' in which;
  const chosen = isSome ? firstOf(listed, which.ended) : listed;
  const unread: ReplayedSegment[] = [];
  const some = historiesOf(client, chosen, {
    codecs: dataConverter.payloadCodecs ?? [],
    unread: (segment) => void unread.push(segment),
  });
  // In a thread of its own, with a limit of time for each workflow task; by default a replay has neither.
  const options = { workflowBundle: bundle, dataConverter, debugMode: false, sinks: NO_HINTS };
  const replays = Worker.runReplayHistories(options, some)[Symbol.asyncIterator]();
  for (;;) {
    const next = await within(
      REPLAY_LIMIT_MS,
      withWorkflowThreads(false, () => replays.next()),
    );
    yield* unread.splice(0);
    if (next.done) return;
    const { workflowId, runId, error } = next.value;
    yield {
      ...{ runId: workflowId, temporalRunId: runId },
      ...(error ? { fault: error.message } : {}),
    };
  }
}

function queryOf(which: Parameters<typeof replayHistories>[1]): string {
  if (which === 'open') return openWorkflows(ANY);
  if ('build' in which) return openWorkflows(onBuild(which.build));
  return `TaskQueue = '${RUN_TASK_QUEUE}' AND ExecutionStatus != 'Running'`;
}

/**
 * One at a time, since each is in memory as a whole. One that is gone by now needs no check, and one that nobody can read any
 * more, since its subject was erased, gets none: it has ended. One that cannot be read here is told of, and the others are
 * replayed.
 */
export async function* historiesOf(
  { workflow }: Client,
  listed: AsyncIterable<{ readonly workflowId: string; readonly runId: string }>,
  {
    codecs = [],
    unread = () => undefined,
  }: {
    readonly codecs?: readonly PayloadCodec[];
    readonly unread?: (segment: ReplayedSegment) => void;
  } = {},
): ReplayHistoriesIterable {
  for await (const { workflowId, runId } of listed)
    try {
      const history = await workflow.getHandle(workflowId, runId).fetchHistory();
      await opens(history, codecs);
      yield { workflowId, history };
    } catch (error) {
      const unreadable = unreadableFor(error);
      if (unreadable)
        unread({
          ...{ runId: workflowId, temporalRunId: runId },
          ...{ fault: unreadable.message, isUnread: true },
        });
      else if (codeOf(error) !== 'subject_erased' && grpcStatus(error)?.code !== GRPC.NOT_FOUND)
        throw error;
    }
}

/** By its first payloads: all are sealed with one key. Throws HostError subject_erased, history_undecodable, key_unavailable. */
async function opens(
  { events }: temporal.api.history.v1.IHistory,
  codecs: readonly PayloadCodec[],
): Promise<void> {
  const { input } = events?.[0]?.workflowExecutionStartedEventAttributes ?? {};
  for (const codec of codecs) await codec.decode(input?.payloads ?? []);
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
