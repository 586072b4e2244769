// The HTTP suite on PostgreSQL; without it the twin is skipped by name.
import { afterAll, describe, it } from 'vitest';
import { startTestHost } from '../support/host.ts';
import { startPostgres } from '../support/postgres.ts';
import { httpSuite } from './http-suite.ts';
import { SUITE } from './suite-workflows.ts';

const postgres = await startPostgres();

if ('missing' in postgres) {
  describe('HTTP on PostgreSQL', () => {
    it.skip(postgres.missing, () => undefined);
  });
} else {
  httpSuite('PostgreSQL', async () =>
    startTestHost({ builtIn: SUITE, databaseUrl: await postgres.createDatabase() }),
  );
  afterAll(() => postgres.stop());
}
