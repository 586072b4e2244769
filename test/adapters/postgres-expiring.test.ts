// Expiry by processes that die, by several at once, and under load (architecture §3.7): a run is there as a whole, or it has
// expired; what has is deleted by whoever is left; and nothing grows.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase, storesOn, type OpenDatabase } from '../../src/adapters/postgres/index.ts';
import { createExpirer } from '../../src/log/expirer.ts';
import { createLog } from '../../src/log/log.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { NO_WAITS, appendRows, headOf } from '../contract/given.ts';
import { end, member, tablesWith } from '../contract/retention.ts';
import { ScriptedHistory } from '../support/log-parts.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { diesBefore } from '../support/fault-point.ts';
import { programArgs } from '../support/prepared.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { expireInRounds } from './expiring-rounds.ts';
import { patient } from '../support/machine.ts';

const LIMIT_MS = patient(600_000);
const EVENTS = 4;
const SHARED = `sha256:${createHash('sha256').update('shared').digest('hex')}`;
const postgres = await sharePostgres();
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
});

describe.skipIf('missing' in postgres)('PostgreSQL', () => {
  let url = '';
  let stores: Stores;
  let db: OpenDatabase['db'];

  beforeAll(async () => {
    if ('missing' in postgres) throw new Error(postgres.missing);
    url = await postgres.createDatabase();
    const database = { kind: 'postgres', url } as const;
    const opened = await openDatabase(database, quietLogger);
    stores = await storesOn(opened, { database, logger: quietLogger });
    ({ db } = opened);
  });
  afterAll(async () => stores?.close());

  /** Claims of who died are over. */
  const claimsEnd = async (): Promise<void> => {
    await db.query('UPDATE ended_runs SET look_at_ms = 0');
    await db.query('UPDATE expired_runs SET clean_at_ms = 0');
  };

  const removed: string[] = [];
  const expirer = (own = stores) =>
    createExpirer({
      ...{ stores: own, logger: quietLogger, keptMs: 0, restMs: 0 },
      engine: { ping: async () => undefined },
      histories: { remove: async (runId, id) => void removed.push(`${runId} ${id}`) },
    });

  /** A root with a child, a value of their own each and one that a neighbour shares. */
  async function family(neighbour: RunRef): Promise<readonly RunRef[]> {
    const root = await member(stores, { open: true });
    const child = await member(stores, { parent: root });
    await end(stores, root);
    for (const run of [root, child, neighbour])
      await stores.content.put(run, Buffer.from('shared'));
    for (const run of [root, child]) await stores.content.put(run, Buffer.from(run.runId));
    return [root, child];
  }

  const contents = async (): Promise<number> => (await db.query('SELECT 1 FROM contents')).length;

  /** A process of its own that SIGKILL ends before its n-th step. */
  function killedAt(nth: number): Promise<number | NodeJS.Signals | null> {
    const script = programArgs(new URL('./postgres-expirer.ts', import.meta.url));
    const child = spawn(process.execPath, [...script, url, String(nth)], { stdio: 'inherit' });
    return new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)));
  }

  async function isWhole(run: RunRef): Promise<boolean> {
    const rows = await stores.log.read(run, { after: -1, limit: 100 });
    const head = await stores.log.head(run);
    const segments = await stores.segments.ofRun(run);
    const place = await stores.sessions.sessionOf('default', run.runId);
    return rows.length === EVENTS && head?.closed === true && segments.length === 1 && !!place;
  }

  /** True: the family is there as a whole; false: all of it has expired. Fails where neither holds. */
  async function isThereAsWhole(runs: readonly RunRef[]): Promise<boolean> {
    const found = await Promise.all(runs.map((run) => stores.runs.find('default', run.runId)));
    const expired = await Promise.all(
      runs.map((run) => stores.runs.expiredAt('default', run.runId)),
    );
    const isThere = found.every((row) => row !== undefined);
    expect(found.map((row) => row !== undefined)).toEqual(runs.map(() => isThere));
    expect(expired.map((at) => at === undefined)).toEqual(runs.map(() => isThere));
    if (isThere) for (const run of runs) expect(await isWhole(run)).toBe(true);
    return isThere;
  }

  /** The next process goes on after one that died before its n-th step. */
  async function expectNextDeletesRest(nth: number, runs: readonly RunRef[]): Promise<void> {
    for (let count = 0; count < 2; count++) {
      await claimsEnd();
      await expirer().round();
    }
    for (const run of runs) {
      expect(await stores.runs.expiredAt('default', run.runId)).toBeDefined();
      expect([nth, await tablesWith(db, run)]).toEqual([nth, []]);
    }
    // Of the neighbour alone.
    expect([nth, await contents()]).toEqual([nth, 1]);
    expect((await stores.content.get('default', SHARED)).byteLength).toBe(6);
  }

  it(
    'killed before each of its steps: each run of a family is whole, or all of them have expired, and the next process deletes the rest',
    { timeout: LIMIT_MS },
    async () => {
      const options = { database: { kind: 'postgres', url }, logger: quietLogger } as const;
      const neighbour = await member(stores, { open: true });
      /** Of each step before which it died, whether the family is there. */
      const there: boolean[] = [];
      for (let nth = 1; ; nth++) {
        const runs = await family(neighbour);
        const outcome = await diesBefore(nth, options, expireInRounds);
        const isThere = await isThereAsWhole(runs);
        if (outcome !== 'killed') {
          expect(isThere).toBe(false);
          break;
        }
        there.push(isThere);
        await expectNextDeletesRest(nth, runs);
      }
      // The family goes by one step, with some before it and many behind it.
      expect(there.length).toBeGreaterThan(20);
      expect(there).toEqual(there.map((_, at) => at < there.indexOf(false)));
      expect(there.indexOf(false)).toBeGreaterThan(0);
      // SIGKILL shows the same where all has expired and about half is deleted.
      const half = Math.ceil((there.indexOf(false) + 1 + there.length) / 2);
      const runs = await family(neighbour);
      expect(await killedAt(half)).toBe('SIGKILL');
      expect(await isThereAsWhole(runs)).toBe(false);
      await expectNextDeletesRest(half, runs);
    },
  );

  it('two processes at once, and what is under way beside them: each run once, its neighbours not at all', async () => {
    if ('missing' in postgres) return;
    const database = { kind: 'postgres', url } as const;
    const opened = await openDatabase(database, quietLogger);
    const elsewhere = await storesOn(opened, { database, logger: quietLogger });
    const neighbour = await member(stores, { open: true });
    const families = [];
    for (let count = 0; count < 30; count++) families.push(await family(neighbour));
    removed.length = 0;
    const rounds = async (own: Stores) => {
      for (let count = 0; count < 6; count++) await expirer(own).round();
    };
    await Promise.all([
      rounds(stores),
      rounds(elsewhere),
      appendRows(stores, neighbour.runId, ['four', 'five']),
    ]);
    await claimsEnd();
    await expirer().round();
    for (const run of families.flat()) expect(await tablesWith(db, run)).toEqual([]);
    expect((await headOf(stores, neighbour.runId)).nextSequence).toBe(5);
    await elsewhere.close();
  });

  it('a rebuild, an archive, a fork or a hold at the same moment: there as a whole, or gone as a whole', async () => {
    const log = createLog({
      stores,
      history: new ScriptedHistory(),
      logger: quietLogger,
      processId: 'p',
    });
    for (let round = 0; round < 12; round++) {
      const run = await member(stores);
      const head = await headOf(stores, run.runId);
      const rows = await stores.log.read(run, { after: -1, limit: 100 });
      const fork = `${run.runId}-fork`;
      const beside = [
        () => stores.log.restore(run, { summary: NO_WAITS, head, rows }, head),
        () => stores.content.putAll([{ holder: run, bytes: Buffer.from(fork), isArchive: true }]),
        () => stores.retention.noteFork(run, fork),
        () => stores.retention.hold(run, 'Case 1'),
      ];
      const refused = (error: unknown) => String(error);
      const [outcome, ...others] = await Promise.all([
        stores.retention.expire(run, { keptMs: 0, restMs: 0 }),
        beside[round % beside.length]?.().catch(refused),
      ]);
      if (outcome.kind === 'expired') {
        while (!(await stores.retention.clean(run, 10)));
        expect(await tablesWith(db, run)).toEqual([]);
        expect(await stores.log.head(run)).toBeUndefined();
      } else {
        expect(others).toEqual([true]);
        expect(await isWhole(run)).toBe(true);
      }
    }
    log.close();
  });

  it('who reads a log slowly sees that its run went, and not an end', async () => {
    const run = await member(stores, { open: true });
    await appendRows(
      stores,
      run.runId,
      Array.from({ length: 700 }, (_, at) => `more-${at}`),
    );
    await end(stores, run);
    const log = createLog({
      stores,
      history: new ScriptedHistory(),
      logger: quietLogger,
      processId: 'p',
    });
    const reading = log.follow(run, { after: -1, signal: new AbortController().signal });
    const pages = reading[Symbol.asyncIterator]();
    expect((await pages.next()).value).toHaveLength(500);
    await stores.retention.expire(run, { keptMs: 0, restMs: 0 });
    while (!(await stores.retention.clean(run, 1_000)));
    await expect(pages.next()).rejects.toMatchObject({ code: 'run_not_found' });
    log.close();
  });

  it('under load nothing grows but entries: as many rows after the tenth batch as after the second', async () => {
    const sizes: string[] = [];
    for (let batch = 0; batch < 10; batch++) {
      for (let count = 0; count < 8; count++) {
        const run = await member(stores);
        await stores.content.put(run, Buffer.from(run.runId));
      }
      while (await expirer().round());
      await claimsEnd();
      await expirer().round();
      sizes.push(await rowsOfAll(db));
    }
    expect(sizes.slice(1)).toEqual(sizes.slice(1).map(() => sizes[1]));
  });
});

/** Rows of every table that has a tenant, but for entries of expired runs. */
async function rowsOfAll(db: OpenDatabase['db']): Promise<string> {
  const tables = await db.query<{ name: string }>(
    `SELECT table_name AS name FROM information_schema.columns
     WHERE table_schema = current_schema() AND column_name = 'tenant_id' AND table_name <> 'expired_runs' ORDER BY 1`,
  );
  const counts: string[] = [];
  for (const { name } of tables) {
    const [row] = await db.query<{ rows: number }>(`SELECT count(*) AS rows FROM ${name}`);
    if (row?.rows) counts.push(`${name} ${row.rows}`);
  }
  return counts.join(', ');
}
