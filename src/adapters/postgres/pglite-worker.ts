// PGlite in its own thread (architecture §7): one connection, shared by its clients in turns. A turn is one statement
// or one transaction; a transaction ends by itself after its limit and when its client goes away.
import fs from 'node:fs';
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
import { Statements } from './pglite-statements.ts';
import { Refused, Turns } from './pglite-turns.ts';
import { Upkeep } from './pglite-upkeep.ts';

const INT8 = 20;
/** Of a mode: what it gives to others than the user. */
const OF_OTHERS = 0o077;

// PGlite gives each of its files a mode after it has made it, whatever the umask. This thread makes no other files.
const { chmodSync } = fs;
fs.chmodSync = (path, mode) => chmodSync(path, Number(mode) & ~OF_OTHERS);

interface OpenTransaction {
  /** Settles when the transaction has its turn and has begun. */
  readonly begun: Promise<void>;
  /** Idempotent; the first call decides. */
  end(command: 'COMMIT' | 'ROLLBACK'): Promise<void>;
  ended: boolean;
}

function faultOf(error: unknown): PgliteFault {
  const { message, code, constraint, routine } = error as Partial<PgliteFault>;
  return { message: message ?? String(error), code, constraint, routine };
}

function beginTransaction({ pg, turns, upkeep }: Database, limitMs: number): OpenTransaction {
  let release = (): void => undefined;
  let timer: NodeJS.Timeout | undefined;
  const begun = (async () => {
    release = await turns.take();
    await pg.exec('BEGIN');
    timer = setTimeout(() => {
      // Refused where its end came first.
      transaction.end('ROLLBACK').catch(() => undefined);
    }, limitMs);
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
        upkeep.noteTurn();
      }
    },
  };
  begun.catch(() => release());
  return transaction;
}

/** Outside of any transaction. */
async function inOwnTurn<Result>(
  { turns, upkeep }: Database,
  work: () => Promise<Result>,
): Promise<Result> {
  const release = await turns.take();
  try {
    return await work();
  } finally {
    release();
    upkeep.noteTurn();
  }
}

function serve(database: Database, port: MessagePort): void {
  const { pg, statements } = database;
  const transactions = new Map<number, OpenTransaction>();
  /** Each resolves to what ends it, once it has had its turn. */
  const listening: Promise<() => Promise<void>>[] = [];
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
    return inOwnTurn(database, work);
  }

  async function answer(request: PgliteRequest): Promise<readonly unknown[]> {
    switch (request.op) {
      case 'query':
        return inTurn(request.tx, () => statements.query(request.text, request.values));
      case 'script':
        await inTurn(request.tx, async () => {
          await pg.exec(request.text);
          await statements.forgetAll();
        });
        return [];
      case 'begin': {
        const transaction = beginTransaction(database, request.limitMs);
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
        // In a turn: inside a transaction of another client, the rollback of that one would take it back.
        const hear = () => pg.listen(channel, (payload) => reply({ channel, payload }));
        const heard = inOwnTurn(database, hear);
        listening.push(heard);
        await heard;
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
    for (const heard of listening)
      heard.then((stop) => inOwnTurn(database, () => stop())).catch(() => undefined);
  });
}

interface Database {
  readonly pg: PGlite;
  readonly statements: Statements;
  readonly turns: Turns;
  readonly upkeep: Upkeep;
}

async function main(): Promise<void> {
  const owner = parentPort;
  if (!owner) throw new Error('pglite-worker runs as a worker thread only');
  const say = (notice: PgliteNotice): void => owner.postMessage(notice);
  const { dir } = workerData as { dir: string };
  try {
    // relaxedDurability false: a statement is answered after its bytes were given to the operating system.
    const pg = await PGlite.create({
      dataDir: dir,
      relaxedDurability: false,
      parsers: { [INT8]: (text: string) => Number(text) },
    });
    const turns = new Turns();
    const statements = new Statements(pg);
    const upkeep = new Upkeep(pg, turns);
    await statements.begin();
    await upkeep.begin();
    const database = { pg, statements, turns, upkeep };
    owner.on('message', (command: PgliteCommand) => {
      if (command.kind === 'connect') return serve(database, command.port);
      void (async () => {
        await database.turns.take();
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
