// The HTTP suite, on the test run's PostgreSQL where there is one, else on the embedded database; `npm run campaign -- twins`
// sets OPENWOP_TWINS=whole and takes the embedded one.
import { startTestHost } from '../support/host.ts';
import { sharedDatabase } from '../support/shared-postgres.ts';
import { httpSuite } from './http-suite.ts';
import { SUITE } from './suite-workflows.ts';

const isTwin = process.env.OPENWOP_TWINS === 'whole';
const databaseUrl = isTwin ? undefined : await sharedDatabase();

if (databaseUrl === undefined)
  httpSuite('PGlite', () => startTestHost({ builtIn: SUITE, database: 'pglite' }));
else httpSuite('PostgreSQL', () => startTestHost({ builtIn: SUITE, databaseUrl }));
