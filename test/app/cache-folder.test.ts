// Who may write where programs are kept (src/app/cache-folder.js), on a real file system.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { cacheFolder, openCacheFolder } from '../../src/app/cache-folder.js';

const root = mkdtempSync(join(tmpdir(), 'openwop-cache-'));
afterAll(() => rmSync(root, { recursive: true }));
const CACHE_FOLDER = new URL('../../src/app/cache-folder.js', import.meta.url);
/** Users and groups of nobody here. */
const STRANGER = 54_321;
const OTHER = 54_322;
const AS_STRANGER = ['--reuid', String(STRANGER), '--regid', String(STRANGER), '--clear-groups'];
const NAMESPACE = ['unshare', '-U', '-r'];
const mayChown = process.geteuid?.() === 0;
/** Whether a program runs as somebody else, and this Node can be run by anybody. */
const mayRun = (...within: readonly string[]) =>
  mayChown &&
  spawnSync('setpriv', [...AS_STRANGER, ...within, process.execPath, '-v']).status === 0;
const isRoot = mayRun();
const mayUnshare = mayRun(...NAMESPACE);

let number = 0;
/** A fresh place with a folder `above` in it, and `cache` in that. */
function fresh(): { above: string; cache: string } {
  const above = join(root, `place-${number++}`);
  const cache = join(above, 'cache');
  mkdirSync(cache, { recursive: true, mode: 0o755 });
  return { above, cache };
}

it('is the one that is named, or in the folder for caches', () => {
  const from = (env: Record<string, string>) => cacheFolder((name) => env[name]);
  expect(from({ OPENWOP_CACHE_DIR: '/a/../b' })).toBe('/b');
  expect(from({ XDG_CACHE_HOME: '/c' })).toBe('/c/openwop-temporal');
  // A relative one is ignored (XDG Base Directory Specification).
  for (const caches of ['', 'c'])
    expect(from({ XDG_CACHE_HOME: caches })).toBe(join(homedir(), '.cache/openwop-temporal'));
});

it('[I107] is made for its user alone', () => {
  const folder = join(fresh().above, 'x/y');
  openCacheFolder(folder);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  openCacheFolder(folder);
});

describe('is taken', () => {
  it.each([0o700, 0o755, 0o555])('with mode %o', (mode) => {
    const { cache } = fresh();
    chmodSync(cache, mode);
    openCacheFolder(cache);
  });
  it('in a folder where everybody may write and nobody may take what is another’s', () => {
    const { above, cache } = fresh();
    chmodSync(above, 0o1777);
    openCacheFolder(cache);
  });
  it('by a link of its user', () => {
    const { above, cache } = fresh();
    symlinkSync(cache, join(above, 'link'));
    symlinkSync('link', join(above, 'second'));
    openCacheFolder(join(above, 'second'));
  });
  it.runIf(mayChown)('where the group that may write is the user’s own, and closed to it', () => {
    const { above, cache } = fresh();
    for (const path of [above, cache]) chmodSync(path, 0o775);
    openCacheFolder(cache);
    expect([above, cache].map((path) => statSync(path).mode & 0o777)).toEqual([0o775, 0o755]);
  });
  it.runIf(isRoot)('where it belongs to whoever owns the program', () => {
    const { above, cache } = fresh();
    chownSync(above, STRANGER, STRANGER);
    chownSync(cache, OTHER, OTHER);
    expect(openBy([], cache)).toMatch(/cache belongs to user 54322/);
    expect(openBy([], cache, OTHER)).toBe('opened');
  });
  it.runIf(mayUnshare)('in a user namespace, where the system’s own folders have no owner', () => {
    const { above, cache } = fresh();
    for (const path of [above, cache]) chownSync(path, STRANGER, STRANGER);
    expect(openBy(NAMESPACE, cache)).toBe('opened');
    chownSync(cache, OTHER, STRANGER);
    expect(openBy(NAMESPACE, cache)).toMatch(/cache belongs to user 65534/);
  });
});

/** What the program says as STRANGER, within another one, when it belongs to `owner`. */
function openBy(within: readonly string[], cache: string, owner = 0): string {
  const program = join(root, `program-${number++}`);
  const module = join(program, 'cache-folder.mjs');
  mkdirSync(program);
  copyFileSync(fileURLToPath(CACHE_FOLDER), module);
  chownSync(program, owner, owner);
  chmodSync(root, 0o755);
  const code = `
    const { openCacheFolder } = await import(${JSON.stringify(module)});
    try { openCacheFolder(${JSON.stringify(cache)}); console.log('opened'); }
    catch (error) { console.log(error.message); }`;
  const node = [process.execPath, '--input-type=module', '-e', code];
  return execFileSync('setpriv', [...AS_STRANGER, ...within, ...node], { encoding: 'utf8' }).trim();
}

type Spoil = (place: { above: string; cache: string }) => string | undefined;
const OPEN_TO_ALL: Record<string, readonly [because: RegExp, spoil: Spoil]> = {
  'everybody may write in it': [
    /everybody may write in .*cache/,
    ({ cache }) => void chmodSync(cache, 0o777),
  ],
  'everybody may write in it, though not take what is another’s': [
    /everybody may write in .*cache/,
    ({ cache }) => void chmodSync(cache, 0o1777),
  ],
  'everybody may write in the folder above': [
    /everybody may write in .*place-\d+ \(chmod go-w/,
    ({ above }) => void chmodSync(above, 0o777),
  ],
  'everybody may write in what is in it': [
    /everybody may write in .*cache\/program: remove it/,
    ({ cache }) => {
      mkdirSync(join(cache, 'program'));
      chmodSync(join(cache, 'program'), 0o777);
      return undefined;
    },
  ],
  'a link that leads up again from where everybody may write': [
    /everybody may write in .*open/,
    ({ above }) => {
      mkdirSync(join(above, 'open/inside'), { recursive: true });
      mkdirSync(join(above, 'open/cache'));
      chmodSync(join(above, 'open'), 0o777);
      symlinkSync('open/inside', join(above, 'share'));
      symlinkSync('share/../cache', join(above, 'link'));
      return join(above, 'link');
    },
  ],
  'a link leads to where everybody may write': [
    /everybody may write in .*place-\d+ \(chmod go-w/,
    ({ above, cache }) => {
      const link = join(root, `link-${number++}`);
      symlinkSync(cache, link);
      chmodSync(above, 0o777);
      return link;
    },
  ],
};
const OF_OTHERS: typeof OPEN_TO_ALL = {
  'a group of others may write in it': [
    /group 54321 may write in .*cache/,
    ({ cache }) => {
      chownSync(cache, 0, STRANGER);
      chmodSync(cache, 0o775);
      return undefined;
    },
  ],
  'it belongs to somebody else': [
    /cache belongs to user 54321/,
    ({ cache }) => void chownSync(cache, STRANGER, 0),
  ],
  'somebody else has put something there': [
    /cache\/program belongs to user 54321: remove it/,
    ({ cache }) => {
      mkdirSync(join(cache, 'program'));
      chownSync(join(cache, 'program'), STRANGER, STRANGER);
      return undefined;
    },
  ],
  'a folder above belongs to somebody else': [
    /place-\d+ belongs to user 54321/,
    ({ above }) => void chownSync(above, STRANGER, 0),
  ],
  'somebody else’s link leads to it': [
    /the link .* belongs to user 54321/,
    ({ above, cache }) => {
      chmodSync(above, 0o1777);
      const link = join(above, 'link');
      symlinkSync(cache, link);
      lchownSync(link, STRANGER, 0);
      return link;
    },
  ],
};

describe('[I107] is refused where', () => {
  const refused = ([because, spoil]: readonly [RegExp, Spoil]) => {
    const place = fresh();
    const folder = spoil(place) ?? place.cache;
    expect(() => openCacheFolder(folder)).toThrow(
      expect.objectContaining({
        code: 'not_private',
        message: expect.stringMatching(because) as unknown,
      }),
    );
  };
  it.each(Object.entries(OPEN_TO_ALL))('%s', (_, each) => refused(each));
  it.runIf(mayChown).each(Object.entries(OF_OTHERS))('%s', (_, each) => refused(each));
});
