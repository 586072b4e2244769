// Workers side by side (RFC 0118): so many at once, until the join is decided; then nobody new is started, and those
// that are still at work are ended. What completed workers give is taken in the order in which their ends are.
//
//   join      decided when                                             by failure
//   wait-all  all have ended                                           partial where one failed; absorb: satisfied
//   quorum    so many completed                                        failed when so many cannot any more
//   first     one completed                                            failed when none did
//   race      one ended                                                as that one did
//
// fail-fast: the first failure decides any of them. A failed join fails the node, unless its failures are absorbed.
import type { DispatchConfig } from '../schemas/types.generated.ts';
import { dismiss } from './child-runs.ts';
import { isCancellation } from '@temporalio/workflow';
import { failureOf, settled } from './failures.ts';
import type { NodeError } from './frames.ts';
import { failStart, finishWorker, startWorkers, type Worker, type Workers } from './workers.ts';

type JoinPolicy = NonNullable<DispatchConfig['joinPolicy']>;
export type JoinOutcome = 'satisfied' | 'failed' | 'partial';

/** A type, not an interface: it is part of a frame's JSON. */
export type Join = {
  outcome?: JoinOutcome;
  /** Workers that had ended by then: what others come to is not taken. */
  decidedAfter?: number;
  /** Something could not be taken: the node fails once nobody is at work any more. */
  fault?: NodeError;
};

export const DEFAULT_JOIN = { mode: 'wait-all', onChildFailure: 'collect' } as const;

/** Undefined while it is not decided. `ended`: in the order of their ends. */
export function joinOf(
  { mode, quorum = 1, onChildFailure }: JoinPolicy,
  { ended, total }: { readonly ended: readonly Worker[]; readonly total: number },
): JoinOutcome | undefined {
  const completed = ended.filter(({ status }) => status === 'completed').length;
  const failed = ended.length - completed;
  if (failed > 0 && onChildFailure === 'fail-fast') return 'failed';
  switch (mode) {
    case 'wait-all':
      if (ended.length < total) return undefined;
      return failed === 0 || onChildFailure === 'absorb' ? 'satisfied' : 'partial';
    case 'race':
      if (ended.length === 0) return undefined;
      return ended[0]?.status === 'completed' ? 'satisfied' : 'failed';
    case 'first':
    case 'quorum': {
      const needed = mode === 'first' ? 1 : quorum;
      if (completed >= needed) return 'satisfied';
      return total - failed < needed ? 'failed' : undefined;
    }
  }
}

interface FanOut {
  readonly all: Workers;
  readonly join: Join;
  /** Decides the join, once it can be, or as this. */
  readonly decide: (as?: JoinOutcome) => void;
}

/** Runs the workers until the join is decided and nobody is at work any more. Throws node failures then. */
export async function fanOut(fan: FanOut): Promise<void> {
  const { all, join, decide } = fan;
  const { workers, config } = all;
  decide();
  const atWork = workers.filter(({ phase }) => phase === 'began' || phase === 'running');
  const free = Math.max(0, (config.maxConcurrency ?? workers.length) - atWork.length);
  const next = workers.filter(({ phase }) => phase === 'waiting').slice(0, free);
  const first = join.outcome ? atWork : [...atWork, ...next];
  await settled(batchesOf(first).map((batch) => startBatch(fan, batch)));
  await settled(first.map((worker) => lane(fan, worker)));
}

interface Batch {
  readonly step: string;
  readonly workers: Worker[];
}

/** A segment that ended before some were started left them to this one, each in the batch that it began in. */
function batchesOf(workers: readonly Worker[]): readonly Batch[] {
  const batches = new Map<string, Batch>();
  for (const worker of workers) {
    const { startedBy: step = 'batch' } = worker;
    const batch = batches.get(step) ?? { step, workers: [] };
    batch.workers.push(worker);
    batches.set(step, batch);
  }
  return [...batches.values()];
}

async function startBatch(fan: FanOut, { step, workers }: Batch): Promise<void> {
  await startWorkers(fan.all, step, workers).catch((error: unknown) =>
    noteFault(fan, error, workers),
  );
}

/** One worker after the other, while there are any and the join is not decided. */
async function lane(fan: FanOut, first: Worker): Promise<void> {
  const { all, join } = fan;
  let worker: Worker | undefined = first;
  while (worker && !(worker.phase === 'waiting' && join.outcome)) {
    try {
      await startWorkers(all, worker.step, [worker]);
      if (join.outcome) await release(all, [worker]);
      await finishWorker(all, worker, () => join.outcome === undefined);
    } catch (error) {
      noteFault(fan, error, [worker]);
    }
    if (join.outcome) await release(all, all.workers);
    worker = all.workers.find(({ phase }) => phase === 'waiting');
  }
}

/** Ends those that nobody needs any more. */
async function release({ visit }: Workers, workers: readonly Worker[]): Promise<void> {
  await Promise.all(
    workers.map(async ({ phase, child }) => {
      if (phase === 'running' && child) await dismiss(visit, child, 'not-needed');
    }),
  );
}

/** Of these workers. Throws what is no failure of a node: a cancellation, a fault of our own. */
function noteFault(
  { all, join, decide }: FanOut,
  error: unknown,
  workers: readonly Worker[],
): void {
  const failure = isCancellation(error) ? undefined : failureOf(error);
  if (!failure) throw error;
  const { code, message } = failure;
  join.fault ??= { code, message };
  decide('failed');
  failStart(all, workers, failure);
}
