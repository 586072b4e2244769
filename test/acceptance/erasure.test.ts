// Erasure of one subject's data by destroying its key (architecture §10.1) on a real host: what a run of the subject leaves is
// planted with words that are looked for afterwards, everywhere and with every key that there is.
import { createPublicKey, verify } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DatabaseOptions } from '../../src/adapters/postgres/index.ts';
import { canonicalJson, type JsonObject } from '../../src/rules/json.ts';
import type { RunEventDoc, RunSnapshot } from '../../schemas/types.generated.ts';
import { ended, expectLawful, readLog, waiting } from '../facade/suite-parts.ts';
import { agentNode, chain, node } from '../support/definitions.ts';
import {
  type ApiAnswer,
  type ApiClient,
  apiClient,
  spawnHost,
  startTestHost,
  TEST_API_KEY,
  until,
  type TestHost,
} from '../support/host.ts';
import { atRest, keysOf, planted, rawHistories, word } from '../support/planted.ts';
import { sharedDatabase } from '../support/shared-postgres.ts';
import { CACHE_DIR, startTestTemporal } from '../support/temporal.ts';
import { databaseTwins } from '../support/database-twins.ts';
import { patient } from '../support/machine.ts';

const HOST = '/v1/host/openwop-temporal';
const AGENT = 'local.erasure.desk.clerk';
const SUBJECT = 'anna@example.org';

const BUILT_IN = {
  definitions: [
    chain(
      'erasure-desk',
      [
        agentNode('clerk', AGENT, {
          inputs: { order: { type: 'variable', variableName: 'order' } },
        }),
        node('sub', 'core.subWorkflow', {
          config: { workflowId: 'erasure-child', inputMapping: { order: 'order' } },
        }),
      ],
      { variables: [{ name: 'order', type: 'string', required: true }] },
    ),
    chain('erasure-child', [node('gate', 'core.approvalGate', { config: { title: 'Send it?' } })], {
      variables: [{ name: 'order', type: 'string' }],
    }),
    chain('erasure-waits', [node('gate', 'core.approvalGate', { config: { title: 'Send it?' } })], {
      variables: [{ name: 'order', type: 'string' }],
    }),
  ],
  agents: [
    {
      manifest: {
        agentId: AGENT,
        persona: 'Clerk',
        modelClass: 'general' as const,
        systemPrompt: 'Decide.',
        toolAllowlist: ['test:lookup'],
      },
      packName: 'erasure',
      packVersion: '1.0.0',
      systemPrompt: 'Decide.',
    },
  ],
  scripts: {
    [AGENT]: {
      turns: [
        { calls: [{ toolId: 'test:lookup', arguments: { name: word('argument') } }] },
        {
          chunks: ['I think ', `of ${word('reasoning')}`, '. So be it. '],
          final: { decision: { note: word('decision') }, confidence: 0.4 },
        },
      ],
    },
  },
  tools: [
    {
      toolId: 'test:lookup',
      description: 'Looks up.',
      inputSchema: { type: 'object', properties: { name: { type: 'string' } } },
      idempotent: true,
      timeoutMs: 5_000,
      transport: 'http' as const,
      safetyTier: 'read' as const,
      call: async () => ({ found: word('result') }),
    },
  ],
};

interface Erasure extends JsonObject {
  readonly erasureId: string;
  readonly state: string;
  readonly receipt: JsonObject & { logs: { runs: number; events: number; root: string } };
  readonly signature: { readonly publicKey: string; readonly value: string };
}

type Erased = Erasure & { error?: string; details?: JsonObject };

/** With its receipt, however long the erasure goes on behind the request. */
async function erase(host: TestHost, body: object, key = ''): Promise<ApiAnswer<Erased>> {
  const asked = await host.api<Erased>(`${HOST}/subjects:erase`, {
    body,
    headers: { 'idempotency-key': key },
  });
  if (asked.status !== 200 || asked.body.state === 'erased') return asked;
  let told = asked;
  await until(async () => {
    told = await host.api<Erased>(`${HOST}/erasures/${asked.body.erasureId}`);
    return told.body.state === 'erased';
  }, 'the erasure is done');
  return told;
}

/** Everything that a subject may say to a run, and a run about a subject. Ends when the run has ended. */
async function plant(host: TestHost, dataSubject: string | undefined): Promise<string[]> {
  const runId = await host.startRun(
    {
      workflowId: 'erasure-desk',
      inputs: { order: word('input') },
      metadata: { note: word('metadata') },
      tags: [word('tag')],
      sessionId: `talk-${dataSubject ? 'subject' : 'nobody'}`,
      sessionTitle: word('title'),
      ...(dataSubject === undefined ? {} : { dataSubject }),
    },
    { 'idempotency-key': `plant-${dataSubject}` },
  );
  await host.waitFor(runId, waiting);
  const answer = { action: 'edit-accept', decision: { note: word('answer') } };
  await host.api(`/v1/runs/${runId}/interrupts/clerk`, {
    body: { resumeValue: answer },
    headers: { 'idempotency-key': `answer-${dataSubject}` },
  });
  const childRunId = await childOf(host, runId);
  await host.waitFor(childRunId, waiting);
  await host.api(`/v1/runs/${childRunId}/interrupts/gate`, {
    body: { resumeValue: { action: 'accept', feedback: word('feedback') } },
  });
  await host.waitFor(runId, ended);
  return [runId, childRunId];
}

async function childOf(host: TestHost, runId: string): Promise<string> {
  let found: string | undefined;
  await until(async () => {
    const { body } = await host.api<{ runs: { runId: string }[] }>(
      `${HOST}/runs/${runId}/children`,
    );
    found = body.runs[0]?.runId;
    return found !== undefined;
  }, 'the child is there');
  return found ?? '';
}

/** Says something in the session of the subject, which names no subject itself. */
async function say(host: TestHost, sessionId: string): Promise<string> {
  const { body, status, text } = await host.api<{ runId: string }>(
    `${HOST}/sessions/${sessionId}/messages`,
    { body: { content: `@${AGENT} ${word('said')}` } },
  );
  expect([status, text]).toEqual([201, expect.anything()]);
  await host.waitFor(body.runId, waiting);
  await host.api(`/v1/runs/${body.runId}/interrupts/agent`, {
    body: { resumeValue: { action: 'accept' } },
  });
  await host.waitFor(body.runId, ended);
  return body.runId;
}

/** Starts the agent alone, with an input whose name the caller chose. */
async function invoke(host: TestHost): Promise<string> {
  const inputs = { [word('name')]: word('value') };
  const runId = await host.startRun({ agentId: AGENT, inputs, dataSubject: SUBJECT });
  await host.waitFor(runId, waiting);
  await host.api(`/v1/runs/${runId}/interrupts/agent`, {
    body: { resumeValue: { action: 'accept' } },
  });
  await host.waitFor(runId, ended);
  return runId;
}

function databaseOf(dataDir: string, url: string | undefined): DatabaseOptions {
  return url === undefined
    ? { kind: 'pglite', dir: join(dataDir, 'postgres') }
    : { kind: 'postgres', url };
}

async function reads(host: TestHost, runId: string): Promise<string> {
  const paths = [
    `/v1/runs/${runId}`,
    `/v1/runs/${runId}/events`,
    `/v1/runs/${runId}/events/poll`,
    `/v1/runs/${runId}/debug-bundle`,
    `/v1/runs?limit=50`,
    `${HOST}/runs?limit=50`,
    `${HOST}/runs/${runId}/at/3`,
    `${HOST}/runs/${runId}/children`,
    `${HOST}/sessions`,
    `${HOST}/sessions/talk-subject`,
    `${HOST}/sessions/talk-subject/conversation`,
  ];
  const answers = await Promise.all(
    paths.map(async (path) => {
      const { status, text } = await host.api(path, { headers: { accept: 'application/json' } });
      expect([path, status]).toEqual([path, 200]);
      return text;
    }),
  );
  return answers.join('\n');
}

const twins = await databaseTwins();

describe.each(twins)('a subject on %s', (name, empty) => {
  /** What the host makes of a subject is held on one twin; what the database keeps of it, on both. */
  const isWhole = name === twins.at(-1)?.[0];
  const itOnce = isWhole ? it : () => undefined;
  let host: TestHost;
  let url: string | undefined;
  let dataDir: string;
  let runIds: string[] = [];
  let before: RunEventDoc[] = [];
  let erased: Erasure;
  let rootBefore: string;

  beforeAll(async () => {
    const database = await empty();
    url = database.kind === 'postgres' ? database.url : undefined;
    dataDir = await mkdtemp(join(tmpdir(), 'openwop-erasure-'));
    host = await startTestHost({
      ...{ builtIn: BUILT_IN, encryption: true, dataDir },
      ...(url === undefined ? {} : { databaseUrl: url }),
    });
    const own = await plant(host, SUBJECT);
    runIds = [...own, await say(host, 'talk-subject'), await invoke(host)];
    before = (await readLog(host, runIds[0] ?? '')).events;
  });
  afterAll(async () => {
    await host.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  const integrity = async (runId: string) =>
    (
      await host.api<{ root: string; events: number; isIntact?: boolean }>(
        `${HOST}/runs/${runId}/integrity`,
      )
    ).body;

  it('is read as any run is, while its key is there', async () => {
    const shown = await reads(host, runIds[0] ?? '');
    for (const place of [
      'input',
      'metadata',
      'tag',
      'title',
      'argument',
      'result',
      'reasoning',
      'decision',
      'answer',
      'said',
    ])
      expect([place, shown.includes(word(place))]).toEqual([place, true]);
    expect((await reads(host, runIds[1] ?? '')).includes(word('feedback'))).toBe(true);
    expect((await reads(host, runIds[3] ?? '')).includes(word('name'))).toBe(true);
    rootBefore = (await integrity(runIds[0] ?? '')).root;
  });

  itOnce(
    'every payload of its histories is sealed with its key, children and later runs of its session included',
    async () => {
      const raw = await rawHistories(host, runIds);
      expect([...keysOf(raw)]).toEqual(['subject']);
      expect(planted(raw.toString('latin1'))).toEqual([]);
    },
  );

  itOnce('a rebuild gives the same digest', async () => {
    const run = await host.stores.runs.locate(runIds[0] ?? '');
    if (!run) throw new Error('no run');
    await host.log.rebuild(run);
    expect((await integrity(runIds[0] ?? '')).root).toBe(rootBefore);
  });

  it('an open run of the subject stands in the way, unless it is to be cancelled', async () => {
    const open = await host.startRun({ workflowId: 'erasure-waits', dataSubject: SUBJECT });
    await host.waitFor(open, waiting);
    const refused = await erase(host, { dataSubject: SUBJECT });
    expect([refused.status, refused.body.error]).toEqual([409, 'run_state_conflict']);
    expect(refused.body.details).toMatchObject({ openRuns: [open] });
    const { status, body } = await erase(
      host,
      { dataSubject: SUBJECT, cancelOpen: true, reason: 'asked' },
      'erase-1',
    );
    expect([status, body.state]).toEqual([200, 'erased']);
    erased = body;
    expect((await host.api<RunSnapshot>(`/v1/runs/${open}`)).body.status).toBe('cancelled');
    runIds.push(open);
  });

  itOnce('the receipt is signed, names runs and roots, and is told again', async () => {
    const { receipt, signature } = erased;
    expect(receipt).toMatchObject({ reason: 'asked', logs: { runs: runIds.length } });
    expect((receipt.runs as { runId: string }[]).map(({ runId }) => runId).sort()).toEqual(
      [...runIds].sort(),
    );
    const key = createPublicKey({
      key: Buffer.from(signature.publicKey, 'base64'),
      type: 'spki',
      format: 'der',
    });
    const isSigned = (text: string) =>
      verify(null, Buffer.from(text), key, Buffer.from(signature.value, 'base64'));
    expect(isSigned(canonicalJson(receipt))).toBe(true);
    expect(isSigned(canonicalJson({ ...receipt, tenant: 'other' }))).toBe(false);
    const again = await erase(
      host,
      { dataSubject: SUBJECT, cancelOpen: true, reason: 'asked' },
      'erase-1',
    );
    expect(again.body).toEqual(erased);
    expect((await erase(host, { dataSubject: SUBJECT })).body).toEqual(erased);
    expect((await host.api(`${HOST}/erasures/${erased.erasureId}`)).body).toEqual(erased);
    expect(JSON.stringify(erased)).not.toContain(SUBJECT);
  });

  itOnce('its runs are there with their structure, and say nothing', async () => {
    for (const runId of runIds) {
      expect(planted(await reads(host, runId))).toEqual([]);
      const { events } = await readLog(host, runId);
      expectLawful(events);
      expect(events.every((event) => (event as { erased?: true }).erased)).toBe(true);
    }
    const after = (await readLog(host, runIds[0] ?? '')).events;
    const structure = ({ payload: _p, erased: _e, ...event }: RunEventDoc & { erased?: true }) =>
      event;
    expect(after.map(structure)).toEqual(before.map(structure));
    const { body } = await host.api<RunSnapshot>(`/v1/runs/${runIds[0]}`);
    expect(body).toMatchObject({
      status: 'completed',
      erasedAt: expect.any(String) as string,
      variables: {},
      inputs: {},
    });
    expect(body.nodeStates).toMatchObject({
      clerk: { status: 'completed' },
      sub: { status: 'completed' },
    });
  });

  itOnce(
    'its logs are those of the receipt, also when they were dropped and come back',
    async () => {
      const [runId = ''] = runIds;
      const told = (erased.receipt.runs as { runId: string; root: string }[]).find(
        (run) => run.runId === runId,
      );
      expect(await integrity(runId)).toMatchObject({ root: told?.root, isIntact: true });
      expect(told?.root).toBe(rootBefore);
      const { text } = await readLog(host, runId);
      const run = await host.stores.runs.locate(runId);
      if (!run) throw new Error('no run');
      await host.log.rebuild(run);
      expect((await readLog(host, runId)).text).toBe(text);
      expect(await integrity(runId)).toMatchObject({ root: rootBefore, isIntact: true });
    },
  );

  itOnce('it is compared with another run, and exported by nobody', async () => {
    const [a = '', b = ''] = [runIds[0], runIds[2]];
    const diff = await host.api(`/v1/runs/${a}:diff?against=${b}`);
    expect(diff.status).toBe(200);
    expect(planted(diff.text)).toEqual([]);
    const bundle = await host.api<{ error: string }>(`${HOST}/runs/${a}/bundle`);
    expect([bundle.status, bundle.body.error]).toEqual([410, 'subject_erased']);
  });

  itOnce('no fork is made of what is gone', async () => {
    for (const body of [{ mode: 'replay' }, { mode: 'branch', fromSeq: 0 }]) {
      const { status, body: told } = await host.api<{ error: string }>(
        `/v1/runs/${runIds[0]}:fork`,
        { body },
      );
      expect([status, told.error]).toEqual([410, 'subject_erased']);
    }
  });

  itOnce('who comes back has another key', async () => {
    const runId = await host.startRun({
      workflowId: 'erasure-waits',
      dataSubject: SUBJECT,
      inputs: { order: word('again') },
    });
    await host.waitFor(runId, waiting);
    expect(JSON.stringify((await host.api(`/v1/runs/${runId}`)).body)).toContain(word('again'));
    const { body } = await erase(host, { dataSubject: SUBJECT, cancelOpen: true });
    expect(body).toMatchObject({ state: 'erased', receipt: { logs: { runs: 1 } } });
    expect(body.erasureId).not.toBe(erased.erasureId);
  });

  // [I84]
  it('nothing planted is left, in the database, in files, in histories', async () => {
    const raw = await rawHistories(host, runIds);
    expect(planted(raw.toString('latin1'))).toEqual([]);
    await host.stop();
    expect(planted(await atRest(databaseOf(dataDir, url), dataDir))).toEqual([]);
  });
});

describe('a process that is killed while it erases', () => {
  const FIXTURE = chain(
    'erasure-killed',
    [node('gate', 'core.approvalGate', { config: { title: 'Send it?' } })],
    { variables: [{ name: 'order', type: 'string' }] },
  );

  // Before each of its steps without a process: test/adapters/postgres-erasing.test.ts.
  it(
    'its key being forgotten: the run is erased, and the next process gives the receipt',
    { timeout: patient(180_000) },
    async () => {
      const shared = await startTestTemporal();
      const dataDir = await mkdtemp(join(tmpdir(), 'openwop-erasure-'));
      const fixturesDir = await mkdtemp(join(tmpdir(), 'openwop-erasure-'));
      await writeFile(join(fixturesDir, 'killed.json'), JSON.stringify(FIXTURE));
      const env = {
        ...{ OPENWOP_PORT: '0', OPENWOP_DATA_DIR: dataDir, OPENWOP_CACHE_DIR: CACHE_DIR },
        ...{ OPENWOP_API_KEY: TEST_API_KEY, OPENWOP_FIXTURES_DIR: fixturesDir },
        ...{ TEMPORAL_ADDRESS: shared.address, TEMPORAL_NAMESPACE: await shared.namespace() },
        // Beside it no demo is played at each start.
        DATABASE_URL: await sharedDatabase(),
        OPENWOP_ENCRYPTION_KEYS: `k:${Buffer.alloc(32, 3).toString('base64')}`,
      };
      const first = await spawnHost('start', env);
      const before = apiClient(first.url, TEST_API_KEY);
      const runId = await before.startRun({
        ...{ workflowId: FIXTURE.id, dataSubject: SUBJECT, inputs: { order: word('input') } },
      });
      await before.waitFor(runId, waiting);
      const asked = before
        .api(`${HOST}/subjects:erase`, { body: { dataSubject: SUBJECT, cancelOpen: true } })
        .catch(() => undefined);
      const erasureOn = async (client: ApiClient) =>
        (await client.api<{ erasures: Erasure[] }>(`${HOST}/erasures`)).body.erasures[0];
      // For six seconds.
      await until(async () => (await erasureOn(before))?.state === 'destroyed', 'the key is gone');
      await first.kill('SIGKILL');
      await asked;
      const second = await spawnHost('start', env);
      const after = apiClient(second.url, TEST_API_KEY);
      await until(async () => (await erasureOn(after))?.state === 'erased', 'the erasure is done');
      expect((await erasureOn(after))?.receipt.logs.runs).toBe(1);
      const shown = (await after.api<RunSnapshot>(`/v1/runs/${runId}`)).body;
      expect(planted(JSON.stringify(shown))).toEqual([]);
      expect(shown.erasedAt).toBeDefined();
      await second.kill('SIGKILL');
      await shared.stop();
      await rm(dataDir, { recursive: true, force: true });
      await rm(fixturesDir, { recursive: true, force: true });
    },
  );
});

describe('the search for planted words', () => {
  it('finds them where a run names no subject', async () => {
    const dataDir = await mkdtemp(join(tmpdir(), 'openwop-erasure-'));
    const host = await startTestHost({ builtIn: BUILT_IN, encryption: true, dataDir });
    try {
      const runIds = await plant(host, undefined);
      expect([...keysOf(await rawHistories(host, runIds))]).toEqual(['new']);
      await host.stop();
      const found = planted(await atRest(databaseOf(dataDir, undefined), dataDir)).join('\n');
      for (const place of ['input', 'metadata', 'tag', 'title', 'result', 'reasoning', 'answer'])
        expect([place, found.includes(word(place))]).toEqual([place, true]);
    } finally {
      await host.stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
