// The client side of PGlite: a Db over a MessagePort to the worker thread (architecture §7). The default database, for
// one process; its twin is pool.ts.
import { mkdir } from 'node:fs/promises';
import { MessageChannel, Worker } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import type { Logger } from '../../ports/logger.ts';
import { compiledEntry } from '../../system/compiled.ts';
import { within } from '../../system/time.ts';
import {
  committable,
  databaseError,
  pastDeadlocks,
  TRANSACTION_LIMIT_MS,
  unavailable,
} from './db.ts';
import type { Db, SqlValue, Transaction } from './db.ts';
import { isInitialised, makeFolder, makeFolderAnew } from './pglite-folder.ts';
import type { PgliteCommand, PgliteNotice, PgliteReply, PgliteRequest } from './pglite-protocol.ts';

/** Longest time in ms that closing waits for the worker's checkpoint before it is ended. */
const CLOSE_LIMIT_MS = 10_000;

// Where the sources run themselves, the worker is TypeScript too, and its thread starts without a loader, also under
// vitest. Modules are named by their full address: nothing may depend on the current folder. The cache is off
// as in src/system/typescript.js.
const WORKER_BOOT = `
  const { loader, module } = require('node:worker_threads').workerData;
  process.env.TSX_DISABLE_CACHE = '1';
  const loaded = loader && import(loader).then(({ register }) => register());
  Promise.resolve(loaded).then(() => import(module));
`;

function workerModules(): { loader?: string; module: string } {
  const module = compiledEntry('src/adapters/postgres/pglite-worker.ts');
  if (module !== undefined) return { module };
  return {
    loader: import.meta.resolve('tsx/esm/api'),
    module: new URL('./pglite-worker.ts', import.meta.url).href,
  };
}

export interface Pglite {
  /** A client of its own: its transactions end when it closes. */
  connect(): Db;
  close(): Promise<void>;
}

/**
 * Starts the worker. `cacheDir`: keeps an empty database, which new folders are copies of. Throws
 * HostError service_unavailable when the folder cannot be opened.
 */
export async function openPglite(dir: string, logger: Logger, cacheDir?: string): Promise<Pglite> {
  await ownFolder(dir);
  if (await isInitialised(dir)) return startWorker(dir, logger);
  const initialise = async (made: string) => (await startWorker(made, logger)).close();
  await makeFolder(dir, cacheDir, initialise);
  try {
    return await startWorker(dir, logger);
  } catch (error) {
    if (cacheDir === undefined) throw error;
    await makeFolderAnew(dir, cacheDir, initialise);
    return startWorker(dir, logger);
  }
}

async function startWorker(dir: string, logger: Logger): Promise<Pglite> {
  const worker = new Worker(WORKER_BOOT, {
    eval: true,
    execArgv: [],
    workerData: { dir, ...workerModules() },
  });
  const clients = new Set<PgliteClient>();
  let closing = false;
  let ready = false;
  let gone = false;
  const lost = (reason: unknown): void => {
    if (ready && !closing) logger.error('the embedded database stopped', { error: String(reason) });
    for (const client of clients) client.lose(reason);
  };
  worker.on('error', lost);
  worker.on('exit', (code) => {
    gone = true;
    lost(new Error(`worker exit ${code}`));
  });
  const first = await notice(worker);
  if (first.kind === 'failed') {
    await worker.terminate();
    throw unavailable(databaseError(first.fault));
  }
  ready = true;
  return {
    connect() {
      const { port1, port2 } = new MessageChannel();
      worker.postMessage({ kind: 'connect', port: port2 } satisfies PgliteCommand, [port2]);
      const client = new PgliteClient(port1, logger, () => clients.delete(client));
      clients.add(client);
      // Nobody answers on the other side of the port.
      if (gone) client.lose(new Error('worker gone'));
      return client;
    },
    async close() {
      if (closing) return;
      closing = true;
      // Its one message now says that the checkpoint is written; a worker that died before says nothing.
      const checkpoint = new Promise((resolve) =>
        worker.once('message', resolve).once('exit', resolve),
      );
      if (!gone) {
        worker.postMessage({ kind: 'close' } satisfies PgliteCommand);
        await within(CLOSE_LIMIT_MS, checkpoint, () => undefined);
      }
      await worker.terminate();
    },
  };
}

async function ownFolder(dir: string): Promise<void> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw unavailable(error);
  }
}

function notice(worker: Worker): Promise<PgliteNotice> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', (error) => reject(unavailable(error)));
  });
}

type Request = PgliteRequest extends infer One
  ? One extends PgliteRequest
    ? Omit<One, 'id'>
    : never
  : never;

class PgliteClient implements Db {
  readonly #port: MessagePort;
  readonly #logger: Logger;
  readonly #left: () => void;
  readonly #waiting = new Map<
    number,
    { resolve: (rows: unknown[]) => void; reject: (error: Error) => void }
  >();
  readonly #listeners = new Map<string, Set<(payload: string) => void>>();
  #lastId = 0;
  #lastTransaction = 0;
  #lost: Error | undefined;

  constructor(port: MessagePort, logger: Logger, left: () => void) {
    this.#port = port;
    this.#logger = logger;
    this.#left = left;
    port.on('message', (message: PgliteReply) => this.#receive(message));
  }

  query<Row>(text: string, values: readonly SqlValue[] = []): Promise<Row[]> {
    return pastDeadlocks(() => this.#send({ op: 'query', text, values })) as Promise<Row[]>;
  }

  transaction<Result>(
    work: (tx: Transaction) => Promise<Result>,
    limitMs: number = TRANSACTION_LIMIT_MS,
  ): Promise<Result> {
    return pastDeadlocks(() => this.#transactionOnce(work, limitMs));
  }

  async #transactionOnce<Result>(
    work: (tx: Transaction) => Promise<Result>,
    limitMs: number,
  ): Promise<Result> {
    const tx = ++this.#lastTransaction;
    const begun = this.#send({ op: 'begin', tx, limitMs });
    // Not awaited: the first statement follows at once, and fails by itself when BEGIN did.
    begun.catch(() => undefined);
    try {
      const result = await committable(
        {
          query: async <Row>(text: string, values: readonly SqlValue[] = []) =>
            (await this.#send({ op: 'query', text, values, tx })) as Row[],
          script: async (text) => void (await this.#send({ op: 'script', text, tx })),
        },
        work,
      );
      await this.#send({ op: 'commit', tx });
      return result;
    } catch (error) {
      await this.#send({ op: 'rollback', tx }).catch(() => undefined);
      throw error;
    }
  }

  async maintain(text: string): Promise<void> {
    await this.query(text);
  }

  async listen(channel: string, callback: (payload: string) => void): Promise<void> {
    const listeners = this.#listeners.get(channel) ?? new Set();
    const first = listeners.size === 0;
    this.#listeners.set(channel, listeners.add(callback));
    if (first) await this.#send({ op: 'listen', channel });
  }

  /** Never: notifications cannot be lost without the process. */
  onReconnect(): () => void {
    return () => undefined;
  }

  async close(): Promise<void> {
    this.lose(new Error('closed'));
    this.#port.close();
    this.#left();
  }

  /** Fails everything that waits, and everything that comes. */
  lose(reason: unknown): void {
    this.#lost ??= unavailable(reason);
    for (const { reject } of this.#waiting.values()) reject(this.#lost);
    this.#waiting.clear();
  }

  #send(request: Request): Promise<unknown[]> {
    if (this.#lost) return Promise.reject(this.#lost);
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#port.postMessage({ ...request, id });
    });
  }

  #receive(message: PgliteReply): void {
    if ('channel' in message) {
      for (const callback of this.#listeners.get(message.channel) ?? []) {
        try {
          callback(message.payload);
        } catch (error) {
          this.#logger.error('a notification listener failed', { error: String(error) });
        }
      }
      return;
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if ('rows' in message) waiting?.resolve([...message.rows]);
    else waiting?.reject(databaseError(message.fault));
  }
}
