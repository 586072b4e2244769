// A fault point: what a process does to a database is counted as steps, and before its n-th step it dies. Either it is a
// process that kills itself (`stepsOf` with SIGKILL), or a part of the test's own that behaves as a killed process does
// (`diesBefore`): its connections are dropped without COMMIT, and whatever it asks for afterwards never arrives.
import { randomUUID } from 'node:crypto';
import {
  openDatabase,
  storesOn,
  type OpenStoresOptions,
} from '../../src/adapters/postgres/index.ts';
import type { Db, Queries } from '../../src/adapters/postgres/db.ts';
import { throughDb } from '../../src/adapters/postgres/sealed-db.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { patient } from './machine.ts';
import { askPostgres } from './postgres.ts';
import { quietLogger } from './quiet-logger.ts';

const DROP_LIMIT_MS = patient(10_000);

export interface Steps {
  /** Counts a step, and resolves when it may be made: never, once the process is dead. */
  step(): Promise<void>;
  count(): number;
}

/** Counted from now on. `die` is called before the n-th step; without `nth` that never comes. */
export function stepsOf(nth: number | undefined, die: () => void): Steps {
  let count = 0;
  return {
    count: () => count,
    async step() {
      count += 1;
      if (count === nth) die();
      if (nth !== undefined && count >= nth) await never();
    },
  };
}

const never = () => new Promise<never>(() => {});

/** The database with a step before each statement and before each COMMIT. */
export function steppedDb(db: Db, steps: () => Steps): Db {
  const stepped = (queries: Queries): Queries['query'] => {
    return async (text, values) => {
      await steps().step();
      return queries.query(text, values);
    };
  };
  return {
    ...throughDb(db),
    query: stepped(db),
    async maintain(text, limits) {
      await steps().step();
      await db.maintain(text, limits);
    },
    transaction: (work, limitMs) =>
      db.transaction(async (tx) => {
        const result = await work({ script: (text) => tx.script(text), query: stepped(tx) });
        await steps().step();
        return result;
      }, limitMs),
  };
}

export interface Dying {
  readonly stores: Stores;
  /** For what is a step and no statement. */
  readonly step: () => Promise<void>;
}

/**
 * Plays a process with a PostgreSQL pool of its own that does `work` and dies before its n-th step. Resolves to 'killed' when
 * the server has dropped its connections, or to the steps that it made in all. What it does to open its stores is no step.
 */
export async function diesBefore(
  nth: number,
  { database, ...options }: OpenStoresOptions,
  work: (process: Dying) => Promise<unknown>,
): Promise<number | 'killed'> {
  if (database.kind !== 'postgres') throw new Error('PGlite has no connection to drop');
  const name = `dying-${randomUUID()}`;
  const url = new URL(database.url);
  url.searchParams.set('application_name', name);
  const own = { kind: 'postgres', url: url.href } as const;
  const opened = await openDatabase(own, quietLogger);
  let steps = stepsOf(undefined, () => undefined);
  const db = steppedDb(opened.db, () => steps);
  const stores = await storesOn({ db, close: opened.close }, { ...options, database: own });
  const died = new Promise<'killed'>((resolve) => (steps = stepsOf(nth, () => resolve('killed'))));
  const worked = work({ stores, step: () => steps.step() }).then(() => steps.count());
  const outcome = await Promise.race([worked, died]);
  if (outcome !== 'killed') await stores.close();
  else await dropConnections(database.url, name, opened.close);
  return outcome;
}

/** Those that listen or rest are closed by their owner, who would connect again; one in a transaction is never given back. */
async function dropConnections(url: string, name: string, close: () => Promise<void>) {
  close().catch(() => undefined);
  const all = `SELECT pg_terminate_backend(pid, ${DROP_LIMIT_MS}) FROM pg_stat_activity`;
  await askPostgres(url, `${all} WHERE application_name = '${name}'`);
}
