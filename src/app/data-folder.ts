// The data folder (architecture §7): mode 0700, one owner at a time, and what must survive a restart: the development
// key, and whether the demo ran. The owner is a lock file with pid and process start; a dead owner's lock is recovered. One in
// another container, or of another boot, cannot be looked at: it lives as long as it renews its lock.
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { isRunning, processSpace, recordProcess, type ProcessRecord } from '../system/processes.ts';
import { rest } from '../system/time.ts';
import { codeOf, HostError } from '../rules/errors.ts';
import { withProgress, type Report } from './progress.ts';

/** Recoveries of a stale lock that may fail because another process was quicker. */
const LOCK_TRIES = 5;
/** How often an owner renews its lock, in ms; and after how long without it one that cannot be looked at has ended. */
export const LOCK_RENEWAL_MS = 3_000;
export const LOCK_REST_MS = 15_000;
/** Who waits whether such an owner lives looks at its lock so often, in ms. */
const LOOK_MS = 500;
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
  const mine = takeLock(path);
  const renewal = setInterval(() => renewLock(path, mine), LOCK_RENEWAL_MS).unref();
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
    release() {
      clearInterval(renewal);
      releaseLock(path, mine);
    },
  };
}

/**
 * As openDataFolder, for a host that starts: while an owner that cannot be looked at does not renew its lock it may have been
 * killed, and is waited for until the lock is free, twice LOCK_REST_MS at most. Throws HostError data_folder_in_use once it
 * has renewed the lock, and on abort.
 */
export async function openDataFolderInTime(
  folder: string,
  { report, signal }: { readonly report: Report; readonly signal: AbortSignal },
): Promise<DataFolder> {
  let seen: unknown;
  const open = async (): Promise<DataFolder> => {
    for (;;) {
      try {
        return openDataFolder(folder);
      } catch (error) {
        const renewedAtMs = codeOf(error) && (error as HostError).details?.renewedAtMs;
        if (renewedAtMs === undefined || (seen ?? renewedAtMs) !== renewedAtMs) throw error;
        seen = renewedAtMs;
        await rest(LOOK_MS, signal);
        if (signal.aborted) throw error;
      }
    }
  };
  return withProgress(report, 'Waiting for the data folder: its last owner may have ended', open);
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

interface Owner extends ProcessRecord {
  /** Where its pid means it (processSpace). Absent: an older release wrote the lock. */
  readonly space?: string;
}

function ownLock(): string {
  const own = recordProcess(process.pid);
  if (!own) throw new Error('this process cannot see itself');
  return JSON.stringify({ ...own, space: processSpace() } satisfies Owner);
}

const lockOf = (path: string): string => join(path, 'owner.lock');

/** What the lock says now. */
function takeLock(path: string): string {
  const lock = lockOf(path);
  const mine = ownLock();
  for (let tries = 0; tries < LOCK_TRIES; tries++) {
    if (createLock(lock, mine)) return mine;
    const held = readText(lock);
    if (held === undefined) continue;
    const owner = parseLock(held);
    if (owner) refuseLiving(path, owner);
    removeStale(lock, held);
  }
  refuse(path, 'another process');
}

/** Throws data_folder_in_use. */
function refuseLiving(path: string, owner: Owner): void {
  const who = `process ${owner.pid}`;
  if (owner.space === undefined || owner.space === processSpace()) {
    if (isRunning(owner)) refuse(path, who);
    return;
  }
  const { renewedAtMs, agoMs } = renewalOf(lockOf(path));
  if (agoMs >= LOCK_REST_MS) return;
  const seconds = Math.ceil((LOCK_REST_MS - agoMs) / 1_000);
  const more = ` If it has ended already, start again in ${seconds} s: a lock that nobody renews for ${LOCK_REST_MS / 1_000} s is free.`;
  refuse(path, `${who} of another container, machine or boot`, { more, renewedAtMs });
}

function refuse(
  path: string,
  who: string,
  { more = '', ...details }: { readonly more?: string; readonly renewedAtMs?: number } = {},
): never {
  throw new HostError('data_folder_in_use', {
    reason: `The data folder ${path} is in use by ${who}. Stop it, or set OPENWOP_DATA_DIR to another folder.${more}`,
    ...details,
  });
}

/** By the clock of the file system, which writes both times. In either direction: a machine's clock may begin again at its boot. */
function renewalOf(lock: string): { readonly renewedAtMs: number; readonly agoMs: number } {
  const probe = besides(lock);
  try {
    writeFileSync(probe, '', { mode: 0o600 });
    const { mtimeMs: renewedAtMs } = statSync(lock);
    return { renewedAtMs, agoMs: Math.abs(statSync(probe).mtimeMs - renewedAtMs) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return { renewedAtMs: 0, agoMs: Infinity };
  } finally {
    rmSync(probe, { force: true });
  }
}

/** A name for a file of this process alone. */
function besides(lock: string): string {
  return `${lock}.${process.pid}.${randomBytes(4).toString('hex')}`;
}

/**
 * Writes the same again; what the file system refuses now is tried again. A process that stood still for too long finds another
 * owner: it throws data_folder_in_use, which nobody catches, so that it ends soon after it goes on.
 */
function renewLock(path: string, mine: string): void {
  let held: string;
  try {
    const file = openSync(lockOf(path), 'r+');
    try {
      held = readFileSync(file, 'utf8');
      if (held === mine) writeSync(file, mine, 0);
    } finally {
      closeSync(file);
    }
  } catch {
    return;
  }
  if (held !== mine) refuse(path, 'another process, which took it over from this one');
}

/** The lock appears with its content: a link of a written file fails when the name is taken. */
function createLock(lock: string, content: string): boolean {
  const draft = besides(lock);
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
  const aside = besides(lock);
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

function releaseLock(path: string, mine: string): void {
  const lock = lockOf(path);
  if (readText(lock) === mine) rmSync(lock, { force: true });
}

function parseLock(text: string): Owner | undefined {
  try {
    return JSON.parse(text) as Owner;
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
