// A played history of a run that starts, goes on and completes, and waiting for what is projected of one.
import type { LogRow } from '../../src/ports/log.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { complete, emitted, HistoryBuilder, memo } from './histories.ts';
import { runRef } from './run-ref.ts';

const LOOK_EVERY_MS = 5;

const pause = () => new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));

/** A history that begins with the task that starts the run. */
export function startedHistory(): HistoryBuilder {
  const built = new HistoryBuilder();
  return built.task(
    memo(built.carrier(emitted('run.started|r', 'run.started', { workflowId: 'w' }))),
  );
}

/** Three tasks: started, then an event, then the end. */
export function threeTasks(): HistoryBuilder {
  const built = startedHistory();
  return built
    .task(memo(built.carrier(emitted('x|1', 'x.y', { n: 1 }))))
    .task(complete(built.carrier(emitted('terminal', 'run.completed', {}))));
}

/** Resolves when the stored log of the run has `count` rows. */
export async function rowsReach(
  stores: Stores,
  runId: string,
  count: number,
): Promise<readonly LogRow[]> {
  for (;;) {
    const rows = await stores.log.read(runRef(runId), { after: -1, limit: 100 });
    if (rows.length >= count) return rows;
    await pause();
  }
}

export async function closes(stores: Stores, runId: string): Promise<void> {
  while (!(await stores.log.head(runRef(runId)))?.closed) await pause();
}

export async function isArchived(stores: Stores, runId: string): Promise<void> {
  while (!(await stores.segments.ofRun(runRef(runId)))[0]?.archive) await pause();
}
