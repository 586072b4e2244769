// Makes what prepared.ts hands out, before the first test: for global-setup.ts.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { compile } from '../../src/app/compile.js';
import { databaseFolder, PROGRAMS } from './prepared.ts';
import { patient } from './machine.ts';

const run = promisify(execFile);
/** Longest time to initialise a database, in ms: it takes seconds. */
const INIT_LIMIT_MS = patient(120_000);

export async function bundlePrograms(folder: string): Promise<void> {
  const entryPoints = PROGRAMS.map((name) => join(import.meta.dirname, name));
  await compile({ entryPoints, outdir: folder });
}

/** Makes the initialised folder that `copyDatabase` copies, unless it is there. */
export async function prepareDatabase(cacheDir: string): Promise<void> {
  const ready = databaseFolder(cacheDir);
  if (existsSync(ready)) return;
  mkdirSync(cacheDir, { recursive: true });
  const draft = `${ready}.${randomBytes(4).toString('hex')}`;
  const program = fileURLToPath(new URL('./empty-database.ts', import.meta.url));
  await run(process.execPath, ['--import', 'tsx', program, draft], { timeout: INIT_LIMIT_MS });
  try {
    renameSync(draft, ready);
  } catch (error) {
    // Another run was first.
    if (!existsSync(ready)) throw error;
    rmSync(draft, { recursive: true, force: true });
  }
}
