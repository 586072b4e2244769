// Agent runs end to end on PostgreSQL; without it the twin is skipped by name.
import { afterAll, describe, it } from 'vitest';
import { startPostgres } from '../support/postgres.ts';
import { agentSuite } from './agent-suite.ts';

const postgres = await startPostgres();

if ('missing' in postgres) {
  describe('agent runs on PostgreSQL', () => {
    it.skip(postgres.missing, () => undefined);
  });
} else {
  agentSuite('PostgreSQL', async () => ({ databaseUrl: await postgres.createDatabase() }));
  afterAll(() => postgres.stop());
}
