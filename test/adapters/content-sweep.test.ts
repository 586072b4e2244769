// Content in files of which one cannot be removed (architecture §3.7): the others go, it is told of, and it comes again.
import { mkdir, mkdtemp, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStores } from '../../src/adapters/postgres/index.ts';
import { createLogger } from '../../src/app/logger.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { newId } from '../contract/given.ts';
import { member } from '../contract/retention.ts';
import { pgliteDatabase } from '../support/databases.ts';

let stores: Stores;
let dir: string;
const lines: string[] = [];
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'openwop-sweep-'));
  const write = (line: string) => void lines.push(line);
  const logger = createLogger({ level: 'warn', write });
  stores = await openStores({ database: await pgliteDatabase(), contentDir: dir, logger });
});
afterAll(async () => {
  await stores.close();
  await rm(dir, { recursive: true, force: true });
});

const fileOf = (hash: string): string => {
  const hex = hash.slice('sha256:'.length);
  return join(dir, 'default', hex.slice(0, 2), hex);
};

test('a file that cannot be removed keeps no other: they go, it is told of, and goes when it can', async () => {
  const run = await member(stores);
  const hashes: string[] = [];
  for (let at = 0; at < 5; at++)
    hashes.push(await stores.content.put(run, new TextEncoder().encode(newId('value'))));
  await stores.retention.expire(run, { keptMs: 0, restMs: 0 });
  while (!(await stores.retention.clean(run, 100)));
  const [stuck = '', ...others] = hashes;
  await rm(fileOf(stuck));
  await mkdir(fileOf(stuck));
  // In pieces of one: what is stuck is looked at first only once.
  const swept = [];
  for (let at = 0; at < 10; at++) swept.push(await stores.content.sweep(1));
  expect(swept.reduce((sum, count) => sum + count, 0)).toBe(others.length);
  for (const hash of others)
    await expect(readdir(fileOf(hash))).rejects.toMatchObject({ code: 'ENOENT' });
  expect(lines.join('')).toContain('cannot be removed');
  expect(lines.join('')).toContain(stuck);
  await rmdir(fileOf(stuck));
  expect([await stores.content.sweep(10), await stores.content.sweep(10)]).toEqual([1, 0]);
});
