// New folders of the embedded database: copies of one that the cache keeps, whatever became of that.
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openPglite } from '../../src/adapters/postgres/pglite.ts';
import { quietLogger } from '../support/quiet-logger.ts';

let folder: string;
let cache: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-folders-'));
  cache = join(folder, 'cache');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Names the database: a copy has that of its original. */
async function identity(name: string, cacheDir?: string): Promise<string> {
  const pglite = await openPglite(join(folder, name), quietLogger, cacheDir);
  try {
    const rows = await pglite
      .connect()
      .query<{ id: string }>('SELECT system_identifier::text AS id FROM pg_control_system()');
    return rows[0]?.id ?? '';
  } finally {
    await pglite.close();
  }
}
const kept = async () => (await readdir(cache)).filter((name) => name.startsWith('empty-database'));

it('the first is kept empty, and the next ones are copies of it', async () => {
  const one = await identity('one', cache);
  expect(await kept()).toEqual([expect.stringMatching(/^empty-database-[\d.]+$/)]);
  expect(await identity('two', cache)).toBe(one);
  expect(await identity('one', cache)).toBe(one);
  expect(await identity('alone')).not.toBe(one);
});

it('a copy that was cut off is made again', async () => {
  await mkdir(join(folder, 'cut', 'base'), { recursive: true });
  await writeFile(join(folder, 'cut', 'base', 'half'), '');
  expect(await identity('cut', cache)).toBe(await identity('one', cache));
});

it('what others took of the kept one does no harm, and it is made again', async () => {
  const [name = ''] = await kept();
  const one = await identity('one', cache);
  await rm(join(cache, name, 'global'), { recursive: true });
  const other = await identity('taken', cache);
  expect(other).not.toBe(one);
  await identity('next', cache);
  expect(await kept()).toEqual([name]);
  expect(await identity('last', cache)).toBe(await identity('next', cache));
});

it('a cache that cannot be written is done without', async () => {
  await writeFile(join(folder, 'file'), '');
  expect(await identity('without', join(folder, 'file'))).not.toBe('');
});

it('two that make one at once have it both, and leave nothing else', async () => {
  const both = join(folder, 'both');
  const made = await Promise.all([identity('left', both), identity('right', both)]);
  expect(made.every((id) => id !== '')).toBe(true);
  expect(await readdir(both)).toHaveLength(1);
});
