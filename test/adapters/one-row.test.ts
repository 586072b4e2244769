// What one row, or one batch, cannot do keeps no other from its own (architecture §11, I97): damaged columns, a statement
// that takes too long, a process without the operator's keys; on both twins.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAppend } from '../../src/adapters/postgres/append-groups.ts';
import type { Db, SqlValue } from '../../src/adapters/postgres/db.ts';
import { openDatabase, storesOn } from '../../src/adapters/postgres/index.ts';
import { createRetentionStore } from '../../src/adapters/postgres/retention-store.ts';
import { createSeals } from '../../src/adapters/postgres/seals.ts';
import { throughDb, withSeals } from '../../src/adapters/postgres/sealed-db.ts';
import { createSubjectKeys } from '../../src/adapters/postgres/subject-keys.ts';
import { createExpirer } from '../../src/log/expirer.ts';
import { createRounds } from '../../src/log/rounds.ts';
import { HostError } from '../../src/rules/errors.ts';
import { sha256Hex } from '../../src/rules/ids.ts';
import { createCohortMembers } from '../../src/runs/cohort-members.ts';
import { startLeftCohorts } from '../../src/runs/cohorts.ts';
import { advanceErasure, type EraseDeps } from '../../src/runs/erase.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { agentInstance, agentTool } from '../contract/agent-registry.ts';
import { givenCohort } from '../contract/cohorts.ts';
import {
  batchAfter,
  entry,
  headOf,
  identityOf,
  newId,
  newRun,
  refTo,
  startedRun,
} from '../contract/given.ts';
import { member } from '../contract/retention.ts';
import { databaseTwins } from '../support/database-twins.ts';
import { patient } from '../support/machine.ts';
import { lockedRows } from './locked-rows.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { takes } from '../support/waiting.ts';

const KEY = { id: 'k', key: new Uint8Array(32) };
type MemberDeps = Parameters<typeof createCohortMembers>[0];
const AWAY = new HostError('service_unavailable');
const LONG_MS = 3_600_000;

// [I97]
describe.each(await databaseTwins())('one row on %s', (name, database) => {
  /** By several connections. */
  const isShared = name === 'PostgreSQL';
  let db: Db;
  let close: () => Promise<void>;
  let stores: Stores;
  beforeAll(async () => {
    const options = await database();
    ({ db, close } = await openDatabase(options, quietLogger));
    const given = { database: options, logger: quietLogger, masterKeys: [KEY], keyHeldMs: 100 };
    stores = await storesOn({ db, close: async () => undefined }, given);
  });
  afterAll(() => close());
  // First: others damage keys.
  if (name === 'PostgreSQL') lockedRows(() => ({ db, stores, key: KEY }));

  /** The database, but for transactions that meet this text. */
  const without = (text: string, rejects: () => Error): Db => ({
    ...throughDb(db),
    transaction: (work, limitMs) =>
      db.transaction(
        (tx) =>
          work({
            script: (script) => tx.script(script),
            query: (statement, values = []) => {
              if (JSON.stringify(values).includes(text)) throw rejects();
              return tx.query(statement, values);
            },
          }),
        limitMs,
      ),
  });

  it('of appends at one time one with a key that no index holds keeps no other from its place', async () => {
    const runIds = await Promise.all(Array.from({ length: 3 }, () => startedRun(stores)));
    const [long = ''] = runIds;
    // Nothing that could be compressed below the limit.
    const key = Array.from({ length: 400 }, (_, at) => sha256Hex(`${at}`)).join('');
    const told = await Promise.allSettled(
      runIds.map(async (runId) => {
        const it = runId === long ? key : 'k';
        return stores.log.append(batchAfter(await headOf(stores, runId), [entry(runId, it)]));
      }),
    );
    expect(told.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
    expect(told[0]).toMatchObject({ reason: { name: 'SqlError', sqlState: '54000' } });
  });

  it('architecture §4.1 [I98] a database that refuses to write, or lacks a table, is away though it answers', async () => {
    await stores.ping();
    await db.transaction((tx) =>
      tx.script(`CREATE FUNCTION no_ids() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN RAISE EXCEPTION 'no ids are left' USING ERRCODE = '54000'; END $$;
        CREATE TRIGGER no_ids BEFORE UPDATE ON store_pings FOR EACH STATEMENT EXECUTE FUNCTION no_ids()`),
    );
    const away = (sqlState: string) => ({ code: 'service_unavailable', details: { sqlState } });
    await expect(stores.probe()).rejects.toMatchObject(away('54000'));
    await db.query('DROP TRIGGER no_ids ON store_pings');
    await db.query('ALTER TABLE store_pings RENAME TO restored');
    await expect(stores.ping()).rejects.toMatchObject(away('42P01'));
    await db.query('ALTER TABLE restored RENAME TO store_pings');
    await stores.ping();
    // A row that is lost is written again: else nothing would be written, and all would seem well.
    await db.query('DELETE FROM store_pings');
    await stores.ping();
    expect(await db.query('SELECT only_row FROM store_pings')).toHaveLength(1);
    await db.transaction(async (tx) => {
      await tx.query('SELECT 1 FROM store_pings FOR UPDATE');
      if (isShared) await stores.ping();
    });
  });

  it('architecture §5 [I98] a run whose log is being made again has not ended: its calls wait', async () => {
    const runId = await startedRun(stores);
    const identity = identityOf(runId);
    const claim = () =>
      stores.effects.claim(identity, 0, { idempotent: false, leaseMs: patient(60_000) });
    const heads = await db.query<{ head: string }>(
      'DELETE FROM run_heads h WHERE run_id = $1 RETURNING to_jsonb(h)::text AS head',
      [runId],
    );
    const away = { code: 'service_unavailable' };
    await expect(claim()).rejects.toMatchObject(away);
    const former = { identity, attempt: 0, state: 'in-doubt' as const };
    await expect(stores.effects.inherit([former])).rejects.toMatchObject(away);
    await db.query(
      'INSERT INTO run_heads SELECT * FROM jsonb_populate_record(NULL::run_heads, $1::jsonb)',
      [heads[0]?.head ?? ''],
    );
    expect(await claim()).toMatchObject({ kind: 'perform' });
  });

  it('of appends at one time one that takes too long keeps no other from its place', async () => {
    const runIds = await Promise.all(Array.from({ length: 5 }, () => startedRun(stores)));
    const [slow = ''] = runIds;
    const seals = createSeals(await createSubjectKeys(db, []));
    const append = createAppend(
      withSeals(
        without(slow, () => AWAY),
        seals,
      ),
    );
    const batches = await Promise.all(
      runIds.map(async (runId) => batchAfter(await headOf(stores, runId), [entry(runId, 'k')])),
    );
    // The first is written alone, and the others are gathered behind it.
    const last = await startedRun(stores);
    const first = append(batchAfter(await headOf(stores, last), [entry(last, 'k')]));
    const done = await Promise.allSettled([...batches.map(append), first]);
    expect(done.map(({ status }) => status)).toEqual([
      'rejected',
      ...Array<string>(5).fill('fulfilled'),
    ]);
  });

  it('where two of a group take too long it is the database: the others are not tried one by one', async () => {
    const runIds = await Promise.all(Array.from({ length: 8 }, () => startedRun(stores)));
    let tried = 0;
    const late: Db = {
      ...without('none', () => AWAY),
      query: (text, values) => db.query(text, values),
      transaction: () => {
        tried++;
        return Promise.reject(AWAY);
      },
    };
    const append = createAppend(withSeals(late, createSeals(await createSubjectKeys(db, []))));
    const batches = await Promise.all(
      runIds.map(async (runId) => batchAfter(await headOf(stores, runId), [entry(runId, 'k')])),
    );
    const done = await Promise.allSettled(batches.map(append));
    expect(new Set(done.map(({ status }) => status))).toEqual(new Set(['rejected']));
    // The first alone, the group of the others, and two of them.
    expect(tried).toBe(4);
  });

  it('a fork’s note that cannot be forgotten keeps no other', async () => {
    const source = refTo(await startedRun(stores));
    const forks = [newId('a'), newId('b')];
    for (const fork of forks) await stores.retention.noteFork(source, fork);
    await db.query('UPDATE run_forks SET noted_at_ms = 1 WHERE run_id = ANY($1::text[])', [forks]);
    const broken = createRetentionStore(without(forks[0] ?? '', () => new Error('damaged')));
    await expect(broken.forget(1, 10)).rejects.toThrow('damaged');
    const left = await db.query('SELECT run_id FROM run_forks WHERE run_id = ANY($1::text[])', [
      forks,
    ]);
    expect(left).toEqual([{ run_id: forks[0] }]);
    await stores.retention.forget(1, 10);
  });

  it('executions that cannot be read keep no other expired run from being cleaned', async () => {
    const runs = [await member(stores), await member(stores)];
    const [lost, clean] = runs.map(({ runId }) => runId);
    for (const run of runs) await stores.retention.expire(run, { keptMs: 0, restMs: 0 });
    await db.query("UPDATE expired_runs SET executions = '{' WHERE run_id = $1", [lost ?? '']);
    const expirer = createExpirer({
      ...{ stores, logger: quietLogger, engine: { ping: async () => undefined } },
      histories: { remove: async () => undefined },
    });
    await expirer.round();
    const rows = await db.query<{ run_id: string }>(
      'SELECT run_id FROM expired_runs WHERE cleaned_at_ms IS NOT NULL AND run_id = ANY($1::text[])',
      [runs.map(({ runId }) => runId)],
    );
    expect(rows.map(({ run_id }) => run_id)).toEqual([clean]);
  });

  it.each([2_147_483_647, -2_147_483_648])(
    'a count of claims that is damaged keeps no archive and no clean-up: %i',
    async (claims) => {
      const archived = refTo(await startedRun(stores));
      await stores.segments.record(archived, { index: 0, temporalRunId: 'T1', isClosed: true });
      const expired = await member(stores);
      await stores.retention.expire(expired, { keptMs: 0, restMs: 0 });
      for (const [table, { runId }] of [
        ['run_segments', archived],
        ['expired_runs', expired],
      ] as const)
        await db.query(`UPDATE ${table} SET claims = $2 WHERE run_id = $1`, [runId, claims]);
      const unarchived = await stores.segments.claimUnarchived(1_000, 1);
      expect(unarchived.map(({ runId }) => runId)).toContain(archived.runId);
      const unclean = await stores.retention.claimUnclean(1_000, 1);
      expect(unclean.map(({ runId }) => runId)).toContain(expired.runId);
    },
  );

  it('a cohort that is not started keeps none behind it, page by page; one with a damaged request is started', async () => {
    const ids: string[] = [];
    for (let count = 0; count < 25; count++) ids.push((await givenCohort(stores, 1)).cohortId);
    const lost = ids.toSorted().slice(0, 21);
    const damaged = ids.toSorted()[22] ?? '';
    await db.query("UPDATE cohorts SET request = '{' WHERE cohort_id = $1", [damaged]);
    const started: string[] = [];
    const deps = {
      ...{ stores, config: {}, signal: new AbortController().signal },
      rounds: createRounds({ logger: quietLogger, answers: async () => undefined }),
      cohortEngine: {
        start: async ({ cohortId }: { readonly cohortId: string }) => {
          if (lost.includes(cohortId)) throw new HostError('internal_error');
          started.push(cohortId);
        },
      },
    } as unknown as Parameters<typeof startLeftCohorts>[0];
    const behind = await startLeftCohorts(deps);
    expect([behind?.cohortId, started]).toEqual([lost[19], []]);
    expect(await startLeftCohorts(deps, behind)).toBeUndefined();
    expect(started.toSorted()).toEqual(ids.toSorted().slice(21));
  });

  it('a damaged member keeps no cohort open, and is named beside the others', async () => {
    const { cohorts } = stores;
    const { cohortId, nameAt } = await givenCohort(stores, 4);
    const used = { status: 'completed', inputTokens: 1, outputTokens: 2, usd: 0.5 };
    for (const at of [0, 1])
      await cohorts.settle(nameAt(at), { outcome: 'same', report: { before: used, after: used } });
    await db.query(
      `UPDATE cohort_members SET question = CASE position WHEN 2 THEN '{' END,
         report = CASE position WHEN 0 THEN '{"a' ELSE report END WHERE cohort_id = $1`,
      [cohortId],
    );
    const members = createCohortMembers({ stores, logger: quietLogger } as unknown as MemberDeps);
    const left = await members.left('default', cohortId, false);
    expect(left).toEqual([nameAt(2), nameAt(3)]);
    for (const name of left)
      await members.giveUp(name, { code: 'internal_error', message: 'It does not end.' });
    await members.end('default', cohortId);
    expect(await cohorts.find('default', cohortId)).toMatchObject({ state: 'completed' });
    const found = await cohorts.members('default', cohortId, { from: 0, limit: 10 });
    const code = 'history_undecodable';
    expect(found.map(({ outcome, unreadable }) => [outcome, unreadable?.code])).toEqual([
      ...[
        ['same', code],
        ['same', undefined],
        ['not-finished', code],
      ],
      ['not-finished', undefined],
    ]);
    for (const report of ['null', '{"before":{"inputTokens":1.5}}', '{"changes":[{}]}']) {
      await db.query(
        'UPDATE cohort_members SET report = $2 WHERE cohort_id = $1 AND position = 0',
        [...[cohortId, report]],
      );
      expect((await cohorts.member(nameAt(0)))?.unreadable).toMatchObject({ code });
      const sums = { inputTokens: 1, outputTokens: 2, usd: 0.5 };
      expect((await cohorts.totals('default', [cohortId])).get(cohortId)).toEqual({
        ...{ counts: { same: 2, 'not-finished': 2 }, before: sums, after: sums },
      });
    }
  });

  it('a cohort whose request is damaged is listed by name, and its members come to their end', async () => {
    const { cohorts } = stores;
    const { cohortId, nameAt } = await givenCohort(stores, 1);
    const code = 'history_undecodable';
    const given = (await cohorts.find('default', cohortId))?.request;
    const change = (agents: unknown) => JSON.stringify({ ...given, change: { agents } });
    for (const request of [
      ...['{', '{}', 'null', change(5), change({ a: null }), change({ a: { systemPrompt: 5 } })],
      JSON.stringify({ ...given, select: { last: 1, fromMs: 9e15 } }),
    ]) {
      await db.query('UPDATE cohorts SET request = $2 WHERE cohort_id = $1', [cohortId, request]);
      const { cohorts: listed } = await cohorts.list('default', { limit: 50 });
      const found = listed.find((row) => row.cohortId === cohortId);
      expect(found).toMatchObject({ unreadable: { code }, request: { change: {} } });
    }
    const members = createCohortMembers({ stores, logger: quietLogger } as unknown as MemberDeps);
    expect(await members.step(nameAt(0), { isLong: false, spentMs: 0 })).toBe('ended');
    expect(await cohorts.member(nameAt(0))).toMatchObject({ report: { error: { code } } });
  });

  it('lists of runs and sessions tell a row with a time, or a summary, that is none, by name', async () => {
    const tenant = newId('tenant');
    const ids: string[] = [];
    for (let count = 0; count < 2; count++) {
      const run = newRun();
      const header = { ...run.input.header, sessionId: run.runId };
      ids.push(
        await startedRun(stores, { ...run, tenant, input: { ...run.input, tenant, header } }),
      );
    }
    const [odd = '', good = ''] = ids;
    const page = { limit: 10 };
    const named = async () => {
      const all = await stores.runs.list(tenant, page);
      const overview = await stores.runs.overview(tenant, page, 1);
      const { sessions } = await stores.sessions.list(tenant, page);
      const ofSession = await stores.sessions.runs(tenant, odd, page);
      const runs = [all.runs, overview.runs, ofSession.runs];
      expect(all.runs.map(({ runId }) => runId).toSorted()).toEqual(ids.toSorted());
      return [
        ...runs.map((list) => list.filter((row) => row.unreadable).map(({ runId }) => runId)),
        sessions.filter((row) => row.unreadable).map(({ sessionId }) => sessionId),
      ];
    };
    expect(await named()).toEqual([[], [], [], []]);
    const times = async (ms: number) => {
      for (const table of ['runs', 'session_runs', 'run_heads'])
        await db.query(`UPDATE ${table} SET created_at_ms = $2 WHERE run_id = $1`, [odd, ms]);
      await db.query('UPDATE sessions SET last_activity_ms = $2 WHERE session_id = $1', [odd, ms]);
    };
    for (const ms of [9e15, -9e15]) {
      await times(ms);
      expect(await named()).toEqual([[odd], [odd], [odd], [odd]]);
    }
    await times(1);
    const wait = { nodeId: 'n', nodeName: 'n', interruptId: 'i', kind: 'approval', data: {} };
    for (const summary of [
      ...[{ waits: [null] }, { waits: [{}] }, { waits: [], startedAtMs: 9e15 }],
      ...[{ waits: [], endedAtMs: 'x' }, { waits: [{ ...wait, requestedAtMs: 9e15 }] }],
      { waits: [{ ...wait, requestedAtMs: 1, kind: 'odd' }] },
    ]) {
      await db.query('UPDATE run_heads SET summary = $2 WHERE run_id = $1', [
        ...[odd, JSON.stringify(summary)],
      ]);
      expect(await named()).toEqual([[], [odd], [], []]);
    }
    const { input } = newRun();
    const lacks = (over: object) => JSON.stringify({ ...input, ...over });
    for (const damaged of [
      ...[
        '{}',
        lacks({ header: {} }),
        lacks({ agents: undefined }),
        lacks({ agents: { a: null } }),
      ],
      ...[{}, { nodes: [] }, { nodes: [null], settings: {} }].map((definition) =>
        lacks({ definition }),
      ),
      ...[lacks({ limits: {} }), lacks({ configurable: null }), lacks({ fork: {} })],
    ]) {
      await db.query('UPDATE runs SET input = $2 WHERE run_id = $1', [odd, damaged]);
      for (const find of ['find', 'findKept'] as const)
        await expect(stores.runs[find](tenant, odd)).rejects.toMatchObject({
          code: 'history_undecodable',
        });
    }
    expect(await stores.runs.find(tenant, good)).toBeDefined();
  });

  it('what an agent said that is damaged is left out of lists, and named', async () => {
    const tenant = newId('tenant');
    await db.query(
      `INSERT INTO agent_tools (tenant_id, agent_id, tool_id, tool)
       VALUES ($1, 'a', 'a/good', $2), ($1, 'a', 'a/bad', '{'), ($1, 'a', 'a/odd', '{"toolId":"a/odd"}')`,
      [tenant, JSON.stringify(agentTool('a', 'good'))],
    );
    await db.query(
      `INSERT INTO agent_tools (tenant_id, agent_id, tool_id, tool) VALUES ($1, 'a', 'a/free', $2)`,
      [tenant, JSON.stringify(agentTool('a', 'free', { approval: 'never' as 'none' }))],
    );
    expect(await stores.agents.tools(tenant)).toEqual([agentTool('a', 'good')]);
    const good = agentInstance({ tenant, agentId: 'b', status: 'newer' as 'connected' });
    await stores.agents.saveInstance(good, LONG_MS);
    const counted = { calls: 1, succeeded: 1, failed: 0, canceled: 0, unanswered: 0 };
    const session = {
      ...{ sessionId: 's', agentVersion: '1', transport: 'unix', attached: false, state: 'ready' },
      ...{ health: 'ok', connectedAtMs: 5, toolIds: [], calls: [], bytesIn: 1, bytesOut: 1 },
    };
    for (const damaged of [
      ...[undefined, { metrics: undefined }, { restarts: -1 }, { restarts: 'x' }, { name: 5 }],
      ...[{ lastExit: { atMs: 9e15, reason: 'x' } }, { lastExit: { atMs: 1 } }, { agentId: 'b' }],
      ...[{ connectedAtMs: 9e15 }, { calls: undefined }, { calls: [null] }].map((over) => ({
        session: { ...session, ...over },
      })),
      { metrics: [{ ...counted, toolId: 'x', totalMs: 0, maxMs: 0, calls: -1 }] },
    ]) {
      const instance = damaged && JSON.stringify({ ...good, agentId: 'a', ...damaged });
      await db.query(
        `INSERT INTO agent_instances (tenant_id, agent_id, instance_id, lease_until_ms, instance)
         VALUES ($1, 'a', 'i', 9000000000000, $2)
         ON CONFLICT (tenant_id, agent_id, instance_id) DO UPDATE SET instance = excluded.instance`,
        [tenant, instance ?? '{'],
      );
      expect(await stores.agents.instances(tenant), instance).toEqual([good]);
    }
    await db.query(
      `INSERT INTO agent_audit (tenant_id, position, at_ms, instance_id, kind, details)
       VALUES ($1, 1, 1, 'i', 'k', '{'), ($1, 2, 1, 'i', 'k', '{}')`,
      [tenant],
    );
    expect(await stores.agents.audit(tenant, { limit: 10 })).toMatchObject([
      ...[{ details: {} }, { details: { unreadable: { code: 'history_undecodable' } } }],
    ]);
  });

  it('of erasures one that is damaged is listed by name, and what it waits for is no part of it', async () => {
    const tenant = newId('tenant');
    const ids: string[] = [];
    for (const subject of ['one', 'two']) {
      const subjectKey = (await stores.subjects.keyFor(tenant, { subject })) ?? '';
      await stores.runs.accept(newRun({ tenant, subjectKey }));
      const asked = { asked: { by: 'tester' }, cancelsOpen: true };
      const begun = await stores.subjects.beginErasure(tenant, subject, asked);
      if (begun.kind === 'begun') ids.push(begun.erasure.erasureId);
    }
    const [odd = '', good = ''] = ids;
    const code = 'history_undecodable';
    for (const [column, value] of [
      ...(['waits_for', 'receipt'] as const).flatMap((name) => [
        [name, '{'],
        [name, 'null'],
      ]),
      ...[
        ['asked', '{'],
        ['asked', '{}'],
      ],
      ['asked_at_ms', 9e15],
    ] as const) {
      const [row] = await db.query(
        `SELECT ${column} AS was FROM subject_erasures WHERE erasure_id = $1`,
        [odd],
      );
      const set = (to: SqlValue) =>
        db.query(`UPDATE subject_erasures SET ${column} = $2 WHERE erasure_id = $1`, [odd, to]);
      await set(value);
      const listed = await stores.subjects.erasures(tenant, 10);
      const found = Object.fromEntries(
        listed.map((each) => [each.erasureId, each.unreadable?.code]),
      );
      expect(found).toEqual({ [odd]: code, [good]: undefined });
      const single = stores.subjects.erasure(tenant, odd);
      if (column.startsWith('asked')) await expect(single).rejects.toMatchObject({ code });
      else expect(await single).toMatchObject({ asked: { by: 'tester' }, unreadable: { code } });
      await set(row?.was ?? null);
    }
    await db.query('DELETE FROM subject_erasures WHERE tenant_id = $1', [tenant]);
  });

  it('of an erasure whose request cannot be read the others are named all the same', async () => {
    const begun: string[] = [];
    for (const subject of ['one', 'two']) {
      const subjectKey = (await stores.subjects.keyFor('default', { subject })) ?? '';
      await stores.runs.accept(newRun({ subjectKey }));
      const asked = { asked: { by: 'tester' }, cancelsOpen: true };
      const erasure = await stores.subjects.beginErasure('default', subject, asked);
      if (erasure.kind === 'begun') begun.push(erasure.erasure.erasureId);
    }
    await db.query("UPDATE subject_erasures SET asked = '{' WHERE erasure_id = $1", [
      begun[0] ?? '',
    ]);
    const left = await stores.subjects.unfinished({ limit: 10 });
    expect(left.map(({ erasureId }) => erasureId).toSorted()).toEqual(begun.toSorted());
  });

  it('a process without the operator’s keys writes nothing of a subject in the clear', async () => {
    const run = newRun({
      subjectKey: (await stores.subjects.keyFor('default', { subject: 's' })) ?? '',
    });
    await stores.runs.accept(run);
    const keys = await createSubjectKeys(db, []);
    await expect(keys.ofRun(run.runId)).rejects.toMatchObject({ code: 'key_unavailable' });
    expect(await keys.ofRun(await startedRun(stores))).toBeUndefined();
  });

  it('a wrapped key that is damaged is not repeated in what is said of it', async () => {
    const subjectKey = (await stores.subjects.keyFor('default', { subject: 'damaged' })) ?? '';
    const messages: string[] = [];
    for (const wrapped of ['k:AAAA', 'é secret', 'x'.repeat(80)]) {
      await db.query('UPDATE subject_keys SET wrapped = $2 WHERE key_id = $1', [
        subjectKey,
        wrapped,
      ]);
      const keys = await createSubjectKeys(db, [KEY]);
      const error = await keys.byId(subjectKey).catch((thrown: unknown) => thrown);
      messages.push((error as Error).message);
    }
    expect(messages).toEqual([
      'A key of the host does not open with the encryption key "k".',
      'A key of the host does not open with its encryption key.',
      'A key of the host does not open with its encryption key.',
    ]);
  });

  it('a log that cannot be kept keeps no other of its erasure, a page of them neither, and is named', async () => {
    const subjectKey = (await stores.subjects.keyFor('default', { subject: 'large' })) ?? '';
    const ids: string[] = [];
    for (let at = 0; at < 120; at++) {
      const run = newRun({ subjectKey });
      await stores.runs.accept(run);
      ids.push(run.runId);
    }
    await db.query(
      "UPDATE run_heads SET closed = true, status = 'completed' WHERE run_id = ANY($1::text[])",
      [ids],
    );
    const asked = { asked: { by: 'tester' }, cancelsOpen: true };
    const begun = await stores.subjects.beginErasure('default', 'large', asked);
    if (begun.kind !== 'begun') throw new Error('not begun');
    const lost = ids.toSorted().slice(0, 110);
    const putAll: Stores['content']['putAll'] = (values) =>
      values.some(({ holder }) => lost.includes(holder.runId ?? ''))
        ? Promise.reject(new HostError('content_missing', { reason: 'The disk says no.' }))
        : stores.content.putAll(values);
    const deps = {
      ...{ stores: { ...stores, content: { ...stores.content, putAll } }, logger: quietLogger },
      engine: { terminate: async () => undefined },
    } as unknown as EraseDeps;
    // As the keeper does: one look, and one more.
    const advance = async () => {
      let looks = 0;
      const patience = { isOver: () => looks++ > 0, isLate: () => false, rest: takes };
      const { tenant, erasureId } = begun.erasure;
      const erasure = (await stores.subjects.erasure(tenant, erasureId)) ?? begun.erasure;
      return (await advanceErasure(deps, erasure, patience)).waitsFor;
    };
    const reason = `It cannot go on now (content_missing). The log of run ${lost[0]} cannot be kept (content_missing). The disk says no.`;
    await expect.poll(advance, { timeout: patient(30_000) }).toEqual({ kind: 'failed', reason });
    const kept = await db.query('SELECT run_id FROM erased_runs WHERE run_id = ANY($1::text[])', [
      ids,
    ]);
    expect(kept).toHaveLength(10);
  });

  it('a step that fails is what its erasure waits for, in the words of the error', async () => {
    const subjectKey = (await stores.subjects.keyFor('default', { subject: 'unsigned' })) ?? '';
    await stores.subjects.beginErasure('default', 'unsigned', {
      ...{ asked: { by: 'tester' }, cancelsOpen: true },
    });
    const left = await stores.subjects.unfinished({ limit: 100 });
    const found = await Promise.all(
      left.map(({ tenant, erasureId }) =>
        stores.subjects.erasure(tenant, erasureId).catch(() => undefined),
      ),
    );
    const erasure = found.find((each) => each?.keyId === subjectKey);
    if (!erasure) throw new Error('not begun');
    let isAway = false;
    const sign = () =>
      Promise.reject(new HostError('key_unavailable', { reason: 'The key "k" is not there.' }));
    const ping = async () => {
      if (isAway) throw new HostError('service_unavailable');
    };
    const deps = {
      ...{ stores: { ...stores, ping, subjects: { ...stores.subjects, sign } } },
      logger: quietLogger,
    } as unknown as EraseDeps;
    const patience = { isOver: () => false, isLate: () => false, rest: takes };
    const told = {
      kind: 'failed',
      reason: 'It cannot go on now (key_unavailable). The key "k" is not there.',
    };
    expect((await advanceErasure(deps, erasure, patience)).waitsFor).toEqual(told);
    const { tenant, erasureId } = erasure;
    expect((await stores.subjects.erasure(tenant, erasureId))?.waitsFor).toEqual(told);
    isAway = true;
    await expect(advanceErasure(deps, erasure, patience)).rejects.toMatchObject({
      code: 'service_unavailable',
    });
    const done = await advanceErasure({ ...deps, stores }, erasure, patience);
    expect([done.state, done.waitsFor]).toEqual(['erased', undefined]);
  });
});
