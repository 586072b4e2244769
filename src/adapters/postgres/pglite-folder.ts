// Folders of PGlite. To initialise one takes seconds and some 400 MiB, which a thread keeps as long as it lives: it is done once
// in a thread of its own, kept empty in the cache, and copied for each new data folder.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { access, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** The last file of a folder that is made: with it the folder is whole. */
const LAST = 'PG_VERSION';
/** Longest time in ms that a copy of some 40 MiB takes. */
const COPY_LIMIT_MS = 60_000;

export function isInitialised(dir: string): Promise<boolean> {
  return exists(join(dir, LAST));
}

/**
 * Initialises an empty folder: by a copy where `cacheDir` has one, which is made where it has none. `initialise`: makes a
 * folder anew, and has ended its work when it resolves. What the cache cannot do is done without it.
 */
export async function makeFolder(
  dir: string,
  cacheDir: string | undefined,
  initialise: (dir: string) => Promise<void>,
): Promise<void> {
  if (cacheDir === undefined) return initialise(dir);
  const kept = await keptIn(cacheDir);
  try {
    if (!(await isInitialised(kept))) await keep(kept, initialise);
    await copy(kept, dir);
  } catch {
    await empty(dir);
    await initialise(dir);
  }
}

/** Without the copy, which is not what was put there: whoever comes next makes another one. */
export async function makeFolderAnew(
  dir: string,
  cacheDir: string,
  initialise: (dir: string) => Promise<void>,
): Promise<void> {
  await rm(await keptIn(cacheDir), { recursive: true, force: true });
  await empty(dir);
  await initialise(dir);
}

async function keptIn(cacheDir: string): Promise<string> {
  return join(cacheDir, `empty-database-${await pgliteVersion()}`);
}

/** Processes that make it at once make the same: the first is kept. */
async function keep(kept: string, initialise: (dir: string) => Promise<void>): Promise<void> {
  const draft = `${kept}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    await mkdir(draft, { recursive: true, mode: 0o700 });
    await initialise(draft);
    await put(draft, kept);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** In the place of one that lacks its last file: others took it, and nobody can copy it. */
async function put(draft: string, kept: string): Promise<void> {
  try {
    await rename(draft, kept);
  } catch (error) {
    if (await isInitialised(kept)) return;
    if (!(await exists(kept))) throw error;
    await rm(kept, { recursive: true, force: true });
    await rename(draft, kept);
  }
}

/** By `cp`: Node takes a second for it. A copy that is cut off is made again. */
async function copy(from: string, to: string): Promise<void> {
  const names = (await readdir(from)).filter((name) => name !== LAST);
  const limit = { timeout: COPY_LIMIT_MS };
  await run('cp', ['-R', ...names.map((name) => join(from, name)), `${to}/`], limit);
  await run('cp', [join(from, LAST), `${to}/`], limit);
}

/** Of what an end in the middle left there. */
async function empty(dir: string): Promise<void> {
  for (const name of await readdir(dir))
    await rm(join(dir, name), { recursive: true, force: true });
}

async function pgliteVersion(): Promise<string> {
  const main = createRequire(import.meta.url).resolve('@electric-sql/pglite');
  const text = await readFile(join(dirname(main), '..', 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
