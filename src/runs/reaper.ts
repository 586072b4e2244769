// The reaper (architecture §4): runs whose start was never confirmed are started again from their row; those that are
// refused for 30 s fail, so that no accepted run is forgotten. One whose row cannot be read, or that cannot be
// asked about, waits, and the others do not wait for it. Ages are counted by the database's clock.
import { codeOf, HostError } from '../rules/errors.ts';
import { isUnreadable } from '../rules/unreadable.ts';
import { IDEMPOTENCY_RETENTION_SECONDS } from '../rules/limits.ts';
import type { CohortEngine, LeftCohort } from '../ports/cohorts.ts';
import type { UnstartedRun } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import { createRounds, roundLimit, type Rounds, type TurnOutcome } from '../log/rounds.ts';
import { startLeftCohorts } from './cohorts.ts';
import type { RunsDeps } from './deps.ts';
import { failRun, startRun } from './start.ts';

/** Time between two rounds in ms. */
const REAPER_INTERVAL_MS = 3_000;
/** A start that takes longer than this is tried by the reaper, in ms. */
const UNSTARTED_MS = 5_000;
/**
 * A run fails that was refused again and again for so long, in ms, and that for so long this process has seen no outage: a
 * server that is just back may know little for a moment. And the longest time between two refusals that count together: what
 * fails again and again has its turn less often.
 */
export const FAIL_AFTER_MS = 30_000;
const REFUSED_APART_MS = 600_000;
/** Idempotency records and records of agents that have served their time are deleted this often, in ms. */
const EXPIRE_INTERVAL_MS = 3_600_000;
/** Audit of agents, and what is left of dead Cores and unused tokens, is kept so long, in ms: 30 days. */
export const AGENT_RECORDS_RETENTION_MS = 30 * 24 * 3_600_000;
/** Runs that are read at once; and how long a round looks at runs, in ms: what is left has its turn in the next. */
const PAGE_RUNS = 50;
const ROUND_LIMIT_MS = 10_000;

export type ReaperDeps = Pick<RunsDeps, 'engine' | 'logger' | 'config'> & {
  readonly stores: Pick<
    Stores,
    'runs' | 'idempotency' | 'agents' | 'cohorts' | 'subjects' | 'ping'
  >;
  readonly cohortEngine: CohortEngine;
  readonly log: Pick<RunsDeps['log'], 'head' | 'endUnstarted'>;
  /** For tests; UNSTARTED_MS and FAIL_AFTER_MS when absent. */
  readonly unstartedMs?: number;
  readonly calmMs?: number;
};

export interface Reaper {
  start(): void;
  /** Waits for the round that runs. */
  stop(): Promise<void>;
  round(): Promise<void>;
}

/** A round that has a signal to end by, and the turns of all rounds. */
interface Round extends ReaperDeps {
  readonly rounds: Rounds;
  readonly signal: AbortSignal;
  /** Everybody who is needed has answered for so long. */
  readonly isCalm: () => boolean;
}

export function createReaper(deps: ReaperDeps): Reaper {
  const { stores, engine, logger, calmMs = FAIL_AFTER_MS } = deps;
  const stopping = new AbortController();
  let calm = roundLimit(calmMs);
  const answers = async () => {
    try {
      await Promise.all([stores.ping(), engine.ping()]);
    } catch (error) {
      calm = roundLimit(calmMs);
      throw error;
    }
  };
  const rounds = createRounds({ logger, answers });
  const at: Round = { ...deps, rounds, signal: stopping.signal, isCalm: () => calm.isOver() };
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isBusy = false;
  /** The last ones that were looked at: what cannot be started keeps nothing behind it waiting. */
  let run: UnstartedRun | undefined;
  let cohort: LeftCohort | undefined;
  let expiry = roundLimit(0);
  const perform = async (): Promise<void> => {
    await rounds.turn({ message: 'runs are not started, trying again', fields: {} }, async () => {
      run = await reap(at, run);
    });
    const cohorts = { message: 'cohorts are not started, trying again', fields: {} };
    await rounds.turn(cohorts, async () => {
      cohort = await startLeftCohorts(at, cohort);
    });
    if (!expiry.isOver()) return;
    const outcomes = [
      await expire(at, 'answers to keys', () =>
        stores.idempotency.expire(IDEMPOTENCY_RETENTION_SECONDS * 1000),
      ),
      await expire(at, 'records of agents', () => stores.agents.expire(AGENT_RECORDS_RETENTION_MS)),
    ];
    if (outcomes.every(({ kind }) => kind === 'done')) expiry = roundLimit(EXPIRE_INTERVAL_MS);
  };
  const round = (): Promise<void> => {
    running = running
      .then(() => {
        isBusy = true;
        return perform();
      })
      .finally(() => (isBusy = false));
    return running;
  };
  return {
    round,
    start() {
      // A round that takes long is not waited for by others.
      timer ??= setInterval(() => void (isBusy || round()), REAPER_INTERVAL_MS).unref();
    },
    async stop() {
      clearInterval(timer);
      timer = undefined;
      stopping.abort();
      await running;
    },
  };
}

function expire(
  { rounds }: Round,
  what: string,
  work: () => Promise<unknown>,
): Promise<TurnOutcome> {
  const message = 'what has served its time is not deleted, trying again';
  return rounds.turn({ message, fields: { what } }, work);
}

/**
 * Page by page, until the round has taken ROUND_LIMIT_MS. Returns the run that the next round goes on behind; undefined: it
 * begins anew.
 */
async function reap(
  at: Round,
  behind: UnstartedRun | undefined,
): Promise<UnstartedRun | undefined> {
  const { stores, rounds, signal, unstartedMs = UNSTARTED_MS } = at;
  const limit = roundLimit(ROUND_LIMIT_MS);
  for (let last = behind; ;) {
    const page = await stores.runs.unstarted(unstartedMs, PAGE_RUNS, last);
    for (const run of page) {
      if (signal.aborted || limit.isOver()) return last;
      const turn = {
        message: 'a run is not started, trying again',
        fields: { runId: run.runId },
      };
      const { kind } = await rounds.turn(turn, () => startLeft(at, run));
      // What was looked at before this one was answered.
      if (kind === 'away') return last;
      last = run;
    }
    if (page.length < PAGE_RUNS) return undefined;
  }
}

async function startLeft(at: Round, run: UnstartedRun): Promise<void> {
  const row = await at.stores.runs.find(run.tenant, run.runId);
  if (!row) return;
  try {
    await startRun(at, row);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const refusedMs = await at.stores.runs.noteRefusal(row, REFUSED_APART_MS);
    if (refusedMs < FAIL_AFTER_MS || !at.isCalm()) throw error;
    await failRun(at, row, { cause: codeOf(error) ?? 'internal_error', atMs: Date.now() });
  }
}

/** What Temporal, or this host, says no to. An outage is none, and neither is a row or a key that cannot be read now. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof HostError)) return false;
  return error.code !== 'service_unavailable' && !isUnreadable(error.code);
}
