// Keys of subjects and what they seal, on both twins (architecture §10.1): states of a key, digests that nobody can try, and
// how long a process may hold a key that another one destroyed.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  openDatabase,
  openStores,
  storesOn,
  type DatabaseOptions,
} from '../../src/adapters/postgres/index.ts';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { migrate, readMigrations } from '../../src/adapters/postgres/migrate.ts';
import {
  createSubjectKeys,
  KEY_HELD_MS,
  placeOfKey,
  wrapped,
} from '../../src/adapters/postgres/subject-keys.ts';
import { createEncryption } from '../../src/adapters/temporal/codec.ts';
import { createSeals } from '../../src/adapters/postgres/seals.ts';
import { createSubjectStore } from '../../src/adapters/postgres/subject-store.ts';
import { throughDb } from '../../src/adapters/postgres/sealed-db.ts';
import { HostError } from '../../src/rules/errors.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import { sealingKey, seal, unseal, newSecret } from '../../src/system/sealing.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { ErasureRow } from '../../src/ports/subjects.ts';
import {
  batchAfter,
  entry,
  headOf,
  identityOf,
  newClaim,
  newId,
  newRun,
  refTo,
} from '../contract/given.ts';

import { databaseTwins, type DatabaseTwin } from '../support/database-twins.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { paced, patient } from '../support/machine.ts';
import { takes } from '../support/waiting.ts';
import { codeThrownBy } from '../support/code-thrown.ts';

const OLD = { id: 'old', key: new Uint8Array(randomBytes(32)) };
const NEW = { id: 'new', key: new Uint8Array(randomBytes(32)) };
const TENANT = 'default';
/** How long the deaf process holds a key, in ms. */
const HELD_MS = paced(500);
/** A process hears a moment later that a key is gone. */
const HEARD = { timeout: patient(4 * KEY_HELD_MS) };
const ASKED = { asked: { by: 'tester' }, cancelsOpen: false };

const DATABASES = await databaseTwins();
/** PostgreSQL where this machine has it: it opens in a tenth of the time. */
const [, cheapest] = DATABASES.at(-1) as DatabaseTwin;

/** A run of the subject that has ended, with one event. */
async function endedRun(stores: Stores, subject: string): Promise<string> {
  const subjectKey = await stores.subjects.keyFor(TENANT, { subject });
  const run = newRun(subjectKey === undefined ? {} : { subjectKey });
  await stores.runs.accept(run);
  await stores.runs.markStarted(refTo(run.runId), 'T1');
  const head = await headOf(stores, run.runId);
  await stores.log.append({
    ...batchAfter(head, [entry(run.runId, 'terminal')]),
    closed: true,
    status: 'completed',
  });
  return run.runId;
}

describe('what is sealed', () => {
  const key = sealingKey(newSecret());
  const bytes = new TextEncoder().encode('what Anna said');

  it('is the same bytes again, and opens in its place alone', () => {
    const sealed = seal(key, { place: 'a', bytes });
    expect(seal(key, { place: 'a', bytes })).toEqual(sealed);
    expect(unseal(key.rest, { place: 'a', bytes: sealed })).toEqual(bytes);
    expect(unseal(key.rest, { place: 'b', bytes: sealed })).toBeUndefined();
    expect(unseal(sealingKey(newSecret()).rest, { place: 'a', bytes: sealed })).toBeUndefined();
    for (const at of [0, 12, sealed.length - 1]) {
      const changed = sealed.map((byte, index) => (index === at ? byte ^ 1 : byte));
      expect(unseal(key.rest, { place: 'a', bytes: changed })).toBeUndefined();
    }
  });
});

describe.each(DATABASES)('subjects on %s', (_name, open) => {
  let stores: Stores;
  let database: DatabaseOptions;
  beforeAll(async () => {
    database = await open();
    stores = await openStores({ database, logger: quietLogger, masterKeys: [OLD] });
  });
  afterAll(() => stores.close());

  it('a subject has one key, however many ask at once; another has another', async () => {
    const keys = await Promise.all(
      Array.from({ length: 5 }, () => stores.subjects.keyFor(TENANT, { subject: 'one' })),
    );
    expect(new Set(keys).size).toBe(1);
    expect(await stores.subjects.keyFor(TENANT, { subject: 'two' })).not.toBe(keys[0]);
    expect(await stores.subjects.keyFor('other', { subject: 'one' })).not.toBe(keys[0]);
  });

  it('no run begins under a key that is being destroyed', async () => {
    const subjectKey = await stores.subjects.keyFor(TENANT, { subject: 'closing' });
    if (subjectKey === undefined) throw new Error('no key');
    expect(await stores.subjects.beginErasure(TENANT, 'closing', ASKED)).toMatchObject({
      kind: 'begun',
    });
    expect(await codeThrownBy(stores.subjects.keyFor(TENANT, { subject: 'closing' }))).toBe(
      'subject_erasing',
    );
    const run = newRun({ subjectKey });
    expect(await codeThrownBy(stores.runs.accept(run))).toBe('subject_erasing');
    expect(await codeThrownBy(stores.runs.accept(run, newClaim()))).toBe('subject_erasing');
    expect(await stores.runs.find(TENANT, run.runId)).toBeUndefined();
  });

  // [I87]
  it('a key is not destroyed while a run of it is open', async () => {
    const subjectKey = await stores.subjects.keyFor(TENANT, { subject: 'open' });
    const run = newRun(subjectKey === undefined ? {} : { subjectKey });
    await stores.runs.accept(run);
    expect(await stores.subjects.beginErasure(TENANT, 'open', ASKED)).toEqual({
      ...{ kind: 'open', runIds: [run.runId] },
    });
    const begun = await stores.subjects.beginErasure(TENANT, 'open', {
      ...ASKED,
      cancelsOpen: true,
    });
    if (begun.kind !== 'begun') throw new Error('not begun');
    expect(await stores.subjects.destroy(begun.erasure)).toBe(false);
    expect((await stores.runs.find(TENANT, run.runId))?.input).toEqual(run.input);
  });

  it('what was asked, and with which arguments, is kept under the key: nobody can try what it was', async () => {
    const subjectKey = await stores.subjects.keyFor(TENANT, { subject: 'digests' });
    if (subjectKey === undefined) throw new Error('no key');
    const claim = { ...newClaim(), subjectKey };
    const run = newRun({ subjectKey });
    const accepted = await stores.runs.accept(run, claim);
    if (accepted.kind !== 'claimed') throw new Error('not claimed');
    await stores.idempotency.complete(TENANT, claim, accepted.owner, {
      status: 201,
      body: { said: 'x' },
    });
    expect(await stores.runs.accept(newRun({ subjectKey }), claim)).toMatchObject({
      ...{ kind: 'replay', response: { body: { said: 'x' } } },
    });
    const argsHash = 'a'.repeat(64);
    const identity = identityOf(run.runId, { tenant: TENANT, visit: 0, argsHash });
    const options = { idempotent: true, leaseMs: 60_000 };
    expect(await stores.effects.claim(identity, 0, options)).toMatchObject({ kind: 'perform' });
    expect(await stores.effects.claim(identity, 0, options)).toMatchObject({ kind: 'busy' });
    const [effect] = await stores.effects.ofRun(refTo(run.runId));
    expect(effect?.identity.argsHash).not.toBe(argsHash);
    await stores.log.append({
      ...batchAfter(await headOf(stores, run.runId), [entry(run.runId, 'terminal')]),
      ...{ closed: true, status: 'completed' as const },
    });
    const begun = await stores.subjects.beginErasure(TENANT, 'digests', ASKED);
    if (begun.kind !== 'begun') throw new Error('not begun');
    expect(await stores.subjects.destroy(begun.erasure)).toBe(true);
    const erased = { kind: 'erased', runId: run.runId };
    await expect.poll(() => stores.idempotency.find(TENANT, claim), HEARD).toEqual(erased);
    // What was asked cannot be compared any more: what it was about can.
    const other = { ...claim, requestDigest: 'another' };
    expect(await stores.idempotency.claim(TENANT, other, 1_000)).toEqual(erased);
    const elsewhere = { ...claim, target: ['run-of-another'] };
    expect(await stores.idempotency.claim(TENANT, elsewhere, 1_000)).toEqual({ kind: 'mismatch' });
  });

  it('a claim that was left behind stays with what it is about when its subject is erased, and is answered then', async () => {
    const runId = await endedRun(stores, 'left');
    const subjectKey = (await stores.runs.find(TENANT, runId))?.subjectKey ?? '';
    const claim = { ...newClaim({ target: [runId] }), subjectKey };
    const first = await stores.idempotency.claim(TENANT, claim, 60_000);
    if (first.kind !== 'claimed') throw new Error(first.kind);
    await stores.idempotency.bind(TENANT, claim, first.owner, 'int-1');
    await stores.idempotency.release(TENANT, claim, first.owner);
    const begun = await stores.subjects.beginErasure(TENANT, 'left', ASKED);
    if (begun.kind !== 'begun') throw new Error(begun.kind);
    await stores.subjects.destroy(begun.erasure);
    await expect
      .poll(async () => (await stores.runs.find(TENANT, runId))?.erasedAtMs, HEARD)
      .toBeDefined();
    const elsewhere = { ...newClaim({ target: ['another'] }), key: claim.key };
    expect(await stores.idempotency.claim(TENANT, elsewhere, 1_000)).toEqual({ kind: 'mismatch' });
    const again = await stores.idempotency.claim(TENANT, claim, 60_000);
    if (again.kind !== 'claimed') throw new Error(again.kind);
    expect(again.boundTo).toBe('int-1');
    const response = { status: 409, body: { said: 'x' } };
    await stores.idempotency.complete(TENANT, claim, again.owner, response);
    expect(await stores.idempotency.claim(TENANT, claim, 60_000)).toEqual({ kind: 'erased' });
  });

  // [I113]
  it('a repeat is compared as the first request was kept, whatever subject it would have now', async () => {
    const subjectKey = (await stores.subjects.keyFor(TENANT, { subject: 'repeats' })) ?? '';
    const response = { status: 201, body: { said: 'x' } };
    for (const [first, later] of [
      [{}, { subjectKey }],
      [{ subjectKey }, {}],
    ]) {
      const claim = newClaim();
      const run = newRun(first);
      const accepted = await stores.runs.accept(run, { ...claim, ...first });
      if (accepted.kind !== 'claimed') throw new Error(accepted.kind);
      await stores.idempotency.complete(TENANT, { ...claim, ...first }, accepted.owner, response);
      const again = { ...claim, ...later };
      const replay = { kind: 'replay', response };
      expect(await stores.idempotency.find(TENANT, again)).toEqual(replay);
      expect(await stores.idempotency.claim(TENANT, again, 1_000)).toEqual(replay);
      expect(await stores.runs.accept(newRun(later), again)).toEqual(replay);
      const other = { ...again, requestDigest: 'another' };
      expect(await stores.idempotency.find(TENANT, other)).toEqual({ kind: 'mismatch' });
    }
  });

  // [I114]
  it('the row of a session decides whose data its runs hold: another subject, or none, comes too late', async () => {
    const keyFor: Stores['subjects']['keyFor'] = (...asked) => stores.subjects.keyFor(...asked);
    const [x, y] = [
      (await keyFor(TENANT, { subject: 'x' })) ?? '',
      (await keyFor(TENANT, { subject: 'y' })) ?? '',
    ];
    const sessionId = newId('session');
    const inSession = (subjectKey?: string, header = {}, more = {}) => {
      const run = newRun(subjectKey === undefined ? {} : { subjectKey });
      const of = { ...run.input.header, sessionId, ...header };
      return { ...run, input: { ...run.input, header: of, ...more } };
    };
    expect(await stores.runs.accept(inSession())).toMatchObject({ kind: 'claimed' });
    expect(await keyFor(TENANT, { sessionId })).toBeUndefined();
    expect(await stores.runs.accept(inSession(x))).toMatchObject({ kind: 'claimed' });
    expect(await keyFor(TENANT, { sessionId })).toBe(x);
    for (const late of [inSession(), inSession(y)])
      for (const claim of [undefined, newClaim()]) {
        expect(await stores.runs.accept(late, claim)).toEqual({ kind: 'session-changed' });
        expect(await stores.runs.find(TENANT, late.runId)).toBeUndefined();
        if (claim) expect(await stores.idempotency.find(TENANT, claim)).toBeUndefined();
      }
    expect(await stores.runs.accept(inSession(x), newClaim())).toMatchObject({ kind: 'claimed' });
    // What another run made has the subject of that one: none, of one that was there before.
    const child = inSession(undefined, { parentRunId: newId('run') });
    expect(await stores.runs.accept(child)).toMatchObject({ kind: 'claimed' });
  });

  it('of first runs of a session that are accepted at once one decides', async () => {
    const keyFor: Stores['subjects']['keyFor'] = (...asked) => stores.subjects.keyFor(...asked);
    for (let round = 0; round < 5; round++) {
      const sessionId = newId('session');
      const keys = await Promise.all(
        [`a${round}`, `b${round}`].map((subject) => keyFor(TENANT, { subject })),
      );
      const outcomes = await Promise.all(
        [...keys, ...keys].map(async (subjectKey = '') => {
          const run = newRun({ subjectKey });
          const header = { ...run.input.header, sessionId };
          const { kind } = await stores.runs.accept({ ...run, input: { ...run.input, header } });
          return { kind, subjectKey };
        }),
      );
      const accepted = outcomes.filter(({ kind }) => kind === 'claimed');
      expect(accepted).toHaveLength(2);
      expect(new Set(accepted.map(({ subjectKey }) => subjectKey)).size).toBe(1);
    }
  });

  it('content of the run opens while its key is there, and for nobody afterwards', async () => {
    const runId = await endedRun(stores, 'content');
    const bytes = new TextEncoder().encode('{"said":"x"}');
    const hash = await stores.content.put({ tenant: TENANT, runId }, bytes);
    expect(await stores.content.put({ tenant: TENANT }, bytes)).not.toBe(hash);
    expect(await stores.content.get(TENANT, hash)).toEqual(bytes);
    const begun = await stores.subjects.beginErasure(TENANT, 'content', ASKED);
    if (begun.kind !== 'begun') throw new Error('not begun');
    await stores.subjects.destroy(begun.erasure);
    await expect
      .poll(() => codeThrownBy(stores.content.get(TENANT, hash)), HEARD)
      .toBe('subject_erased');
    const [row] = await stores.log.read(refTo(runId), { after: -1, limit: 1 });
    expect(row).toMatchObject({ isErased: true });
    expect(await stores.log.head(refTo(runId))).toMatchObject({
      erasedAtMs: expect.any(Number) as number,
      closed: true,
    });
  });
});

describe('keys that are held', () => {
  // [I85]
  it(
    'without a word of it, a destroyed key opens nothing behind its time',
    { timeout: patient(180_000) },
    async () => {
      const { db, close } = await openDatabase(await cheapest(), quietLogger);
      await migrate(db, await readMigrations());
      // It hears nothing: what it would be told is lost.
      const deaf: Db = {
        ...throughDb(db),
        listen: async () => undefined,
        onReconnect: () => () => undefined,
      };
      const subjects = createSubjectStore(db, ringOf([OLD]));
      const keys = await createSubjectKeys(deaf, [OLD], HELD_MS);
      const keyId = (await subjects.keyFor(TENANT, { subject: newId('s') })) ?? '';
      const sealed = (await createSeals(keys).ofKey(keyId)).text('p', 'said');
      await db.query(
        "UPDATE subject_keys SET state = 'destroyed', wrapped = NULL, destroyed_at_ms = 1 WHERE key_id = $1",
        [keyId],
      );
      await takes(HELD_MS);
      const open = await createSeals(keys).opener([sealed]);
      expect(open('p', sealed)).toEqual({ text: '', erasedAtMs: 1 });
      await close();
    },
  );

  it('for five seconds by default, whichever clock shows it, and an erasure waits for one more', async () => {
    const key = wrapped(OLD, placeOfKey('k'), newSecret());
    let reads = 0;
    const db = {
      query: async (text: string) =>
        text.includes('FROM subject_keys')
          ? [{ key_id: 'k', wrapped: key, destroyed_at_ms: null, reads: ++reads }]
          : [],
      listen: async () => undefined,
      onReconnect: () => () => undefined,
    } as unknown as Db;
    const keys = await createSubjectKeys(db, [OLD]);
    const monotonic = vi.spyOn(performance, 'now');
    const wall = vi.spyOn(Date, 'now');
    try {
      // A machine that slept knows it by one of its clocks alone; setting a clock back makes no key fresh.
      for (const [monotonicMs, wallMs, readsThen] of [
        [0, 0, 1],
        [KEY_HELD_MS - 1, 0, 1],
        [KEY_HELD_MS, 0, 2],
        [KEY_HELD_MS, KEY_HELD_MS, 3],
        [KEY_HELD_MS, 0, 4],
        [KEY_HELD_MS, 1, 4],
      ] as const) {
        monotonic.mockReturnValue(monotonicMs);
        wall.mockReturnValue(wallMs);
        await keys.byId('k');
        expect(reads).toBe(readsThen);
      }
    } finally {
      monotonic.mockRestore();
      wall.mockRestore();
    }
    expect(KEY_HELD_MS).toBe(5_000);
    // Counted from when this process saw it destroyed, by its own clock.
    const subjects = createSubjectStore(db, ringOf([OLD]));
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
    try {
      const destroyed = { erasureId: 'e', destroyedAtMs: 0, isForgotten: false } as ErasureRow;
      expect(await subjects.forgottenInMs(destroyed)).toBe(6_000);
      clock.mockReturnValue(5_999);
      expect(await subjects.forgottenInMs(destroyed)).toBe(1);
      clock.mockReturnValue(6_000);
      expect(await subjects.forgottenInMs(destroyed)).toBe(0);
      const another = createSubjectStore(db, ringOf([OLD]));
      expect(await another.forgottenInMs({ ...destroyed, isForgotten: true })).toBe(0);
    } finally {
      clock.mockRestore();
    }
  });

  // [I85]
  it('who had a key before it waited for long opens nothing with it', async () => {
    const db = {
      query: async () => [
        { key_id: 'k', wrapped: wrapped(OLD, placeOfKey('k'), newSecret()), destroyed_at_ms: null },
      ],
      listen: async () => undefined,
      onReconnect: () => () => undefined,
    } as unknown as Db;
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
    try {
      const seals = createSeals(await createSubjectKeys(db, [OLD]));
      const seal = await seals.ofKey('k');
      const sealed = seal.text('p', '"said"');
      const open = await seals.opener([sealed]);
      clock.mockReturnValue(1.1 * KEY_HELD_MS - 1);
      expect([open('p', sealed), seal.open('p', sealed)]).toEqual([
        { text: '"said"' },
        { text: '"said"' },
      ]);
      // Sooner than an erasure gives its receipt.
      clock.mockReturnValue(1.1 * KEY_HELD_MS);
      for (const opens of [open, seal.open])
        expect(() => opens('p', sealed)).toThrow(
          expect.objectContaining({ code: 'service_unavailable' }),
        );
    } finally {
      clock.mockRestore();
    }
  });

  // [I85]
  it('several are asked for by one question, and what one answered late is asked again', async () => {
    const ids = Array.from({ length: 200 }, (_, at) => `k${at}`);
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0);
    let [questions, nowMs, destroyedAfter] = [0, 0, 1];
    const db = {
      query: async (_text: string, [asked]: [string[]]) => {
        const isDestroyed = questions++ >= destroyedAfter;
        const rows = asked.map((key_id) => ({
          key_id,
          wrapped: isDestroyed ? null : wrapped(OLD, placeOfKey(key_id), newSecret()),
          destroyed_at_ms: isDestroyed ? 1 : null,
        }));
        clock.mockReturnValue((nowMs += KEY_HELD_MS));
        return rows;
      },
      listen: async () => undefined,
      onReconnect: () => () => undefined,
    } as unknown as Db;
    try {
      const keys = await createSubjectKeys(db, [OLD]);
      // What the database said before they were destroyed comes too late to open with.
      const known = [...(await keys.byIds(ids)).values()];
      expect(known.filter((each) => 'kind' in each && each.kind === 'destroyed')).toEqual(known);
      expect([known.length, questions]).toEqual([ids.length, 2]);
      [questions, destroyedAfter] = [0, Infinity];
      expect(await codeThrownBy(keys.byIds(['slow']))).toBe('service_unavailable');
      expect(questions).toBe(3);
    } finally {
      clock.mockRestore();
    }
  });

  // [I101]
  it('of a run that is not there nothing is written by another key, or in the clear', async () => {
    const db = { query: async () => [], listen: async () => {}, onReconnect: () => {} };
    const keys = await createSubjectKeys(db as unknown as Db, [OLD]);
    const gone = randomBytes(8).toString('hex');
    await expect(keys.ofRun(gone)).rejects.toMatchObject({ code: 'run_not_found' });
    const codec = createEncryption({ ring: ringOf([OLD]), subjects: keys });
    const given = [{ metadata: {}, data: new Uint8Array([1]) }];
    const of = (workflowId: string) =>
      codec.encode(given, { type: 'workflow', namespace: 'n', workflowId });
    await expect(of(gone)).rejects.toMatchObject({ code: 'run_not_found' });
    // What is no run's is the host's.
    expect(await of(`cohort-${'0'.repeat(27)}`)).toHaveLength(1);
  });

  it('to seal with a key that was met asks nobody; to open with it does, after a word may have been missed', async () => {
    const key = wrapped(OLD, placeOfKey('k'), newSecret());
    const alive = { key_id: 'k', wrapped: key, destroyed_at_ms: null };
    const destroyed = { key_id: 'k', wrapped: null, destroyed_at_ms: 1 };
    let row: object | undefined = alive;
    let [reconnect, heard]: [() => void, (keyId: string) => void] = [() => {}, () => {}];
    const db = {
      query: async () => {
        if (!row) throw new HostError('service_unavailable');
        return [row];
      },
      listen: async (_channel: string, callback: (keyId: string) => void) =>
        void (heard = callback),
      onReconnect: (callback: () => void) => void (reconnect = callback),
    } as unknown as Db;
    const keys = await createSubjectKeys(db, [OLD]);
    await keys.byId('k');
    row = undefined;
    expect(await keys.byId('k')).toMatchObject({ kind: 'alive' });
    reconnect();
    expect(await keys.toSeal('k')).toMatchObject({ kind: 'alive' });
    expect(await codeThrownBy(keys.byId('k'))).toBe('service_unavailable');
    // What it missed while it was not connected it asks for when it is again: it holds nothing of that key then.
    row = destroyed;
    reconnect();
    await expect.poll(() => keys.toSeal('k')).toMatchObject({ kind: 'destroyed' });
    expect(await keys.byId('k')).toMatchObject({ kind: 'destroyed' });
    // One that heard of it holds nothing of the key.
    row = alive;
    const other = await createSubjectKeys(db, [OLD]);
    await other.byId('k');
    row = undefined;
    heard('k');
    expect(await codeThrownBy(other.toSeal('k'))).toBe('service_unavailable');
  });

  it('keys are wrapped anew by the first of the operator’s, and go on without the one before', async () => {
    const { db, close } = await openDatabase(await cheapest(), quietLogger);
    await migrate(db, await readMigrations());
    const subject = newId('s');
    const keyId = (await createSubjectStore(db, ringOf([OLD])).keyFor(TENANT, { subject })) ?? '';
    expect(await codeThrownBy((await createSubjectKeys(db, [NEW])).byId(keyId))).toBe(
      'key_unavailable',
    );
    expect((await createSubjectStore(db, ringOf([NEW, OLD])).rewrap(10)).count).toBeGreaterThan(0);
    expect(await createSubjectStore(db, ringOf([NEW])).keyFor(TENANT, { subject })).toBe(keyId);
    expect(await (await createSubjectKeys(db, [NEW])).byId(keyId)).toMatchObject({ kind: 'alive' });
    expect((await createSubjectStore(db, ringOf([NEW])).rewrap(10)).count).toBe(0);
    await close();
  });

  it('also where the ids of both are alike, and where one that nobody opens comes first', async () => {
    const { db, close } = await openDatabase(await cheapest(), quietLogger);
    await migrate(db, await readMigrations());
    const [before, after] = [
      { ...OLD, id: 'keyx1' },
      { ...NEW, id: 'key_1' },
    ];
    const keyId =
      (await createSubjectStore(db, ringOf([before])).keyFor(TENANT, { subject: 's' })) ?? '';
    await db.query(
      `INSERT INTO subject_keys (key_id, tenant_id, subject, state, wrapped, created_at_ms)
       VALUES ('sk', $1, 'lost', 'active', 'gone:AAAA', 1)`,
      [TENANT],
    );
    const rewrapping = createSubjectStore(db, ringOf([after, before]));
    expect(await rewrapping.rewrap(1)).toMatchObject({
      ...{
        count: expect.any(Number) as unknown,
        failed: [{ keyId: 'sk', error: { code: 'key_unavailable' } }],
      },
    });
    expect(await rewrapping.rewrap(1)).toEqual({ count: 1, failed: [] });
    expect(await (await createSubjectKeys(db, [after])).byId(keyId)).toMatchObject({
      kind: 'alive',
    });
    expect(await createSubjectStore(db, ringOf([after])).keyFor(TENANT, { subject: 's' })).toBe(
      keyId,
    );
    await close();
  });

  it('without the operator’s keys no run begins unsealed in a session that is somebody’s', async () => {
    const database = await cheapest();
    const { db, close } = await openDatabase(database, quietLogger);
    const options = { database, logger: quietLogger };
    const stores = await storesOn({ db, close }, { ...options, masterKeys: [OLD] });
    const subjectKey = await stores.subjects.keyFor(TENANT, { subject: 's' });
    const run = newRun(subjectKey === undefined ? {} : { subjectKey });
    await stores.runs.accept(run);
    const { sessionId } = run.input.header;
    const without = createSubjectStore(db, ringOf([]));
    expect(await codeThrownBy(without.keyFor(TENANT, { sessionId }))).toBe(
      'capability_not_provided',
    );
    expect(await without.keyFor(TENANT, { sessionId: newId('session') })).toBeUndefined();
    await stores.close();
  });
});
