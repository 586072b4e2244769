// Reads of one run and of a page of many, and appends, look into indexes, however many have ended (architecture §7): PostgreSQL counts
// the scans of whole tables itself.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase, openStores, type OpenDatabase } from '../../src/adapters/postgres/index.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { rest } from '../../src/system/time.ts';
import { appendRows, refTo, startedRun } from '../contract/given.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { copyEnded } from '../support/run-copies.ts';
const ENDED = 20_000;
const EVENTS = 3;
const OPEN = 8;
const BACKGROUND_MS = 500;
const postgres = await sharePostgres();

describe.skipIf('missing' in postgres)('PostgreSQL with many runs that have ended', () => {
  let url = '';
  let own: OpenDatabase;
  let runId = '';
  let open: readonly string[] = [];

  const withStores = async (work: (stores: Stores) => Promise<unknown>): Promise<void> => {
    const stores = await openStores({ database: { kind: 'postgres', url }, logger: quietLogger });
    await work(stores);
    // What opening begins in the background is a part of each.
    await rest(BACKGROUND_MS);
    // A connection tells what it counted when it ends.
    await stores.close();
  };

  /** Scans of whole tables so far, by table. */
  async function scans(): Promise<Record<string, number>> {
    const rows = await own.db.query<{ relname: string; scans: number }>(
      `SELECT relname::text AS relname, seq_scan AS scans FROM pg_stat_user_tables
       WHERE relname IN ('runs', 'run_heads', 'run_events', 'run_segments', 'run_asks', 'expired_runs')`,
    );
    return Object.fromEntries(rows.map(({ relname, scans: count }) => [relname, count]));
  }

  /** How often a read went by the index of questions. */
  async function questionScans(): Promise<number> {
    const [index] = await own.db.query<{ scans: number }>(
      `SELECT idx_scan AS scans FROM pg_stat_user_indexes WHERE indexrelname = 'run_events_of_questions'`,
    );
    return Number(index?.scans);
  }

  async function copies(): Promise<void> {
    await copyEnded(own.db, runId, ENDED);
    // As if each of them waited for somebody.
    await own.db.query(
      `INSERT INTO run_asks (run_id, tenant_id, until_ms, since_ms, last_until_ms)
       SELECT run_id, tenant_id, row_number() OVER (), 1, row_number() OVER () FROM run_heads WHERE run_id <> $1`,
      [runId],
    );
    await own.db.query(
      `INSERT INTO expired_runs (run_id, tenant_id, workflow_id, session_id, executions, ended_at_ms, expired_at_ms, clean_at_ms)
       SELECT 'run-gone-' || n, 'default', 'chain', 'session-' || n, '[]', 1, 1, 1 FROM generate_series(1, $1::int) n`,
      [ENDED],
    );
    await own.db.query('ANALYZE');
  }

  beforeAll(async () => {
    if ('missing' in postgres) return;
    url = await postgres.createDatabase();
    await withStores(async (stores) => {
      runId = await startedRun(stores);
      await appendRows(stores, runId, ['a', 'b', 'c']);
    });
    own = await openDatabase({ kind: 'postgres', url }, quietLogger);
    await copies();
    await withStores(async (stores) => {
      open = await Promise.all(Array.from({ length: OPEN }, () => startedRun(stores)));
    });
  });
  afterAll(async () => {
    await own?.close();
    if (!('missing' in postgres)) await postgres.stop();
  });

  it('architecture §7 pages of lists and of events, a head, and appends scan no table', async () => {
    const run = refTo(runId);
    // What opening a database asks for is none of a read's.
    await withStores(async () => {});
    const before = await scans();
    await withStores(async () => {});
    const opened = await scans();
    const questionsBefore = await questionScans();
    await withStores(async (stores) => {
      const page = await stores.runs.list(run.tenant, { limit: 50 });
      expect(page.runs).toHaveLength(50);
      expect((await stores.log.head(run))?.nextSequence).toBe(EVENTS);
      expect(await stores.log.read(run, { after: 0, limit: 100 })).toHaveLength(EVENTS - 1);
      expect(await stores.log.questions(run, { nodeId: 'n', after: -1, limit: 100 })).toEqual([]);
      expect(await stores.runs.find(run.tenant, runId)).toBeDefined();
      await stores.runs.overview(run.tenant, { limit: 50 }, 0);
      await stores.runs.overview(run.tenant, { limit: 50, waiting: true }, 0);
      await stores.runs.countWaiting(run.tenant, 100, 0);
      expect(await stores.retention.hasExpired(run.tenant, 'session-7')).toBe(true);
      expect(await stores.retention.hasExpired(run.tenant, 'session-of-nobody')).toBe(false);
      await Promise.all(open.map((id) => appendRows(stores, id, ['a'])));
    });
    const after = await scans();
    expect(await questionScans()).toBeGreaterThan(questionsBefore);
    const cost = (from: Record<string, number>, to: Record<string, number>) =>
      Object.fromEntries(
        Object.entries(to).map(([table, count]) => [table, count - (from[table] ?? 0)]),
      );
    const opening = cost(before, opened);
    // On a machine under load some of it may not have begun.
    for (const [table, count] of Object.entries(cost(opened, after)))
      expect([table, count]).toEqual([table, Math.min(count, opening[table] ?? 0)]);
  });
});
