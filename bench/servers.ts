// The servers that the bench starts and ends: the one that `npm start` runs, and a dev server with default settings.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { freePort, obtainDevServer } from '../src/adapters/temporal/dev-server.ts';
import {
  obtainProgram,
  type ProgramOptions,
} from '../src/adapters/temporal/server-program/index.ts';
import type { TemporalTarget } from '../src/adapters/temporal/connection.ts';
import type { Closing } from './closing.ts';
import { benchLogger } from './closing.ts';

const START_LIMIT_MS = 60_000;
const PROBE_MS = 50;
const CONNECT_LIMIT_MS = 1_000;
const STOP_LIMIT_MS = 8_000;
const IP = '127.0.0.1';

export interface ServerOptions {
  readonly folder: string;
  readonly program: ProgramOptions;
  readonly closing: Closing;
}

/** As `npm start` configures it (src/adapters/temporal/dev-server.ts). */
export async function startOwnServer(options: ServerOptions): Promise<TemporalTarget> {
  const server = await obtainDevServer({
    dataDir: join(options.folder, 'own-server'),
    ui: true,
    program: options.program,
    logger: benchLogger,
  });
  options.closing.add(() => server.stop());
  return { address: server.address, namespace: server.namespace };
}

/** What Temporal's dev server has unless it is told otherwise: our own build of it has our settings as its defaults. */
const DEFAULTS = [
  ...['--dynamic-config-value', 'system.enableActivityEagerExecution=false'],
  ...['--dynamic-config-value', 'history.transferProcessorMaxPollRPS=20'],
  ...['--sqlite-pragma', 'journal_mode=delete', '--sqlite-pragma', 'synchronous=full'],
];

/** `temporal server start-dev` with nothing of ours but what lets its runs survive it: a database file. */
export async function startDefaultServer(
  options: ServerOptions,
): Promise<TemporalTarget & { stop(): Promise<void> }> {
  const { path } = await obtainProgram(options.program);
  const port = await freePort();
  const database = join(options.folder, 'default-server.db');
  const child = spawn(
    path,
    [
      ...['server', 'start-dev', '--headless', '--log-level', 'error'],
      ...['--ip', IP, '--port', String(port), '--db-filename', database],
      ...DEFAULTS,
    ],
    { stdio: 'ignore', env: { PATH: options.program.env.PATH, HOME: options.program.env.HOME } },
  );
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_LIMIT_MS);
    await gone;
    clearTimeout(late);
  };
  options.closing.add(stop);
  await untilServing(`${IP}:${port}`);
  return { address: `${IP}:${port}`, namespace: 'default', stop };
}

async function untilServing(address: string): Promise<void> {
  const limit = Date.now() + START_LIMIT_MS;
  for (;;) {
    const connection = await Connection.connect({
      address,
      connectTimeout: CONNECT_LIMIT_MS,
    }).catch(() => undefined);
    const served = await connection?.workflowService
      .describeNamespace({ namespace: 'default' })
      .then(
        () => true,
        () => false,
      );
    await connection?.close();
    if (served) return;
    if (Date.now() > limit) throw new Error(`the server on ${address} does not answer`);
    await sleep(PROBE_MS);
  }
}
