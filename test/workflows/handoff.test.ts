// Handoffs by the model (RFC 0002 §B, RFC 0077 §E): the agent that it names goes on in the same node, in a bracket, a
// conversation and by rules of its own.
import { Context } from '@temporalio/activity';
import { describe, expect, it } from 'vitest';
import type { InferTurnInput } from '../../activities/contract.ts';
import { MAX_HANDOFFS_PER_VISIT } from '../../src/rules/handoffs.ts';
import type { PinnedAgent } from '../../src/rules/run-input.ts';
import { ANSWER_LIST, ratificationSchema } from '../../workflows/ratification.ts';
import { answersSchema } from '../../src/rules/answer-schemas.ts';
import { agentNode, definition, edge, node, pinned, runInput } from '../support/definitions.ts';
import { until } from '../support/host.ts';
import type { FinishedRun } from '../support/run-workflow.ts';
import type { WorkflowDefinition } from '../../schemas/types.generated.ts';
import {
  answer,
  factsOf,
  payloadsOf,
  runBothWays,
  runOnce,
  typesOf,
  useWorkflowRunner,
  type Scenario,
} from './both-ways.ts';
import { AGENT, decision, oneAgent, scripted, type Turn } from './scripted-agent.ts';

useWorkflowRunner();

const OTHER = 'local.test.pack.other';
const agentList: readonly PinnedAgent[] = [
  pinned(AGENT, { toolAllowlist: [`handoff:${OTHER}`, 'core:clock'] }),
  pinned(OTHER, { toolAllowlist: [`handoff:${AGENT}`], confidenceThreshold: 0.9 }),
];
const toOther: Turn = {
  ...{ kind: 'handoff', toAgentId: OTHER, task: { amount: 5 } },
  reason: 'It is about money.',
};
const toFirst: Turn = { kind: 'handoff', toAgentId: AGENT, task: { back: true } };

/** Each agent by its own script. */
function byAgent(scripts: Readonly<Record<string, readonly Turn[]>>) {
  const base = scripted({ turns: [decision('unused')] });
  const { activities, prepares, infers } = base;
  const players = new Map(
    Object.entries(scripts).map(([agentId, turns]) => [agentId, scripted({ turns })]),
  );
  return {
    prepares,
    infers,
    activities: {
      ...activities,
      async inferTurn(input: InferTurnInput) {
        infers.push(input);
        const player = players.get(input.agent.agentId);
        if (!player) throw new Error(`no script of ${input.agent.agentId}`);
        return player.activities.inferTurn(input);
      },
    },
  };
}

describe('a handoff by the model', () => {
  it('decided, handed over, bracket closed; then the other agent in its own bracket with the task given', async () => {
    const { activities, prepares } = byAgent({
      [AGENT]: [toOther],
      [OTHER]: [decision({ paid: true }, 1)],
    });
    const run = await runBothWays({ input: oneAgent({ agentList }), activities });
    expect(typesOf(run).map((type) => type.split(' ')[0])).toEqual([
      ...['run.started', 'node.started'],
      ...['agent.invocation.started', 'agent.promptResolved', 'prompt.composed', 'agent.reasoned'],
      ...['agent.decided', 'agent.handoff', 'agent.invocation.completed'],
      ...['agent.invocation.started', 'agent.promptResolved', 'prompt.composed', 'agent.reasoned'],
      ...['agent.decided', 'output.chunk', 'agent.invocation.completed'],
      ...['node.completed', 'run.completed'],
    ]);
    expect(payloadsOf(run, 'agent.decided')[0]).toEqual({
      agentId: AGENT,
      decision: { action: 'handoff', toAgentId: OTHER },
      reasoning: 'It is about money.',
    });
    expect(payloadsOf(run, 'agent.handoff')).toEqual([
      {
        ...{ fromAgentId: AGENT, toAgentId: OTHER, reason: 'It is about money.' },
        context: { amount: 5 },
      },
    ]);
    const brackets = payloadsOf(run, 'agent.invocation.completed');
    expect(brackets.map(({ agentId, outcome }) => [agentId, outcome])).toEqual([
      [AGENT, 'handed-off'],
      [OTHER, 'completed'],
    ]);
    expect(new Set(brackets.map(({ invocationId }) => invocationId)).size).toBe(2);
    expect(payloadsOf(run, 'run.completed')).toEqual([
      { outputs: { decision: { paid: true }, confidence: 1 } },
    ]);
    // Each is asked as itself: its task, and whom it may pass control to in turn.
    const [first, second] = prepares.slice(0, 2);
    expect(first).toMatchObject({ agent: { agentId: AGENT }, handoffs: [{ agentId: OTHER }] });
    expect(second).toMatchObject({
      ...{ agent: { agentId: OTHER }, task: { amount: 5 } },
      handoffs: [{ agentId: AGENT }],
    });
    expect(second?.resume).toBeUndefined();
  });

  it('the bracket of the successor follows from the handoff (seed 003 §1.2)', async () => {
    const { activities } = byAgent({ [AGENT]: [toOther], [OTHER]: [decision('done', 1)] });
    const run = await runBothWays({ input: oneAgent({ agentList }), activities, plainOnly: true });
    const facts = factsOf(run);
    const handoff = facts.find(({ type }) => type === 'agent.handoff');
    const [, second] = facts.filter(({ type }) => type === 'agent.invocation.started');
    expect(second?.causedBy).toBe(handoff?.key);
  });

  it('who took over may be unsure by its own threshold: it is asked about, and its ratified word stands', async () => {
    const { activities } = byAgent({ [AGENT]: [toOther], [OTHER]: [decision('perhaps', 0.8)] });
    const run = await runBothWays({
      input: oneAgent({ agentList }),
      activities,
      script: async (handle) =>
        void (await answer(
          handle,
          'think',
          { action: 'accept' },
          ratificationSchema(undefined, [ANSWER_LIST]),
        )),
    });
    expect(payloadsOf(run, 'node.suspended')).toMatchObject([{ agentId: OTHER, threshold: 0.9 }]);
    expect(payloadsOf(run, 'agent.invocation.completed').map((it) => it.outcome)).toEqual([
      ...['handed-off', 'escalated', 'completed'],
    ]);
    expect(payloadsOf(run, 'agent.handoff')).toHaveLength(1);
  });

  it('an answer that one agent asked for stays with it: who takes over begins a conversation of its own', async () => {
    const questions = [{ id: 'q1', question: 'Which order?' }];
    const { activities, prepares } = byAgent({
      [AGENT]: [{ kind: 'clarification', questions }, toOther],
      [OTHER]: [decision('done', 1)],
    });
    // The script goes by the length of the conversation: the answers add two.
    const resumed = {
      ...activities,
      async inferTurn(input: InferTurnInput) {
        const isFirst = input.agent.agentId === AGENT && !input.transcript.includes('+a');
        return activities.inferTurn({ ...input, transcript: isFirst ? 't' : 'tt' });
      },
    };
    const run = await runBothWays({
      input: oneAgent({ agentList }),
      activities: resumed,
      script: async (handle) => {
        const value = { answers: { q1: 'A-1' } };
        await answer(handle, 'think', value, answersSchema(questions));
      },
    });
    expect(run.status).toBe('completed');
    expect(prepares.slice(0, 3).map(({ resume }) => resume?.answers)).toEqual([
      ...[undefined, { q1: 'A-1' }, undefined],
    ]);
  });

  it('a ring ends by the bound: cap.breached, handoff_limit_exceeded, and no attempt more', async () => {
    const { activities } = byAgent({ [AGENT]: [toOther], [OTHER]: [toFirst] });
    const nodes = [
      agentNode('think', AGENT, { settings: { retry: { maxAttempts: 3, initialDelayMs: 1 } } }),
    ];
    const run = await runBothWays({
      input: runInput(definition('ring', nodes), { agentList }),
      activities,
    });
    expect(payloadsOf(run, 'agent.handoff')).toHaveLength(MAX_HANDOFFS_PER_VISIT);
    expect(payloadsOf(run, 'cap.breached')).toEqual([
      {
        ...{ kind: 'handoffs', limit: MAX_HANDOFFS_PER_VISIT },
        ...{ observed: MAX_HANDOFFS_PER_VISIT + 1, nodeId: 'think' },
      },
    ]);
    expect(payloadsOf(run, 'node.failed')).toMatchObject([
      { attempts: 1, error: { code: 'handoff_limit_exceeded' } },
    ]);
    expect(payloadsOf(run, 'agent.invocation.completed').at(-1)).toMatchObject({
      outcome: 'failed',
    });
  });

  it('a task that never fits: the model is told, SCHEMA_ROUNDS times, then handoff_task_schema_violation', async () => {
    const message = 'The task does not match.';
    const bad: Turn = { kind: 'invalid', violation: 'task-schema', message };
    const { activities, infers } = byAgent({ [AGENT]: [bad] });
    const run = await runBothWays({ input: oneAgent({ agentList }), activities, plainOnly: true });
    expect(infers.slice(0, 3).map(({ repair }) => repair)).toEqual([undefined, message, message]);
    expect(payloadsOf(run, 'agent.handoff')).toEqual([]);
    expect(payloadsOf(run, 'envelope.retry.exhausted')).toMatchObject([
      { finalReason: 'schema-violation' },
    ]);
    expect(payloadsOf(run, 'node.failed')[0]?.error).toMatchObject({
      code: 'handoff_task_schema_violation',
    });
  });

  it('a new attempt begins with the agent of the node', async () => {
    const failing: Turn = { kind: 'invalid', violation: 'form', message: 'no' };
    const { activities, prepares } = byAgent({ [AGENT]: [toOther], [OTHER]: [failing] });
    const nodes = [
      agentNode('think', AGENT, { settings: { retry: { maxAttempts: 2, initialDelayMs: 1 } } }),
    ];
    await runBothWays({ input: runInput(definition('again', nodes), { agentList }), activities });
    expect(prepares.slice(0, 4).map(({ agent }) => agent.agentId)).toEqual([
      ...[AGENT, OTHER, AGENT, OTHER],
    ]);
  });

  it('a cancel while the successor thinks: its bracket is closed, that of the first stands', async () => {
    const { activities } = byAgent({ [AGENT]: [toOther], [OTHER]: [] });
    let isThinking = false;
    const run = await runOnce({
      input: oneAgent({ agentList }),
      activities: {
        ...activities,
        async inferTurn(input: InferTurnInput) {
          if (input.agent.agentId === AGENT) return activities.inferTurn(input);
          isThinking = true;
          const context = Context.current();
          const beat = setInterval(() => context.heartbeat(), 200);
          return context.cancelled.finally(() => clearInterval(beat));
        },
      },
      script: async (handle) => {
        await until(() => isThinking, 'the successor thinks');
        await handle.cancel();
      },
    });
    expect(run.status).toBe('cancelled');
    expect(payloadsOf(run, 'agent.invocation.completed').map((it) => it.outcome)).toEqual([
      ...['handed-off', 'failed'],
    ]);
  });

  it('over an edge behind it control passes from who decided, not from who was asked first', async () => {
    const third = 'local.test.pack.third';
    const { activities } = byAgent({
      [AGENT]: [toOther],
      // Decides, whoever hands over: the one in its own node too.
      [OTHER]: [decision('go', 1)],
      [third]: [decision('end', 1)],
    });
    const workflow = definition(
      'onwards',
      [agentNode('a', AGENT), agentNode('b', OTHER), agentNode('c', third)],
      [edge('a', 'b'), edge('b', 'c', { label: 'go on' })],
    );
    const input = runInput(workflow, { agentList: [...agentList, pinned(third)] });
    const run = await runBothWays({ input, activities });
    const handoffs = payloadsOf(run, 'agent.handoff');
    expect(handoffs.map(({ fromAgentId, toAgentId }) => [fromAgentId, toAgentId])).toEqual([
      [AGENT, OTHER],
      [OTHER, third],
    ]);
  });
});

describe('control passes between nodes', () => {
  const [A, B, C] = ['local.test.pack.a', 'local.test.pack.b', 'local.test.pack.c'] as const;
  const three = [A, B, C].map((agentId) => pinned(agentId));
  const noop = (id: string) => node(id, 'core.noop');
  const passed = (run: FinishedRun) =>
    factsOf(run)
      .filter(({ type }) => type === 'agent.handoff')
      .map(({ nodeId, payload }) => [nodeId, payload.fromAgentId, payload.toAgentId]);
  const decides = { [A]: [decision(1, 1)], [B]: [decision(1, 1)], [C]: [decision(1, 1)] };
  const play = (workflow: WorkflowDefinition, more: Partial<Scenario> = {}) => {
    const { activities } = byAgent(decides);
    return runBothWays({ input: runInput(workflow, { agentList: three }), activities, ...more });
  };

  it('behind nodes without an agent, as the next agent begins: before its bracket, with the edge as the reason', async () => {
    const workflow = definition(
      'behind',
      [agentNode('a', A), noop('m'), noop('n'), agentNode('b', B)],
      [edge('a', 'm', { label: 'go' }), edge('m', 'n'), edge('n', 'b')],
    );
    const run = await play(workflow);
    expect(payloadsOf(run, 'agent.handoff')).toEqual([
      { fromAgentId: A, toAgentId: B, reason: 'go' },
    ]);
    const types = typesOf(run);
    const at = types.indexOf('agent.handoff b');
    expect(types.slice(at - 1, at + 2)).toEqual([
      ...['node.started b', 'agent.handoff b', 'agent.invocation.started b'],
    ]);
    expect(payloadsOf(run, 'agent.invocation.completed').map((it) => it.outcome)).toEqual([
      ...['completed', 'completed'],
    ]);
  });

  it('over one edge it is stated once, by who hands over, with its decision as the context', async () => {
    const run = await play(
      definition('one', [agentNode('a', A), agentNode('b', B)], [edge('a', 'b')]),
      { plainOnly: true },
    );
    expect(passed(run)).toEqual([['a', A, B]]);
    expect(payloadsOf(run, 'agent.handoff')[0]).toMatchObject({ context: 1 });
  });

  it('to each node of a fan-out, where nobody was handed the whole', async () => {
    const workflow = definition(
      'out',
      [agentNode('a', A), agentNode('b', B), agentNode('c', C), agentNode('d', A)],
      [edge('a', 'b'), edge('a', 'c'), edge('a', 'd')],
    );
    const run = await play(workflow, { plainOnly: true });
    expect(passed(run).sort()).toEqual([
      ['b', A, B],
      ['c', A, C],
    ]);
    const [first] = payloadsOf(run, 'agent.invocation.completed');
    expect(first).toMatchObject({ agentId: A, outcome: 'completed' });
  });

  it('from each agent that a join waited for, once, over whatever it came', async () => {
    const workflow = definition(
      'join',
      [noop('s'), agentNode('a', A), agentNode('b', B), noop('m'), noop('j'), agentNode('c', C)],
      [
        ...[edge('s', 'a'), edge('s', 'b'), edge('a', 'm'), edge('a', 'j')],
        ...[edge('m', 'j'), edge('b', 'j'), edge('j', 'c')],
      ],
    );
    const run = await play(workflow, { parallel: true });
    expect(passed(run)).toEqual([
      ['c', A, C],
      ['c', B, C],
    ]);
  });

  it('over a loop: back to the first agent, each time round, and not where the bound ends it', async () => {
    const workflow = definition(
      'round',
      [noop('s'), agentNode('a', A), agentNode('b', B)],
      [edge('s', 'a'), edge('a', 'b'), edge('b', 'a')],
      { settings: { maxLoopbackIterations: 2 } },
    );
    const run = await play(workflow);
    expect(passed(run)).toEqual([
      ...[
        ['a', A, B],
        ['b', B, A],
        ['a', A, B],
        ['b', B, A],
        ['a', A, B],
      ],
    ]);
    expect(payloadsOf(run, 'agent.invocation.completed').at(-1)).toMatchObject({
      ...{ agentId: B, outcome: 'completed' },
    });
  });

  it('what was passed in one round is not passed again in the next', async () => {
    const workflow = definition(
      'stale',
      [agentNode('x', C), noop('w'), noop('a'), agentNode('b', B)],
      [edge('x', 'w'), edge('w', 'a'), edge('w', 'b'), edge('a', 'b'), edge('b', 'a')],
      { settings: { maxLoopbackIterations: 1 } },
    );
    const run = await play(workflow, { plainOnly: true });
    expect(passed(run)).toEqual([['b', C, B]]);
  });

  it('to a node that only names another agent, and on from there; not over an edge that was not taken, nor to a disabled node', async () => {
    const never = { condition: { type: 'equals', left: 'outputs.decision', right: 9 } } as const;
    const workflow = definition(
      'named',
      [
        agentNode('a', A),
        { ...noop('named'), agent: { agentId: B } },
        agentNode('c', C),
        { ...agentNode('off', C), disabled: true },
        agentNode('last', A),
      ],
      [edge('a', 'named'), edge('a', 'c', never), edge('named', 'off'), edge('named', 'last')],
    );
    expect(passed(await play(workflow, { plainOnly: true }))).toEqual([
      ['named', A, B],
      ['last', B, A],
    ]);
  });

  it('a second attempt does not state it again', async () => {
    const settings = { retry: { maxAttempts: 2, initialDelayMs: 1 } };
    const failing: Turn = { kind: 'invalid', violation: 'form', message: 'no' };
    const { activities } = byAgent({ ...decides, [B]: [failing] });
    const workflow = definition(
      'again',
      [agentNode('a', A), noop('m'), agentNode('b', B, { settings })],
      [edge('a', 'm'), edge('m', 'b')],
    );
    const run = await runBothWays({ input: runInput(workflow, { agentList: three }), activities });
    expect(payloadsOf(run, 'node.retried')).toHaveLength(1);
    expect(passed(run)).toEqual([['b', A, B]]);
  });
});
