// What nobody does for PGlite but its own thread: the log of what was written ends, and so does the room that deleted rows
// take.
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Turns } from '../../src/adapters/postgres/pglite-turns.ts';
import { Upkeep } from '../../src/adapters/postgres/pglite-upkeep.ts';
import { until } from '../support/host.ts';
import { takes } from '../support/waiting.ts';

const MIB = 1024 ** 2;
const LIMITS = { turnsPerLog: 2, turnsPerTables: 4, logBytes: 8 * MIB };

let folder: string;
let pg: PGlite;
let turns: Turns;
let upkeep: Upkeep;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-upkeep-'));
  pg = await PGlite.create({ dataDir: folder, relaxedDurability: false });
  turns = new Turns();
  upkeep = new Upkeep(pg, turns, LIMITS);
  await upkeep.begin();
  await pg.exec('CREATE TABLE t (id int PRIMARY KEY, text text)');
});
afterEach(async () => {
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
  const files = await readdir(join(folder, 'pg_wal'), { withFileTypes: true });
  const sizes = files
    .filter((file) => file.isFile())
    .map(async ({ name }) => (await stat(join(folder, 'pg_wal', name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

async function tableBytes(): Promise<number> {
  const { rows } = await pg.query<{ bytes: number }>(
    "SELECT pg_total_relation_size('t')::float8 AS bytes",
  );
  return rows[0]?.bytes ?? NaN;
}

const WRITE =
  'INSERT INTO t SELECT n, repeat(md5(n::text), 10) FROM generate_series(1, 12000) AS n';

describe('the embedded database', () => {
  it('keeps no log of what a checkpoint has written', async () => {
    for (let round = 0; round < 16; round++) {
      await inTurn(WRITE);
      await inTurn('TRUNCATE t');
      for (let turn = 0; turn < 4; turn++) await rested();
    }
    const { rows } = await pg.query<{ bytes: number }>(
      "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS bytes",
    );
    // As much was written in all; a file of the log has 16 MiB.
    expect(rows[0]?.bytes).toBeGreaterThan(90 * MIB);
    expect(await logFileBytes()).toBeLessThan(50 * MIB);
  });

  it('nor one that was long before it began', async () => {
    for (let round = 0; round < 16; round++) await pg.exec(`${WRITE}; TRUNCATE t`);
    expect(await logFileBytes()).toBeGreaterThan(90 * MIB);
    for (let turn = 0; turn < 4; turn++) await rested();
    expect(await logFileBytes()).toBeLessThan(50 * MIB);
  });

  it('uses the room of deleted rows again, and knows how large its tables are', async () => {
    await inTurn(WRITE);
    const full = await tableBytes();
    for (let round = 0; round < 6; round++) {
      await inTurn('DELETE FROM t');
      for (let turn = 0; turn < 12; turn++) await rested();
      await inTurn(WRITE);
    }
    expect(await tableBytes()).toBeLessThan(1.5 * full);
    for (let turn = 0; turn < 12; turn++) await rested();
    const tuples = async () =>
      (await pg.query<{ n: number }>("SELECT reltuples AS n FROM pg_class WHERE relname = 't'"))
        .rows[0]?.n;
    await until(async () => (await tuples()) === 12_000, 'the table is analysed');
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
    expect((await pg.query('SELECT count(*)::int AS n FROM t')).rows).toEqual([{ n: 12_000 }]);
  });
});
