// What lasts of agent runs under payload encryption, on the embedded database; `npm run campaign -- twins` sets OPENWOP_TWINS=whole
// and plays all journeys, on PostgreSQL where it is there.
import { sharedDatabase } from '../support/shared-postgres.ts';
import { agentSuite, lastingSuite } from './agent-suite.ts';

const isWhole = process.env.OPENWOP_TWINS === 'whole';
const databaseUrl = isWhole ? await sharedDatabase() : undefined;
const database = databaseUrl === undefined ? {} : { databaseUrl };
const suite = isWhole ? agentSuite : lastingSuite;

suite(`${databaseUrl === undefined ? 'PGlite' : 'PostgreSQL'} under encryption`, async () => ({
  ...database,
  encryption: true,
}));
