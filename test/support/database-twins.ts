// Both twins of the database, for `describe.each`: PGlite, and PostgreSQL where this machine has it.
import { afterAll, it } from 'vitest';
import type { DatabaseOptions } from '../../src/adapters/postgres/index.ts';
import { startPostgres } from './postgres.ts';

export type DatabaseTwin = readonly [name: string, empty: () => Promise<DatabaseOptions>];

/** For the head of a test file: each call of `empty` makes one; a twin that is missing is a test that is skipped by name. */
export async function databaseTwins(): Promise<readonly DatabaseTwin[]> {
  const pglite: DatabaseTwin = ['PGlite', async () => ({ kind: 'pglite' })];
  const postgres = await startPostgres();
  if ('missing' in postgres) {
    it.skip(postgres.missing, () => undefined);
    return [pglite];
  }
  afterAll(() => postgres.stop());
  const empty = async () => ({ kind: 'postgres', url: await postgres.createDatabase() }) as const;
  return [pglite, ['PostgreSQL', empty]];
}
