// Content as files below the data folder (architecture §3.6): <dir>/<tenant>/<2 hex>/<64 hex>, written whole or not at
// all.
import { randomUUID } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sha256Hex } from '../../rules/ids.ts';
import type { ContentStore } from '../../ports/content.ts';
import { checkedHash, hashOfBytes, requireHash, verified } from './content-rules.ts';

const PLAIN_TENANT = /^[a-z0-9][a-z0-9_-]{0,63}$/;
/** Files that a killed process left unfinished; `~` begins no tenant's folder but hashed ones. */
const UNFINISHED = '~unfinished';

/** Makes `dir` (0700). One process owns it. */
export async function createFileContentStore(dir: string): Promise<ContentStore> {
  const unfinished = join(dir, UNFINISHED);
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { recursive: true, mode: 0o700 });
  const placeOf = (tenant: string, hash: string): { folder: string; file: string } => {
    const hex = hash.slice('sha256:'.length);
    const folder = join(
      dir,
      PLAIN_TENANT.test(tenant) ? tenant : `~${sha256Hex(tenant)}`,
      hex.slice(0, 2),
    );
    return { folder, file: join(folder, hex) };
  };
  async function put(tenant: string, bytes: Uint8Array): Promise<string> {
    const hash = checkedHash(bytes);
    const { folder, file } = placeOf(tenant, hash);
    const stored = await readIfThere(file);
    // A damaged file is written again: the value is at hand now.
    if (stored && hashOfBytes(stored) === hash) return hash;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const temporary = join(unfinished, randomUUID());
    await writeSynced(temporary, bytes);
    await rename(temporary, file);
    await syncFolder(folder);
    return hash;
  }
  return {
    put,
    async putAll(tenant, values) {
      const hashes: string[] = [];
      for (const bytes of values) hashes.push(await put(tenant, bytes));
      return hashes;
    },
    async get(tenant, hash) {
      requireHash(hash);
      return verified(hash, await readIfThere(placeOf(tenant, hash).file));
    },
  };
}

async function readIfThere(file: string): Promise<Uint8Array | undefined> {
  try {
    return await readFile(file);
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

/** Makes the rename last. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
