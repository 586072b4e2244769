// Content that is removed while something else happens to it (architecture §3.7): a file that cannot be removed is told of, and
// comes again; a need that ends in the middle of a put or a sweep leaves nothing behind.
import { mkdir, mkdtemp, readdir, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { endNeeds } from '../../src/adapters/postgres/content-refs.ts';
import type { Db } from '../../src/adapters/postgres/db.ts';
import {
  openDatabase,
  storesOn,
  type OpenStoresOptions,
} from '../../src/adapters/postgres/index.ts';
import { createLogger } from '../../src/app/logger.ts';
import { codeOf } from '../../src/rules/errors.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { newId } from '../contract/given.ts';
import { isThere, member } from '../contract/retention.ts';
import { pgliteDatabase } from '../support/databases.ts';
import { steppedDb } from '../support/fault-point.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { quietLogger } from '../support/quiet-logger.ts';

/** Stores of a database, and what happens in the middle of their work. */
interface Interrupted {
  readonly stores: Stores;
  /** Without the interruption. */
  readonly db: Db;
  /** Once, before the n-th statement or COMMIT from now on. */
  readonly before: (nth: number, work: () => Promise<unknown>) => void;
}

async function interrupted(options: OpenStoresOptions): Promise<Interrupted> {
  const opened = await openDatabase(options.database, options.logger);
  let step = async (): Promise<void> => undefined;
  const steps = { count: () => 0, step: () => step() };
  const db = steppedDb(opened.db, () => steps);
  return {
    stores: await storesOn({ db, close: opened.close }, options),
    db: opened.db,
    before(nth, work) {
      let count = 0;
      step = async () => {
        count += 1;
        if (count !== nth) return;
        step = async () => undefined;
        await work();
      };
    },
  };
}

let files: Interrupted;
let stores: Stores;
let dir: string;
const lines: string[] = [];
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'openwop-sweep-'));
  const write = (line: string) => void lines.push(line);
  const logger = createLogger({ level: 'warn', write });
  files = await interrupted({ database: await pgliteDatabase(), contentDir: dir, logger });
  ({ stores } = files);
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

const sweepAll = async ({ content }: Stores): Promise<void> => {
  while ((await content.sweep(10)) > 0);
};

async function endNeedsOf({ retention }: Stores, run: RunRef): Promise<void> {
  await retention.expire(run, { keptMs: 0, restMs: 0 });
  while (!(await retention.clean(run, 100)));
}

/** Does it again with each of its steps as the one before which something happens; returns how many there are. */
async function atEachStep(once: (nth: number) => Promise<boolean>): Promise<number> {
  for (let nth = 1; ; nth++) if (!(await once(nth))) return nth - 1;
}

/** A value whose only need ends in the middle of its put, and is swept there if `isSwept`. */
async function endsInPut({ stores: own, before }: Interrupted, isSwept: boolean): Promise<void> {
  const steps = await atEachStep(async (nth) => {
    const run = await member(own);
    const bytes = new TextEncoder().encode(newId('value'));
    // Another run's, so that its hash is known.
    const other = await member(own);
    const hash = await own.content.put(other, bytes);
    await endNeedsOf(own, other);
    let happened = false;
    before(nth, async () => {
      happened = true;
      await endNeedsOf(own, run);
      if (isSwept) await sweepAll(own);
    });
    const refused = await own.content.put(run, bytes).then(() => undefined, codeOf);
    before(0, async () => undefined);
    if (!happened) await endNeedsOf(own, run);
    await sweepAll(own);
    expect([nth, await isThere(own, hash)]).toEqual([nth, false]);
    if (happened) expect(refused).toBe('run_not_found');
    return happened;
  });
  expect(steps).toBeGreaterThan(1);
}

/** Two runs need a value; that of one has ended. */
async function sharedValue(own: Stores): Promise<{ last: RunRef; hash: string }> {
  const [first, last] = [await member(own), await member(own)];
  const bytes = new TextEncoder().encode(newId('value'));
  await own.content.put(first, bytes);
  const hash = await own.content.put(last, bytes);
  await endNeedsOf(own, first);
  return { last, hash };
}

describe('in files', () => {
  it.each([false, true])(
    'a value whose need ends in the middle of its put is removed (swept there: %s)',
    (isSwept) => endsInPut(files, isSwept),
  );

  it('a value whose last need ends in the middle of a sweep is removed', async () => {
    const steps = await atEachStep(async (nth) => {
      const { last, hash } = await sharedValue(stores);
      let happened = false;
      files.before(nth, async () => {
        happened = true;
        await endNeedsOf(stores, last);
      });
      await stores.content.sweep(10);
      files.before(0, async () => undefined);
      if (!happened) await endNeedsOf(stores, last);
      await sweepAll(stores);
      expect([nth, await isThere(stores, hash)]).toEqual([nth, false]);
      return happened;
    });
    expect(steps).toBeGreaterThan(2);
  });
});

const postgres = await sharePostgres();
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
});

describe.skipIf('missing' in postgres)('in a table of PostgreSQL', () => {
  let table: Interrupted;
  beforeAll(async () => {
    if ('missing' in postgres) throw new Error(postgres.missing);
    const database = { kind: 'postgres', url: await postgres.createDatabase() } as const;
    table = await interrupted({ database, logger: quietLogger });
  });
  afterAll(async () => table?.stores.close());

  it.each([false, true])(
    'a value whose need ends in the middle of its put is removed (swept there: %s)',
    (isSwept) => endsInPut(table, isSwept),
  );

  /** How many connections wait for a lock of another one. */
  const waiting = async (): Promise<number> => {
    const all = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    return (await table.db.query(all)).length;
  };

  it('a value whose last need ends in the middle of a sweep is removed', async () => {
    const { stores: own, before, db } = table;
    const steps = await atEachStep(async (nth) => {
      const { last, hash } = await sharedValue(own);
      await own.retention.expire(last, { keptMs: 0, restMs: 0 });
      let ending: Promise<boolean> | undefined;
      let isOver = false;
      before(nth, async () => {
        ending = endNeeds(db, last, 100).finally(() => (isOver = true));
        await expect.poll(async () => isOver || (await waiting()) > 0).toBe(true);
      });
      await own.content.sweep(10);
      const happened = ending !== undefined;
      await (ending ?? endNeeds(db, last, 100));
      await sweepAll(own);
      expect([nth, await isThere(own, hash)]).toEqual([nth, false]);
      return happened;
    });
    // Each statement of it, and its COMMIT.
    expect(steps).toBe(3);
  });

  it('a value that is swept before its last need is seen to have ended is removed', async () => {
    const { stores: own, db } = table;
    const { last, hash } = await sharedValue(own);
    await own.retention.expire(last, { keptMs: 0, restMs: 0 });
    await db.transaction(async (tx) => {
      await endNeeds(tx, last, 100);
      await own.content.sweep(10);
    });
    await sweepAll(own);
    expect(await isThere(own, hash)).toBe(false);
  });

  it('a put that finds its need ending waits for that end', async () => {
    const { stores: own, before, db } = table;
    const { last, hash } = await sharedValue(own);
    const run = await member(own);
    const bytes = await own.content.get('default', hash);
    let ending: Promise<boolean> | undefined;
    let putting: Promise<string | undefined> | undefined;
    await db.transaction(async (tx) => {
      // Whoever takes the value off the list, or lists it again, stands behind this.
      await tx.query('SELECT 1 FROM content_unused WHERE hash = $1 FOR UPDATE', [hash]);
      before(2, async () => {
        ending = endNeeds(db, run, 100);
        await expect.poll(waiting).toBe(1);
      });
      putting = own.content.put(run, bytes).then(() => undefined, codeOf);
      await expect.poll(waiting).toBe(2);
    });
    await ending;
    expect(await putting).toBe('run_not_found');
    await endNeedsOf(own, last);
    await sweepAll(own);
    expect(await isThere(own, hash)).toBe(false);
  });
});
