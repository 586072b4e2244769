// The composition root: joins parts and roles to one host, whole or one half of it (architecture §1, §7).
import { cohortActivities } from '../../activities/cohort.ts';
import { createActivities } from '../../activities/create-activities.ts';
import { workflowBundle } from '../adapters/temporal/bundle.ts';
import { dataConverter } from '../adapters/temporal/codec.ts';
import { installRuntime } from '../adapters/temporal/worker.ts';
import { HostError } from '../rules/errors.ts';
import { ringOf } from '../rules/key-ring.ts';
import type { Log } from '../log/log.ts';
import type { Projector } from '../log/projector.ts';
import type { Catalog } from '../ports/catalog.ts';
import type { Deployments } from '../ports/deployments.ts';
import type { RunEngine } from '../ports/engine.ts';
import type { Models } from '../ports/models.ts';
import type { Stores } from '../ports/stores.ts';
import { buildOf } from './build.ts';
import type { Config } from './config.ts';
import {
  joinLog,
  loadAgentParts,
  locateTemporal,
  mayForget,
  newProcessId,
  openDatabase,
  watchStore,
  type HostOptions,
  type Temporal,
} from './parts.ts';
import { withProgress, type Report } from './progress.ts';
import { createChildren } from '../runs/children.ts';
import { createCohortMembers } from '../runs/cohort-members.ts';
import { EARLY_ROLES, LATE_ROLES, runSettings, startRoles } from './roles.ts';
import { Started } from './started.ts';

export interface Host {
  /** Base of the API; '' without facade. */
  readonly url: string;
  /** Base of /healthz and /readyz of a worker alone, where it has a port for them; else ''. */
  readonly healthUrl: string;
  /** The same as its users see it. */
  readonly publicUrl: string;
  readonly apiKey: string;
  readonly stores: Stores;
  readonly engine: RunEngine;
  readonly deployments: Deployments;
  readonly log: Log;
  readonly projector: Projector;
  readonly catalog: Catalog;
  readonly models: Models;
  readonly temporal: Temporal;
  /** True while this process polls for workflow tasks. */
  workerRunning(): boolean;
  /** Longest time in ms that `stop` takes. */
  readonly stopLimitMs: number;
  /** Drains: HTTP, worker, projector, database, and the dev server last. Idempotent. */
  stop(): Promise<void>;
}

/** Throws HostError of the part that does not start; what was started is ended before. */
export async function createHost(options: HostOptions): Promise<Host> {
  installRuntime(options.logger);
  const started = new Started(options.logger);
  try {
    return await compose(options, started);
  } catch (error) {
    await started.stop();
    throw error;
  }
}

/** A setting without effect is refused: a process with an API answers these paths there. */
function refuseHealthPort({ config, parts }: HostOptions): void {
  if (!parts.facade || config.http.healthPort === undefined) return;
  const reason =
    'OPENWOP_HEALTH_PORT works with `npm run worker` alone: the API answers /healthz and /readyz itself.';
  throw new HostError('config_invalid', { reason, faults: [reason] });
}

async function compose(options: HostOptions, started: Started): Promise<Host> {
  refuseHealthPort(options);
  const { config, parts, report, logger } = options;
  const bundling = parts.worker ? bundleFor(config, report) : undefined;
  bundling?.catch(() => undefined);
  const build = await buildOf(config);
  const processId = newProcessId();
  const located = await locateTemporal(options, { orInMemory: mayForget(config) });
  const [temporal, stores] = await bothOrNone(
    located.start(started),
    openDatabase(options, started, {
      traits: located.traits,
      ...(parts.facade || parts.worker ? { processId } : {}),
    }),
  );
  const watch = watchStore(options, started, stores);
  const joined = { processId, temporal, stores, build, watch };
  const runs = { ...joinLog(options, started, joined), options };
  const early = await startRoles(EARLY_ROLES, runs, started);
  const inside = { ...early, ...(await loadAgentParts(options, started, early)) };
  const children = createChildren({ ...inside, logger, config: runSettings(options) });
  const cohorts = createCohortMembers({ ...inside, logger, config: runSettings(options) });
  const stopLimitMs = options.waits?.cohortStopMs;
  const activities = {
    ...createActivities({ ...inside, children, logger }),
    ...cohortActivities({ ...inside, cohorts, logger, stopLimitMs }),
  };
  const needs = { ...inside, activities, bundle: await bundling };
  const { server, health, worker, ...host } = await startRoles(LATE_ROLES, needs, started);
  if (worker && config.temporal.kind === 'dev')
    await withProgress(report, 'Starting the worker', () => worker.ready);
  const { engine, deployments, log, projector, catalog, models } = host;
  return {
    ...{ temporal, stores, engine, deployments, log, projector, catalog, models },
    url: server?.url ?? '',
    healthUrl: health?.url ?? '',
    publicUrl: config.http.publicUrl ?? server?.url ?? '',
    apiKey: options.apiKey,
    workerRunning: () => worker?.running() ?? false,
    stopLimitMs: started.stopLimitMs(),
    stop: () => started.stop(),
  };
}

/** When one fails the other is awaited, too: what it started is known then and can be ended. */
async function bothOrNone<A, B>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([a, b]);
  return [await a, await b];
}

async function bundleFor(config: Config, report: Report): Promise<{ codePath: string }> {
  const { failureConverterPath } = dataConverter({ ring: ringOf(config.encryptionKeys) });
  return withProgress(report, 'Bundling the workflow code (once)', () =>
    workflowBundle({ cacheDir: config.cacheDir, failureConverterPath }),
  );
}
