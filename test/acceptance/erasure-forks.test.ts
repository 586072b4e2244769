// What is made of a subject's runs is that subject's too (architecture §10.1): forks, forks of forks and of children, each
// with its own children, end with the same key; cohorts take none of them; and what was erased expires as any run does.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase, type OpenDatabase } from '../../src/adapters/postgres/index.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { createHistoryRemover } from '../../src/adapters/temporal/history-remover.ts';
import { createExpirer } from '../../src/log/expirer.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import { tablesWith } from '../contract/retention.ts';
import { ended, waiting } from '../facade/suite-parts.ts';
import { childrenOf } from '../support/children.ts';
import { agentNode, chain, node } from '../support/definitions.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { atRest, keysOf, planted, rawHistories, word } from '../support/planted.ts';
import { sharePostgres } from '../support/shared-postgres.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { runRef } from '../support/run-ref.ts';

const HOST = '/v1/host/openwop-temporal';
const [DESK, CHILD] = ['erased-desk', 'erased-child'];
const AGENT = 'local.erased.clerk';
const SUBJECT = 'bert@example.org';
const DAY_MS = 24 * 3_600_000;
const variables = [{ name: 'order', type: 'string' as const }];

const DEFINITIONS = [
  chain(
    DESK,
    [
      agentNode('clerk', AGENT, { inputs: { order: { type: 'variable', variableName: 'order' } } }),
      node('sub', 'core.subWorkflow', {
        config: { workflowId: CHILD, inputMapping: { order: 'order' } },
      }),
    ],
    { variables },
  ),
  chain(CHILD, [node('gate', 'core.approvalGate', { config: { title: 'Send it?' } })], {
    variables,
  }),
];
const CLERK: ResolvedAgent = {
  ...{ packName: 'erased', packVersion: '1.0.0', systemPrompt: 'Decide.' },
  manifest: {
    ...{ agentId: AGENT, persona: 'Clerk', modelClass: 'general', systemPrompt: 'Decide.' },
  },
};
const SCRIPT = {
  turns: [
    { chunks: [`Of ${word('reasoning')}.`], final: { decision: word('decision'), confidence: 1 } },
  ],
};

interface Erasure {
  readonly erasureId: string;
  readonly state: string;
  readonly receipt: JsonObject;
}

const postgres = await sharePostgres();
afterAll(async () => {
  if (!('missing' in postgres)) await postgres.stop();
});

describe.skipIf('missing' in postgres)(
  'architecture §10.1: what is made of a subject’s runs',
  () => {
    let host: TestHost;
    let url: string;
    let dataDir: string;
    let db: OpenDatabase;
    let temporal: ReturnType<typeof connectTemporal>;
    let [source, child, foreign] = ['', '', ''];
    /** By what they are. */
    const forks: Record<string, string> = {};
    let all: string[] = [];
    let told: Erasure;

    async function run(dataSubject?: string): Promise<[string, string]> {
      const runId = await host.startRun({
        ...{ workflowId: DESK, inputs: { order: word('input') } },
        ...(dataSubject === undefined ? {} : { dataSubject }),
      });
      const [below = ''] = await childrenOf(host, runId);
      await answer(below);
      await host.waitFor(runId, ended);
      return [runId, below];
    }

    async function answer(runId: string): Promise<void> {
      await host.waitFor(runId, waiting);
      const body = { resumeValue: { action: 'accept', feedback: word('feedback') } };
      expect((await host.api(`/v1/runs/${runId}/interrupts/gate`, { body })).status).toBe(200);
    }

    async function belowOf(runId: string): Promise<string[]> {
      const { runs } = await host.stores.families.children(runRef(runId), { limit: 10 });
      return runs.map((one) => one.runId);
    }

    async function fork(of: string, body: object): Promise<string> {
      const answered = await host.api<{ runId: string }>(`/v1/runs/${of}:fork`, { body });
      expect([answered.status, answered.text]).toEqual([201, expect.anything()]);
      return answered.body.runId;
    }

    const cohort = (select: object) =>
      host.api<{ cohortId: string; error?: string; members?: number }>(`${HOST}/cohorts`, {
        body: { select },
      });

    beforeAll(async () => {
      if ('missing' in postgres) throw new Error(postgres.missing);
      dataDir = await mkdtemp(join(tmpdir(), 'openwop-erased-'));
      url = await postgres.createDatabase();
      host = await startTestHost({
        builtIn: { definitions: DEFINITIONS, agents: [CLERK], scripts: { [AGENT]: SCRIPT } },
        ...{ databaseUrl: url, encryption: true, dataDir },
      });
      db = await openDatabase({ kind: 'postgres', url }, quietLogger);
      temporal = connectTemporal(host.temporal);
      [source, child] = await run(SUBJECT);
    });
    afterAll(async () => {
      await db?.close();
      await temporal?.close();
      await host?.stop();
      await rm(dataDir, { recursive: true, force: true });
    });

    // [I88]
    it('a fork, one of it, one of a child and one that lives on are sealed with the same key, and so are their children', async () => {
      forks.replay = await fork(source, { mode: 'replay' });
      await host.waitFor(forks.replay, ended);
      forks.again = await fork(forks.replay, { mode: 'replay' });
      forks.child = await fork(child, { mode: 'replay' });
      const runOptionsOverlay = {
        inputs: { order: word('overlay') },
        agents: { [AGENT]: { systemPrompt: `Decide by ${word('prompt')}.` } },
      };
      forks.live = await fork(source, { mode: 'branch', fromSeq: 0, runOptionsOverlay });
      const [liveChild = ''] = await childrenOf(host, forks.live);
      await answer(liveChild);
      for (const runId of Object.values(forks)) await host.waitFor(runId, ended);
      const below = await Promise.all(Object.values(forks).map(belowOf));
      all = [source, child, ...Object.values(forks), ...below.flat()];
      const keys = await db.db.query<{ key_id: string }>(
        'SELECT DISTINCT subject_key AS key_id FROM runs WHERE run_id = ANY($1::text[])',
        [all],
      );
      expect([all.length, keys]).toEqual([
        9,
        [{ key_id: expect.stringMatching(/^sk-/) as unknown }],
      ]);
      const raw = await rawHistories(host, all);
      expect([[...keysOf(raw)], planted(raw.toString('latin1'))]).toEqual([['subject'], []]);
      expect((await host.api(`/v1/runs/${forks.live}`)).text).toContain(word('overlay'));
    });

    // [I89]
    it('no cohort takes a run of a subject', async () => {
      const none = await cohort({ workflowId: DESK });
      expect([none.status, none.body.error]).toEqual([400, 'validation_error']);
      [foreign] = await run();
      const { status, body } = await cohort({ workflowId: DESK });
      expect([status, body.members]).toEqual([201, 1]);
      const { rows } = await membersOf(body.cohortId);
      expect(rows).toEqual([{ source_run_id: foreign }]);
    });

    const membersOf = async (cohortId: string) => ({
      rows: await db.db.query<{ source_run_id: string }>(
        'SELECT source_run_id FROM cohort_members WHERE cohort_id = $1',
        [cohortId],
      ),
    });

    it('one that is asked for while its subject is erased is erased with it, or refused by name', async () => {
      const dataSubject = 'customer-of-a-race';
      const [runId] = await run(dataSubject);
      const made: string[] = [];
      const refused = new Set<string>();
      let isErased = false;
      const asking = (async () => {
        while (!isErased) {
          const path = `/v1/runs/${runId}:fork`;
          const { status, body } = await host.api<{ runId: string; error?: string }>(path, {
            body: { mode: 'replay' },
          });
          if (status === 201) made.push(body.runId);
          else refused.add(body.error ?? '');
        }
      })();
      await until(async () => made.length > 0, 'a fork is made');
      const asked = await host.api<Erasure>(`${HOST}/subjects:erase`, {
        body: { dataSubject, cancelOpen: true },
      });
      let erased = asked.body;
      await until(async () => {
        erased = (await host.api<Erasure>(`${HOST}/erasures/${asked.body.erasureId}`)).body;
        return erased.state === 'erased';
      }, 'the erasure is done').finally(() => (isErased = true));
      await asking;
      expect([...refused].filter((code) => !/^subject_eras(ed|ing)$/.test(code))).toEqual([]);
      const named = (erased.receipt.runs as { runId: string }[]).map((one) => one.runId);
      for (const forkId of made) {
        expect(named).toContain(forkId);
        expect(planted((await host.api(`/v1/runs/${forkId}`)).text)).toEqual([]);
      }
    });

    it('are erased with it: each is in the receipt, and refuses what needs what was said', async () => {
      const asked = await host.api<Erasure>(`${HOST}/subjects:erase`, {
        body: { dataSubject: SUBJECT },
      });
      expect([asked.status, asked.text]).toEqual([200, expect.anything()]);
      // It goes on behind the request.
      await until(async () => {
        told = (await host.api<Erasure>(`${HOST}/erasures/${asked.body.erasureId}`)).body;
        return told.state === 'erased';
      }, 'the erasure is done');
      const named = told.receipt.runs as { runId: string }[];
      expect(named.map(({ runId }) => runId).sort()).toEqual([...all].sort());
      for (const runId of all) {
        const log = await host.api(`/v1/runs/${runId}/events/poll`);
        expect([log.status, planted(log.text)]).toEqual([200, []]);
        expect(planted((await host.api(`/v1/runs/${runId}`)).text)).toEqual([]);
        for (const refused of [
          await host.api(`/v1/runs/${runId}:fork`, { body: { mode: 'replay' } }),
          await host.api(`${HOST}/runs/${runId}/bundle`),
        ])
          expect([refused.status, refused.body.error]).toEqual([410, 'subject_erased']);
      }
      const diff = await host.api(`/v1/runs/${source}:diff?against=${forks.live}`);
      expect([diff.status, planted(diff.text)]).toEqual([200, []]);
    });

    it('an erased run expires, and its receipt stays', async () => {
      await db.db.query(
        'UPDATE ended_runs SET ended_at_ms = ended_at_ms - $2, look_at_ms = 0 WHERE run_id = ANY($1::text[])',
        [all, 30 * DAY_MS],
      );
      // The keys that their clients used have served their time, too.
      await host.stores.idempotency.expire(0);
      const expirer = createExpirer({
        stores: host.stores,
        engine: { ping: async () => undefined },
        histories: createHistoryRemover({
          connection: temporal,
          namespace: host.temporal.namespace,
        }),
        ...{ logger: quietLogger, keptMs: 7 * DAY_MS, restMs: 0 },
      });
      while (await expirer.round());
      await expirer.round();
      for (const runId of all) {
        expect([runId, await tablesWith(db.db, runRef(runId))]).toEqual([runId, []]);
        for (const path of [`/v1/runs/${runId}`, `${HOST}/runs/${runId}/integrity`])
          expect(await host.api(path)).toMatchObject({
            ...{ status: 410, body: { details: { reason: 'retention_expired' } } },
          });
      }
      expect((await host.api(`${HOST}/erasures/${told.erasureId}`)).body).toEqual(told);
      // Whoever asks again is told the same: there is nothing else to erase.
      const again = await host.api(`${HOST}/subjects:erase`, { body: { dataSubject: SUBJECT } });
      expect(again.body).toEqual(told);
      expect((await host.api(`/v1/runs/${foreign}`)).status).toBe(200);
    });

    it('nothing planted is left of them', async () => {
      const ofSubject = await db.db.query(
        "SELECT FROM contents WHERE bytes::text LIKE '%openwop-sealed%'",
      );
      expect(ofSubject).toEqual([]);
      await host.stop();
      // What the run says that names no subject is found beside it.
      const left = planted(await atRest({ kind: 'postgres', url }, dataDir)).join('\n');
      for (const place of ['overlay', 'prompt'])
        expect([place, left.includes(word(place))]).toEqual([place, false]);
      expect(left).toContain(word('input'));
    });
  },
);
