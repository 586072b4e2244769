// core.conformance.mock-agent (RFC 0023; node-packs.md): what it states, in which order, and what for.
import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import type { TellReasoningInput } from '../../activities/contract.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import { ANSWER_LIST, ratificationSchema } from '../../workflows/ratification.ts';
import { definition, node, runInput } from '../support/definitions.ts';
import {
  answer,
  factsOf,
  payloadsOf,
  runBothWays,
  typesOf,
  useWorkflowRunner,
} from './both-ways.ts';

useWorkflowRunner();
const TYPE = 'core.conformance.mock-agent';

function mocked(config: JsonObject, more: Partial<RunInput> = {}): RunInput {
  const id = `conformance-${randomUUID().slice(0, 8)}`;
  return runInput(definition(id, [node('think', TYPE, { config })]), { testHooks: true, ...more });
}

const ofAgent = (types: string[]): string[] => types.filter((type) => type.startsWith('agent.'));

const EVERYTHING: JsonObject = {
  mockReasoning: { summary: 'short', trace: 'long' },
  mockToolCalls: [
    { toolId: 'a', arguments: { x: 1 }, result: 2, durationMs: 7 },
    { toolId: 'b', error: { error: 'no', message: 'not today' } },
  ],
  mockHandoff: { toAgentId: 'another', reason: 'why', context: { c: 1 } },
  mockDecision: { decision: 'yes', confidence: 0.7, reasoning: 'because' },
};

describe('a scripted agent', () => {
  it('states reasoning, calls with their returns, handoff and decision, in this order and without a bracket', async () => {
    const run = await runBothWays({ input: mocked(EVERYTHING) });
    expect(run.status).toBe('completed');
    expect(ofAgent(typesOf(run))).toEqual([
      'agent.reasoned think',
      'agent.toolCalled think',
      'agent.toolReturned think',
      'agent.toolCalled think',
      'agent.toolReturned think',
      'agent.handoff think',
      'agent.decided think',
    ]);
    const agentId = 'host:mock-agent:think';
    expect(payloadsOf(run, 'agent.reasoned')).toEqual([
      { agentId, reasoning: 'long', verbosity: 'summary' },
    ]);
    const [first, second] = payloadsOf(run, 'agent.toolReturned');
    expect(first).toMatchObject({
      agentId,
      toolName: 'a',
      status: 'ok',
      outcome: 2,
      durationMs: 7,
    });
    expect(second).toMatchObject({
      toolName: 'b',
      status: 'error',
      error: { code: 'no', message: 'not today' },
    });
    expect(payloadsOf(run, 'agent.toolCalled')[0]).toMatchObject({
      callId: first?.callId,
      inputs: { x: 1 },
    });
    expect(payloadsOf(run, 'agent.handoff')).toEqual([
      { fromAgentId: agentId, toAgentId: 'another', reason: 'why', context: { c: 1 } },
    ]);
    expect(payloadsOf(run, 'node.completed')).toMatchObject([{ outputs: {} }]);
  });

  it('each event is caused by the one before it, a return by its call (run-event.schema.json causationId)', async () => {
    const run = await runBothWays({ input: mocked(EVERYTHING), plainOnly: true });
    const facts = factsOf(run).filter(({ type }) => type.startsWith('agent.'));
    const started = factsOf(run).find(({ type }) => type === 'node.started');
    expect(facts.map(({ causedBy }) => causedBy)).toEqual(
      [started, ...facts].slice(0, -1).map((fact) => fact?.key),
    );
  });

  it.each<[string, JsonObject]>([
    ['its config', { agentId: 'of.config', mockDecision: { decision: 1 } }],
    ['nothing', { mockDecision: { decision: 1 } }],
  ])('is who %s names', async (_, config) => {
    const run = await runBothWays({ input: mocked(config), plainOnly: true });
    expect(payloadsOf(run, 'agent.decided')[0]?.agentId).toBe(
      config.agentId ?? 'host:mock-agent:think',
    );
  });

  it('without reasoning to show, shows none (configurable.reasoningVerbosity off)', async () => {
    const configurable = { reasoningVerbosity: 'off' };
    const run = await runBothWays({ input: mocked(EVERYTHING, { configurable }), plainOnly: true });
    expect(payloadsOf(run, 'agent.reasoned')).toEqual([]);
  });

  it('fails outside of test mode and of definitions made for tests, and states nothing', async () => {
    const run = await runBothWays({
      input: mocked(EVERYTHING, { testHooks: undefined }),
      plainOnly: true,
    });
    expect(ofAgent(typesOf(run))).toEqual([]);
    expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({
      code: 'capability_not_provided',
    });
  });
});

describe('what it thinks aloud', () => {
  const config = {
    agentId: 'of.config',
    mockReasoning: { summary: 's', streamChunks: ['a', 'b'] },
  };

  it('goes through an activity, piece by piece, and nothing of it is stated twice', async () => {
    const told: TellReasoningInput[] = [];
    const tellReasoning = async (input: TellReasoningInput) => {
      told.push(input);
      const { agentId, causedBy } = input;
      const payload = { agentId, reasoning: 'ab', verbosity: 'summary' };
      return {
        output: { told: true },
        events: [{ type: 'agent.reasoned', nodeId: 'think', causedBy, payload }],
      };
    };
    const run = await runBothWays({
      input: mocked({ ...config, mockConfidence: 1 }),
      activities: { tellReasoning },
    });
    expect(told[0]).toMatchObject({
      agentId: 'of.config',
      chunks: ['a', 'b'],
      verbosity: 'summary',
    });
    expect(ofAgent(typesOf(run))).toEqual(['agent.reasoned think', 'agent.decided think']);
  });

  it('is sealed where telling it fails (architecture §3.5)', async () => {
    const sealed: unknown[] = [];
    const activities = {
      tellReasoning: () =>
        Promise.reject(ApplicationFailure.nonRetryable('away', 'internal_error')),
      sealBlock: async (input: { sealedActivityId: string }) => {
        sealed.push(input.sealedActivityId);
        return { output: { deltas: 0 }, events: [] };
      },
    };
    const run = await runBothWays({ input: mocked(config), activities, plainOnly: true });
    expect(run.status).toBe('failed');
    expect(sealed).toEqual(['think/1/0/reasoning']);
  });
});

describe('below its threshold', () => {
  const low = { mockDecision: { decision: { refund: true }, confidence: 0.5 } };
  const schema = ratificationSchema(undefined, [ANSWER_LIST]);

  it('a human is asked, and what was ratified is decided once more (RFC 0002 §F)', async () => {
    const run = await runBothWays({
      input: mocked(low),
      script: async (handle) => {
        await answer(
          handle,
          'think',
          { action: 'edit-accept', decision: { refund: false } },
          schema,
        );
      },
    });
    expect(payloadsOf(run, 'node.suspended')[0]).toMatchObject({
      ...{ kind: 'low-confidence', reason: 'low-confidence', agentId: 'host:mock-agent:think' },
      ...{ threshold: 0.7, observed: 0.5 },
    });
    expect(payloadsOf(run, 'agent.decided').map(({ decision }) => decision)).toEqual([
      { refund: true },
      { refund: false },
    ]);
  });

  it('a rejection fails the node', async () => {
    const run = await runBothWays({
      input: mocked(low),
      script: async (handle) => {
        await answer(handle, 'think', { action: 'reject' }, schema);
      },
    });
    expect(payloadsOf(run, 'node.failed')[0]?.error).toMatchObject({ code: 'escalation_rejected' });
  });

  it.each<[string, JsonObject, Partial<RunInput>]>([
    ['equal to it', { mockConfidence: 0.7 }, {}],
    ['without a confidence', { mockDecision: { decision: 1 } }, {}],
    [
      'under a threshold of the run',
      { mockConfidence: 0.5 },
      { configurable: { escalationThreshold: 0.4 } },
    ],
  ])('is nothing that is %s', async (_, config, more) => {
    const run = await runBothWays({ input: mocked(config, more), plainOnly: true });
    expect(payloadsOf(run, 'node.suspended')).toEqual([]);
    expect(run.status).toBe('completed');
  });

  it('where nobody is to be asked it is noted, and the run goes on', async () => {
    const policy = { escalation: false, verbosity: 'summary' } as const;
    const run = await runBothWays({ input: mocked(low, { policy }), plainOnly: true });
    expect(payloadsOf(run, 'cap.breached')).toMatchObject([
      { kind: 'confidence-escalation-suppressed', limit: 0.7, observed: 0.5 },
    ]);
    expect(run.status).toBe('completed');
  });
});
