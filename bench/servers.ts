// The servers that the bench starts and ends: the one that `npm start` runs, and a dev server with default settings.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { obtainBinary, type BinaryOptions } from '../src/adapters/temporal/dev-server-binary.ts';
import { freePort, obtainDevServer } from '../src/adapters/temporal/dev-server.ts';
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
  readonly binary: BinaryOptions;
  readonly closing: Closing;
}

/** As `npm start` configures it (src/adapters/temporal/dev-server.ts). */
export async function startOwnServer(options: ServerOptions): Promise<TemporalTarget> {
  const server = await obtainDevServer({
    dataDir: join(options.folder, 'own-server'),
    ui: true,
    binary: options.binary,
    logger: benchLogger,
  });
  options.closing.add(() => server.stop());
  return { address: server.address, namespace: server.namespace };
}

/** `temporal server start-dev` with nothing set but what lets its runs survive it: a database file. */
export async function startDefaultServer(
  options: ServerOptions,
): Promise<TemporalTarget & { stop(): Promise<void> }> {
  const path = await obtainBinary(options.binary);
  const port = await freePort();
  const database = join(options.folder, 'default-server.db');
  const child = spawn(
    path,
    [
      ...['server', 'start-dev', '--headless', '--log-level', 'never'],
      ...['--ip', IP, '--port', String(port), '--db-filename', database],
    ],
    { stdio: 'ignore', env: { PATH: options.binary.env.PATH, HOME: options.binary.env.HOME } },
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
