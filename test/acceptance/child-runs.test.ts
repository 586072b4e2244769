// Child runs on a real host (RFC 0007, RFC 0022; node-packs.md §subWorkflow contract; seed 003 §3.4): core.subWorkflow and
// agents as tools, their ends, failures, cancels and bounds.
import { Client } from '@temporalio/client';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type {
  RunEventDoc,
  RunSnapshot,
  WorkflowDefinition,
} from '../../schemas/types.generated.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import { ended, expectLawful, readLog, waiting } from '../facade/suite-parts.ts';
import { agentNode, chain, definition, node } from '../support/definitions.ts';
import { childrenOf as children, payloadsIn } from '../support/children.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';

const variable = (name: string, type: string, more: object = {}) => ({ name, type, ...more });
const VARIABLES = [
  variable('order', 'string', { defaultValue: 'A-0' }),
  variable('note', 'string', { defaultValue: 'from the child' }),
  variable('result', 'string'),
] as WorkflowDefinition['variables'];

const set = (id: string, variableName: string, from: string) =>
  node(id, 'core.setVariable', {
    config: { variableName },
    inputs: { value: { type: 'variable', variableName: from } },
  });
const child = (config: object, id = 'sub') =>
  node(id, 'core.subWorkflow', { config: { ...config } });

const CHILDREN = [
  chain('child-echo', [set('echo', 'result', 'order')], { variables: VARIABLES }),
  chain('child-fails', [
    node('fails', 'core.fail', { config: { code: 'conformance_test_failure' } }),
  ]),
  chain('child-waits', [node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } })]),
  chain('child-delay', [node('delay', 'core.delay', { config: { ms: 60_000 } })]),
];

const parentOf = (id: string, config: object, more: Partial<WorkflowDefinition> = {}) =>
  definition(id, [child(config)], [], {
    variables: [
      variable('mine', 'string', { defaultValue: 'A-1' }),
      variable('unset', 'string'),
      variable('got', 'string', { defaultValue: 'nothing' }),
      variable('count', 'number'),
    ] as WorkflowDefinition['variables'],
    ...more,
  });

const PARENTS = [
  parentOf('maps', {
    workflowId: 'child-echo',
    inputMapping: { order: 'mine', note: 'unset' },
    outputMapping: { got: 'result', mine: 'never' },
  }),
  parentOf('maps-wrongly', { workflowId: 'child-echo', outputMapping: { count: 'order' } }),
  parentOf('of-nothing', { workflowId: 'no-such-workflow' }),
  parentOf('fails-too', { workflowId: 'child-fails', outputMapping: { got: 'result' } }),
  parentOf('absorbs', {
    workflowId: 'child-fails',
    onChildFailure: 'absorb',
    outputMapping: { got: 'result' },
  }),
  parentOf('waits', { workflowId: 'child-waits' }),
  parentOf('delays', { workflowId: 'child-delay' }),
  parentOf('in-time', { workflowId: 'child-delay', timeoutMs: 300 }),
  parentOf('detached', { workflowId: 'child-delay', propagateCancellation: false }),
  parentOf('itself', { workflowId: 'itself' }),
  chain('asks-agents', [agentNode('boss', 'local.family.desk.boss')]),
  ...['self', 'ping'].map((name) => chain(name, [agentNode('a', `local.family.desk.${name}`)])),
];

const agent = (
  name: string,
  more: Partial<ResolvedAgent['manifest']> = {},
  rest: Partial<ResolvedAgent> = {},
): ResolvedAgent => ({
  packName: 'local.family.desk',
  packVersion: '1.0.0',
  systemPrompt: 'You decide.',
  manifest: {
    agentId: `local.family.desk.${name}`,
    persona: name,
    modelClass: 'general',
    systemPrompt: 'You decide.',
    ...more,
  },
  ...rest,
});

const toolOf = (name: string) => `agent:local.family.desk.${name}`;
/** Each of them asks the agent behind the colon, whatever becomes of it. */
const CALLS = { self: 'self', ping: 'pong', pong: 'ping' };

const AGENTS = [
  ...Object.entries(CALLS).map(([name, other]) => agent(name, { toolAllowlist: [toolOf(other)] })),
  agent('boss', {
    toolAllowlist: ['agent:local.family.desk.clerk', 'agent:local.family.desk.nobody'],
  }),
  agent(
    'clerk',
    {},
    {
      taskSchema: {
        type: 'object',
        required: ['order'],
        properties: { order: { type: 'string' } },
      },
    },
  ),
];
const call = (args: unknown, toolId = 'agent:local.family.desk.clerk') => ({
  toolId,
  arguments: args,
});
const SCRIPTS = {
  'local.family.desk.boss': {
    turns: [
      {
        reasoning: 'I ask the clerk twice, once wrongly, and nobody.',
        calls: [
          call({ order: 'A-1' }),
          call({ order: 'A-2' }),
          call({ order: 3 }),
          call('A-4'),
          call({}, 'agent:local.family.desk.nobody'),
        ],
      },
      { final: { decision: 'done', confidence: 1 } },
    ],
  },
  ...Object.fromEntries(
    Object.entries(CALLS).map(([name, other]) => [
      `local.family.desk.${name}`,
      {
        turns: [{ calls: [call({}, toolOf(other))] }, { final: { decision: name, confidence: 1 } }],
      },
    ]),
  ),
  'local.family.desk.clerk': { turns: [{ final: { decision: 'paid', confidence: 1 } }] },
};

let host: TestHost;
const started: string[] = [];

beforeAll(async () => {
  host = await startTestHost({
    builtIn: { definitions: [...CHILDREN, ...PARENTS], agents: AGENTS, scripts: SCRIPTS },
  });
});
afterEach(async () => {
  for (const runId of started.splice(0)) {
    const { events, isComplete } = await readLog(host, runId);
    if (isComplete) expectLawful(events);
    await checkInvariants(host, runId);
  }
});
afterAll(() => host.stop());

async function start(workflowId: string): Promise<string> {
  const runId = await host.startRun({ workflowId });
  started.push(runId);
  return runId;
}

const log = async (runId: string): Promise<RunEventDoc[]> => (await readLog(host, runId)).events;
const snapshotOf = async (runId: string) => (await host.api<RunSnapshot>(`/v1/runs/${runId}`)).body;

async function terminate(runId: string): Promise<void> {
  const connection = connectTemporal(host.temporal);
  const client = new Client({ connection, namespace: host.temporal.namespace });
  await client.workflow.getHandle(runId).terminate('tested');
  await connection.close();
}

/** The children that a log names, once there are so many: they are looked at behind the test as well. */
async function childrenOf(runId: string, count?: number): Promise<string[]> {
  const found = await children(host, runId, count);
  started.push(...found);
  return found;
}

describe('core.subWorkflow', () => {
  it("node-packs.md §subWorkflow: a child run of its own, its ids in the parent's output, its variables mapped", async () => {
    const runId = await start('maps');
    const parent = await host.waitFor(runId, ended);
    expect(parent.status).toBe('completed');
    const [childRunId = ''] = await childrenOf(runId);
    const events = await log(runId);
    expect(payloadsIn(events, 'node.completed')).toMatchObject([
      { nodeId: 'sub', outputs: { childRunId, childStatus: 'completed' } },
    ]);
    expect(parent.variables).toMatchObject({ got: 'A-1', mine: 'A-1' });
    const child = await snapshotOf(childRunId);
    expect(child).toMatchObject({ status: 'completed', parentRunId: runId, parentNodeId: 'sub' });
    expect(child.variables).toMatchObject({ order: 'A-1' });
    // RFC 0022: an unset variable of the parent is no value, and not the child's default either.
    expect(child.variables).not.toHaveProperty('note');
    expect(payloadsIn(events, 'node.dispatched')).toEqual([
      { childRunId, childWorkflowId: 'child-echo' },
    ]);
  });

  it("a result of another type than the parent's variable fails the node", async () => {
    const failed = await host.waitFor(await start('maps-wrongly'), ended);
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'validation_error' } });
  });

  it('an unknown workflow fails the node with unknown_child_workflow', async () => {
    const failed = await host.waitFor(await start('of-nothing'), ended);
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'unknown_child_workflow' } });
  });

  it('a child that fails fails its parent, unless that absorbs it; nothing is mapped', async () => {
    const [failed, absorbed] = await Promise.all(
      ['fails-too', 'absorbs'].map(async (id) => host.waitFor(await start(id), ended)),
    );
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'child_failed' } });
    expect(absorbed).toMatchObject({ status: 'completed', variables: { got: 'nothing' } });
  });

  it('a child that takes too long is cancelled, and fails its parent as child_timeout', async () => {
    const runId = await start('in-time');
    expect(await host.waitFor(runId, ended)).toMatchObject({ error: { code: 'child_timeout' } });
    const [childRunId = ''] = await childrenOf(runId);
    expect(await snapshotOf(childRunId)).toMatchObject({ status: 'cancelled' });
  });

  it('a workflow that calls itself ends at the bound of generations, with cap.breached', async () => {
    const runId = await start('itself');
    expect(await host.waitFor(runId, ended)).toMatchObject({ error: { code: 'child_failed' } });
    let last = runId;
    for (let depth = 0; depth < 8; depth++) [last = ''] = await childrenOf(last);
    expect(payloadsIn(await log(last), 'cap.breached')).toMatchObject([
      { kind: 'child-depth', limit: 8, observed: 9 },
    ]);
    expect(await snapshotOf(last)).toMatchObject({ error: { code: 'child_limit_exceeded' } });
  });
});

describe('the end of a parent', () => {
  it('RFC 0007: a cancel ends the child first, as parent-cancelled', async () => {
    const runId = await start('waits');
    const [childRunId = ''] = await childrenOf(runId);
    await host.waitFor(childRunId, waiting);
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'cancelled' });
    const child = await log(childRunId);
    expect(child.at(-1)).toMatchObject({
      type: 'run.cancelled',
      payload: { reason: 'parent-cancelled', parentRunId: runId },
    });
    const parent = await log(runId);
    expect(Date.parse(child.at(-1)?.timestamp ?? '')).toBeLessThanOrEqual(
      Date.parse(parent.at(-1)?.timestamp ?? ''),
    );
  });

  it('a detached child outlives it', async () => {
    const runId = await start('detached');
    const [childRunId = ''] = await childrenOf(runId);
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    await host.waitFor(runId, ended);
    const atItsEnd = await log(runId);
    expect(await snapshotOf(childRunId)).toMatchObject({ status: 'running' });
    await host.api(`/v1/runs/${childRunId}/cancel`, { body: {} });
    await host.waitFor(childRunId, ended);
    // What it tells then reaches nobody.
    expect(await log(runId)).toEqual(atItsEnd);
  });
});

describe('an agent as a tool', () => {
  it('each call is a run of that agent; what cannot be asked is an error for the model', async () => {
    const runId = await start('asks-agents');
    expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'completed' });
    const children = await childrenOf(runId, 2);
    expect(children).toHaveLength(2);
    const events = await log(runId);
    const called = events.filter(({ type }) => type === 'agent.toolCalled');
    const returned = payloadsIn(events, 'agent.toolReturned');
    const byCall = (at: number) => {
      const { callId } = (called[at]?.payload ?? {}) as { callId?: string };
      return returned.find((one) => one.callId === callId);
    };
    expect(byCall(0)).toMatchObject({ status: 'ok', outcome: { decision: 'paid' } });
    expect(byCall(1)).toMatchObject({ status: 'ok', outcome: { decision: 'paid' } });
    expect(byCall(2)).toMatchObject({
      status: 'error',
      error: { code: 'handoff_task_schema_violation' },
    });
    expect(byCall(3)).toMatchObject({ status: 'error', error: { code: 'tool_invalid_input' } });
    expect(returned).toHaveLength(5);
    const dispatched = events.filter(({ type }) => type === 'node.dispatched');
    expect(dispatched.map(({ causationId }) => causationId)).toEqual(
      called.slice(0, 2).map(({ eventId }) => eventId),
    );
  });

  it.each(['self', 'ping'])(
    'one that calls itself, or in a ring, ends at the bound of generations, and its model is told: %s',
    async (workflowId) => {
      const runId = await start(workflowId);
      expect(await host.waitFor(runId, ended)).toMatchObject({ status: 'completed' });
      let last = runId;
      for (let depth = 0; depth < 8; depth++) [last = ''] = await childrenOf(last);
      const events = await log(last);
      expect(payloadsIn(events, 'cap.breached')).toMatchObject([{ kind: 'child-depth', limit: 8 }]);
      expect(payloadsIn(events, 'agent.toolReturned')).toMatchObject([
        { status: 'error', error: { code: 'child_limit_exceeded' } },
      ]);
    },
  );
});

describe('ends that nobody could tell', () => {
  it('architecture §4: a child terminated from outside fails its parent', async () => {
    const runId = await start('waits');
    const [childRunId = ''] = await childrenOf(runId);
    await host.waitFor(childRunId, waiting);
    await terminate(childRunId);
    expect(await host.waitFor(runId, ended)).toMatchObject({
      error: { code: 'child_failed', message: expect.stringContaining('from outside') as string },
    });
  });

  it('architecture §4: the children of a parent terminated from outside are cancelled', async () => {
    const runId = await start('waits');
    const [childRunId = ''] = await childrenOf(runId);
    await host.waitFor(childRunId, waiting);
    await terminate(runId);
    await host.waitFor(childRunId, ended);
    expect((await log(childRunId)).at(-1)).toMatchObject({
      type: 'run.cancelled',
      payload: { reason: 'parent-ended', parentRunId: runId },
    });
  });
});
