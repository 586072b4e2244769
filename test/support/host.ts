// The host for tests: in this process on free ports (startTestHost), or as processes of their own that can be killed
// (spawnHost). Every host has its own Temporal namespace and its own folder.
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig, type Environment } from '../../src/app/config.ts';
import { createHost, type Host } from '../../src/app/host.ts';
import type { BuiltIn, HostWaits } from '../../src/app/parts.ts';
import { createLogger, type LogLevel } from '../../src/app/logger.ts';
import type { FacadeConfig } from '../../src/facade/deps.ts';
import type { RunSnapshot } from '../../schemas/types.generated.ts';
import { count } from '../runner/spending.ts';
import { copyDatabase } from './prepared.ts';
import { sharedDatabase } from './shared-postgres.ts';
import { CACHE_DIR, startTestTemporal } from './temporal.ts';
import { patient } from './machine.ts';
import { ROOT } from './root.ts';

export const TEST_API_KEY = 'owop_test_key_of_the_suite';
/** 32 bytes each; the first encrypts. */
const TEST_ENCRYPTION_KEYS = `new:${Buffer.alloc(32, 7).toString('base64')},old:${Buffer.alloc(32, 9).toString('base64')}`;
const WAIT_LIMIT_MS = patient(30_000);
const WAIT_PROBE_MS = 25;
/** What takes long is looked at less often, by this share of the time that it has taken: each look costs what is waited for. */
const PROBE_SHARE = 0.05;
const WAIT_PROBE_LIMIT_MS = 250;
const RETRY_MS = 200;
const KEY = 'idempotency-key';
const SPAWN_LIMIT_MS = patient(60_000);

export interface TestHostOptions {
  /** Of a PostgreSQL database. */
  readonly databaseUrl?: string;
  /**
   * The embedded database, in `dataDir`: also where a `dataDir` is given and no URL. Otherwise the test run's PostgreSQL is
   * taken where there is one: it costs a fifth of PGlite's start.
   */
  readonly database?: 'pglite';
  readonly encryption?: boolean;
  readonly fixturesDir?: string;
  readonly agentsDir?: string;
  readonly builtIn?: Partial<BuiltIn>;
  /** More of the environment, as a user would set it. */
  readonly env?: Environment;
  /** Kept after stop() when given, so that a second host goes on with it. */
  readonly dataDir?: string;
  /**
   * host:port and namespace to share with another host; `own`: the dev server that `npm start` runs, in the host's
   * folder; absent: the test run's server and a new namespace.
   */
  readonly temporal?: { readonly address: string; readonly namespace: string } | 'own';
  readonly parts?: { readonly facade: boolean; readonly worker: boolean };
  readonly facade?: Partial<FacadeConfig>;
  readonly waits?: HostWaits;
  /** As the host of `npm start` alone takes them. */
  readonly rehearsals?: boolean;
  /** Least level of the lines in `logs`; `warn` when absent. */
  readonly logLevel?: LogLevel;
}

export interface ApiAnswer<T = Record<string, unknown>> {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed when it is JSON, else undefined. */
  readonly body: T;
  readonly text: string;
}

export interface ApiRequest {
  readonly method?: string;
  /** Sent as JSON unless it is a string. */
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** False: a 503 is an answer that the test is about. Default: as the client is. */
  readonly isPatient?: boolean;
}

export interface ApiClient {
  /**
   * Path from the root, with the key of the API; an empty header leaves it out. A patient client sends a request that the
   * host cannot serve now again with the same Idempotency-Key, as a careful user's does: a slow engine fails no test.
   */
  api<T = Record<string, unknown>>(path: string, request?: ApiRequest): Promise<ApiAnswer<T>>;
  /** Starts a run and returns its id; fails the test unless 201. */
  startRun(body: Record<string, unknown>, headers?: Record<string, string>): Promise<string>;
  /** Polls GET /v1/runs/{id} until the predicate holds. */
  waitFor(runId: string, predicate: (snapshot: RunSnapshot) => boolean): Promise<RunSnapshot>;
}

export interface TestHost extends Host, ApiClient {
  readonly dataDir: string;
  readonly env: Environment;
  /** Log lines so far. */
  readonly logs: readonly string[];
}

/** In this process, ready to take runs. */
export async function startTestHost(options: TestHostOptions = {}): Promise<TestHost> {
  count('host');
  const dataDir = options.dataDir ?? (await mkdtemp(join(tmpdir(), 'openwop-host-')));
  const temporal = await temporalFor(options);
  const databaseUrl = await databaseFor(options);
  if (databaseUrl === undefined) await copyDatabase(CACHE_DIR, join(dataDir, 'postgres'));
  const env: Environment = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    OPENWOP_PORT: '0',
    OPENWOP_DATA_DIR: dataDir,
    OPENWOP_CACHE_DIR: CACHE_DIR,
    OPENWOP_API_KEY: TEST_API_KEY,
    OPENWOP_TEST_MODE: 'true',
    OPENWOP_FIXTURES_DIR: options.fixturesDir,
    OPENWOP_AGENTS_DIR: options.agentsDir,
    OPENWOP_ENCRYPTION_KEYS: options.encryption ? TEST_ENCRYPTION_KEYS : undefined,
    DATABASE_URL: databaseUrl,
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporal.namespace,
    ...options.env,
  };
  const logs: string[] = [];
  const host = await createHost({
    config: readConfig(env),
    parts: options.parts ?? { facade: true, worker: true },
    logger: createLogger({
      level: options.logLevel ?? 'warn',
      write: (line) => void logs.push(line),
    }),
    apiKey: env.OPENWOP_API_KEY ?? TEST_API_KEY,
    report: () => {},
    builtIn: { definitions: [], agents: [], scripts: {}, tools: [], ...options.builtIn },
    facade: options.facade,
    ...(options.waits ? { waits: options.waits } : {}),
    ...(options.rehearsals ? { rehearsals: true } : {}),
  });
  if (options.parts?.worker !== false) await until(() => host.workerRunning(), 'the worker runs');
  const stop = async () => {
    await host.stop();
    await temporal.stop();
    if (!options.dataDir) await rm(dataDir, { recursive: true, force: true });
  };
  return { ...host, ...apiClient(host.url, host.apiKey), stop, dataDir, env, logs };
}

/** URL of its PostgreSQL; undefined: PGlite. */
async function databaseFor(options: TestHostOptions): Promise<string | undefined> {
  if (options.databaseUrl !== undefined) return options.databaseUrl;
  const isEmbedded = options.database === 'pglite' || options.dataDir !== undefined;
  return isEmbedded ? undefined : sharedDatabase();
}

async function temporalFor({ temporal }: TestHostOptions) {
  const nothing = { address: undefined, namespace: undefined, stop: async () => {} };
  if (temporal === 'own') return nothing;
  if (temporal) return { ...nothing, ...temporal };
  const shared = await startTestTemporal();
  return {
    address: shared.address,
    namespace: await shared.namespace(),
    stop: () => shared.stop(),
  };
}

/**
 * Polls a condition; throws with `what` when it does not come true within WAIT_LIMIT_MS of its beginning, or of the last
 * change of what `progress` gives.
 */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  { limitMs = WAIT_LIMIT_MS, progress = () => undefined }: UntilOptions = {},
): Promise<void> {
  const beganMs = Date.now();
  let since = beganMs;
  for (let seen: unknown; !(await condition());) {
    const now = progress();
    if (now !== seen) since = Date.now();
    seen = now;
    if (Date.now() > since + limitMs) throw new Error(`waited in vain until ${what}`);
    const probeMs = WAIT_PROBE_MS + (Date.now() - beganMs) * PROBE_SHARE;
    await sleep(Math.min(probeMs, WAIT_PROBE_LIMIT_MS));
  }
}

interface UntilOptions {
  readonly limitMs?: number;
  readonly progress?: () => unknown;
}

/** True: a client may expect another answer to the same request with the same key. */
function isPassing({ status, body }: ApiAnswer): boolean {
  const { error } = (body ?? {}) as { error?: unknown };
  if (status === 503) return error === 'service_unavailable';
  return status === 409 && error === 'idempotency_in_flight';
}

export function apiClient(url: string, apiKey: string, { isPatient = true } = {}): ApiClient {
  async function api<T>(path: string, request: ApiRequest = {}): Promise<ApiAnswer<T>> {
    if (!(request.isPatient ?? isPatient)) return ask<T>(path, request);
    const { method, body } = request;
    const isRead = (method ?? (body === undefined ? 'GET' : 'POST')) === 'GET';
    const headers = isRead ? request.headers : { [KEY]: randomUUID(), ...request.headers };
    const asked = { ...request, headers };
    // Without a key a second request might do a second thing.
    if (!isRead && headers?.[KEY] === '') return ask<T>(path, request);
    const limit = Date.now() + WAIT_LIMIT_MS;
    for (let answer = await ask<T>(path, asked); ; answer = await ask<T>(path, asked)) {
      if (!isPassing(answer as ApiAnswer) || Date.now() > limit) return answer;
      await sleep(RETRY_MS);
    }
  }

  async function ask<T>(path: string, { method, body, headers }: ApiRequest) {
    const response = await fetch(`${url}${path}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      headers: clean({
        authorization: `Bearer ${apiKey}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      }),
      body: typeof body === 'string' || body === undefined ? body : JSON.stringify(body),
      redirect: 'manual',
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json') && text !== '';
    return {
      status: response.status,
      headers: response.headers,
      body: (isJson ? JSON.parse(text) : undefined) as T,
      text,
    };
  }
  return {
    api,
    async startRun(body, headers) {
      const answer = await api<{ runId: string }>('/v1/runs', { body, headers });
      if (answer.status !== 201)
        throw new Error(`POST /v1/runs answered ${answer.status}: ${answer.text}`);
      return answer.body.runId;
    },
    async waitFor(runId, predicate) {
      let last: ApiAnswer<RunSnapshot> | undefined;
      try {
        await until(
          async () => {
            last = await api<RunSnapshot>(`/v1/runs/${runId}`);
            return last.status === 200 && predicate(last.body);
          },
          `run ${runId} is as wanted`,
          { progress: () => last?.text },
        );
      } catch (error) {
        throw new Error(`${(error as Error).message}; last: ${last?.text}`, { cause: error });
      }
      return (last as ApiAnswer<RunSnapshot>).body;
    },
  };
}

/** An empty value leaves a header out. */
function clean(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== ''));
}

export interface SpawnedHost {
  readonly process: ChildProcess;
  /** Base of the API; '' for a worker. */
  readonly url: string;
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** Exit code or signal, when the process is gone. */
  readonly exited: Promise<number | NodeJS.Signals | null>;
  /** Resolves as `exited` does. */
  readonly kill: (signal: NodeJS.Signals) => Promise<number | NodeJS.Signals | null>;
}

/** What each command prints when it takes work. */
const READY_LINE = {
  start: /OpenWOP host +(\S+)\/\.well-known/,
  serve: /OpenWOP facade +(\S+)\/\.well-known/,
  worker: /OpenWOP worker on ()/,
  temporal: /export TEMPORAL_ADDRESS=(\S+)/,
};

/**
 * Runs a command as its own process and resolves when it is ready. The environment is `env` and PATH, HOME only. A data folder
 * without a database gets the prepared one, which is migrated: `spawnCommand` leaves an empty folder empty.
 */
export async function spawnHost(
  kind: keyof typeof READY_LINE,
  env: Environment,
): Promise<SpawnedHost> {
  const { OPENWOP_DATA_DIR: dataDir, DATABASE_URL: url } = env;
  const isEmbedded = kind !== 'temporal' && dataDir !== undefined && url === undefined;
  if (isEmbedded) await copyDatabase(CACHE_DIR, join(dataDir, 'postgres'));
  const spawned = spawnCommand(kind, env);
  const limit = Date.now() + SPAWN_LIMIT_MS;
  for (;;) {
    const ready = READY_LINE[kind].exec(spawned.stdout());
    if (ready) return { ...spawned, url: ready[1] ?? '' };
    if (spawned.process.exitCode !== null || Date.now() > limit) {
      await spawned.kill('SIGKILL');
      throw new Error(`${kind} did not start:\n${spawned.stdout()}\n${spawned.stderr()}`);
    }
    await sleep(WAIT_PROBE_MS);
  }
}

/** The process as it is, ready or not. */
export function spawnCommand(
  kind: keyof typeof READY_LINE | 'rebuild',
  env: Environment,
  args: readonly string[] = [],
): SpawnedHost {
  const program = [join(ROOT, 'src/app/launch.js'), kind, ...args];
  count('program');
  const child = spawn(process.execPath, program, {
    cwd: ROOT,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (piece: Buffer) => void (stdout += piece.toString()));
  child.stderr.on('data', (piece: Buffer) => void (stderr += piece.toString()));
  const gone = new Promise<number | NodeJS.Signals | null>((resolve) => {
    child.once('close', (code, signal) => resolve(signal ?? code));
  });
  return {
    process: child,
    url: '',
    stdout: () => stdout,
    stderr: () => stderr,
    exited: gone,
    kill: (signal) => {
      child.kill(signal);
      return gone;
    },
  };
}
