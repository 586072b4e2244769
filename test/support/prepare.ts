// Makes what prepared.ts hands out, before the first test: for global-setup.ts.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { TYPESCRIPT } from '../../src/system/compiled.ts';
import { compile } from '../../src/app/compile.js';
import { MIGRATED, migratedFolder, PROGRAMS } from './prepared.ts';
import { patient } from './machine.ts';

const run = promisify(execFile);
/** Longest time to make a database, in ms: it takes seconds. */
const INIT_LIMIT_MS = 120_000;
const KEPT_MS = 7 * 24 * 3_600_000;

export async function bundlePrograms(folder: string): Promise<void> {
  const entryPoints = PROGRAMS.map((name) => join(import.meta.dirname, name));
  await compile({ entryPoints, outdir: folder });
}

/** Makes the migrated folder that `copyDatabase` copies, unless it is there; those that nobody used for a week go. */
export async function prepareDatabase(cacheDir: string): Promise<void> {
  const ready = migratedFolder(cacheDir);
  if (markUsed(ready)) return;
  mkdirSync(cacheDir, { recursive: true });
  removeOld(cacheDir);
  const draft = `${ready}.${randomBytes(4).toString('hex')}`;
  const program = fileURLToPath(new URL('./migrated-database.ts', import.meta.url));
  await run(process.execPath, ['--import', TYPESCRIPT, program, draft, cacheDir], {
    timeout: patient(INIT_LIMIT_MS),
  });
  try {
    renameSync(draft, ready);
  } catch (error) {
    // Another run was first.
    if (!existsSync(ready)) throw error;
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Marks a folder as used now. False: it is not there. */
function markUsed(path: string): boolean {
  try {
    const now = new Date();
    utimesSync(path, now, now);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return false;
  }
}

/** Of other trees, and drafts that were cut off: a run that goes on beside this one has begun within a week. */
export function removeOld(cacheDir: string): void {
  for (const name of readdirSync(cacheDir)) {
    const path = join(cacheDir, name);
    if (!name.startsWith(MIGRATED)) continue;
    // Another run may rename or remove it at this moment.
    const usedAtMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (usedAtMs < Date.now() - KEPT_MS) rmSync(path, { recursive: true, force: true });
  }
}
