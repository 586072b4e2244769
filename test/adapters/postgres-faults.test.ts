// The databases under faults (architecture §3.3, §7): killed processes and servers, clients that go away, schemas of
// other releases, statements that never end.
import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { openDatabase, openStores } from '../../src/adapters/postgres/index.ts';
import type { DatabaseOptions } from '../../src/adapters/postgres/index.ts';
import { migrate, readMigrations } from '../../src/adapters/postgres/migrate.ts';
import { openPglite } from '../../src/adapters/postgres/pglite.ts';
import { openPool } from '../../src/adapters/postgres/pool.ts';
import { createSegmentStore } from '../../src/adapters/postgres/segment-store.ts';
import type { Pglite } from '../../src/adapters/postgres/pglite.ts';
import { appendRows, eventually, headOf, newId, startedRun, refTo } from '../contract/given.ts';
import { startPostgres } from '../support/postgres.ts';
import { pgliteDatabase } from '../support/databases.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { programArgs } from '../support/prepared.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { patient } from '../support/machine.ts';

const LIMIT_MS = patient(60_000);
const postgres = await startPostgres();
const dir = await mkdtemp(join(tmpdir(), 'openwop-faults-'));

afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
  await rm(dir, { recursive: true, force: true });
});

/** Starts a writer and kills it behind its `appends`-th confirmed append. Returns the last number it printed. */
async function killedWriter(folder: string, runId: string, appends: number): Promise<number> {
  const script = programArgs(new URL('./postgres-writer.ts', import.meta.url));
  const child = spawn(process.execPath, [...script, folder, runId], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let confirmed = 0;
  let lines = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    confirmed = Number(line);
    if (++lines === appends) child.kill('SIGKILL');
  }
  if (lines < appends) throw new Error('the writer ended by itself');
  return confirmed;
}

describe('PGlite', () => {
  it('architecture §7 a process killed at any append loses none that was confirmed', async () => {
    const { dir: folder } = await pgliteDatabase();
    const runId = newId('run');
    const confirmed = await killedWriter(folder, runId, 10);
    const stores = await openStores({
      database: { kind: 'pglite', dir: folder },
      logger: quietLogger,
    });
    try {
      const rows = await stores.log.read(refTo(runId), { after: -1, limit: 10_000 });
      expect(rows.length).toBeGreaterThanOrEqual(confirmed);
      expect(rows.map((row) => row.sequence)).toEqual(rows.map((_, at) => at));
      expect((await headOf(stores, runId)).nextSequence).toBe(rows.length);
      await appendRows(stores, runId, ['goes on']);
    } finally {
      await stores.close();
    }
  });

  it('architecture §7 a folder that cannot be opened is service_unavailable', async () => {
    const file = join(dir, 'file');
    await writeFile(file, 'not a folder');
    const foreign = join(dir, 'foreign');
    await mkdir(foreign);
    await writeFile(join(foreign, 'PG_VERSION'), '9\n');
    for (const folder of [file, foreign]) {
      const opening = openStores({
        database: { kind: 'pglite', dir: folder },
        logger: quietLogger,
      });
      await expect(opening).rejects.toMatchObject({ code: 'service_unavailable' });
    }
  });

  describe('clients', () => {
    let pglite: Pglite;
    let one: Db;
    beforeAll(async () => {
      pglite = await openPglite((await pgliteDatabase()).dir, quietLogger);
      one = pglite.connect();
      await one.query('CREATE TABLE t (n integer)');
    });
    afterAll(async () => pglite.close());
    const count = async (): Promise<unknown> =>
      (await one.query('SELECT count(*) AS n FROM t'))[0]?.n;

    it('architecture §7 the transaction of a client that went away is rolled back, and the others go on', async () => {
      const gone = pglite.connect();
      const inside = gone.transaction(async (tx) => {
        await tx.query('INSERT INTO t VALUES (1)');
        await gone.close();
        await tx.query('SELECT 1');
      });
      await expect(inside).rejects.toMatchObject({ code: 'service_unavailable' });
      expect(await count()).toBe(0);
    });

    it('architecture §7 a transaction over its limit is rolled back, and the others go on', async () => {
      const slow = one.transaction(async (tx) => {
        await tx.query('INSERT INTO t VALUES (1)');
        expect(await count()).toBe(0);
        await tx.query('SELECT 1');
      }, 50);
      await expect(slow).rejects.toMatchObject({ code: 'service_unavailable' });
      expect(await count()).toBe(0);
    });

    it('architecture §3.4 a notification reaches another client, once per commit', async () => {
      const other = pglite.connect();
      const seen: string[] = [];
      await other.listen('c', (payload) => seen.push(payload));
      await one.transaction(async (tx) => {
        await tx.query("SELECT pg_notify('c', 'x')");
        await tx.query("SELECT pg_notify('c', 'x')");
      });
      await eventually(() => seen.length > 0, 'the notification');
      await one.query("SELECT pg_notify('c', 'y')");
      await eventually(() => seen.includes('y'), 'the next notification');
      expect(seen).toEqual(['x', 'y']);
      await other.close();
    });

    it('architecture §3.4 who begins or ends to listen beside a transaction that is rolled back does so', async () => {
      const other = pglite.connect();
      const leaving = pglite.connect();
      await leaving.listen('goes', () => undefined);
      const seen: string[] = [];
      let listening = Promise.resolve();
      const undone = one.transaction(async (tx) => {
        listening = other.listen('begun', (payload) => seen.push(payload));
        await tx.query('SELECT 1');
        await tx.query('SELECT 1 / 0').catch(() => undefined);
        await leaving.close();
        await tx.query('SELECT 1').catch(() => undefined);
      });
      await expect(undone).rejects.toMatchObject({ sqlState: '22012' });
      await listening;
      await one.query("SELECT pg_notify('begun', 'x')");
      await eventually(() => seen.length > 0, 'the notification');
      await other.close();
      const channels = () => one.query('SELECT pg_listening_channels() AS channel');
      const heard = async () => JSON.stringify(await channels());
      await eventually(async () => !(await heard()).includes('goes'), 'the end of the listening');
    });

    it('architecture §3.4 a client that goes before its listening had its turn leaves none behind', async () => {
      const hasty = pglite.connect();
      await one.transaction(async (tx) => {
        await tx.query('SELECT 1');
        hasty.listen('hasty', () => undefined).catch(() => undefined);
        await hasty.close();
        await tx.query('SELECT 1');
      });
      const channels = async () =>
        JSON.stringify(await one.query('SELECT pg_listening_channels() AS channel'));
      await eventually(async () => !(await channels()).includes('hasty'), 'its end');
    });

    it('architecture §7 a client that comes when the database has stopped is refused', async () => {
      const stopped = await openPglite((await pgliteDatabase()).dir, quietLogger);
      await stopped.close();
      const late = stopped.connect();
      await expect(late.query('SELECT 1')).rejects.toMatchObject({ code: 'service_unavailable' });
    });
  });
});

/** Held by each driver's own transactions. */
function undoneRule(database: () => Promise<DatabaseOptions>): void {
  it('architecture §7 a migration that fails leaves nothing behind', async () => {
    const { db, close } = await openDatabase(await database(), quietLogger);
    try {
      const broken = {
        version: 1,
        name: 'broken',
        sql: 'CREATE TABLE half (n integer); SELECT 1/0;',
      };
      await expect(migrate(db, [broken])).rejects.toMatchObject({ sqlState: '22012' });
      await migrate(db, [{ ...broken, sql: 'CREATE TABLE half (n integer)' }]);
    } finally {
      await close();
    }
  });
}

function migrationRules(database: () => Promise<DatabaseOptions>): void {
  undoneRule(database);

  it('architecture §7 a database of a newer release is refused with one clear error', async () => {
    const { db, close } = await openDatabase(await database(), quietLogger);
    try {
      const migrations = await readMigrations();
      const newer = {
        version: migrations.length + 1,
        name: 'later',
        sql: 'CREATE TABLE later (n integer)',
      };
      await migrate(db, [...migrations, newer]);
      await migrate(db, [...migrations, newer]);
      await expect(migrate(db, migrations)).rejects.toMatchObject({
        code: 'config_invalid',
        message: expect.stringContaining(`schema version ${newer.version}`) as string,
      });
    } finally {
      await close();
    }
  });

  it('architecture §3.6 a segment that its head leaves or that ends with it is archived, whoever wrote the head', async () => {
    const { db, close } = await openDatabase(await database(), quietLogger);
    const segments = createSegmentStore(db);
    const moved = async (runId: string, change: string): Promise<void> => {
      await db.query(
        `INSERT INTO run_heads (run_id, tenant_id, workflow_id, created_at_ms, status, closed, next_sequence,
             last_timestamp_ms, temporal_run_id, history_event_id, token, translate_version, translate_state, snapshot)
           VALUES ($1, 'default', 'w', 0, 'running', false, 1, 0, 'T1', 9, '', 1, 'null', 'null')`,
        [runId],
      );
      await db.query(
        "INSERT INTO run_segments (run_id, segment_index, tenant_id, temporal_run_id) VALUES ($1, 0, 'default', 'T1')",
        [runId],
      );
      await db.query(`UPDATE run_heads SET next_sequence = 2, ${change} WHERE run_id = $1`, [
        runId,
      ]);
    };
    try {
      await migrate(db, await readMigrations());
      await moved('closed', 'closed = true');
      await moved('moved', "temporal_run_id = 'T2'");
      await moved('open', 'closed = false');
      const claimed = await segments.claimUnarchived(10, LIMIT_MS);
      expect(claimed.map(({ runId }) => runId).sort()).toEqual(['closed', 'moved']);
    } finally {
      await close();
    }
  });

  it('architecture §10 every table of tenants has a tenant_id', async () => {
    const { db, close } = await openDatabase(await database(), quietLogger);
    try {
      await migrate(db, await readMigrations());
      const without = await db.query<{ name: string }>(
        `SELECT table_name AS name FROM information_schema.tables t WHERE table_schema = 'public' AND NOT EXISTS (
           SELECT 1 FROM information_schema.columns c WHERE c.table_schema = 'public'
             AND c.table_name = t.table_name AND c.column_name = 'tenant_id' AND c.is_nullable = 'NO')
         ORDER BY 1`,
      );
      // The host's own.
      expect(without.map((row) => row.name)).toEqual([
        'encryption_keys',
        'host_secrets',
        'process_keys',
        'process_leases',
        'schema_migrations',
        'store_pings',
        'sweep_progress',
      ]);
    } finally {
      await close();
    }
  });
}

describe('migrations on PGlite', () => {
  let databases = 0;
  // What is SQL alone is held once, where a database costs least.
  const rules = 'missing' in postgres ? migrationRules : undoneRule;
  rules(async () => ({
    kind: 'pglite',
    dir: join(dir, `migrated-${++databases}`),
    cacheDir: CACHE_DIR,
  }));
});

describe.skipIf('missing' in postgres)('PostgreSQL', () => {
  const cluster = () => {
    if ('missing' in postgres) throw new Error(postgres.missing);
    return postgres;
  };
  const database = async (): Promise<DatabaseOptions> => ({
    kind: 'postgres',
    url: await cluster().createDatabase(),
  });
  migrationRules(database);

  it('architecture §7 processes that start at once migrate once', async () => {
    const options = { database: await database(), logger: quietLogger };
    const opened = await Promise.all(Array.from({ length: 4 }, () => openStores(options)));
    await Promise.all(opened.map((stores) => stores.ping()));
    await Promise.all(opened.map((stores) => stores.close()));
  });

  it('architecture §3.3 a killed server is service_unavailable, and back without a restart', async () => {
    const stores = await openStores({ database: await database(), logger: quietLogger });
    try {
      const runId = await startedRun(stores);
      await appendRows(stores, runId, ['a']);
      let reconnects = 0;
      stores.log.onReconnect(() => reconnects++);
      await cluster().kill();
      const unavailable = { code: 'service_unavailable' };
      await expect(stores.log.head(refTo(runId))).rejects.toMatchObject(unavailable);
      await expect(stores.log.closeBlock(refTo(runId), 'x')).rejects.toMatchObject(unavailable);
      await expect(stores.ping()).rejects.toMatchObject(unavailable);
      await cluster().restart();
      await stores.ping();
      expect(await stores.log.read(refTo(runId), { after: -1, limit: 10 })).toHaveLength(1);
      await eventually(() => reconnects === 1, 'the notification connection');
      const seen: number[] = [];
      stores.log.onChange((change) => seen.push(change.nextSequence));
      await appendRows(stores, runId, ['b']);
      await eventually(() => seen.length === 1, 'the change');
      expect(seen).toEqual([2]);
    } finally {
      await stores.close();
    }
  });

  it('architecture §3.3 a server that says nothing is service_unavailable, and its connections are not used again', async () => {
    const { url } = (await database()) as { url: string };
    const db = await openPool(url, quietLogger, 500);
    const unavailable = { code: 'service_unavailable' };
    try {
      await db.query('CREATE TABLE rows (n integer)');
      let backend = 0;
      let frozen = false;
      const transaction = db.transaction(async (tx) => {
        const [row] = await tx.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
        backend = row?.pid ?? 0;
        await tx.query('INSERT INTO rows VALUES (1)');
        await cluster().freeze();
        frozen = true;
        await tx.query('INSERT INTO rows VALUES (2)');
      });
      await expect(transaction).rejects.toMatchObject(unavailable);
      expect(frozen).toBe(true);
      await expect(db.query('SELECT 1')).rejects.toMatchObject(unavailable);
      await cluster().thaw();
      const gone = async () => {
        const found = await db.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [backend]);
        return found.length === 0;
      };
      await eventually(gone, 'the end of the connection');
      expect(await db.query('SELECT n FROM rows')).toEqual([]);
    } finally {
      await cluster().thaw();
      await db.close();
    }
  });

  // [I98]
  it('architecture §4.1 a server that takes no writes is away, until it takes them again', async () => {
    const options = await database();
    const stores = await openStores({ database: options, logger: quietLogger });
    const admin = await openPool((options as { url: string }).url, quietLogger);
    const unavailable = { code: 'service_unavailable' };
    const set = async (how: string) => {
      await admin.query(`ALTER SYSTEM ${how}`);
      await admin.query('SELECT pg_reload_conf()');
    };
    try {
      const runId = await startedRun(stores);
      await stores.probe();
      await set('SET default_transaction_read_only = on');
      const isAway = () =>
        stores.probe().then(
          () => false,
          () => true,
        );
      await eventually(isAway, 'the server takes no writes');
      await expect(stores.ping()).rejects.toMatchObject(unavailable);
      await expect(appendRows(stores, runId, ['a'])).rejects.toMatchObject(unavailable);
    } finally {
      await set('RESET default_transaction_read_only');
      await eventually(
        () =>
          stores.probe().then(
            () => true,
            () => false,
          ),
        'it takes them again',
      );
      await admin.close();
      await stores.close();
    }
  });

  // [I98]
  it('architecture §4.1 a transaction that is the victim of each deadlock is an outage', async () => {
    const db = await openPool(((await database()) as { url: string }).url, quietLogger);
    let tries = 0;
    try {
      const work = db.transaction(async (tx) => {
        tries++;
        await tx.query("DO $$ BEGIN RAISE EXCEPTION 'victim' USING ERRCODE = '40P01'; END $$");
      });
      await expect(work).rejects.toMatchObject({ code: 'service_unavailable' });
      expect(tries).toBe(3);
    } finally {
      await db.close();
    }
  });

  it('architecture §3.3 a server that is not there at the start is service_unavailable', async () => {
    const url = 'postgres://postgres@127.0.0.1:1/none';
    const opening = openStores({ database: { kind: 'postgres', url }, logger: quietLogger });
    await expect(opening).rejects.toMatchObject({ code: 'service_unavailable' });
  });
});
