// vitest's globalSetup where tests use a database: the folder that prepared.ts copies, and one PostgreSQL for the whole test
// run where this machine has it, its URL in the environment of every test process. A server that is named there already is
// used as it is.
import { openDatabase } from '../../src/adapters/postgres/index.ts';
import { migrate, readMigrations } from '../../src/adapters/postgres/migrate.ts';
import { allOrNone, type Undo } from './all-or-none.ts';
import { prepareDatabase } from './prepare.ts';
import { quietLogger } from './quiet-logger.ts';
import { POSTGRES_VARIABLE, startSharedPostgres } from './shared-postgres.ts';
import { CACHE_DIR } from './temporal.ts';

export function setup(): Promise<Undo> {
  const prepared = prepareDatabase(CACHE_DIR).then(() => async () => {});
  return allOrNone([setupPostgres(), prepared]);
}

async function setupPostgres(): Promise<Undo> {
  if (process.env[POSTGRES_VARIABLE] !== undefined) return async () => {};
  const postgres = await startSharedPostgres(migrateAt);
  if ('missing' in postgres) return async () => {};
  process.env[POSTGRES_VARIABLE] = postgres.url;
  return async () => {
    delete process.env[POSTGRES_VARIABLE];
    await postgres.stop();
  };
}

async function migrateAt(url: string): Promise<void> {
  const { db, close } = await openDatabase({ kind: 'postgres', url }, quietLogger);
  await migrate(db, await readMigrations());
  await close();
}
