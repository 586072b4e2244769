// What the roles of a process share: Temporal, the database, the log, and what agents are, may use and say. Built once,
// in the order of their needs (architecture §7).
import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Connection, DataConverter } from '@temporalio/client';
import { loadCatalog, type LoadedCatalog } from '../adapters/catalog/index.ts';
import { createModels, hasLiveModel } from '../adapters/models/index.ts';
import { openStores } from '../adapters/postgres/index.ts';
import { createEncryption, dataConverter, type CodecKeys } from '../adapters/temporal/codec.ts';
import { createCohortEngine } from '../adapters/temporal/cohort-engine.ts';
import { connectTemporal, type TemporalTarget } from '../adapters/temporal/connection.ts';
import { hasKeptRuns, locateDevServer } from '../adapters/temporal/dev-server.ts';
import { createDeployments } from '../adapters/temporal/deployments.ts';
import { createRunEngine } from '../adapters/temporal/engine.ts';
import { createHistoryReader } from '../adapters/temporal/history.ts';
import { createHistoryRemover } from '../adapters/temporal/history-remover.ts';
import {
  FULL_SERVER,
  IN_MEMORY_SERVER,
  type ServerTraits,
} from '../adapters/temporal/server-traits.ts';
import { createAgentRunTools } from '../adapters/tools/agent-run-tools.ts';
import { coreTools } from '../adapters/tools/core-tools.ts';
import { createTools } from '../adapters/tools/index.ts';
import { capabilityKeys, familiesOf } from '../rules/capabilities.ts';
import { DEFAULT_CALLER, type FacadeConfig } from '../facade/deps.ts';
import { hostFacts } from '../facade/host-facts.ts';
import { conformanceAgents, conformanceScripts } from '../facade/seams/conformance-agents.ts';
import { createLog, type Log } from '../log/log.ts';
import { createProjector, type Projector } from '../log/projector.ts';
import { createAgentTools } from '../opensentience/agent-tools.ts';
import type { Core } from '../opensentience/parts.ts';
import type { Catalog, ResolvedAgent } from '../ports/catalog.ts';
import type { CohortEngine } from '../ports/cohorts.ts';
import type { Deployments } from '../ports/deployments.ts';
import type { RunEngine } from '../ports/engine.ts';
import type { HistoryReader, HistoryRemover } from '../ports/history.ts';
import type { Logger } from '../ports/logger.ts';
import type { Models } from '../ports/models.ts';
import type { Stores } from '../ports/stores.ts';
import type { Tool, Tools } from '../ports/tools.ts';
import { createRedactor, type Redactor } from '../rules/redaction.ts';
import { startWatch, type Watch } from '../system/watch.ts';
import type { WorkflowDefinition } from '../../schemas/types.generated.ts';
import type { ProcessBuild } from './build.ts';
import type { Config } from './config.ts';
import { withProgress, type Report } from './progress.ts';
import type { Started } from './started.ts';
import { storeAgain } from './stored-again.ts';

/** Named limits of the orderly end of the parts, in ms; roles have their own. */
export const STOP_LIMITS = { temporal: 20_000, database: 5_000, reads: 3_000, connection: 3_000 };

/** Definitions, agents, scripts and tools that come with the process and not from a folder. */
export interface BuiltIn {
  readonly definitions: readonly WorkflowDefinition[];
  readonly agents: readonly ResolvedAgent[];
  readonly scripts: Readonly<Record<string, unknown>>;
  readonly tools: readonly Tool[];
}

/** Waits of a host in ms, each named after the constant that holds where it is absent. */
export interface HostWaits {
  /** KEY_HELD_MS of the keys of subjects; all processes of a database have the same. */
  readonly keyHeldMs?: number;
  /** ANNOUNCED_MS of the operator's keys. */
  readonly announcedMs?: number;
  /** ROUND_MS of erasures that were left under way. */
  readonly erasureRoundMs?: number;
  /** STOP_LIMIT_MS of a cohort's forks. */
  readonly cohortStopMs?: number;
  /** WAIT_LIMIT_MS of the archiver. */
  readonly archiverWaitMs?: number;
  /** ROUND_EVERY_MS of the expiry of runs. */
  readonly expiryRoundMs?: number;
  /** SHUTDOWN_GRACE_MS of the worker of runs. */
  readonly workerGraceMs?: number;
}

export interface HostOptions {
  readonly config: Config;
  /** Which halves run here. */
  readonly parts: { readonly facade: boolean; readonly worker: boolean };
  readonly logger: Logger;
  /** Bearer key of the facade. */
  readonly apiKey: string;
  /** Lines for a human at the terminal. */
  readonly report: Report;
  readonly builtIn?: BuiltIn;
  /** Runs may be rehearsals: only where nobody else's work waits in the same Temporal and the same database. */
  readonly rehearsals?: boolean;
  /** Gives up obtaining the dev server. */
  readonly signal?: AbortSignal;
  /** For tests: what requests cannot set. */
  readonly facade?: Partial<FacadeConfig>;
  /** For tests. */
  readonly waits?: HostWaits;
}

/** The server that runs live in. */
export interface Temporal extends TemporalTarget {
  readonly uiUrl?: string;
  readonly traits: ServerTraits;
  pid(): number | undefined;
}

interface LocatedTemporal {
  readonly traits: ServerTraits;
  start(started: Started): Promise<Temporal>;
}

/**
 * A database that others may share must not hold runs that end with this process, and runs that are kept must not seem
 * to be gone.
 */
export function mayForget({ database, dataDir }: Config): boolean {
  return database.kind === 'pglite' && !hasKeptRuns(dataDir);
}

/**
 * What the server can do is known before anything is opened: the database follows it. `orInMemory`: one that forgets its
 * runs will do.
 */
export async function locateTemporal(
  { config, logger, report, signal }: Pick<HostOptions, 'config' | 'logger' | 'report' | 'signal'>,
  { orInMemory }: { readonly orInMemory: boolean },
): Promise<LocatedTemporal> {
  if (config.temporal.kind === 'external') {
    const temporal = { ...config.temporal, traits: FULL_SERVER, pid: () => undefined };
    return { traits: FULL_SERVER, start: async () => temporal };
  }
  const what = "Getting Temporal's server ready";
  const located = await withProgress(report, what, () =>
    locateDevServer({
      dataDir: config.dataDir,
      ui: true,
      program: {
        cacheDir: config.cacheDir,
        env: config.env,
        downloadService: config.temporalDownload,
        report,
        orInMemory,
        signal,
      },
      logger,
    }),
  );
  const traits = located.kind === 'test' ? IN_MEMORY_SERVER : FULL_SERVER;
  const start = async (started: Started) => {
    const server = await withProgress(report, what, () => located.start());
    started.add('temporal', STOP_LIMITS.temporal, () => server.stop());
    const { address, namespace, uiUrl } = server;
    return { address, namespace, uiUrl, traits, pid: () => server.pid() };
  };
  return { traits, start };
}

/** Beside a server that forgets, so does the database: an open run without its workflow would wait for ever. */
const FORGETFUL_FOLDER = 'in-memory';

function databaseOf({ database: asked, dataDir, cacheDir }: Config, { keepsRuns }: ServerTraits) {
  if (asked.kind === 'postgres') return { database: asked, contentDir: undefined };
  const database = { ...asked, cacheDir };
  if (keepsRuns) return { database, contentDir: join(dataDir, 'content') };
  const folder = join(dataDir, FORGETFUL_FOLDER);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  return {
    database: { ...database, dir: join(folder, 'postgres') },
    contentDir: join(folder, 'content'),
  };
}

export function newProcessId(): string {
  return `process-${randomUUID()}`;
}

/** `processId`: by which the process announces its keys to others; absent: it neither starts runs nor works on them. */
export async function openDatabase(
  { config, logger, report, waits }: HostOptions,
  started: Started,
  { traits, processId }: { readonly traits: ServerTraits; readonly processId?: string },
): Promise<Stores> {
  const { database, contentDir } = databaseOf(config, traits);
  const stores = await withProgress(report, 'Opening the database', () =>
    openStores({
      ...{ database, contentDir, logger, masterKeys: config.encryptionKeys },
      ...{ processId, keyHeldMs: waits?.keyHeldMs, announcedMs: waits?.announcedMs },
    }),
  );
  started.add('database', STOP_LIMITS.database, () => stores.close());
  return stores;
}

/** Whether the stores are there: a worker that lost one hands out no places for steps (architecture §4.1). */
export function watchStore(
  { logger, parts }: Pick<HostOptions, 'logger' | 'parts'>,
  started: Started,
  stores: Pick<Stores, 'probe'>,
): Watch {
  const [without, again] = parts.worker
    ? [': no more steps of runs are taken here until it is back', ': steps of runs are taken again']
    : ['', ''];
  const watch = startWatch({
    ask: () => stores.probe(),
    onChange: (isThere, error) =>
      isThere
        ? logger.info(`the database and the content store are back${again}`)
        : logger.warn(`the database or the content store is away${without}`, { error }),
  });
  started.add('watch of the stores', STOP_LIMITS.database, () => watch.stop());
  return watch;
}

/** Runs and their logs. */
export interface RunParts {
  /** Of the stores. */
  readonly watch: Watch;
  /** What Temporal keeps of runs goes through it, for client and workers alike. */
  readonly payloads: DataConverter;
  readonly temporal: Temporal;
  readonly stores: Stores;
  readonly build: ProcessBuild;
  /** To Temporal, of everything but the worker's own polls. */
  readonly connection: Connection;
  readonly engine: RunEngine;
  readonly cohortEngine: CohortEngine;
  readonly deployments: Deployments;
  readonly history: HistoryReader;
  readonly histories: HistoryRemover;
  readonly log: Log;
  readonly projector: Projector;
  readonly redactor: Redactor;
}

/** What payloads are encrypted with: the operator's keys, and those of subjects. */
export function codecKeys({
  keyRing,
  subjectKeys,
}: Pick<Stores, 'keyRing' | 'subjectKeys'>): CodecKeys {
  return { ring: keyRing, subjects: subjectKeys };
}

type JoinedParts = Pick<RunParts, 'temporal' | 'stores' | 'build' | 'watch'> & {
  readonly processId: string;
};

export function joinLog(
  { config, logger, apiKey, parts }: HostOptions,
  started: Started,
  { processId, temporal, stores, build, watch }: JoinedParts,
): RunParts {
  const { namespace } = temporal;
  const connection = connectTemporal(temporal);
  const keys = codecKeys(stores);
  const payloads = dataConverter(keys);
  const clientOptions = { connection, namespace, dataConverter: payloads };
  // A worker alone starts children of its runs: they have the revision of its release, and begin on it.
  const pinTo = () => (parts.facade ? undefined : build.pinned());
  const engine = createRunEngine({ ...clientOptions, pinTo });
  const cohortEngine = createCohortEngine(clientOptions);
  const deployments = createDeployments({ connection, namespace });
  const history = createHistoryReader({
    connection,
    namespace,
    codec: createEncryption(keys),
    traits: temporal.traits,
  });
  const histories = createHistoryRemover({ connection, namespace });
  const log = createLog({ stores, history, logger, processId });
  const answers = () => Promise.all([stores.probe(), engine.ping()]);
  const projector = createProjector({ log, stores, logger, processId, answers });
  const redactor = createRedactor([
    ...config.secrets,
    ...(apiKey ? [{ id: 'OPENWOP_API_KEY', value: apiKey }] : []),
  ]);
  started.add('connection', STOP_LIMITS.connection, () => connection.close());
  started.add('history', STOP_LIMITS.reads, () => history.close());
  started.add('log', STOP_LIMITS.reads, () => log.close());
  return {
    ...{ temporal, stores, build, watch, payloads, connection, engine, cohortEngine },
    ...{ deployments, history, histories, log, projector, redactor },
  };
}

/** What runs may be made of. */
export interface AgentParts {
  readonly tools: Tools;
  readonly catalog: Catalog;
  readonly models: Models;
}

/** `core`: where agents run as processes here, their tools are called through it. */
export async function loadAgentParts(
  { config, logger, builtIn }: HostOptions,
  started: Started,
  { stores, log, core }: { readonly stores: Stores; readonly log: Log; readonly core?: Core },
): Promise<AgentParts> {
  const agentTools = createAgentTools({ registry: stores.agents, core });
  const agentRuns = createAgentRunTools(() => catalog);
  const tools = createTools([...coreTools(), ...(builtIn?.tools ?? [])], agentTools, agentRuns);
  const { testMode, escalation } = config;
  const { tenant } = DEFAULT_CALLER;
  const facts = hostFacts({
    ...{ agents: true, tools },
    // Models come after the catalog, whose scripts they take; which providers there are is no capability.
    models: { isLive: () => hasLiveModel(config.models), providers: () => [] },
    config: {
      ...{ testMode, escalation, opensentience: config.opensentience !== undefined },
      ...{ retentionDays: config.retentionDays, testSeams: config.testSeams },
    },
  });
  const catalog: LoadedCatalog = await loadCatalog({
    fixturesDir: config.fixturesDir,
    agentsDir: config.agentsDir,
    builtIn: {
      definitions: builtIn?.definitions ?? [],
      agents: [...(builtIn?.agents ?? []), ...(config.testSeams ? conformanceAgents : [])],
    },
    content: stores.content,
    tenant,
    tools,
    capabilities: capabilityKeys(familiesOf(facts)),
    testMode,
    logger,
  });
  const storing = storeAgain({ catalog, log, logger });
  started.add('catalog', STOP_LIMITS.database, storing);
  const models = createModels({
    scripts: {
      ...builtIn?.scripts,
      ...(config.testSeams ? conformanceScripts : {}),
      ...Object.fromEntries(catalog.scripts),
    },
    ...config.models,
    // What scripts decide is the operator's choice: a caller may name them in test mode, and for the demo's agents.
    scriptedByCaller: testMode ? 'all' : new Set(Object.keys(builtIn?.scripts ?? {})),
  });
  return { tools, catalog, models };
}
