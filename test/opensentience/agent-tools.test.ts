// Tools of agents as runs see them: what their declarations mean (seed 004 §4.2.1), what a call carries (§3.1, §4.3.1), and
// waiting for an agent that is being started.
import { describe, expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import type { AgentInstance, AgentTool } from '../../src/ports/agents.ts';
import type { Tool, ToolCallContext } from '../../src/ports/tools.ts';
import { createAgentTools } from '../../src/opensentience/agent-tools.ts';
import type { SessionCall } from '../../src/opensentience/parts.ts';

const declared: AgentTool = {
  toolId: 'com.example.notes/add',
  agentId: 'com.example.notes',
  name: 'add',
  description: 'Adds.',
  inputSchema: { type: 'object' },
  capabilities: [],
  sideEffects: false,
  requiresDirective: false,
  tags: [],
  approval: 'none',
  timeoutMs: 1_000,
  waitMs: 5_000,
  maxInputBytes: 100,
  maxOutputBytes: 100,
};
const context: ToolCallContext = {
  tenant: 't',
  runId: 'run-1',
  correlationId: 'run-root',
  nodeId: 'n',
  workflowId: 'w',
  principal: 'p',
  callerAgentId: 'local.caller',
  callId: 'call-1',
  causationId: 'evt-1',
  directive: 'policy',
  idempotencyKey: 'eff-1',
  signal: new AbortController().signal,
};

async function toolOf(
  more: Partial<AgentTool>,
  call?: (agentId: string, call: SessionCall) => void,
): Promise<Tool> {
  const tools = createAgentTools({
    registry: { tools: async () => [{ ...declared, ...more }], instances: async () => [] },
    ...(call && {
      core: {
        call: async (agentId, sent) => {
          call(agentId, sent);
          return { done: true };
        },
      },
    }),
  });
  const tool = (await tools.find('t', [declared.toolId])).get(declared.toolId);
  if (!tool) throw new Error('not found');
  return tool;
}

describe('seed 004 §4.2.1: what a declaration means to a run', () => {
  it.each([
    ['no side effects', { sideEffects: false }, true, 'read'],
    ['side effects', { sideEffects: true }, false, 'write'],
    ['one effect per key', { sideEffects: true, capabilities: ['idempotency'] }, true, 'write'],
  ] as const)('%s', async (_, more, idempotent, safetyTier) => {
    expect(await toolOf(more)).toMatchObject({ idempotent, safetyTier, timeoutMs: 1_000 });
  });
  it('streaming, policy and the longest wait are known to the run', async () => {
    const tool = await toolOf({ capabilities: ['streaming'], approval: 'ask' });
    expect(tool.remote).toEqual({
      agentId: 'com.example.notes',
      waitMs: 5_000,
      approval: 'ask',
      streams: true,
    });
  });
});

describe('seed 004 §3.1, §4.3.1: what a call carries', () => {
  it('root run, cause, caller, key, limits; the request id is the same for every try', async () => {
    const calls: SessionCall[] = [];
    const tool = await toolOf({ sideEffects: true }, (_, call) => void calls.push(call));
    expect(await tool.call({ text: 'x' }, context)).toEqual({ done: true });
    await tool.call({ text: 'x' }, context);
    expect(calls[0]).toMatchObject({
      toolId: declared.toolId,
      input: { text: 'x' },
      sideEffects: true,
      timeoutMs: 1_000,
      maxInputBytes: 100,
      maxOutputBytes: 100,
      idempotencyKey: 'eff-1',
      correlationId: 'run-root',
      causationId: 'evt-1',
      actor: { type: 'agent', id: 'local.caller' },
      caller: { type: 'agent', id: 'local.caller' },
      context: { run_id: 'run-1', workflow_id: 'w', node_id: 'n', directive: 'policy' },
    });
    expect(calls[0]?.requestId).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-/);
    expect(calls[1]?.requestId).toBe(calls[0]?.requestId);
  });
  it('a directive is named only where one is needed', async () => {
    const calls: SessionCall[] = [];
    await (await toolOf({}, (_, call) => void calls.push(call))).call({}, context);
    expect(calls[0]?.context).not.toHaveProperty('directive');
  });
  it.each([[null], [[]], ['text']])('arguments %j are no object: refused unsent', async (input) => {
    const tool = await toolOf({}, () => expect.fail());
    await expect(tool.call(input, context)).rejects.toMatchObject({
      code: 'tool_invalid_input',
      sent: false,
    });
  });
  it('a process without agents hands the call back', async () => {
    await expect((await toolOf({})).call({}, context)).rejects.toMatchObject({
      code: 'agent_unavailable',
      sent: false,
    });
  });
});

describe('a call that was never sent (architecture §5)', () => {
  const stopped = (reason: unknown, sent: boolean | undefined) => {
    const stop = new AbortController();
    const tool = toolOf({}, () => {
      stop.abort(reason);
      throw Object.assign(new HostError('cancelled'), sent === undefined ? {} : { sent });
    });
    return tool.then((one) => one.call({}, { ...context, signal: stop.signal }));
  };
  it.each<[string, unknown, boolean | undefined, string]>([
    [
      'its time was over: it goes on waiting',
      new HostError('tool_timeout'),
      false,
      'agent_unavailable',
    ],
    ['the run was cancelled', new Error('cancelled'), false, 'cancelled'],
    ['it was sent, and is in doubt', new HostError('tool_timeout'), undefined, 'cancelled'],
  ])('%s', async (_, reason, sent, code) => {
    await expect(stopped(reason, sent)).rejects.toMatchObject({ code });
  });
});

describe('an agent that is being started', () => {
  const instance = (status: AgentInstance['status'], toolIds?: string[]) =>
    ({ status, ...(toolIds ? { session: { toolIds } } : {}) }) as unknown as AgentInstance;

  it.each<[string, AgentInstance[], number, number]>([
    ['is waited for', [instance('starting')], 60_000, 3],
    ['is waited for while it has not registered', [instance('connected', [])], 60_000, 3],
    ['is waited for between two tries to start', [instance('backing-off')], 60_000, 3],
    ['is not waited for by who does not ask', [instance('starting')], 0, 1],
    ['that nobody knows is not waited for', [], 60_000, 1],
    ['that gave up is not waited for', [instance('crash-loop')], 60_000, 1],
    ['that declared other tools is not waited for', [instance('connected', ['x'])], 60_000, 1],
  ])('%s', async (_, instances, startMs, expected) => {
    let looks = 0;
    const tools = createAgentTools({
      registry: {
        tools: async () => (++looks >= 3 ? [declared] : []),
        instances: async () => instances,
      },
    });
    await tools.find('t', [declared.toolId], startMs);
    expect(looks).toBe(expected);
  });
});
