// One PostgreSQL for a whole test run (setup-databases.ts), whose new databases are copies of one that is migrated. A test
// that kills, stops or counts its server starts one of its own (postgres.ts).
import { randomUUID } from 'node:crypto';
import { count } from '../runner/spending.ts';
import { askPostgres, startPostgres, type Missing } from './postgres.ts';

/** URL of the test run's server. */
export const POSTGRES_VARIABLE = 'OPENWOP_TEST_POSTGRES';
const TEMPLATE = 'openwop_template';
/** Three test files at once, some with several processes that have a pool each. */
const CONNECTIONS = 400;

export interface SharedPostgres {
  /** A new database with this tree's migrations and without rows; its URL. */
  createDatabase(): Promise<string>;
  /** A new one without tables; its URL. */
  createEmptyDatabase(): Promise<string>;
  /** Ends a server that is not the test run's. */
  stop(): Promise<void>;
}

/**
 * The test run's server. Where there is none, as under `vitest run --project pure`, one of the file's own, whose databases
 * are migrated by whoever opens them. Resolves to `{missing}` as `startPostgres` does.
 */
export async function sharePostgres(): Promise<SharedPostgres | Missing> {
  const server = process.env[POSTGRES_VARIABLE];
  if (server !== undefined) {
    return {
      createDatabase: () => copyOf(TEMPLATE, server),
      createEmptyDatabase: () => copyOf('template1', server),
      stop: async () => {},
    };
  }
  const own = await startPostgres();
  if ('missing' in own) return own;
  const createDatabase = () => own.createDatabase();
  return { createDatabase, createEmptyDatabase: createDatabase, stop: () => own.stop() };
}

/** URL of a new database of the test run's server, as `createDatabase` makes it; undefined where there is no such server. */
export async function sharedDatabase(): Promise<string | undefined> {
  const server = process.env[POSTGRES_VARIABLE];
  return server === undefined ? undefined : copyOf(TEMPLATE, server);
}

async function copyOf(template: string, server: string): Promise<string> {
  count('database');
  const name = `t_${randomUUID().replaceAll('-', '')}`;
  await askPostgres(server, `CREATE DATABASE ${name} TEMPLATE ${template}`);
  return urlOf(server, name);
}

function urlOf(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

/** For the setup of a test run: starts the server, with the template that `migrate` makes of an empty database. */
export async function startSharedPostgres(
  migrate: (url: string) => Promise<void>,
): Promise<{ readonly url: string; stop(): Promise<void> } | Missing> {
  // Nobody kills it, so nobody waits for its disk.
  const settings = { fsync: 'off', max_connections: String(CONNECTIONS) };
  const own = await startPostgres(settings);
  if ('missing' in own) return own;
  try {
    const url = await own.createDatabase();
    await askPostgres(url, `CREATE DATABASE ${TEMPLATE}`);
    await migrate(urlOf(url, TEMPLATE));
    return { url, stop: () => own.stop() };
  } catch (error) {
    await own.stop();
    throw error;
  }
}
