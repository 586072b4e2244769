// Forks and replays of runs with child runs, on a real host (architecture §6): whatever a run began is forked with it, as
// a tree; what is recorded is performed by nobody, and an open child lives on from where it was.
import { Client } from '@temporalio/client';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { RunSnapshot, WorkflowDefinition } from '../../schemas/types.generated.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import type { LogRow } from '../../src/ports/log.ts';
import type { Tool } from '../../src/ports/tools.ts';
import { ended, waiting } from '../facade/suite-parts.ts';
import { agentNode, chain, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { runRef } from '../support/run-ref.ts';

const [BOSS, CLERK, TOOL] = ['local.trees.boss', 'local.trees.clerk', 'tested:effect'];
const agent = (agentId: string, toolAllowlist: string[]): ResolvedAgent => ({
  ...{ packName: 'local.trees', packVersion: '1.0.0', systemPrompt: 'You decide.' },
  manifest: {
    ...{ agentId, persona: agentId, modelClass: 'general', systemPrompt: 'You decide.' },
    toolAllowlist,
  },
});
const call = (toolId: string, n: number) => ({ toolId, arguments: { n } });
const done = { final: { decision: 'done', confidence: 1 } };
const AGENTS = [agent(BOSS, [`agent:${CLERK}`, TOOL]), agent(CLERK, [TOOL])];
const SCRIPTS = {
  [BOSS]: { turns: [{ calls: [call(`agent:${CLERK}`, 1), call(TOOL, 2)] }, done] },
  [CLERK]: { turns: [{ calls: [call(TOOL, 1)] }, done] },
};

/** The outside: each call of it is an effect. */
let effects = 0;
const EFFECT: Tool = {
  ...{ toolId: TOOL, description: 'Counts.', inputSchema: { type: 'object' } },
  ...{ idempotent: false, timeoutMs: 5_000, transport: 'native', safetyTier: 'write' },
  call: async () => ({ effect: ++effects }),
};

const sub = (id: string, workflowId: string, config: object = {}) =>
  node(id, 'core.subWorkflow', { config: { workflowId, ...config } });
const gate = (id: string) => node(id, 'core.approvalGate', { config: { title: 'Shall it?' } });
const variables = [{ name: 'got', type: 'string' }] as WorkflowDefinition['variables'];
const next = (...nextWorkerIds: string[]) => ({ kind: 'next-worker', nextWorkerIds });

const DEFINITIONS = [
  chain(
    'sets',
    [node('set', 'core.setVariable', { config: { variableName: 'got', value: 'of the child' } })],
    { variables },
  ),
  chain('fails', [node('fail', 'core.fail', { config: { code: 'made_to_fail' } })]),
  chain('delays', [node('delay', 'core.delay', { config: { ms: 60_000 } })]),
  chain('asks', [agentNode('boss', BOSS), gate('gate'), agentNode('again', BOSS)]),
  chain('below', [sub('grandchild', 'asks')]),
  // A grandchild, calls of an agent, a failed child, one that took too long, and workers side by side.
  definition(
    'conformance-tree',
    [
      sub('first', 'sets', { outputMapping: { got: 'got' } }),
      agentNode('boss', BOSS),
      sub('late', 'delays', { timeoutMs: 200, onChildFailure: 'absorb' }),
      node('lead', 'core.orchestrator.supervisor', {
        config: { mockDispatchPlan: [next('sets', 'fails', 'sets'), { kind: 'terminate' }] },
      }),
      node('work', 'core.dispatch', {
        config: { fanOutPolicy: 'parallel', outputMapping: { got: 'got' } },
      }),
    ],
    [edge('first', 'boss'), edge('boss', 'late'), edge('late', 'lead'), edge('lead', 'work')],
    { variables },
  ),
  chain('waits', [sub('sub', 'below'), sub('free', 'sets', { propagateCancellation: false })]),
  chain('delays-a-little', [node('delay', 'core.delay', { config: { ms: 4_000 } })]),
  chain('detached', [sub('free', 'delays-a-little', { propagateCancellation: false })]),
];

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost({
    builtIn: { definitions: DEFINITIONS, agents: AGENTS, scripts: SCRIPTS, tools: [EFFECT] },
  });
}, 120_000);
afterAll(() => host?.stop());

const rowsOf = (runId: string) => host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });

/** Everything below a run, oldest first, once all of it has ended. */
async function familyOf(runId: string): Promise<readonly { runId: string; parentRunId: string }[]> {
  const below = () => host.stores.families.descendants(runRef(runId).tenant, runId, 1_000);
  await until(async () => (await below()).every(({ closed }) => closed), 'all below has ended');
  return below();
}

async function fork(of: object, source: string): Promise<string> {
  const { status, body } = await host.api<{ runId: string }>(`/v1/runs/${source}:fork`, {
    body: of,
  });
  expect([status, body]).toMatchObject([201, { sourceRunId: source }]);
  return body.runId;
}

async function answer(runId: string): Promise<void> {
  await host.waitFor(runId, waiting);
  const body = { resumeValue: { action: 'accept' } };
  expect((await host.api(`/v1/runs/${runId}/interrupts/gate`, { body })).status).toBe(200);
}

/** The run below that asks, in the second generation. */
async function asking(runId: string): Promise<string> {
  let last = runId;
  for (let generation = 0; generation < 2; generation++) {
    let below: string | undefined;
    await until(async () => {
      const { runs } = await host.stores.families.children(runRef(last), { limit: 1 });
      return (below = runs[0]?.runId) !== undefined;
    }, 'it has a child');
    last = below ?? '';
  }
  await host.waitFor(last, waiting);
  return last;
}

const told = (rows: readonly LogRow[], runId: string): string[] =>
  rows
    .filter(({ type }) => type !== 'agent.reasoning.delta')
    .map(({ type, nodeId, payload }) =>
      JSON.stringify({ type, nodeId, payload: payload.replaceAll(runId, 'it') }),
    );
const prefixOf = (rows: readonly LogRow[], runId: string, length: number): string[] =>
  rows
    .slice(0, length)
    .map(({ type, nodeId, payload, timestampMs, sequence }) =>
      JSON.stringify([type, nodeId, payload.replaceAll(runId, 'it'), timestampMs, sequence]),
    );

/** Each run below the source has one below the fork that says the same, and nothing was performed for it. */
async function expectSameFamily(source: string, replay: string): Promise<void> {
  const [of, again] = [await familyOf(source), await familyOf(replay)];
  expect(again.length).toBe(of.length);
  const shapes = async (family: typeof of) => {
    const logs = await Promise.all(
      family.map(async ({ runId, parentRunId }) =>
        // A cancel names the parent that told it: the source's.
        told(await rowsOf(runId), runId).map((row) =>
          row.replaceAll(parentRunId, 'ID').replaceAll(source, 'ID'),
        ),
      ),
    );
    return logs.map((rows) => rows.join('\n')).sort();
  };
  expect(await shapes(again)).toEqual(await shapes(of));
}

describe('a replay', () => {
  let source: string;
  let rows: readonly LogRow[];
  beforeAll(async () => {
    source = await host.startRun({ workflowId: 'conformance-tree' });
    await host.waitFor(source, ended);
    await familyOf(source);
    rows = await rowsOf(source);
  }, 60_000);
  beforeEach(() => (effects = 0));

  it('the source has children of all kinds', async () => {
    expect((await host.api<RunSnapshot>(`/v1/runs/${source}`)).body.status).toBe('completed');
    const family = await familyOf(source);
    expect(family).toHaveLength(6);
  });

  it.each([0, 0.3, 0.6, 1])(
    'replay.md: from %s of it, states what its source stated, as does each run below it',
    async (part) => {
      const fromSeq = Math.floor(rows.length * part);
      const runId = await fork({ mode: 'replay', fromSeq }, source);
      await host.waitFor(runId, ended);
      const again = await rowsOf(runId);
      expect(told(again, runId)).toEqual(told(rows, source));
      expect(prefixOf(again, runId, fromSeq)).toEqual(prefixOf(rows, source, fromSeq));
      await expectSameFamily(source, runId);
      expect(effects).toBe(0);
      for (const each of [{ runId }, ...(await familyOf(runId))])
        await checkInvariants(host, each.runId);
      const diff = await host.api<{ identical?: boolean }>(
        `/v1/runs/${source}:diff?against=${runId}`,
      );
      expect(diff.status).toBe(200);
      expect(diff.text).not.toContain('"divergence":{');
    },
    60_000,
  );
});

describe('a branch', () => {
  it('with an open grandchild: each goes on from where it was, and nothing before is done again', async () => {
    const source = await host.startRun({ workflowId: 'waits' });
    const open = await asking(source);
    const { length } = await rowsOf(source);
    expect(effects).toBeGreaterThan(0);
    effects = 0;
    const runId = await fork({ mode: 'branch', fromSeq: length }, source);
    const own = await asking(runId);
    expect(effects).toBe(0);
    expect(prefixOf(await rowsOf(own), own, 20)).toEqual(prefixOf(await rowsOf(open), open, 20));
    for (const each of [own, open]) await answer(each);
    for (const each of [runId, source])
      expect(await host.waitFor(each, ended)).toMatchObject({ status: 'completed' });
    // Behind the question the boss calls its clerk and its tool, in each of them.
    expect(effects).toBe(4);
    const dispatched = (await rowsOf(runId)).filter(({ type }) => type === 'node.dispatched');
    expect(dispatched).toHaveLength(3);
    for (const each of [{ runId }, ...(await familyOf(runId))])
      await checkInvariants(host, each.runId);
  }, 60_000);

  it('at every event of a run with children: its prefix is the source’s, and it ends', async () => {
    const source = await host.startRun({ workflowId: 'conformance-tree' });
    await host.waitFor(source, ended);
    const rows = await rowsOf(source);
    const step = Number(process.env.OPENWOP_FORKED_STEP ?? 10);
    const places = rows.map(({ sequence }) => sequence).filter((at) => at % step === 0);
    for (const fromSeq of [...places, rows.length]) {
      const runId = await fork({ mode: 'branch', fromSeq }, source);
      const { status } = await host.waitFor(runId, ended);
      expect([fromSeq, status]).toEqual([fromSeq, 'completed']);
      expect(prefixOf(await rowsOf(runId), runId, fromSeq)).toEqual(
        prefixOf(rows, source, fromSeq),
      );
      for (const each of [{ runId }, ...(await familyOf(runId))])
        await checkInvariants(host, each.runId);
    }
  }, 300_000);

  it('that is cancelled ends the children that it has of its source', async () => {
    const source = await host.startRun({ workflowId: 'waits' });
    await asking(source);
    const { length } = await rowsOf(source);
    const runId = await fork({ mode: 'branch', fromSeq: length }, source);
    const own = await asking(runId);
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'cancelled' });
    expect(await host.waitFor(own, ended)).toMatchObject({ status: 'cancelled' });
    await host.api(`/v1/runs/${source}/cancel`, { body: {} });
    await host.waitFor(source, ended);
  }, 60_000);

  it('cancelled at once: nothing of it stays open', async () => {
    const source = await host.startRun({ workflowId: 'waits' });
    await asking(source);
    const { length } = await rowsOf(source);
    const runId = await fork({ mode: 'branch', fromSeq: length }, source);
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'cancelled' });
    await familyOf(runId);
    await host.api(`/v1/runs/${source}/cancel`, { body: {} });
    await host.waitFor(source, ended);
  }, 60_000);
});

describe('what the record lacks', () => {
  it('with recorded tools: a child that would begin, or that goes on, is replay_source_missing, and nothing is performed', async () => {
    const ofEnded = await host.startRun({ workflowId: 'conformance-tree' });
    await host.waitFor(ofEnded, ended);
    const ofOpen = await host.startRun({ workflowId: 'waits' });
    await asking(ofOpen);
    effects = 0;
    const { length } = await rowsOf(ofOpen);
    const runOptionsOverlay = { tools: 'recorded' };
    for (const [source, fromSeq] of [[ofEnded, 0] as const, [ofOpen, length] as const]) {
      const runId = await fork({ mode: 'branch', fromSeq, runOptionsOverlay }, source);
      const { status, error } = await host.waitFor(runId, ended);
      expect([status, error?.code]).toEqual(['failed', 'replay_source_missing']);
      expect(await familyOf(runId)).toEqual([]);
    }
    expect(effects).toBe(0);
    await host.api(`/v1/runs/${ofOpen}/cancel`, { body: {} });
    await host.waitFor(ofOpen, ended);
  }, 60_000);

  it('a replay of a run whose child goes on is replay_source_missing', async () => {
    const source = await host.startRun({ workflowId: 'waits' });
    await asking(source);
    const runId = await fork({ mode: 'replay' }, source);
    expect(await host.waitFor(runId, ended)).toMatchObject({
      ...{ status: 'failed', error: { code: 'replay_source_missing' } },
    });
    await familyOf(runId);
    await host.api(`/v1/runs/${source}/cancel`, { body: {} });
    await host.waitFor(source, ended);
  }, 60_000);

  it('a replay of a run that was terminated, and of its detached child, end', async () => {
    const source = await host.startRun({ workflowId: 'detached' });
    await until(
      async () => (await rowsOf(source)).some(({ type }) => type === 'node.dispatched'),
      'it has a child',
    );
    const connection = connectTemporal(host.temporal);
    const client = new Client({ connection, namespace: host.temporal.namespace });
    await client.workflow.getHandle(source).terminate('tested');
    await connection.close();
    await host.waitFor(source, ended);
    const runId = await fork({ mode: 'replay' }, source);
    expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'failed' });
    await familyOf(runId);
  }, 60_000);
});
