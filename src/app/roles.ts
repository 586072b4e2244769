// What a process does besides holding its parts: one row per role, in the order of start; they stop in the reverse one.
// Each half can be started alone (architecture §1).
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { CallToolInput, CohortActivities } from '../../activities/contract.ts';
import type { createActivities } from '../../activities/create-activities.ts';
import { createAgentWorkers } from '../adapters/temporal/agent-workers.ts';
import type { KeptWorker } from '../adapters/temporal/kept-worker.ts';
import { deploymentOptions, keepPromoted } from '../adapters/temporal/versioning.ts';
import { createRunWorker } from '../adapters/temporal/worker.ts';
import { DEFAULT_CALLER, type FacadeDeps, type WorkerState } from '../facade/deps.ts';
import { listenForHealth } from '../facade/listen-health.ts';
import { listen, type Listening } from '../facade/listen.ts';
import { createArchiver } from '../log/archiver.ts';
import { createSweeper } from '../log/sweeper.ts';
import type { RunRef } from '../ports/runs.ts';
import type { RunSettings } from '../runs/deps.ts';
import { DAY_MS } from '../rules/limits.ts';
import { createExpirer } from '../log/expirer.ts';
import { createFamilyKeeper } from '../runs/family-keeper.ts';
import { createErasureKeeper } from '../runs/erasure-keeper.ts';
import { createReaper } from '../runs/reaper.ts';
import { createCore } from '../opensentience/core.ts';
import type { Core } from '../opensentience/parts.ts';
import { HostError } from '../rules/errors.ts';
import { within } from '../system/time.ts';
import { openCoreFolder } from './data-folder.ts';
import { type AgentParts, type HostOptions, type RunParts } from './parts.ts';
import { SDK_VERSION, VERSION } from './versions.ts';
import { withProgress } from './progress.ts';
import type { Started } from './started.ts';

/** What roles hand to those behind them, and to who built the host. */
export interface Given {
  /** Absent where no agents run as processes. */
  readonly core?: Core;
  readonly worker?: KeptWorker;
  readonly server?: Listening;
  readonly health?: Listening;
}

export interface Role<Needs> {
  readonly name: string;
  readonly half: 'facade' | 'worker' | 'both';
  /** Longest orderly end, in ms. */
  readonly stopLimitMs: number;
  /** Undefined where the configuration asks for none. */
  start(needs: Needs): Promise<RunningRole | undefined>;
}

interface RunningRole {
  stop(): Promise<void>;
  readonly gives?: Given;
}

/** Starts the roles of this process, one after the other; what they give is seen by those behind them. */
export async function startRoles<Needs extends { readonly options: HostOptions }>(
  roles: readonly Role<Needs>[],
  needs: Needs,
  started: Started,
): Promise<Needs & Given> {
  const { parts } = needs.options;
  let known: Needs & Given = needs;
  for (const role of roles) {
    if (role.half !== 'both' && !parts[role.half]) continue;
    const running = await role.start(known);
    if (!running) continue;
    started.add(role.name, role.stopLimitMs, () => running.stop());
    known = { ...known, ...running.gives };
  }
  return known;
}

/** What is there before it is known what agents are. */
export interface EarlyNeeds extends Given, RunParts {
  readonly options: HostOptions;
}

export interface LateNeeds extends EarlyNeeds, AgentParts {
  readonly activities: ReturnType<typeof createActivities> & CohortActivities;
  /** Of the workflow code; only where workflows run. */
  readonly bundle?: { readonly codePath: string };
}

/** Keeps logs up to their histories (architecture §3.4). */
const projector: Role<EarlyNeeds> = {
  name: 'projector',
  half: 'both',
  stopLimitMs: 5_000,
  async start({ projector }) {
    await projector.start();
    return { stop: () => projector.stop() };
  },
};

/** Ends that no worker saw (architecture §3.4): found by asking Temporal, and caught up by the projector. */
const sweeper: Role<EarlyNeeds> = {
  name: 'sweeper',
  half: 'both',
  stopLimitMs: 5_000,
  async start({ stores, history, projector, options: { logger } }) {
    const catchUp = (run: RunRef) => projector.catchUp(run);
    const running = createSweeper({ stores, history, catchUp, logger });
    running.start();
    return { stop: () => running.stop() };
  },
};

/** Archives histories of closed segments while the projector has nothing to do (architecture §3.6). */
const archiver: Role<EarlyNeeds> = {
  name: 'archiver',
  half: 'both',
  stopLimitMs: 5_000,
  async start({ stores, history, projector, options: { logger, waits } }) {
    const quietMs = () => projector.quietMs();
    const waitLimitMs = waits?.archiverWaitMs;
    const running = createArchiver({ stores, history, quietMs, logger, waitLimitMs });
    projector.onClosed(() => running.note());
    running.start();
    return { stop: () => running.stop() };
  },
};

/** Agents as processes of their own (seed 004), where a folder of their manifests is configured. */
const agents: Role<EarlyNeeds> = {
  name: 'agents',
  half: 'worker',
  stopLimitMs: 20_000,
  async start({ options: { config, logger, report }, stores, redactor }) {
    const { opensentience, dataDir } = config;
    if (!opensentience) return undefined;
    const { dir, tcpPort, maxFrameBytes } = opensentience;
    const folder = openCoreFolder(dataDir);
    try {
      const core = await withProgress(report, 'Starting the agents', () =>
        createCore({
          agentsDir: dir,
          dataDir: folder.path,
          socketDir: join(folder.path, 'opensentience'),
          tenant: DEFAULT_CALLER.tenant,
          registry: stores.agents,
          redactor,
          logger,
          coreVersion: VERSION,
          environment: config.env,
          instanceId: `core-${randomUUID()}`,
          ...(tcpPort === undefined ? {} : { tcpPort }),
          ...(maxFrameBytes === undefined ? {} : { limits: { maxFrameBytes } }),
        }),
      );
      return { gives: { core }, stop: () => core.stop().finally(() => folder.release()) };
    } catch (error) {
      folder.release();
      throw error;
    }
  },
};

/** Calls of tools in agents that are processes here, each agent's from a queue of its own. */
const agentQueues: Role<LateNeeds> = {
  name: 'agent queues',
  half: 'worker',
  stopLimitMs: 20_000,
  async start({ options: { logger }, core, temporal, activities, payloads }) {
    if (!core) return undefined;
    const workers = createAgentWorkers({
      target: temporal,
      tenant: DEFAULT_CALLER.tenant,
      activities: { callTool: (input: CallToolInput) => activities.callTool(input) },
      dataConverter: payloads,
      logger,
    });
    core.onRoutable((agentId, isTaken) => workers.note(agentId, isTaken));
    for (const agentId of core.routable()) workers.note(agentId, true);
    return { stop: () => workers.stop() };
  },
};

/** Workflow code and the activities of runs. Its limit holds the worker's own grace. */
const worker: Role<LateNeeds> = {
  name: 'worker',
  half: 'worker',
  stopLimitMs: 20_000,
  async start(needs) {
    const { temporal, bundle, activities, projector, build, watch, payloads } = needs;
    const { config, logger, waits } = needs.options;
    if (!bundle) throw new Error('workflows run where their code is bundled');
    const source = buildSource(needs);
    const running = createRunWorker({
      target: temporal,
      bundle,
      activities,
      dataConverter: payloads,
      hint: (...hint) => projector.hint(...hint),
      logger,
      deployment: async () => {
        const deployment = await deploymentOptions(source);
        build.note(deployment !== undefined);
        return deployment;
      },
      stackTraces: config.workflowStackTraces,
      cachedRuns: config.cachedRuns,
      store: watch,
      graceMs: waits?.workerGraceMs,
    });
    return { gives: { worker: running }, stop: () => running.stop() };
  },
};

function buildSource({ build, connection, temporal, options: { logger } }: LateNeeds) {
  const { namespace } = temporal;
  return { ...build, versioning: build.versioning, connection, namespace, logger };
}

/** New runs go to this build, where nobody else is to say so (docs/upgrades.md). */
const promoter: Role<LateNeeds> = {
  name: 'promoter',
  half: 'worker',
  stopLimitMs: 1_000,
  async start(needs) {
    const stopping = new AbortController();
    const { signal } = stopping;
    const promoted = keepPromoted({ ...buildSource(needs), signal }).catch((error: unknown) =>
      needs.options.logger.error('the build is not promoted', { error }),
    );
    return {
      async stop() {
        stopping.abort();
        await promoted;
      },
    };
  },
};

/** What the operator decided for every run, whoever starts it. */
export function runSettings({ config, rehearsals, facade = {} }: HostOptions): RunSettings {
  const { forceContinueAsNewAfter } = facade;
  return {
    escalation: config.escalation,
    testMode: config.testMode,
    interruptTimeoutMs: config.interruptTimeoutMs,
    ...(rehearsals ? { rehearsals } : {}),
    ...(forceContinueAsNewAfter === undefined ? {} : { forceContinueAsNewAfter }),
  };
}

function facadeDeps(needs: LateNeeds): FacadeDeps {
  const { config, logger, apiKey, facade, parts } = needs.options;
  return {
    ...needs,
    config: {
      host: config.http.host,
      publicUrl: config.http.publicUrl,
      trustedProxies: config.http.trustedProxies,
      apiKey,
      testMode: config.testMode,
      testSeams: config.testSeams,
      ...(config.retentionDays === undefined ? {} : { retentionDays: config.retentionDays }),
      ...runSettings(needs.options),
      version: VERSION,
      sdkVersion: SDK_VERSION,
      inMemory: !needs.temporal.traits.keepsRuns,
      erasure: config.encryptionKeys.length > 0,
      // A facade of its own cannot know which workers have agents.
      opensentience: config.opensentience !== undefined || !parts.worker,
      ...facade,
    },
    logger,
    workerState: workerState(needs),
  };
}

/** Accepted runs that did not start are started again, or fail (architecture §4); records that served their time go. */
const reaper: Role<LateNeeds> = {
  name: 'reaper',
  half: 'facade',
  stopLimitMs: 3_000,
  async start(needs) {
    const config = runSettings(needs.options);
    const running = createReaper({ ...needs, logger: needs.options.logger, config });
    running.start();
    return { stop: () => running.stop() };
  },
};

/** Ends of children and parents whose own code could not tell them (architecture §4). */
const families: Role<LateNeeds> = {
  name: 'families',
  half: 'worker',
  stopLimitMs: 5_000,
  async start(needs) {
    const { logger } = needs.options;
    const running = createFamilyKeeper({ ...needs, logger, config: runSettings(needs.options) });
    running.start();
    return { stop: () => running.stop() };
  },
};

/** Runs that ended long enough ago expire (architecture §3.7), and what is left of those that have is deleted. */
const expirer: Role<LateNeeds> = {
  name: 'expirer',
  half: 'both',
  stopLimitMs: 5_000,
  async start({ stores, histories, engine, options: { config, logger, waits } }) {
    const { retentionDays } = config;
    const running = createExpirer({
      ...{ stores, histories, engine, logger, roundMs: waits?.expiryRoundMs },
      ...(retentionDays === undefined ? {} : { keptMs: retentionDays * DAY_MS }),
    });
    running.start();
    return { stop: () => running.stop() };
  },
};

/** How long in ms a stop waits for the round of the erasures. */
const ERASURES_STOP_MS = 5_000;

/** Erasures that were left under way (architecture §10.1). */
const erasures: Role<LateNeeds> = {
  name: 'erasures',
  half: 'facade',
  stopLimitMs: 10_000,
  async start(needs) {
    const { logger, waits } = needs.options;
    const roundMs = waits?.erasureRoundMs;
    const running = createErasureKeeper({ ...needs, logger, roundMs });
    running.start();
    // A rewrite of the table of keys may take longer: it ends with the database's connections.
    return { stop: () => within(ERASURES_STOP_MS, running.stop(), () => undefined) };
  },
};

/** The API and its pages. */
const http: Role<LateNeeds> = {
  name: 'http',
  half: 'facade',
  stopLimitMs: 5_000,
  async start(needs) {
    const { config } = needs.options;
    const server = await listen(facadeDeps(needs), config.http).catch((error: unknown) => {
      throw portFault({ ...config.http, variable: 'OPENWOP_PORT' }, error);
    });
    return { gives: { server }, stop: () => server.stop() };
  },
};

/** Of a worker alone: whether it takes steps of runs. */
const health: Role<LateNeeds> = {
  name: 'health',
  half: 'worker',
  stopLimitMs: 5_000,
  async start(needs) {
    const { config, logger } = needs.options;
    const { host, healthPort: port } = config.http;
    if (port === undefined) return undefined;
    const parts = { ...needs, logger, workerState: workerState(needs) };
    const running = await listenForHealth(parts, { host, port }).catch((error: unknown) => {
      throw portFault({ host, port, variable: 'OPENWOP_HEALTH_PORT' }, error);
    });
    return { gives: { health: running }, stop: () => running.stop() };
  },
};

function workerState({ worker, watch }: LateNeeds): (() => WorkerState) | undefined {
  if (!worker) return undefined;
  return () => {
    if (!watch.isThere()) return 'waits-for-store';
    return worker.running() ? 'ok' : 'waits-for-temporal';
  };
}

interface Port {
  readonly host: string;
  readonly port: number;
  readonly variable: string;
}

function portFault({ host, port, variable }: Port, error: unknown): unknown {
  const what: Record<string, string> = {
    EADDRINUSE: `is in use. Stop what uses it, or set ${variable} to another port.`,
    EACCES: `may not be used by this user. Set ${variable} to another port.`,
    EADDRNOTAVAIL: 'cannot be bound: OPENWOP_HOST is not an address of this machine.',
  };
  const known = what[(error as NodeJS.ErrnoException).code ?? ''];
  return known
    ? new HostError('config_invalid', { reason: `Port ${port} on ${host} ${known}` }, error)
    : error;
}

/** Before the catalog is loaded: whose tools agents bring is known then. */
export const EARLY_ROLES: readonly Role<EarlyNeeds>[] = [projector, sweeper, archiver, agents];
export const LATE_ROLES: readonly Role<LateNeeds>[] = [
  agentQueues,
  worker,
  promoter,
  reaper,
  families,
  expirer,
  erasures,
  health,
  http,
];
