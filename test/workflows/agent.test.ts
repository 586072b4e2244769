// Live invocations with scripted activities: the bracket and its order, calls, repair, refusal, escalation and its
// answers (RFC 0077 §B, §E; RFC 0002 §F; design §9).
import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import { Context } from '@temporalio/activity';
import { describe, expect, it } from 'vitest';
import type {
  CallToolInput,
  CallToolOutput,
  InferTurnInput,
  InferTurnOutput,
  PrepareInvocationInput,
  PrepareInvocationOutput,
  SealBlockInput,
} from '../../activities/contract.ts';
import type { ActivityEvent, StepResult } from '../../src/core/journal.ts';
import type { JsonObject, JsonValue } from '../../src/core/json.ts';
import type { RunInput } from '../../src/core/run-input.ts';
import { approvalSchema } from '../../workflows/interrupts.ts';
import { agentNode, chain, definition, edge, pinned, runInput } from '../support/definitions.ts';
import { answer, payloadsOf, runBothWays, typesOf, useWorkflowRunner } from './both-ways.ts';

useWorkflowRunner();

const AGENT = 'local.test.pack.agent';
type Turn =
  | Omit<Extract<InferTurnOutput, { kind: 'decision' }>, 'transcript'>
  | { kind: 'calls'; calls: { toolId: string; arguments: JsonValue }[] }
  | { kind: 'invalid'; violation: 'form' | 'return-schema'; message: string }
  | { kind: 'refusal' };

interface Script {
  readonly turns: readonly Turn[];
  readonly tools?: readonly string[];
  readonly call?: (input: CallToolInput) => CallToolOutput;
  readonly prepare?: PrepareInvocationOutput;
}

/** Activities that answer from a script; turns are chosen by the transcript, as the real ones do. */
function scripted({ turns, tools = ['core:clock'], call, prepare }: Script) {
  const seals: SealBlockInput[] = [];
  const infers: InferTurnInput[] = [];
  const prepares: PrepareInvocationInput[] = [];
  const returned = (input: CallToolInput, status: 'ok' | 'forbidden'): ActivityEvent => ({
    type: 'agent.toolReturned',
    nodeId: input.context.nodeId,
    causedBy: input.calledKey,
    payload: {
      agentId: input.agentId,
      toolName: input.call.toolId,
      callId: input.call.callId,
      status,
    },
  });
  const activities = {
    async prepareInvocation(
      input: PrepareInvocationInput,
    ): Promise<StepResult<PrepareInvocationOutput>> {
      prepares.push(input);
      const output: PrepareInvocationOutput = prepare ?? {
        ok: true,
        transcript: input.resume ? `${input.resume.transcript}+a` : 't',
        model: { provider: 'scripted', model: 'scripted' },
        prompts: [
          {
            kind: 'system',
            chain: [{ layer: 'agent-intrinsic', applied: true, source: 'prompt:a' }],
            resolved: 'prompt:a',
          },
        ],
        composed: { refs: ['prompt:a'], kind: 'system+user', hash: `sha256:${'0'.repeat(64)}` },
        tools: tools.map((toolId) => ({
          toolId,
          idempotent: true,
          timeoutMs: 1000,
          transport: 'native',
        })),
      };
      return { output, events: [] };
    },
    async inferTurn(input: InferTurnInput): Promise<StepResult<InferTurnOutput>> {
      infers.push(input);
      const turn = turns[input.transcript.length - 1] ?? turns.at(-1);
      if (!turn) throw new Error('no turn');
      const { agentId } = input.agent;
      const events: ActivityEvent[] = [
        {
          type: 'agent.reasoned',
          nodeId: input.context.nodeId,
          payload: { agentId, reasoning: 'hm' },
        },
      ];
      return { output: { ...turn, transcript: `${input.transcript}.` } as InferTurnOutput, events };
    },
    async callTool(input: CallToolInput): Promise<StepResult<CallToolOutput>> {
      // Equal calls of one turn end in call order, so that both ways give the same log.
      await new Promise((resolve) => setTimeout(resolve, input.call.occurrence === 1 ? 200 : 0));
      const output = call?.(input) ?? {
        kind: 'returned',
        status: input.tools.includes(input.call.toolId) ? 'ok' : 'forbidden',
        resultHash: `h:${input.call.callId}`,
      };
      return {
        output,
        events:
          output.kind === 'returned' && output.status !== 'error'
            ? [returned(input, output.status)]
            : [],
      };
    },
    async sealBlock(input: SealBlockInput): Promise<StepResult<{ deltas: number }>> {
      seals.push(input);
      return { output: { deltas: 0 }, events: [] };
    },
  };
  return { activities, seals, infers, prepares };
}

const decision = (value: JsonValue, confidence?: number): Turn => ({
  kind: 'decision',
  decision: value,
  confidence,
  schemaValidated: true,
});
const oneAgent = (more: Partial<RunInput> = {}, config: JsonObject = {}): RunInput =>
  runInput(chain(`agent-${randomUUID().slice(0, 8)}`, [agentNode('think', AGENT, { config })]), {
    agentList: [pinned(AGENT)],
    ...more,
  });

function ratification(returnSchema: JsonObject = {}): JsonObject {
  const action = (name: string, more: JsonObject, required: string[] = []): JsonObject => ({
    type: 'object',
    required: ['action', ...required],
    properties: { action: { const: name }, ...more },
  });
  return {
    anyOf: [
      action('accept', {}),
      action('reject', { reason: { type: 'string', maxLength: 8192 } }),
      action('edit-accept', { decision: returnSchema }, ['decision']),
      { type: 'object', required: ['answers'], properties: { answers: { type: 'object' } } },
    ],
  };
}

describe('one invocation (RFC 0077 §E)', () => {
  it('reason, call, reason, decide inside its bracket, in order; outputs carry the decision', async () => {
    const { activities } = scripted({
      turns: [
        {
          kind: 'calls',
          calls: [
            { toolId: 'core:clock', arguments: {} },
            { toolId: 'core:clock', arguments: {} },
          ],
        },
        decision({ ok: true }, 0.9),
      ],
    });
    const run = await runBothWays({ input: oneAgent(), activities, parallel: true });
    expect(typesOf(run).map((type) => type.split(' ')[0])).toEqual([
      'run.started',
      'node.started',
      'agent.invocation.started',
      'agent.promptResolved',
      'prompt.composed',
      'agent.reasoned',
      'agent.toolCalled',
      'agent.toolCalled',
      'agent.toolReturned',
      'agent.toolReturned',
      'agent.reasoned',
      'agent.decided',
      'agent.invocation.completed',
      'node.completed',
      'run.completed',
    ]);
    const [started] = payloadsOf(run, 'agent.invocation.started');
    const [completed] = payloadsOf(run, 'agent.invocation.completed');
    expect(completed).toEqual({
      invocationId: started?.invocationId,
      agentId: AGENT,
      outcome: 'completed',
      schemaValidated: true,
      confidence: 0.9,
    });
    expect(payloadsOf(run, 'run.completed')).toEqual([
      { outputs: { decision: { ok: true }, confidence: 0.9 } },
    ]);
    const ids = payloadsOf(run, 'agent.toolCalled').map(({ callId }) => callId);
    expect(new Set(ids).size).toBe(2);
  });

  it('a call outside the allowlist is never called: no agent.toolCalled, a forbidden return (RFC 0077 §F-1)', async () => {
    const { activities } = scripted({
      turns: [{ kind: 'calls', calls: [{ toolId: 'demo:rm', arguments: {} }] }, decision('ok')],
    });
    const run = await runBothWays({ input: oneAgent(), activities });
    expect(payloadsOf(run, 'agent.toolCalled')).toEqual([]);
    expect(payloadsOf(run, 'agent.toolReturned')[0]).toMatchObject({
      toolName: 'demo:rm',
      status: 'forbidden',
    });
  });

  it('a task against taskSchemaRef: bracket failed, handoff_task_schema_violation, no model call (§B step 6)', async () => {
    const { activities, infers } = scripted({
      turns: [],
      prepare: { ok: false, code: 'handoff_task_schema_violation', message: 'no' },
    });
    const run = await runBothWays({ input: oneAgent(), activities });
    expect(infers).toEqual([]);
    expect(payloadsOf(run, 'agent.invocation.completed')[0]).toMatchObject({ outcome: 'failed' });
    expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({
      code: 'handoff_task_schema_violation',
    });
  });

  it('an unusable output is repaired twice, then fails; a return schema violation has its own code', async () => {
    const invalid: Turn = {
      kind: 'invalid',
      violation: 'return-schema',
      message: 'amount is missing',
    };
    const { activities, infers } = scripted({ turns: [invalid] });
    const run = await runBothWays({ input: oneAgent(), activities, plainOnly: true });
    expect(infers.map(({ repair }) => repair)).toEqual([
      undefined,
      'amount is missing',
      'amount is missing',
    ]);
    expect(payloadsOf(run, 'cap.breached')[0]).toMatchObject({
      kind: 'schema',
      limit: 2,
      observed: 3,
    });
    expect(payloadsOf(run, 'node.failed')[0]?.error).toMatchObject({
      code: 'handoff_return_schema_violation',
    });
    expect(payloadsOf(run, 'agent.invocation.completed')).toMatchObject([{ outcome: 'failed' }]);
  });

  it('a refusal ends the bracket as refused and is not retried (RFC 0077 §F-4)', async () => {
    const { activities } = scripted({ turns: [{ kind: 'refusal' }] });
    const nodes = [
      agentNode('think', AGENT, { settings: { retry: { maxAttempts: 3, initialDelayMs: 1 } } }),
    ];
    const run = await runBothWays({
      input: runInput(chain('refuse', nodes), { agentList: [pinned(AGENT)] }),
      activities,
    });
    expect(payloadsOf(run, 'agent.invocation.completed')).toMatchObject([{ outcome: 'refused' }]);
    expect(payloadsOf(run, 'node.failed')[0]).toMatchObject({
      attempts: 1,
      error: { code: 'envelope_refusal' },
    });
  });

  it('a model call that fails for good is sealed, the bracket closes as failed (design §3.5)', async () => {
    const { activities, seals } = scripted({ turns: [decision('x')] });
    const broken = {
      ...activities,
      inferTurn: async () => {
        throw ApplicationFailure.nonRetryable('down', 'model_rejected_request');
      },
    };
    const run = await runBothWays({ input: oneAgent(), activities: broken, plainOnly: true });
    expect(seals).toHaveLength(1);
    expect(payloadsOf(run, 'agent.invocation.completed')).toMatchObject([{ outcome: 'failed' }]);
    expect(payloadsOf(run, 'node.failed')[0]?.error).toMatchObject({
      code: 'model_rejected_request',
    });
  });

  it('cancel while the model thinks: sealed, bracket and node closed, run.cancelled (design §4)', async () => {
    const { activities, seals } = scripted({ turns: [decision('x')] });
    const hanging = {
      ...activities,
      inferTurn: async () => {
        const context = Context.current();
        const beat = setInterval(() => context.heartbeat(), 200);
        try {
          return await context.cancelled;
        } finally {
          clearInterval(beat);
        }
      },
    };
    const run = await runBothWays({
      input: oneAgent(),
      activities: hanging,
      plainOnly: true,
      script: async (handle) => {
        await new Promise((resolve) => setTimeout(resolve, 500));
        await handle.cancel();
      },
    });
    expect(seals).toHaveLength(1);
    expect(typesOf(run).slice(-3)).toEqual([
      'agent.invocation.completed think',
      'node.cancelled think',
      'run.cancelled',
    ]);
  });

  it('a result that comes when the node is out of time is in the log, its decision is not (design §2.4)', async () => {
    const { activities, seals } = scripted({ turns: [decision('too late', 1)] });
    const slow = {
      ...activities,
      async inferTurn(input: InferTurnInput) {
        await new Promise((resolve) => setTimeout(resolve, 1000));
        return activities.inferTurn(input);
      },
    };
    const nodes = [agentNode('think', AGENT, { settings: { timeoutMs: 400 } })];
    const input = runInput(chain('late', nodes), { agentList: [pinned(AGENT)] });
    const run = await runBothWays({ input, activities: slow, plainOnly: true });
    expect(payloadsOf(run, 'agent.reasoned')).toHaveLength(1);
    expect(payloadsOf(run, 'agent.decided')).toEqual([]);
    expect(payloadsOf(run, 'agent.invocation.completed')).toMatchObject([{ outcome: 'failed' }]);
    expect(payloadsOf(run, 'node.failed')[0]?.error).toMatchObject({ code: 'node_timeout' });
    expect(seals).toEqual([]);
  });

  it('an endless loop of calls ends with turn_limit_exceeded', async () => {
    const { activities } = scripted({
      turns: [{ kind: 'calls', calls: [{ toolId: 'core:clock', arguments: {} }] }],
    });
    const run = await runBothWays({ input: oneAgent(), activities, plainOnly: true });
    expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({ code: 'turn_limit_exceeded' });
    expect(payloadsOf(run, 'agent.toolCalled')).toHaveLength(64);
  });

  it('a decision whose edge leads to another agent hands over before its bracket closes', async () => {
    const other = 'local.test.pack.other';
    const workflow = definition(
      'handover',
      [agentNode('a', AGENT), agentNode('b', other)],
      [
        edge('a', 'b', {
          label: 'go on',
          condition: { type: 'equals', left: 'outputs.decision.go', right: 'b' },
        }),
      ],
    );
    const { activities } = scripted({ turns: [decision({ go: 'b' }, 1)] });
    const run = await runBothWays({
      input: runInput(workflow, { agentList: [pinned(AGENT), pinned(other)] }),
      activities,
    });
    expect(payloadsOf(run, 'agent.handoff')).toEqual([
      { fromAgentId: AGENT, toAgentId: other, reason: 'go on' },
    ]);
    expect(payloadsOf(run, 'agent.invocation.completed').map(({ outcome }) => outcome)).toEqual([
      'handed-off',
      'completed',
    ]);
  });
});

describe('low confidence (RFC 0002 §F, design §9)', () => {
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
      activities: scripted({ turns: low }).activities,
      script: withAnswer({ action: 'reject', reason: 'too much' }),
    });
    expect(payloadsOf(rejected, 'node.failed')[0]?.error).toEqual({
      code: 'escalation_rejected',
      message: 'too much',
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

describe('an effect in doubt goes to a human (design §5)', () => {
  const doubtful = (input: CallToolInput): CallToolOutput =>
    input.resolution
      ? { kind: 'returned', status: 'ok', resultHash: `h:${input.resolution.kind}` }
      : { kind: 'in-doubt', effectId: 'eff-1', reason: 'the worker died' };

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
