// Calls of tools that live in agent processes (architecture §5): they wait on the agent's queue, are given up with a
// word, are asked about where the operator's policy says so, and leave no open block behind.
import { randomUUID } from 'node:crypto';
import { Context } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { afterEach, describe, expect, it } from 'vitest';
import type { CallToolInput, CallToolOutput, SealBlockInput } from '../../activities/contract.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { MESSAGES } from '../../src/rules/messages.ts';
import { agentTaskQueue, type RunInput } from '../../src/rules/run-input.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { agentNode, chain, definition, edge, pinned, runInput } from '../support/definitions.ts';
import { until } from '../support/host.ts';
import { paced } from '../support/machine.ts';
import { pendingOf } from '../support/run-workflow.ts';
import {
  answer,
  payloadsOf,
  pollQueue,
  runBothWays,
  typesOf,
  useWorkflowRunner,
} from './both-ways.ts';

useWorkflowRunner();

const CALLER = 'local.test.pack.agent';
/** How long a call waits for a worker that is there: no case waits so long. */
const WAIT_MS = 60_000;

interface Remote {
  readonly asks?: boolean;
  readonly waitMs?: number;
}

/** One agent that calls one tool of `agentId` once and then decides. */
function scene(remote: Remote = {}) {
  const agentId = `com.example.a${randomUUID().slice(0, 8)}`;
  const toolId = `${agentId}/act`;
  const calls: (CallToolInput & { queue: string; try: number })[] = [];
  const seals: SealBlockInput[] = [];
  const infers: JsonObject[] = [];
  let onCall = (
    _input: CallToolInput,
    _attempt: number,
  ): Promise<CallToolOutput | undefined> | undefined => undefined;
  const activities = {
    prepareInvocation: async () => ({
      output: {
        ok: true,
        transcript: 't',
        model: { provider: 'scripted', model: 'scripted' },
        prompts: [],
        composed: { refs: ['prompt:a'], kind: 'system+user', hash: `sha256:${'0'.repeat(64)}` },
        tools: [
          {
            toolId,
            idempotent: false,
            timeoutMs: 1_000,
            transport: 'native',
            remote: { agentId, waitMs: WAIT_MS, asks: false, ...remote },
          },
        ],
      },
      events: [],
    }),
    inferTurn: async (input: { transcript: string; results: JsonObject[] }) => {
      infers.push(...input.results);
      const done = { kind: 'decision', decision: 'done', schemaValidated: true };
      const call = { kind: 'calls', calls: [{ toolId, arguments: { n: 1 } }] };
      return {
        output: {
          ...(input.transcript.length > 1 ? done : call),
          transcript: `${input.transcript}.`,
        },
        events: [],
      };
    },
    callTool: async (input: CallToolInput) => {
      const { taskQueue, attempt } = Context.current().info;
      calls.push({ ...input, queue: taskQueue, try: attempt });
      const output = (await onCall(input, attempt)) ?? {
        kind: 'returned',
        status: 'ok',
        resultHash: `h:${input.resolution?.kind ?? 'performed'}`,
      };
      return { output, events: [] };
    },
    sealBlock: async (input: SealBlockInput) => {
      seals.push(input);
      return { output: { deltas: 0 }, events: [] };
    },
  };
  const input: RunInput = runInput(
    chain(`queue-${randomUUID().slice(0, 8)}`, [agentNode('think', CALLER)]),
    { agentList: [pinned(CALLER)] },
  );
  return {
    agentId,
    toolId,
    calls,
    seals,
    infers,
    activities,
    input,
    queue: agentTaskQueue(input.tenant, agentId),
    onCall: (handler: typeof onCall) => {
      onCall = handler;
    },
  };
}

const pollers: { stop(): Promise<void> }[] = [];
async function poll(queue: string): Promise<{ stop(): Promise<void> }> {
  const poller = await pollQueue(queue);
  pollers.push(poller);
  return poller;
}
afterEach(async () => {
  await Promise.all(pollers.splice(0).map((poller) => poller.stop().catch(() => undefined)));
});

/** Nothing of the run is under way but one call, and nobody has taken it. */
async function isWaiting(handle: WorkflowHandle): Promise<boolean> {
  const { activities, hasTask } = await pendingOf(handle);
  return !hasTask && activities.length === 1 && activities[0] === 'callTool scheduled';
}

describe("a call waits on the agent's queue (architecture §5)", () => {
  it('is performed by a worker that has the agent, and by no other', async () => {
    const { calls, queue, activities, input, infers } = scene();
    await poll(queue);
    const run = await runBothWays({ input, activities });
    expect(run.status).toBe('completed');
    expect(new Set(calls.map((call) => call.queue))).toEqual(new Set([queue]));
    expect(infers[0]).toMatchObject({ resultHash: 'h:performed' });
  });

  it('waits for an agent that comes later', async () => {
    const { calls, queue, activities, input } = scene({ waitMs: 60_000 });
    const run = await runBothWays({
      input,
      activities,
      plainOnly: true,
      script: async (handle) => {
        await until(() => isWaiting(handle), 'the call waits');
        expect(calls).toEqual([]);
        await poll(queue);
      },
    });
    expect(run.status).toBe('completed');
    expect(calls.map((call) => call.queue)).toEqual([queue]);
  });

  it('is given up after the wait: settled on the run queue, told to the model', async () => {
    const { calls, queue, activities, input, infers, seals } = scene({ waitMs: 1_000 });
    const run = await runBothWays({ input, activities });
    expect(run.status).toBe('completed');
    expect(calls.every((call) => call.queue !== queue)).toBe(true);
    expect(calls.map((call) => call.resolution)).toEqual([
      { kind: 'unreached' },
      { kind: 'unreached' },
    ]);
    expect(infers[0]).toMatchObject({ resultHash: 'h:unreached' });
    expect(seals).toMatchObject([{ kind: 'tool' }, { kind: 'tool' }]);
  });

  it('a call handed back by a worker that lost the agent waits again, and is given up in time', async () => {
    const { calls, queue, activities, input, onCall } = scene({ waitMs: paced(2_000) });
    const first = await poll(queue);
    let left: Promise<void> | undefined;
    onCall(({ resolution }) => {
      if (resolution) return undefined;
      left ??= first.stop();
      throw ApplicationFailure.retryable('the agent went', 'agent_unavailable');
    });
    const run = await runBothWays({ input, activities, plainOnly: true });
    await left;
    expect(run.status).toBe('completed');
    expect(calls.at(-1)).toMatchObject({ resolution: { kind: 'unreached' } });
  });

  it('a call that fails for good fails the node', async () => {
    const { queue, activities, input, onCall } = scene();
    await poll(queue);
    onCall(() => {
      throw ApplicationFailure.nonRetryable('no', 'internal_error');
    });
    const run = await runBothWays({ input, activities });
    expect(payloadsOf(run, 'node.failed')[0]).toMatchObject({ error: { code: 'internal_error' } });
  });

  it('holds no other branch up when the segment should end: they go on beside an agent that is absent', async () => {
    const { activities, input, toolId, queue } = scene();
    let isLastAsked = false;
    const steps = Array.from({ length: 12 }, (_, n) => agentNode(`busy${n}`, CALLER));
    const run = await runBothWays({
      input: {
        ...input,
        definition: definition(
          'beside',
          [agentNode('waits', CALLER), ...steps],
          steps.slice(1).map(({ id }, n) => edge(`busy${n}`, id)),
        ),
        forceContinueAsNewAfter: 5,
      },
      plainOnly: true,
      activities: {
        ...activities,
        inferTurn: async (asked: { transcript: string; context: { nodeId: string } }) => {
          isLastAsked ||= asked.context.nodeId === 'busy11';
          const isFirst = asked.context.nodeId === 'waits' && asked.transcript.length === 1;
          const done = { kind: 'decision', decision: 'done', schemaValidated: true };
          const call = { kind: 'calls', calls: [{ toolId, arguments: {} }] };
          const transcript = `${asked.transcript}.`;
          return { output: { ...(isFirst ? call : done), transcript }, events: [] };
        },
      },
      // The agent comes when nothing goes on but its call.
      script: async (handle) => {
        await until(async () => isLastAsked && (await isWaiting(handle)), 'the last one has ended');
        await poll(queue);
      },
    });
    const types = typesOf(run);
    // The one call stands; twelve agents come to their ends beside it.
    expect(types.indexOf('node.completed busy11')).toBeGreaterThan(0);
    expect(types.indexOf('node.completed busy11')).toBeLessThan(
      types.indexOf('node.completed waits'),
    );
  });

  it('a waiting call ends at once when the run is cancelled', async () => {
    const { calls, activities, input } = scene({ waitMs: 600_000 });
    const run = await runBothWays({
      input,
      activities,
      plainOnly: true,
      script: async (handle) => {
        await until(() => isWaiting(handle), 'the call waits');
        await handle.executeUpdate(MESSAGES.cancel.update, {
          args: [{ cancelledBy: 'tester', bodyDigest: 'test' }],
        });
      },
    });
    expect(run.status).toBe('cancelled');
    expect(calls).toEqual([]);
  });
});

describe('progress of a call that ends without a result is sealed (architecture §3.5)', () => {
  it('before the call is given up, and before the node fails', async () => {
    const waits = scene({ waitMs: 1_000 });
    await runBothWays({ ...waits, plainOnly: true });
    expect(waits.seals).toMatchObject([{ kind: 'tool', agentId: CALLER }]);
    const fails = scene();
    await poll(fails.queue);
    fails.onCall(() => {
      throw ApplicationFailure.nonRetryable('no', 'internal_error');
    });
    await runBothWays({ ...fails, plainOnly: true });
    expect(fails.seals).toMatchObject([{ kind: 'tool' }]);
    expect(fails.seals[0]?.sealedActivityId).toContain('.call');
  });
});

describe("the operator's policy asks a human about a call (seed 004 §4.2.1 side_effects, requires_directive)", () => {
  const schema = approvalSchema(['accept', 'reject']);

  it('accept: it is called, with who let it', async () => {
    const { calls, queue, activities, input, agentId } = scene({ asks: true });
    await poll(queue);
    const run = await runBothWays({
      input,
      activities,
      script: async (handle) => void (await answer(handle, 'think', { action: 'accept' }, schema)),
    });
    expect(run.status).toBe('completed');
    expect(payloadsOf(run, 'interrupt.requested')[0]).toMatchObject({
      kind: 'approval',
      data: {
        artifactType: 'tool-call',
        actions: ['accept', 'reject'],
        artifactData: { toolId: `${agentId}/act`, arguments: { n: 1 } },
      },
    });
    expect(calls.map(({ approvedBy, resolution }) => ({ approvedBy, resolution }))).toEqual([
      { approvedBy: 'human:tester', resolution: undefined },
      { approvedBy: 'human:tester', resolution: undefined },
    ]);
  });

  it('reject: nothing is performed, the model is told', async () => {
    const { calls, queue, activities, input, infers } = scene({ asks: true });
    const run = await runBothWays({
      input,
      activities,
      script: async (handle) => void (await answer(handle, 'think', { action: 'reject' }, schema)),
    });
    expect(run.status).toBe('completed');
    expect(calls.some((call) => call.queue === queue)).toBe(false);
    expect(infers[0]).toMatchObject({ resultHash: 'h:skip' });
  });

  it('a policy that came later asks as well', async () => {
    const { queue, activities, input, onCall } = scene();
    await poll(queue);
    onCall(async ({ approvedBy }) =>
      approvedBy === undefined ? { kind: 'needs-approval', reason: 'it does now' } : undefined,
    );
    const run = await runBothWays({
      input,
      activities,
      script: async (handle) => void (await answer(handle, 'think', { action: 'accept' }, schema)),
    });
    expect(run.status).toBe('completed');
    expect(payloadsOf(run, 'interrupt.requested')).toHaveLength(1);
  });
});
