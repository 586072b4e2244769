// Transactions as stores know them, on both twins of the database (architecture §7).
import { afterEach, describe, expect, it } from 'vitest';
import { TRANSACTION_TRIES, type Db } from '../../src/adapters/postgres/db.ts';
import { openDatabase } from '../../src/adapters/postgres/index.ts';
import { databaseTwins } from '../support/database-twins.ts';
import { quietLogger } from '../support/quiet-logger.ts';

describe.each(await databaseTwins())('a transaction on %s', (_, empty) => {
  let close = async (): Promise<void> => undefined;
  afterEach(() => close());

  async function tableOf(): Promise<Db> {
    const { db, close: closing } = await openDatabase(await empty(), quietLogger);
    close = closing;
    await db.query('CREATE TABLE t (n integer)');
    return db;
  }

  it('architecture §7 that went on behind a statement that failed is not said to be committed', async () => {
    const db = await tableOf();
    const wentOn = db.transaction(async (tx) => {
      await tx.query('INSERT INTO t VALUES (1)');
      await tx.query('SELECT 1 / 0').catch(() => undefined);
    });
    await expect(wentOn).rejects.toMatchObject({ sqlState: '22012' });
    expect(await db.query('SELECT n FROM t')).toEqual([]);
    await db.transaction((tx) => tx.query('INSERT INTO t VALUES (2)'));
    expect(await db.query('SELECT n FROM t')).toEqual([{ n: 2 }]);
  });

  it('architecture §4.1 [I98] nor does a statement outside of one fail for the first deadlocks', async () => {
    const db = await tableOf();
    // What is rolled back gives no number of a sequence back.
    await db.transaction((tx) =>
      tx.script(`CREATE SEQUENCE tries;
        CREATE FUNCTION victim(times integer) RETURNS integer LANGUAGE plpgsql AS $$ BEGIN
          IF nextval('tries') <= times THEN RAISE EXCEPTION 'victim' USING ERRCODE = '40P01'; END IF;
          RETURN 1; END $$`),
    );
    const ask = async (times: number) => {
      await db.query("SELECT setval('tries', 1, false)");
      return db.query('SELECT victim($1) AS n', [times]);
    };
    expect(await ask(TRANSACTION_TRIES - 1), 'a statement outside of one').toEqual([{ n: 1 }]);
    await expect(ask(TRANSACTION_TRIES)).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(await db.query('SELECT last_value AS n FROM tries')).toEqual([{ n: TRANSACTION_TRIES }]);
  });
});
