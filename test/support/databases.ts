// PGlite for tests, with this tree's migrations and without rows: copies of what prepare.ts made.
import { join } from 'node:path';
import { count } from '../runner/spending.ts';
import { temporaryFolder } from './folders.ts';
import { copyDatabase } from './prepared.ts';
import { CACHE_DIR } from './temporal.ts';

interface PgliteFolder {
  readonly kind: 'pglite';
  readonly dir: string;
}

/** Its folder goes with the test file. */
export async function pgliteDatabase(): Promise<PgliteFolder> {
  const dir = join(await temporaryFolder('database'), 'postgres');
  count('database');
  await copyDatabase(CACHE_DIR, dir);
  return { kind: 'pglite', dir };
}
