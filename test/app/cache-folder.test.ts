// Who may write where programs are kept (src/app/cache-folder.js), on a real file system.
import {
  chmodSync,
  chownSync,
  lchownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cacheFolder, openCacheFolder } from '../../src/app/cache-folder.js';

const root = mkdtempSync(join(tmpdir(), 'openwop-cache-'));
afterAll(() => rmSync(root, { recursive: true }));
const mayChown = process.geteuid?.() === 0;
/** A user and a group of nobody here. */
const STRANGER = 54_321;

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
  expect(from({})).toMatch(/\.cache\/openwop-temporal$/);
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
  it.runIf(mayChown)('where the group that may write is the user’s own', () => {
    const { cache } = fresh();
    chmodSync(cache, 0o775);
    openCacheFolder(cache);
  });
});

type Spoil = (place: { above: string; cache: string }) => string | undefined;
const SPOILT: Record<string, readonly [because: RegExp, spoil: Spoil]> = {
  'everybody may write in it': [
    /everybody may write in .*cache/,
    ({ cache }) => void chmodSync(cache, 0o777),
  ],
  'everybody may write in it, though not take what is another’s': [
    /everybody may write in .*cache/,
    ({ cache }) => void chmodSync(cache, 0o1777),
  ],
  'everybody may write in the folder above': [
    /everybody may write in .*place-\d+$/,
    ({ above }) => void chmodSync(above, 0o777),
  ],
  'a link leads to where everybody may write': [
    /everybody may write in .*place-\d+$/,
    ({ above, cache }) => {
      const link = join(root, `link-${number++}`);
      symlinkSync(cache, link);
      chmodSync(above, 0o777);
      return link;
    },
  ],
};
const TAKEN: typeof SPOILT = {
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
  it.each(Object.entries(SPOILT))('%s', (_, spoilt) => refused(spoilt));
  it.runIf(mayChown).each(Object.entries(TAKEN))('%s', (_, spoilt) => refused(spoilt));
});
