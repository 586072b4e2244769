// The content store in files, of which the disk fails (architecture §4.1): an outage, and no value that is missing.
import { mkdir, mkdtemp, readdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createContentFiles } from '../../src/adapters/content/file-content-store.ts';
import { hashOfBytes } from '../../src/adapters/content/content-rules.ts';

const folder = await mkdtemp(join(tmpdir(), 'openwop-content-'));
afterAll(() => rm(folder, { recursive: true, force: true }));

const bytes = new TextEncoder().encode('a value');
const hash = hashOfBytes(bytes);
const otherBytes = new TextEncoder().encode('another');
const other = hashOfBytes(otherBytes);
const outage = { code: 'service_unavailable', details: { part: 'content' } };

// [I98]
test('a folder that is gone holds nothing and misses nothing: it is an outage until it is back', async () => {
  const dir = join(folder, 'gone');
  const files = await createContentFiles(dir);
  await files.put('default', hash, bytes);
  await rename(dir, `${dir}.away`);
  await expect(files.get('default', hash)).rejects.toMatchObject(outage);
  await expect(files.put('default', other, bytes)).rejects.toMatchObject(outage);
  await expect(files.probe()).rejects.toMatchObject(outage);
  await expect(files.remove('default', hash)).rejects.toMatchObject(outage);
  await rm(dir, { recursive: true, force: true });
  await rename(`${dir}.away`, dir);
  expect(Buffer.from(await files.get('default', hash)).equals(bytes)).toBe(true);
});

test('of a disk that is not mounted nothing is removed', async () => {
  const dir = join(folder, 'unmounted');
  const files = await createContentFiles(dir);
  await files.put('default', hash, bytes);
  await rename(dir, `${dir}.away`);
  await mkdir(dir);
  await expect(files.remove('default', hash)).rejects.toMatchObject(outage);
  await expect(files.get('default', hash)).rejects.toMatchObject(outage);
  await rm(dir, { recursive: true });
  await rename(`${dir}.away`, dir);
  await files.probe();
  await files.remove('default', hash);
  await files.remove('default', hash);
  await expect(files.get('default', hash)).rejects.toMatchObject({ code: 'content_missing' });
});

test('a value that is not there, where the folder is, is missing', async () => {
  const files = await createContentFiles(join(folder, 'there'));
  await expect(files.get('default', other)).rejects.toMatchObject({ code: 'content_missing' });
});

// [I97]
test('of what is no hash nothing beside the folder is read, written or removed', async () => {
  const dir = join(folder, 'beside', 'content');
  const files = await createContentFiles(dir);
  const beside = join(folder, 'beside', 'api-key');
  await writeFile(beside, 'secret');
  for (const text of ['sha256:../api-key', 'sha256:../../api-key', '', hash.toUpperCase()]) {
    const refused = { code: 'content_missing' };
    await expect(files.remove('default', text)).rejects.toMatchObject(refused);
    await expect(files.put('default', text, bytes)).rejects.toMatchObject(refused);
    await expect(files.get('default', text)).rejects.toMatchObject(refused);
  }
  expect(await readdir(join(folder, 'beside'))).toContain('api-key');
});

// [I97]
test('a file that cannot be read on a disk that answers is that value’s fault, and is written again', async () => {
  const dir = join(folder, 'odd');
  const files = await createContentFiles(dir);
  await files.put('default', other, otherBytes);
  const hex = hash.slice('sha256:'.length);
  const file = join(dir, 'default', hex.slice(0, 2), hex);
  await mkdir(file, { recursive: true });
  await expect(files.get('default', hash)).rejects.toMatchObject({
    ...{ code: 'content_missing', details: { hash } },
  });
  expect(Buffer.from(await files.get('default', other)).equals(otherBytes)).toBe(true);
  await files.put('default', hash, bytes);
  expect(Buffer.from(await files.get('default', hash)).equals(bytes)).toBe(true);
  await rm(file);
  await symlink(file, file);
  await expect(files.get('default', hash)).rejects.toMatchObject({ code: 'content_missing' });
  expect(await readdir(dirname(file))).toEqual([hex]);
});

// [I98] Each of them fails for every value of the folder, or of the disk, alike.
test.each<[string, (tenant: string, file: string) => Promise<void>]>([
  ['a tenant whose folder is none', (tenant) => writeFile(tenant, '')],
  ['a tenant whose folder cannot be reached', (tenant) => symlink(tenant, tenant)],
  [
    'an error of the device',
    async (_, file) => {
      await mkdir(dirname(file), { recursive: true });
      // Its first page is mapped nowhere: the read fails with EIO.
      await symlink('/proc/self/mem', file);
    },
  ],
])('%s is an outage, though other folders take and give files', async (name, breaks) => {
  const dir = join(folder, name);
  const files = await createContentFiles(dir);
  const hex = hash.slice('sha256:'.length);
  await breaks(join(dir, 'default'), join(dir, 'default', hex.slice(0, 2), hex));
  await files.probe();
  await expect(files.get('default', hash)).rejects.toMatchObject(outage);
});

test('what cannot be written is an outage, and leaves nothing behind', async () => {
  const dir = join(folder, 'full');
  const files = await createContentFiles(dir);
  // No folder of the tenant can be made.
  await writeFile(join(dir, 'default'), '');
  await expect(files.put('default', hash, bytes)).rejects.toMatchObject(outage);
  await rm(join(dir, 'default'));
  await files.put('default', hash, bytes);
  expect(Buffer.from(await files.get('default', hash)).equals(bytes)).toBe(true);
});
