// Definitions made for tests, of our own writing, loaded from the folder that test mode names (RFC 0003 §20 loading
// contract) and run over HTTP: agents as clients see them (RFC 0002, RFC 0023, RFC 0024, interrupt.md low-confidence).
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunEventDoc, RunSnapshot } from '../../schemas/types.generated.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';

const FOLDER = join(import.meta.dirname, '../fixtures/conformance');
const IDS = [
  'conformance-agent-identity',
  'conformance-agent-low-confidence',
  'conformance-agent-reasoning',
  'conformance-agent-reasoning-streaming',
];
let host: TestHost;
let runIds: string[] = [];

async function start(workflowId: string, more: object = {}): Promise<string> {
  const runId = await host.startRun({ workflowId, ...more });
  runIds = [...runIds, runId];
  return runId;
}

async function eventsOf(runId: string): Promise<RunEventDoc[]> {
  const { body } = await host.api<{ events: RunEventDoc[] }>(
    `/v1/runs/${runId}/events/poll?lastSequence=-1`,
  );
  return body.events;
}

async function agentEvents(runId: string): Promise<RunEventDoc[]> {
  return (await eventsOf(runId)).filter(({ type }) => type.startsWith('agent.'));
}

const isOver = ({ status }: RunSnapshot): boolean =>
  ['completed', 'failed', 'cancelled'].includes(status);

describe('in test mode', () => {
  beforeAll(async () => {
    host = await startTestHost({ fixturesDir: FOLDER });
  });
  afterAll(async () => {
    await checkInvariants(host, runIds);
    await host.stop();
  });

  it('discovery lists those that can be run (capabilities.md fixtures)', async () => {
    const { body } = await host.api<{ fixtures: string[] }>('/.well-known/openwop');
    expect([...body.fixtures].sort()).toEqual(IDS);
  });

  it('a node with a pin: the snapshot names its agent (run-snapshot.schema.json agent)', async () => {
    const snapshot = await host.waitFor(await start('conformance-agent-identity'), isOver);
    expect(snapshot).toMatchObject({
      status: 'completed',
      agent: { agentId: 'conformance.identified', name: 'Identified', modelClass: 'chat' },
    });
  });

  it('the events of an agent in their order, a return paired with its call by callId and causationId', async () => {
    const runId = await start('conformance-agent-reasoning');
    expect(await host.waitFor(runId, isOver)).toMatchObject({ status: 'completed' });
    const events = await agentEvents(runId);
    expect(events.map(({ type }) => type)).toEqual([
      'agent.reasoned',
      'agent.toolCalled',
      'agent.toolReturned',
      'agent.toolCalled',
      'agent.toolReturned',
      'agent.handoff',
      'agent.decided',
    ]);
    const [reasoned, called, returned, , failed, handoff, decided] = events;
    const agentId = 'conformance.thinker';
    expect(reasoned?.payload).toMatchObject({ agentId, reasoning: 'The request can be answered.' });
    expect(called?.payload).toMatchObject({
      agentId,
      toolName: 'openwop.echo:echo',
      inputs: { text: 'hello' },
    });
    expect(returned?.payload).toMatchObject({ agentId, outcome: { text: 'hello' } });
    expect((returned?.payload as { callId: string }).callId).toBe(
      (called?.payload as { callId: string }).callId,
    );
    expect(returned?.causationId).toBe(called?.eventId);
    expect(failed?.payload).toMatchObject({ error: { code: 'nothing_to_say' } });
    expect(handoff?.payload).toMatchObject({
      fromAgentId: agentId,
      toAgentId: 'core.conformance.handoff-target',
    });
    expect(decided?.payload).toMatchObject({
      agentId,
      decision: { answer: 'hello' },
      confidence: 1,
    });
  });

  it('reasoningVerbosity off suppresses what an agent thinks, pieces included', async () => {
    const configurable = { reasoningVerbosity: 'off' };
    for (const workflowId of [
      'conformance-agent-reasoning',
      'conformance-agent-reasoning-streaming',
    ]) {
      const runId = await start(workflowId, { configurable });
      await host.waitFor(runId, isOver);
      const types = (await agentEvents(runId)).map(({ type }) => type);
      expect(types.filter((type) => type.startsWith('agent.reason'))).toEqual([]);
    }
  });

  it('n pieces are n deltas, all before the one closing event, which has them whole (RFC 0024)', async () => {
    const runId = await start('conformance-agent-reasoning-streaming');
    expect(await host.waitFor(runId, isOver)).toMatchObject({ status: 'completed' });
    const events = await agentEvents(runId);
    expect(events.map(({ type }) => type)).toEqual([
      ...Array.from({ length: 3 }, () => 'agent.reasoning.delta'),
      'agent.reasoned',
    ]);
    const payloads = events.map(({ payload }) => payload as Record<string, unknown>);
    expect(payloads.slice(0, 3)).toMatchObject(
      [0, 1, 2].map((sequence) => ({ sequence, agentId: 'conformance.streamer' })),
    );
    const whole = payloads
      .slice(0, 3)
      .map(({ delta }) => delta)
      .join('');
    expect(payloads[3]).toMatchObject({ agentId: 'conformance.streamer', reasoning: whole });
    expect(whole).toBe('First the order, then the rule, and so the answer to go');
  });

  it('a decision below its threshold waits for a human, and what was ratified is decided (RFC 0002 §F)', async () => {
    const runId = await start('conformance-agent-low-confidence');
    const waiting = await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    const events = await eventsOf(runId);
    const decided = events.findIndex(({ type }) => type === 'agent.decided');
    expect(events[decided + 1]).toMatchObject({
      type: 'node.suspended',
      payload: {
        ...{ nodeId: 'think', kind: 'low-confidence', reason: 'low-confidence' },
        ...{ agentId: 'conformance.doubter', threshold: 0.7, observed: 0.5 },
      },
    });
    expect(waiting.status).toBe('waiting-approval');
    const { status } = await host.api(`/v1/runs/${runId}/interrupts/think`, {
      method: 'POST',
      body: { resumeValue: { action: 'accept' } },
    });
    expect(status).toBe(200);
    expect(await host.waitFor(runId, isOver)).toMatchObject({ status: 'completed' });
    const decisions = (await agentEvents(runId)).filter(({ type }) => type === 'agent.decided');
    expect(decisions.map(({ payload }) => payload)).toMatchObject([
      { decision: { refund: true }, confidence: 0.5 },
      { agentId: 'conformance.doubter', decision: { refund: true } },
    ]);
  });
});

describe('outside of test mode', () => {
  it('definitions with test nodes are not loaded, and runs of them are refused (node-packs.md)', async () => {
    const other = await startTestHost({
      fixturesDir: FOLDER,
      env: { OPENWOP_TEST_MODE: undefined },
    });
    try {
      const answer = await other.api('/v1/runs', {
        method: 'POST',
        body: { workflowId: 'conformance-agent-reasoning' },
      });
      expect(answer.status).toBe(404);
      expect(other.logs.join()).toContain('conformance.mockAgent');
    } finally {
      await other.stop();
    }
  });
});
