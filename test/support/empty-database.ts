// Initialises a PGlite folder, as the host does: `node --import tsx <this> <folder>`. A process of its own, since
// vitest's global setup cannot resolve what the database's thread imports.
import { openPglite } from '../../src/adapters/postgres/pglite.ts';
import { quietLogger } from './quiet-logger.ts';

const [dir = ''] = process.argv.slice(2);
await (await openPglite(dir, quietLogger)).close();
