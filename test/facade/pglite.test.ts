// The HTTP suite on the embedded database.
import { startTestHost } from '../support/host.ts';
import { httpSuite } from './http-suite.ts';
import { SUITE } from './suite-workflows.ts';

httpSuite('PGlite', () => startTestHost({ builtIn: SUITE, database: 'pglite' }));
