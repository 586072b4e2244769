// Prepared databases stay for as long as somebody uses them.
import { existsSync, mkdirSync, symlinkSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryFolder } from './folders.ts';
import { prepareDatabase, removeOld } from './prepare.ts';
import { migratedFolder } from './prepared.ts';

const EIGHT_DAYS_S = 8 * 24 * 3_600;

/** A folder that was made or used eight days ago. */
function makeOld(path: string): string {
  mkdirSync(path);
  const seconds = Date.now() / 1_000 - EIGHT_DAYS_S;
  utimesSync(path, seconds, seconds);
  return path;
}

it('one that is used is not old; one that nobody used for a week goes', async () => {
  const cache = await temporaryFolder('prepared');
  const used = makeOld(migratedFolder(cache));
  const unused = makeOld(join(cache, 'test-database-unused'));
  await prepareDatabase(cache);
  removeOld(cache);
  expect([existsSync(used), existsSync(unused)]).toEqual([true, false]);
});

it('one that another run takes away meanwhile stops nobody', async () => {
  const cache = await temporaryFolder('prepared');
  symlinkSync(join(cache, 'gone'), join(cache, 'test-database-gone'));
  const unused = makeOld(join(cache, 'test-database-unused'));
  removeOld(cache);
  expect(existsSync(unused)).toBe(false);
});
