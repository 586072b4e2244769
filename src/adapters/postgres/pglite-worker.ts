// PGlite in its own thread (architecture §7): one connection, shared by its clients in turns. A turn is one statement
// or one transaction; a transaction ends by itself after its limit and when its client goes away.
import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import type {
  PgliteCommand,
  PgliteFault,
  PgliteNotice,
  PgliteReply,
  PgliteRequest,
} from './pglite-protocol.ts';

/** Turns that may wait; above it requests are refused, so that a stuck database shows instead of eating memory. */
const WAITING_TURNS_LIMIT = 10_000;
const INT8 = 20;

interface OpenTransaction {
  /** Settles when the transaction has its turn and has begun. */
  readonly begun: Promise<void>;
  /** Idempotent; the first call decides. */
  end(command: 'COMMIT' | 'ROLLBACK'): Promise<void>;
  ended: boolean;
}

class Refused extends Error {
  readonly code: string;
  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}

/** First come, first served. */
class Turns {
  #tail: Promise<void> = Promise.resolve();
  #waiting = 0;

  /** Resolves to the function that ends the turn. */
  async take(): Promise<() => void> {
    if (this.#waiting >= WAITING_TURNS_LIMIT)
      throw new Refused('too many requests wait for the database', '53400');
    this.#waiting++;
    const before = this.#tail;
    let release = (): void => undefined;
    this.#tail = new Promise((resolve) => (release = resolve));
    await before;
    this.#waiting--;
    return release;
  }
}

function faultOf(error: unknown): PgliteFault {
  const { message, code, constraint } = error as {
    message?: string;
    code?: string;
    constraint?: string;
  };
  return { message: message ?? String(error), code, constraint };
}

function beginTransaction(pg: PGlite, turns: Turns, limitMs: number): OpenTransaction {
  let release = (): void => undefined;
  let timer: NodeJS.Timeout | undefined;
  const begun = (async () => {
    release = await turns.take();
    await pg.exec('BEGIN');
    timer = setTimeout(() => void transaction.end('ROLLBACK'), limitMs);
  })();
  const transaction: OpenTransaction = {
    begun,
    ended: false,
    async end(command) {
      if (transaction.ended)
        throw new Refused('the transaction took too long and was rolled back', '25P04');
      transaction.ended = true;
      try {
        await begun;
        await pg.exec(command);
      } finally {
        clearTimeout(timer);
        release();
      }
    },
  };
  begun.catch(() => release());
  return transaction;
}

function serve(pg: PGlite, turns: Turns, port: MessagePort): void {
  const transactions = new Map<number, OpenTransaction>();
  const unlisten: (() => Promise<void>)[] = [];
  const reply = (message: PgliteReply): void => port.postMessage(message);

  async function inTurn<Result>(
    tx: number | undefined,
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (tx !== undefined) {
      const transaction = transactions.get(tx);
      await transaction?.begun;
      if (!transaction || transaction.ended) throw new Refused('the transaction is over', '25P04');
      return work();
    }
    const release = await turns.take();
    try {
      return await work();
    } finally {
      release();
    }
  }

  async function answer(request: PgliteRequest): Promise<readonly unknown[]> {
    switch (request.op) {
      case 'query':
        return (await inTurn(request.tx, () => pg.query(request.text, [...request.values]))).rows;
      case 'script':
        await inTurn(request.tx, () => pg.exec(request.text));
        return [];
      case 'begin': {
        const transaction = beginTransaction(pg, turns, request.limitMs);
        transactions.set(request.tx, transaction);
        await transaction.begun;
        return [];
      }
      case 'commit':
      case 'rollback': {
        const transaction = transactions.get(request.tx);
        transactions.delete(request.tx);
        await transaction?.end(request.op === 'commit' ? 'COMMIT' : 'ROLLBACK');
        return [];
      }
      case 'listen': {
        const { channel } = request;
        unlisten.push(await pg.listen(channel, (payload) => reply({ channel, payload })));
        return [];
      }
    }
  }

  port.on('message', (request: PgliteRequest) => {
    answer(request).then(
      (rows) => reply({ id: request.id, rows }),
      (error: unknown) => reply({ id: request.id, fault: faultOf(error) }),
    );
  });
  port.on('close', () => {
    for (const transaction of transactions.values())
      transaction.end('ROLLBACK').catch(() => undefined);
    transactions.clear();
    for (const stop of unlisten) void stop();
  });
}

async function main(): Promise<void> {
  const owner = parentPort;
  if (!owner) throw new Error('pglite-worker runs as a worker thread only');
  const say = (notice: PgliteNotice): void => owner.postMessage(notice);
  const { dir } = workerData as { dir?: string };
  try {
    // relaxedDurability false: a statement is answered after its bytes were given to the operating system.
    const pg = await PGlite.create({
      dataDir: dir,
      relaxedDurability: false,
      parsers: { [INT8]: (text: string) => Number(text) },
    });
    const turns = new Turns();
    owner.on('message', (command: PgliteCommand) => {
      if (command.kind === 'connect') return serve(pg, turns, command.port);
      void (async () => {
        await turns.take();
        await pg.close();
        say({ kind: 'closed' });
        owner.close();
      })();
    });
    say({ kind: 'ready' });
  } catch (error) {
    say({ kind: 'failed', fault: faultOf(error) });
  }
}

void main();
