// Statements that PGlite keeps prepared: what comes back is what the library's own query gives, whatever becomes of tables
// meanwhile.
import { PGlite } from '@electric-sql/pglite';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { SqlValue } from '../../src/adapters/postgres/db.ts';
import { Statements } from '../../src/adapters/postgres/pglite-statements.ts';

let pg: PGlite;
let statements: Statements;

beforeAll(async () => {
  pg = await PGlite.create();
});
afterAll(() => pg?.close());
beforeEach(async () => {
  await pg.exec('DEALLOCATE ALL; DROP TABLE IF EXISTS t; CREATE TABLE t (id int, name text)');
  statements = new Statements(pg);
  await statements.begin();
});

const prepared = async () =>
  (await pg.query<{ name: string }>('SELECT name FROM pg_prepared_statements')).rows.map(
    ({ name }) => name,
  );

describe('a prepared statement of PGlite', () => {
  it.each<[string, SqlValue]>([
    ['text', "a “text” \u0001 \\ '"],
    ['bigint', 9_007_199_254_740_991],
    ['int', -3],
    ['double precision', 1.5],
    ['boolean', false],
    ['text', null],
    ['bytea', new Uint8Array([0, 1, 127, 128, 255])],
    ['text[]', ['a,b', '"c"', '{d}', 'NULL', '']],
    ['int[]', [1, -2, 3]],
    ['text[]', []],
    ['json', '{"a": [1, null]}'],
  ])('gives and takes a %s as the library does: %o', async (type, value) => {
    const text = `SELECT $1::${type} AS value, pg_typeof($1::${type})::text AS type`;
    const { rows } = await pg.query(text, [value]);
    expect(await statements.query(text, [value])).toEqual(rows);
    expect(await statements.query(text, [value])).toEqual(rows);
  });

  it('is parsed once', async () => {
    for (let id = 0; id < 3; id++)
      await statements.query('INSERT INTO t VALUES ($1, $2)', [id, 'one']);
    expect(await statements.query('SELECT id FROM t WHERE name = $1', ['one'])).toHaveLength(3);
    expect(await prepared()).toHaveLength(2);
  });

  it('that fails, at its parsing or at its end, leaves the next ones as they are', async () => {
    await statements.query('ALTER TABLE t ADD UNIQUE (id)', []);
    const insert = () => statements.query('INSERT INTO t VALUES ($1, $2)', [1, 'one']);
    await insert();
    await expect(insert()).rejects.toMatchObject({ code: '23505', constraint: 't_id_key' });
    await expect(statements.query('SELECT nothing FROM nowhere', [])).rejects.toMatchObject({
      code: '42P01',
    });
    await pg.exec('BEGIN');
    await expect(insert()).rejects.toMatchObject({ code: '23505' });
    await expect(statements.query('SELECT 1 AS one', [])).rejects.toMatchObject({ code: '25P02' });
    await pg.exec('ROLLBACK');
    expect(await statements.query('SELECT 1 AS one', [])).toEqual([{ one: 1 }]);
    expect(await statements.query('SELECT * FROM t', [])).toEqual([{ id: 1, name: 'one' }]);
  });

  it('is parsed anew behind a script that changed its table', async () => {
    await statements.query('INSERT INTO t VALUES ($1, $2)', [1, 'one']);
    expect(await statements.query('SELECT * FROM t', [])).toEqual([{ id: 1, name: 'one' }]);
    await pg.exec("ALTER TABLE t ADD COLUMN more text DEFAULT 'more'");
    await statements.forgetAll();
    expect(await prepared()).toEqual([]);
    expect(await statements.query('SELECT * FROM t', [])).toEqual([
      { id: 1, name: 'one', more: 'more' },
    ]);
  });

  it('is forgotten where others are used', async () => {
    for (let n = 0; n < 450; n++) {
      await statements.query('SELECT 1 AS one', []);
      expect(await statements.query(`SELECT ${n} AS n`, [])).toEqual([{ n }]);
    }
    const kept = await pg.query<{ statement: string }>(
      'SELECT statement FROM pg_prepared_statements',
    );
    expect(kept.rows).toHaveLength(400);
    expect(kept.rows.map(({ statement }) => statement)).toContain('SELECT 1 AS one');
  });

  it('that was used with an empty table is planned for the full one', async () => {
    await pg.exec('CREATE INDEX t_by_id ON t (id); INSERT INTO t VALUES (1); ANALYZE t');
    const text = 'SELECT name FROM t WHERE id = $1';
    for (let n = 0; n < 10; n++) await statements.query(text, [n]);
    const plan = async () => {
      const name = (await prepared())[0] ?? '';
      const { rows } = await pg.query(`EXPLAIN EXECUTE ${name}(1)`);
      return JSON.stringify(rows);
    };
    expect(await plan()).toContain('Seq Scan');
    await pg.exec("INSERT INTO t SELECT n, 'name' FROM generate_series(1, 20000) AS n");
    expect(await plan()).toContain('Index');
  });

  it('waits for its turn beside what the library is asked for itself', async () => {
    const heard: string[] = [];
    const all = Array.from({ length: 50 }, async (_, n) => {
      if (n % 10 === 0) await pg.listen(`c${n}`, (payload) => heard.push(payload));
      expect(await statements.query('SELECT $1::int AS n', [n])).toEqual([{ n }]);
      expect((await pg.query('SELECT $1::int AS n', [n])).rows).toEqual([{ n }]);
    });
    await Promise.all(all);
    await statements.query("SELECT pg_notify('c10', $1)", ['told']);
    await new Promise(setImmediate);
    expect(heard).toEqual(['told']);
  });
});
