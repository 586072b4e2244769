// PostgreSQL through the `pg` pool (architecture §7): bounded connections and statement times, and one connection of
// its own for notifications. The twin of pglite.ts.
import pg from 'pg';
import type { Logger } from '../../ports/logger.ts';
import {
  committable,
  databaseError,
  pastDeadlocks,
  sqlStateOf,
  TRANSACTION_LIMIT_MS,
} from './db.ts';
import type { Db, SqlValue, Transaction } from './db.ts';
import { startListening } from './pg-listener.ts';
import type { PgListener } from './pg-listener.ts';

/** Connections per process, the listening one not counted. */
const POOL_SIZE = 10;
/** Longest wait in ms for a connection, whether it has to be made or another gives its own back. */
const CONNECT_LIMIT_MS = 5_000;
/** Longest run time of a statement in ms: the server ends it and says so. */
const STATEMENT_LIMIT_MS = 10_000;
/** Longest wait in ms for an answer, for a server that says nothing at all; then the connection is given up. */
const ANSWER_LIMIT_MS = 12_000;
const IDLE_CONNECTION_MS = 30_000;
/** How often, in ms, the server looks whether who asked for upkeep is still there. */
const GONE_CLIENT_MS = 1_000;

const INT8 = 20;
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === INT8 && format !== 'binary'
      ? Number
      : (pg.types.getTypeParser as (oid: number, format?: string) => unknown)(
          oid,
          format,
        )) as never,
};

/** Connects once to see that it works. `answerLimitMs` is for tests. Throws HostError service_unavailable. */
export async function openPool(
  url: string,
  logger: Logger,
  answerLimitMs = ANSWER_LIMIT_MS,
): Promise<Db> {
  const connection: pg.ClientConfig = {
    connectionString: url,
    types,
    application_name: 'openwop-temporal',
    connectionTimeoutMillis: CONNECT_LIMIT_MS,
    keepAlive: true,
  };
  const pool = new pg.Pool({
    ...connection,
    max: POOL_SIZE,
    idleTimeoutMillis: IDLE_CONNECTION_MS,
    statement_timeout: STATEMENT_LIMIT_MS,
    // A transaction whose client stopped talking ends by this; it is the server's side of TRANSACTION_LIMIT_MS.
    idle_in_transaction_session_timeout: TRANSACTION_LIMIT_MS,
  });
  pool.on('error', (error) =>
    logger.warn('an idle database connection broke', { error: error.message }),
  );
  // Between the pool's listener and that of a user there is a gap, in which a server that dies would end the process.
  // Whoever uses the connection next is told by the statement.
  pool.on('connect', (client) => void client.on('error', () => undefined));
  try {
    const listener = await startListening(connection, logger);
    return new PoolDb(pool, listener, answerLimitMs);
  } catch (error) {
    await pool.end();
    throw databaseError(error);
  }
}

interface Question {
  /** Without values it goes by the simple protocol, which takes several statements. */
  readonly text: string;
  readonly values?: readonly SqlValue[];
  readonly limitMs: number;
}

async function ask<Row>(
  to: pg.Pool | pg.PoolClient,
  { text, values, limitMs }: Question,
): Promise<Row[]> {
  const list = values?.map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value));
  // The driver knows the limit of a single query; its types do not.
  const config: pg.QueryConfig & { query_timeout: number } = {
    text,
    ...(list && { values: list }),
    query_timeout: limitMs,
  };
  try {
    return (await (to as pg.Pool).query(config)).rows as Row[];
  } catch (error) {
    throw databaseError(error);
  }
}

class PoolDb implements Db {
  readonly #pool: pg.Pool;
  readonly #listener: PgListener;
  readonly #answerLimitMs: number;
  readonly #maintaining = new Set<pg.PoolClient>();
  #closed: Promise<void> | undefined;

  constructor(pool: pg.Pool, listener: PgListener, answerLimitMs: number) {
    this.#pool = pool;
    this.#listener = listener;
    this.#answerLimitMs = answerLimitMs;
  }

  query<Row>(text: string, values: readonly SqlValue[] = []): Promise<Row[]> {
    const limitMs = this.#answerLimitMs;
    return pastDeadlocks(() => ask<Row>(this.#pool, { text, values, limitMs }));
  }

  transaction<Result>(
    work: (tx: Transaction) => Promise<Result>,
    limitMs?: number,
  ): Promise<Result> {
    return pastDeadlocks(() => this.#transactionOnce(work, limitMs));
  }

  async #transactionOnce<Result>(
    work: (tx: Transaction) => Promise<Result>,
    limitMs?: number,
  ): Promise<Result> {
    const client = await this.#connect();
    let broken: Error | undefined;
    const answerMs = Math.max(this.#answerLimitMs, limitMs ?? 0);
    const say = <Row>(text: string, values?: readonly SqlValue[]): Promise<Row[]> =>
      ask<Row>(client, { text, values, limitMs: answerMs }).catch((error: Error) => {
        // Without an answer the connection is lost, or what it would say next belongs to an old question.
        if (sqlStateOf(error) === undefined) broken ??= error;
        throw error;
      });
    try {
      await say('BEGIN');
      if (limitMs !== undefined) {
        await say(`SET LOCAL idle_in_transaction_session_timeout = ${Math.trunc(limitMs)}`);
      }
      const tx: Transaction = {
        query: <Row>(text: string, values: readonly SqlValue[] = []) => say<Row>(text, values),
        script: async (text) => void (await say(text)),
      };
      const result = await committable(tx, work);
      await say('COMMIT');
      return result;
    } catch (error) {
      // A connection that is given up is rolled back by the server when it sees its end.
      if (!broken) await say('ROLLBACK').catch(() => undefined);
      throw error;
    } finally {
      client.release(broken);
    }
  }

  #connect(): Promise<pg.PoolClient> {
    return this.#pool.connect().catch((error: unknown) => {
      throw databaseError(error);
    });
  }

  async maintain(
    text: string,
    { lockMs, limitMs }: { readonly lockMs: number; readonly limitMs: number },
  ): Promise<void> {
    const client = await this.#connect();
    this.#maintaining.add(client);
    try {
      const answerMs = limitMs + this.#answerLimitMs;
      const say = (statement: string) => ask(client, { text: statement, limitMs: answerMs });
      await say(`SET lock_timeout = ${Math.trunc(lockMs)}`);
      await say(`SET statement_timeout = ${Math.trunc(limitMs)}`);
      // The server ends what nobody waits for any more, where it can see that.
      await say(`SET client_connection_check_interval = ${GONE_CLIENT_MS}`).catch(() => undefined);
      await say(text);
    } finally {
      // With its limits nobody else is to have it.
      if (this.#maintaining.delete(client)) client.release(true);
    }
  }

  listen(channel: string, callback: (payload: string) => void): Promise<void> {
    return this.#listener.listen(channel, callback);
  }

  onReconnect(callback: () => void): () => void {
    return this.#listener.onReconnect(callback);
  }

  close(): Promise<void> {
    for (const client of this.#maintaining) client.release(true);
    this.#maintaining.clear();
    this.#closed ??= Promise.all([this.#listener.close(), this.#pool.end()]).then(() => undefined);
    return this.#closed;
  }
}
