// What many tests need and what takes seconds to make is made once, by prepare.ts: a database with this tree's migrations
// (7 s of CPU as PGlite from nothing, 1.4 s as a copy), and the programs that tests start as processes of their own, often
// to kill them, compiled as the product's commands are. Tests of migrations begin with an empty database.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { TYPESCRIPT } from '../../src/system/compiled.ts';
import { count } from '../runner/spending.ts';
import { ROOT } from './root.ts';

/** Folder of the bundles; absent where tests run without global-setup.ts. */
export const PROGRAMS_VARIABLE = 'OPENWOP_TEST_PROGRAMS';
/** From this folder. */
export const PROGRAMS = [
  './faults/half.ts',
  './opensentience/core-process.ts',
  './opensentience/fault-agent.ts',
  './opensentience/guest-agent.ts',
  '../agent-sdk/hello-agent.ts',
  './opensentience/rude-agent.ts',
  '../adapters/postgres-expirer.ts',
  '../adapters/postgres-writer.ts',
];
const { resolve } = createRequire(import.meta.url);
const run = promisify(execFile);

/** Arguments for node that run a program of PROGRAMS: as a bundle where there is one, else from its source. */
export function programArgs(script: URL): readonly string[] {
  count('program');
  const path = fileURLToPath(script);
  const folder = process.env[PROGRAMS_VARIABLE];
  if (folder === undefined) return ['--import', TYPESCRIPT, path];
  const bundle = join(folder, relative(ROOT, path).replace(/\.ts$/, '.mjs'));
  if (!existsSync(bundle)) throw new Error(`${path} is not one of the prepared programs`);
  return ['--enable-source-maps', bundle];
}

/** Of this tree's migrations: a tree with others, or another version of PGlite, has a folder of its own. */
export function migratedFolder(cacheDir: string): string {
  migrations ??= digestOfMigrations();
  return join(cacheDir, `${MIGRATED}${migrations}`);
}
export const MIGRATED = 'test-database-';
let migrations: string | undefined;

function digestOfMigrations(): string {
  const main = resolve('@electric-sql/pglite');
  const hash = createHash('sha256').update(readFileSync(join(dirname(main), '..', 'package.json')));
  const folder = join(ROOT, 'src/adapters/postgres/migrations');
  for (const name of readdirSync(folder).sort()) hash.update(readFileSync(join(folder, name)));
  hash.update(readFileSync(join(folder, '../migrate.ts')));
  return hash.digest('hex').slice(0, 16);
}

/**
 * Makes a folder for PGlite that is migrated and has no rows, unless it is there, or nobody has prepared one: then whoever
 * opens it does that. By `cp`: Node takes a second for it.
 */
export async function copyDatabase(cacheDir: string, dir: string): Promise<void> {
  const made = migratedFolder(cacheDir);
  if (existsSync(dir) || !existsSync(made)) return;
  await mkdir(dirname(dir), { recursive: true });
  await run('cp', ['-R', made, dir]);
}
