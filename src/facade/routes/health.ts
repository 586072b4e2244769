// /healthz and /readyz: public, without tenant data.
import type { Log } from '../../log/log.ts';
import type { Deployments } from '../../ports/deployments.ts';
import type { RunEngine } from '../../ports/engine.ts';
import type { Logger } from '../../ports/logger.ts';
import type { Stores } from '../../ports/stores.ts';
import { codeOf, type HostError } from '../../rules/errors.ts';
import { within } from '../../system/time.ts';
import type { FacadeDeps, WorkerState } from '../deps.ts';
import { answered, shape, type Declaration, type Route } from '../route.ts';
import { shared } from '../shared.ts';

/** Runs with a stopped projection that readiness names. */
const NAMED_PROBLEMS = 20;
/** As long as a database is waited for, in ms. */
const PROBLEMS_LIMIT_MS = 2_000;
/** An answer serves all who ask within this time, in ms: nobody needs a key to ask. */
const READINESS_MS = 1_000;
/** What builds hold is counted by the server: asked this seldom (ms), and no longer waited for than this. */
const BUILDS_MS = 10_000;
const BUILDS_LIMIT_MS = 2_000;

export const HEALTH = {
  method: 'get',
  path: '/healthz',
  operationId: 'health',
  summary: 'The process is up.',
  access: 'public',
  ofNoMajor: true,
  success: { status: 200, description: 'It is.', schema: shape('Health') },
} as const satisfies Declaration;

export const READINESS = {
  method: 'get',
  path: '/readyz',
  operationId: 'readiness',
  summary:
    'Temporal answers, and the database answers and takes writes; `sqlState`: the code with which it refused. Stopped projections are counted by code, of 20 runs at most, and runs that wait for a worker of their build. Where the process has a worker, `worker` says whether it takes steps of runs, or what it waits for. `keys` says that other processes encrypt with a key which this one does not have.',
  access: 'public',
  ofNoMajor: true,
  success: { status: 200, description: 'Ready.', schema: shape('Readiness') },
  others: [{ status: 503, description: 'Not ready.', schema: shape('Readiness') }],
} as const satisfies Declaration;

export function healthRoutes(deps: FacadeDeps, isDraining: () => boolean): Route[] {
  const look = readinessOf({ ...deps, inMemory: deps.config.inMemory });
  return [answered(HEALTH, () => ({ body: ALIVE })), answered(READINESS, () => look(isDraining()))];
}

/** What /healthz says. */
export const ALIVE = { status: 'ok' } as const;

export interface ReadinessParts {
  readonly engine: Pick<RunEngine, 'ping'>;
  readonly stores: Pick<Stores, 'ping' | 'keyRing'>;
  readonly log: Pick<Log, 'problems'>;
  readonly deployments: Deployments;
  readonly logger: Logger;
  /** Runs end with the process of their Temporal server. */
  readonly inMemory?: boolean | undefined;
  /** Of the worker in this process; absent: there is none. */
  readonly workerState?: (() => WorkerState) | undefined;
}

/** What /readyz answers. */
export function readinessOf(
  parts: ReadinessParts,
): (isDraining: boolean) => Promise<{ readonly status: number; readonly body: object }> {
  const builds = shared(() => buildsOf(parts), BUILDS_MS);
  const look = shared(() => readiness(parts, builds), READINESS_MS);
  return async (draining) => {
    const { temporal, database, sqlState, projection, builds } = await look();
    const worker = workerOf(parts, temporal);
    const isWorking = worker === undefined || worker === 'ok';
    const isMissingKeys = parts.stores.keyRing.missing().length > 0;
    const ready =
      temporal === 'ok' && database === 'ok' && isWorking && !isMissingKeys && !draining;
    const body = {
      status: ready ? 'ready' : 'not-ready',
      temporal,
      // Which of them: runs of the in-memory one end with its process.
      engine: parts.inMemory ? 'temporal-in-memory' : 'temporal',
      database,
      ...(sqlState === undefined ? {} : { sqlState }),
      ...(worker === undefined ? {} : { worker }),
      ...(isMissingKeys ? { keys: 'missing' } : {}),
      projection,
      ...(builds ? { builds } : {}),
      ...(draining ? { draining } : {}),
    };
    return { status: ready ? 200 : 503, body };
  };
}

/** The SDK's worker goes on asking a server that does not answer. */
function workerOf({ workerState }: ReadinessParts, temporal: string): WorkerState | undefined {
  const state = workerState?.();
  return state === 'ok' && temporal !== 'ok' ? 'waits-for-temporal' : state;
}

interface Readiness {
  readonly temporal: string;
  readonly database: string;
  /** Of a database that refuses. */
  readonly sqlState?: string | undefined;
  readonly projection: string | Readonly<Record<string, number>>;
  readonly builds: BuildsState | undefined;
}

/** Runs that wait for a worker of their build concern nobody else: they are told, and the process stays ready. */
interface BuildsState {
  readonly current?: string;
  readonly runsWithoutWorker: number;
}

/** Projection problems concern single runs: they are told, and the process stays ready for all others. */
async function readiness(
  { engine, stores, log, logger }: ReadinessParts,
  look: () => Promise<BuildsState | undefined>,
): Promise<Readiness> {
  const [temporal, database, problems, builds] = await Promise.all([
    stateOf(engine.ping()),
    stateOf(stores.ping()),
    within(PROBLEMS_LIMIT_MS, log.problems(NAMED_PROBLEMS), () => undefined).catch(() => undefined),
    within(BUILDS_LIMIT_MS, look(), () => undefined).catch(() => undefined),
  ]);
  const { sqlState } = database;
  const known = { temporal: temporal.state, database: database.state, sqlState, builds };
  if (!problems) return { ...known, projection: 'unknown' };
  if (problems.length > 0) logger.debug('projection stopped', { problems });
  // Run ids are tenant data: the public report counts by code, the log names the runs.
  const counts: Record<string, number> = {};
  for (const { problem } of problems) counts[problem] = (counts[problem] ?? 0) + 1;
  return { ...known, projection: problems.length === 0 ? 'ok' : counts };
}

async function buildsOf({ deployments, logger }: ReadinessParts): Promise<BuildsState | undefined> {
  const deployment = await deployments.read();
  if (!deployment) return undefined;
  const { currentBuildId, runsWithoutWorker } = deployment;
  if (runsWithoutWorker > 0)
    logger.error('runs wait for a worker of their build, and none is there', {
      runs: runsWithoutWorker,
      builds: deployment.builds.flatMap((one) =>
        one.hasWorker || one.heldRuns === 0 ? [] : [one.buildId],
      ),
    });
  return {
    ...(currentBuildId === undefined ? {} : { current: currentBuildId }),
    runsWithoutWorker,
  };
}

/** `sqlState`: with which the database refuses. */
async function stateOf(
  answer: Promise<void>,
): Promise<{ readonly state: string; readonly sqlState?: string }> {
  try {
    await answer;
    return { state: 'ok' };
  } catch (error) {
    const state = codeOf(error) ?? 'internal_error';
    const { sqlState } = (error as Partial<HostError>).details ?? {};
    return typeof sqlState === 'string' ? { state, sqlState } : { state };
  }
}
