// The store contracts on both twins (architecture §8), and those of the log and of content on files.
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase, openStores } from '../../src/adapters/postgres/index.ts';
import type { OpenStoresOptions } from '../../src/adapters/postgres/index.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { agentRegistryContract } from '../contract/agent-registry.ts';
import { appendGroupsContract } from '../contract/append-groups.ts';
import { cohortStoreContract } from '../contract/cohorts.ts';
import { contentStoreContract } from '../contract/content-store.ts';
import { effectLedgerContract } from '../contract/effect-ledger.ts';
import { lostClaimsContract } from '../contract/lost-claims.ts';
import { familiesContract } from '../contract/families.ts';
import { feedContract } from '../contract/feed.ts';
import {
  NO_WAITS,
  batchAfter,
  entry,
  eventually,
  headOf,
  newRun,
  sinceTheEpoch,
  startedRun,
  refTo,
} from '../contract/given.ts';
import type { GivenStores } from '../contract/given.ts';
import { idempotencyStoreContract } from '../contract/idempotency-store.ts';
import { deltaContract, logStoreContract } from '../contract/log-store.ts';
import { pageSessionStoreContract } from '../contract/page-sessions.ts';
import { projectionStoreContract } from '../contract/projection-store.ts';
import { runListsContract } from '../contract/run-lists.ts';
import { runStoreContract } from '../contract/run-store.ts';
import { sessionStoreContract } from '../contract/sessions.ts';
import { tenantsContract } from '../contract/tenants.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { pgliteDatabase } from '../support/databases.ts';
import { CACHE_DIR } from '../support/temporal.ts';

const postgres = await sharePostgres();
const dir = await mkdtemp(join(tmpdir(), 'openwop-stores-'));

afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
  await rm(dir, { recursive: true, force: true });
});

/** Opens before the suite, closes behind it. */
function opened(options: () => Promise<Omit<OpenStoresOptions, 'logger'>>): GivenStores {
  let stores: Stores | undefined;
  beforeAll(async () => {
    stores = await openStores({ ...(await options()), logger: quietLogger });
  });
  afterAll(async () => stores?.close());
  return () => {
    if (!stores) throw new Error('the stores did not open');
    return stores;
  };
}

function contracts(stores: GivenStores): void {
  runStoreContract(stores);
  runListsContract(stores);
  familiesContract(stores);
  cohortStoreContract(stores);
  idempotencyStoreContract(stores);
  logStoreContract(stores);
  appendGroupsContract(stores);
  deltaContract(stores);
  feedContract(stores);
  sessionStoreContract(stores);
  effectLedgerContract(stores);
  lostClaimsContract(stores);
  contentStoreContract(() => stores().content);
  pageSessionStoreContract(stores);
  projectionStoreContract(stores);
  agentRegistryContract(stores);
  tenantsContract(stores);
  it('architecture §3.3 a ping of a database that answers resolves', async () => {
    await expect(stores().ping()).resolves.toBeUndefined();
  });
}

describe('PGlite with content in a table', () => {
  contracts(opened(async () => ({ database: await pgliteDatabase() })));
});

describe('PGlite with content in files', () => {
  const contentDir = join(dir, 'content');
  const stores = opened(async () => ({
    database: { kind: 'pglite', dir: join(dir, 'postgres'), cacheDir: CACHE_DIR },
    contentDir,
  }));
  logStoreContract(stores);
  contentStoreContract(() => stores().content);

  it('architecture §7 the folder and its files are for their owner only', async () => {
    const hash = await stores().content.put({ tenant: 'default' }, Buffer.from('secret'));
    const hex = hash.slice('sha256:'.length);
    const file = join(contentDir, 'default', hex.slice(0, 2), hex);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(dir, 'postgres'))).mode & 0o777).toBe(0o700);
    expect(await readdir(join(contentDir, '~unfinished'))).toEqual([]);
  });

  it('architecture §2.6 a damaged file is content_missing until it is put again', async () => {
    const bytes = Buffer.from('whole');
    const hash = await stores().content.put({ tenant: 'default' }, bytes);
    const hex = hash.slice('sha256:'.length);
    await writeFile(join(contentDir, 'default', hex.slice(0, 2), hex), 'who');
    await expect(stores().content.get('default', hash)).rejects.toMatchObject({
      code: 'content_missing',
    });
    await stores().content.put({ tenant: 'default' }, bytes);
    expect(Buffer.from(await stores().content.get('default', hash)).toString()).toBe('whole');
  });
});

describe.skipIf('missing' in postgres)('PostgreSQL', () => {
  let url = '';
  const database = async (): Promise<Omit<OpenStoresOptions, 'logger'>> => {
    if ('missing' in postgres) throw new Error(postgres.missing);
    url ||= await postgres.createDatabase();
    return { database: { kind: 'postgres', url } };
  };
  const stores = opened(database);
  const elsewhere = opened(database);
  contracts(stores);

  it('architecture §3.2 an append whose lock is held keeps no other from its own', async () => {
    const runIds = await Promise.all(Array.from({ length: 4 }, () => startedRun(stores())));
    const [held = '', ...others] = runIds;
    const batches = await Promise.all(
      runIds.map(async (runId) => batchAfter(await headOf(stores(), runId), [entry(runId, 'k')])),
    );
    const { db, close } = await openDatabase({ kind: 'postgres', url }, quietLogger);
    let waiting: Promise<unknown> = Promise.resolve();
    await db.transaction(async (tx) => {
      await tx.query('SELECT 1 FROM run_heads WHERE run_id = $1 FOR UPDATE', [held]);
      const [first, ...rest] = batches.map((batch) => stores().log.append(batch));
      waiting = first ?? waiting;
      for (const outcome of await Promise.all(rest)) expect(outcome.kind).toBe('appended');
      expect((await headOf(stores(), held)).nextSequence).toBe(0);
    });
    await close();
    expect(others).toHaveLength(3);
    expect(await waiting).toMatchObject({ kind: 'appended', head: { nextSequence: 1 } });
  });

  // [I83]
  it('architecture §3.2 nor does one whose lock is held behind one that cannot be stored', async () => {
    const runIds = await Promise.all(Array.from({ length: 4 }, () => startedRun(stores())));
    const [, breaks, held = ''] = runIds;
    const fold = (): never => {
      throw new Error('the fold breaks');
    };
    const batches = await Promise.all(
      runIds.map(async (runId) =>
        batchAfter(await headOf(stores(), runId), [entry(runId, 'k')], {
          ...(runId === breaks ? { fold } : {}),
        }),
      ),
    );
    const { db, close } = await openDatabase({ kind: 'postgres', url }, quietLogger);
    let waiting: Promise<unknown> = Promise.resolve();
    await db.transaction(async (tx) => {
      await tx.query('SELECT 1 FROM run_heads WHERE run_id = $1 FOR UPDATE', [held]);
      const [first, broken, locked, last] = batches.map((batch) => stores().log.append(batch));
      waiting = locked ?? waiting;
      await expect(broken).rejects.toThrow('the fold breaks');
      expect((await first)?.kind).toBe('appended');
      expect((await last)?.kind).toBe('appended');
    });
    await close();
    expect(await waiting).toMatchObject({ kind: 'appended', head: { nextSequence: 1 } });
  });

  it('architecture §3.6 a run that failed to start is not started again when the heads are dropped', async () => {
    const run = newRun({ createdAtMs: -50_000 });
    await stores().runs.accept(run);
    await stores().runs.markStartFailed(refTo(run.runId), { cause: 'payload_too_large', atMs: 7 });
    const { db, close } = await openDatabase({ kind: 'postgres', url }, quietLogger);
    await db.query('DELETE FROM run_heads WHERE run_id = $1', [run.runId]);
    await close();
    const listed = (await stores().runs.unstarted(sinceTheEpoch(), 200)).map(({ runId }) => runId);
    expect(listed).not.toContain(run.runId);
  });

  it('architecture §3.6 a rebuild that finds the run ended leaves nothing of what it asked', async () => {
    const runId = await startedRun(stores());
    const wait = { kind: 'approval', nodeId: 'gate', nodeName: 'Gate', interruptId: 'i' } as const;
    const waits = [{ ...wait, requestedAtMs: 1, data: {} }];
    const asking = batchAfter(await headOf(stores(), runId), [entry(runId, 'asks')], {
      ...{ status: 'waiting-approval', summary: () => ({ waits }) },
    });
    await stores().log.append(asking);
    const { db, close } = await openDatabase({ kind: 'postgres', url }, quietLogger);
    const asked = async () =>
      (await db.query('SELECT 1 FROM run_asks WHERE run_id = $1', [runId])).length;
    expect(await asked()).toBe(1);
    const seen = await headOf(stores(), runId);
    const rows = await stores().log.read(refTo(runId), { after: -1, limit: 10 });
    const head = { ...seen, status: 'cancelled', closed: true } as const;
    expect(await stores().log.restore(refTo(runId), { summary: NO_WAITS, head, rows }, seen)).toBe(
      true,
    );
    expect(await asked()).toBe(0);
    await close();
  });

  it('architecture §3.4 a change is told in another process that shares the database', async () => {
    const runId = await startedRun(stores());
    const seen: number[] = [];
    elsewhere().log.onChange(
      (change) => void (change.runId === runId && seen.push(change.nextSequence)),
    );
    await stores().log.append(batchAfter(await headOf(elsewhere(), runId), [entry(runId, 'a')]));
    await eventually(() => seen.length === 1, 'the change');
    expect(seen).toEqual([1]);
  });
});
