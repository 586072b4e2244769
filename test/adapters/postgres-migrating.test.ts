// How the schema comes into a database (architecture §7): one that is there and locked, one of another release, and two
// installations in one database.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { openDatabase, openStores } from '../../src/adapters/postgres/index.ts';
import type { DatabaseOptions } from '../../src/adapters/postgres/index.ts';
import { migrate, readMigrations, type Migration } from '../../src/adapters/postgres/migrate.ts';
import type { FeedPage } from '../../src/ports/feed.ts';
import { appendRows, eventually, startedRun } from '../contract/given.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { CACHE_DIR } from '../support/temporal.ts';

const TENANT = 'acme';
const postgres = await sharePostgres();
const dir = await mkdtemp(join(tmpdir(), 'openwop-migrating-'));
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
  await rm(dir, { recursive: true, force: true });
});

const FIRST: Migration = { version: 1, name: 'table', sql: 'CREATE TABLE things (n integer)' };
const SECOND: Migration = {
  version: 2,
  name: 'column',
  sql: 'ALTER TABLE things ADD COLUMN m integer',
};

const emptyDatabase = async (): Promise<DatabaseOptions & { kind: 'postgres' }> => {
  if ('missing' in postgres) throw new Error(postgres.missing);
  return { kind: 'postgres', url: await postgres.createEmptyDatabase() };
};
let folders = 0;
const emptyFolder = (): DatabaseOptions => ({
  ...{ kind: 'pglite', dir: join(dir, `data${folders++}`), cacheDir: CACHE_DIR },
});

describe.skipIf('missing' in postgres).each([['PostgreSQL', emptyDatabase]])('%s', refusing);
describe.each([['PGlite', emptyFolder]])('%s', refusing);

function refusing(_: string, database: () => DatabaseOptions | Promise<DatabaseOptions>): void {
  it.each([
    [
      'of its first states, which kept no digest',
      'ALTER TABLE schema_migrations DROP COLUMN digest',
    ],
    ['with another schema of the same name', 'SELECT 1'],
  ])(
    'architecture §7 a database from before the first release, %s, is refused by name and stays as it is',
    async (_name, change) => {
      const { db, close } = await openDatabase(await database(), quietLogger);
      try {
        await migrate(db, [{ ...FIRST, name: 'schema' }]);
        await db.query(change);
        await db.query('INSERT INTO things VALUES (7)');
        await expect(migrate(db, await readMigrations())).rejects.toMatchObject({
          code: 'config_invalid',
          message: expect.stringContaining('from before release 0.1.0') as string,
        });
        expect(await db.query('SELECT n FROM things')).toEqual([{ n: 7 }]);
      } finally {
        await close();
      }
    },
  );
}

it('architecture §7 comments of a schema are no other schema', async () => {
  const { db, close } = await openDatabase(emptyFolder(), quietLogger);
  try {
    await migrate(db, [FIRST]);
    await migrate(db, [{ ...FIRST, sql: `-- Of things.\n${FIRST.sql}\n` }]);
  } finally {
    await close();
  }
});

describe.skipIf('missing' in postgres)('PostgreSQL', () => {
  const database = emptyDatabase;

  it('architecture §7 a migration whose tables are locked gives up at once, comes again, and says what is wrong in the end', async () => {
    const options = await database();
    const { db, close } = await openDatabase(options, quietLogger);
    await migrate(db, [FIRST]);
    const client = new pg.Client({ connectionString: options.url });
    await client.connect();
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM things');
    await expect(migrate(db, [FIRST, SECOND], 2)).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringContaining('found its tables locked 2 times') as string,
    });
    // Nobody stands behind it any more.
    await db.query('INSERT INTO things VALUES (1)');
    const migrating = migrate(db, [FIRST, SECOND]);
    await eventually(async () => {
      const waiting = await db.query(`SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE NOT l.granted AND a.datname = current_database()`);
      return waiting.length > 0;
    }, 'a try that waits');
    await db.query('INSERT INTO things VALUES (2)');
    await client.query('COMMIT');
    await client.end();
    await migrating;
    expect(await db.query('SELECT n, m FROM things ORDER BY n')).toEqual([
      { n: 1, m: null },
      { n: 2, m: null },
    ]);
    await close();
  });

  it('architecture §3.6 installations in schemas of one database hold nothing of each other back', async () => {
    const { url } = await database();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('CREATE SCHEMA one; CREATE SCHEMA two');
    const of = (schema: string) =>
      openStores({
        database: { kind: 'postgres', url: `${url}?options=-csearch_path%3D${schema}` },
        logger: quietLogger,
      });
    const [one, two] = [await of('one'), await of('two')];
    await client.query('SET search_path = one; BEGIN');
    await client.query(
      `INSERT INTO run_events (run_id, sequence, tenant_id, event_id, key, type, payload, timestamp_ms)
         VALUES ('open', 0, '${TENANT}', 'e', 'k', 'x.y', '{}', 0)`,
    );
    const pageOf = async (stores: typeof one): Promise<FeedPage> => {
      const runId = await startedRun(stores, { tenant: TENANT });
      await appendRows(stores, runId, ['1']);
      return stores.feed.read({ tenant: TENANT, after: 0, limit: 10 });
    };
    expect(await pageOf(one)).toEqual({ rows: [], heldBack: true });
    expect(await pageOf(two)).toMatchObject({ rows: { length: 1 }, heldBack: false });
    await client.query('COMMIT');
    await client.end();
    await Promise.all([one.close(), two.close()]);
  });
});
