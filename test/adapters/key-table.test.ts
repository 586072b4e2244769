// What holds the receipt of an erasure back (architecture §10.1): whoever can still read the key that was destroyed, in the
// database, on its standby or in its log, as a host sees it whose role may see nothing of others.
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../src/adapters/postgres/index.ts';
import { isLockTimeout, type Db } from '../../src/adapters/postgres/db.ts';
import { fullXid } from '../../src/adapters/postgres/key-table.ts';
import { migrate, readMigrations } from '../../src/adapters/postgres/migrate.ts';
import { createSubjectStore } from '../../src/adapters/postgres/subject-store.ts';
import { throughDb } from '../../src/adapters/postgres/sealed-db.ts';
import { HostError } from '../../src/rules/errors.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import type { ErasureRow, SubjectStore } from '../../src/ports/subjects.ts';
import { newId } from '../contract/given.ts';
import { askPostgres, startPostgres } from '../support/postgres.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { patient } from '../support/machine.ts';
import { takes } from '../support/waiting.ts';

const LIMIT_MS = patient(60_000);
const TENANT = 'default';
const ASKED = { asked: { by: 'tester' }, cancelsOpen: false };
const KEY = { id: 'k', key: new Uint8Array(randomBytes(32)) };
/** As a standby sends what its sessions see once a second. */
const SOON = { timeout: patient(20_000), interval: 50 };

const postgres = await startPostgres({
  max_prepared_transactions: '4',
  wal_level: 'logical',
});
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
});

describe('numbers of transactions', () => {
  it.each([
    [5, 10, 5],
    [5, 2 ** 32 + 3, 2 ** 32 + 5],
    [2 ** 32 - 5, 2 ** 32 + 3, 2 ** 32 - 5],
    [0, 3 * 2 ** 32 - 1, 3 * 2 ** 32],
    [7, 5 * 2 ** 32 + 2 ** 31, 5 * 2 ** 32 + 7],
  ])('of which the lower half is %d, near %d: %d', (xid, near, full) => {
    expect(fullXid(xid, near)).toBe(full);
  });
});

describe.skipIf('missing' in postgres)('a host whose role is no superuser', () => {
  let url: string;
  let admin: string;
  let db: Db;
  let close: () => Promise<void>;
  let subjects: SubjectStore;

  const as = (role: string, of = url): string => {
    const here = new URL(of);
    here.username = role;
    return here.href;
  };

  beforeAll(async () => {
    if ('missing' in postgres) throw new Error(postgres.missing);
    admin = await postgres.createDatabase();
    await askPostgres(admin, 'CREATE ROLE host LOGIN');
    await askPostgres(admin, 'CREATE ROLE other LOGIN');
    await askPostgres(admin, 'GRANT CREATE, USAGE ON SCHEMA public TO host, other');
    await askPostgres(admin, 'ALTER DATABASE postgres OWNER TO other');
    url = as('host', admin);
    ({ db, close } = await openDatabase({ kind: 'postgres', url }, quietLogger));
    await migrate(db, await readMigrations());
    await db.query('GRANT SELECT ON subject_keys TO other');
    subjects = createSubjectStore(db, ringOf([KEY]), 0);
  });
  afterAll(() => close?.());

  async function closing(): Promise<ErasureRow> {
    const subject = newId('s');
    await subjects.keyFor(TENANT, { subject });
    const begun = await subjects.beginErasure(TENANT, subject, ASKED);
    if (begun.kind !== 'begun') throw new Error('not begun');
    return begun.erasure;
  }

  async function destroyed(): Promise<ErasureRow> {
    const erasure = await closing();
    expect(await subjects.destroy(erasure)).toBe(true);
    return erasure;
  }

  /** A session of its own that has done so much, in a transaction. */
  async function session(
    role: string,
    statements: readonly string[],
    of = url,
  ): Promise<{ ask: (text: string) => Promise<pg.QueryResult>; end: () => Promise<void> }> {
    const client = new pg.Client({
      connectionString: as(role, of),
      application_name: `app-of-${role}`,
    });
    client.on('error', () => undefined);
    await client.connect();
    for (const statement of statements) await client.query(statement);
    return { ask: (text) => client.query(text), end: () => client.end() };
  }

  /** As a process that has not rested yet. */
  const waitOf = async (erasure: ErasureRow): Promise<string> =>
    (await createSubjectStore(db, ringOf([KEY]), 0).overwrite(erasure))?.reason ?? 'nothing';
  const fileOf = async () =>
    (await db.query("SELECT pg_relation_filenode('subject_keys')::text AS file"))[0]?.file;
  const KEEPS = 'The database still keeps rows from before the key was destroyed, because of';

  // [I102]
  it('waits for a session of another role that sees the key', async () => {
    const erasure = await closing();
    const reader = await session('other', [
      'BEGIN ISOLATION LEVEL REPEATABLE READ',
      'SELECT count(*) FROM pg_class',
    ]);
    await subjects.destroy(erasure);
    expect(await waitOf(erasure)).toMatch(
      new RegExp(`^${KEEPS}: session \\d+ of role other \\(app-of-other\\)\\.$`),
    );
    // It does see it: so much is in the way.
    const seen = await reader.ask(
      `SELECT wrapped FROM subject_keys WHERE key_id = '${erasure.keyId}'`,
    );
    expect(seen.rows).toEqual([{ wrapped: expect.any(String) as string }]);
    await reader.ask('COMMIT');
    expect(await waitOf(erasure)).toBe('nothing');
    await reader.end();
  });

  // [I102]
  it('believes the database alone that nothing is kept, whoever it shows', async () => {
    const erasure = await closing();
    const reader = await session('other', [
      'BEGIN ISOLATION LEVEL REPEATABLE READ',
      'SELECT count(*) FROM pg_class',
    ]);
    await subjects.destroy(erasure);
    const blind: Db = {
      ...throughDb(db),
      query: async (text, values) =>
        text.includes('pg_prepared_xacts') ? [] : db.query(text, values),
    };
    const wait = () => createSubjectStore(blind, ringOf([KEY]), 0).overwrite(erasure);
    expect(await wait()).toEqual({
      kind: 'database',
      reason:
        'The database still keeps rows from before the key was destroyed, and does not show why.',
    });
    await reader.ask('COMMIT');
    await reader.end();
    expect(await wait()).toBeUndefined();
  });

  // [I102]
  it('waits for a prepared transaction and for a writer of another database', async () => {
    const erasure = await closing();
    await askPostgres(as('other'), 'CREATE TABLE theirs ()');
    await askPostgres(
      as('other'),
      "BEGIN; INSERT INTO theirs DEFAULT VALUES; PREPARE TRANSACTION 'left'",
    );
    const elsewhere = await session(
      'other',
      ['BEGIN', 'CREATE TABLE IF NOT EXISTS theirs ()'],
      admin.replace(/[^/]*$/, 'postgres'),
    );
    await subjects.destroy(erasure);
    expect(await waitOf(erasure)).toMatch(
      /session \d+ of role other .*, prepared transaction "left"\.$/,
    );
    await askPostgres(as('other'), "ROLLBACK PREPARED 'left'");
    expect(await waitOf(erasure)).toMatch(
      /because of: session \d+ of role other \(app-of-other\)\.$/,
    );
    await elsewhere.ask('COMMIT');
    await elsewhere.end();
    expect(await waitOf(erasure)).toBe('nothing');
  });

  it('does not rewrite the table while a session holds it, and keeps nobody waiting', async () => {
    const erasure = await destroyed();
    const reader = await session('other', ['BEGIN', 'SELECT count(*) FROM subject_keys']);
    const file = await fileOf();
    // Who comes while it waits for the table: with the reader’s end alone, or the statement’s, it would wait for long.
    const [reason] = await Promise.all([
      waitOf(erasure),
      takes(20).then(() => askPostgres(as('other'), 'SELECT count(*) FROM subject_keys')),
    ]);
    expect(reason).toMatch(/^The table subject_keys is in use by: session \d+ of role other\.$/);
    expect(await fileOf()).toBe(file);
    await reader.ask('COMMIT');
    expect(await waitOf(erasure)).toBe('nothing');
    await reader.end();
  });

  it('many that ask at once have one rewrite, and a table in use is not asked for again at once', async () => {
    let rewrites = 0;
    const maintain: Db['maintain'] = (text, limits) => (rewrites++, db.maintain(text, limits));
    const counting = createSubjectStore({ ...throughDb(db), maintain }, ringOf([KEY]), 0);
    const many: ErasureRow[] = [];
    for (let at = 0; at < 20; at++) many.push(await destroyed());
    const waits = await Promise.all(many.map((erasure) => counting.overwrite(erasure)));
    expect([new Set(waits), rewrites]).toEqual([new Set([undefined]), 1]);
    const reader = await session('other', ['BEGIN', 'SELECT count(*) FROM subject_keys']);
    const [one, two] = [await destroyed(), await destroyed()];
    for (const erasure of [one, two, one])
      expect((await counting.overwrite(erasure))?.reason).toContain('in use');
    expect(rewrites).toBe(2);
    await reader.end();
    await expect.poll(() => counting.overwrite(one), SOON).toBeUndefined();
    expect(await counting.overwrite(two)).toBeUndefined();
    expect(rewrites).toBe(3);
  });

  it('one rewrite serves all that were destroyed before it, and none after it', async () => {
    const [one, two] = [await destroyed(), await destroyed()];
    const before = await fileOf();
    expect(await waitOf(one)).toBe('nothing');
    const file = await fileOf();
    expect(file).not.toBe(before);
    expect([await waitOf(two), await waitOf(one)]).toEqual(['nothing', 'nothing']);
    expect(await fileOf()).toBe(file);
    // A reader that began between two of them: the rewrite for the first keeps the second for it.
    const [three, four] = [await destroyed(), await closing()];
    const reader = await session('other', [
      'BEGIN ISOLATION LEVEL REPEATABLE READ',
      'SELECT count(*) FROM pg_class',
    ]);
    await subjects.destroy(four);
    expect(await waitOf(three)).toBe('nothing');
    expect(await fileOf()).not.toBe(file);
    expect(await waitOf(four)).toMatch(/session \d+ of role other/);
    await reader.ask('COMMIT');
    await reader.end();
    expect(await waitOf(four)).toBe('nothing');
  });

  it('waits where the database does not rewrite the table, and rests before it asks again', async () => {
    const erasure = await destroyed();
    await askPostgres(admin, 'ALTER TABLE subject_keys OWNER TO postgres');
    await askPostgres(admin, 'GRANT ALL ON subject_keys TO host');
    const told = await subjects.overwrite(erasure);
    expect(told?.reason).toBe(
      'The database did not rewrite the table subject_keys: this host’s role must own it.',
    );
    await askPostgres(admin, 'ALTER TABLE subject_keys OWNER TO host');
    expect(await subjects.overwrite(erasure)).toEqual(told);
    expect(await waitOf(erasure)).toBe('nothing');
  });

  it('tells what the database says where the table cannot be rewritten', async () => {
    const erasure = await destroyed();
    const maintain: Db['maintain'] = (_text, limits) => db.maintain('VACUUM FULL no_table', limits);
    const failing = createSubjectStore({ ...throughDb(db), maintain }, ringOf([KEY]), 0);
    expect((await failing.overwrite(erasure))?.reason).toBe(
      'The database refuses: relation "no_table" does not exist.',
    );
    // One that answers nobody says nothing of the table.
    const query: Db['query'] = (text, values) =>
      text === 'SELECT 1'
        ? Promise.reject(new HostError('service_unavailable'))
        : db.query(text, values);
    const away = createSubjectStore({ ...throughDb(db), query, maintain }, ringOf([KEY]), 0);
    await expect(away.overwrite(erasure)).rejects.toMatchObject({ code: 'service_unavailable' });
    expect(await waitOf(erasure)).toBe('nothing');
    await askPostgres(admin, 'REVOKE SELECT ON pg_replication_slots FROM PUBLIC');
    expect(await waitOf(erasure)).toBe(
      'The database refuses: permission denied for view pg_replication_slots.',
    );
    await askPostgres(admin, 'GRANT SELECT ON pg_replication_slots TO PUBLIC');
  });

  it('what a rewrite removed for one it is told to all that asked meanwhile, and to no other what it kept', async () => {
    const older = await destroyed();
    const newer = await closing();
    const reader = await session('other', [
      'BEGIN ISOLATION LEVEL REPEATABLE READ',
      'SELECT count(*) FROM pg_class',
    ]);
    await subjects.destroy(newer);
    let questions = 0;
    // Nobody is shown, as where the database keeps rows for somebody whom it does not show.
    const query: Db['query'] = async (text, values) => {
      questions++;
      return text.includes('pg_prepared_xacts') ? [] : db.query(text, values);
    };
    let [begin, goOn] = [() => {}, () => {}];
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const mayGoOn = new Promise<void>((resolve) => (goOn = resolve));
    const maintain: Db['maintain'] = async (text, limits) => {
      begin();
      await mayGoOn;
      await db.maintain(text, limits);
    };
    const blind = createSubjectStore({ ...throughDb(db), query, maintain }, ringOf([KEY]), 0);
    const askedNewer = blind.overwrite(newer);
    await begun;
    const askedOlder = blind.overwrite(older);
    goOn();
    const [ofNewer, ofOlder] = await Promise.all([askedNewer, askedOlder]);
    expect(ofNewer?.reason).toContain('does not show why');
    expect(ofOlder).toBeUndefined();
    questions = 0;
    const waits = await Promise.all(Array.from({ length: 40 }, () => blind.overwrite(newer)));
    expect(waits).toEqual(waits.map(() => ofNewer));
    expect(questions).toBe(40);
    await reader.end();
    expect(await waitOf(newer)).toBe('nothing');
  });

  it('a rewrite that nobody answered fails who asked for it, and no other', async () => {
    const [one, two] = [await destroyed(), await destroyed()];
    let isAway = true;
    const maintain: Db['maintain'] = async (text, limits) => {
      if (isAway) {
        isAway = false;
        throw new HostError('service_unavailable');
      }
      await db.maintain(text, limits);
    };
    const failing = createSubjectStore({ ...throughDb(db), maintain }, ringOf([KEY]), 0);
    const ends = await Promise.allSettled([failing.overwrite(one), failing.overwrite(two)]);
    // Whichever of them began it.
    const unavailable = expect.objectContaining({ code: 'service_unavailable' }) as object;
    expect(ends).toContainEqual({ status: 'rejected', reason: unavailable });
    expect(ends).toContainEqual({ status: 'fulfilled', value: undefined });
    expect(await failing.overwrite(one)).toBeUndefined();
  });

  it('counts all that changed the row, also who had a later number and was done before', async () => {
    const erasure = await closing();
    const wrapping = await session('host', [
      'BEGIN',
      `UPDATE subject_keys SET wrapped = wrapped WHERE key_id = '${erasure.keyId}'`,
    ]);
    // The destruction has its number first, and waits for the row.
    const destroying = subjects.destroy(erasure);
    const waits =
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%'";
    await expect.poll(() => askPostgres(admin, waits), SOON).toHaveLength(1);
    const later = await session('host', ['BEGIN']);
    const { rows } = await later.ask('SELECT pg_current_xact_id()::text AS xid');
    const [{ xid } = { xid: '' }] = rows as { xid: string }[];
    await later.ask('COMMIT');
    await wrapping.ask('COMMIT');
    await destroying;
    const [row] = await db.query<{ bound: number }>(
      'SELECT xids_so_far AS bound FROM subject_erasures WHERE erasure_id = $1',
      [erasure.erasureId],
    );
    expect(row?.bound).toBeGreaterThan(Number(xid));
    await Promise.all([wrapping.end(), later.end()]);
  });

  it('gives a rewrite its own limit, and its connection to nobody else', async () => {
    const waits = (seconds: number, limitMs: number) =>
      db.maintain(`SELECT pg_sleep(${seconds})`, { lockMs: 50, limitMs });
    await expect(waits(30, 100)).rejects.toMatchObject({ cause: { code: '57014' } });
    const closing = await openDatabase({ kind: 'postgres', url }, quietLogger);
    const asked = closing.db.maintain('SELECT pg_sleep(60)', { lockMs: 50, limitMs: 60_000 });
    const ended = expect(asked).rejects.toMatchObject({ code: 'service_unavailable' });
    const sleeps =
      "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(60)%'";
    await expect.poll(() => askPostgres(admin, sleeps), SOON).toHaveLength(1);
    await closing.close();
    await ended;
    await expect.poll(() => askPostgres(admin, sleeps), SOON).toHaveLength(0);
    const limits = { lockMs: 50, limitMs: 60_000 };
    const reader = await session('other', ['BEGIN', 'SELECT count(*) FROM subject_keys']);
    await expect(db.maintain('VACUUM FULL subject_keys', limits)).rejects.toSatisfy(isLockTimeout);
    await reader.end();
    const set = await Promise.all(
      Array.from({ length: 10 }, () => db.query('SHOW statement_timeout')),
    );
    expect(new Set(set.map(([row]) => row?.statement_timeout))).toEqual(new Set(['10s']));
  });

  // [I102]
  it('no statistics of the database hold a key', async () => {
    const keys = await Promise.all([closing(), closing(), closing()]);
    await askPostgres(admin, 'ANALYZE subject_keys');
    for (const erasure of keys) {
      await subjects.destroy(erasure);
      expect(await waitOf(erasure)).toBe('nothing');
    }
    const columns = await askPostgres(
      admin,
      "SELECT attname FROM pg_stats WHERE tablename = 'subject_keys' ORDER BY attname",
    );
    expect(columns.map(({ attname }) => attname)).toContain('subject');
    expect(columns.map(({ attname }) => attname)).not.toContain('wrapped');
  });

  it('numbers of another database, from which it was restored, hold nothing up', async () => {
    const erasure = await destroyed();
    await db.query(
      "UPDATE subject_erasures SET xids_so_far = 1000000000000, written_lsn = 'FFFFFFFF/0' WHERE erasure_id = $1",
      [erasure.erasureId],
    );
    await askPostgres(admin, "SELECT pg_create_physical_replication_slot('other_place', true)");
    expect(await waitOf(erasure)).toBe('nothing');
    await db.query('UPDATE subject_erasures SET written_lsn = NULL WHERE erasure_id = $1', [
      erasure.erasureId,
    ]);
    await askPostgres(admin, "SELECT pg_drop_replication_slot('other_place')");
    expect(await waitOf(erasure)).toBe('nothing');
  });

  // [I102]
  it('waits for a slot that can hand out the database’s log from before', async () => {
    await askPostgres(admin, "SELECT pg_create_physical_replication_slot('gone_standby', true)");
    await askPostgres(admin, "SELECT pg_create_logical_replication_slot('copies', 'pgoutput')");
    const erasure = await destroyed();
    const behind =
      /^The key can still be read by followers of the database's log that have not reached its end: /;
    const reason = await waitOf(erasure);
    expect(reason).toMatch(behind);
    expect(reason).toContain('replication slot "gone_standby"');
    expect(reason).toContain('replication slot "copies"');
    await askPostgres(admin, "SELECT pg_drop_replication_slot('gone_standby')");
    expect(await waitOf(erasure)).not.toContain('gone_standby');
    await askPostgres(admin, "SELECT pg_replication_slot_advance('copies', pg_current_wal_lsn())");
    expect(await waitOf(erasure)).toBe('nothing');
    await askPostgres(admin, "SELECT pg_drop_replication_slot('copies')");
  });

  it('waits for no slot of another database, and for none that is lost', async () => {
    await askPostgres(
      admin.replace(/[^/]*$/, 'postgres'),
      "SELECT pg_create_logical_replication_slot('elsewhere', 'pgoutput')",
    );
    await askPostgres(admin, "SELECT pg_create_physical_replication_slot('lost', true)");
    await askPostgres(admin, "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'");
    await askPostgres(admin, 'SELECT pg_reload_conf()');
    const isLost = async () => {
      await askPostgres(admin, 'SELECT pg_switch_wal()');
      await askPostgres(admin, 'CHECKPOINT');
      const slots = "SELECT wal_status FROM pg_replication_slots WHERE slot_name = 'lost'";
      return (await askPostgres(admin, slots))[0]?.wal_status;
    };
    await expect.poll(isLost, SOON).toBe('lost');
    expect(await waitOf(await destroyed())).toBe('nothing');
    for (const slot of ['elsewhere', 'lost'])
      await askPostgres(admin, `SELECT pg_drop_replication_slot('${slot}')`);
    await askPostgres(admin, 'ALTER SYSTEM RESET max_slot_wal_keep_size');
    await askPostgres(admin, 'SELECT pg_reload_conf()');
  });

  // [I102]
  it(
    'waits for a standby: its sessions, what it has not replayed, and says where it may not see',
    { timeout: LIMIT_MS },
    async () => {
      if ('missing' in postgres) throw new Error(postgres.missing);
      const standby = await postgres.standby('followed');
      const there = standby.urlOf(admin);
      const slotXmin = async () =>
        (await askPostgres(admin, 'SELECT xmin::text FROM pg_replication_slots'))[0]?.xmin ?? null;
      try {
        const erasure = await closing();
        const reader = await session(
          'postgres',
          ['BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM pg_class'],
          there,
        );
        await expect.poll(slotXmin, SOON).not.toBeNull();
        await subjects.destroy(erasure);
        expect(await waitOf(erasure)).toMatch(/because of: .*replication slot "followed"/);
        await reader.ask('COMMIT');
        await reader.end();
        await askPostgres(there, 'SELECT pg_wal_replay_pause()');
        await expect
          .poll(() => waitOf(erasure), SOON)
          .toMatch(
            /^This host may not see .*: replication client \d+ \(walreceiver\)\. Grant its role pg_read_all_stats\.$/,
          );
        await askPostgres(admin, 'GRANT pg_read_all_stats TO host');
        expect(await waitOf(erasure)).toMatch(
          /its end: .*replication client \d+ \(walreceiver\)\.$/,
        );
        // What it received is not what it replayed. A startup process that is paused asks for no connection again.
        await askPostgres(admin, 'SELECT pg_terminate_backend(pid) FROM pg_stat_replication');
        await expect
          .poll(() => waitOf(erasure), SOON)
          .toBe(
            'The standby of a slot is not connected, and may still answer with the key: replication slot "followed". Connect it, or drop the slot.',
          );
        await askPostgres(there, 'SELECT pg_wal_replay_resume()');
        await expect.poll(() => waitOf(erasure), SOON).toBe('nothing');
      } finally {
        await standby.stop();
        await askPostgres(admin, 'REVOKE pg_read_all_stats FROM host');
      }
    },
  );
});
