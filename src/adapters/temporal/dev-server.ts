// Temporal's dev server as part of this host (architecture §7): started detached from the terminal, adopted when an
// earlier process of this data folder left it behind, restarted when it dies, stopped last. The data folder keeps its
// ports, so that printed links stay valid, and the identity of its process. Java's test server in its place forgets all
// runs when it ends: it is neither adopted nor restarted.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { HostError } from '../../rules/errors.ts';
import type { Logger } from '../../ports/logger.ts';
import { isRunning, recordProcess, type ProcessRecord } from '../../system/processes.ts';
import { BackOff, Deadline, rest } from '../../system/time.ts';
import { obtainProgram, type ProgramOptions, type ServerProgram } from './server-program/index.ts';

/** Time a started server has to answer. */
const START_LIMIT_MS = 60_000;
/** Time an orphan has to answer before it is ended. */
const ADOPT_LIMIT_MS = 3_000;
const PROBE_MS = 50;
/** Time an orderly end may take before SIGKILL. */
const STOP_LIMIT_MS = 8_000;
/** An adopted server is not our child: its end is noticed by looking. */
const WATCH_MS = 500;
const RESTART_FIRST_MS = 100;
const RESTART_MOST_MS = 10_000;
/** A server that has run for so long is no server that dies as it starts. */
const STEADY_MS = 10_000;
const CONNECT_LIMIT_MS = 1_000;
/** A child that is seen to have ended is told of within this time, in ms. */
const EXIT_TOLD_MS = 1_000;
/** Starts in all, where others take the ports that were free when they were chosen. */
const PORT_TRIES = 3;
/** The dev server's own default is one day (architecture §7). */
const RETENTION_SECONDS = 30 * 24 * 3600;
const NAMESPACE = 'default';
const IP = '127.0.0.1';

const DYNAMIC_CONFIG = [
  // Each opens a gate that is set for big clusters; measured by `npm run bench` (architecture §7).
  'system.enableActivityEagerExecution=true',
  'history.transferProcessorMaxPollRPS=2000',
  // Else it tells Temporal's makers each hour which server runs here, and on what.
  'frontend.enableServerVersionCheck=false',
];
/**
 * Tests also want short timers: the default moves a timer by up to a second, looks at a build that drains every three
 * minutes, and deletes a history once its queues say that they are behind its end, which they say twice a minute. A workflow
 * that continues as new within a second of its last run waits for the rest of that second. If something wakes it earlier, the
 * next one waits as much longer: the server's own workflow of builds, after ten changes, for ten seconds, and says nothing of
 * them meanwhile.
 */
const TEST_DYNAMIC_CONFIG = [
  'history.workflowIdReuseMinimalInterval="50ms"',
  'history.timerProcessorMaxTimeShift="50ms"',
  'matching.wv.VersionDrainageStatusVisibilityGracePeriod="1s"',
  'matching.wv.VersionDrainageStatusRefreshInterval="1s"',
  'history.transferProcessorUpdateAckInterval="1s"',
  'history.visibilityProcessorUpdateAckInterval="1s"',
];
const SQLITE_PRAGMAS = ['journal_mode=WAL', 'synchronous=NORMAL'];

export interface DevServerOptions {
  /** Holds the record, the log and the database. */
  readonly dataDir: string;
  /** Nothing survives the server, and timers are quick: for tests. */
  readonly inMemory?: boolean;
  /** With the web UI on a port of its own. */
  readonly ui: boolean;
  readonly program: ProgramOptions;
  readonly logger: Logger;
}

/** The data folder's server that still runs, or a program that can be started. */
export interface LocatedServer {
  readonly kind: ServerProgram['kind'];
  /** Throws HostError temporal_not_started. */
  start(): Promise<DevServer>;
}

export interface DevServer {
  readonly kind: ServerProgram['kind'];
  readonly address: string;
  readonly namespace: string;
  readonly uiUrl: string | undefined;
  readonly adopted: boolean;
  /** Of the running process, which changes with a restart; undefined while it restarts. */
  pid(): number | undefined;
  /** Ends the server in order; never a process that is not the recorded one. */
  stop(): Promise<void>;
}

interface ServerRecord {
  readonly port: number;
  readonly uiPort: number;
  /** Arguments it was started with: another set means another version of this host. */
  readonly args: readonly string[];
  readonly process?: ProcessRecord;
}

function databasePath(dataDir: string): string {
  return join(dataDir, 'temporal.db');
}

/** Begun again with each start. */
function logPath(dataDir: string): string {
  return join(dataDir, 'temporal.log');
}

/** The folder's runs are in a database: a server without it would hide them. */
export function hasKeptRuns(dataDir: string): boolean {
  return existsSync(databasePath(dataDir));
}

/** Throws HostError temporal_not_found. */
export async function locateDevServer(options: DevServerOptions): Promise<LocatedServer> {
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 });
  const old = readRecord(options.dataDir);
  const adopted = old && (await adoptOrEnd(old, options));
  if (adopted) {
    return {
      kind: 'dev',
      start: async () => supervise({ kind: 'dev', record: adopted, adopted: true }, options),
    };
  }
  const program = await obtainProgram(options.program);
  return { kind: program.kind, start: () => startAnew(program, old, options) };
}

/** Starts or adopts the data folder's server. Throws HostError temporal_not_found, temporal_not_started. */
export async function obtainDevServer(options: DevServerOptions): Promise<DevServer> {
  return (await locateDevServer(options)).start();
}

async function startAnew(
  program: ServerProgram,
  old: ServerRecord | undefined,
  options: DevServerOptions,
): Promise<DevServer> {
  for (let tries = PORT_TRIES; ; tries--) {
    const [port, uiPort] = await choosePorts(old, options);
    const args = argsFor(program, options, [port, uiPort]);
    try {
      const record = await start(program, { port, uiPort, args }, options);
      return supervise({ kind: program.kind, record, adopted: false, program }, options);
    } catch (error) {
      const areFree = (await isFree(port)) && (await isFree(uiPort));
      if (tries === 1 || (areFree && !foundPortTaken(options))) throw error;
    }
  }
}

/** It chooses ports for its inner services itself; of these its log alone tells. */
function foundPortTaken({ dataDir }: DevServerOptions): boolean {
  const path = logPath(dataDir);
  return existsSync(path) && /address already in use/i.test(readFileSync(path, 'utf8'));
}

async function adoptOrEnd(
  record: ServerRecord,
  options: DevServerOptions,
): Promise<ServerRecord | undefined> {
  if (!record.process || !isRunning(record.process)) return undefined;
  const args = argsFor({ kind: 'dev' }, options, [record.port, record.uiPort]);
  const same = record.args.join('\n') === args.join('\n');
  if (same && (await answers(record, ADOPT_LIMIT_MS))) {
    options.program.report(
      `Temporal: going on with the server that is still running on port ${record.port}`,
    );
    return record;
  }
  options.program.report(`Temporal: ending a server left behind (process ${record.process.pid})`);
  await end(record.process);
  return undefined;
}

function argsFor(
  { kind }: Pick<ServerProgram, 'kind'>,
  { dataDir, inMemory, ui }: DevServerOptions,
  [port, uiPort]: readonly [number, number],
): string[] {
  if (kind === 'test') return [String(port)];
  const config = inMemory ? [...DYNAMIC_CONFIG, ...TEST_DYNAMIC_CONFIG] : DYNAMIC_CONFIG;
  const database = inMemory ? [] : ['--db-filename', databasePath(dataDir)];
  return [
    ...[
      'server',
      'start-dev',
      '--ip',
      IP,
      '--port',
      String(port),
      '--log-level',
      'error',
      '--log-format',
      'json',
    ],
    ...(ui ? ['--ui-port', String(uiPort)] : ['--headless']),
    ...config.flatMap((value) => ['--dynamic-config-value', value]),
    ...database,
    ...(inMemory ? [] : SQLITE_PRAGMAS.flatMap((pragma) => ['--sqlite-pragma', pragma])),
  ];
}

async function choosePorts(
  old: ServerRecord | undefined,
  { program }: DevServerOptions,
): Promise<[number, number]> {
  const port = old && (await isFree(old.port)) ? old.port : await freePort();
  const uiPort = old && (await isFree(old.uiPort)) ? old.uiPort : await freePort();
  if (old && old.port !== port)
    program.report(`Temporal: port ${old.port} is taken, using ${port}`);
  return [port, uiPort];
}

async function start(
  { kind, path }: ServerProgram,
  record: ServerRecord,
  options: DevServerOptions,
): Promise<ServerRecord> {
  const log = openSync(logPath(options.dataDir), 'w', 0o600);
  const { PATH, HOME, TMPDIR } = options.program.env;
  // Its own session: Ctrl-C in the terminal must not end the server before the worker has drained.
  const child = spawn(path, [...record.args], {
    detached: true,
    stdio: ['ignore', log, log],
    // Nothing else: keys of the host are none of its business, and TEMPORAL_* would change its behaviour.
    env: { PATH, HOME, TMPDIR },
  });
  closeSync(log);
  const failed = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) => resolve(`it ended with ${signal ?? code}`));
  });
  child.unref();
  const started = {
    ...record,
    process: child.pid === undefined ? undefined : recordProcess(child.pid),
  };
  writeRecord(options.dataDir, started);
  const why = await Promise.race([
    failed,
    answers(started, START_LIMIT_MS, kind).then((ok) => {
      if (ok) return undefined;
      const hasEnded = started.process !== undefined && !isRunning(started.process);
      const noAnswer = `no answer in ${START_LIMIT_MS / 1000} s`;
      return hasEnded ? Promise.race([failed, rest(EXIT_TOLD_MS).then(() => noAnswer)]) : noAnswer;
    }),
  ]);
  if (why !== undefined) {
    if (started.process) await end(started.process);
    throw new HostError('temporal_not_started', {
      reason: `Temporal's dev server did not start: ${why}. See ${logPath(options.dataDir)}.`,
    });
  }
  return started;
}

/** True once the frontend serves the namespace; then its retention is what it should be, too. The test server has none. */
async function answers(
  { port, process: identity }: ServerRecord,
  limitMs: number,
  kind: ServerProgram['kind'] = 'dev',
): Promise<boolean> {
  const deadline = new Deadline(limitMs);
  while (!deadline.isOver()) {
    if (identity && !isRunning(identity)) return false;
    const connection = await Connection.connect({
      address: `${IP}:${port}`,
      connectTimeout: CONNECT_LIMIT_MS,
    }).catch(() => undefined);
    if (connection) {
      try {
        if (kind === 'test') return true;
        await connection.withDeadline(Date.now() + CONNECT_LIMIT_MS, () =>
          keepRetention(connection),
        );
        return true;
      } catch {
        // The port answers before the namespace exists: ask again until the limit.
      } finally {
        await connection.close();
      }
    }
    await rest(PROBE_MS);
  }
  return false;
}

async function keepRetention({ workflowService }: Connection): Promise<void> {
  const { config } = await workflowService.describeNamespace({ namespace: NAMESPACE });
  if (Number(config?.workflowExecutionRetentionTtl?.seconds ?? 0) >= RETENTION_SECONDS) return;
  const retention = { seconds: RETENTION_SECONDS } as unknown as NonNullable<
    typeof config
  >['workflowExecutionRetentionTtl'];
  await workflowService.updateNamespace({
    namespace: NAMESPACE,
    config: { workflowExecutionRetentionTtl: retention },
  });
}

interface Obtained {
  readonly kind: ServerProgram['kind'];
  readonly record: ServerRecord;
  readonly adopted: boolean;
  /** Absent for an adopted server: found when it has to be started again. */
  readonly program?: ServerProgram;
}

function supervise(
  { kind, record: first, adopted, program: started }: Obtained,
  options: DevServerOptions,
): DevServer {
  let record = first;
  let stopping = false;
  const stop = new AbortController();
  const watching = (async () => {
    const backOff = new BackOff(RESTART_FIRST_MS, RESTART_MOST_MS);
    let steady = new Deadline(STEADY_MS);
    let program = started;
    while (!stopping) {
      if (record.process && isRunning(record.process)) {
        if (steady.isOver()) backOff.reset();
        await rest(WATCH_MS, stop.signal);
        continue;
      }
      if (stopping) return;
      if (kind === 'test') {
        options.logger.error(
          'the in-memory Temporal server is gone, and all runs with it; start again',
        );
        return;
      }
      options.logger.warn('the Temporal dev server is gone; starting it again', {
        port: record.port,
      });
      try {
        // Runs are reached by this port alone. What answers there may be somebody else's server.
        if (!(await isFree(record.port)))
          throw new HostError('temporal_not_started', {
            reason: `Port ${record.port} is taken by another process.`,
          });
        program ??= await obtainProgram({ ...options.program, orInMemory: false });
        record = await start(program, record, options);
        steady = new Deadline(STEADY_MS);
      } catch (error) {
        // The program may be gone, by an upgrade for one: looked for again.
        program = undefined;
        options.logger.error('the Temporal dev server does not start', {
          error: reasonOf(error),
        });
      }
      await rest(backOff.next(), stop.signal);
    }
  })();
  return {
    kind,
    address: `${IP}:${first.port}`,
    namespace: NAMESPACE,
    uiUrl: options.ui && kind === 'dev' ? `http://${IP}:${first.uiPort}` : undefined,
    adopted,
    pid: () => (record.process && isRunning(record.process) ? record.process.pid : undefined),
    async stop() {
      stopping = true;
      stop.abort();
      await watching;
      if (record.process) await end(record.process);
    },
  };
}

/** What an operator can act on. */
function reasonOf(error: unknown): string {
  const { details, message } = error as HostError;
  return typeof details?.reason === 'string' ? details.reason : message;
}

async function end(identity: ProcessRecord): Promise<void> {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isRunning(identity)) return;
    try {
      process.kill(identity.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return;
      throw error;
    }
    const deadline = new Deadline(STOP_LIMIT_MS);
    while (!deadline.isOver() && isRunning(identity)) await rest(PROBE_MS);
  }
}

function recordPath(dataDir: string): string {
  return join(dataDir, 'temporal.json');
}

function readRecord(dataDir: string): ServerRecord | undefined {
  try {
    return JSON.parse(readFileSync(recordPath(dataDir), 'utf8')) as ServerRecord;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof SyntaxError)
      return undefined;
    throw error;
  }
}

function writeRecord(dataDir: string, record: ServerRecord): void {
  const path = recordPath(dataDir);
  writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export function freePort(): Promise<number> {
  return listen(0).then((port) => port as number);
}

async function isFree(port: number): Promise<boolean> {
  return (await listen(port)) !== undefined;
}

function listen(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen({ port, host: IP, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? address?.port : undefined));
    });
  });
}
