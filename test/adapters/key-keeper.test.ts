// Processes of one database and the operator's keys, on both twins (architecture §10.2): what each announces, and which key it
// encrypts with while another one is rotated in.
import { randomBytes } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { openDatabase } from '../../src/adapters/postgres/index.ts';
import {
  ANNOUNCED_MS,
  startKeyKeeper,
  type KeyKeeper,
  type KeyKeeperOptions,
} from '../../src/adapters/postgres/key-keeper.ts';
import { migrate, readMigrations } from '../../src/adapters/postgres/migrate.ts';
import { createSubjectStore } from '../../src/adapters/postgres/subject-store.ts';
import { throughDb } from '../../src/adapters/postgres/sealed-db.ts';
import { codeOf, HostError } from '../../src/rules/errors.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import { newId } from '../contract/given.ts';
import { databaseTwins } from '../support/database-twins.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { paced, patient } from '../support/machine.ts';
import { quietFor } from '../support/waiting.ts';

const [OLD, NEW, OTHER] = ['old', 'new', 'other'].map((id) => ({
  id,
  key: new Uint8Array(randomBytes(32)),
})) as [Key, Key, Key];
interface Key {
  readonly id: string;
  readonly key: Uint8Array;
}
const SHORT_MS = paced(300);
const SOON = { timeout: patient(20_000) };

describe.each(await databaseTwins())('processes with keys on %s', (_name, database) => {
  let db: Db;
  let close: () => Promise<void>;
  const started: KeyKeeper[] = [];
  let count = 0;

  beforeAll(async () => {
    ({ db, close } = await openDatabase(await database(), quietLogger));
    await migrate(db, await readMigrations());
  });
  afterAll(() => close());
  beforeEach(() => db.query('DELETE FROM encryption_keys'));
  afterEach(async () => {
    await Promise.all(started.splice(0).map((keeper) => keeper.stop()));
  });

  async function process(
    keys: readonly Key[],
    more: Partial<KeyKeeperOptions> & { readonly at?: Db } = {},
  ): Promise<KeyKeeper> {
    const { at = db, announcedMs = SHORT_MS, isAlone = false, logger = quietLogger } = more;
    const holder = `p${count++}`;
    const options = { keys, holder, isAlone, logger, announcedMs };
    const keeper = await startKeyKeeper(at, options);
    started.push(keeper);
    return keeper;
  }
  const usedBy = (keeper: KeyKeeper) => keeper.current()?.id;
  async function refusal(start: Promise<unknown>): Promise<string> {
    return start.then(
      () => 'started',
      (error: unknown) => `${codeOf(error)}: ${(error as Error).message}`,
    );
  }

  it('the first key of the first process is used at once', async () => {
    expect(usedBy(await process([]))).toBeUndefined();
    expect(usedBy(await process([OLD, NEW], { announcedMs: ANNOUNCED_MS }))).toBe('old');
  });

  // [I100]
  it('a new first key waits until every process knows it, and is shared when each uses it', async () => {
    const before = await process([OLD]);
    const rotated = await process([NEW, OLD]);
    expect(usedBy(rotated)).toBe('old');
    // Shared: every live process has had the time to say what it knows.
    await expect.poll(() => rotated.isShared(), SOON).toBe(true);
    expect(usedBy(rotated)).toBe('old');
    await before.stop();
    const known = await process([OLD, NEW]);
    await expect.poll(() => usedBy(rotated), SOON).toBe('new');
    await expect.poll(() => rotated.isShared(), SOON).toBe(false);
    await known.stop();
    const last = await process([NEW, OLD]);
    expect(usedBy(last)).toBe('new');
    await expect.poll(() => rotated.isShared() && last.isShared(), SOON).toBe(true);
    expect(last.missing()).toEqual([]);
  });

  // [I100]
  it.each([
    ['the monotonic clock', performance],
    ['the wall clock', Date],
  ] as const)('one that slept, as %s shows, looks again before it encrypts', async (_clock, of) => {
    const slept = await process([OLD, NEW], { announcedMs: ANNOUNCED_MS });
    expect(usedBy(slept)).toBe('old');
    // It was taken for dead, and the old key was dropped by the others.
    await db.query('DELETE FROM process_keys');
    expect(usedBy(await process([NEW], { announcedMs: ANNOUNCED_MS }))).toBe('new');
    await slept.announced();
    expect(usedBy(slept)).toBe('old');
    const now = of.now.bind(of);
    const clock = vi.spyOn(of, 'now').mockImplementation(() => now() + ANNOUNCED_MS);
    try {
      await slept.announced();
    } finally {
      clock.mockRestore();
    }
    expect(usedBy(slept)).toBe('new');
  });

  it('one whose database does not answer encrypts with the key that it has', async () => {
    let asked = 0;
    let isAway = false;
    const away: Db = {
      ...throughDb(db),
      query: (text, values) => {
        if (!isAway) return db.query(text, values);
        asked += 1;
        return Promise.reject(new HostError('service_unavailable'));
      },
    };
    const alone = await process([OLD], { announcedMs: ANNOUNCED_MS, at: away });
    isAway = true;
    const { now } = Date;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + ANNOUNCED_MS);
    try {
      await alone.announced();
      await alone.announced();
    } finally {
      clock.mockRestore();
    }
    expect(usedBy(alone)).toBe('old');
    // Twice, since the first statement after a sleep may meet a dead connection; and not again for a while.
    expect(asked).toBe(2);
  });

  // [I100]
  it('one that slept looks again where the first statement after that fails, and where a look was under way', async () => {
    let under = Promise.resolve();
    let failures = 0;
    const waking: Db = {
      ...throughDb(db),
      async query(text, values) {
        const found = await db.query(text, values);
        await under;
        if (failures-- > 0) throw new HostError('service_unavailable');
        return found as never;
      },
    };
    const slept = await process([OLD, NEW], { announcedMs: ANNOUNCED_MS, at: waking });
    await db.query('DELETE FROM process_keys');
    await process([NEW], { announcedMs: ANNOUNCED_MS });
    let wake = (): void => undefined;
    under = new Promise((resolve) => (wake = resolve));
    const { now } = Date;
    let sleptMs = ANNOUNCED_MS;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() + sleptMs);
    try {
      failures = 1;
      const looking = slept.announced();
      sleptMs = 3 * ANNOUNCED_MS;
      wake();
      await looking;
    } finally {
      clock.mockRestore();
    }
    expect(usedBy(slept)).toBe('new');
  });

  it('a process that says nothing for too long is taken for dead', async () => {
    const announcedMs = 10 * SHORT_MS;
    let isDead = false;
    const mortal: Db = {
      ...throughDb(db),
      query: (text, values) =>
        isDead ? Promise.reject(new Error('dead')) : db.query(text, values),
    };
    await process([OLD], { announcedMs, at: mortal });
    const rotated = await process([NEW, OLD], { announcedMs });
    isDead = true;
    expect(usedBy(rotated)).toBe('old');
    await expect.poll(() => usedBy(rotated), SOON).toBe('new');
  });

  // [I100]
  it('one that starts without a key that others encrypt with is refused, and stands nowhere', async () => {
    await process([NEW]);
    for (const keys of [[OLD], []])
      expect(await refusal(process(keys))).toMatch(
        /^config_invalid: OPENWOP_ENCRYPTION_KEYS: It lacks the key "new"/,
      );
    const rows = await db.query<{ knows: string }>('SELECT knows FROM process_keys');
    expect(rows).toEqual([{ knows: expect.stringMatching(/^new=[0-9a-f]{16}$/) as string }]);
  });

  // [I100]
  it('two that use a new key go back to the old one while a third, that is there again, lacks it', async () => {
    await (await process([NEW])).stop();
    const third = await process([OLD]);
    const both = [await process([NEW, OLD]), await process([NEW, OLD])];
    expect(both.map(usedBy)).toEqual(['old', 'old']);
    // As behind an outage in which all were silent for too long, and the third is the last to speak again.
    await third.stop();
    await expect.poll(() => both.map(usedBy), SOON).toEqual(['new', 'new']);
    await db.query(
      `INSERT INTO process_keys (holder, knows, uses, since_ms, expires_at_ms)
       SELECT 'third', 'old=' || fingerprint, 'old=' || fingerprint, 1, openwop_now_ms() + 1000000
       FROM encryption_keys WHERE key_id = 'old'`,
    );
    await expect.poll(() => both.map(usedBy), SOON).toEqual(['old', 'old']);
    await db.query("DELETE FROM process_keys WHERE holder = 'third'");
  });

  it('one that comes to lack a key says so, and goes on', async () => {
    const before = await process([OLD]);
    // As one that could not announce itself in time looks to it, and it to them.
    await db.query(
      `INSERT INTO process_keys (holder, knows, uses, since_ms, expires_at_ms)
       VALUES ('late', 'new', 'new', 1, openwop_now_ms() + 1000000)`,
    );
    await expect.poll(() => before.missing(), SOON).toEqual(['new']);
    expect(usedBy(before)).toBe('old');
    await db.query("DELETE FROM process_keys WHERE holder = 'late'");
    await expect.poll(() => before.missing(), SOON).toEqual([]);
  });

  it('a key with the id of another one is refused, used before or at once', async () => {
    await (await process([OLD])).stop();
    const reason = /^config_invalid: OPENWOP_ENCRYPTION_KEYS: The key "old" is another one/;
    expect(await refusal(process([{ ...NEW, id: 'old' }]))).toMatch(reason);
    expect(await refusal(process([NEW, { ...NEW, id: 'old' }]))).toMatch(reason);
    expect(await refusal(process([NEW, OLD]))).toBe('started');
  });

  it('a key with the id of another process’s is refused, and is not taken for that one', async () => {
    await process([OLD, { ...NEW, key: OTHER.key }]);
    expect(await refusal(process([NEW, OLD]))).toMatch(/Another process has another key "new"/);
    // As one that announced itself at the same time.
    await db.query(
      `INSERT INTO process_keys (holder, knows, uses, since_ms, expires_at_ms)
       SELECT 'same', replace(knows, 'new=', 'new=0'), uses, 1, openwop_now_ms() + 1000000 FROM process_keys`,
    );
    const [first] = started;
    await quietFor(SHORT_MS);
    expect([first && usedBy(first), first?.missing()]).toEqual(['old', []]);
    await db.query("UPDATE process_keys SET uses = 'new=0' WHERE holder = 'same'");
    await expect.poll(() => first?.missing(), SOON).toEqual(['new']);
    await db.query("DELETE FROM process_keys WHERE holder = 'same'");
  });

  it('one that is refused again and again turns nothing back', async () => {
    await (await process([OLD])).stop();
    const rotated = await process([NEW, OLD]);
    await expect.poll(() => usedBy(rotated), SOON).toBe('new');
    const until = performance.now() + 3 * SHORT_MS;
    while (performance.now() < until) {
      expect(await refusal(process([OLD]))).toContain('It lacks the key "new"');
      expect(usedBy(rotated)).toBe('new');
    }
  });

  // [I100]
  it('one that slept wraps nothing again by what it knew before', async () => {
    const byNew = createSubjectStore(db, ringOf([NEW, OLD]));
    const keyId = (await byNew.keyFor('default', { subject: newId('s') })) ?? '';
    const slept = createSubjectStore(db, { ...ringOf([OLD, NEW]), announcedAs: () => 'old=1' });
    const wrapper = async () => {
      const { count } = await slept.rewrap(100);
      const [row] = await db.query<{ wrapped: string }>(
        'SELECT wrapped FROM subject_keys WHERE key_id = $1',
        [keyId],
      );
      return [row?.wrapped.split(':')[0], count];
    };
    const announce = (holder: string, uses: string) =>
      db.query(
        `INSERT INTO process_keys (holder, knows, uses, since_ms, expires_at_ms)
         VALUES ($1, $2, $2, 1, openwop_now_ms() + 1000000)`,
        [holder, uses],
      );
    expect(await wrapper()).toEqual(['new', 0]);
    await announce('slept', 'old=1');
    await announce('other', 'new=1');
    expect(await wrapper()).toEqual(['new', 0]);
    await db.query("DELETE FROM process_keys WHERE holder = 'other'");
    expect(await wrapper()).toEqual(['old', expect.any(Number)]);
    await db.query("DELETE FROM process_keys WHERE holder = 'slept'");
  });

  it('one that starts without a key that was used before says so', async () => {
    await (await process([OLD])).stop();
    const said: unknown[] = [];
    const logger = { ...quietLogger, warn: (_: string, fields?: object) => void said.push(fields) };
    await process([NEW], { logger });
    await process([NEW, OLD], { logger });
    expect(said).toEqual([{ keys: ['old'] }]);
  });

  it('where no other process can be, nobody is waited for', async () => {
    await process([OTHER], { announcedMs: ANNOUNCED_MS });
    const alone = await process([NEW, OLD], { announcedMs: ANNOUNCED_MS, isAlone: true });
    expect([usedBy(alone), alone.isShared(), alone.missing()]).toEqual(['new', true, []]);
  });

  // [I100]
  it('keys of subjects are wrapped again when all processes encrypt with the new key, and not before', async () => {
    const before = await process([OLD, NEW]);
    await createSubjectStore(db, before).keyFor('default', { subject: 'anna' });
    const rotated = await process([NEW, OLD]);
    await expect.poll(() => usedBy(rotated), SOON).toBe('new');
    await quietFor(SHORT_MS);
    const early = createSubjectStore(db, { ...ringOf([NEW, OLD]), isShared: () => false });
    expect((await early.rewrap(10)).count).toBe(0);
    const subjects = createSubjectStore(db, rotated);
    expect((await subjects.rewrap(10)).count).toBe(0);
    await before.stop();
    await process([NEW, OLD]);
    await expect.poll(() => rotated.isShared(), SOON).toBe(true);
    expect((await subjects.rewrap(10)).count).toBeGreaterThan(0);
    expect((await subjects.rewrap(10)).count).toBe(0);
  });

  it('a process that stops is announced no more', async () => {
    await (await process([OLD])).stop();
    expect(await db.query('SELECT holder FROM process_keys')).toEqual([]);
  });
});
