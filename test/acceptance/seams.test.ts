// The test seams of a host that a conformance suite drives (host-sample-test-seams.md): each by its real path, on a real
// server; and nowhere when they are not switched on.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectLawful, readLog, types } from '../facade/suite-parts.ts';
import { chain, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';

type Json = Record<string, unknown>;
interface Seen {
  readonly eventId: string;
  readonly type: string;
  readonly nodeId?: string;
  readonly payload: Json;
}

const SAMPLE = '/v1/host/sample';
let host: TestHost;

beforeAll(async () => {
  host = await startTestHost({
    builtIn: { definitions: [chain('conformance-worker', [node('only', 'core.noop')])] },
    env: { OPENWOP_TEST_SEAM_ENABLED: 'true' },
  });
});
afterAll(() => host.stop());

const post = async (path: string, body: Json = {}, status = 200): Promise<Json> => {
  const answer = await host.api(`${SAMPLE}/${path}`, { body });
  expect({ status: answer.status, body: answer.text }).toMatchObject({ status });
  return answer.body;
};
const eventsOf = async (runId: string, query = ''): Promise<Seen[]> =>
  (await host.api<{ events: Seen[] }>(`${SAMPLE}/test/runs/${runId}/events${query}`)).body.events;
const isLawful = async (runId: string): Promise<void> => {
  const { events } = await readLog(host, runId);
  expectLawful(events);
  await checkInvariants(host, runId);
};

describe('POST agents/live-invoke', () => {
  it.each(['workflow-node', 'run-api', 'chat-mention'])(
    'RFC 0077 §E source %s: the bracket first and last, with one id, in the log that the seam shows',
    async (source) => {
      const { runId, invocationId, outcome } = await post('agents/live-invoke', { source });
      expect(outcome).toBe('completed');
      const events = await eventsOf(String(runId));
      const scoped = events.filter(({ type }) => type.startsWith('agent.'));
      expect(scoped[0]).toMatchObject({
        type: 'agent.invocation.started',
        payload: { invocationId, source },
      });
      expect(scoped.at(-1)).toMatchObject({
        type: 'agent.invocation.completed',
        payload: { invocationId, outcome },
      });
      expect(scoped.map(({ type }) => type)).toContain('agent.toolReturned');
      await isLawful(String(runId));
    },
  );

  it('RFC 0077 §B step 6: a result of the strict schema is validated, one that breaks it fails', async () => {
    const returnSchemaRef = 'conformance-strict-handoff';
    const closed = async (body: Json) => {
      const { runId, outcome } = await post('agents/live-invoke', { returnSchemaRef, ...body });
      await isLawful(String(runId));
      const [last] = await eventsOf(String(runId), '?type=agent.invocation.completed');
      return { outcome, schemaValidated: last?.payload.schemaValidated };
    };
    expect(await closed({})).toEqual({ outcome: 'completed', schemaValidated: true });
    expect(await closed({ forceInvalidResult: true })).toEqual({ outcome: 'failed' });
  });

  it('RFC 0002 §A14: a tool outside the allowlist is never called', async () => {
    const attemptTool = 'conformance-disallowed-tool';
    const { runId, outcome } = await post('agents/live-invoke', { attemptTool });
    expect(outcome).toBe('completed');
    const events = await eventsOf(String(runId));
    expect(events.filter(({ type }) => type === 'agent.toolCalled')).toEqual([]);
    const [returned] = events.filter(({ type }) => type === 'agent.toolReturned');
    expect(returned?.payload).toMatchObject({ toolName: attemptTool, status: 'forbidden' });
  });

  it('what no agent plays, or nobody has, is refused', async () => {
    await post('agents/live-invoke', { source: 'x' }, 400);
    await post('agents/live-invoke', { returnSchemaRef: 'other' }, 400);
    await post('agents/live-invoke', { agentId: 'local.no.body' }, 404);
    await post('agents/live-invoke', { agentId: 'local.no.body', attemptTool: 'x' }, 400);
    await post('agents/live-invoke', { source: 'chat-mention', attemptTool: 'x' }, 400);
    await post('agents/live-invoke', { forceInvalidResult: true, attemptTool: 'x' }, 400);
  });
});

describe('GET test/runs/{runId}/events', () => {
  it('filters the stored log; of an unknown run it is empty', async () => {
    const runId = await host.startRun({ workflowId: 'conformance-worker' });
    await host.waitFor(runId, ({ status }) => status === 'completed');
    const all = await eventsOf(runId);
    expect(types((await readLog(host, runId)).events)).toEqual(all.map(({ type }) => type));
    expect((await eventsOf(runId, '?nodeId=only')).map(({ type }) => type)).toEqual([
      ...['node.started', 'node.completed'],
    ]);
    const [cause] = all;
    const caused = await eventsOf(runId, `?causationId=${cause?.eventId}&type=node.started`);
    expect(caused.map(({ nodeId }) => nodeId)).toEqual(['only']);
    expect(await eventsOf(runId, `?correlationId=${runId}`)).toEqual(all);
    expect(await eventsOf(runId, '?correlationId=other')).toEqual([]);
    for (const name of ['__probe__', 'x'.repeat(5_000)]) expect(await eventsOf(name)).toEqual([]);
  });
});

it('RFC 0070 POST agents/{agentId}/dispatch: a task, and the events of that agent alone', async () => {
  const agentId = 'core.conformance.live';
  const told = await post(`agents/${agentId}/dispatch`, {
    ...{ task: { order: 'o-1' }, validateHandoff: true },
    availableTools: ['core:json.query', 'core:clock'],
  });
  expect(told).toMatchObject({
    ...{ agentId, status: 'completed', confidence: 1, result: { verdict: 'yes' } },
    toolSurface: ['core:json.query'],
  });
  const events = told.events as { type: string; agentId: string }[];
  expect(events.every((event) => event.agentId === agentId)).toBe(true);
  expect(events.map(({ type }) => type)).toEqual(
    expect.arrayContaining(['agent.reasoned', 'agent.decided']),
  );
  expect(await post(`agents/${agentId}/dispatch`, { availableTools: [] })).toMatchObject({
    toolSurface: [],
  });
  const failed = await post('agents/core.conformance.invalid/dispatch', { task: 'x' });
  expect(failed).toMatchObject({
    status: 'failed',
    error: { code: 'handoff_return_schema_violation' },
  });
  await post('agents/local.no.body/dispatch', {}, 404);
  const inventory = await host.api(`${SAMPLE}/agents`);
  expect(inventory.body).toEqual((await host.api('/v1/agents')).body);
});

it('RFC 0118 POST dispatch/fanout: workers at once, joined in the order in which they ended', async () => {
  const ids = ['conformance-worker', 'conformance-worker'];
  const told = await post('dispatch/fanout', { nextWorkerIds: ids, config: { maxConcurrency: 2 } });
  expect(told).toMatchObject({ joinOutcome: 'satisfied' });
  const children = told.children as { runId: string; status: string }[];
  expect(children.map(({ status }) => status)).toEqual(['completed', 'completed']);
  expect([...(told.mergeOrder as string[])].sort()).toEqual(
    children.map(({ runId }) => runId).sort(),
  );
  await isLawful(String(told.runId));
  await post('dispatch/fanout', { nextWorkerIds: ids.slice(1) }, 400);
  await post('dispatch/fanout', { nextWorkerIds: ids, config: { joinPolicy: 'x' } }, 400);
});

it('POST workflows and test/reset: what a test brings along runs as any, until it is forgotten', async () => {
  const nodes = [
    {
      nodeId: 'boss',
      typeId: 'core.orchestrator.supervisor',
      config: { mockDispatchPlan: [{ kind: 'terminate', reason: 'done' }] },
    },
    { nodeId: 'work', typeId: 'core.dispatch' },
  ];
  await post('workflows', { workflowId: 'conformance-brought', nodes }, 201);
  const runId = await host.startRun({ workflowId: 'conformance-brought' });
  await host.waitFor(runId, ({ status }) => status === 'completed');
  await isLawful(runId);
  const lacking = [
    { nodeId: 'a', typeId: 'core.noop', config: {} },
    { nodeId: 'b', typeId: 'conformance.none' },
  ];
  await post('workflows', { workflowId: 'x', nodes: lacking }, 400);
  const mock = [{ nodeId: 'a', typeId: 'core.conformance.mock-agent' }];
  expect((await post('workflows', { workflowId: 'x', nodes: mock }, 400)).details).toMatchObject({
    requiredCapability: 'conformance.mockAgent',
  });
  expect(await post('test/reset')).toEqual({ forgotten: 1 });
  const gone = await host.api('/v1/runs', { body: { workflowId: 'conformance-brought' } });
  expect(gone.status).toBe(404);
  expect((await host.api(`/v1/runs/${runId}`)).status).toBe(200);
});

it('a key is asked for, a warning is told, and neither discovery nor the document knows them', async () => {
  for (const [method, path] of [
    ...[
      ['GET', 'agents'],
      ['GET', 'test/runs/x/events'],
    ],
    ...[
      'agents/live-invoke',
      'test/reset',
      'workflows',
      'dispatch/fanout',
      'agents/a.b.c/dispatch',
    ].map((path) => ['POST', path]),
  ]) {
    const headers = { authorization: '' };
    const answer = await host.api(`${SAMPLE}/${path}`, { method, headers });
    expect([path, answer.status]).toEqual([path, 401]);
  }
  expect(host.logs.join()).toContain('test seams are switched on');
  for (const path of ['/v1/openapi.json', '/.well-known/openwop'])
    expect((await host.api(path)).text).not.toContain('host/sample');
});
