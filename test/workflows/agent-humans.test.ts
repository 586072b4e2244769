// Where an agent's node goes to a human: low confidence, questions of its own, an effect in doubt (RFC 0002 §F;
// architecture §5, §9).
import { defaultPayloadConverter } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import type { CallToolInput, CallToolOutput, InferTurnInput } from '../../activities/contract.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { answersSchema } from '../../src/rules/answer-schemas.ts';
import { ANSWER_LIST, ratificationSchema } from '../../workflows/ratification.ts';
import { agentNode, definition, edge, node, pinned, runInput } from '../support/definitions.ts';
import {
  answer,
  factsOf,
  payloadsOf,
  runBothWays,
  runOnce,
  typesOf,
  useWorkflowRunner,
} from './both-ways.ts';
import { AGENT, decision, oneAgent, scripted, type Script, type Turn } from './scripted-agent.ts';

useWorkflowRunner();

const ratification = (): JsonObject => ratificationSchema(undefined, [ANSWER_LIST]);

describe('low confidence (RFC 0002 §F, architecture §9)', () => {
  const low = [decision({ refund: 10 }, 0.55)];
  const withAnswer =
    (value: JsonValue, schema = ratification()) =>
    async (handle: Parameters<typeof answer>[0]) =>
      void (await answer(handle, 'think', value, schema));

  it('suspends with reason, agentId, threshold, observed; the bracket closed as escalated before', async () => {
    const { activities, infers } = scripted({ turns: low });
    const run = await runBothWays({
      input: oneAgent(),
      activities,
      script: withAnswer({ action: 'accept' }),
    });
    const types = typesOf(run).map((type) => type.split(' ')[0]);
    expect(types.slice(types.indexOf('agent.decided'))).toEqual([
      'agent.decided',
      'agent.invocation.completed',
      'node.suspended',
      'interrupt.requested',
      'interrupt.resolved',
      'node.resumed',
      'agent.invocation.started',
      'agent.promptResolved',
      'prompt.composed',
      'agent.decided',
      'output.chunk',
      'agent.invocation.completed',
      'node.completed',
      'run.completed',
    ]);
    expect(payloadsOf(run, 'node.suspended')[0]).toMatchObject({
      kind: 'low-confidence',
      reason: 'low-confidence',
      agentId: AGENT,
      threshold: 0.7,
      observed: 0.55,
    });
    expect(payloadsOf(run, 'agent.invocation.completed').map(({ outcome }) => outcome)).toEqual([
      'escalated',
      'completed',
    ]);
    expect(infers).toHaveLength(2); // one per way: accepting calls no model
    expect(payloadsOf(run, 'node.completed')[0]?.outputs).toEqual({ decision: { refund: 10 } });
  });

  it('edit-accept ratifies the edited value; reject fails the node with escalation_rejected, routable', async () => {
    const edited = await runBothWays({
      input: oneAgent(),
      activities: scripted({ turns: low }).activities,
      script: withAnswer({ action: 'edit-accept', decision: { refund: 5 } }),
    });
    expect(payloadsOf(edited, 'node.completed')[0]?.outputs).toEqual({ decision: { refund: 5 } });
    const rejected = await runBothWays({
      input: oneAgent(),
      plainOnly: true,
      activities: scripted({ turns: low }).activities,
      script: withAnswer({ action: 'reject', reason: 'too much' }),
    });
    expect(payloadsOf(rejected, 'node.failed')[0]?.error).toEqual({
      code: 'escalation_rejected',
      message: 'A human rejected the decision: too much',
    });
  });

  it('answers start a new invocation with a model call on the same conversation', async () => {
    const { activities, prepares } = scripted({
      turns: [decision('?', 0.2), decision('?', 0.2), decision('?', 0.2), decision('sure', 1)],
    });
    const run = await runBothWays({
      input: oneAgent(),
      activities,
      script: withAnswer({ answers: { why: 'because' } }),
    });
    expect(prepares.filter(({ resume }) => resume).map(({ resume }) => resume)).toEqual(
      Array(2).fill({ transcript: 't.', answers: { why: 'because' } }),
    );
    expect(payloadsOf(run, 'agent.invocation.started')).toHaveLength(2);
    expect(payloadsOf(run, 'node.completed')[0]?.outputs).toEqual({
      decision: 'sure',
      confidence: 1,
    });
  });

  it('RFC 0002 §F action 2: the same question reads as a clarification, answered by a list of answers', async () => {
    const { activities, prepares } = scripted({
      turns: [decision('?', 0.2), decision('?', 0.2), decision('?', 0.2), decision('sure', 1)],
    });
    const run = await runBothWays({
      input: oneAgent(),
      activities,
      script: withAnswer({ answers: [{ id: 'guidance', answer: 'because' }] }),
    });
    expect(payloadsOf(run, 'interrupt.requested')[0]?.data).toMatchObject({
      ...{ agentId: AGENT, threshold: 0.7, observed: 0.2, decision: '?' },
      questions: [
        {
          id: 'guidance',
          question: `What should ${AGENT} know? It decides again with your answer.`,
        },
      ],
    });
    expect(prepares.find(({ resume }) => resume)?.resume?.answers).toEqual({ guidance: 'because' });
    expect(payloadsOf(run, 'node.completed')[0]?.outputs).toMatchObject({ decision: 'sure' });
  });

  it('at most three escalations a visit, then escalation_limit', async () => {
    const { activities } = scripted({ turns: [decision('?', 0.1)] });
    const run = await runBothWays({
      plainOnly: true,
      input: oneAgent(),
      activities,
      script: async (handle) => {
        for (let round = 0; round < 3; round++)
          await answer(handle, 'think', { answers: { n: String(round) } }, ratification());
      },
    });
    expect(payloadsOf(run, 'node.suspended')).toHaveLength(3);
    expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({ code: 'escalation_limit' });
  });

  it('thresholds: per run over per agent over 0.7; equal goes on; absent is no signal', async () => {
    const cases: [Partial<RunInput>, number | undefined][] = [
      [{ configurable: { escalationThreshold: 0.5 } }, 0.5],
      [{ agentList: [pinned(AGENT, { confidenceThreshold: 0.3 })] } as Partial<RunInput>, 0.35],
      [{}, 0.7],
      [{}, undefined],
    ];
    for (const [more, confidence] of cases) {
      const run = await runBothWays({
        plainOnly: true,
        input: oneAgent(more),
        activities: scripted({ turns: [decision('d', confidence)] }).activities,
      });
      expect(run.status).toBe('completed');
    }
  });

  it('switched off: cap.breached confidence-escalation-suppressed, and on with the decision', async () => {
    const run = await runBothWays({
      input: oneAgent({ policy: { escalation: false, verbosity: 'summary' } }),
      plainOnly: true,
      activities: scripted({ turns: low }).activities,
    });
    expect(payloadsOf(run, 'cap.breached')).toEqual([
      { kind: 'confidence-escalation-suppressed', limit: 0.7, observed: 0.55, nodeId: 'think' },
    ]);
    expect(payloadsOf(run, 'node.completed')[0]?.outputs).toEqual({
      decision: { refund: 10 },
      confidence: 0.55,
    });
  });
});

describe('RFC 0002 §F action 1: in a run with an orchestrator', () => {
  const BOSS = 'local.test.pack.boss';
  const boss = (id: string, agentId = BOSS) =>
    node(id, 'core.orchestrator.supervisor', { agent: { agentId }, config: {} });
  const input = (more: Partial<RunInput> = {}, nodes = [boss('boss')]): RunInput =>
    runInput(
      definition(
        'led',
        [agentNode('think', AGENT), ...nodes],
        nodes.map(({ id }) => edge('think', id)),
      ),
      { agentList: [AGENT, BOSS, 'local.test.pack.deputy'].map((id) => pinned(id)), ...more },
    );
  const orders = (confidence?: number) => decision({ kind: 'terminate' }, confidence);
  const unsure = (turns: readonly Turn[] = [orders()]) => {
    const [led, doubts] = [scripted({ turns }), scripted({ turns: [decision('perhaps', 0.5)] })];
    return {
      ...led.activities,
      inferTurn: (turn: InferTurnInput) =>
        (turn.agent.agentId === AGENT ? doubts : led).activities.inferTurn(turn),
    };
  };
  const accepted = async (handle: Parameters<typeof answer>[0]) =>
    void (await answer(handle, 'think', { action: 'accept' }, ratification()));

  it('it decides to ask the user, once, because of the decision; the question follows from that', async () => {
    const run = await runBothWays({ input: input(), activities: unsure(), script: accepted });
    expect(payloadsOf(run, 'runOrchestrator.decided')).toEqual([
      {
        ...{ agentId: BOSS, iteration: 1 },
        decision: { kind: 'ask-user', prompt: `Go on with the decision of ${AGENT}?` },
      },
      { agentId: BOSS, iteration: 2, decision: { kind: 'terminate' } },
    ]);
    const facts = factsOf(run);
    const first = (type: string) => facts.find((fact) => fact.type === type);
    const asked = first('runOrchestrator.decided');
    expect(asked?.causedBy).toBe(first('agent.decided')?.key);
    expect(first('node.suspended')?.causedBy).toBe(asked?.key);
    const types = typesOf(run);
    const at = types.indexOf('runOrchestrator.decided think');
    expect(types.slice(at - 1, at + 2)).toEqual([
      ...['agent.invocation.completed think', 'runOrchestrator.decided think'],
      'node.suspended think',
    ]);
    expect(run.status).toBe('completed');
  });

  it.each<[string, RunInput]>([
    ['it has had all its turns', input({ configurable: { maxLoopIterations: 0 } })],
    ['several could be it', input({}, [boss('boss'), boss('deputy', 'local.test.pack.deputy')])],
    ['it is disabled', input({}, [{ ...boss('boss'), disabled: true }])],
  ])('the human is asked at once where %s', async (_name, given) => {
    const schema = ratification();
    const run = await runBothWays({
      input: given,
      activities: unsure(),
      parallel: true,
      script: async (handle) => void (await answer(handle, 'think', { action: 'reject' }, schema)),
    });
    expect(payloadsOf(run, 'runOrchestrator.decided')).toEqual([]);
    expect(payloadsOf(run, 'node.suspended')).toHaveLength(1);
  });
});

describe('an agent asks instead of deciding (envelope clarification.request, capabilities.md)', () => {
  const questions = [{ id: 'size', question: 'Which size?' }];
  const asks: Turn = { kind: 'clarification', questions };

  it('a human answers, and a new invocation goes on with the answers', async () => {
    const { activities, prepares } = scripted({ turns: [asks, asks, asks, decision('large', 1)] });
    const run = await runBothWays({
      input: oneAgent(),
      activities,
      script: async (handle) =>
        void (await answer(handle, 'think', { answers: { size: 'L' } }, answersSchema(questions))),
    });
    expect(payloadsOf(run, 'interrupt.requested')[0]).toMatchObject({
      kind: 'clarification',
      data: { agentId: AGENT, questions },
    });
    expect(payloadsOf(run, 'clarification.requested')[0]).toMatchObject({ questions });
    expect(payloadsOf(run, 'agent.invocation.completed')).toMatchObject([
      { outcome: 'escalated' },
      { outcome: 'completed' },
    ]);
    expect(payloadsOf(run, 'agent.decided')).toMatchObject([{ decision: 'large' }]);
    expect(prepares.map(({ resume }) => resume?.answers)).toEqual([
      undefined,
      { size: 'L' },
      undefined,
      { size: 'L' },
    ]);
  });

  it('what is asked stands once in what a segment carries on', async () => {
    const question = 'Which size?';
    const { activities } = scripted({ turns: [asks, decision('large', 1)] });
    const run = await runOnce({
      input: oneAgent({ forceContinueAsNewAfter: 5 }),
      activities,
      script: async (handle) =>
        void (await answer(handle, 'think', { answers: { size: 'L' } }, answersSchema(questions))),
    });
    const carried = run.segments.map(([first]) => {
      const { input } = first?.workflowExecutionStartedEventAttributes ?? {};
      const state = defaultPayloadConverter.fromPayload<{ carried?: unknown }>(
        input?.payloads?.[0] ?? {},
      ).carried;
      return JSON.stringify(state ?? {}).split(question).length - 1;
    });
    expect(carried).toContain(1);
    expect(Math.max(...carried)).toBe(1);
  });

  it('limits.clarificationRounds: the fourth envelope is cap.breached, and the node fails', async () => {
    const { activities } = scripted({ turns: [asks] });
    const run = await runOnce({
      input: oneAgent(),
      activities,
      script: async (handle) => {
        for (let round = 0; round < 3; round++)
          await answer(handle, 'think', { answers: { size: 'L' } }, answersSchema(questions));
      },
    });
    expect(payloadsOf(run, 'cap.breached')).toMatchObject([
      { kind: 'clarification', limit: 3, observed: 4 },
    ]);
    expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({ code: 'escalation_limit' });
  });
});

describe('whatever an agent asks stands for a time, and silence is never consent (interrupt.md)', () => {
  const asks = (output: CallToolOutput): Script => ({
    turns: [{ kind: 'calls', calls: [{ toolId: 'core:clock', arguments: {} }] }],
    call: () => output,
  });
  it.each<[string, Script]>([
    ['a decision below the threshold', { turns: [decision('pay', 0.1)] }],
    ['a question', { turns: [{ kind: 'clarification', questions: [{ id: 'q', question: '?' }] }] }],
    ['an effect in doubt', asks({ kind: 'in-doubt', effectId: 'eff-1', reason: 'it died' })],
    ['a call that needs a word', asks({ kind: 'needs-approval', reason: 'the operator asks' })],
  ])('%s', async (_what, script) => {
    const limits = { ...oneAgent().limits, interruptTimeoutMs: 400 };
    const run = await runBothWays({ input: oneAgent({ limits }), ...scripted(script) });
    expect(payloadsOf(run, 'interrupt.requested')[0]?.timeoutMs).toBe(400);
    expect(payloadsOf(run, 'interrupt.resolved')[0]).toMatchObject({
      outcome: 'rejected',
      reason: 'timeout',
    });
    expect(payloadsOf(run, 'node.failed')[0]?.error).toMatchObject({ code: 'interrupt_timeout' });
    expect(payloadsOf(run, 'agent.toolReturned').filter(({ status }) => status === 'ok')).toEqual(
      [],
    );
    const own = await runBothWays({
      input: oneAgent({ limits }, { escalationTimeoutMs: 300 }),
      ...scripted(script),
      plainOnly: true,
    });
    expect(payloadsOf(own, 'interrupt.requested')[0]?.timeoutMs).toBe(300);
  });
});

describe('an effect in doubt goes to a human (architecture §5)', () => {
  const doubtful = (input: CallToolInput): CallToolOutput =>
    input.resolution
      ? { kind: 'returned', status: 'ok', resultHash: `h:${input.resolution.kind}` }
      : { kind: 'in-doubt', effectId: 'eff-1', reason: 'the worker died', epoch: 1 };

  it('asks once, performs by the answer, and the conversation goes on with the result', async () => {
    const { activities, infers } = scripted({
      turns: [
        { kind: 'calls', calls: [{ toolId: 'core:clock', arguments: { a: 1 } }] },
        decision('done'),
      ],
      call: doubtful,
    });
    const schema = approvalSchema(['accept', 'reject', 'edit-accept']);
    const run = await runBothWays({
      input: oneAgent(),
      activities,
      script: async (handle) =>
        void (await answer(
          handle,
          'think',
          { action: 'edit-accept', editedArtifactData: { paid: true } },
          schema,
        )),
    });
    expect(payloadsOf(run, 'interrupt.requested')[0]).toMatchObject({
      kind: 'approval',
      data: { artifactType: 'effect-in-doubt', artifactId: 'eff-1' },
    });
    expect(
      infers
        .filter(({ results }) => results.length > 0)
        .map(({ results }) => results[0]?.resultHash),
    ).toEqual(['h:happened', 'h:happened']);
    expect(run.status).toBe('completed');
  });
});
