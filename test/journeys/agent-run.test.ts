// Agent runs end to end, on the test run's PostgreSQL where there is one, else on the embedded database;
// `npm run campaign -- twins` sets OPENWOP_TWINS=whole and takes the embedded one.
import { sharedDatabase } from '../support/shared-postgres.ts';
import { agentSuite } from './agent-suite.ts';

const isTwin = process.env.OPENWOP_TWINS === 'whole';
const databaseUrl = isTwin ? undefined : await sharedDatabase();

if (databaseUrl === undefined) agentSuite('PGlite', async () => ({}));
else agentSuite('PostgreSQL', async () => ({ databaseUrl }));
