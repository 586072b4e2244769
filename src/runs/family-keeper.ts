// Ends that somebody has to know of (architecture §4): a child whose own code could not tell its parent, because it was
// terminated, ran out of time or never started; and a parent that could not end its children. Each end of a run that has
// a parent or children stands in `run_ends` until whom it concerns has taken it.
import { codeOf, HostError } from '../rules/errors.ts';
import { nothingOf } from '../rules/unreadable.ts';
import type { RunRef } from '../ports/runs.ts';
import type { UntoldEnd } from '../ports/families.ts';
import type { Stores } from '../ports/stores.ts';
import { createRounds, type Rounds } from '../log/rounds.ts';
import { cancelChild } from './children.ts';
import type { ChildrenDeps } from './deps.ts';

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
  /** Waits for the end, or the child, at which the round is. */
  stop(): Promise<void>;
  round(): Promise<void>;
}

export type FamilyKeeperDeps = ChildrenDeps & {
  readonly stores: Pick<Stores, 'ping'>;
  /** For tests; OWN_TIME_MS when absent. */
  readonly ownTimeMs?: number;
};

type Keeper = FamilyKeeperDeps & {
  readonly rounds: Rounds;
  /** Rejects where Temporal or the database answers nobody. */
  readonly answers: () => Promise<unknown>;
  /** Aborted: what is left stands for the next process. */
  readonly signal: AbortSignal;
};

export function createFamilyKeeper(deps: FamilyKeeperDeps): FamilyKeeper {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  /** The last one that was looked at: what cannot be told keeps nothing behind it waiting. */
  let behind: UntoldEnd | undefined;
  let isBusy = false;
  const stopping = new AbortController();
  const { stores, engine, logger } = deps;
  const answers = () => Promise.all([stores.ping(), engine.ping()]);
  const rounds = createRounds({ logger, answers });
  const keeper: Keeper = { ...deps, rounds, answers, signal: stopping.signal };
  const round = (): Promise<void> => {
    running = running
      .then(async () => {
        isBusy = true;
        const turn = { message: 'ends of runs are not told, trying again', fields: {} };
        await rounds.turn(turn, async () => {
          behind = await tellEnds(keeper, behind);
        });
      })
      .finally(() => (isBusy = false));
    return running;
  };
  return {
    round,
    start() {
      // A round that takes long is not waited for by others.
      timer ??= setInterval(() => void (isBusy || round()), INTERVAL_MS).unref();
    },
    async stop() {
      clearInterval(timer);
      timer = undefined;
      stopping.abort();
      await running;
    },
  };
}

/** Returns the end that the next round goes on behind; undefined: it begins anew. */
async function tellEnds(
  deps: Keeper,
  behind: UntoldEnd | undefined,
): Promise<UntoldEnd | undefined> {
  const { ownTimeMs = OWN_TIME_MS } = deps;
  const ends = await deps.stores.families.untoldEnds(ownTimeMs, ROUND_ENDS, behind);
  for (const end of ends) {
    if (deps.signal.aborted) return undefined;
    const { runId } = end.run;
    const turn = { message: 'the end of a run is not told, trying again', fields: { runId } };
    // Whom it concerns may be the only one who is away.
    const { kind } = await deps.rounds.turn(turn, () => tellEnd(deps, end));
    if (kind === 'away') return behind;
  }
  return ends.length === ROUND_ENDS ? ends.at(-1) : undefined;
}

/** Its children end, whatever becomes of its parent; and neither depends on its own row, which may be damaged. */
async function tellEnd(deps: Keeper, { run }: UntoldEnd): Promise<void> {
  const told = await Promise.allSettled([tellParent(deps, run), cancelChildren(deps, run)]);
  for (const one of told) if (one.status === 'rejected') throw one.reason as Error;
  await deps.stores.families.endTold(run);
}

async function tellParent({ stores, engine, log }: Keeper, run: RunRef): Promise<void> {
  const { parentRunId } = (await stores.families.placeOf(run)) ?? {};
  if (parentRunId === undefined) return;
  const parent = await log.head(stores.runs.ref(run.tenant, parentRunId));
  // Of one whose log is just gone nobody knows whether it waits.
  if (!parent?.closed) await engine.childEnded(parentRunId, { childRunId: run.runId });
}

/** Throws the first error behind the last child: one that cannot be cancelled keeps no other running. */
async function cancelChildren(deps: Keeper, parent: RunRef): Promise<void> {
  const { stores } = deps;
  let cursor: string | undefined;
  const failed: unknown[] = [];
  do {
    const page = await stores.families.children(parent, { cursor, limit: PAGE });
    for (const { run, closed } of page.runs) {
      if (closed) continue;
      if (deps.signal.aborted) throw new HostError('service_unavailable');
      try {
        await cancelOf(deps, parent, run);
      } catch (error) {
        failed.push(error);
        if (codeOf(error) === 'service_unavailable') await deps.answers();
      }
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  if (failed.length > 0) throw failed[0];
}

async function cancelOf(deps: Keeper, parent: RunRef, run: RunRef): Promise<void> {
  const place = await deps.stores.families.placeOf(run);
  if (!place || place.isDetached || (await isReplayed(deps, run))) return;
  await cancelChild(deps, parent, { childRunId: run.runId, reason: PARENT_ENDED });
}

/** A replay of a run that has ended does nothing, and ends by itself: what it is held against stands in its own log. */
async function isReplayed({ stores, log }: Keeper, { tenant, runId }: RunRef): Promise<boolean> {
  // What is damaged replays nothing: it may still call, and pay.
  const { fork } = (await stores.runs.findKept(tenant, runId).catch(nothingOf))?.input ?? {};
  if (fork?.mode !== 'replay') return false;
  const source = await log.head(stores.runs.ref(tenant, fork.sourceRunId));
  return source?.closed === true;
}
