// Handoffs on a real host (RFC 0002 §B, RFC 0077 §E): an agent passes control to one that its manifest permits, with a
// task that this one takes; a human is asked about the word of who decided.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunEventDoc } from '../../schemas/types.generated.ts';
import { ended, expectLawful, readLog, types, waiting } from '../facade/suite-parts.ts';
import { payloadsIn } from '../support/children.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';

type Json = Record<string, unknown>;

const idOf = (name: string): string => `local.handoffs.desk.${name}`;
const [TRIAGE, PAY] = [idOf('triage'), idOf('pay')];
const TOOL = `handoff:${PAY}`;
const handOver = (args: unknown, toolId = TOOL) => ({ toolId, arguments: args });
const TASK = {
  type: 'object',
  properties: { amount: { type: 'number', minimum: 1 } },
  required: ['amount'],
};
const final = (decision: unknown, confidence = 1) => ({ final: { decision, confidence } });

const AGENTS: Record<string, { manifest?: Json; turns: readonly Json[] }> = {
  triage: {
    manifest: { toolAllowlist: [TOOL, 'core:clock'] },
    turns: [
      { reasoning: 'Money, then.', calls: [handOver({ task: { amount: 0 } })] },
      { calls: [handOver({ task: { amount: 5 } }), { toolId: 'core:clock', arguments: {} }] },
      { calls: [handOver({ task: { amount: 5 }, reason: 'It is about money.' })] },
    ],
  },
  pay: {
    manifest: { handoff: { taskSchemaRef: 'task.json' } },
    turns: [final({ paid: '{{task.amount}}' }, 0.5)],
  },
  lost: {
    manifest: { toolAllowlist: [`handoff:${idOf('nobody')}`] },
    turns: [
      {
        calls: [handOver({ task: {} }, TOOL), handOver({ task: {} }, `handoff:${idOf('nobody')}`)],
      },
      final('alone'),
    ],
  },
  asks: {
    manifest: { toolAllowlist: [`agent:${TRIAGE}`] },
    turns: [
      { calls: [{ toolId: `agent:${TRIAGE}`, arguments: { message: 'Pay me.' } }] },
      final('told'),
    ],
  },
};

let host: TestHost;
let agentsDir: string;

beforeAll(async () => {
  agentsDir = await mkdtemp(join(tmpdir(), 'openwop-handoffs-'));
  const write = (name: string, json: unknown) =>
    writeFile(join(agentsDir, name), JSON.stringify(json));
  await write('task.json', TASK);
  for (const [name, { manifest, turns }] of Object.entries(AGENTS)) {
    const prompts = { modelClass: 'reasoning', systemPrompt: 'Decide.' };
    await write(`${name}.agent.json`, {
      ...{ agentId: idOf(name), persona: `Clerk ${name}`, ...prompts },
      ...manifest,
    });
    await write(`${name}.script.json`, { turns });
  }
  // May be handed over to an agent that no model plays.
  const mute = { persona: 'Mute', modelClass: 'reasoning', systemPrompt: 'Decide.' };
  await write('mute.agent.json', { agentId: idOf('mute'), ...mute });
  const toMute = { agentId: idOf('to-mute'), ...mute, toolAllowlist: [`handoff:${idOf('mute')}`] };
  await write('to-mute.agent.json', toMute);
  await write('to-mute.script.json', { turns: [final('alone')] });
  host = await startTestHost({ agentsDir });
});

afterAll(async () => {
  await host.stop();
  await rm(agentsDir, { recursive: true });
});

async function logOf(runId: string): Promise<readonly RunEventDoc[]> {
  const { events } = await readLog(host, runId);
  expectLawful(events);
  await checkInvariants(host, runId);
  return events;
}

describe('RFC 0002 §B: a handoff by the model', () => {
  it('is refused to the model while the task does not fit or other calls stand beside it; then control passes, and a human is asked about the word of who decided', async () => {
    const inputs = { message: 'Pay me.' };
    const runId = await host.startRun({ agentId: TRIAGE, inputs, sessionId: 'handed-over' });
    const asked = await host.waitFor(runId, waiting);
    expect(asked.agent).toMatchObject({ agentId: PAY });
    const { body } = await host.api<{ questions: Json[] }>(
      `/v1/host/openwop-temporal/runs/${runId}/questions`,
    );
    expect(body.questions).toMatchObject([{ kind: 'low-confidence', agentId: PAY }]);
    const [question] = body.questions;
    const { status } = await host.api(`/v1/runs/${runId}/interrupts/${String(question?.nodeId)}`, {
      body: { resumeValue: { action: 'accept' } },
    });
    expect(status).toBe(200);
    const end = await host.waitFor(runId, ended);
    expect(end.status).toBe('completed');
    const events = await logOf(runId);
    expect(payloadsIn(events, 'agent.toolCalled')).toEqual([]);
    expect(payloadsIn(events, 'agent.reasoned')).toHaveLength(4);
    expect(payloadsIn(events, 'agent.handoff')).toEqual([
      {
        ...{ fromAgentId: TRIAGE, toAgentId: PAY },
        ...{ from: { agentId: TRIAGE }, to: { agentId: PAY } },
        ...{ reason: 'It is about money.', context: { amount: 5 } },
      },
    ]);
    const brackets = payloadsIn(events, 'agent.invocation.completed');
    expect(brackets.map(({ agentId, outcome }) => [agentId, outcome])).toEqual([
      [TRIAGE, 'handed-off'],
      [PAY, 'escalated'],
      [PAY, 'completed'],
    ]);
    const handoff = events.find(({ type }) => type === 'agent.handoff');
    const started = events.filter(({ type }) => type === 'agent.invocation.started');
    expect(started[1]?.causationId).toBe(handoff?.eventId);
    // It decided by the task that it was handed.
    expect(payloadsIn(events, 'agent.decided').at(-1)).toMatchObject({ decision: { paid: 5 } });
    // And it is its answer, whoever's node that is.
    const talk = '/v1/host/openwop-temporal/sessions/handed-over/conversation';
    const said = async () => (await host.api<{ messages: Json[] }>(talk)).body.messages;
    await expect.poll(said).toMatchObject([{ from: PAY, speakerId: PAY, content: '{"paid":5}' }]);
    expect(types(events).at(-1)).toBe('run.completed');
  });

  it('strangers are forbidden: one that the manifest does not permit, and one that is not there', async () => {
    const runId = await host.startRun({ agentId: idOf('lost'), inputs: {} });
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const events = await logOf(runId);
    expect(payloadsIn(events, 'agent.handoff')).toEqual([]);
    // Calls of one turn return in any order.
    const returned = payloadsIn(events, 'agent.toolReturned');
    expect(returned.map(({ status }) => status)).toEqual(['forbidden', 'forbidden']);
    expect(new Set(returned.map(({ toolName }) => toolName))).toEqual(
      new Set([TOOL, `handoff:${idOf('nobody')}`]),
    );
  });

  it('a run whose agent may hand over to one without a model is refused', async () => {
    const body = { agentId: idOf('to-mute'), inputs: {} };
    const { status, body: refused } = await host.api('/v1/runs', { body });
    expect([status, refused]).toMatchObject([422, { error: 'model_unavailable' }]);
  });

  it('an agent that is called as a tool may hand over: the call returns what its successor decided', async () => {
    const runId = await host.startRun({ agentId: idOf('asks'), inputs: {} });
    const children = `/v1/host/openwop-temporal/runs/${runId}/children`;
    const waits = async () =>
      (await host.api<{ runs: { runId: string; status: string }[] }>(children)).body.runs.find(
        ({ status }) => status.startsWith('waiting'),
      );
    await expect.poll(waits).toBeDefined();
    const child = (await waits())?.runId ?? '';
    const { body } = await host.api<{ questions: Json[] }>(
      `/v1/host/openwop-temporal/runs/${child}/questions`,
    );
    await host.api(`/v1/runs/${child}/interrupts/${String(body.questions[0]?.nodeId)}`, {
      body: { resumeValue: { action: 'accept' } },
    });
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const events = await logOf(runId);
    expect(JSON.stringify(payloadsIn(events, 'agent.toolReturned'))).toContain('"paid":5');
    await logOf(child);
  });
});
