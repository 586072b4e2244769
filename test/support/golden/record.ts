// Records runs of the real host into test/histories/recorded, and cohorts into recorded-cohorts beside it: `npm run record`. What is
// there is kept for ever (architecture §8); a name that exists is recorded again only when its file was deleted first,
// which only a release that no run outlives may do.
import { existsSync, mkdtempSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@temporalio/client';
import proto from '@temporalio/proto';
import { connectTemporal } from '../../../src/adapters/temporal/connection.ts';
import { createHistoryReader } from '../../../src/adapters/temporal/history.ts';
import { createEncryption } from '../../../src/adapters/temporal/codec.ts';
import { createDemo, demoRunRequest } from '../../../src/demo/index.ts';
import type { ResolvedAgent } from '../../../src/ports/catalog.ts';
import type { LogRow } from '../../../src/ports/log.ts';
import type { JsonValue } from '../../../src/rules/json.ts';
import { ringOf } from '../../../src/rules/key-ring.ts';
import type { Tool } from '../../../src/ports/tools.ts';
import type { AgentScript, Cohort } from '../../../schemas/types.generated.ts';
import { agentNode, chain, definition, edge, node, runInput } from '../definitions.ts';
import { startTestHost, until, type TestHost, type TestHostOptions } from '../host.ts';
import { startTestTemporal } from '../temporal.ts';
import { RECORDED, RECORDED_COHORTS, type CohortRecording, type Recording } from './recording.ts';
import { runRef } from '../run-ref.ts';

const TRIAGE = 'local.demo.refund-desk.triage';
const PAYER = 'local.golden.payments.payer';
const PAY = 'golden:pay';
const [BOSS, CALLER, HELPER] = [
  'local.golden.family.boss',
  'local.golden.family.caller',
  'local.golden.family.helper',
];
const gates = [
  node('gate', 'core.approvalGate', { config: { title: 'May I?' } }),
  node('end', 'core.end'),
];
const bossNode = (id: string, step: number) =>
  node(id, 'core.orchestrator.supervisor', {
    agent: { agentId: BOSS },
    inputs: { step: { type: 'static', value: step } },
  });
const DEFINITIONS = [
  definition(
    'golden-branches',
    [
      node('set', 'core.setVariable', { config: { variableName: 'n', value: 3 } }),
      node('a', 'core.delay', { config: { ms: 100 } }),
      node('b', 'core.delay', { config: { ms: 20 } }),
      node('never', 'core.noop'),
      node('join', 'core.end'),
    ],
    [
      edge('set', 'a'),
      edge('set', 'b'),
      edge('set', 'never', { condition: { type: 'equals', left: 'n', right: 4 } }),
      edge('a', 'join'),
      edge('b', 'join'),
      edge('never', 'join'),
    ],
    { variables: [{ name: 'n', type: 'number' }] },
  ),
  definition(
    'golden-loop',
    [
      node('try', 'core.fail', { settings: { retry: { maxAttempts: 2, initialDelayMs: 10 } } }),
      node('mend', 'core.noop'),
      node('check', 'core.conditional'),
      node('end', 'core.end'),
    ],
    [
      edge('try', 'mend', { triggerRule: 'any_failed' }),
      edge('mend', 'check'),
      edge('check', 'mend', { condition: { type: 'truthy', left: 'again' } }),
      edge('check', 'end'),
    ],
    {
      variables: [{ name: 'again', type: 'boolean', defaultValue: true }],
      settings: { maxLoopbackIterations: 2 },
    },
  ),
  chain('golden-approval', gates),
  chain('golden-timed', [
    node('gate', 'core.approvalGate', {
      config: { title: 'May I?' },
      settings: { timeoutMs: 3_600_000 },
    }),
  ]),
  chain('golden-asks-at-once', [agentNode('think', PAYER)]),
  chain(
    'golden-quick',
    [node('set', 'core.setVariable', { config: { variableName: 'n', value: 3 } })],
    {
      variables: [{ name: 'n', type: 'number' }],
    },
  ),
  chain(
    'golden-family',
    [
      node('sub', 'core.subWorkflow', {
        config: { workflowId: 'golden-quick', outputMapping: { n: 'n' } },
      }),
      agentNode('call', CALLER),
      bossNode('first', 1),
      node('race', 'core.dispatch', {
        config: { fanOutPolicy: 'parallel', joinPolicy: { mode: 'race' } },
      }),
      bossNode('second', 2),
      node('turns', 'core.dispatch'),
      bossNode('third', 3),
      node('end', 'core.dispatch'),
    ],
    { variables: [{ name: 'n', type: 'number' }] },
  ),
  chain('golden-segments', [
    agentNode('think', TRIAGE, {
      inputs: {
        orderId: { type: 'static', value: 'A-1007' },
        message: { type: 'static', value: 'Broken.' },
      },
    }),
    ...gates,
  ]),
];

const agentOf = (agentId: string, toolAllowlist: string[]): ResolvedAgent => ({
  manifest: {
    ...{ agentId, persona: 'Player', modelClass: 'reasoning', systemPrompt: 'You play a part.' },
    ...{ toolAllowlist, confidence: { defaultThreshold: 0.5 } },
  },
  packName: 'local.golden',
  packVersion: '1.0.0',
  systemPrompt: 'You play a part.',
});
const AGENTS = [
  agentOf(PAYER, [PAY]),
  agentOf(BOSS, []),
  agentOf(CALLER, [`agent:${HELPER}`, `handoff:${HELPER}`]),
  agentOf(HELPER, []),
];

const decides = (decision: JsonValue, confidence = 0.9) => ({ final: { decision, confidence } });
const orders = (step: number, nextWorkerIds: string[]) => ({
  ...{ path: 'task.step', equals: step },
  turn: decides({ kind: 'next-worker', nextWorkerIds }),
});
const FAMILY: Record<string, AgentScript> = {
  [BOSS]: {
    turns: [
      {
        cases: [
          orders(1, ['golden-quick', 'golden-approval']),
          orders(2, ['golden-quick', `agent:${HELPER}`, 'golden-nobody']),
        ],
        ...decides({ kind: 'terminate', reason: 'all is done' }),
      },
    ],
  },
  [CALLER]: {
    turns: [
      { calls: [1, 2].map((n) => ({ toolId: `agent:${HELPER}`, arguments: { n } })) as never },
      { calls: [{ toolId: `handoff:${HELPER}`, arguments: { task: { n: 3 }, reason: 'Yours.' } }] },
    ],
  },
  [HELPER]: { turns: [{ chunks: ['Let ', 'me ', 'see.'], ...decides({ seen: true }) }] },
};

/** One turn, two payments. */
const payments: AgentScript = {
  turns: [
    { calls: ['one', 'two'].map((to) => ({ toolId: PAY, arguments: { to } })) as AgentScriptCalls },
    { final: { decision: { paid: true }, confidence: 0.9 } },
  ],
};
type AgentScriptCalls = NonNullable<AgentScript['turns'][number]['calls']>;

const attempted = new Set<string>();
/** Pays, and fails to say so the first time for each key: a human is asked. */
const pay: Tool = {
  toolId: PAY,
  description: 'Pays.',
  inputSchema: { type: 'object' },
  idempotent: false,
  timeoutMs: 5_000,
  transport: 'native',
  safetyTier: 'write',
  async call(_input, { idempotencyKey }) {
    if (attempted.has(idempotencyKey)) return { paid: true };
    attempted.add(idempotencyKey);
    throw new Error('The connection was lost.');
  },
};

const answers = { accept: { action: 'accept' }, more: { answers: { note: 'A loyal customer.' } } };

async function answered(
  host: TestHost,
  runId: string,
  nodeId: string,
  resumeValue: unknown,
): Promise<void> {
  await host.waitFor(
    runId,
    ({ currentNodeId, status }) => currentNodeId === nodeId && status.startsWith('waiting'),
  );
  const answer = await host.api(`/v1/runs/${runId}/interrupts/${nodeId}`, {
    body: { resumeValue },
  });
  if (answer.status !== 200) throw new Error(`${nodeId}: ${answer.text}`);
}

/** The questions of a run, as soon as so many were asked. */
async function openQuestions(host: TestHost, runId: string, count: number): Promise<string[]> {
  for (;;) {
    const rows = await host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });
    const asked = rows.filter(({ type }) => type === 'node.suspended');
    if (asked.length === count)
      return asked.map(
        ({ payload }) => (JSON.parse(payload) as { interruptId: string }).interruptId,
      );
    await sleep(50);
  }
}

/** A run whose segments are forced: only its start input can ask for that. */
async function startForced(
  host: TestHost,
  workflowId: string,
  agentIds: readonly string[] = [TRIAGE],
): Promise<string> {
  const workflow = host.catalog.definition('default', workflowId);
  const agentList = agentIds.flatMap((id) => host.catalog.agent('default', id)?.pinned ?? []);
  if (!workflow || agentList.length < agentIds.length) throw new Error(`no ${workflowId}`);
  const input = runInput(workflow, { agentList, forceContinueAsNewAfter: 5 });
  const { runId, tenant } = input;
  await host.stores.runs.accept({ runId, tenant, workflowId, input, createdAtMs: Date.now() });
  const { temporalRunId } = await host.engine.start(input);
  await host.stores.runs.markStarted(runRef(runId), temporalRunId);
  return runId;
}

/** A branch of an ended run, from its beginning, by recorded tools. */
async function branched(host: TestHost, workflowId: string): Promise<string> {
  const source = await host.startRun({ workflowId });
  await host.waitFor(source, ({ status }) => status === 'completed' || status === 'failed');
  const { status, body, text } = await host.api(`/v1/runs/${source}:fork`, {
    body: { mode: 'branch', fromSeq: 0, runOptionsOverlay: { tools: 'recorded' } },
  });
  if (status !== 201) throw new Error(text);
  return (body as { runId: string }).runId;
}

const SCENARIOS: Record<string, (host: TestHost, client: Client) => Promise<string>> = {
  family: (host) => host.startRun({ workflowId: 'golden-family' }),
  'family-segments': (host) => startForced(host, 'golden-family', [BOSS, CALLER, HELPER]),
  branches: (host) => host.startRun({ workflowId: 'golden-branches' }),
  loop: (host) => host.startRun({ workflowId: 'golden-loop' }),
  async approval(host) {
    const runId = await host.startRun({ workflowId: 'golden-approval' });
    await answered(host, runId, 'gate', answers.accept);
    return runId;
  },
  async cancelled(host) {
    const runId = await host.startRun({ workflowId: 'golden-approval' });
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    await host.api(`/v1/runs/${runId}/cancel`, { body: { reason: 'changed my mind' } });
    return runId;
  },
  /** Of an attempt with a time limit of its own (`cancelled-attempt-ends-first`). */
  async 'cancelled-timed'(host) {
    const runId = await host.startRun({ workflowId: 'golden-timed' });
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    await host.api(`/v1/runs/${runId}/cancel`, { body: { reason: 'changed my mind' } });
    return runId;
  },
  async terminated(host, client) {
    const runId = await host.startRun({ workflowId: 'golden-approval' });
    await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    await client.workflow.getHandle(runId).terminate('recorded');
    return runId;
  },
  async 'refund-accepted'(host) {
    const runId = await host.startRun({ ...demoRunRequest });
    await answered(host, runId, 'triage', answers.accept);
    return runId;
  },
  async 'refund-discussed'(host) {
    const runId = await host.startRun({ ...demoRunRequest });
    await answered(host, runId, 'triage', answers.more);
    await sleep(500);
    const rest = await host.waitFor(
      runId,
      ({ status }) => status !== 'running' && status !== 'pending',
    );
    if (rest.status.startsWith('waiting')) await answered(host, runId, 'triage', answers.accept);
    return runId;
  },
  async 'asks-at-once'(host) {
    const runId = await host.startRun({ workflowId: 'golden-asks-at-once' });
    const [one, two] = await openQuestions(host, runId, 2);
    const words = [
      [two, { action: 'reject' }],
      [one, { action: 'accept' }],
    ] as const;
    for (const [interruptId, resumeValue] of words) {
      const body = { interruptId, resumeValue };
      const answer = await host.api(`/v1/runs/${runId}/interrupts/think`, { body });
      if (answer.status !== 200) throw new Error(answer.text);
    }
    return runId;
  },
  /** By a worker that failed there (`children-from-the-record`): none is left to record it anew. */
  'fork-without-children': (host) => branched(host, 'golden-family'),
  'fork-with-children': (host) => branched(host, 'golden-family'),
  async segments(host) {
    const runId = await startForced(host, 'golden-segments');
    await answered(host, runId, 'think', answers.accept);
    await answered(host, runId, 'gate', answers.accept);
    return runId;
  },
};

async function record(host: TestHost, name: string, runId: string): Promise<void> {
  await host.waitFor(runId, ({ status }) => ['completed', 'failed', 'cancelled'].includes(status));
  const rows: LogRow[] = [
    ...(await host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 })),
  ];
  const run = await host.stores.runs.find('default', runId);
  const connection = connectTemporal(host.temporal);
  const history = createHistoryReader({
    connection,
    namespace: host.temporal.namespace,
    codec: createEncryption({ ring: ringOf([]) }),
  });
  const segments: string[] = [];
  for (const segment of await host.stores.segments.ofRun(runRef(runId))) {
    segments.push(Buffer.from(await history.raw(runId, segment.temporalRunId)).toString('base64'));
  }
  await history.close();
  await connection.close();
  const recording: Recording = {
    name,
    runId,
    translateVersion: run?.input.translateVersion ?? 0,
    segments,
    rows,
  };
  writeFileSync(`${RECORDED}${name}.json`, `${JSON.stringify(recording, null, 1)}\n`);
}

const COHORTS = '/v1/host/openwop-temporal/cohorts';

async function cohortOf(host: TestHost, body: object): Promise<string> {
  const begun = await host.api<Cohort>(COHORTS, { body });
  if (begun.status !== 201) throw new Error(begun.text);
  return begun.body.cohortId;
}

/** Runs that a cohort may choose. */
async function quickRuns(host: TestHost, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const runId = await host.startRun({ workflowId: 'golden-quick' });
    await host.waitFor(runId, ({ status }) => status === 'completed');
  }
}

const cohort = async (host: TestHost, cohortId: string) =>
  (await host.api<Cohort>(`${COHORTS}/${cohortId}`)).body;

/** By a host whose segments end early. */
const COHORT_SCENARIOS: Record<string, (host: TestHost) => Promise<string>> = {
  async completed(host) {
    await quickRuns(host, 5);
    const select = { workflowId: 'golden-quick' };
    return cohortOf(host, { select, parallel: 2 });
  },
  /** While the fork of one member waits for a human, and the other has none yet. */
  async cancelled(host) {
    for (let at = 0; at < 2; at++) {
      const runId = await host.startRun({ workflowId: 'golden-approval' });
      await answered(host, runId, 'gate', answers.accept);
      await host.waitFor(runId, ({ status }) => status === 'completed');
    }
    const select = { workflowId: 'golden-approval' };
    const change = { configurable: { note: 'again' } };
    const cohortId = await cohortOf(host, { select, change, parallel: 1 });
    const isForked = async () =>
      (await cohort(host, cohortId)).results?.[0]?.forkRunId !== undefined;
    await until(isForked, 'the first is forked');
    await host.api(`${COHORTS}/${cohortId}/cancel`, { body: {} });
    return cohortId;
  },
};

async function recordCohort(
  { name, cohortId }: Pick<CohortRecording, 'name' | 'cohortId'>,
  { host, client }: { readonly host: TestHost; readonly client: Client },
): Promise<void> {
  await until(
    async () => (await cohort(host, cohortId)).endedAt !== undefined,
    'the cohort has ended',
  );
  const last = client.workflow.getHandle(cohortId);
  await last.result().catch(() => undefined);
  const { History } = proto.temporal.api.history.v1;
  const segments: string[] = [];
  // From the last one back: each names the one that it continues.
  let runId: string | undefined = (await last.describe()).runId;
  while (runId) {
    const handle = client.workflow.getHandle(cohortId, runId);
    const history: proto.temporal.api.history.v1.IHistory = await handle.fetchHistory();
    segments.unshift(Buffer.from(History.encode(history).finish()).toString('base64'));
    const begun = history.events?.[0]?.workflowExecutionStartedEventAttributes;
    runId = begun?.continuedExecutionRunId ?? undefined;
  }
  const recording: CohortRecording = { name, cohortId, segments };
  writeFileSync(`${RECORDED_COHORTS}${name}.json`, `${JSON.stringify(recording, null, 1)}\n`);
}

const dataDir = mkdtempSync(join(tmpdir(), 'openwop-golden-'));
const demo = await createDemo({
  dataDir,
  logger: { debug() {}, info() {}, warn() {}, error() {} },
});
const temporal = await startTestTemporal({ own: true });
const parts: TestHostOptions = {
  builtIn: {
    definitions: [...demo.definitions, ...DEFINITIONS],
    agents: [...demo.agents, ...AGENTS],
    scripts: { ...demo.scripts, [PAYER]: payments, ...FAMILY },
    tools: [...demo.tools, pay],
  },
  temporal: { address: temporal.address, namespace: 'default' },
};
const host = await startTestHost({ dataDir, ...parts });
const connection = connectTemporal(host.temporal);
const client = new Client({ connection, namespace: host.temporal.namespace });
mkdirSync(RECORDED, { recursive: true });
for (const [name, scenario] of Object.entries(SCENARIOS)) {
  if (existsSync(`${RECORDED}${name}.json`)) continue;
  await record(host, name, await scenario(host, client));
  process.stdout.write(`recorded ${name}\n`);
}
await host.stop();
mkdirSync(RECORDED_COHORTS, { recursive: true });
const early = await startTestHost({ ...parts, facade: { forceContinueAsNewAfter: 2 } });
for (const [name, scenario] of Object.entries(COHORT_SCENARIOS)) {
  if (existsSync(`${RECORDED_COHORTS}${name}.json`)) continue;
  await recordCohort({ name, cohortId: await scenario(early) }, { host: early, client });
  process.stdout.write(`recorded the cohort ${name}\n`);
}
await early.stop();
await connection.close();
await demo.stop();
await temporal.stop();
rmSync(dataDir, { recursive: true, force: true });
