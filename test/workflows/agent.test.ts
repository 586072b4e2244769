// Live invocations with scripted activities: the bracket and its order, calls, repair, refusal (RFC 0077 §B, §E).
import { ApplicationFailure } from '@temporalio/common';
import { Context } from '@temporalio/activity';
import { describe, expect, it } from 'vitest';
import type { CallToolInput, InferTurnInput } from '../../activities/contract.ts';
import { agentNode, chain, definition, edge, pinned, runInput } from '../support/definitions.ts';
import { until } from '../support/host.ts';
import { paced } from '../support/machine.ts';
import { LONGEST_SILENCE_MS } from '../support/waiting.ts';
import { pendingOf, timersOf } from '../support/run-workflow.ts';
import { payloadsOf, runBothWays, runOnce, typesOf, useWorkflowRunner } from './both-ways.ts';
import { AGENT, decision, oneAgent, scripted, type Turn } from './scripted-agent.ts';

useWorkflowRunner();

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
      'output.chunk',
      'agent.invocation.completed',
      'node.completed',
      'run.completed',
    ]);
    // stream-modes.md: the final answer as text, whole, for `messages`.
    expect(payloadsOf(run, 'output.chunk')).toEqual([
      {
        nodeId: 'think',
        runId: expect.any(String) as string,
        chunk: '{"ok":true}',
        isLast: true,
        meta: { finishReason: 'stop', model: 'scripted' },
      },
    ]);
    // RFC 0002 §C: whom the node delegates to, at its begin and at its end.
    for (const type of ['node.started', 'node.completed'])
      expect(payloadsOf(run, type)).toMatchObject([{ agent: { agentId: AGENT } }]);
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

  it('every activity is told the header of its run, in every segment', async () => {
    const called: CallToolInput[] = [];
    const { activities, infers, prepares } = scripted({
      turns: [{ kind: 'calls', calls: [{ toolId: 'core:clock', arguments: {} }] }, decision('ok')],
      call: (input) => {
        called.push(input);
        return { kind: 'returned', status: 'ok', resultHash: 'h' };
      },
    });
    const header = { sessionId: 'session-1', correlationId: 'run-root', parentRunId: 'run-root' };
    await runBothWays({ input: { ...oneAgent(), header }, activities });
    for (const inputs of [prepares, infers, called]) {
      const headers = inputs.map(({ context }) => context.header);
      expect(headers).not.toEqual([]);
      expect(headers).toEqual(headers.map(() => header));
    }
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
    expect(payloadsOf(run, 'envelope.retry.exhausted')).toMatchObject([{ totalAttempts: 3 }]);
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

  it('a model call that fails for good is sealed, the bracket closes as failed (architecture §3.5)', async () => {
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

  it('its seal is not held back where a segment ends: the model is not called again (architecture §3.5)', async () => {
    const { activities, seals, infers } = scripted({ turns: [decision('done')] });
    let isLeft = false;
    const run = await runOnce({
      input: {
        ...runInput(definition('side', [agentNode('fails', AGENT), agentNode('fast', AGENT)]), {
          agentList: [pinned(AGENT)],
        }),
        forceContinueAsNewAfter: 5,
      },
      activities: {
        ...activities,
        async inferTurn(input: InferTurnInput) {
          const result = await activities.inferTurn(input);
          if (input.context.nodeId === 'fast') return result;
          // Meanwhile the other branch makes progress, and the segment tries to end.
          await until(() => isLeft, 'the segment tries to end');
          throw ApplicationFailure.nonRetryable('no', 'model_rejected_request');
        },
      },
      script: async (handle) => {
        await until(
          () => infers.some(({ context }) => context.nodeId === 'fails'),
          'the model is asked',
        );
        await until(async () => {
          const { activities: steps, hasTask } = await pendingOf(handle);
          return steps.length === 1 && !hasTask;
        }, 'the other branch has ended, or rests for the end of the segment');
        isLeft = true;
      },
    });
    expect(run.status).toBe('failed');
    expect(infers.filter(({ context }) => context.nodeId === 'fails')).toHaveLength(1);
    expect(seals.filter(({ context }) => context.nodeId === 'fails')).toHaveLength(1);
  });

  it('cancel while the model thinks: sealed, bracket and node closed, run.cancelled (architecture §4)', async () => {
    const { activities, seals } = scripted({ turns: [decision('x')] });
    let isAsked = false;
    const hanging = {
      ...activities,
      inferTurn: async () => {
        isAsked = true;
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
        await until(() => isAsked, 'the model is asked');
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

  it('a result that comes when the node is out of time is in the log, its decision is not (architecture §2.4)', async () => {
    const { activities, seals } = scripted({ turns: [decision('too late', 1)] });
    let isLate = false;
    const slow = {
      ...activities,
      async inferTurn(input: InferTurnInput) {
        await until(() => isLate, 'the node is out of time');
        return activities.inferTurn(input);
      },
    };
    const nodes = [
      agentNode('think', AGENT, { settings: { timeoutMs: paced(900, LONGEST_SILENCE_MS) } }),
    ];
    const input = runInput(chain('late', nodes), { agentList: [pinned(AGENT)] });
    const run = await runBothWays({
      input,
      activities: slow,
      plainOnly: true,
      script: async (handle) => {
        await until(async () => (await timersOf(handle)).fired > 0, 'the time of the node is over');
        await until(async () => !(await pendingOf(handle)).hasTask, 'the workflow knows of it');
        isLate = true;
      },
    });
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
      { fromAgentId: AGENT, toAgentId: other, reason: 'go on', context: { go: 'b' } },
    ]);
    expect(payloadsOf(run, 'agent.invocation.completed').map(({ outcome }) => outcome)).toEqual([
      'handed-off',
      'completed',
    ]);
  });
});
