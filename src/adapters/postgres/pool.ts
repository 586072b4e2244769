// PostgreSQL through the `pg` pool (design §7): bounded connections and statement times, and one connection of its own
// for notifications. The twin of pglite.ts.
import pg from 'pg';
import type { Logger } from '../../ports.ts';
import { databaseError, isDeadlock, TRANSACTION_LIMIT_MS, TRANSACTION_TRIES } from './db.ts';
import type { Db, SqlValue, Transaction } from './db.ts';
import { startListening } from './pg-listener.ts';
import type { PgListener } from './pg-listener.ts';

/** Connections per process, the listening one not counted. */
const POOL_SIZE = 10;
/** Longest wait for a connection in ms, and longest run time of a statement in ms. */
const CONNECT_LIMIT_MS = 5_000;
const STATEMENT_LIMIT_MS = 10_000;
const IDLE_CONNECTION_MS = 30_000;

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

/** Connects once to see that it works. Throws HostError service_unavailable. */
export async function openPool(url: string, logger: Logger): Promise<Db> {
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
  try {
    const listener = await startListening(connection, logger);
    return new PoolDb(pool, listener);
  } catch (error) {
    await pool.end();
    throw databaseError(error);
  }
}

/** A text without values goes by the simple protocol, which takes several statements. */
async function ask<Row>(
  to: pg.Pool | pg.PoolClient,
  text: string,
  list?: readonly SqlValue[],
): Promise<Row[]> {
  const values = list?.map((value) => (value instanceof Uint8Array ? Buffer.from(value) : value));
  try {
    return (await (to as pg.Pool).query(text, values)).rows as Row[];
  } catch (error) {
    throw databaseError(error);
  }
}

class PoolDb implements Db {
  readonly #pool: pg.Pool;
  readonly #listener: PgListener;
  #closed: Promise<void> | undefined;

  constructor(pool: pg.Pool, listener: PgListener) {
    this.#pool = pool;
    this.#listener = listener;
  }

  query<Row>(text: string, list: readonly SqlValue[] = []): Promise<Row[]> {
    return ask<Row>(this.#pool, text, list);
  }

  async transaction<Result>(
    work: (tx: Transaction) => Promise<Result>,
    limitMs?: number,
  ): Promise<Result> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#transactionOnce(work, limitMs);
      } catch (error) {
        if (!isDeadlock(error) || tries >= TRANSACTION_TRIES) throw error;
      }
    }
  }

  async #transactionOnce<Result>(
    work: (tx: Transaction) => Promise<Result>,
    limitMs?: number,
  ): Promise<Result> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw databaseError(error);
    });
    let broken: Error | undefined;
    // Without a listener a connection that breaks between two statements would end the process.
    const onError = (error: Error): void => void (broken = error);
    client.on('error', onError);
    try {
      await ask(client, 'BEGIN');
      if (limitMs !== undefined) {
        await ask(client, `SET LOCAL idle_in_transaction_session_timeout = ${Math.trunc(limitMs)}`);
      }
      const result = await work({
        query: <Row>(text: string, list: readonly SqlValue[] = []) => ask<Row>(client, text, list),
        script: async (text) => void (await ask(client, text)),
      });
      await ask(client, 'COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch((failed: Error) => (broken ??= failed));
      throw error;
    } finally {
      client.off('error', onError);
      client.release(broken);
    }
  }

  listen(channel: string, callback: (payload: string) => void): Promise<void> {
    return this.#listener.listen(channel, callback);
  }

  onReconnect(callback: () => void): () => void {
    return this.#listener.onReconnect(callback);
  }

  close(): Promise<void> {
    this.#closed ??= Promise.all([this.#listener.close(), this.#pool.end()]).then(() => undefined);
    return this.#closed;
  }
}
