// The feed under concurrent writers (architecture §3.6): no reader passes a position that may still commit. Only
// PostgreSQL has writers that overlap; PGlite has one connection.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readFeed } from '../../src/log/feed.ts';
import { openStores } from '../../src/adapters/postgres/index.ts';
import type { FeedRow } from '../../src/ports/feed.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { appendRows, delta, eventually, newId, startedRun, refTo } from '../contract/given.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { quietFor, takes } from '../support/waiting.ts';
const postgres = await sharePostgres();
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
});

describe.skipIf('missing' in postgres)('PostgreSQL', () => {
  let url = '';
  let stores: Stores;
  beforeAll(async () => {
    if ('missing' in postgres) throw new Error(postgres.missing);
    url = await postgres.createDatabase();
    stores = await openStores({ database: { kind: 'postgres', url }, logger: quietLogger });
  });
  afterAll(async () => stores?.close());

  const page = (tenant: string, after = 0) => stores.feed.read({ tenant, after, limit: 10_000 });
  const named = (rows: readonly FeedRow[]): string[] =>
    rows.map(({ run, sequence }) => `${run.runId} ${sequence}`);

  /** A writer of one row whose transaction ends when it is told to. */
  async function openWriter(tenant: string): Promise<{ runId: string; client: pg.Client }> {
    const runId = await startedRun(stores, { tenant });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('BEGIN');
    await client.query(
      `INSERT INTO run_events (run_id, sequence, tenant_id, event_id, key, type, payload, timestamp_ms)
       VALUES ($1, 0, $2, $3, 'k', 'x.y', '{}', 0)`,
      [runId, tenant, newId('evt')],
    );
    return { runId, client };
  }

  async function end({ client }: { client: pg.Client }, how: 'COMMIT' | 'ROLLBACK'): Promise<void> {
    await client.query(how);
    await client.end();
  }

  // [I22]
  it('architecture §3.6 a row is read only when no lower one may still come', async () => {
    const tenant = newId('tenant');
    const early = await startedRun(stores, { tenant });
    await appendRows(stores, early, ['1']);
    const writer = await openWriter(tenant);
    const late = await startedRun(stores, { tenant });
    await appendRows(stores, late, ['1']);
    const before = await page(tenant);
    expect(named(before.rows)).toEqual([`${early} 0`]);
    expect(before.heldBack).toBe(true);
    await end(writer, 'COMMIT');
    const after = await page(tenant);
    expect(named(after.rows)).toEqual([`${early} 0`, `${writer.runId} 0`, `${late} 0`]);
    expect(after.heldBack).toBe(false);
  });

  it('architecture §3.6 a writer that is rolled back holds nothing back any more, and a reader needs no change to see it', async () => {
    const tenant = newId('tenant');
    const writer = await openWriter(tenant);
    const late = await startedRun(stores, { tenant });
    await appendRows(stores, late, ['1']);
    const abort = new AbortController();
    const pages = readFeed(stores, { tenant, after: 0, signal: abort.signal });
    const first = pages.next();
    await quietFor(200);
    await end(writer, 'ROLLBACK');
    expect(named((await first).value ?? [])).toEqual([`${late} 0`]);
    await pages.return();
  });

  it('architecture §3.6 a transaction of somebody else holds nothing back, also one that writes', async () => {
    const tenant = newId('tenant');
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('BEGIN');
    await client.query("INSERT INTO process_leases (holder, expires_at_ms) VALUES ('other', 0)");
    await client.query('SELECT pg_advisory_xact_lock(1), pg_advisory_xact_lock(20311, 1)');
    const runId = await startedRun(stores, { tenant });
    await appendRows(stores, runId, ['1']);
    expect(await page(tenant)).toMatchObject({ rows: [{ run: { runId } }], heldBack: false });
    await end({ client }, 'ROLLBACK');
  });

  it('architecture §3.6 a writer holds one lock, however many statements its transaction has', async () => {
    const tenant = newId('tenant');
    const writer = await openWriter(tenant);
    await writer.client.query(
      `INSERT INTO run_events (run_id, sequence, tenant_id, event_id, key, type, payload, timestamp_ms)
       VALUES ($1, 1, $2, $3, 'k2', 'x.y', '{}', 0)`,
      [writer.runId, tenant, newId('evt')],
    );
    const locks = await writer.client.query(
      "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()",
    );
    expect(locks.rows).toHaveLength(1);
    await end(writer, 'COMMIT');
    expect(named((await page(tenant)).rows)).toEqual([`${writer.runId} 0`, `${writer.runId} 1`]);
  });

  it('architecture §3.6 a reader beside many writers gets every row once, in the order of positions', async () => {
    const tenant = newId('tenant');
    const runIds = await Promise.all(
      Array.from({ length: 12 }, () => startedRun(stores, { tenant })),
    );
    const abort = new AbortController();
    const seen: FeedRow[] = [];
    const reading = (async () => {
      // Pages of its own, as fast as it can: readFeed would rest between two of them.
      for (let after = 0; !abort.signal.aborted;) {
        const { rows } = await page(tenant, after);
        seen.push(...rows);
        after = rows.at(-1)?.position ?? after;
      }
    })();
    const slow = Array.from({ length: 6 }, async () => {
      for (let count = 0; count < 8; count++) {
        const writer = await openWriter(tenant);
        await takes(Math.random() * 30);
        await end(writer, count % 3 === 0 ? 'ROLLBACK' : 'COMMIT');
      }
    });
    const appending = runIds.map(async (runId, at) => {
      for (let count = 0; count < 20; count++) {
        await appendRows(stores, runId, [`${count}.0`, `${count}.1`]);
        if (at % 2 === 0)
          await stores.log.appendDeltas(refTo(runId), 'a/1/0/s', 1, [
            delta(runId, 'a/1/0/s', count),
          ]);
      }
    });
    await Promise.all([...slow, ...appending]);
    const { rows } = await page(tenant);
    expect(rows.length).toBeGreaterThan(12 * 40);
    await eventually(() => seen.length >= rows.length, 'every row');
    abort.abort();
    await reading;
    expect(seen).toEqual(rows);
  });
});
