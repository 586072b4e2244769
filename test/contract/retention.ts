// What every RetentionStore does (architecture §3.7), with the stores beside it: which runs expire, that nothing of them is
// left, and that nothing else goes.
import { beforeEach, describe, expect, it } from 'vitest';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { FEW_ROWS } from '../../src/adapters/postgres/retention-clean.ts';
import { FOUND_BY } from '../../src/adapters/postgres/retention-expire.ts';
import { codeOf } from '../../src/rules/errors.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import {
  NO_WAITS,
  appendRows,
  batchAfter,
  entry,
  headOf,
  newId,
  newRun,
  refTo,
  startedRun,
  identityOf,
} from './given.ts';
import type { GivenStores } from './given.ts';

/** Looks behind the stores, at the same database. */
export type Behind = Pick<Db, 'query'>;

const NOW = { keptMs: 0, restMs: 0 };
const DAY_MS = 24 * 3_600_000;

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

interface MemberOptions {
  readonly parent?: RunRef;
  readonly open?: boolean;
  readonly session?: string;
  readonly tags?: readonly string[];
}

/** A root, and a child of it where `parent` is given; ended unless `open`. */
export async function member(
  stores: Stores,
  { parent, open = false, session, tags }: MemberOptions = {},
): Promise<RunRef> {
  const run = newRun();
  const { runId, tenant } = run;
  const header = {
    ...run.input.header,
    ...(session === undefined ? {} : { sessionId: session }),
    ...(parent ? { parentRunId: parent.runId, correlationId: parent.runId } : {}),
  };
  const whole = { ...run, input: { ...run.input, header, ...(tags ? { tags } : {}) } };
  if (parent) await stores.families.acceptChild(whole, 100);
  else await stores.runs.accept(whole);
  const ref = stores.runs.ref(tenant, runId);
  await stores.runs.markStarted(ref, 'T1');
  await stores.segments.record(ref, { index: 0, temporalRunId: `${runId}-t1` });
  await appendRows(stores, runId, ['one', 'two', 'three']);
  if (!open) await end(stores, ref);
  return ref;
}

export async function end(stores: Stores, { runId }: RunRef): Promise<void> {
  const rows = [entry(runId, 'terminal', { type: 'run.completed' })];
  const batch = batchAfter(await headOf(stores, runId), rows, {
    status: 'completed',
    closed: true,
  });
  await stores.log.append(batch);
}

export async function cleanAll(stores: Stores, run: RunRef): Promise<void> {
  while (!(await stores.retention.clean(run, 2)));
  await stores.retention.markClean(run);
  while ((await stores.content.sweep(1)) > 0);
}

/** By expiry itself, by what cleans, or with what a run needs. */
const EMPTIED: ReadonlySet<string> = new Set([
  ...FOUND_BY,
  ...FEW_ROWS,
  ...[
    'session_runs',
    'session_tags',
    'run_events',
    'run_feed',
    'idempotency_records',
    'content_refs',
  ],
]);

/** But for what is left to be said of a run. */
async function tablesOfRuns(behind: Behind): Promise<string[]> {
  const tables = await behind.query<{ name: string }>(
    `SELECT c.table_name AS name FROM information_schema.columns c
     JOIN information_schema.tables t USING (table_schema, table_name)
     WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' AND c.column_name = 'run_id'
       AND c.table_name <> 'expired_runs' ORDER BY 1`,
  );
  return tables.map(({ name }) => name);
}

/** Every table that names a run, but for what is left to be said of it: a new one is looked at, too. */
export async function tablesWith(behind: Behind, { runId }: RunRef): Promise<string[]> {
  const found: string[] = [];
  for (const name of await tablesOfRuns(behind)) {
    const rows = await behind.query(`SELECT 1 FROM ${name} WHERE run_id = $1 LIMIT 1`, [runId]);
    if (rows.length > 0) found.push(name);
  }
  return found;
}

export async function isThere(stores: Stores, hash: string): Promise<boolean> {
  try {
    await stores.content.get('default', hash);
    return true;
  } catch (error) {
    if (codeOf(error) !== 'content_missing') throw error;
    return false;
  }
}

export function retentionContract(given: GivenStores, behind: () => Behind): void {
  let stores: Stores;
  const expire = (run: RunRef, query = NOW) => stores.retention.expire(run, query);

  describe('RetentionStore: which runs expire (architecture §3.7)', () => {
    beforeEach(() => {
      stores = given();
    });

    it('one that has ended long enough ago, and no other', async () => {
      const [ended, open] = [await member(stores), await member(stores, { open: true })];
      expect(await expire(ended, { keptMs: DAY_MS, restMs: 0 })).toEqual({
        kind: 'kept',
        why: 'young',
      });
      expect(await expire(open)).toEqual({ kind: 'kept', why: 'open' });
      await behind().query(
        'UPDATE ended_runs SET ended_at_ms = ended_at_ms - $2 WHERE run_id = $1',
        [ended.runId, DAY_MS + 60_000],
      );
      expect(await expire(ended, { keptMs: DAY_MS, restMs: 0 })).toEqual({
        kind: 'expired',
        runs: [ended],
      });
      expect(await expire(ended)).toEqual({ kind: 'none' });
      expect(await stores.runs.find('default', open.runId)).toBeDefined();
    });

    it('time counts from the end of the log, not from a rebuild of it', async () => {
      const run = await member(stores);
      const endedAt = () =>
        behind().query('SELECT ended_at_ms FROM ended_runs WHERE run_id = $1', [run.runId]);
      await behind().query('UPDATE ended_runs SET ended_at_ms = 7 WHERE run_id = $1', [run.runId]);
      const head = await headOf(stores, run.runId);
      const rows = await stores.log.read(run, { after: -1, limit: 10 });
      await behind().query('DELETE FROM run_heads WHERE run_id = $1', [run.runId]);
      expect(await stores.log.restore(run, { summary: NO_WAITS, head, rows }, undefined)).toBe(
        true,
      );
      expect(await endedAt()).toEqual([{ ended_at_ms: 7 }]);
    });

    it('a family as a whole, when its last run has ended', async () => {
      // [I69]
      const root = await member(stores, { open: true });
      const [first, second] = [
        await member(stores, { parent: root }),
        await member(stores, { parent: root, open: true }),
      ];
      for (const run of [root, first, second])
        expect(await expire(run)).toEqual({ kind: 'kept', why: 'open' });
      await end(stores, second);
      expect(await expire(first)).toEqual({ kind: 'kept', why: 'open' });
      await end(stores, root);
      await behind().query('UPDATE ended_runs SET ended_at_ms = 1 WHERE run_id = $1', [
        first.runId,
      ]);
      const young = { keptMs: DAY_MS, restMs: 0 };
      expect(await expire(first, young)).toEqual({ kind: 'kept', why: 'young' });
      const outcome = await expire(first);
      const runIds = outcome.kind === 'expired' ? outcome.runs.map(({ runId }) => runId) : [];
      expect([...runIds].sort()).toEqual([root, first, second].map(({ runId }) => runId).sort());
      expect(await stores.families.descendants('default', root.runId, 10)).toEqual([]);
    });

    it('none whose head is being rebuilt', async () => {
      const run = await member(stores);
      await behind().query('DELETE FROM run_heads WHERE run_id = $1', [run.runId]);
      expect(await expire(run)).toEqual({ kind: 'kept', why: 'open' });
    });

    it('none that is held, or a relative of it, until it is released; the first word stays', async () => {
      const root = await member(stores, { open: true });
      const child = await member(stores, { parent: root });
      await end(stores, root);
      expect(await stores.retention.hold(child, 'Case 1')).toBe(true);
      expect(await stores.retention.hold(child, 'Case 2')).toBe(true);
      expect(await stores.retention.holdOf(child)).toMatchObject({ reason: 'Case 1' });
      expect(await expire(root)).toEqual({ kind: 'kept', why: 'held' });
      await stores.retention.release(child);
      expect(await stores.retention.holdOf(child)).toBeUndefined();
      expect((await expire(root)).kind).toBe('expired');
      expect(await stores.retention.hold(root, 'late')).toBe(false);
    });

    it('none whose fork has not ended, nor for a while one whose fork is not accepted yet', async () => {
      // [I70]
      const source = await member(stores);
      const fork = newRun();
      expect(await stores.retention.noteFork(source, fork.runId)).toBe(true);
      expect(await expire(source)).toEqual({ kind: 'kept', why: 'forked' });
      await startedFork(stores, fork.runId);
      expect(await expire(source)).toEqual({ kind: 'kept', why: 'forked' });
      await end(stores, refTo(fork.runId));
      expect((await expire(source)).kind).toBe('expired');
      expect(await stores.retention.noteFork(source, newId('run'))).toBe(false);
    });

    it('a fork that was never accepted stands in the way no longer than an hour, and leaves nothing', async () => {
      const source = await member(stores);
      const hash = await stores.content.put(source, bytesOf(newId('value')));
      const runId = newId('run');
      const between = await member(stores);
      await stores.retention.noteFork(source, runId, [between]);
      await behind().query('UPDATE run_forks SET noted_at_ms = 0 WHERE run_id = $1', [runId]);
      expect((await expire(source)).kind).toBe('expired');
      await cleanAll(stores, source);
      expect(await isThere(stores, hash)).toBe(true);
      await stores.retention.forget(DAY_MS, 100);
      while ((await stores.content.sweep(10)) > 0);
      expect(await isThere(stores, hash)).toBe(false);
      expect(await tablesWith(behind(), stores.runs.ref('default', runId))).toEqual([]);
    });

    it('each to one process at a time, again when its claim is over, later when it stays', async () => {
      const runs = [await member(stores), await member(stores)];
      await behind().query(
        'UPDATE ended_runs SET ended_at_ms = 1 WHERE run_id = ANY(ARRAY[$1, $2])',
        runs.map(({ runId }) => runId),
      );
      const own = (found: readonly RunRef[]) =>
        found
          .filter(({ runId }) => runs.some((run) => run.runId === runId))
          .map(({ runId }) => runId);
      const due = (leaseMs: number) => stores.retention.due(DAY_MS, 1_000, leaseMs);
      const [one, two] = await Promise.all([due(60_000), due(60_000)]);
      expect([...own(one), ...own(two)].sort()).toEqual(runs.map(({ runId }) => runId).sort());
      expect(own(await due(0))).toEqual([]);
      for (const run of runs) await stores.retention.lookAgain(run, -1);
      expect(own(await due(60_000)).length).toBe(2);
      expect(own(await stores.retention.due(Date.now() * 2, 1_000, 0))).toEqual([]);
    });

    it('of two processes at once one expires a family', async () => {
      const root = await member(stores, { open: true });
      const child = await member(stores, { parent: root });
      await end(stores, root);
      const kinds = (await Promise.all([expire(root), expire(child)])).map(({ kind }) => kind);
      expect(kinds.sort()).toEqual(['expired', 'none']);
    });
  });

  describe('RetentionStore: what is left (architecture §3.7)', () => {
    beforeEach(() => {
      stores = given();
    });

    it('in no table: one that names a run is among those that are emptied, a new one too', async () => {
      const tables = (await tablesOfRuns(behind())).filter((name) => !EMPTIED.has(name));
      expect(tables).toEqual([]);
    });

    it('an entry that says when, to its tenant alone', async () => {
      const run = await member(stores);
      const before = Date.now() - 60_000;
      await expire(run);
      expect(await stores.runs.find('default', run.runId)).toBeUndefined();
      expect(await stores.runs.expiredAt('default', run.runId)).toBeGreaterThan(before);
      expect(await stores.runs.expiredAt('elsewhere', run.runId)).toBeUndefined();
      expect(await stores.retention.expiredAt(run.runId)).toBeGreaterThan(before);
      expect(await stores.retention.expiredAt(newId('run'))).toBeUndefined();
      expect(await stores.log.head(run)).toBeUndefined();
      const { expired } = await stores.retention.overview('default', 200);
      expect(expired).toContainEqual(expect.objectContaining({ runId: run.runId, isClean: false }));
      await cleanAll(stores, run);
      await stores.retention.forget(-DAY_MS, 1_000);
      expect(await stores.runs.expiredAt('default', run.runId)).toBeUndefined();
    });

    it('that its session had such a run, and of the session nothing else', async () => {
      const session = newId('session');
      const run = await member(stores, { session });
      const has = (tenant = 'default', id = session) => stores.retention.hasExpired(tenant, id);
      expect(await has()).toBe(false);
      await expire(run);
      expect([await has(), await has('elsewhere')]).toEqual([true, false]);
      await cleanAll(stores, run);
      expect([await has(), await has('default', newId('session'))]).toEqual([true, false]);
      const [entry] = await behind().query<{ session_id: string }>(
        'SELECT session_id FROM expired_runs WHERE run_id = $1',
        [run.runId],
      );
      expect(entry?.session_id).toMatch(/^sha256:[0-9a-f]{64}$/);
    });

    it('not an entry of which something is left to be deleted', async () => {
      const run = await member(stores);
      await expire(run);
      await stores.retention.forget(-DAY_MS, 1_000);
      expect(await stores.runs.expiredAt('default', run.runId)).toBeDefined();
    });

    it('its executions to who deletes, behind the time of readers, each to one at a time', async () => {
      const [rested, ready] = [await member(stores), await member(stores)];
      await expire(rested, { keptMs: 0, restMs: 60_000 });
      await expire(ready);
      const claim = async (leaseMs: number) =>
        (await stores.retention.claimUnclean(1_000, leaseMs)).filter(({ runId }) =>
          [rested.runId, ready.runId].includes(runId),
        );
      expect(await claim(60_000)).toEqual([ready]);
      expect(await stores.retention.executionsOf(ready)).toContain(`${ready.runId}-t1`);
      expect(await claim(60_000)).toEqual([]);
    });

    it('in no table, and neither in those of its neighbours', async () => {
      // [I68]
      const session = newId('session');
      const [run, neighbour] = [
        await member(stores, { session }),
        await member(stores, { session }),
      ];
      await appendRowsOf(stores, run);
      const before = await stores.log.read(neighbour, { after: -1, limit: 100 });
      expect((await expire(run)).kind).toBe('expired');
      await cleanAll(stores, run);
      expect(await tablesWith(behind(), run)).toEqual([]);
      expect(await stores.log.read(neighbour, { after: -1, limit: 100 })).toEqual(before);
      const { rows } = await stores.feed.events({
        tenant: 'default',
        sessionId: session,
        after: 0,
        limit: 100,
      });
      expect(rows.map(({ run: { runId } }) => runId)).toEqual(before.map(() => neighbour.runId));
      expect(await stores.sessions.find('default', session)).toBeDefined();
      expect((await expire(neighbour)).kind).toBe('expired');
      expect(await stores.sessions.find('default', session)).toBeUndefined();
    });

    it('no tag that only runs that have expired gave their session; others keep their order', async () => {
      const session = newId('session');
      const long = 'x'.repeat(5_000);
      const root = await member(stores, { open: true, session, tags: ['a', 'own', 'b', long] });
      const child = await member(stores, { parent: root, session, tags: ['below', 'c'] });
      await end(stores, root);
      const others = [
        await member(stores, { session, tags: ['c', 'b'] }),
        await member(stores, { session, tags: ['d', 'a'] }),
        await member(stores, { session, tags: [] }),
      ];
      const elsewhere = newId('session');
      await member(stores, { session: elsewhere, tags: ['own', 'below'] });
      const tags = async (of = session) => (await stores.sessions.find('default', of))?.tags;
      expect(await tags()).toEqual(['a', 'own', 'b', long, 'below', 'c', 'd']);
      expect((await expire(root)).kind).toBe('expired');
      expect(await tags()).toEqual(['a', 'b', 'c', 'd']);
      expect(await tags(elsewhere)).toEqual(['own', 'below']);
      for (const run of [root, child]) {
        await cleanAll(stores, run);
        expect(await tablesWith(behind(), run)).toEqual([]);
      }
      const left = [];
      for (const other of others) {
        await expire(other);
        left.push(await tags());
      }
      expect(left).toEqual([['a', 'd'], [], undefined]);
    });

    it('of what a session is told nothing from the moment on in which its run expires', async () => {
      const session = newId('session');
      const [run, neighbour] = [
        await member(stores, { session }),
        await member(stores, { session }),
      ];
      const [first] = await stores.log.read(run, { after: -1, limit: 1 });
      const query = { tenant: 'default', sessionId: session, after: 0, limit: 100 };
      await stores.sessions.noteMessages('default', session, [
        { messageId: 'm', position: await placeOf(stores, session, first?.eventId) },
      ]);
      expect(await stores.sessions.messages('default', session, query)).toHaveLength(1);
      await expire(run);
      expect(await stores.sessions.messages('default', session, query)).toEqual([]);
      const told = (await stores.feed.events(query)).rows.map(({ run: { runId } }) => runId);
      expect(new Set(told)).toEqual(new Set([neighbour.runId]));
      expect(await stores.log.causes('default', first?.eventId ?? '', 10)).toEqual([]);
    });

    it('its conversation to be indexed anew: another run may say what it said first', async () => {
      const session = newId('session');
      const [run] = [await member(stores, { session }), await member(stores, { session })];
      await stores.feed.advance('default', `conversation:${session}`, 5);
      await expire(run);
      await cleanAll(stores, run);
      expect(await stores.feed.cursor('default', `conversation:${session}`)).toBe(0);
    });
  });

  describe('RetentionStore: nothing revives an expired run (architecture §3.7)', () => {
    beforeEach(() => {
      stores = given();
    });

    it('neither an append, a delta, a rebuild, a start, a segment, an archive, an effect nor a child', async () => {
      // [I71]
      const run = await member(stores);
      const head = await headOf(stores, run.runId);
      const rows = await stores.log.read(run, { after: -1, limit: 10 });
      await expire(run);
      const code = (work: Promise<unknown>) =>
        work.then(
          () => 'done',
          (error: unknown) => codeOf(error),
        );
      expect(await code(stores.log.append(batchAfter(head, [entry(run.runId, 'late')])))).toBe(
        'run_not_found',
      );
      expect(await stores.log.appendDeltas(run, 'a', 1, [])).toMatchObject({ kind: 'refused' });
      expect(await code(stores.log.restore(run, { summary: NO_WAITS, head, rows }, head))).toBe(
        'run_not_found',
      );
      expect(
        await code(stores.log.restore(run, { summary: NO_WAITS, head, rows }, undefined)),
      ).toBe('run_not_found');
      expect(await stores.runs.markStarted(run, 'T2')).toBeUndefined();
      expect(await code(stores.segments.record(run, { index: 1, temporalRunId: 'T2' }))).toBe(
        'run_not_found',
      );
      const archived = { holder: run, bytes: bytesOf(newId('raw')), isArchive: true } as const;
      expect(await code(stores.content.putAll([archived]))).toBe('run_not_found');
      const identity = identityOf(run.runId);
      const options = { idempotent: true, leaseMs: 1 };
      expect(await code(stores.effects.claim(identity, 1, options))).toBe('run_not_found');
      const child = newRun();
      const header = { ...child.input.header, parentRunId: run.runId, correlationId: run.runId };
      expect(
        await code(stores.families.acceptChild({ ...child, input: { ...child.input, header } }, 9)),
      ).toBe('service_unavailable');
      const ids = async (list: Promise<readonly RunRef[]>) =>
        (await list).map(({ runId }) => runId);
      expect(await ids(stores.runs.unstarted(Date.now() * 2, 1_000))).not.toContain(run.runId);
      expect(await ids(stores.projection.stillOpen([run.runId]))).toEqual([]);
      await cleanAll(stores, run);
      expect(await tablesWith(behind(), run)).toEqual([]);
    });
  });

  describe('RetentionStore: an id that has expired', () => {
    beforeEach(() => {
      stores = given();
    });

    it('names no new fork: a member of a cohort whose fork has expired is not made again', async () => {
      const [source, fork] = [await member(stores), await member(stores)];
      await expire(fork);
      expect(await stores.retention.noteFork(source, fork.runId)).toBe(false);
      await cleanAll(stores, fork);
      expect(await stores.retention.noteFork(source, fork.runId)).toBe(false);
      expect(await stores.retention.noteFork(source, newId('run'))).toBe(true);
    });
  });

  contentOfRunsContract(given);
}

async function placeOf(stores: Stores, session: string, eventId = ''): Promise<number> {
  return (await stores.feed.positionOf('default', session, eventId)) ?? 0;
}

async function startedFork(stores: Stores, runId: string): Promise<void> {
  await startedRun(stores, { runId });
}

/** Rows in the tables that a plain run leaves empty. */
async function appendRowsOf(stores: Stores, run: RunRef): Promise<void> {
  await stores.projection.watch(run, 'watcher', 60_000);
  await stores.content.put(run, bytesOf(newId('value')));
  await stores.pageSessions.createLink(run, newId('link'), 60_000);
}

function contentOfRunsContract(given: GivenStores): void {
  let stores: Stores;
  const gone = async (run: RunRef): Promise<void> => {
    expect((await stores.retention.expire(run, NOW)).kind).toBe('expired');
    await cleanAll(stores, run);
  };

  describe('RetentionStore: content (architecture §3.7)', () => {
    beforeEach(() => {
      stores = given();
    });

    it('goes with the last run that needs it, and not before', async () => {
      // [I72]
      const [one, two] = [await member(stores), await member(stores)];
      const shared = bytesOf(newId('shared'));
      const hash = await stores.content.put(one, shared);
      const own = await stores.content.put(one, bytesOf(newId('own')));
      await stores.content.put(two, shared);
      await gone(one);
      expect([await isThere(stores, hash), await isThere(stores, own)]).toEqual([true, false]);
      await gone(two);
      expect(await isThere(stores, hash)).toBe(false);
    });

    it('that the host itself needs stays', async () => {
      const run = await member(stores);
      const bytes = bytesOf(newId('manifest'));
      const hash = await stores.content.put({ tenant: 'default' }, bytes);
      await stores.content.put(run, bytes);
      await gone(run);
      expect(await isThere(stores, hash)).toBe(true);
    });

    it('that a fork takes over from its source stays with the fork, but for the archive', async () => {
      const source = await member(stores);
      const value = await stores.content.put(source, bytesOf(newId('value')));
      const [archive = ''] = await stores.content.putAll([
        { holder: source, bytes: bytesOf(newId('raw')), isArchive: true },
      ]);
      const fork = newId('run');
      await stores.retention.noteFork(source, fork);
      await startedFork(stores, fork);
      await end(stores, refTo(fork));
      await gone(source);
      expect([await isThere(stores, value), await isThere(stores, archive)]).toEqual([true, false]);
      await gone(refTo(fork));
      expect(await isThere(stores, value)).toBe(false);
    });

    it('that nobody needs any more comes back when somebody puts it, before it is swept and behind that', async () => {
      const bytes = bytesOf(newId('again'));
      const [one, two, three] = [await member(stores), await member(stores), await member(stores)];
      const hash = await stores.content.put(one, bytes);
      await stores.retention.expire(one, NOW);
      while (!(await stores.retention.clean(one, 10)));
      await stores.content.put(two, bytes);
      while ((await stores.content.sweep(10)) > 0);
      expect(await isThere(stores, hash)).toBe(true);
      await gone(two);
      expect(await isThere(stores, hash)).toBe(false);
      await stores.content.put(three, bytes);
      expect(await isThere(stores, hash)).toBe(true);
    });

    it('puts and sweeps at once lose nothing that somebody needs', async () => {
      for (let round = 0; round < 10; round++) {
        const bytes = bytesOf(newId('race'));
        const [before, behindIt] = [await member(stores), await member(stores)];
        const hash = await stores.content.put(before, bytes);
        await stores.retention.expire(before, NOW);
        await Promise.all([
          cleanAll(stores, before),
          stores.content.put(behindIt, bytes),
          stores.content.sweep(10),
        ]);
        while ((await stores.content.sweep(10)) > 0);
        expect(await isThere(stores, hash)).toBe(true);
      }
    });
  });
}
