// callTool for tools of agent processes (architecture §5; seed 004 §4.3, §4.4): policy, an absent agent, the grace in
// which an agent may still say how a stopped call ended, and what is settled when nobody was reached.
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CallToolInput } from '../../activities/contract.ts';
import { HostError } from '../../src/rules/errors.ts';
import { agentTaskQueue } from '../../src/rules/run-input.ts';
import { digestOf, eventIdOf } from '../../src/rules/ids.ts';
import { canonicalJson, type JsonValue } from '../../src/rules/json.ts';
import type { RemoteTool } from '../../src/ports/agents.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { Tool, ToolCallContext } from '../../src/ports/tools.ts';
import { activityEnvironment, AGENT_ID, createRig, runActivity, TENANT, type Rig } from './rig.ts';
import { openAnyStores } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';
import { takes } from '../support/waiting.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

const TOOL_ID = 'com.example.notes/add';

type Behaviour = (input: JsonValue, context: ToolCallContext) => Promise<JsonValue>;

function remoteTool(call: Behaviour, more: Partial<Tool> = {}, remote: Partial<RemoteTool> = {}) {
  return {
    toolId: TOOL_ID,
    description: 'Adds a note.',
    inputSchema: { type: 'object' },
    idempotent: false,
    timeoutMs: 2_000,
    transport: 'native',
    safetyTier: 'write',
    stopGraceMs: 1_000,
    remote: {
      agentId: 'com.example.notes',
      waitMs: 1_000,
      approval: 'none',
      streams: false,
      ...remote,
    },
    call,
    ...more,
  } satisfies Tool;
}

function input(rig: Rig, more: Partial<CallToolInput> = {}): CallToolInput {
  const args = { text: 'hello' };
  return {
    context: { ...rig.context, activityId: 'n/1/0/i0.t0.c0.call' },
    agentId: AGENT_ID,
    call: {
      callId: 'call-1',
      toolId: TOOL_ID,
      arguments: args,
      argsHash: digestOf(canonicalJson(args)),
      occurrence: 0,
    },
    tools: [TOOL_ID],
    calledKey: 'agent.toolCalled|n/1/0/i0.t0.c0',
    ...more,
  };
}

async function statesOf(rig: Rig): Promise<string[]> {
  return (await stores.effects.ofRun(runRef(rig.runId, TENANT))).map(({ state }) => state);
}

const absent: Behaviour = async () => {
  throw Object.assign(new HostError('agent_unavailable'), { sent: false });
};

describe('what the agent is told of the call (seed 004 §3.1, §4.3.1)', () => {
  test('cause, caller and key', async () => {
    let told: ToolCallContext | undefined;
    const tool = remoteTool(async (_, context) => {
      told = context;
      return {};
    });
    const rig = await createRig(stores, { remote: [tool] });
    await runActivity(rig, 'callTool', { input: input(rig, { approvedBy: 'human:kim' }) });
    const [effect] = await stores.effects.ofRun(runRef(rig.runId, TENANT));
    expect(told).toMatchObject({
      runId: rig.runId,
      nodeId: 'n',
      workflowId: 'desk',
      callerAgentId: AGENT_ID,
      callId: 'call-1',
      causationId: eventIdOf(rig.runId, 'agent.toolCalled|n/1/0/i0.t0.c0'),
      directive: 'human:kim',
      idempotencyKey: effect?.effectId,
    });
  });
});

describe("the operator's policy holds at the call, too (seed 004 §4.3.1)", () => {
  test('deny: nothing is performed, the model is told', async () => {
    const tool = remoteTool(async () => expect.fail(), {}, { approval: 'deny' });
    const rig = await createRig(stores, { remote: [tool] });
    const { output, events } = await runActivity(rig, 'callTool', { input: input(rig) });
    expect(output).toMatchObject({ kind: 'returned', status: 'forbidden' });
    expect(events[0]?.payload).toMatchObject({ error: { code: 'tool_denied' } });
    expect(await statesOf(rig)).toEqual([]);
  });
  test('ask: nothing is performed or stated before somebody has said so', async () => {
    const tool = remoteTool(async () => ({}), {}, { approval: 'ask' });
    const rig = await createRig(stores, { remote: [tool] });
    const asked = await runActivity(rig, 'callTool', { input: input(rig) });
    expect(asked).toMatchObject({ output: { kind: 'needs-approval' }, events: [] });
    const called = await runActivity(rig, 'callTool', { input: input(rig, { approvedBy: 'me' }) });
    expect(called.output).toMatchObject({ kind: 'returned', status: 'ok' });
  });

  // [I120]
  test('a no to a call that was made meanwhile is returned as both', async () => {
    const tool = remoteTool(async () => ({ paid: true }), {}, { approval: 'ask' });
    const rig = await createRig(stores, { remote: [tool] });
    const no = async (more: { isRefusal?: true }) => {
      const resolution = { kind: 'skip', reason: 'Never pay.', ...more } as const;
      const { output, events } = await runActivity(rig, 'callTool', {
        input: input(rig, { resolution }),
      });
      return { status: (output as { status?: string }).status, payload: events[0]?.payload };
    };
    const errorOf = async () => (await no({ isRefusal: true })).payload;
    expect(await errorOf()).toMatchObject({
      error: {
        code: 'effect_skipped',
        message: 'A human decided not to perform the effect. The reason given: Never pay.',
      },
    });
    await runActivity(rig, 'callTool', { input: input(rig, { approvedBy: 'me' }) });
    expect(await errorOf()).toMatchObject({
      error: {
        code: 'effect_skipped',
        message:
          'A human decided not to perform the effect. But the same call had been made earlier, and happened. The reason given: Never pay.',
      },
    });
    // A word on an effect in doubt is another thing: what became of it by then is what is told.
    expect(await no({})).toMatchObject({ status: 'ok', payload: { outcome: { paid: true } } });
  });
});

describe('an agent that is not there (architecture §5)', () => {
  test.each([1, 4, 50])('try %i: handed back to its queue, never told to the model', async (at) => {
    const rig = await createRig(stores, { remote: [remoteTool(absent)] });
    const failure = await runActivity(rig, 'callTool', {
      input: input(rig),
      env: activityEnvironment(at, {
        taskQueue: agentTaskQueue('default', 'local.notes'),
        heartbeatDetails: { tries: { failures: 0, outages: at - 1 } },
      }),
    }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApplicationFailure);
    expect(failure).toMatchObject({ type: 'agent_unavailable', nonRetryable: false });
    expect(await statesOf(rig)).toEqual(['failed-before-send']);
  });
  test.each([
    ['read' as const, 'is told to the model', { kind: 'returned', status: 'error' }],
    ['write' as const, 'may have happened: a human is asked', { kind: 'in-doubt' }],
  ])(
    'a call (%s) that ends its agent each time, after a few tries, %s',
    async (safetyTier, _, told) => {
      const deadly: Behaviour = async () => {
        throw new HostError('agent_unavailable');
      };
      const rig = await createRig(stores, {
        remote: [remoteTool(deadly, { idempotent: true, safetyTier })],
      });
      const again = await runActivity(rig, 'callTool', { input: input(rig), tryNumber: 1 }).catch(
        (error: unknown) => error,
      );
      expect(again).toMatchObject({ type: 'agent_unavailable', nonRetryable: false });
      const { output, events } = await runActivity(rig, 'callTool', {
        input: input(rig),
        tryNumber: 4,
        env: activityEnvironment(4),
      });
      expect(output).toMatchObject(told);
      if (safetyTier === 'read')
        expect(events[0]?.payload).toMatchObject({ error: { code: 'agent_unavailable' } });
      else expect(events).toEqual([]);
    },
  );
  test('nobody was reached, nothing was sent: the model is told, and a later call is performed', async () => {
    let behave = absent;
    const rig = await createRig(stores, { remote: [remoteTool((...call) => behave(...call))] });
    await runActivity(rig, 'callTool', { input: input(rig) }).catch(() => undefined);
    const { output, events } = await runActivity(rig, 'callTool', {
      input: input(rig, { resolution: { kind: 'unreached' } }),
    });
    expect(output).toMatchObject({ kind: 'returned', status: 'error' });
    expect(events[0]?.payload).toMatchObject({ error: { code: 'agent_unavailable' } });
    expect(await statesOf(rig)).toEqual(['failed-before-send']);
    // The agent is back when the node is attempted again.
    behave = async () => ({ id: 1 });
    const context = { ...input(rig).context, attempt: 1 };
    const later = await runActivity(rig, 'callTool', { input: input(rig, { context }) });
    expect(later.output).toMatchObject({ kind: 'returned', status: 'ok' });
  });
  test('it is given up: the model is told at the first try, and a later attempt performs the call', async () => {
    const reason = 'It ended 5 times.';
    let behave: Behaviour = async () => {
      throw Object.assign(new HostError('tool_failed', { reason, final: true }), { sent: false });
    };
    const rig = await createRig(stores, { remote: [remoteTool((...call) => behave(...call))] });
    const { output, events } = await runActivity(rig, 'callTool', { input: input(rig) });
    expect(output).toMatchObject({ kind: 'returned', status: 'error' });
    expect(events[0]?.payload).toMatchObject({ error: { code: 'tool_failed', message: reason } });
    expect(await statesOf(rig)).toEqual(['failed-before-send']);
    behave = async () => ({ id: 1 });
    const context = { ...input(rig).context, attempt: 1 };
    const later = await runActivity(rig, 'callTool', { input: input(rig, { context }) });
    expect(later.output).toMatchObject({ kind: 'returned', status: 'ok' });
  });
  test('nobody was reached after a sending without an answer: a human decides', async () => {
    const lost: Behaviour = async () => {
      throw new HostError('agent_unavailable');
    };
    const rig = await createRig(stores, { remote: [remoteTool(lost)] });
    const first = await runActivity(rig, 'callTool', { input: input(rig) });
    expect(first.output).toMatchObject({ kind: 'in-doubt' });
    const { output } = await runActivity(rig, 'callTool', {
      input: input(rig, { resolution: { kind: 'unreached' } }),
    });
    expect(output).toMatchObject({ kind: 'in-doubt' });
  });
  test.each([
    ['write' as const, { kind: 'in-doubt' }, 'in-doubt'],
    ['read' as const, { kind: 'returned', status: 'error' }, 'in-doubt'],
  ])(
    'nobody was reached after a sending without an answer, idempotent, %s',
    async (safetyTier, told, state) => {
      const lost: Behaviour = async () => {
        throw new Error('connection reset');
      };
      const tool = remoteTool(lost, { idempotent: true, safetyTier });
      const rig = await createRig(stores, { remote: [tool] });
      await runActivity(rig, 'callTool', { input: input(rig) }).catch(() => undefined);
      const { output } = await runActivity(rig, 'callTool', {
        input: input(rig, { resolution: { kind: 'unreached' } }),
      });
      expect(output).toMatchObject(told);
      expect(await statesOf(rig)).toEqual([state]);
    },
  );
  test('nobody was reached, but an earlier try had its answer: that answer', async () => {
    const rig = await createRig(stores, { remote: [remoteTool(async () => ({ id: 7 }))] });
    await runActivity(rig, 'callTool', { input: input(rig) });
    const { output, events } = await runActivity(rig, 'callTool', {
      input: input(rig, { resolution: { kind: 'unreached' } }),
    });
    expect(output).toMatchObject({ kind: 'returned', status: 'ok' });
    expect(events[0]?.payload).toMatchObject({ outcome: { id: 7 } });
  });
});

describe('a stopped call whose agent still answers (seed 004 §4.4)', () => {
  const onAbort = (signal: AbortSignal, then: () => void) =>
    signal.addEventListener('abort', () => void takes(20).then(then), { once: true });

  test('time is over, the agent says canceled: it is known that it did not finish', async () => {
    const tool = remoteTool(
      (_, { signal }) =>
        new Promise((_resolve, reject) =>
          onAbort(signal, () =>
            reject(Object.assign(new HostError('tool_timeout', { final: true }), { sent: true })),
          ),
        ),
      { timeoutMs: 100 },
    );
    const rig = await createRig(stores, { remote: [tool] });
    const { output, events } = await runActivity(rig, 'callTool', { input: input(rig) });
    expect(output).toMatchObject({ kind: 'returned', status: 'error' });
    expect(events[0]?.payload).toMatchObject({ error: { code: 'tool_timeout' } });
    expect(await statesOf(rig)).toEqual(['failed-final']);
  });
  test('time is over, the agent answers after all: that is the outcome', async () => {
    const tool = remoteTool(
      (_, { signal }) => new Promise((resolve) => onAbort(signal, () => resolve({ late: true }))),
      { timeoutMs: 100 },
    );
    const rig = await createRig(stores, { remote: [tool] });
    const { output, events } = await runActivity(rig, 'callTool', { input: input(rig) });
    expect(output).toMatchObject({ kind: 'returned', status: 'ok' });
    expect(events[0]?.payload).toMatchObject({ outcome: { late: true } });
  });
  test('its connection broke behind the call, whatever was not read of it: in doubt', async () => {
    let calls = 0;
    const tool = remoteTool(async () => {
      calls += 1;
      throw Object.assign(new HostError('agent_unavailable'), { sent: true });
    });
    const rig = await createRig(stores, { remote: [tool] });
    const { output } = await runActivity(rig, 'callTool', { input: input(rig) });
    expect(output).toMatchObject({ kind: 'in-doubt' });
    expect(await statesOf(rig)).toEqual(['in-doubt']);
    expect(calls).toBe(1);
  });
  test('time is over, the agent is silent: in doubt', async () => {
    const tool = remoteTool(() => new Promise(() => undefined), {
      timeoutMs: 100,
      stopGraceMs: 100,
    });
    const rig = await createRig(stores, { remote: [tool] });
    const { output } = await runActivity(rig, 'callTool', { input: input(rig) });
    expect(output).toMatchObject({ kind: 'in-doubt' });
  });
});
