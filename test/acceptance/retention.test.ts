// Runs expire on a real host (architecture §3.7): whatever is asked of one is 410, nothing of it is left in PostgreSQL or
// Temporal, and what others need stays. Time is passed by making ends older.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase, type OpenDatabase } from '../../src/adapters/postgres/index.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { createHistoryRemover } from '../../src/adapters/temporal/history-remover.ts';
import { runCli } from '../../src/cli/program.ts';
import { createExpirer } from '../../src/log/expirer.ts';
import { tablesWith } from '../contract/retention.ts';
import { agentNode, chain, definition, edge, node } from '../support/definitions.ts';
import { childrenOf } from '../support/children.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { runRef } from '../support/run-ref.ts';
import { patient } from '../support/machine.ts';

/** Longest time in ms that Temporal's server takes to delete what it was asked to. */
const FORGETS_MS = patient(300_000);
/** What the host waits at most until it is idle and archives what has ended, in ms. */
const ARCHIVER_WAIT_MS = 1_000;
/** Longest time in ms until it has: a claim that failed is held for a minute. */
const ARCHIVES_MS = patient(150_000);
const DAY_MS = 24 * 3_600_000;
const AGENT = 'local.retention.clerk';
const TOLD = definition(
  'told',
  [agentNode('think', AGENT), node('end', 'core.noop')],
  [edge('think', 'end')],
);
const ASKS = chain('asks', [node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } })]);
const PARENT = definition('parent', [
  node('sub', 'core.subWorkflow', { config: { workflowId: 'asks' } }),
]);

const postgres = await sharePostgres();
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
});

describe.skipIf('missing' in postgres)('architecture §3.7: expiry on a real host', () => {
  let host: TestHost;
  let folder: string;
  let db: OpenDatabase;
  let temporal: ReturnType<typeof connectTemporal>;

  const ended = ({ status }: { status: string }) =>
    ['completed', 'failed', 'cancelled'].includes(status);

  async function endedRun(workflowId = TOLD.id): Promise<string> {
    const runId = await host.startRun({ workflowId });
    await host.waitFor(runId, ended);
    return runId;
  }

  async function answer(runId: string): Promise<void> {
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    const body = { resumeValue: { action: 'accept' } };
    const path = `/v1/runs/${runId}/interrupts/gate`;
    expect((await host.api(path, { body })).status).toBe(200);
  }

  /** As if they had ended so long ago: the keys that their clients used have served their time, too. */
  const older = async (runIds: readonly string[], days: number) => {
    await db.db.query(
      'UPDATE ended_runs SET ended_at_ms = ended_at_ms - $2, look_at_ms = 0 WHERE run_id = ANY($1::text[])',
      [runIds, days * DAY_MS],
    );
    await host.stores.idempotency.expire(0);
  };

  /** As the host's own role, without its rests. */
  async function expire(): Promise<void> {
    const expirer = createExpirer({
      stores: host.stores,
      engine: { ping: async () => undefined },
      histories: createHistoryRemover({ connection: temporal, namespace: host.temporal.namespace }),
      ...{ logger: quietLogger, keptMs: 7 * DAY_MS, restMs: 0 },
    });
    await expirer.round();
    while (await expirer.round());
  }

  const isForgotten = (runId: string) =>
    new Client({ connection: temporal, namespace: host.temporal.namespace }).workflow
      .getHandle(runId)
      .describe()
      .then(
        () => false,
        () => true,
      );

  async function expectGone(runId: string): Promise<void> {
    expect((await host.api(`/v1/runs/${runId}`)).status).toBe(410);
    expect(await tablesWith(db.db, runRef(runId))).toEqual([]);
    gone.push(runId);
  }

  /** Those of which Temporal must know nothing in the end: its server deletes when its own queues have come so far. */
  const gone: string[] = [];

  const contents = async () => (await db.db.query('SELECT hash FROM contents')).length;

  const fork = async (runId: string, of: object) => {
    const answered = await host.api<{ runId: string }>(`/v1/runs/${runId}:fork`, { body: of });
    expect(answered.status).toBe(201);
    return answered.body.runId;
  };

  beforeAll(async () => {
    if ('missing' in postgres) throw new Error(postgres.missing);
    folder = await mkdtemp(join(tmpdir(), 'openwop-retention-'));
    await writeCaller(join(folder, 'agents'), {
      ...{ agentId: AGENT, toolAllowlist: ['core:clock'] },
      turns: [
        { calls: [{ toolId: 'core:clock', arguments: {} }] },
        { final: { decision: { told: true }, confidence: 1 } },
      ],
    });
    for (const each of [TOLD, ASKS, PARENT])
      await writeDefinition(join(folder, 'definitions'), each);
    const url = await postgres.createDatabase();
    host = await startTestHost({
      ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
      ...{ databaseUrl: url, encryption: true },
      env: { OPENWOP_TEST_SEAM_ENABLED: 'true' },
      waits: { archiverWaitMs: ARCHIVER_WAIT_MS },
    });
    db = await openDatabase({ kind: 'postgres', url }, quietLogger);
    temporal = connectTemporal(host.temporal);
  });

  afterAll(async () => {
    await db?.close();
    await temporal?.close();
    await host?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('nothing is left of a run whose time is over, and its neighbours stay as they are', async () => {
    const before = await contents();
    const [old, young] = [await endedRun(), await endedRun()];
    const told = (await host.api(`/v1/runs/${young}/events`)).text;
    await older([old], 8);
    await older([young], 6);
    await expire();
    await expectGone(old);
    expect((await host.api(`/v1/runs/${young}/events`)).text).toBe(told);
    expect((await host.log.rebuild(runRef(young))).rows.length).toBeGreaterThan(5);
    await older([young], 2);
    await expire();
    await expectGone(young);
    expect(await contents()).toBe(before);
  });

  // [I113]
  it('a repeat of a fork is told its first answer when the source has expired; a fork under another key is 410', async () => {
    const runId = await endedRun();
    const forked = (key: string) =>
      host.api<{ runId: string }>(`/v1/runs/${runId}:fork`, {
        body: { mode: 'replay' },
        headers: { 'idempotency-key': key },
      });
    const first = await forked('one');
    expect(first.status).toBe(201);
    await host.waitFor(first.body.runId, ({ status }) => status === 'completed');
    expect((await forked('one')).body).toEqual(first.body);
    const path = `/v1/host/sample/test/runs/${runId}/expire`;
    expect((await host.api(path, { method: 'POST' })).body).toEqual({ runIds: [runId] });
    expect(await forked('one')).toMatchObject({ status: 201, body: first.body });
    expect(await forked('another')).toMatchObject({ status: 410 });
  });

  it('every address of an expired run says 410, and when', async () => {
    const [runId, other] = [await endedRun(), await endedRun()];
    const signedIn = await fetch(`${host.url}/pages/sign-in`, {
      ...{ method: 'POST', redirect: 'manual', headers: { origin: host.url } },
      body: new URLSearchParams({ key: host.apiKey }),
    });
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const path = `/v1/host/sample/test/runs/${runId}/expire`;
    expect((await host.api(path, { method: 'POST' })).body).toEqual({ runIds: [runId] });
    const { paths } = (
      await host.api<{ paths: Record<string, Record<string, unknown>> }>('/v1/openapi.json')
    ).body;
    const asked = Object.entries(paths).flatMap(([template, methods]) =>
      // No run of this release has artifacts: the address says that of each.
      template.includes('{runId}') && !template.includes('/artifacts/')
        ? Object.keys(methods).map((method) => ({ method: method.toUpperCase(), template }))
        : [],
    );
    expect(asked.length).toBeGreaterThan(15);
    const expired = {
      status: 410,
      body: {
        error: 'not_found',
        details: {
          expiredAt: expect.stringMatching(/^\d{4}-/) as unknown,
          reason: 'retention_expired',
        },
      },
    };
    for (const { method, template } of asked) {
      const address = template.replace('{runId}', runId).replace(/\{\w+\}/g, '0');
      const answered = await host.api(address, { method, ...(method === 'POST' && { body: {} }) });
      expect({ template, ...answered }).toMatchObject({ template, ...expired });
    }
    for (const address of [
      `/v1/runs/${other}:diff?against=${runId}`,
      `/v1/host/openwop-temporal/runs/${other}/diff?against=${runId}`,
    ])
      expect(await host.api(address)).toMatchObject(expired);
    const shown = await fetch(`${host.url}/pages/runs/${runId}`, { headers: { cookie } });
    expect([shown.status, await shown.text()]).toEqual([
      410,
      expect.stringContaining('This run has expired: nothing of it is kept.'),
    ]);
    const said: string[] = [];
    const code = await runCli(['runs', 'show', runId], {
      ...{ url: host.url, apiKey: host.apiKey, out: () => undefined },
      err: (text) => void said.push(text),
    });
    expect([code, said.join('')]).toEqual([
      1,
      expect.stringMatching(new RegExp(`Run ${runId} expired at .*: nothing of it is kept`)),
    ]);
    await expire();
    await expectGone(runId);
  });

  it('a family goes as one; while one of it asks, however old the others are, none does', async () => {
    const root = await host.startRun({ workflowId: PARENT.id });
    const [child = ''] = await childrenOf(host, root);
    await host.waitFor(child, ({ status }) => status === 'waiting-approval');
    await expire();
    expect((await host.api(`/v1/runs/${child}`)).status).toBe(200);
    const seam = `/v1/host/sample/test/runs/${root}/expire`;
    expect(await host.api(seam, { method: 'POST' })).toMatchObject({
      status: 409,
      body: { error: 'run_state_conflict', details: { why: 'open' } },
    });
    await answer(child);
    await host.waitFor(root, ended);
    await older([child], 30);
    await expire();
    for (const runId of [root, child])
      expect((await host.api(`/v1/runs/${runId}`)).status).toBe(200);
    await older([root, child], 30);
    await expire();
    for (const runId of [root, child]) await expectGone(runId);
  });

  it('a source stays for its fork, which has all that it needs when the source is gone', async () => {
    const source = await endedRun();
    const asking = await host.startRun({ workflowId: ASKS.id });
    await answer(asking);
    await host.waitFor(asking, ended);
    const open = await fork(asking, { mode: 'branch', fromSeq: 2 });
    await host.waitFor(open, ({ status }) => status === 'waiting-approval');
    const replay = await fork(source, { mode: 'replay', fromSeq: 0 });
    await host.waitFor(replay, ({ status }) => status === 'completed');
    await older([source, asking], 30);
    await expire();
    await expectGone(source);
    expect((await host.api(`/v1/runs/${asking}`)).status).toBe(200);
    // The fork's log comes back without its source, and it is forked in its turn, live from its last turn on.
    const { text } = await host.api(`/v1/runs/${replay}/events`);
    await host.log.rebuild(runRef(replay));
    expect((await host.api(`/v1/runs/${replay}/events`)).text).toBe(text);
    const rows = await host.stores.log.read(runRef(replay), { after: -1, limit: 1_000 });
    const returned = rows.find(({ type }) => type === 'agent.toolReturned')?.sequence ?? 0;
    const live = await fork(replay, { mode: 'branch', fromSeq: returned + 1 });
    await host.waitFor(live, ({ status }) => status === 'completed');
    await answer(open);
    await host.waitFor(open, ended);
    await older([asking], 1);
    await expire();
    await expectGone(asking);
  });

  it('the stream of a session goes on behind an event of a run that has expired; behind one of nobody it does not', async () => {
    const sessionId = `session-of-${Date.now()}`;
    const begun: string[] = [];
    for (const workflowId of [TOLD.id, TOLD.id]) {
      const runId = await host.startRun({ workflowId, sessionId });
      await host.waitFor(runId, ended);
      begun.push(runId);
    }
    const [old = '', left = ''] = begun;
    const [last] = (await host.stores.log.read(runRef(old), { after: -1, limit: 100 })).slice(-1);
    const streamed = async (lastEventId: string, of = sessionId) => {
      const path = `/v1/host/openwop-temporal/sessions/${of}/events?lastEventId=${lastEventId}`;
      const over = new AbortController();
      const answer = await fetch(`${host.url}${path}`, {
        ...{ headers: { authorization: `Bearer ${host.apiKey}` }, signal: over.signal },
      });
      const first = answer.status === 200 ? await answer.body?.getReader().read() : undefined;
      over.abort();
      return [answer.status, new TextDecoder().decode(first?.value as Uint8Array | undefined)];
    };
    expect(await streamed(`evt-${'0'.repeat(27)}`)).toEqual([400, '']);
    await older([old], 30);
    await expire();
    await expectGone(old);
    const [status, text] = await streamed(last?.eventId ?? '');
    expect([status, String(text).includes(left)]).toEqual([200, true]);
    expect(text).not.toContain(old);
  });

  /** Runs and their executions. */
  const forgotten: [string, string][] = [];

  it(
    'an archived run goes with its archive, and comes back from nowhere',
    { timeout: patient(180_000) },
    async () => {
      const runId = await endedRun();
      const { stores } = host;
      const segments = () => stores.segments.ofRun(runRef(runId));
      await until(
        async () => {
          const [segment] = await segments();
          return segment?.archive?.startsWith('sha256:') === true;
        },
        'the run is archived',
        { limitMs: ARCHIVES_MS },
      );
      const [{ archive = '', temporalRunId = '' } = {}] = await segments();
      forgotten.push([runId, temporalRunId]);
      await older([runId], 8);
      await expire();
      await expectGone(runId);
      await expect(stores.content.get('default', archive)).rejects.toMatchObject({
        code: 'content_missing',
      });
      await expect(host.log.rebuild(runRef(runId))).rejects.toMatchObject({
        code: 'run_not_found',
      });
      await expect(host.log.catchUp(runRef(runId))).rejects.toMatchObject({
        code: 'run_not_found',
      });
    },
  );

  it('a hold by the command line keeps a run; what expires is told', async () => {
    const runId = await endedRun();
    const cli = async (...args: string[]): Promise<[number, string]> => {
      const out: string[] = [];
      const keep = (text: string) => void out.push(text);
      const parts = { url: host.url, apiKey: host.apiKey, out: keep, err: keep };
      return [await runCli(args, parts), out.join('')];
    };
    expect(await cli('hold', runId, '--reason', 'Case 4711')).toEqual([
      0,
      `Run ${runId} is held: Case 4711\n`,
    ]);
    await older([runId], 30);
    await expire();
    expect((await host.api(`/v1/runs/${runId}`)).status).toBe(200);
    const [, told] = await cli('retention');
    expect(told).toContain('Runs are kept for ever (OPENWOP_RETENTION_DAYS is not set).');
    expect(told).toMatch(new RegExp(`${runId} .*held`));
    expect(await cli('release', runId)).toEqual([0, `Run ${runId} is not held.\n`]);
    await older([runId], 0);
    await expire();
    await expectGone(runId);
    expect((await cli('retention'))[1]).toMatch(new RegExp(`${runId} .*all`));
    expect((await cli('hold', runId, '--reason', 'late'))[1]).toContain('nothing of it is kept');
  });

  it(
    'Temporal has forgotten them all; to delete what it has forgotten is fine',
    { timeout: patient(600_000) },
    async () => {
      expect(gone.length).toBeGreaterThan(6);
      for (const runId of gone)
        await until(() => isForgotten(runId), `Temporal has forgotten ${runId}`, {
          limitMs: FORGETS_MS,
        });
      const { namespace } = host.temporal;
      const remover = createHistoryRemover({ connection: temporal, namespace });
      for (const [runId, temporalRunId] of forgotten) await remover.remove(runId, temporalRunId);
      const elsewhere = createHistoryRemover({ connection: temporal, namespace: 'no-such-one' });
      await expect(elsewhere.remove('run', 'execution')).rejects.toMatchObject({
        code: 'service_unavailable',
      });
    },
  );
});

describe.skipIf('missing' in postgres)(
  'architecture §3.7: a host with OPENWOP_RETENTION_DAYS',
  () => {
    it('says so, and lets runs expire by itself', async () => {
      if ('missing' in postgres) return;
      const url = await postgres.createDatabase();
      const folder = await mkdtemp(join(tmpdir(), 'openwop-retention-'));
      await writeDefinition(folder, ASKS);
      await writeDefinition(folder, chain('plain', [node('end', 'core.noop')]));
      const host = await startTestHost({
        ...{ databaseUrl: url, fixturesDir: folder, env: { OPENWOP_RETENTION_DAYS: '7' } },
        waits: { expiryRoundMs: 500 },
      });
      const { db, close } = await openDatabase({ kind: 'postgres', url }, quietLogger);
      try {
        const { body } = await host.api('/.well-known/openwop');
        expect(body).toMatchObject({
          production: {
            supported: false,
            retention: { supported: true, minWindowSeconds: 604_800, testForceExpire: false },
          },
          replay: { retention: { windowSeconds: 604_800 } },
        });
        const endedAgo = async (days: number): Promise<string> => {
          const runId = await host.startRun({ workflowId: 'plain' });
          await host.waitFor(runId, ({ status }) => status === 'completed');
          await db.query('UPDATE ended_runs SET ended_at_ms = ended_at_ms - $2 WHERE run_id = $1', [
            runId,
            days * DAY_MS,
          ]);
          return runId;
        };
        const expires = (runId: string) =>
          until(async () => (await host.api(`/v1/runs/${runId}`)).status === 410, 'it expires');
        const young = [await endedAgo(6), await endedAgo(0)];
        await expires(await endedAgo(8));
        // Another round later they are there still.
        await expires(await endedAgo(8));
        for (const runId of young) expect((await host.api(`/v1/runs/${runId}`)).status).toBe(200);
      } finally {
        await close();
        await host.stop();
        await rm(folder, { recursive: true, force: true });
      }
    });
  },
);
