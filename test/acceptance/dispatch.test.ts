// Orchestrators and their workers on a real host (RFC 0006, RFC 0007, RFC 0022, RFC 0037, RFC 0039, RFC 0118): an agent
// says what comes next, child runs do it, and the log tells of each step with its cause.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type {
  DispatchConfig,
  RunEventDoc,
  RunSnapshot,
  WorkflowDefinition,
  WorkflowNode,
} from '../../schemas/types.generated.ts';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import { ended, expectLawful, readLog, waiting } from '../facade/suite-parts.ts';
import { chain, definition, edge, node } from '../support/definitions.ts';
import { childrenOf as children, payloadsIn } from '../support/children.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';

const variable = (name: string, type: string, more: object = {}) => ({ name, type, ...more });
const BOSS = 'local.dispatch.desk.boss';
const CLERK = 'local.dispatch.desk.clerk';
const DOUBTER = 'local.dispatch.desk.doubter';
const BRIEF = 'local.dispatch.desk.brief';

const WORKERS = [
  chain(
    'worker-echo',
    [
      node('echo', 'core.setVariable', {
        config: { variableName: 'result' },
        inputs: { value: { type: 'variable', variableName: 'order' } },
      }),
    ],
    {
      variables: [
        variable('order', 'string', { defaultValue: 'A-0' }),
        variable('result', 'string'),
      ] as WorkflowDefinition['variables'],
    },
  ),
  chain('worker-fails', [node('fails', 'core.fail')]),
  chain('worker-waits', [node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } })]),
  chain('conformance-noop', [node('noop', 'core.noop')]),
];

/** The orchestrator does what the variable `plan` says, and ends once it is told of a worker or of an answer. */
const SUPERVISOR = node('boss', 'core.orchestrator.supervisor', {
  agent: { agentId: BOSS },
  inputs: {
    plan: { type: 'variable', variableName: 'plan' },
    told: { type: 'connection', nodeId: 'work', outputKey: 'childStatus' },
    answers: { type: 'connection', nodeId: 'work', outputKey: 'answers' },
  },
});

/** An agent that is not sure goes before the one who leads the run. */
const doubted = definition(
  'doubted',
  [
    node('think', 'core.agent', { agent: { agentId: DOUBTER } }),
    { ...SUPERVISOR, inputs: { plan: { type: 'variable', variableName: 'plan' } } },
    node('work', 'core.dispatch'),
  ],
  [edge('think', 'boss'), edge('boss', 'work')],
  { variables: [variable('plan', 'object')] as WorkflowDefinition['variables'] },
);

function loop(
  id: string,
  config: DispatchConfig = {},
  supervisor: WorkflowNode = SUPERVISOR,
): WorkflowDefinition {
  return definition(
    id,
    [supervisor, node('work', 'core.dispatch', { config: { ...config } })],
    [edge(supervisor.id, 'work'), edge('work', supervisor.id)],
    {
      variables: [
        variable('plan', 'object'),
        variable('mine', 'string', { defaultValue: 'A-1' }),
        variable('got', 'string', { defaultValue: 'nothing' }),
      ] as WorkflowDefinition['variables'],
    },
  );
}

const planned = (config: object) =>
  node('boss', 'core.orchestrator.supervisor', { config: { ...config } });
const MAPPED: DispatchConfig = {
  inputMapping: { order: 'mine' },
  outputMapping: { got: 'result' },
};
const parallel = (mode: 'wait-all' | 'first' | 'race', more: object = {}): DispatchConfig => ({
  fanOutPolicy: 'parallel',
  joinPolicy: { mode, ...more },
});
const next = (...nextWorkerIds: string[]) => ({ kind: 'next-worker', nextWorkerIds });

const crowd = (count: number) => Array<string>(count).fill('worker-echo');

const LOOPS = [
  loop('maps', MAPPED),
  loop('maps-each', {
    ...MAPPED,
    perWorkerInputMappings: { 'worker-echo': { order: 'got' } },
    perWorkerOutputMappings: { [`agent:${CLERK}`]: { got: 'decision' } },
  }),
  loop('one-only', { fanOutPolicy: 'reject' }),
  loop(
    'capped',
    { iterationCap: 1 },
    {
      ...SUPERVISOR,
      inputs: { plan: { type: 'variable', variableName: 'plan' } },
    },
  ),
  loop('all', { ...parallel('wait-all'), ...MAPPED }),
  loop('narrow', { ...parallel('wait-all'), maxConcurrency: 1 }),
  loop('first', { ...parallel('first'), ...MAPPED }),
  loop('fails-fast', parallel('wait-all', { onChildFailure: 'fail-fast' })),
  loop('conformance-dispatch-loop', {}, planned({})),
  doubted,
  loop(
    'conformance-low',
    {},
    planned({
      mockConfidence: 0.3,
      mockPendingDecision: next('conformance-noop'),
    }),
  ),
  loop('brief', {}, node('boss', SUPERVISOR.typeId, { agent: { agentId: BRIEF } })),
  loop('conformance-crowd', {}, planned({ mockDispatchPlan: [next(...crowd(101))] })),
  loop('conformance-plan', {}, planned({ mockDispatchPlan: [next('worker-echo')] })),
  // As conformance/fixtures.md describes those of these names.
  loop(
    'conformance-multi-agent-handoff',
    { outputMapping: { parentResult: 'result' } },
    planned({ mockDispatchPlan: [next('worker-echo')] }),
  ),
  loop(
    'conformance-multi-agent-confidence-escalation',
    {},
    planned({ mockDispatchPlan: [{ ...next('worker-echo'), confidence: 0.3 }] }),
  ),
  loop(
    'conformance-orchestrator-terminate',
    {},
    planned({ mockDecisions: [{ kind: 'terminate', reason: 'nothing to do' }] }),
  ),
];

const agentOf = (agentId: string): ResolvedAgent => ({
  packName: 'local.dispatch.desk',
  packVersion: '1.0.0',
  systemPrompt: 'You decide.',
  manifest: {
    agentId,
    persona: agentId,
    modelClass: 'general',
    systemPrompt: 'You decide.',
  },
});
/** It says in few words why, and is not sure. */
const briefAgent: ResolvedAgent = {
  ...agentOf(BRIEF),
  manifest: { ...agentOf(BRIEF).manifest, handoff: { returnSchemaRef: 'returns.json' } },
  returnSchema: {
    $schema: 'http://json-schema.org/draft-07/schema#',
    properties: {
      reason: { $ref: '#/definitions/brief' },
      // A form of this dialect alone.
      nextWorkerIds: { items: [{ const: 'worker-echo' }] },
    },
    definitions: { brief: { maxLength: 10 } },
  },
};
const DONE = { final: { decision: { kind: 'terminate', reason: 'done' }, confidence: 1 } };
const SCRIPTS = {
  [CLERK]: { turns: [{ final: { decision: 'paid', confidence: 1 } }] },
  [BRIEF]: { turns: [{ final: { decision: { kind: 'terminate' }, confidence: 0.4 } }] },
  [DOUBTER]: {
    turns: [
      { final: { decision: 'perhaps', confidence: 0.4 } },
      { final: { decision: 'surely', confidence: 1 } },
    ],
  },
  [BOSS]: {
    turns: [
      {
        cases: [
          { path: 'task.told', equals: 'completed', turn: DONE },
          { path: 'task.told', equals: 'failed', turn: DONE },
          { path: 'task.told', equals: 'cancelled', turn: DONE },
          { path: 'task.answers.answer', equals: 'no', turn: DONE },
        ],
        final: { decision: '{{task.plan}}', confidence: 1 },
      },
    ],
  },
};

let host: TestHost;
const started: string[] = [];

beforeAll(async () => {
  host = await startTestHost({
    builtIn: {
      definitions: [...WORKERS, ...LOOPS],
      agents: [...[BOSS, CLERK, DOUBTER].map(agentOf), briefAgent],
      scripts: SCRIPTS,
    },
    env: { OPENWOP_TEST_MODE: 'true' },
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

async function start(workflowId: string, plan?: object, more: object = {}): Promise<string> {
  const runId = await host.startRun({ workflowId, ...(plan ? { inputs: { plan } } : {}), ...more });
  started.push(runId);
  return runId;
}

const log = async (runId: string): Promise<RunEventDoc[]> => (await readLog(host, runId)).events;
const ofType = (events: readonly RunEventDoc[], type: string) =>
  events.filter((event) => event.type === type);
const phases = (events: readonly RunEventDoc[]) =>
  payloadsIn(events, 'core.workflowChain.event').map(({ phase }) => phase);
const snapshotOf = async (runId: string) => (await host.api<RunSnapshot>(`/v1/runs/${runId}`)).body;
const doneAs = async (runId: string) => host.waitFor(runId, ended);

/** The children that a log names, once there are so many: they are looked at behind the test as well. */
async function childrenOf(runId: string, count?: number): Promise<string[]> {
  const found = await children(host, runId, count);
  started.push(...found);
  return found;
}

const resolve = (runId: string, nodeId: string, resumeValue: unknown) =>
  host.api(`/v1/runs/${runId}/interrupts/${nodeId}`, { body: { resumeValue } });

describe('RFC 0002 §F action 1: an agent that is not sure, in a run with an orchestrator', () => {
  it('the orchestrator asks the user, whose answers go to the agent; then it leads the run to its end', async () => {
    const runId = await start('doubted', { kind: 'terminate', reason: 'all said' });
    const asked = await host.waitFor(runId, waiting);
    expect(asked).toMatchObject({ status: 'waiting-approval', runOrchestrator: { agentId: BOSS } });
    const answers = [{ id: 'guidance', answer: 'Trust it.' }];
    expect((await resolve(runId, 'think', { answers })).status).toBe(200);
    expect(await doneAs(runId)).toMatchObject({ outputs: { reason: 'all said' } });
    const events = await log(runId);
    const [first, second, ...more] = ofType(events, 'runOrchestrator.decided');
    expect(first?.payload).toEqual({
      ...{ agentId: BOSS, iteration: 1 },
      decision: { kind: 'ask-user', prompt: `Go on with the decision of ${DOUBTER}?` },
    });
    expect(first?.causationId).toBe(ofType(events, 'agent.decided')[0]?.eventId);
    expect(ofType(events, 'node.suspended')[0]?.causationId).toBe(first?.eventId);
    expect(second?.payload).toMatchObject({ iteration: 2, decision: { kind: 'terminate' } });
    expect(more).toEqual([]);
  });
});

describe('a supervisor and its workers', () => {
  it('RFC 0037 §handoff: each step is told with its cause, and what the worker made is taken', async () => {
    const runId = await start('maps', next('worker-echo'));
    const run = await doneAs(runId);
    expect(run).toMatchObject({
      status: 'completed',
      variables: { got: 'A-1' },
      runOrchestrator: { agentId: BOSS },
      outputs: { reason: 'done' },
    });
    const events = await log(runId);
    expect(payloadsIn(events, 'runOrchestrator.decided')).toEqual([
      { agentId: BOSS, decision: next('worker-echo'), iteration: 1 },
      { agentId: BOSS, decision: { kind: 'terminate', reason: 'done' }, iteration: 2 },
    ]);
    const [decided] = ofType(events, 'runOrchestrator.decided');
    const told = ofType(events, 'core.workflowChain.event');
    expect(phases(events)).toEqual([
      ...['dispatch.began', 'dispatch.succeeded', 'child.completed', 'output.harvested'],
    ]);
    expect(told.map(({ causationId }) => causationId)).toEqual(
      [decided, ...told.slice(0, -1)].map((event) => event?.eventId),
    );
    const [childRunId = ''] = await childrenOf(runId);
    expect(told.at(-1)?.payload).toEqual({
      ...{ phase: 'output.harvested', workerId: 'worker-echo', parentRunId: runId },
      ...{ childRunId, harvestedKeys: ['got'] },
    });
    expect(ofType(events, 'node.dispatched')[0]?.causationId).toBe(told[0]?.eventId);
    expect(await snapshotOf(childRunId)).toMatchObject({
      ...{ parentRunId: runId, parentNodeId: 'work', inputs: { order: 'A-1' } },
    });
  });

  it('RFC 0022: mappings of one worker, an agent as one, and what one gives the next is given', async () => {
    const runId = await start('maps-each', next(`agent:${CLERK}`, 'worker-echo'));
    expect(await doneAs(runId)).toMatchObject({ status: 'completed', variables: { got: 'paid' } });
    const [clerk = '', echo = ''] = await childrenOf(runId, 2);
    expect(await snapshotOf(clerk)).toMatchObject({ inputs: { order: 'A-1' } });
    expect(await snapshotOf(echo)).toMatchObject({ inputs: { order: 'paid' } });
    // RFC 0007, RFC 0002 §B: control passes to the worker that is another agent, once it is there.
    const events = await log(runId);
    const [handoff, ...more] = ofType(events, 'agent.handoff');
    expect(handoff?.payload).toMatchObject({ fromAgentId: BOSS, toAgentId: CLERK });
    expect(more).toEqual([]);
    const succeeded = ofType(events, 'core.workflowChain.event')[1];
    expect(handoff?.causationId).toBe(succeeded?.eventId);
  });

  it('a worker that fails, and one that is not there, are told; nothing of them is taken', async () => {
    const runId = await start('maps', next('worker-fails', 'no-such-workflow'));
    expect(await doneAs(runId)).toMatchObject({
      status: 'completed',
      variables: { got: 'nothing' },
    });
    const events = await log(runId);
    expect(phases(events)).toEqual([
      ...['dispatch.began', 'dispatch.succeeded', 'child.failed'],
      ...['dispatch.began', 'dispatch.failed'],
    ]);
    expect(payloadsIn(events, 'core.workflowChain.event').at(-1)).toMatchObject({
      error: { code: 'unknown_child_workflow' },
    });
  });

  it('an output that is no decision is given back to the model, and starts nobody', async () => {
    const runId = await start('maps', { kind: 'next-worker', nextWorkerIds: [] });
    expect(await doneAs(runId)).toMatchObject({
      error: { code: 'handoff_return_schema_violation' },
    });
    const events = await log(runId);
    expect(ofType(events, 'runOrchestrator.decided')).toEqual([]);
    expect(ofType(events, 'node.dispatched')).toEqual([]);
  });

  it('so is one that names more workers than are started together', async () => {
    const runId = await start('maps', next(...crowd(101)));
    expect(await doneAs(runId)).toMatchObject({
      error: {
        code: 'handoff_return_schema_violation',
        message: expect.stringContaining('/nextWorkerIds') as string,
      },
    });
    expect(ofType(await log(runId), 'runOrchestrator.decided')).toEqual([]);
  });

  it('ask-user: a human is asked, and the orchestrator is told the answer', async () => {
    const runId = await start('maps', { kind: 'ask-user', prompt: 'Shall I go on?' });
    const asked = await host.waitFor(runId, waiting);
    expect(asked).toMatchObject({
      status: 'waiting-input',
      interrupt: { questions: [{ id: 'answer', question: 'Shall I go on?' }] },
    });
    await resolve(runId, 'work', { answers: { answer: 'no' } });
    expect(await doneAs(runId)).toMatchObject({ status: 'completed', outputs: { reason: 'done' } });
  });

  it.each([
    [
      'RFC 0058: more turns than asked for',
      'capped',
      { configurable: { maxLoopIterations: 1 } },
      'loop-iterations',
    ],
    ['more dispatches than its cap', 'capped', {}, 'dispatch-iterations'],
  ])('%s end the run with loop_limit_exceeded', async (_, workflowId, more, kind) => {
    const runId = await start(workflowId, next('worker-echo'), more);
    expect(await doneAs(runId)).toMatchObject({
      ...{ status: 'failed', error: { code: 'loop_limit_exceeded' } },
    });
    expect(payloadsIn(await log(runId), 'cap.breached')).toMatchObject([
      { kind, limit: 1, observed: 2 },
    ]);
  });

  it('more than one worker where one is permitted: fan_out_unsupported', async () => {
    const runId = await start('one-only', next('worker-echo', 'worker-echo'));
    expect(await doneAs(runId)).toMatchObject({ error: { code: 'fan_out_unsupported' } });
  });

  it('more workers than may be started together: child_limit_exceeded, and none is', async () => {
    const runId = await start('conformance-crowd');
    expect(await doneAs(runId)).toMatchObject({ error: { code: 'child_limit_exceeded' } });
    const events = await log(runId);
    expect(ofType(events, 'node.dispatched')).toEqual([]);
    expect(payloadsIn(events, 'cap.breached')).toMatchObject([
      { kind: 'child-fan-out', limit: 100, observed: 101 },
    ]);
  });
});

describe('side by side (RFC 0118)', () => {
  it.each(['all', 'narrow'])(
    'wait-all: all are waited for, their order is told: %s',
    async (id) => {
      const runId = await start(id, next('worker-echo', 'worker-fails', 'worker-echo'));
      expect(await doneAs(runId)).toMatchObject({ status: 'completed' });
      const events = await log(runId);
      const children = await childrenOf(runId, 3);
      const [decided] = ofType(events, 'runOrchestrator.decided');
      const [fanned] = ofType(events, 'core.dispatch.fanOut');
      const [joined] = ofType(events, 'core.dispatch.join');
      expect([fanned?.causationId, joined?.causationId]).toEqual([
        ...[decided?.eventId, decided?.eventId],
      ]);
      expect(fanned?.payload).toMatchObject({ fanOutPolicy: 'parallel', childCount: 3 });
      expect(joined?.payload).toMatchObject({
        ...{ joinOutcome: 'partial', completedCount: 2, failedCount: 1, cancelledCount: 0 },
      });
      const { mergeOrder } = (joined?.payload ?? {}) as { mergeOrder?: string[] };
      expect([...(mergeOrder ?? [])].sort()).toEqual([...children].sort());
      const ends = payloadsIn(events, 'core.workflowChain.event').filter(({ phase }) =>
        String(phase).startsWith('child.'),
      );
      expect(ends.map(({ childRunId }) => childRunId)).toEqual(mergeOrder);
    },
  );

  it('first: the others are cancelled before the join is told', async () => {
    const runId = await start('first', next('worker-waits', 'worker-echo', 'worker-waits'));
    expect(await doneAs(runId)).toMatchObject({ status: 'completed', variables: { got: 'A-1' } });
    const children = await childrenOf(runId, 3);
    const found = await Promise.all(children.map(snapshotOf));
    expect(found.map(({ status }) => status)).toEqual(['cancelled', 'completed', 'cancelled']);
    expect(payloadsIn(await log(runId), 'core.dispatch.join')).toEqual([
      {
        ...{ joinOutcome: 'satisfied', completedCount: 1, failedCount: 0, cancelledCount: 2 },
        mergeOrder: [children[1]],
      },
    ]);
  });

  it('fail-fast: the first failure ends the others and fails the node', async () => {
    const runId = await start('fails-fast', next('worker-waits', 'worker-fails'));
    expect(await doneAs(runId)).toMatchObject({ error: { code: 'child_failed' } });
    const children = await childrenOf(runId, 2);
    expect((await snapshotOf(children[0] ?? '')).status).toBe('cancelled');
  });

  it('RFC 0007: a cancel ends the workers first', async () => {
    const runId = await start('all', next('worker-waits', 'worker-waits'));
    const children = await childrenOf(runId, 2);
    await Promise.all(children.map((childRunId) => host.waitFor(childRunId, waiting)));
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    expect(await doneAs(runId)).toMatchObject({ status: 'cancelled' });
    for (const childRunId of children)
      expect((await log(childRunId)).at(-1)).toMatchObject({
        ...{ type: 'run.cancelled', payload: { reason: 'parent-cancelled' } },
      });
  });
});

describe('what is not sure enough', () => {
  const unsure = { ...next('worker-echo'), confidence: 0.3 };

  it('RFC 0039 §A: below the floor nobody is started before a human agreed', async () => {
    const runId = await start('maps', unsure);
    expect(await host.waitFor(runId, waiting)).toMatchObject({ status: 'waiting-approval' });
    const before = await log(runId);
    expect(phases(before)).toEqual([]);
    const [decided] = ofType(before, 'runOrchestrator.decided');
    expect(ofType(before, 'core.workflowChain.confidence-escalated')).toMatchObject([
      {
        causationId: decided?.eventId,
        payload: {
          ...{ confidence: 0.3, floor: 0.5, escalationKind: 'escalate' },
          ...{ workerId: 'worker-echo', parentRunId: runId, originalDecision: unsure },
        },
      },
    ]);
    await resolve(runId, 'work', { action: 'accept' });
    expect(await doneAs(runId)).toMatchObject({ status: 'completed', variables: { got: 'A-1' } });
    const after = await log(runId);
    expect(ofType(after, 'core.workflowChain.confidence-escalated')).toHaveLength(1);
  });

  it('rejected: nobody is started', async () => {
    const runId = await start('maps', unsure);
    await host.waitFor(runId, waiting);
    await resolve(runId, 'work', { action: 'reject', reason: 'Too dear.' });
    expect(await doneAs(runId)).toMatchObject({
      error: {
        code: 'escalation_rejected',
        message: 'A human rejected what the orchestrator decided: Too dear.',
      },
    });
    expect(ofType(await log(runId), 'node.dispatched')).toEqual([]);
  });

  it('CP-1: below its own threshold the decision is held, and stated once when it is ratified', async () => {
    const runId = await start('conformance-low');
    expect(await host.waitFor(runId, waiting)).toMatchObject({ status: 'waiting-approval' });
    const before = await log(runId);
    expect(ofType(before, 'runOrchestrator.decided')).toEqual([]);
    expect(payloadsIn(before, 'node.suspended')).toMatchObject([
      { reason: 'low-confidence', threshold: 0.7, observed: 0.3 },
    ]);
    await resolve(runId, 'boss', { kind: 'terminate', reason: 'enough' });
    expect(await doneAs(runId)).toMatchObject({ status: 'completed' });
    expect(payloadsIn(await log(runId), 'runOrchestrator.decided')).toMatchObject([
      { decision: { kind: 'terminate', reason: 'enough' }, iteration: 1 },
    ]);
  });
});

describe('a decision that a human gives in the place of an orchestrator’s', () => {
  const long = { kind: 'terminate', reason: 'more than ten letters' };
  const enough = { kind: 'terminate', reason: 'enough' };
  const asEdit = (decision: object) => ({ action: 'edit-accept', decision });
  const refusalOf = async (runId: string, value: object) => {
    const { status, body } = await resolve(runId, 'boss', value);
    return [status, body.error, (body.details as { field?: string }).field];
  };

  // [I117]
  it.each<[string, string, object, string]>([
    ['brief', 'against the agent’s return schema', long, '/reason'],
    ['brief', 'against a form of its dialect', next('worker-fails'), '/nextWorkerIds/0'],
    [
      'brief',
      'with more workers than are started together',
      next(...crowd(1000)),
      '/nextWorkerIds',
    ],
    ['conformance-low', 'and so is one of a plan', next(...crowd(1000)), '/nextWorkerIds'],
  ])('is refused at its place, and the question stays open: %s, %s', async (id, _, value, at) => {
    const runId = await start(id);
    await host.waitFor(runId, waiting);
    for (const [given, pointer] of [
      [value, at],
      [asEdit(value), `/decision${at}`],
    ] as const)
      expect(await refusalOf(runId, given)).toEqual([
        ...[400, 'validation_error', `/resumeValue${pointer}`],
      ]);
    expect(await snapshotOf(runId)).toMatchObject({ status: 'waiting-approval' });
    expect((await resolve(runId, 'boss', enough)).status).toBe(200);
    expect(await doneAs(runId)).toMatchObject({ outputs: { reason: 'enough' } });
  });
});

describe('conformance/fixtures.md: plans of test definitions', () => {
  it.each(['conformance-dispatch-loop', 'conformance-plan'])('%s', async (workflowId) => {
    const runId = await start(workflowId);
    expect(await doneAs(runId)).toMatchObject({ status: 'completed' });
    const decided = payloadsIn(await log(runId), 'runOrchestrator.decided');
    expect(decided.map(({ decision }) => (decision as { kind: string }).kind)).toEqual([
      ...['next-worker', 'terminate'],
    ]);
  });

  it('conformance-multi-agent-handoff: four events of the chain, the last with what was harvested', async () => {
    const runId = await start('conformance-multi-agent-handoff');
    expect(await doneAs(runId)).toMatchObject({ variables: { parentResult: 'A-0' } });
    const events = await log(runId);
    expect(phases(events)).toHaveLength(4);
    expect(payloadsIn(events, 'core.workflowChain.event').at(-1)).toMatchObject({
      ...{ phase: 'output.harvested', harvestedKeys: ['parentResult'] },
    });
  });

  it('conformance-multi-agent-confidence-escalation: escalated once, nothing of a chain', async () => {
    const runId = await start('conformance-multi-agent-confidence-escalation');
    await host.waitFor(runId, waiting);
    const events = await log(runId);
    expect(ofType(events, 'core.workflowChain.confidence-escalated')).toHaveLength(1);
    expect(phases(events)).toEqual([]);
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    expect(await doneAs(runId)).toMatchObject({ status: 'cancelled' });
  });

  it('conformance-orchestrator-terminate: decided first, then the run ends with the reason, and nobody began', async () => {
    const runId = await start('conformance-orchestrator-terminate');
    expect(await doneAs(runId)).toMatchObject({ outputs: { reason: 'nothing to do' } });
    const events = await log(runId);
    expect(payloadsIn(events, 'runOrchestrator.decided')).toHaveLength(1);
    expect(ofType(events, 'node.dispatched')).toEqual([]);
  });
});
