// The protocol's checklist by HTTP: agents from a folder, their five events, the bracket, escalation, schemas
// (RFC 0002 §F, RFC 0024, RFC 0077, RFC 0003 §D).
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RunEventDoc } from '../../schemas/types.generated.ts';
import { runCli } from '../../src/cli/program.ts';
import { validate } from '../../src/wire/validators.ts';
import { readSse } from '../facade/sse-client.ts';
import { ended, expectLawful, readLog, types, waiting } from '../facade/suite-parts.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';

type Json = Record<string, unknown>;

const PROMPT = 'The prompt that nobody outside may read.';
const RETURNS = {
  type: 'object',
  properties: { verdict: { enum: ['yes', 'no'] } },
  required: ['verdict'],
};
const TASK = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] };
const yes = (confidence?: number): Json => ({
  decision: { verdict: 'yes' },
  ...(confidence === undefined ? {} : { confidence }),
});

interface Agent {
  readonly manifest?: Json;
  readonly turns: readonly Json[];
}

/** By the last part of the agentId. */
const AGENTS: Record<string, Agent> = {
  sure: {
    manifest: { toolAllowlist: ['core:json.query'] },
    turns: [
      {
        chunks: ['First ', 'I look, ', 'then I decide.'],
        calls: [{ toolId: 'core:json.query', arguments: { json: { a: 1 }, path: '/a' } }],
      },
      { final: yes(1) },
    ],
  },
  unsure: { turns: [{ reasoning: 'Hard to say.', final: yes(0.5) }] },
  equal: { manifest: { confidence: { defaultThreshold: 0.5 } }, turns: [{ final: yes(0.5) }] },
  silent: {
    manifest: { requiresCapabilities: ['agents.liveRuntime', 'toolCatalog', 'prompts'] },
    turns: [{ final: yes() }],
  },
  strict: {
    manifest: { handoff: { taskSchemaRef: 'task.json', returnSchemaRef: 'returns.json' } },
    turns: [{ final: { decision: { verdict: 'perhaps' }, confidence: 1 } }],
  },
  eager: {
    manifest: { toolAllowlist: ['core:json.query'] },
    turns: [{ calls: [{ toolId: 'core:clock', arguments: {} }] }, { final: yes(1) }],
  },
};
const agentIdOf = (name: string): string => `local.acceptance.desk.${name}`;

let host: TestHost;
const folders: string[] = [];

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'openwop-acceptance-'));
  folders.push(path);
  return path;
}

beforeAll(async () => {
  const [agentsDir, fixturesDir] = [await folder(), await folder()];
  const write = (path: string, json: unknown) => writeFile(path, JSON.stringify(json));
  await write(join(agentsDir, 'task.json'), TASK);
  await write(join(agentsDir, 'returns.json'), RETURNS);
  for (const [name, { manifest, turns }] of Object.entries(AGENTS)) {
    const agentId = agentIdOf(name);
    await write(join(agentsDir, `${name}.agent.json`), {
      ...{ agentId, persona: `Clerk ${name}`, modelClass: 'reasoning', systemPrompt: PROMPT },
      ...manifest,
    });
    await write(join(agentsDir, `${name}.script.json`), { turns });
    await write(join(fixturesDir, `${name}.json`), {
      ...{ id: `agent-${name}`, name, version: '1', edges: [], triggers: [{ type: 'manual' }] },
      nodes: [
        {
          ...{ id: 'desk', typeId: 'core.agent', name, position: { x: 0, y: 0 }, config: {} },
          inputs: { order: { type: 'variable', variableName: 'order' } },
          agent: { agentId, name: `Clerk ${name}` },
        },
      ],
      variables: [{ name: 'order', type: 'string', defaultValue: 'o-1' }],
      ...{ metadata: {}, settings: {} },
    });
  }
  host = await startTestHost({ agentsDir, fixturesDir });
});

afterAll(async () => {
  await host.stop();
  for (const path of folders) await rm(path, { recursive: true });
});

async function finish(
  body: Json,
): Promise<{ runId: string; status: string; events: RunEventDoc[] }> {
  const runId = await host.startRun(body);
  const { status } = await host.waitFor(runId, ended);
  const { events } = await readLog(host, runId);
  expectLawful(events);
  await checkInvariants(host, runId);
  return { runId, status, events };
}

const run = (name: string, more: Json = {}) => finish({ workflowId: `agent-${name}`, ...more });
const DELTAS = Array.from({ length: 3 }, () => 'agent.reasoning.delta');
const payloads = (events: readonly RunEventDoc[], type: string): Json[] =>
  events.filter((event) => event.type === type).map(({ payload }) => payload as Json);
const agentScoped = (events: readonly RunEventDoc[]): RunEventDoc[] =>
  events.filter(({ type }) => type.startsWith('agent.'));

describe('RFC 0072: inventory', () => {
  it('lists the agents sorted, closed, without prompts; each has its own address', async () => {
    const list = await host.api<{ agents: Json[]; total: number }>('/v1/agents');
    expect(validate.agentInventory(list.body)).toMatchObject({ ok: true });
    const ids = list.body.agents.map(({ agentId }) => agentId);
    expect(ids).toEqual(Object.keys(AGENTS).map(agentIdOf).sort());
    expect(list.body.total).toBe(ids.length);
    expect(list.text).not.toContain(PROMPT);
    for (const agent of list.body.agents)
      expect((await host.api(`/v1/agents/${String(agent.agentId)}`)).body).toEqual(agent);
    expect((await host.api('/v1/agents/roster')).status).toBe(404);
    // RFC 0092: what an agent requires is held against what discovery offers.
    const silent = list.body.agents.find(({ agentId }) => agentId === agentIdOf('silent'));
    expect(silent?.degraded).toEqual(['toolCatalog', 'prompts']);
    const { body } = await host.api('/.well-known/openwop');
    expect(body).toMatchObject({
      agents: {
        supported: true,
        reasoning: { streaming: true },
        manifestRuntime: { installScope: 'host' },
      },
      capabilities: { agents: body.agents },
    });
  });
});

describe('RFC 0002, RFC 0024, RFC 0077: one invocation', () => {
  it('deltas before one closing reasoning, calls paired by callId and cause, then the decision', async () => {
    const { runId, status, events } = await run('sure');
    expect(status).toBe('completed');
    const order = types(agentScoped(events)).filter((type) => type !== 'agent.promptResolved');
    // Each turn states its reasoning once, the one that gave none by a summary of the host (RFC 0077 §E).
    expect(order).toEqual([
      ...['agent.invocation.started', ...DELTAS, 'agent.reasoned'],
      ...['agent.toolCalled', 'agent.toolReturned'],
      ...['agent.reasoned', 'agent.decided', 'agent.invocation.completed'],
    ]);
    const agentId = agentIdOf('sure');
    const deltas = payloads(events, 'agent.reasoning.delta');
    expect(deltas.map(({ sequence }) => sequence)).toEqual([0, 1, 2]);
    const reasoning = deltas.map(({ delta }) => delta).join('');
    expect(payloads(events, 'agent.reasoned')[0]).toMatchObject({ agentId, reasoning });
    const [called] = events.filter(({ type }) => type === 'agent.toolCalled');
    const [returned] = events.filter(({ type }) => type === 'agent.toolReturned');
    const { callId } = called?.payload as { callId: string };
    expect(called?.payload).toMatchObject({ agentId, toolName: 'core:json.query' });
    expect(returned?.payload).toMatchObject({ agentId, toolName: 'core:json.query', callId });
    expect(returned?.causationId).toBe(called?.eventId);
    expect(payloads(events, 'agent.decided')).toMatchObject([{ agentId, ...yes(1) }]);
    expect((await host.api(`/v1/runs/${runId}`)).body.agent).toMatchObject({ agentId });
  });

  it.each([
    ['workflow-node', { workflowId: 'agent-sure' }],
    ['run-api', { agentId: agentIdOf('sure'), inputs: { order: 'o-1' } }],
  ])(
    'source %s: the bracket is first and last, one id, and holds no content',
    async (source, body) => {
      const { events } = await finish(body);
      const scoped = agentScoped(events);
      const [opened, closed] = [scoped[0], scoped.at(-1)];
      const agentId = agentIdOf('sure');
      expect(opened).toMatchObject({
        type: 'agent.invocation.started',
        payload: { agentId, source },
      });
      expect(closed).toMatchObject({
        type: 'agent.invocation.completed',
        payload: { agentId, outcome: 'completed' },
      });
      const { invocationId } = opened?.payload as { invocationId: string };
      expect(closed?.payload).toMatchObject({ invocationId });
      for (const key of [
        'prompt',
        'result',
        'body',
        'input',
        'output',
        'apiKey',
        'secret',
        'credentials',
        'token',
      ]) {
        expect(opened?.payload).not.toHaveProperty([key]);
        expect(closed?.payload).not.toHaveProperty([key]);
      }
      expect(JSON.stringify(events)).not.toContain(PROMPT);
    },
  );

  it('RFC 0077 §D source chat-mention: a message in a session starts the same family there, and both are read as a conversation', async () => {
    const sessionId = `acceptance-${Date.now()}`;
    await finish({ agentId: agentIdOf('sure'), inputs: { order: 'o-1' }, sessionId });
    const address = `/v1/host/openwop-temporal/sessions/${sessionId}`;
    const agentId = agentIdOf('strict');
    const content = `@${agentIdOf('sure')} what of o-2? Not @home, nor \`@${agentId}\``;
    const headers = { 'idempotency-key': 'say-1' };
    const said = () => host.api(`${address}/messages`, { body: { content }, headers });
    const [answer, again] = [await said(), await said()];
    expect([answer.status, again.body]).toEqual([201, answer.body]);
    const { runId, messageId } = answer.body as { runId: string; messageId: string };
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const { events } = await readLog(host, runId);
    expectLawful(events);
    await checkInvariants(host, runId);
    expect(types(events).slice(0, 2)).toEqual(['run.started', 'channel.written']);
    expect(payloads(events, 'agent.invocation.started')).toMatchObject([
      { source: 'chat-mention' },
    ]);
    const message = { messageId, from: 'user', to: agentIdOf('sure'), content };
    const snapshot = (await host.api(`/v1/runs/${runId}`)).body;
    expect(snapshot.channels).toMatchObject({ messages: [message] });
    const page = (await host.api<{ messages: Json[] }>(`${address}/conversation`)).body;
    expect(page.messages.slice(-2)).toMatchObject([
      message,
      { from: agentIdOf('sure'), content: '{"verdict":"yes"}', role: 'agent', runId },
    ]);
    expect(page.messages).toHaveLength(3);
    let shown = '';
    const parts = { url: host.url, apiKey: host.apiKey, out: (text: string) => (shown += text) };
    const args = ['sessions', 'read', sessionId];
    expect(await runCli(args, { ...parts, err: () => {} })).toBe(0);
    expect(shown).toContain(`  ${content}\n${agentIdOf('sure')}  `);
    // The agent `strict` has a task schema that one text named `order` fits, and returns what its own schema forbids.
    const body = { content: `@${agentId} o-3` };
    const strict = (await host.api(`${address}/messages`, { body })).body as { runId: string };
    expect((await host.waitFor(strict.runId, ended)).status).toBe('failed');
    expect((await host.api(`${address}/messages`, { body: { content: 'hi' } })).status).toBe(400);
  });

  it('agent.promptResolved tells every layer, of which at most one applied', async () => {
    const { events } = await run('silent');
    const resolved = payloads(events, 'agent.promptResolved');
    expect(resolved.length).toBeGreaterThan(0);
    for (const { chain, resolved: source } of resolved) {
      const layers = chain as { layer: string; applied: boolean; source?: string }[];
      const applied = layers.filter((layer) => layer.applied);
      expect(layers.length).toBeGreaterThan(0);
      expect(applied.length).toBeLessThanOrEqual(1);
      expect(source ?? null).toBe(applied[0]?.source ?? null);
    }
  });

  it('no ref is resolved, yet each invocation tells its own prompt: by reference and hash, as discovery says', async () => {
    const { body } = await host.api<Json>('/.well-known/openwop');
    expect(body.prompts).toEqual({ supported: false, observability: 'hashed' });
    const { events } = await run('silent');
    const told = types(events).filter((type) => /^(agent\.prompt|prompt\.)/.test(type));
    expect(told).toEqual(['agent.promptResolved', 'prompt.composed']);
    const [composed] = payloads(events, 'prompt.composed');
    expect(Object.keys(composed ?? {}).sort()).toEqual(
      ['contentTrust', 'hash', 'kind', 'nodeId', 'refs'].sort(),
    );
  });

  it('messages shows the final answer, whole, and nothing else of the agent', async () => {
    const runId = await host.startRun({ workflowId: 'agent-sure' });
    const { frames } = await readSse({
      url: `${host.url}/v1/runs/${runId}/events?streamMode=messages`,
      headers: { authorization: `Bearer ${host.apiKey}` },
    });
    const { events } = await readLog(host, runId);
    const chunks = events.filter(({ type }) => type === 'output.chunk');
    expect(frames.map(({ id, event, data }) => [id, event, JSON.parse(data) as Json])).toEqual(
      chunks.map(({ sequence, payload }) => [String(sequence), 'ai.message.chunk', payload]),
    );
    expect(payloads(events, 'output.chunk')).toEqual([
      {
        ...{ nodeId: 'desk', runId, chunk: '{"verdict":"yes"}', isLast: true },
        meta: { finishReason: 'stop', model: 'scripted-1' },
      },
    ]);
  });

  it('verbosity off: no reasoning, no deltas, the decision still', async () => {
    const { events } = await run('sure', { configurable: { reasoningVerbosity: 'off' } });
    expect(payloads(events, 'agent.reasoned')).toEqual([]);
    expect(payloads(events, 'agent.reasoning.delta')).toEqual([]);
    expect(payloads(events, 'agent.decided').length).toBe(1);
  });

  it('a tool outside the allowlist is never called', async () => {
    const { events } = await run('eager');
    expect(payloads(events, 'agent.toolCalled')).toEqual([]);
    const [refused] = payloads(events, 'agent.toolReturned');
    expect(refused).toMatchObject({ toolName: 'core:clock', status: 'forbidden' });
    expect(refused).not.toHaveProperty('outcome');
  });

  it('a decision against the return schema fails the invocation and the run, and is not kept', async () => {
    const { runId, status, events } = await run('strict');
    expect(status).toBe('failed');
    const [closed] = payloads(events, 'agent.invocation.completed');
    expect(closed?.outcome).toBe('failed');
    expect(closed?.schemaValidated).not.toBe(true);
    expect(payloads(events, 'node.failed')).toMatchObject([
      { error: { code: 'handoff_return_schema_violation' } },
    ]);
    expect((await host.api(`/v1/runs/${runId}`)).text).not.toContain('perhaps');
  });

  it('a task against the task schema: 201, then failed before any model is asked', async () => {
    const { status, events } = await finish({ agentId: agentIdOf('strict'), inputs: { other: 1 } });
    expect(status).toBe('failed');
    expect(payloads(events, 'node.failed')).toMatchObject([
      { error: { code: 'handoff_task_schema_violation' } },
    ]);
    expect(payloads(events, 'provider.usage')).toEqual([]);
  });
});

describe('RFC 0002 §F: confidence escalation', () => {
  it('directly after the decision the run waits; after the answer one ratified decision, and it goes on', async () => {
    const runId = await host.startRun({ workflowId: 'agent-unsure' });
    expect(await host.waitFor(runId, waiting)).toMatchObject({
      status: 'waiting-approval',
      currentNodeId: 'desk',
    });
    const before = types((await readLog(host, runId)).events);
    expect(before.indexOf('node.suspended')).toBeGreaterThan(before.indexOf('agent.decided'));
    const resolved = await host.api(`/v1/runs/${runId}/interrupts/desk`, {
      body: { resumeValue: { action: 'accept' } },
    });
    expect(resolved.status).toBe(200);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const { events } = await readLog(host, runId);
    expectLawful(events);
    const agentId = agentIdOf('unsure');
    expect(payloads(events, 'node.suspended')).toMatchObject([
      {
        nodeId: 'desk',
        kind: 'low-confidence',
        reason: 'low-confidence',
        agentId,
        threshold: 0.7,
        observed: 0.5,
      },
    ]);
    const decisions = payloads(events, 'agent.decided');
    expect(decisions).toMatchObject([
      { agentId, ...yes(0.5) },
      { agentId, decision: { verdict: 'yes' } },
    ]);
    expect(payloads(events, 'runOrchestrator.decided')).toEqual([]);
    await checkInvariants(host, runId);
  });

  it.each([
    ['equal', {}],
    ['silent', {}],
    ['unsure', { configurable: { escalationThreshold: 0.4 } }],
  ])(
    "%s does not escalate: at the threshold, without confidence, or below the run's own threshold",
    async (name, more) => {
      const { status, events } = await run(name, more);
      expect([status, payloads(events, 'node.suspended')]).toEqual(['completed', []]);
    },
  );

  it("a credential of the caller's is refused where a model would be called, and not repeated", async () => {
    const { status, body, text } = await host.api<{ error: string }>('/v1/runs', {
      body: { workflowId: 'agent-sure', configurable: { 'ai.credentialRef': 'cred_of_mine_01' } },
    });
    expect([status, body.error]).toEqual([403, 'credential_forbidden']);
    expect(text).not.toContain('cred_of_mine_01');
  });
});
