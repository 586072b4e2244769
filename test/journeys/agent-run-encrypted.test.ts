// Agent runs end to end under payload encryption, on PostgreSQL: with agent-run.test.ts each store and each codec is
// met. Without PostgreSQL it is the embedded database, and the twin is skipped by name.
import { afterAll, describe, it } from 'vitest';
import { sharePostgres } from '../support/shared-postgres.ts';
import { agentSuite } from './agent-suite.ts';

const postgres = await sharePostgres();

if ('missing' in postgres) {
  describe('agent runs on PostgreSQL', () => {
    it.skip(postgres.missing, () => undefined);
  });
  agentSuite('PGlite under encryption', async () => ({ encryption: true }));
} else {
  agentSuite('PostgreSQL under encryption', async () => ({
    databaseUrl: await postgres.createDatabase(),
    encryption: true,
  }));
  afterAll(() => postgres.stop());
}
