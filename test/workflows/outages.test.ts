// What an outage may not become in a run (architecture §4.1), on the time-skipping server: with the limits that there are.
import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type {
  CallToolInput,
  EndChildInput,
  PrepareInvocationOutput,
  StartChildrenInput,
} from '../../activities/contract.ts';
import { agentTaskQueue, type ForkOf, type RunInput } from '../../src/rules/run-input.ts';
import { FAMILY_OPTIONS, optionsOf, RECORDING_OPTIONS } from '../../workflows/activity-options.ts';
import type { ActivityName } from '../../workflows/steps.ts';
import { chain, node, runInput } from '../support/definitions.ts';
import type { FinishedRun } from '../support/run-workflow.ts';
import { findTimeSkippingServer } from '../support/time-skipping.ts';
import { replayWhole } from '../support/whole-replay.ts';
import { openWorkflowLab, type WorkflowLab } from '../support/workflow-lab.ts';
import { payloadsOf, typesOf } from './both-ways.ts';
import { decision, oneAgent, scripted } from './scripted-agent.ts';

const MINUTE_MS = 60_000;
const WAIT_MS = 60 * MINUTE_MS;
const server = await findTimeSkippingServer();
const away = async (): Promise<never> => {
  throw ApplicationFailure.retryable('away', 'service_unavailable');
};

const ACTIVITIES: readonly ActivityName[] = [
  ...(['checkValue', 'prepareInvocation', 'inferTurn', 'callTool', 'startChildren'] as const),
  ...(['endChild', 'cancelChild', 'keepTime', 'tellReasoning', 'recordedAnswers'] as const),
  'sealBlock',
];

describe('tries of activities have no number [I98]', () => {
  const queue = { taskQueue: 'q', waitMs: 1 };
  it.each(ACTIVITIES)('%s', (name) => {
    for (const asked of [{}, { timeoutMs: 1 }, { queue }])
      expect(optionsOf(name, asked).retry?.maximumAttempts).toBeUndefined();
  });
  it('nor have those that belong to a run alone', () => {
    for (const { retry } of [RECORDING_OPTIONS, FAMILY_OPTIONS])
      expect(retry?.maximumAttempts).toBeUndefined();
  });
});

describe.skipIf(!server.available)('an outage (time-skipping server: Java) [I98]', () => {
  let lab: WorkflowLab;
  let poller: { stop(): Promise<void> } | undefined;
  beforeAll(async () => {
    if (server.available) lab = await openWorkflowLab({ timeSkipping: server });
  });
  afterEach(async () => {
    await poller?.stop();
    poller = undefined;
  });
  afterAll(() => lab?.close());

  const forkOf: ForkOf = {
    ...{ sourceRunId: 'source', length: 3, fromSeq: 3, mode: 'branch' },
    ...{ clocks: [], generation: 1 },
  };
  const fork = () => runInput(chain('forked', [node('n', 'core.noop')]), { fork: forkOf });

  it('a fork whose record cannot be read is cancelled when somebody says so', async () => {
    const run = await lab.run({
      input: fork(),
      activities: { readRecording: away },
      script: async (handle, clock) => {
        await clock.sleep(30 * MINUTE_MS);
        expect((await handle.describe()).status.name).toBe('RUNNING');
        await handle.cancel();
        await clock.sleep(MINUTE_MS);
      },
    });
    expect([run.status, typesOf(run)]).toEqual(['cancelled', ['run.cancelled']]);
    await run.replay();
  });

  it('and one with a time of its own ends with it, besides the time of its loading', async () => {
    const input = { ...fork(), configurable: { runTimeoutMs: MINUTE_MS } };
    const run = await lab.run({
      input,
      activities: { readRecording: away },
      script: async (_handle, clock) => clock.sleep(15 * MINUTE_MS),
    });
    expect(run.status).toBe('failed');
    expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({ code: 'run_timeout' });
  });

  /** Played again it comes to the same: what workflow code decides by stands in the record. */
  async function expectSame(run: FinishedRun, input: RunInput): Promise<void> {
    await run.replay();
    const replayed = await replayWhole(lab, run, input);
    expect(payloadsOf(replayed, 'replay.diverged')).toEqual([]);
    expect(replayed.status).toBe(run.status);
  }

  /** One call of a tool of an agent process that a worker polls for, answered by `perform`. */
  async function call(perform: (input: CallToolInput, minutes: number) => Promise<unknown>) {
    const agentId = `com.example.a${randomUUID().slice(0, 8)}`;
    const toolId = `${agentId}/act`;
    const calls = { kind: 'calls' as const, calls: [{ toolId, arguments: {} }] };
    const { activities } = scripted({ turns: [calls, decision('done')], tools: [toolId] });
    const input = oneAgent();
    poller = await lab.poll(agentTaskQueue(input.tenant, agentId));
    const seen: (string | undefined)[] = [];
    let fromMs: number | undefined;
    const run = await lab.run({
      input,
      activities: {
        ...activities,
        prepareInvocation: async (asked: never) => {
          const { output, events } = await activities.prepareInvocation(asked);
          const remote = { agentId, waitMs: WAIT_MS, asks: false };
          const tools = output.ok ? output.tools.map((tool) => ({ ...tool, remote })) : [];
          return { output: { ...output, tools }, events };
        },
        callTool: async (asked: CallToolInput) => {
          const atMs = await lab.clock.nowMs();
          fromMs ??= atMs;
          seen.push(asked.resolution?.kind);
          await perform(asked, (atMs - fromMs) / MINUTE_MS);
          return activities.callTool(asked);
        },
      },
    });
    return { run, seen, input };
  }

  it('longer than a recorded child waits for those before it keeps the order of the record', async () => {
    const toolId = 'agent:local.test.pack.helper';
    const calls = [1, 2].map((n) => ({ toolId, arguments: { n } }));
    const tool = { toolId, idempotent: false, timeoutMs: 1_000, transport: 'native' } as const;
    const prepare: PrepareInvocationOutput = {
      ...{ ok: true, transcript: 't', model: { provider: 'scripted', model: 'scripted' } },
      ...{ prompts: [], tools: [{ ...tool, runs: 'helper' }] },
      composed: { refs: [], kind: 'system-only', hash: `sha256:${'0'.repeat(64)}` },
    };
    let fromMs: number | undefined;
    const run = await lab.run({
      input: oneAgent(),
      activities: {
        ...scripted({ turns: [{ kind: 'calls', calls }, decision('done')], prepare }).activities,
        async startChildren({ requests }: StartChildrenInput) {
          const starts = requests.map((_request, turn) => ({
            ...{ kind: 'recorded' as const, childRunId: `recorded-${turn}`, workflowId: 'child' },
            ...{ recordedOf: 'source', turn },
          }));
          return { output: { starts }, events: [] };
        },
        async endChild({ tool: call, context }: EndChildInput) {
          const atMs = await lab.clock.nowMs();
          fromMs ??= atMs;
          if (atMs - fromMs < 25 * MINUTE_MS) await away();
          if (!call) return expect.fail('a call asks');
          const { agentId, callId, toolId: toolName, calledKey: causedBy } = call;
          const payload = { agentId, callId, toolName, status: 'ok' as const, outcome: 1 };
          const { nodeId } = context;
          return {
            output: { status: 'completed', resultHash: `h:${callId}` },
            events: [{ type: 'agent.toolReturned', nodeId, causedBy, payload }],
          };
        },
      },
    });
    expect(payloadsOf(run, 'node.failed')).toEqual([]);
    expect(run.status).toBe('completed');
    const called = payloadsOf(run, 'agent.toolCalled').map(({ callId }) => callId);
    expect(payloadsOf(run, 'agent.toolReturned').map(({ callId }) => callId)).toEqual(called);
    await run.replay();
  });

  it('longer than the whole time of a call of an agent gives it up to nobody: it waits anew', async () => {
    const { run, seen, input } = await call(async (_asked, minutes) => {
      if (minutes < 100) await away();
    });
    expect(run.status).toBe('completed');
    expect(seen.filter((kind) => kind !== undefined)).toEqual([]);
    expect(payloadsOf(run, 'agent.toolReturned')).toMatchObject([{ status: 'ok' }]);
    await expectSame(run, input);
  });

  it('an agent that does not come in that time, though a worker polls for it, is given up with a word', async () => {
    const { run, seen, input } = await call(async ({ resolution }) => {
      if (!resolution) throw ApplicationFailure.retryable('no agent', 'agent_unavailable');
    });
    expect(run.status).toBe('completed');
    expect(seen.at(-1)).toBe('unreached');
    await expectSame(run, input);
  });
});
