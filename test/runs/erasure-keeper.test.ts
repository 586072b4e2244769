// Erasures that were left under way (architecture §10.1), on both twins: each has its turn whatever others wait for, and no
// receipt is given while what a key was lies in the table's file.
import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openDatabase, storesOn } from '../../src/adapters/postgres/index.ts';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { createSubjectStore } from '../../src/adapters/postgres/subject-store.ts';
import { createErasureKeeper, type ErasureKeeperDeps } from '../../src/runs/erasure-keeper.ts';
import { HostError } from '../../src/rules/errors.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Logger } from '../../src/ports/logger.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { ErasureRow } from '../../src/ports/subjects.ts';
import { batchAfter, entry, headOf, newRun, refTo } from '../contract/given.ts';
import { databaseTwins } from '../support/database-twins.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { patient } from '../support/machine.ts';

const TENANT = 'default';
const ASKED = { asked: { by: 'tester' }, cancelsOpen: true };
/** How long a process holds a key, and the time between two rounds, in ms. */
const KEY_HELD_MS = 100;
const ROUND_MS = 200;
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
  { logger = quietLogger, roundMs }: Pick<Partial<ErasureKeeperDeps>, 'logger' | 'roundMs'>,
  asks: (runId: string) => void = () => {},
): ReturnType<typeof createErasureKeeper> {
  const head = ({ runId }: RunRef) => (asks(runId), away());
  const deps = {
    ...{ stores, logger, roundMs, redactor: { text: (text: string) => text } },
    ...{ engine: { send: away }, log: { head, fresh: away } },
  };
  return createErasureKeeper(deps as unknown as ErasureKeeperDeps);
}

async function untilErased(
  stores: Stores,
  { erasureId }: ErasureRow,
  logger: Logger = quietLogger,
): Promise<void> {
  const keeper = keeperOn(stores, { logger, roundMs: ROUND_MS });
  keeper.start();
  const state = async () => (await stores.subjects.erasure(TENANT, erasureId))?.state;
  try {
    await expect.poll(state, { timeout: patient(60_000), interval: 200 }).toBe('erased');
  } finally {
    await keeper.stop();
  }
}

describe.each(DATABASES)('erasures under way on %s', (_name, databaseOptions) => {
  async function opened(): Promise<{ db: Db; stores: Stores }> {
    const options = await databaseOptions();
    const { db, close } = await openDatabase(options, quietLogger);
    const given = { database: options, logger: quietLogger, masterKeys: [KEY] };
    const held = { keyHeldMs: KEY_HELD_MS };
    return { db, stores: await storesOn({ db, close }, { ...given, ...held }) };
  }

  it('one is done behind any number of others whose runs do not end', async () => {
    const { stores } = await opened();
    const open: ErasureRow[] = [];
    for (let at = 0; at < 12; at++) open.push(await begun(stores, `open-${at}`, false));
    const ended = await begun(stores, 'ended', true);
    const logged: unknown[] = [];
    const logger = { ...quietLogger, warn: (...told: unknown[]) => void logged.push(told) };
    await untilErased(stores, ended, logger);
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

  it('a key that nobody opens holds up no erasure, and is told of once', async () => {
    const { db, stores } = await opened();
    await db.query(
      `INSERT INTO subject_keys (key_id, tenant_id, subject, state, wrapped, created_at_ms)
       VALUES ('sk', $1, 'lost', 'active', 'gone:AAAA', 1)`,
      [TENANT],
    );
    const erasure = await begun(stores, 'beside', true);
    const warned: string[] = [];
    await untilErased(stores, erasure, {
      ...quietLogger,
      warn: (message) => void warned.push(message),
    });
    expect(warned).toEqual(['wrapping keys of subjects again did not go on, trying again']);
    await stores.close();
  });
});
