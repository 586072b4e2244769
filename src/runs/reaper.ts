// The reaper (architecture §4): runs whose start was never confirmed are started again from their row; those that
// Temporal refuses for good fail after 30 s, so that no accepted run is forgotten.
import { codeOf } from '../rules/errors.ts';
import { IDEMPOTENCY_RETENTION_SECONDS } from '../rules/limits.ts';
import type { CohortEngine } from '../ports/cohorts.ts';
import type { Stores } from '../ports/stores.ts';
import { startLeftCohorts } from './cohorts.ts';
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
  readonly stores: Pick<Stores, 'runs' | 'idempotency' | 'agents' | 'cohorts' | 'subjects'>;
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
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let expiredAtMs = 0;
  const round = (nowMs = Date.now()): Promise<void> => {
    running = running
      .then(async () => {
        await reap(deps, nowMs);
        await startLeftCohorts(deps, nowMs);
        if (nowMs - expiredAtMs < EXPIRE_INTERVAL_MS) return;
        await deps.stores.idempotency.expire(nowMs - IDEMPOTENCY_RETENTION_SECONDS * 1000);
        await deps.stores.agents.expire(nowMs - AGENT_RECORDS_RETENTION_MS);
        expiredAtMs = nowMs;
      })
      .catch((error: unknown) =>
        deps.logger.warn('reaper round failed', { code: codeOf(error) ?? 'internal_error' }),
      );
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

async function reap(deps: ReaperDeps, nowMs: number): Promise<void> {
  for (const row of await deps.stores.runs.unstarted(nowMs - UNSTARTED_MS, ROUND_RUNS)) {
    try {
      await startRun(deps, row);
    } catch (error) {
      // Temporal or the database is away: everything stays pending and the next round tries again.
      if (codeOf(error) === 'service_unavailable') return;
      if (nowMs - row.createdAtMs > FAIL_AFTER_MS)
        await failRun(deps, row, { cause: codeOf(error) ?? 'internal_error', atMs: nowMs });
    }
  }
}
