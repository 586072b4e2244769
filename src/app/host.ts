// The composition root: builds every adapter and joins them to one host, whole or one half of it (design §1, §7). Parts
// start in the order of their needs and stop in the reverse one.
import { randomUUID } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { CallToolInput } from '../../activities/contract.ts';
import { createActivities } from '../../activities/create-activities.ts';
import { loadCatalog } from '../adapters/catalog/index.ts';
import { createModels } from '../adapters/models/index.ts';
import { openStores } from '../adapters/postgres/index.ts';
import { workflowBundle } from '../adapters/temporal/bundle.ts';
import { createEncryption, dataConverter } from '../adapters/temporal/codec.ts';
import { connectTemporal, type TemporalTarget } from '../adapters/temporal/connection.ts';
import { hasKeptRuns, locateDevServer } from '../adapters/temporal/dev-server.ts';
import { createRunEngine } from '../adapters/temporal/engine.ts';
import { createAgentWorkers } from '../adapters/temporal/agent-workers.ts';
import { createHistoryReader } from '../adapters/temporal/history.ts';
import type { KeptWorker } from '../adapters/temporal/kept-worker.ts';
import {
  FULL_SERVER,
  IN_MEMORY_SERVER,
  type ServerTraits,
} from '../adapters/temporal/server-traits.ts';
import { createRunWorker, installRuntime } from '../adapters/temporal/worker.ts';
import { coreTools } from '../adapters/tools/core-tools.ts';
import { createTools } from '../adapters/tools/index.ts';
import { HostError } from '../rules/errors.ts';
import { createRedactor, type Redactor } from '../rules/redaction.ts';
import { capabilityKeys, familiesOf } from '../facade/capabilities.ts';
import { DEFAULT_CALLER, type FacadeConfig, type FacadeDeps } from '../facade/deps.ts';
import { createReaper } from '../facade/reaper.ts';
import { listen, type Listening } from '../facade/listen.ts';
import { createLog, type Log } from '../log/log.ts';
import { createAgentTools } from '../opensentience/agent-tools.ts';
import { createCore } from '../opensentience/core.ts';
import type { Core } from '../opensentience/parts.ts';
import { createProjector, type Projector } from '../log/projector.ts';
import type { Catalog, ResolvedAgent } from '../ports/catalog.ts';
import type { RunEngine } from '../ports/engine.ts';
import type { Logger } from '../ports/logger.ts';
import type { Stores } from '../ports/stores.ts';
import type { Tool } from '../ports/tools.ts';
import type { WorkflowDefinition } from '../../schemas/types.generated.ts';
import type { Config } from './config.ts';
import { openCoreFolder } from './data-folder.ts';
import { stopInOrder, withProgress, type Report, type StopStep } from './progress.ts';

/** Named limits of the orderly end, in ms. The worker's holds its own grace. */
const STOP_LIMITS = {
  http: 5_000,
  worker: 20_000,
  agents: 20_000,
  projector: 5_000,
  reads: 3_000,
  database: 5_000,
  temporal: 20_000,
  other: 3_000,
};
const VERSION = (
  JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  }
).version;

/** Definitions, agents, scripts and tools that come with the process and not from a folder. */
export interface BuiltIn {
  readonly definitions: readonly WorkflowDefinition[];
  readonly agents: readonly ResolvedAgent[];
  readonly scripts: Readonly<Record<string, unknown>>;
  readonly tools: readonly Tool[];
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
  /** Gives up obtaining the dev server. */
  readonly signal?: AbortSignal;
  /** For tests: what requests cannot set. */
  readonly facade?: Partial<FacadeConfig>;
}

/** The server that runs live in. */
export interface Temporal extends TemporalTarget {
  readonly uiUrl?: string;
  readonly traits: ServerTraits;
  pid(): number | undefined;
}

export interface Host {
  /** Base of the API; '' without facade. */
  readonly url: string;
  /** The same as its users see it. */
  readonly publicUrl: string;
  readonly apiKey: string;
  readonly stores: Stores;
  readonly engine: RunEngine;
  readonly log: Log;
  readonly projector: Projector;
  readonly catalog: Catalog;
  readonly temporal: Temporal;
  /** True while this process polls for workflow tasks. */
  workerRunning(): boolean;
  /** Drains: HTTP, worker, projector, database, and the dev server last. Idempotent. */
  stop(): Promise<void>;
}

/** What is started so far, so that a fault half-way ends it in order. */
class Started {
  readonly #steps: StopStep[] = [];
  #stopping: Promise<void> | undefined;
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** `stop` runs before those of everything added earlier. */
  add(name: string, limitMs: number, stop: StopStep['stop']): void {
    this.#steps.unshift({ name, limitMs, stop });
  }

  stop(): Promise<void> {
    this.#stopping ??= stopInOrder(this.#steps, this.#logger);
    return this.#stopping;
  }
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

async function compose(options: HostOptions, started: Started): Promise<Host> {
  const { config, parts, report } = options;
  const bundling = parts.worker ? bundleFor(config, report) : undefined;
  bundling?.catch(() => undefined);
  const server = await locateTemporal(options);
  const [temporal, stores] = await bothOrNone(
    server.start(started),
    openDatabase(options, started, server.traits),
  );
  const base = joinLog(options, started, { temporal, stores });
  const inside = await loadInside(options, started, stores);
  const worker =
    bundling && startWorker(options, started, { ...base, ...inside, bundle: await bundling });
  await base.projector.start();
  const facade = parts.facade
    ? await startFacade(options, started, { ...base, ...inside })
    : undefined;
  if (worker && config.temporal.kind === 'dev')
    await withProgress(report, 'Starting the worker', () => worker.ready);
  return {
    ...base,
    catalog: inside.catalog,
    url: facade?.url ?? '',
    publicUrl: config.http.publicUrl ?? facade?.url ?? '',
    apiKey: options.apiKey,
    workerRunning: () => worker?.running() ?? false,
    stop: () => started.stop(),
  };
}

/** When one fails the other is awaited, too: what it started is known then and can be ended. */
async function bothOrNone<A, B>(a: Promise<A>, b: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([a, b]);
  return [await a, await b];
}

async function bundleFor(config: Config, report: Report): Promise<{ codePath: string }> {
  const { failureConverterPath } = dataConverter(config);
  return withProgress(report, 'Bundling the workflow code (once)', () =>
    workflowBundle({ cacheDir: config.cacheDir, failureConverterPath }),
  );
}

interface LocatedTemporal {
  readonly traits: ServerTraits;
  start(started: Started): Promise<Temporal>;
}

/** What the server can do is known before anything is opened: the database follows it. */
async function locateTemporal(options: HostOptions): Promise<LocatedTemporal> {
  const { config, logger, report, signal } = options;
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
        // A database that others may share must not hold runs that end with this process, and runs that are kept
        // must not seem to be gone.
        orInMemory: config.database.kind === 'pglite' && !hasKeptRuns(config.dataDir),
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

function databaseOf({ database, dataDir }: Config, { keepsRuns }: ServerTraits) {
  if (database.kind === 'postgres') return { database, contentDir: undefined };
  if (keepsRuns) return { database, contentDir: join(dataDir, 'content') };
  const folder = join(dataDir, FORGETFUL_FOLDER);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { mode: 0o700 });
  return {
    database: { ...database, dir: join(folder, 'postgres') },
    contentDir: join(folder, 'content'),
  };
}

async function openDatabase(
  { config, logger, report }: HostOptions,
  started: Started,
  traits: ServerTraits,
): Promise<Stores> {
  const { database, contentDir } = databaseOf(config, traits);
  const stores = await withProgress(report, 'Opening the database', () =>
    openStores({ database, contentDir, logger }),
  );
  started.add('database', STOP_LIMITS.database, () => stores.close());
  return stores;
}

interface Base {
  readonly temporal: Temporal;
  readonly stores: Stores;
  readonly engine: RunEngine;
  readonly log: Log;
  readonly projector: Projector;
}

function joinLog(
  { config, logger }: HostOptions,
  started: Started,
  { temporal, stores }: Pick<Base, 'temporal' | 'stores'>,
): Base {
  const { namespace } = temporal;
  const processId = `process-${randomUUID()}`;
  const connection = connectTemporal(temporal);
  const engine = createRunEngine({ connection, namespace, dataConverter: dataConverter(config) });
  const history = createHistoryReader({
    connection,
    namespace,
    codec: createEncryption(config.encryptionKeys),
    traits: temporal.traits,
  });
  const log = createLog({ stores, history, logger, processId });
  const projector = createProjector({ log, stores, history, logger, processId });
  started.add('connection', STOP_LIMITS.other, () => connection.close());
  started.add('history', STOP_LIMITS.reads, () => history.close());
  started.add('log', STOP_LIMITS.reads, () => log.close());
  started.add('projector', STOP_LIMITS.projector, () => projector.stop());
  return { temporal, stores, engine, log, projector };
}

type Inside = Awaited<ReturnType<typeof loadInside>>;

async function loadInside(options: HostOptions, started: Started, stores: Stores) {
  const { config, logger, builtIn, apiKey, parts } = options;
  const redactor = createRedactor([
    ...config.secrets,
    ...(apiKey ? [{ id: 'OPENWOP_API_KEY', value: apiKey }] : []),
  ]);
  const core = parts.worker ? await startCore(options, started, { stores, redactor }) : undefined;
  const agentTools = createAgentTools({ registry: stores.agents, runs: stores.runs, core });
  const tools = createTools([...coreTools(), ...(builtIn?.tools ?? [])], agentTools);
  const { testMode, escalation } = config;
  const { tenant } = DEFAULT_CALLER;
  const offered = familiesOf({
    ...{ agents: true, tools: tools.list(tenant).length > 0, live: config.openai !== undefined },
    ...{ providers: [], testMode, escalation },
  });
  const catalog = await loadCatalog({
    fixturesDir: config.fixturesDir,
    agentsDir: config.agentsDir,
    builtIn: { definitions: builtIn?.definitions ?? [], agents: builtIn?.agents ?? [] },
    content: stores.content,
    tenant,
    tools,
    capabilities: capabilityKeys(offered),
    testMode,
    logger,
  });
  const models = createModels({
    scripts: { ...builtIn?.scripts, ...Object.fromEntries(catalog.scripts) },
    openai: config.openai,
    // What scripts decide is the operator's choice: a caller may name them in test mode, and for the demo's agents.
    scriptedByCaller: testMode ? 'all' : new Set(Object.keys(builtIn?.scripts ?? {})),
  });
  return { tools, catalog, models, redactor, core };
}

/** Agents as processes of their own (seed 004), where a folder of their manifests is configured. */
async function startCore(
  { config, logger, report }: HostOptions,
  started: Started,
  { stores, redactor }: { stores: Stores; redactor: Redactor },
): Promise<Core | undefined> {
  const { opensentience, dataDir } = config;
  if (!opensentience) return undefined;
  const { dir, tcpPort, maxFrameBytes } = opensentience;
  const folder = openCoreFolder(dataDir);
  started.add('agents folder', STOP_LIMITS.other, async () => folder.release());
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
  started.add('agents', STOP_LIMITS.agents, () => core.stop());
  return core;
}

function startWorker(
  { config, logger }: HostOptions,
  started: Started,
  parts: Base & Inside & { bundle: { codePath: string } },
): KeptWorker {
  const { temporal, stores, log, projector, models, tools, redactor, bundle, core } = parts;
  const activities = createActivities({ stores, log, models, tools, redactor, logger });
  if (core) {
    const agents = createAgentWorkers({
      target: temporal,
      tenant: DEFAULT_CALLER.tenant,
      activities: { callTool: (input: CallToolInput) => activities.callTool(input) },
      dataConverter: dataConverter(config),
      logger,
    });
    core.onRoutable((agentId, isHere) => agents.note(agentId, isHere));
    for (const agentId of core.routable()) agents.note(agentId, true);
    started.add('agent workers', STOP_LIMITS.worker, () => agents.stop());
  }
  const worker = createRunWorker({
    target: temporal,
    bundle,
    activities,
    dataConverter: dataConverter(config),
    hint: (...hint) => projector.hint(...hint),
    logger,
  });
  started.add('worker', STOP_LIMITS.worker, () => worker.stop());
  return worker;
}

async function startFacade(
  options: HostOptions,
  started: Started,
  parts: Base & Inside,
): Promise<Listening> {
  const { config, logger, apiKey } = options;
  const deps: FacadeDeps = {
    ...parts,
    config: {
      host: config.http.host,
      publicUrl: config.http.publicUrl,
      trustedProxies: config.http.trustedProxies,
      apiKey,
      testMode: config.testMode,
      escalation: config.escalation,
      interruptTimeoutMs: config.interruptTimeoutMs,
      version: VERSION,
      inMemory: !parts.temporal.traits.keepsRuns,
      // A facade of its own cannot know which workers have agents.
      opensentience: config.opensentience !== undefined || !options.parts.worker,
      ...options.facade,
    },
    logger,
  };
  const reaper = createReaper(deps);
  const server = await listen(deps, config.http).catch((error: unknown) => {
    throw portFault(config.http, error);
  });
  reaper.start();
  started.add('reaper', STOP_LIMITS.other, () => reaper.stop());
  started.add('http', STOP_LIMITS.http, () => server.stop());
  return server;
}

function portFault({ host, port }: Config['http'], error: unknown): unknown {
  const what: Record<string, string> = {
    EADDRINUSE: 'is in use. Stop what uses it, or set OPENWOP_PORT to another port.',
    EACCES: 'may not be used by this user. Set OPENWOP_PORT to another port.',
    EADDRNOTAVAIL: 'cannot be bound: OPENWOP_HOST is not an address of this machine.',
  };
  const known = what[(error as NodeJS.ErrnoException).code ?? ''];
  return known
    ? new HostError('config_invalid', { reason: `Port ${port} on ${host} ${known}` }, error)
    : error;
}
