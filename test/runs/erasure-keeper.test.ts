// Erasures that were left under way (architecture §10.1), on both twins: each has its turn whatever others wait for, and no
// receipt is given while what a key was lies in the table's file.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase, storesOn } from '../../src/adapters/postgres/index.ts';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { createSubjectStore } from '../../src/adapters/postgres/subject-store.ts';
import { createErasureKeeper, type ErasureKeeperDeps } from '../../src/runs/erasure-keeper.ts';
import { HostError } from '../../src/rules/errors.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import { createLog } from '../../src/log/log.ts';
import type { HistoryReader } from '../../src/ports/history.ts';
import type { RunEngine } from '../../src/ports/engine.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { ErasureRow } from '../../src/ports/subjects.ts';
import { batchAfter, entry, headOf, newRun, refTo } from '../contract/given.ts';
import { databaseTwins } from '../support/database-twins.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { patient } from '../support/machine.ts';
import { withClockOff } from '../support/wall-clock.ts';

const TENANT = 'default';
const ASKED = { asked: { by: 'tester' }, cancelsOpen: true };
/** How long a process holds a key, and the time between two rounds, in ms. */
const KEY_HELD_MS = 100;
const ROUND_MS = 200;
const HOUR_MS = 3_600_000;
const KEY = { id: 'k', key: new Uint8Array(randomBytes(32)) };

const DATABASES = await databaseTwins();

async function away(): Promise<never> {
  throw new HostError('service_unavailable');
}

async function begun(stores: Stores, subject: string, ends: boolean): Promise<ErasureRow> {
  const subjectKey = await stores.subjects.keyFor(TENANT, { subject });
  const run = newRun(subjectKey === undefined ? {} : { subjectKey });
  await stores.runs.accept(run);
  await stores.runs.markStarted(refTo(run.runId), 'T1');
  if (ends)
    await stores.log.append({
      ...batchAfter(await headOf(stores, run.runId), [entry(run.runId, 'terminal')]),
      ...{ closed: true, status: 'completed' as const },
    });
  const asked = await stores.subjects.beginErasure(TENANT, subject, ASKED);
  if (asked.kind !== 'begun') throw new Error('not begun');
  return asked.erasure;
}

/** Of a host whose Temporal is away: no open run ends. */
function keeperOn(
  stores: Stores,
  { logger = quietLogger, roundMs, ...of }: Partial<ErasureKeeperDeps>,
  asks: (runId: string) => void = () => {},
): ReturnType<typeof createErasureKeeper> {
  const head = ({ runId }: RunRef) => (asks(runId), away());
  const deps = {
    ...{ stores, logger, roundMs, redactor: { text: (text: string) => text } },
    ...{ engine: { send: away, terminate: async () => {} }, log: { head, fresh: away } },
    ...{ unreadMs: 0, ...of },
  };
  return createErasureKeeper(deps as unknown as ErasureKeeperDeps);
}

async function untilErased(
  stores: Stores,
  { erasureId }: ErasureRow,
  of: Partial<ErasureKeeperDeps> = {},
): Promise<void> {
  const keeper = keeperOn(stores, { roundMs: ROUND_MS, ...of });
  keeper.start();
  const state = async () => (await stores.subjects.erasure(TENANT, erasureId))?.state;
  try {
    await expect.poll(state, { timeout: patient(60_000), interval: 200 }).toBe('erased');
  } finally {
    await keeper.stop();
  }
}

// [I97]
it('keys that do not open delay no batch of others, and each is named', async () => {
  const lost = (keyId: string) => ({ keyId, error: new HostError('history_undecodable') });
  let batches = 0;
  const rewrap = async () => ({
    ...{
      count: batches++ % 2,
      failed: [lost(`key-${batches % 3}`), lost('host-secret receipts')],
    },
  });
  let rounds = 0;
  const unfinished = async () => (rounds++, []);
  const stores = {
    subjects: { rewrap, unfinished, isAvailable: true },
    ping: async () => undefined,
  } as unknown as Stores;
  const warned: unknown[] = [];
  const warn = (...told: unknown[]) => void warned.push(told);
  const keeper = keeperOn(stores, { roundMs: 1, logger: { ...quietLogger, warn } });
  keeper.start();
  await expect.poll(() => batches, { timeout: patient(10_000) }).toBeGreaterThan(9);
  await keeper.stop();
  expect(batches).toBe(rounds);
  const keyIds = warned.map((line) => (line as [string, { keyId: string }])[1].keyId);
  expect(keyIds.toSorted()).toEqual(['host-secret receipts', 'key-0', 'key-1', 'key-2']);
});

describe.each(DATABASES)('erasures under way on %s', (_name, databaseOptions) => {
  async function opened() {
    const database = await databaseOptions();
    const { db, close } = await openDatabase(database, quietLogger);
    const given = { database, logger: quietLogger, masterKeys: [KEY], keyHeldMs: KEY_HELD_MS };
    return { db, given, stores: await storesOn({ db, close }, given) };
  }

  it('one is done behind any number of others whose runs do not end', async () => {
    const { stores } = await opened();
    const open: ErasureRow[] = [];
    for (let at = 0; at < 12; at++) open.push(await begun(stores, `open-${at}`, false));
    const ended = await begun(stores, 'ended', true);
    const logged: unknown[] = [];
    const logger = { ...quietLogger, warn: (...told: unknown[]) => void logged.push(told) };
    await untilErased(stores, ended, { logger });
    // What the others wait for stands there, and is logged once.
    for (const { erasureId, keyId } of open) {
      const [run] = await stores.subjects.openRuns(keyId, { after: '', limit: 1 });
      const reason = `Runs are open: ${run?.runId}. Run ${run?.runId} cannot be ended now (service_unavailable). The service cannot do this now. Try again later.`;
      const kept = await stores.subjects.erasure(TENANT, erasureId);
      expect(kept?.waitsFor).toEqual({ kind: 'open-runs', reason });
      const told = ['an erasure waits', { erasureId, for: 'open-runs', reason }];
      expect(logged.filter((line) => JSON.stringify(line).includes(erasureId))).toEqual([told]);
    }
    expect(await stores.subjects.erasure(TENANT, ended.erasureId)).not.toHaveProperty('waitsFor');
    await stores.close();
  });

  it('all open runs of a subject are told to end in each round, whatever becomes of the first', async () => {
    const { stores } = await opened();
    const subjectKey = (await stores.subjects.keyFor(TENANT, { subject: 'many' })) ?? '';
    const runIds: string[] = [];
    for (let at = 0; at < 120; at++) {
      const run = newRun({ subjectKey });
      await stores.runs.accept(run);
      await stores.runs.markStarted(refTo(run.runId), 'T1');
      runIds.push(run.runId);
    }
    await stores.subjects.beginErasure(TENANT, 'many', ASKED);
    const asked = new Set<string>();
    // Within the first round: the next one is seconds away.
    const keeper = keeperOn(stores, {}, (runId) => asked.add(runId));
    keeper.start();
    await expect.poll(() => asked.size).toBe(runIds.length);
    await keeper.stop();
    await stores.close();
  });

  it('the table of keys is written anew before there is a receipt, whatever became of who destroyed the key', async () => {
    const { db, stores } = await opened();
    const erasure = await begun(stores, 'killed', true);
    const fileOf = async () =>
      (await db.query("SELECT pg_relation_filenode('subject_keys')::text AS file"))[0]?.file;
    const file = await fileOf();
    // It dies behind the transaction that destroys the key: whatever it would do then is not done.
    const dying: Db = {
      query: away,
      transaction: (work, limitMs) => db.transaction(work, limitMs),
      maintain: away,
      listen: away,
      onReconnect: () => () => undefined,
      close: away,
    };
    await createSubjectStore(dying, ringOf([KEY]))
      .destroy(erasure)
      .catch(() => undefined);
    expect((await stores.subjects.erasure(TENANT, erasure.erasureId))?.state).toBe('destroyed');
    expect(await fileOf()).toBe(file);
    await untilErased(stores, erasure);
    expect(await fileOf()).not.toBe(file);
    await stores.close();
  });

  describe('and runs that are open, or damaged', () => {
    let db: Db;
    let stores: Stores;
    let given: Awaited<ReturnType<typeof opened>>['given'];
    beforeAll(async () => {
      ({ db, stores, given } = await opened());
    });
    afterAll(() => stores.close());

    // [I115]
    it('what Temporal still has open of a run is ended once its key is gone, however long Temporal is away', async () => {
      const erasure = await begun(stores, 'left', true);
      const [run] = await stores.subjects.runsToDigest(erasure.keyId, { after: '', limit: 1 });
      const ended: string[] = [];
      const stateOf = async () => stores.subjects.erasure(TENANT, erasure.erasureId);
      const keeper = keeperOn(stores, {
        roundMs: ROUND_MS,
        engine: { terminate: away, ping: away } as unknown as RunEngine,
      });
      keeper.start();
      await expect
        .poll(async () => (await stateOf())?.waitsFor?.reason, { timeout: patient(30_000) })
        .toContain('service_unavailable');
      await keeper.stop();
      expect((await stateOf())?.state).toBe('destroyed');
      const terminate = async (runId: string) => void ended.push(runId);
      await untilErased(stores, erasure, { engine: { terminate } as unknown as RunEngine });
      expect(ended).toEqual([run?.runId]);
    });

    // [I115]
    it('a run whose own key is damaged ends, without a word of what it held, and is erased', async () => {
      const erasure = await begun(stores, 'damaged', false);
      const [run] = await stores.subjects.openRuns(erasure.keyId, { after: '', limit: 1 });
      if (!run) throw new Error('not open');
      await stores.log.append(
        batchAfter(await headOf(stores, run.runId), [entry(run.runId, 'said')]),
      );
      await db.query("UPDATE subject_keys SET wrapped = 'k:AAAA' WHERE key_id = $1", [
        erasure.keyId,
      ]);
      // Another process knows nothing of the key.
      const again = await storesOn({ db, close: async () => undefined }, given);
      await expect(again.log.head(run)).rejects.toMatchObject({ code: 'history_undecodable' });
      const head = (of: RunRef) => again.log.head(of);
      const log = { head, fresh: head };
      const ended: string[] = [];
      const terminate = async (runId: string) => void ended.push(runId);
      await untilErased(again, erasure, {
        engine: { send: away, terminate } as unknown as RunEngine,
        log: log as unknown as ErasureKeeperDeps['log'],
      });
      expect(new Set(ended)).toEqual(new Set([run.runId]));
      const rows = await again.log.read(run, { after: -1, limit: 10 });
      expect(rows.map(({ sequence, type }) => [sequence, type])).toEqual([
        [0, 'variable.changed'],
        [1, 'run.failed'],
      ]);
      expect(rows[0]?.payload).not.toContain('said');
      expect(JSON.parse(rows[1]?.payload ?? '')).toMatchObject({
        error: { code: 'run_terminated' },
      });
      expect(await again.log.head(run)).toMatchObject({ closed: true, status: 'failed' });
      expect(await again.projection.openRuns('', 10)).toEqual([]);
    });

    // [I115]
    it('a damaged run is ended once no round could read it for its time, whatever the clocks say', async () => {
      const erasure = await begun(stores, 'damaged-later', false);
      const terminated: string[] = [];
      const engine = {
        send: away,
        terminate: async (runId: string) => void terminated.push(runId),
      } as unknown as RunEngine;
      const damaged = () => Promise.reject(new HostError('history_undecodable'));
      const log = { head: damaged, fresh: damaged } as unknown as ErasureKeeperDeps['log'];
      const stateOf = async () => stores.subjects.erasure(TENANT, erasure.erasureId);
      await withClockOff(48 * HOUR_MS, async () => {
        const keeper = keeperOn(stores, { roundMs: ROUND_MS, unreadMs: HOUR_MS, engine, log });
        keeper.start();
        await expect
          .poll(async () => (await stateOf())?.waitsFor?.reason, { timeout: patient(30_000) })
          .toContain('history_undecodable');
        await keeper.stop();
      });
      expect(terminated).toEqual([]);
      // The two looks of one round are no such time: the keeper counts from one to the next.
      const soon = { engine, log, unreadMs: ROUND_MS };
      await withClockOff(-48 * HOUR_MS, () => untilErased(stores, erasure, soon));
      expect(terminated).not.toEqual([]);
    });

    // [I115]
    it('a run whose history alone is damaged ends without it, and is no problem any more', async () => {
      const erasure = await begun(stores, 'damaged-history', false);
      const [run] = await stores.subjects.openRuns(erasure.keyId, { after: '', limit: 1 });
      if (!run) throw new Error('not open');
      const page = () => Promise.reject(new HostError('history_undecodable'));
      const history = { page } as unknown as HistoryReader;
      const log = createLog({ stores, history, logger: quietLogger, processId: 'keeper' });
      // A cancel is asked for, and no worker can do it.
      const send: RunEngine['send'] = async (_runId, _updateId, { bodyDigest }) => ({
        ...{ bodyDigest, status: 'cancelling' },
      });
      const terminate = async () => {};
      await untilErased(stores, erasure, {
        engine: { send, terminate } as unknown as RunEngine,
        log,
      });
      const rows = await stores.log.read(run, { after: -1, limit: 10 });
      expect(rows.map(({ type }) => type)).toEqual(['run.failed']);
      expect(await stores.log.problems(10)).toEqual([]);
      log.close();
    });

    // [I115]
    it('a run whose row is damaged ends as its history says', async () => {
      const erasure = await begun(stores, 'damaged-row', false);
      const [run] = await stores.subjects.openRuns(erasure.keyId, { after: '', limit: 1 });
      if (!run) throw new Error('not open');
      await db.query("UPDATE runs SET input = '{' WHERE run_id = $1", [run.runId]);
      let isEnded = false;
      const terminate = async () => void (isEnded = true);
      const fresh = async (of: RunRef) => {
        const head = await headOf(stores, of.runId);
        if (head.closed || !isEnded) return { head, stale: false };
        const rows = [entry(of.runId, 'terminal', { type: 'run.failed' })];
        await stores.log.append({ ...batchAfter(head, rows), closed: true, status: 'failed' });
        return { head: await headOf(stores, of.runId), stale: false };
      };
      await untilErased(stores, erasure, {
        engine: { send: away, terminate } as unknown as RunEngine,
        log: {
          head: (of: RunRef) => stores.log.head(of),
          fresh,
        } as unknown as ErasureKeeperDeps['log'],
      });
      const rows = await stores.log.read(run, { after: -1, limit: 10 });
      expect(rows.map(({ key, isErased }) => [key, isErased])).toEqual([['terminal', true]]);
    });

    it('a key that nobody opens holds up no erasure, and is told of once', async () => {
      await db.query(
        `INSERT INTO subject_keys (key_id, tenant_id, subject, state, wrapped, created_at_ms)
         VALUES ('sk', $1, 'lost', 'active', 'gone:AAAA', 1)`,
        [TENANT],
      );
      const erasure = await begun(stores, 'beside', true);
      const warned: unknown[] = [];
      const warn = (...told: unknown[]) => void warned.push(told);
      await untilErased(stores, erasure, { logger: { ...quietLogger, warn } });
      const fields = {
        keyId: 'sk',
        code: 'key_unavailable',
        reason: expect.any(String) as unknown,
      };
      expect(warned).toEqual([['a key is not wrapped again, trying again', fields]]);
    });
  });
});
