// New folders of the embedded database: copies of one that the cache keeps, whatever became of that. What a folder has in it is
// for PGlite alone: but for one case, its files are written here.
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeFolder, makeFolderAnew } from '../../src/adapters/postgres/pglite-folder.ts';
import { openPglite } from '../../src/adapters/postgres/pglite.ts';
import { quietLogger } from '../support/quiet-logger.ts';

let folder: string;
let cache: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-folders-'));
  // They may have any name.
  cache = join(folder, `a b%20#c'"$&*?[1]`);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const KEPT = expect.stringMatching(/^empty-database-[\d.]+$/) as unknown;
/** Of a database's files, the one that names it: a copy has that of its original. */
const NAMING = 'global/pg_control';
const kept = async () => (await readdir(cache)).filter((name) => name.startsWith('empty-database'));

describe('a folder', () => {
  let made = 0;
  const initialise = async (dir: string): Promise<void> => {
    made += 1;
    await mkdir(join(dir, 'global'));
    await writeFile(join(dir, NAMING), `database ${made}`);
    await writeFile(join(dir, 'PG_VERSION'), '17');
  };
  /** Makes a folder, and names its database. */
  async function identity(name: string, cacheDir?: string): Promise<string> {
    const dir = join(folder, name);
    await mkdir(dir, { recursive: true });
    await makeFolder(dir, cacheDir, initialise);
    return readFile(join(dir, NAMING), 'utf8');
  }

  it('the first is kept empty, and the next ones are copies of it', async () => {
    const one = await identity('one', cache);
    expect(await kept()).toEqual([KEPT]);
    expect(await identity('two', cache)).toBe(one);
    expect(await identity('alone')).not.toBe(one);
  });

  it('a copy that was cut off is made again', async () => {
    await mkdir(join(folder, 'cut', 'base'), { recursive: true });
    await writeFile(join(folder, 'cut', 'base', 'half'), '');
    expect(await identity('cut', cache)).toBe(await identity('one', cache));
  });

  it('what others took of the kept one does no harm, and one that is gone is made again', async () => {
    const one = await identity('one', cache);
    const [name = ''] = await kept();
    await rm(join(cache, name, 'PG_VERSION'));
    const other = await identity('other', cache);
    expect(other).not.toBe(one);
    expect(await identity('another', cache)).toBe(other);
    await rm(join(cache, name), { recursive: true, force: true });
    const next = await identity('next', cache);
    expect(await kept()).toEqual([name]);
    expect(await identity('last', cache)).toBe(next);
  });

  it('made anew it is no copy, and nor is the next one of what was kept', async () => {
    const one = await identity('one', cache);
    await makeFolderAnew(join(folder, 'one'), cache, initialise);
    const anew = await readFile(join(folder, 'one', NAMING), 'utf8');
    expect(anew).not.toBe(one);
    expect(await kept()).toEqual([]);
    expect(await identity('next', cache)).not.toBe(one);
  });

  it('a cache that cannot be written is done without', async () => {
    await writeFile(join(folder, 'file'), '');
    expect(await identity('without', join(folder, 'file'))).not.toBe('');
  });

  it('two that make one at once have it both, and leave nothing else', async () => {
    const [left, right] = await Promise.all([identity('left', cache), identity('right', cache)]);
    expect(left).toBe(right);
    expect(await readdir(cache)).toEqual([KEPT]);
  });
});

describe('the embedded database', () => {
  async function identity(name: string): Promise<string> {
    const pglite = await openPglite(join(folder, name), quietLogger, cache);
    try {
      const rows = await pglite
        .connect()
        .query<{ id: string }>('SELECT system_identifier::text AS id FROM pg_control_system()');
      return rows[0]?.id ?? '';
    } finally {
      await pglite.close();
    }
  }

  /** Files, some of them made when it was opened, that are not for their user alone. */
  async function filesOfOthers(dir: string): Promise<string[]> {
    const names = await readdir(dir, { recursive: true });
    const states = await Promise.all(
      names.map(async (name) => ({ name, state: await stat(join(dir, name)) })),
    );
    return states
      .filter(({ state }) => state.isFile() && (state.mode & 0o077) !== 0)
      .map(({ name }) => name);
  }

  it('opens a copy of the kept one, whose files are private, and another one where what was kept cannot be opened', async () => {
    const one = await identity('one');
    expect(await filesOfOthers(join(folder, 'one'))).toEqual([]);
    const [name = ''] = await kept();
    expect((await readFile(join(cache, name, NAMING))).readBigUInt64LE().toString()).toBe(one);
    await rm(join(cache, name, 'global'), { recursive: true });
    expect(await identity('taken')).not.toBe(one);
    expect(await kept()).toEqual([]);
  });
});
