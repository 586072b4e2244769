// Content as files below the data folder (architecture §3.6): <dir>/<tenant>/<2 hex>/<64 hex>, written whole or not at
// all. Who needs which of them stands in the database.
import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, HostError } from '../../rules/errors.ts';
import { sha256Hex } from '../../rules/ids.ts';
import { hashOfBytes, requireHash, verified } from './content-rules.ts';

const PLAIN_TENANT = /^[a-z0-9][a-z0-9_-]{0,63}$/;
/** Files that a killed process left unfinished; `~` begins no tenant's folder but hashed ones. */
const UNFINISHED = '~unfinished';

/** A block of most file systems: a full disk takes none. */
const PROBE = Buffer.alloc(4096, 'probe');
const AT_CONTENT = { part: 'content' };

export interface ContentFiles {
  /** Idempotent; `hash` is that of the bytes. Throws service_unavailable, as all do where the disk is away. */
  put(tenant: string, hash: string, bytes: Uint8Array): Promise<void>;
  /** Throws HostError content_missing: it is not there, damaged, or its file alone cannot be read. */
  get(tenant: string, hash: string): Promise<Uint8Array>;
  /** Idempotent, and for good before it resolves. Throws HostError content_missing of what is no hash. */
  remove(tenant: string, hash: string): Promise<void>;
  /** Whether values can be stored now: writes a little, reads it back, and removes it. */
  probe(): Promise<void>;
}

/** Makes `dir` (0700). One process owns it. */
export async function createContentFiles(dir: string): Promise<ContentFiles> {
  const unfinished = join(dir, UNFINISHED);
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { recursive: true, mode: 0o700 });
  const placeOf = (tenant: string, hash: string): { folder: string; file: string } => {
    requireHash(hash);
    const hex = hash.slice('sha256:'.length);
    const folder = join(
      dir,
      PLAIN_TENANT.test(tenant) ? tenant : `~${sha256Hex(tenant)}`,
      hex.slice(0, 2),
    );
    return { folder, file: join(folder, hex) };
  };
  return {
    put: (tenant, hash, bytes) =>
      onDisk(unfinished, async () => {
        const { folder, file } = placeOf(tenant, hash);
        // A file that is damaged, or that cannot be read, is written again: the value is at hand now.
        const stored = await readFile(file).catch(() => undefined);
        if (stored && hashOfBytes(stored) === hash) return;
        await mkdir(folder, { recursive: true, mode: 0o700 });
        const temporary = join(unfinished, randomUUID());
        try {
          await writeSynced(temporary, bytes);
          await replace(file, temporary);
        } catch (error) {
          await rm(temporary, { force: true });
          throw error;
        }
        await syncFolder(folder);
      }),
    async get(tenant, hash) {
      const { folder, file } = placeOf(tenant, hash);
      const read = () =>
        onDisk(unfinished, async () => verified(hash, await ifThere(readFile(file))));
      try {
        return await read();
      } catch (error) {
        if (!isOfFile(error)) throw error;
      }
      // Where its own folder takes another file and gives it back it is the fault of this one.
      await onDisk(unfinished, () => probe(folder));
      return read().catch((error: unknown) => {
        if (!isOfFile(error)) throw error;
        throw new HostError(
          'content_missing',
          { hash, reason: 'A stored value cannot be read.' },
          error,
        );
      });
    },
    remove: (tenant, hash) =>
      onDisk(unfinished, async () => {
        const { folder, file } = placeOf(tenant, hash);
        if ((await ifThere(stat(file))) === undefined) {
          // Of a disk that is not there nothing is removed.
          await stat(unfinished);
          return;
        }
        await rm(file, { force: true });
        await syncFolder(folder);
      }),
    probe: () => onDisk(unfinished, () => probe(unfinished)),
  };
}

async function probe(folder: string): Promise<void> {
  const file = join(folder, `probe-${randomUUID()}`);
  try {
    await writeSynced(file, PROBE);
    if (!PROBE.equals(await readFile(file))) throw new HostError('service_unavailable', AT_CONTENT);
  } finally {
    await rm(file, { force: true });
  }
}

/** What one file alone can cause. All else (EIO, ESTALE, EMFILE, …) says nothing of the value. */
const OF_FILE: ReadonlySet<string | undefined> = new Set(['EISDIR', 'ELOOP', 'EACCES', 'EPERM']);

/** An outage that may be the fault of one file. */
function isOfFile(error: unknown): boolean {
  if (codeOf(error) !== 'service_unavailable') return false;
  const { code } = ((error as Error).cause ?? {}) as NodeJS.ErrnoException;
  return OF_FILE.has(code);
}

/** Also an empty folder that has the place of the file. */
async function replace(file: string, temporary: string): Promise<void> {
  try {
    await rename(temporary, file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EISDIR') throw error;
    await rmdir(file);
    await rename(temporary, file);
  }
}

/** That the disk is full, gone or broken says nothing of the value. A folder that is not there at all is no empty one. */
async function onDisk<Value>(dir: string, work: () => Promise<Value>): Promise<Value> {
  try {
    return await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isMissing = codeOf(error) === 'content_missing';
    const isLost = isMissing && (await ifThere(stat(dir)).catch(() => undefined)) === undefined;
    if (!isLost && (codeOf(error) !== undefined || code === undefined)) throw error;
    throw new HostError('service_unavailable', AT_CONTENT, error);
  }
}

async function ifThere<Value>(read: Promise<Value>): Promise<Value | undefined> {
  try {
    return await read;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

async function writeSynced(file: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes a rename, or a removal, last. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
