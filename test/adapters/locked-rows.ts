// Rows that somebody else has locked (architecture §11, I97), on PostgreSQL: PGlite has one connection, and none of these.
import { describe, expect, it } from 'vitest';
import { createFileContentStore } from '../../src/adapters/postgres/content-store.ts';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { createSubjectStore } from '../../src/adapters/postgres/subject-store.ts';
import type { HostKey, KeyRing } from '../../src/ports/keys.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { batchAfter, entry, headOf, newId, refTo, startedRun } from '../contract/given.ts';
import { patient } from '../support/machine.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { takes } from '../support/waiting.ts';

/** Longer than the tests take. */
const LIFE_MS = 3_600_000;

interface Given {
  readonly db: Db;
  readonly stores: Stores;
  /** That wraps what these stores make. */
  readonly key: HostKey;
}

/** A table with rows whose time is over: how they are inserted (`x` is their key), and on which way they are cleared. */
interface Cleared {
  readonly key: string;
  readonly insert: string;
  readonly clear: (given: Given) => Promise<unknown>;
}

const NO_FILES = { put: takeNone, get: takeNone, remove: async () => undefined, probe: takeNone };
function takeNone(): never {
  throw new Error('no file is asked for');
}

const CLEARED: Readonly<Record<string, Cleared>> = {
  run_watches: {
    key: 'run_id',
    insert: "(run_id, watcher, tenant_id, expires_at_ms) SELECT x, 'w', 'default', 1",
    clear: ({ stores }) => stores.projection.renewLease(newId('process'), 1),
  },
  page_links: {
    key: 'link_hash',
    insert: "(link_hash, tenant_id, run_id, expires_at_ms) SELECT x, 'default', 'r', 1",
    clear: ({ stores }) => stores.pageSessions.createLink(refTo('r'), newId('link'), LIFE_MS),
  },
  host_links: {
    key: 'link_hash',
    insert: "(link_hash, tenant_id, expires_at_ms) SELECT x, 'default', 1",
    clear: ({ stores }) => stores.pageSessions.createHostLink('default', newId('link'), LIFE_MS),
  },
  host_sessions: {
    key: 'session_hash',
    insert: "(session_hash, tenant_id, expires_at_ms) SELECT x, 'default', 1",
    clear: ({ stores }) =>
      stores.pageSessions.createHostSession('default', {
        sessionHash: newId('session'),
        lifeMs: LIFE_MS,
      }),
  },
  agent_tokens: {
    key: 'token_hash',
    insert: "(token_hash, tenant_id, agent_id, expires_at_ms) SELECT x, 'default', 'a', 1",
    clear: ({ stores }) =>
      stores.agents.mintToken(
        { tenant: 'default', agentId: 'a', tokenHash: newId('token') },
        LIFE_MS,
      ),
  },
  agent_instances: {
    key: 'instance_id',
    insert:
      "(instance_id, tenant_id, agent_id, lease_until_ms, instance) SELECT x, 'default', 'a', 1, '{}'",
    clear: ({ stores }) => stores.agents.expire(1_000),
  },
  idempotency_records: {
    key: 'key_digest',
    insert: `(key_digest, tenant_id, endpoint, target_digest, request_digest, owner, lease_until_ms, created_at_ms)
      SELECT x, 'default', 'e', '', '', '', 1, 1`,
    clear: ({ stores }) => stores.idempotency.expire(1_000),
  },
  expired_runs: {
    key: 'run_id',
    insert: `(run_id, tenant_id, workflow_id, session_id, executions, ended_at_ms, expired_at_ms, clean_at_ms,
      cleaned_at_ms) SELECT x, 'default', 'w', 's', '[]', 1, 1, 1, 1`,
    clear: ({ stores }) => stores.retention.forget(1_000, 100),
  },
  content_unused: {
    key: 'hash',
    insert: "(hash, tenant_id, since_ms) SELECT x, 'default', CASE x WHEN 'a' THEN 1 ELSE 2 END",
    clear: ({ db }) => createFileContentStore(db, NO_FILES, quietLogger).sweep(100),
  },
};

/** Longest work of a clean-up that waits for no lock, in ms; who waits for one fails after 10 s. */
const SOON_MS = 3_000;

async function soon(work: () => Promise<unknown>): Promise<void> {
  const startedMs = performance.now();
  await work();
  expect(performance.now() - startedMs).toBeLessThan(patient(SOON_MS));
}

/** While a transaction has locked the one row that `condition` names. */
function whileLocked(
  { db }: Given,
  [table, condition]: readonly [string, string],
  work: () => Promise<unknown>,
): Promise<void> {
  return db.transaction(async (tx) => {
    const rows = await tx.query(`SELECT 1 FROM ${table} WHERE ${condition} FOR UPDATE`);
    expect(rows).toHaveLength(1);
    await work();
  }, patient(60_000));
}

export function lockedRows(given: () => Given): void {
  describe('a row that somebody has locked', () => {
    it.each(Object.entries(CLEARED))(
      'keeps no other whose time is over, and nothing that clears it: %s',
      async (table, { key, insert, clear }) => {
        const { db } = given();
        await db.query(`INSERT INTO ${table} ${insert} FROM unnest(ARRAY['a', 'b']) AS x`);
        const left = async () => {
          const rows = await db.query<{ x: string }>(
            `SELECT ${key} AS x FROM ${table} WHERE ${key} IN ('a', 'b')`,
          );
          return rows.map(({ x }) => x);
        };
        await whileLocked(given(), [table, `${key} = 'a'`], async () => {
          await soon(() => clear(given()));
          expect(await left()).toEqual(['a']);
        });
        await clear(given());
        expect(await left()).toEqual([]);
      },
    );

    it('keeps no append of other runs waiting', async () => {
      const { db, stores } = given();
      const runIds = await Promise.all(Array.from({ length: 6 }, () => startedRun(stores)));
      const [locked = '', ...others] = runIds;
      await db.query("INSERT INTO run_asks VALUES ($1, 'default', 1, 1, 1)", [locked]);
      const append = async (runId: string) =>
        stores.log.append(batchAfter(await headOf(stores, runId), [entry(runId, 'k')]));
      let late: Promise<unknown> = Promise.resolve();
      let isStored = false;
      await whileLocked(given(), ['run_asks', `run_id = '${locked}'`], async () => {
        late = append(locked).finally(() => (isStored = true));
        await takes(100);
        await soon(() => Promise.all(others.map(append)));
        expect(isStored).toBe(false);
      });
      expect(await late).toMatchObject({ kind: 'appended' });
    });

    it('keeps no other key of a subject from being wrapped again', async () => {
      const { db, stores, key } = given();
      const ids: string[] = [];
      for (const subject of ['x', 'y', 'z'])
        ids.push((await stores.subjects.keyFor('default', { subject: newId(subject) })) ?? '');
      const [locked = ''] = ids.toSorted();
      const next = { id: 'next', key: new Uint8Array(32).fill(1) };
      const ring: KeyRing = {
        ...{ keys: [next, key], current: () => next, isShared: () => true },
        ...{ announced: async () => undefined, announcedAs: () => undefined, missing: () => [] },
      };
      const subjects = createSubjectStore(db, ring);
      await whileLocked(given(), ['subject_keys', `key_id = '${locked}'`], async () => {
        await soon(() => subjects.rewrap(500));
        const left = await db.query(
          "SELECT key_id FROM subject_keys WHERE NOT starts_with(wrapped, 'next:')",
        );
        expect(left).toEqual([{ key_id: locked }]);
      });
      await subjects.rewrap(500);
      // The stores of this test know the old key alone.
      await createSubjectStore(db, { ...ring, current: () => key }).rewrap(500);
    });
  });
}
