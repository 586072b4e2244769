// Ends that somebody has to know of (architecture §4): a child whose own code could not tell its parent, because it was
// terminated, ran out of time or never started; and a parent that could not end its children. Each end of a run that has
// a parent or children stands in `run_ends` until whom it concerns has taken it.
import { codeOf } from '../rules/errors.ts';
import type { RunRow } from '../ports/runs.ts';
import type { UntoldEnd } from '../ports/families.ts';
import { cancelChild, type ChildrenDeps } from './children.ts';

/** Time between two rounds in ms. */
const INTERVAL_MS = 3_000;
/** An end younger than this, in ms, is left to the code of those that it concerns. */
const OWN_TIME_MS = 3_000;
/** Ends looked at in one round. */
const ROUND_ENDS = 50;
/** Children of one parent that are read at once. */
const PAGE = 100;
/** Why a child is cancelled whose parent ended without doing so itself. */
const PARENT_ENDED = 'parent-ended';

export interface FamilyKeeper {
  start(): void;
  /** Waits for the round that runs. */
  stop(): Promise<void>;
  /** One round; `nowMs` for tests. */
  round(nowMs?: number): Promise<void>;
}

export function createFamilyKeeper(deps: ChildrenDeps): FamilyKeeper {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  const round = (nowMs = Date.now()): Promise<void> => {
    running = running
      .then(() => tellEnds(deps, nowMs))
      .catch((error: unknown) =>
        deps.logger.warn('ends of runs are not told, trying again', {
          code: codeOf(error) ?? 'internal_error',
        }),
      );
    return running;
  };
  return {
    round,
    start() {
      timer ??= setInterval(() => void round(), INTERVAL_MS).unref();
    },
    async stop() {
      clearInterval(timer);
      timer = undefined;
      await running;
    },
  };
}

async function tellEnds(deps: ChildrenDeps, nowMs: number): Promise<void> {
  for (const end of await deps.stores.families.untoldEnds(nowMs - OWN_TIME_MS, ROUND_ENDS)) {
    try {
      await tellEnd(deps, end);
    } catch (error) {
      const code = codeOf(error) ?? 'internal_error';
      deps.logger.warn('the end of a run is not told, trying again', {
        runId: end.run.runId,
        code,
      });
      if (code === 'service_unavailable') return;
    }
  }
}

async function tellEnd(deps: ChildrenDeps, { run }: UntoldEnd): Promise<void> {
  const { stores, engine, log } = deps;
  const row = await stores.runs.find(run.tenant, run.runId);
  const parentRunId = row?.input.header.parentRunId;
  if (parentRunId !== undefined) {
    const parent = await log.head(stores.runs.ref(run.tenant, parentRunId));
    if (parent && !parent.closed) await engine.childEnded(parentRunId, { childRunId: run.runId });
  }
  if (row) await cancelChildren(deps, row);
  await stores.families.endTold(run);
}

async function cancelChildren(deps: ChildrenDeps, parent: RunRow): Promise<void> {
  const { stores } = deps;
  let cursor: string | undefined;
  do {
    const page = await stores.families.children(parent, { cursor, limit: PAGE });
    for (const { run, closed } of page.runs) {
      if (closed) continue;
      const child = await stores.runs.find(run.tenant, run.runId);
      if (child?.input.header.isDetached) continue;
      await cancelChild(deps, parent, { childRunId: run.runId, reason: PARENT_ENDED });
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined);
}
