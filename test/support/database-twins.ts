// Both twins of the database, migrated and without rows: PGlite, and PostgreSQL where this machine has it.
import { afterAll, it } from 'vitest';
import type { DatabaseOptions } from '../../src/adapters/postgres/index.ts';
import { pgliteDatabase } from './databases.ts';
import { sharePostgres } from './shared-postgres.ts';

export type DatabaseTwin = readonly [name: string, empty: () => Promise<DatabaseOptions>];

/**
 * For `describe.each` at the head of a test file: each call of `empty` makes a database. A twin that is missing is a test
 * that is skipped by name.
 */
export async function databaseTwins(): Promise<readonly DatabaseTwin[]> {
  const postgres = await sharePostgres();
  if ('missing' in postgres) {
    it.skip(postgres.missing, () => undefined);
    return [['PGlite', pgliteDatabase]];
  }
  afterAll(() => postgres.stop());
  const empty = async () => ({ kind: 'postgres', url: await postgres.createDatabase() }) as const;
  return [
    ['PGlite', pgliteDatabase],
    ['PostgreSQL', empty],
  ];
}
