// What a run did, step by step, as it is compared (RFC 0054).
import { describe, expect, it } from 'vitest';
import { stepsOf, type SteppedRow } from '../../src/rules/run-steps.ts';

type Told = readonly [type: string, payload: object, nodeId?: string];
const stepsIn = (...told: Told[]) =>
  stepsOf(
    told.map(([type, payload, nodeId], sequence): SteppedRow => ({
      ...{ sequence, type, eventId: `e${sequence}`, key: `k${sequence}` },
      ...(nodeId === undefined ? {} : { nodeId }),
      ...{ payload: JSON.stringify(payload), timestampMs: 1_000 + sequence },
    })),
  );

describe('RFC 0054: the steps of a run', () => {
  it('one agent: what it was given and said, called and got, decided and cost', () => {
    const [step, ...more] = stepsIn(
      ['run.started', { workflowId: 'w' }],
      ['node.started', { nodeId: 'n', attempt: 0 }, 'n'],
      ['agent.invocation.started', { resolvedModel: 'm', resolvedProvider: 'p' }, 'n'],
      ['prompt.composed', { hash: 'h', refs: ['r'] }, 'n'],
      ['agent.reasoned', { agentId: 'a', reasoning: 'Because.' }, 'n'],
      ['provider.usage', { inputTokens: 2, outputTokens: 3, costEstimateUsd: 0.5 }, 'n'],
      ['agent.toolCalled', { callId: 'c1', toolName: 't', inputs: { x: 1 } }, 'n'],
      ['agent.toolCalled', { callId: 'c2', toolName: 'u', inputs: {} }, 'n'],
      ['agent.toolReturned', { callId: 'c2', toolName: 'u', status: 'error', error: {} }, 'n'],
      ['agent.toolReturned', { callId: 'c1', toolName: 't', status: 'ok', outcome: [2] }, 'n'],
      ['provider.usage', { inputTokens: 4, outputTokens: 1 }, 'n'],
      ['agent.decided', { agentId: 'a', decision: { go: true }, confidence: 0.9 }, 'n'],
      ['interrupt.requested', { kind: 'approval', key: 'k', data: { title: 'T' } }, 'n'],
      ['interrupt.resolved', { interruptId: 'i', resumeValue: { action: 'accept' } }, 'n'],
      ['variable.changed', { name: 'v', next: 1, nodeId: 'n' }],
      ['node.completed', { nodeId: 'n', outputs: { o: 1 } }, 'n'],
      ['run.completed', {}],
    );
    expect(more).toEqual([]);
    expect(step).toEqual({
      ...{ nodeId: 'n', visit: 1, sequence: 1, startedAtMs: 1_001, endedAtMs: 1_015 },
      ...{ status: 'completed', confidence: 0.9 },
      use: { inputTokens: 6, outputTokens: 4, usd: 0.5 },
      did: {
        attempts: 1,
        models: [{ provider: 'p', model: 'm' }],
        prompts: [{ hash: 'h', refs: ['r'] }],
        reasoning: [{ text: 'Because.' }],
        calls: [
          { tool: 't', arguments: { x: 1 }, status: 'ok', result: [2] },
          { tool: 'u', arguments: {}, status: 'error', error: {} },
        ],
        decisions: [{ agent: 'a', decision: { go: true }, confidence: 0.9 }],
        questions: [{ kind: 'approval', data: { title: 'T' } }],
        answers: [{ value: { action: 'accept' } }],
        variables: [{ name: 'v', value: 1 }],
        outputs: { o: 1 },
      },
    });
  });

  it('visits of one node are steps of their own, attempts of one visit are not', () => {
    const steps = stepsIn(
      ['node.started', { attempt: 0 }, 'n'],
      ['node.retried', { attempt: 1 }, 'n'],
      ['node.started', { attempt: 1 }, 'n'],
      ['node.completed', {}, 'n'],
      ['node.started', { attempt: 0 }, 'n'],
      ['node.failed', { error: { code: 'c' } }, 'n'],
      ['node.skipped', { reason: 'dead' }, 'm'],
      ['node.skipped', { reason: 'dead' }, 'n'],
    );
    expect(steps.map(({ nodeId, visit, status, did }) => [nodeId, visit, status, did])).toEqual([
      ['n', 1, 'completed', { attempts: 2 }],
      ['n', 2, 'failed', { attempts: 1, error: { code: 'c' } }],
      ['m', 1, 'skipped', { reason: 'dead' }],
      ['n', 3, 'skipped', { reason: 'dead' }],
    ]);
  });

  it('what is stated of a node before it starts belongs to its first visit; one under way has no end', () => {
    const [step] = stepsIn(
      ['agent.handoff', { fromAgentId: 'a', toAgentId: 'b' }, 'n'],
      ['node.started', { attempt: 0 }, 'n'],
    );
    expect(step).toMatchObject({ visit: 1, status: 'running', did: { attempts: 1 } });
    expect(step).not.toHaveProperty('endedAtMs');
  });
});
