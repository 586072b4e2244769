// The data folder (architecture §7): mode 0700, one owner at a time, and what must survive a restart: the development
// key, and whether the demo ran. The owner is a lock file with pid and process start; a dead owner's lock is recovered.
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { isRunning, recordProcess, type ProcessRecord } from '../system/processes.ts';
import { codeOf, HostError } from '../rules/errors.ts';

/** Recoveries of a stale lock that may fail because another process was quicker. */
const LOCK_TRIES = 5;
const API_KEY_BYTES = 24;
const KEY_FILE = 'api-key';
const URL_FILE = 'url';

export interface DataFolder {
  readonly path: string;
  /** Kept in the folder, made at first use. */
  apiKey(): string;
  /** Says where the host listens, for `keptUrl`. */
  keepUrl(url: string): void;
  /** A small text of that name, or undefined. */
  read(name: string): string | undefined;
  /** Whole or not at all, mode 0600. */
  write(name: string, text: string): void;
  release(): void;
}

/** Takes the folder, making it where it is missing. Throws HostError data_folder_in_use. */
export function openDataFolder(folder: string): DataFolder {
  const path = resolve(folder);
  mkdirSync(path, { recursive: true, mode: 0o700 });
  chmodSync(path, 0o700);
  takeLock(path);
  const read = (name: string) => readText(join(path, name));
  const write = (name: string, text: string) => writeWhole(join(path, name), text);
  return {
    path,
    read,
    write,
    apiKey() {
      const kept = read(KEY_FILE)?.trim();
      if (kept) return kept;
      const key = `owop_dev_${randomBytes(API_KEY_BYTES).toString('base64url')}`;
      write(KEY_FILE, `${key}\n`);
      return key;
    },
    keepUrl: (url) => write(URL_FILE, `${url}\n`),
    release: () => releaseLock(path),
  };
}

/** Processes that may share one data folder. */
const MAX_CORES = 64;

/**
 * A folder of its own for each Core on one data folder: workers of a deployment may share one. The first free one, so
 * that the next Core ends what a killed one left running. Throws HostError data_folder_in_use.
 */
export function openCoreFolder(dataDir: string): DataFolder {
  for (let index = 0; ; index++) {
    try {
      return openDataFolder(join(dataDir, 'cores', String(index)));
    } catch (error) {
      if (codeOf(error) !== 'data_folder_in_use' || index + 1 >= MAX_CORES) throw error;
    }
  }
}

/** The key that a folder keeps, for those who ask its host; undefined where there is none, or not for this user. */
export function keptApiKey(folder: string): string | undefined {
  return kept(folder, KEY_FILE);
}

/** Where the folder's host listened last; as `keptApiKey`. */
export function keptUrl(folder: string): string | undefined {
  return kept(folder, URL_FILE);
}

/** What says of a path that no file is kept there, or not for this user. */
const NOT_FOR_US: ReadonlySet<string | undefined> = new Set([
  ...['EACCES', 'EPERM', 'ENOTDIR', 'EISDIR', 'ELOOP', 'ENAMETOOLONG'],
]);

function kept(folder: string, name: string): string | undefined {
  try {
    return readText(join(resolve(folder), name))?.trim() || undefined;
  } catch (error) {
    if (NOT_FOR_US.has((error as NodeJS.ErrnoException).code)) return undefined;
    throw error;
  }
}

function ownLock(): string {
  const own = recordProcess(process.pid);
  if (!own) throw new Error('this process cannot see itself');
  return JSON.stringify(own);
}

function takeLock(path: string): void {
  const lock = join(path, 'owner.lock');
  const mine = ownLock();
  for (let tries = 0; tries < LOCK_TRIES; tries++) {
    if (createLock(lock, mine)) return;
    const held = readText(lock);
    if (held === undefined) continue;
    const owner = parseLock(held);
    if (owner && isRunning(owner)) refuse(path, owner);
    removeStale(lock, held);
  }
  refuse(path);
}

function refuse(path: string, owner?: ProcessRecord): never {
  const who = owner ? `process ${owner.pid}` : 'another process';
  throw new HostError('data_folder_in_use', {
    reason: `The data folder ${path} is in use by ${who}. Stop it, or set OPENWOP_DATA_DIR to another folder.`,
  });
}

/** The lock appears with its content: a link of a written file fails when the name is taken. */
function createLock(lock: string, content: string): boolean {
  const draft = `${lock}.${process.pid}.${randomBytes(4).toString('hex')}`;
  writeFileSync(draft, content, { mode: 0o600 });
  try {
    linkSync(draft, lock);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

/** Moves the lock away; when it was not the stale one any more, a quicker process owns it and gets it back. */
function removeStale(lock: string, stale: string): void {
  const aside = `${lock}.${process.pid}.${randomBytes(4).toString('hex')}`;
  try {
    renameSync(lock, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  const moved = readText(aside);
  if (moved !== undefined && moved !== stale) createLock(lock, moved);
  rmSync(aside, { force: true });
}

function releaseLock(path: string): void {
  const lock = join(path, 'owner.lock');
  if (readText(lock) === ownLock()) rmSync(lock, { force: true });
}

function parseLock(text: string): ProcessRecord | undefined {
  try {
    return JSON.parse(text) as ProcessRecord;
  } catch {
    // A lock that cannot be read was cut by a power loss: nobody owns it.
    return undefined;
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

function writeWhole(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
