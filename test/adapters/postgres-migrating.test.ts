// A database with runs in it that is brought to the feed (architecture §3.6, §7) while others work on it: nobody waits for
// long, nothing is in the feed twice and nothing is missing.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import type { Db, SqlValue, Transaction } from '../../src/adapters/postgres/db.ts';
import { backfillBatch, startBackfill } from '../../src/adapters/postgres/feed-backfill.ts';
import { createFeedStore } from '../../src/adapters/postgres/feed-store.ts';
import { openDatabase, openStores } from '../../src/adapters/postgres/index.ts';
import type { DatabaseOptions } from '../../src/adapters/postgres/index.ts';
import { createLogStore } from '../../src/adapters/postgres/log-store.ts';
import { migrate, readMigrations } from '../../src/adapters/postgres/migrate.ts';
import { createSessionStore } from '../../src/adapters/postgres/session-store.ts';
import { refOf } from '../../src/adapters/postgres/run-ref.ts';
import type { FeedPage, FeedRow } from '../../src/ports/feed.ts';
import type { Head, LogRow } from '../../src/ports/log.ts';
import { appendRows, eventually, refTo, startedRun } from '../contract/given.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { programArgs } from '../support/prepared.ts';
import { unsealed } from '../support/sealed.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { CACHE_DIR } from '../support/temporal.ts';
const TENANT = 'acme';
const postgres = await sharePostgres();
const dir = await mkdtemp(join(tmpdir(), 'openwop-migrating-'));
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
  await rm(dir, { recursive: true, force: true });
});

/** As an append does, of any release: rows of one run in one statement. */
async function write(
  db: Pick<Db, 'query'>,
  runId: string,
  { first = 0, count = 2 },
): Promise<void> {
  await db.query(
    `INSERT INTO run_events (run_id, sequence, tenant_id, event_id, key, type, payload, timestamp_ms)
     SELECT $1::text, n, '${TENANT}', $1::text || '.' || n, n::text, 'x.y', '{}', 0
     FROM generate_series($2::integer, $3::integer) n`,
    [runId, first, first + count - 1],
  );
}

/** A run as a release without the feed accepts it. */
async function accept(db: Db, runId: string, sessionId: string): Promise<void> {
  const input = { variables: { a: '\u0000\\"\ud800{' }, header: { sessionId } };
  await db.query(
    `INSERT INTO runs (run_id, tenant_id, workflow_id, input, tags, created_at_ms)
     VALUES ($1, '${TENANT}', 'w', $2, '[]', 0)`,
    [runId, JSON.stringify(input)],
  );
}

/** A run as a release without `fork_reads` has it, with text that no JSON of a database takes. */
async function acceptFork(
  db: Db,
  runId: string,
  { inherited, closed = false }: { readonly inherited?: object; readonly closed?: boolean },
): Promise<void> {
  const fork = { sourceRunId: 'source', ...(inherited ? { inherited } : {}) };
  const said = '\u0000\\"\ud800{ "inherited"';
  await db.query(
    `INSERT INTO runs (run_id, tenant_id, workflow_id, input, tags, created_at_ms)
     VALUES ($1, '${TENANT}', 'w', $2, '[]', 0)`,
    [runId, JSON.stringify({ variables: { said }, header: {}, fork })],
  );
  await db.query(
    `INSERT INTO run_heads (run_id, tenant_id, workflow_id, created_at_ms, status, closed, next_sequence,
       last_timestamp_ms, temporal_run_id, history_event_id, token, translate_version, translate_state, snapshot)
     VALUES ($1, '${TENANT}', 'w', 0, 'running', $2, 1, 0, '', 0, '', 1, 'null', 'null')`,
    [runId, closed],
  );
}

const headBehind = (rows: readonly LogRow[]): Head => ({
  ...{ runId: 'a', tenant: TENANT, nextSequence: rows.length, lastTimestampMs: 0 },
  ...{ status: 'running', closed: false, temporalRunId: 'T1', historyEventId: 0, token: '' },
  ...{ translateVersion: 1, translateState: null, snapshot: null },
});

const read = (db: Db, after = 0): Promise<FeedPage> =>
  createFeedStore(unsealed(db)).read({ tenant: TENANT, after, limit: 10_000 });
const named = ({ rows }: Pick<FeedPage, 'rows'>): string[] =>
  rows.map(({ run, sequence }) => `${run.runId} ${sequence}`);
const sequences = ({ rows }: Pick<FeedPage, 'rows'>, runId: string): number[] =>
  rows.filter(({ run }) => run.runId === runId).map(({ sequence }) => sequence);

/** What a release that knows the first `count` migrations leaves, and what is to be migrated to. */
async function databaseAt(
  options: DatabaseOptions,
  count: number,
): Promise<{
  db: Db;
  close: () => Promise<void>;
  all: Awaited<ReturnType<typeof readMigrations>>;
}> {
  const opened = await openDatabase(options, quietLogger);
  const all = await readMigrations();
  await migrate(opened.db, all.slice(0, count));
  return { ...opened, all };
}

/** The program fills in a batch, and is killed. */
async function killedBackfill(options: DatabaseOptions): Promise<void> {
  const script = programArgs(new URL('./feed-backfiller.ts', import.meta.url));
  const child = spawn(process.execPath, [...script, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  let batches = 0;
  for await (const line of createInterface({ input: child.stdout }))
    if (line === 'filled' && ++batches === 1) child.kill('SIGKILL');
  const [, signal] = (await ended) as [number | null, string | null];
  if (signal !== 'SIGKILL') throw new Error('the program ended by itself');
}

/** Held on each twin: what its own transactions and files do. */
function lastingRules(database: () => Promise<DatabaseOptions>): void {
  it('architecture §3.6 the feed begins with the logs that are there, run by run, and holds what an older release writes', async () => {
    const { db, close, all } = await databaseAt(await database(), 6);
    try {
      await accept(db, 'b', 'session-ü');
      await write(db, 'b', { count: 3 });
      await write(db, 'a', { count: 2 });
      await migrate(db, all);
      await write(db, 'b', { first: 3 });
      expect(await read(db)).toEqual({ rows: [], heldBack: true });
      expect(await backfillBatch(db, 3)).toBe(true);
      const part = await read(db);
      expect(named(part)).toEqual(['a 0', 'a 1', 'b 0']);
      expect(part.heldBack).toBe(true);
      expect(await backfillBatch(db, 3)).toBe(true);
      expect(await backfillBatch(db, 3)).toBe(false);
      expect(await backfillBatch(db, 3)).toBe(false);
      const { rows, heldBack } = await read(db);
      expect(heldBack).toBe(false);
      expect(named({ rows })).toEqual(['a 0', 'a 1', 'b 0', 'b 1', 'b 2', 'b 3', 'b 4']);
      expect([...new Set(rows.map(({ sessionId }) => sessionId))]).toEqual(['a', 'session-ü']);
    } finally {
      await close();
    }
  });

  it('architecture §3.6 a process that is killed between two batches loses and doubles nothing', async () => {
    const options = await database();
    const { db, close, all } = await databaseAt(options, 6);
    const runIds = Array.from({ length: 40 }, (_, at) => `run-${at}`);
    for (const runId of runIds) await write(db, runId, { count: 10 });
    await migrate(db, all);
    await close();
    await killedBackfill(options);
    const again = await openDatabase(options, quietLogger);
    try {
      const part = await read(again.db);
      expect(part.heldBack).toBe(true);
      expect(part.rows.length).toBeGreaterThan(0);
      while (await backfillBatch(again.db));
      const whole = await read(again.db);
      expect(named(whole).slice(0, part.rows.length)).toEqual(named(part));
      expect(whole.rows).toHaveLength(400);
      for (const runId of runIds)
        expect(sequences(whole, runId)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    } finally {
      await again.close();
    }
  });
}

function migratingRules(database: () => Promise<DatabaseOptions>): void {
  lastingRules(database);

  it('seed 003 §3.1 runs that were there, and those that an older release accepts, are in their sessions', async () => {
    const { db, close, all } = await databaseAt(await database(), 6);
    try {
      await accept(db, 'a', 'talk');
      await accept(db, 'b', 'talk');
      await accept(db, 'c', 'other');
      await db.query(
        `INSERT INTO run_heads (run_id, tenant_id, workflow_id, created_at_ms, status, closed, next_sequence,
             last_timestamp_ms, temporal_run_id, history_event_id, token, translate_version, translate_state, snapshot)
           VALUES ('b', '${TENANT}', 'w', 0, 'running', false, 1, 7000, '', 0, '', 1, 'null', 'null')`,
      );
      await migrate(db, all);
      await accept(db, 'd', 'talk');
      const sessions = createSessionStore(unsealed(db));
      const runsOf = async (sessionId: string) =>
        (await sessions.runs(TENANT, sessionId, { limit: 10 })).runs.map(({ runId }) => runId);
      expect(await runsOf('talk')).toEqual(['b', 'a']);
      expect(await runsOf('other')).toEqual(['c']);
      expect(await sessions.find(TENANT, 'talk')).toEqual({
        ...{ sessionId: 'talk', tags: [], createdAtMs: 0, lastActivityMs: 7_000 },
      });
      await write(db, 'd', { count: 1 });
      expect(await runsOf('talk')).toEqual(['d', 'b', 'a']);
    } finally {
      await close();
    }
  });

  it('architecture §3.7 what open forks go by beside their source is noted for those that were there, too', async () => {
    const { db, close, all } = await databaseAt(await database(), 15);
    try {
      const by = (tools?: string, answers?: string) => ({
        ...(tools === undefined ? {} : { recordedTools: { runId: tools } }),
        ...(answers === undefined ? {} : { recordedAnswers: { runId: answers } }),
      });
      await acceptFork(db, 'both', { inherited: by('tools', 'answers') });
      await acceptFork(db, 'one', { inherited: by('same', 'same') });
      await acceptFork(db, 'ended', { inherited: by('tools', 'answers'), closed: true });
      await acceptFork(db, 'plain', { inherited: by() });
      await acceptFork(db, 'alone', {});
      await migrate(db, all);
      const noted = await db.query(
        'SELECT run_id, tenant_id, source_run_id FROM fork_reads ORDER BY run_id, source_run_id',
      );
      expect(noted).toEqual(
        [
          ['both', 'answers'],
          ['both', 'tools'],
          ['one', 'same'],
        ].map(([run_id, source_run_id]) => ({ run_id, tenant_id: TENANT, source_run_id })),
      );
    } finally {
      await close();
    }
  });

  it('architecture §3.6 a log that is rebuilt before its rows are filled in has each once and in order', async () => {
    const { db, close, all } = await databaseAt(await database(), 6);
    try {
      await write(db, 'a', { count: 6 });
      await migrate(db, all);
      await backfillBatch(db, 2);
      await db.transaction(async (tx) => {
        await tx.query("DELETE FROM run_events WHERE run_id = 'a'");
        await write(tx, 'a', { count: 6 });
      });
      while (await backfillBatch(db, 2));
      expect(sequences(await read(db), 'a')).toEqual([0, 1, 2, 3, 4, 5]);
    } finally {
      await close();
    }
  });

  it('architecture §3.6 a log that went on before it is rebuilt has its rows in order, and a page that was read stays', async () => {
    const { db, close, all } = await databaseAt(await database(), 6);
    try {
      await accept(db, 'a', 'session');
      await write(db, 'a', { count: 6 });
      await migrate(db, all);
      await backfillBatch(db, 2);
      await write(db, 'a', { first: 6 });
      const part = await read(db);
      const log = await createLogStore(unsealed(db), quietLogger);
      const run = refOf(TENANT, 'a');
      const rows = await log.read(run, { after: -1, limit: 10 });
      expect(await log.restore(run, { head: headBehind(rows), rows }, undefined)).toBe(true);
      while (await backfillBatch(db, 2));
      const whole = await read(db);
      expect(sequences(whole, 'a')).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
      expect(whole.rows.slice(0, part.rows.length)).toEqual(part.rows);
    } finally {
      await close();
    }
  });

  it('architecture §3.6 a database that filled its feed as it was made keeps its positions', async () => {
    const { db, close, all } = await databaseAt(await database(), 6);
    try {
      await accept(db, 'b', 'session');
      await write(db, 'b', { count: 3 });
      const fixture = new URL('../fixtures/migrations/007-feed-at-first.sql', import.meta.url);
      const atFirst = { version: 7, name: 'feed', sql: await readFile(fixture, 'utf8') };
      await migrate(db, [...all.slice(0, 6), atFirst]);
      await write(db, 'a', {});
      const before = await read(db);
      expect(before).toMatchObject({ heldBack: false, rows: { length: 5 } });
      await migrate(db, all);
      expect(await backfillBatch(db)).toBe(false);
      expect(await read(db)).toEqual(before);
      await write(db, 'b', { first: 3 });
      expect(named(await read(db)).slice(5)).toEqual(['b 3', 'b 4']);
    } finally {
      await close();
    }
  });
}

describe('PGlite', () => {
  let databases = 0;
  // What is SQL alone is held once, where a database costs least.
  const rules = 'missing' in postgres ? migratingRules : lastingRules;
  rules(async () => {
    return { kind: 'pglite', dir: join(dir, `data-${++databases}`), cacheDir: CACHE_DIR };
  });
});

describe.skipIf('missing' in postgres)('PostgreSQL', () => {
  const cluster = () => {
    if ('missing' in postgres) throw new Error(postgres.missing);
    return postgres;
  };
  const database = async () =>
    ({ kind: 'postgres', url: await cluster().createEmptyDatabase() }) as const;
  migratingRules(database);

  it('architecture §3.6 writers and a reader work on while two processes migrate and fill in', async () => {
    const options = await database();
    const { db, close, all } = await databaseAt(options, 6);
    const other = await openDatabase(options, quietLogger);
    const runIds = Array.from({ length: 6 }, (_, at) => `run-${at}`);
    for (const runId of runIds) await write(db, runId, { count: 200 });
    const written = new Map(runIds.map((runId) => [runId, 200]));
    const total = () => [...written.values()].reduce((sum, count) => sum + count, 0);
    let isOver = false;
    let isWritten = false;
    const writers = runIds.map(async (runId) => {
      for (let first = 200; !isOver; first += 2) {
        await write(other.db, runId, { first });
        written.set(runId, first + 2);
      }
    });
    await Promise.all([migrate(db, all), migrate(other.db, all)]);
    const seen: FeedRow[] = [];
    const reader = (async () => {
      for (let after = 0; !isWritten || seen.length < total();) {
        const { rows } = await read(db, after);
        seen.push(...rows);
        after = rows.at(-1)?.position ?? after;
      }
    })();
    const fillIn = async (one: Db): Promise<void> => {
      while (await backfillBatch(one, 30));
    };
    await Promise.all([fillIn(db), fillIn(other.db)]);
    const atEnd = total();
    await eventually(() => total() > atEnd + 10, 'rows behind it');
    isOver = true;
    await Promise.all(writers);
    isWritten = true;
    await reader;
    const whole = await read(db);
    expect(seen).toEqual(whole.rows);
    for (const runId of runIds)
      expect(sequences(whole, runId)).toEqual([...Array(written.get(runId)).keys()]);
    await Promise.all([close(), other.close()]);
  });

  it('architecture §3.6 stores that are opened fill the feed in by themselves', async () => {
    const options = await database();
    const { db, close } = await databaseAt(options, 6);
    for (const at of Array(3).keys()) await write(db, `run-${at}`, { count: 900 });
    await close();
    const stores = await openStores({ database: options, logger: quietLogger });
    const page = () => stores.feed.read({ tenant: TENANT, after: 0, limit: 10_000 });
    await eventually(async () => (await page()).rows.length === 2_700, 'every row');
    const runId = await startedRun(stores, { tenant: TENANT });
    await appendRows(stores, runId, ['later']);
    expect((await page()).rows.at(-1)?.run).toEqual(refTo(runId));
    await stores.close();
  });

  it('architecture §3.6 no writer waits for a batch that is under way', async () => {
    const options = await database();
    const { db, close, all } = await databaseAt(options, 6);
    await accept(db, 'a', 'session');
    await write(db, 'a', {});
    await migrate(db, all);
    const client = new pg.Client({ connectionString: options.url });
    await client.connect();
    await client.query('BEGIN');
    await backfillBatch({ transaction: (work) => work(heldBy(client)) });
    await write(db, 'a', { first: 2 });
    await accept(db, 'b', 'session');
    await write(db, 'b', {});
    await db.query("UPDATE runs SET temporal_run_id = 'T1' WHERE run_id = 'a'");
    await client.query('COMMIT');
    await client.end();
    expect(named(await read(db))).toEqual(['a 0', 'a 1', 'a 2', 'a 3', 'b 0', 'b 1']);
    await close();
  });

  it('architecture §7 a migration whose tables are locked gives up at once, comes again, and says what is wrong in the end', async () => {
    const options = await database();
    const { db, close, all } = await databaseAt(options, 6);
    const client = new pg.Client({ connectionString: options.url });
    await client.connect();
    await client.query('BEGIN');
    await client.query('SELECT 1 FROM runs');
    await expect(migrate(db, all, 2)).rejects.toMatchObject({
      code: 'service_unavailable',
      message: expect.stringContaining('found its tables locked 2 times') as string,
    });
    // Nobody stands behind it any more.
    await accept(db, 'a', 'session');
    const migrating = migrate(db, all);
    await eventually(async () => {
      const waiting = await db.query(`SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE NOT l.granted AND a.datname = current_database()`);
      return waiting.length > 0;
    }, 'a try that waits');
    await accept(db, 'b', 'session');
    await client.query('COMMIT');
    await client.end();
    await migrating;
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

it('architecture §3.6 what is filled in ends with the stores, and a batch that fails is tried again', async () => {
  const { db, close, all } = await databaseAt(
    { kind: 'pglite', dir: join(dir, 'filled'), cacheDir: CACHE_DIR },
    6,
  );
  await write(db, 'a', {});
  await migrate(db, all);
  let failures = 1;
  const failing: Pick<Db, 'query' | 'transaction'> = {
    query: (text, values) => db.query(text, values),
    transaction: (work, limitMs) =>
      failures-- > 0 ? Promise.reject(new Error('away')) : db.transaction(work, limitMs),
  };
  const backfill = await startBackfill(failing, quietLogger);
  await eventually(async () => (await read(db)).rows.length === 2, 'both rows');
  await backfill.stop();
  await close();
});

it('architecture §3.6 stores that do not open fill nothing in behind their end', async () => {
  const folder = join(dir, 'not-opened');
  const database = { kind: 'pglite', dir: folder, cacheDir: CACHE_DIR } as const;
  const { db, close } = await databaseAt(database, 6);
  await write(db, 'a', {});
  await close();
  const contentDir = join(dir, 'a-file');
  await writeFile(contentDir, '');
  const lines: string[] = [];
  const logger = { ...quietLogger, info: (line: string) => void lines.push(line) };
  await expect(openStores({ database, contentDir, logger })).rejects.toThrow();
  expect(lines).toEqual([]);
});

/** Statements of a transaction that somebody else ends. */
function heldBy(client: pg.Client): Transaction {
  return {
    query: async <Row>(text: string, values: readonly SqlValue[] = []) =>
      (await client.query(text, [...values])).rows as Row[],
    script: async (text) => void (await client.query(text)),
  };
}
