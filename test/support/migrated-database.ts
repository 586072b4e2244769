// Makes a PGlite folder with this tree's migrations: its arguments are the folder and the cache. A process of its own,
// since vitest's global setup cannot resolve what the database's thread imports.
import { openDatabase } from '../../src/adapters/postgres/index.ts';
import { migrate, readMigrations } from '../../src/adapters/postgres/migrate.ts';
import { quietLogger } from './quiet-logger.ts';

const [dir = '', cacheDir = ''] = process.argv.slice(2);
const { db, close } = await openDatabase({ kind: 'pglite', dir, cacheDir }, quietLogger);
await migrate(db, await readMigrations());
await close();
