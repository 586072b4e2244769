// The reaper (architecture §4): runs whose start was never confirmed are started again from their row; those that
// Temporal refuses for good fail after 30 s, so that no accepted run is forgotten. One whose row cannot be read, or that
// cannot be asked about, waits, and the others do not wait for it.
import { codeOf, HostError } from '../rules/errors.ts';
import { IDEMPOTENCY_RETENTION_SECONDS } from '../rules/limits.ts';
import type { CohortEngine } from '../ports/cohorts.ts';
import type { UnstartedRun } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import { createRounds, type Rounds } from '../log/rounds.ts';
import { startLeftCohorts, type LeftCohort } from './cohorts.ts';
import type { RunsDeps } from './deps.ts';
import { failRun, startRun } from './start.ts';

/** Time between two rounds in ms. */
const REAPER_INTERVAL_MS = 3_000;
/** A start that takes longer than this is tried by the reaper, in ms. */
const UNSTARTED_MS = 5_000;
/** A refused run fails when it is older than this, in ms. */
export const FAIL_AFTER_MS = 30_000;
/** Idempotency records and records of agents that have served their time are deleted this often, in ms. */
const EXPIRE_INTERVAL_MS = 3_600_000;
/** Audit of agents, and what is left of dead Cores and unused tokens, is kept so long, in ms: 30 days. */
export const AGENT_RECORDS_RETENTION_MS = 30 * 24 * 3_600_000;
/** Runs looked at in one round. */
const ROUND_RUNS = 50;

export type ReaperDeps = Pick<RunsDeps, 'engine' | 'logger' | 'config'> & {
  readonly stores: Pick<
    Stores,
    'runs' | 'idempotency' | 'agents' | 'cohorts' | 'subjects' | 'ping'
  >;
  readonly cohortEngine: CohortEngine;
  readonly log: Pick<RunsDeps['log'], 'head' | 'endUnstarted'>;
};

export interface Reaper {
  start(): void;
  /** Waits for the round that runs. */
  stop(): Promise<void>;
  /** One round; `nowMs` for tests. */
  round(nowMs?: number): Promise<void>;
}

export function createReaper(deps: ReaperDeps): Reaper {
  const { stores, engine, logger } = deps;
  const rounds = createRounds({
    logger,
    answers: () => Promise.all([stores.ping(), engine.ping()]),
  });
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  /** The last ones that were looked at: what cannot be started keeps nothing behind it waiting. */
  let behind: { readonly run?: UnstartedRun; readonly cohort?: LeftCohort } = {};
  let expiredAtMs = 0;
  /** Each part has its turn, whatever becomes of those before it. */
  const part = async (message: string, work: () => Promise<void>): Promise<void> =>
    void (await rounds.turn({ message, fields: {} }, work));
  const perform = async (nowMs: number): Promise<void> => {
    await part('runs are not started, trying again', async () => {
      behind = { ...behind, run: await reap({ ...deps, rounds }, nowMs, behind.run) };
    });
    await part('cohorts are not started, trying again', async () => {
      behind = {
        ...behind,
        cohort: await startLeftCohorts({ ...deps, rounds }, nowMs, behind.cohort),
      };
    });
    if (nowMs - expiredAtMs < EXPIRE_INTERVAL_MS) return;
    await part('what has served its time is not deleted, trying again', async () => {
      await stores.idempotency.expire(nowMs - IDEMPOTENCY_RETENTION_SECONDS * 1000);
      await stores.agents.expire(nowMs - AGENT_RECORDS_RETENTION_MS);
      expiredAtMs = nowMs;
    });
  };
  const round = (nowMs = Date.now()): Promise<void> => {
    running = running.then(() => perform(nowMs));
    return running;
  };
  return {
    round,
    start() {
      timer ??= setInterval(() => void round(), REAPER_INTERVAL_MS).unref();
    },
    async stop() {
      clearInterval(timer);
      timer = undefined;
      await running;
    },
  };
}

/** Returns the run that the next round goes on behind; undefined: it begins anew. */
async function reap(
  deps: ReaperDeps & { readonly rounds: Rounds },
  nowMs: number,
  behind: UnstartedRun | undefined,
): Promise<UnstartedRun | undefined> {
  const { stores, rounds } = deps;
  const unstarted = await stores.runs.unstarted(nowMs - UNSTARTED_MS, ROUND_RUNS, behind);
  for (const { runId, tenant, createdAtMs } of unstarted) {
    const turn = { message: 'a run is not started, trying again', fields: { runId } };
    const { kind } = await rounds.turn(turn, async () => {
      const row = await stores.runs.find(tenant, runId);
      if (!row) return;
      try {
        await startRun(deps, row);
      } catch (error) {
        if (nowMs - createdAtMs <= FAIL_AFTER_MS || !isRefusal(error)) throw error;
        await failRun(deps, row, { cause: codeOf(error) ?? 'internal_error', atMs: nowMs });
      }
    });
    if (kind === 'away') return undefined;
  }
  return unstarted.length === ROUND_RUNS ? unstarted.at(-1) : undefined;
}

/** What Temporal, or the run itself, says no to. An outage, and a key that is not to be had now, are none. */
function isRefusal(error: unknown): boolean {
  const waits = ['service_unavailable', 'history_undecodable'];
  return error instanceof HostError && !waits.includes(error.code);
}
