// What nobody does for PGlite but its own thread: the log of what was written ends, and so does the room that deleted rows
// take.
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Turns } from '../../src/adapters/postgres/pglite-turns.ts';
import { Upkeep } from '../../src/adapters/postgres/pglite-upkeep.ts';
import { until } from '../support/host.ts';
import { copyDatabase } from '../support/prepared.ts';
import { CACHE_DIR } from '../support/temporal.ts';
import { takes } from '../support/waiting.ts';

const MIB = 1024 ** 2;
const LIMITS = { turnsPerLog: 2, turnsPerTables: 4, logBytes: 8 * MIB };

let folder: string;
let database: string;
let pg: PGlite;
let turns: Turns;
let upkeep: Upkeep;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-upkeep-'));
  database = join(folder, 'postgres');
  await copyDatabase(CACHE_DIR, database);
  pg = await PGlite.create({ dataDir: database, relaxedDurability: false });
  await pg.exec('CREATE TABLE t (id int PRIMARY KEY, text text)');
});
beforeEach(async () => {
  await pg.exec('TRUNCATE t; CHECKPOINT');
  turns = new Turns();
  upkeep = new Upkeep(pg, turns, LIMITS);
  await upkeep.begin();
});
afterAll(async () => {
  await pg.close();
  await rm(folder, { recursive: true, force: true });
});

async function inTurn(statement: string): Promise<void> {
  const release = await turns.take();
  await pg.exec(statement).finally(release);
  upkeep.noteTurn();
}
/** Its own turns come between those of clients. */
const rested = () => inTurn('SELECT 1');

async function logFileBytes(): Promise<number> {
  const files = await readdir(join(database, 'pg_wal'), { withFileTypes: true });
  const sizes = files
    .filter((file) => file.isFile())
    .map(async ({ name }) => (await stat(join(database, 'pg_wal', name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function tableBytes(): Promise<number> {
  const { rows } = await pg.query<{ bytes: number }>(
    "SELECT pg_total_relation_size('t')::float8 AS bytes",
  );
  return rows[0]?.bytes ?? NaN;
}

const ROWS = 3_000;
const WRITE = `INSERT INTO t SELECT n, repeat(md5(n::text), 10) FROM generate_series(1, ${ROWS}) AS n`;
/** A file of the log has 16 MiB, and what is written next goes into the next one. */
const FILL_FILE = 'INSERT INTO t VALUES (0); DELETE FROM t; SELECT pg_switch_wal()';
const FILES = 7;

describe('the embedded database', () => {
  it('keeps no log of what a checkpoint has written', async () => {
    const written = async () =>
      (
        await pg.query<{ bytes: number }>(
          "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS bytes",
        )
      ).rows[0]?.bytes ?? NaN;
    const before = await written();
    for (let file = 0; file < FILES; file++) {
      await inTurn(FILL_FILE);
      for (let turn = 0; turn < 4; turn++) await rested();
    }
    expect((await written()) - before).toBeGreaterThan(90 * MIB);
    expect(await logFileBytes()).toBeLessThan(50 * MIB);
  });

  it('nor one that was long before it began', async () => {
    for (let file = 0; file < FILES; file++) await pg.exec(FILL_FILE);
    expect(await logFileBytes()).toBeGreaterThan(90 * MIB);
    for (let turn = 0; turn < 4; turn++) await rested();
    expect(await logFileBytes()).toBeLessThan(50 * MIB);
  });

  it('uses the room of deleted rows again, and knows how large its tables are', async () => {
    await inTurn(WRITE);
    const full = await tableBytes();
    for (let round = 0; round < 2; round++) {
      await inTurn('DELETE FROM t');
      for (let turn = 0; turn < 12; turn++) await rested();
      await inTurn(WRITE);
    }
    expect(await tableBytes()).toBeLessThan(1.5 * full);
    for (let turn = 0; turn < 12; turn++) await rested();
    const tuples = async () =>
      (await pg.query<{ n: number }>("SELECT reltuples AS n FROM pg_class WHERE relname = 't'"))
        .rows[0]?.n;
    await until(async () => (await tuples()) === ROWS, 'the table is analysed');
  });

  it('does so in turns: no client finds its connection taken', async () => {
    await pg.exec(`${WRITE}; DELETE FROM t`);
    await pg.exec('SELECT pg_stat_force_next_flush()');
    const release = await turns.take();
    await pg.exec('BEGIN');
    for (let turn = 0; turn < 8; turn++) upkeep.noteTurn();
    await takes(50);
    await pg.exec(WRITE);
    await pg.exec('COMMIT');
    release();
    await rested();
    expect((await pg.query('SELECT count(*)::int AS n FROM t')).rows).toEqual([{ n: ROWS }]);
  });
});
