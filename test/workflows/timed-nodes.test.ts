// Nodes with a time limit of their own (`settings.timeoutMs`): what is true of every node is true of them.
import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import proto from '@temporalio/proto';
import { expect, it } from 'vitest';
import type { CallToolInput } from '../../activities/contract.ts';
import { activityIdOf } from '../../src/rules/ids.ts';
import { MESSAGES } from '../../src/rules/messages.ts';
import {
  chain,
  definition,
  edge,
  node,
  pinned,
  agentNode,
  runInput,
} from '../support/definitions.ts';
import { until } from '../support/host.ts';
import { DOUBT_ACTIONS } from '../../workflows/questions.ts';
import { replayWhole } from '../support/whole-replay.ts';
import { openWorkflowLab } from '../support/workflow-lab.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { answersSchema } from '../../src/rules/answer-schemas.ts';
import {
  answer,
  payloadsOf,
  runBothWays,
  runOnce,
  taken,
  typesOf,
  useWorkflowRunner,
} from './both-ways.ts';
import { AGENT, decision, scripted } from './scripted-agent.ts';

useWorkflowRunner();
const { PENDING_ACTIVITY_STATE_CANCEL_REQUESTED: CANCEL_REQUESTED } =
  proto.temporal.api.enums.v1.PendingActivityState;
const timeoutMs = 60_000;
const questions = [{ id: 'q', question: 'Which?' }];

// [I3]
it('no segment ends between the last thing that a node did and its end: nobody is asked twice', async () => {
  const gate = node('gate', 'core.clarificationGate', {
    config: { questions },
    settings: { timeoutMs },
  });
  const run = await runBothWays({
    input: runInput(chain(`timed-${randomUUID().slice(0, 8)}`, [gate, node('end', 'core.end')])),
    script: async (handle) => {
      await answer(handle, 'gate', { answers: { q: 'this' } }, answersSchema(questions));
    },
  });
  expect(run.status).toBe('completed');
  expect(payloadsOf(run, 'node.suspended')).toHaveLength(1);
});

it('the stream of a model call that the end of the run cuts off is sealed before that end (architecture §3.5)', async () => {
  const { activities, seals } = scripted({ turns: [decision(1)] });
  let begun: () => void = () => {};
  let giveUp: (error: Error) => void = () => {};
  const isThinking = new Promise<void>((resolve) => (begun = resolve));
  const cutOff = {
    ...activities,
    inferTurn: (): Promise<never> => {
      begun();
      return new Promise((_, reject) => (giveUp = reject));
    },
  };
  const nodes = [agentNode('think', AGENT, { settings: { timeoutMs } })];
  const run = await runOnce({
    input: runInput(definition(`timed-${randomUUID().slice(0, 8)}`, nodes), {
      agentList: [pinned(AGENT)],
    }),
    activities: cutOff,
    script: async (handle) => {
      await isThinking;
      const message = { kind: 'cancel', cancelledBy: 'tester', bodyDigest: '' } as const;
      await taken(() => handle.executeUpdate(MESSAGES.cancel.update, { args: [message] }));
    },
  });
  giveUp(new Error('nobody waits any more'));
  expect(run.status).toBe('cancelled');
  const sealedActivityId = activityIdOf({
    nodeId: 'think',
    visit: 1,
    attempt: 0,
    step: 'i0.t0.infer',
  });
  expect(seals).toMatchObject([{ sealedActivityId }]);
  expect(typesOf(run).slice(-3)).toEqual([
    'agent.invocation.completed think',
    'node.cancelled think',
    'run.cancelled',
  ]);
});

// [I99]
it.each([
  ['a cancel', 'cancelled', 60_000, 'Cancelled.'],
  ["its node's time", 'failed', 1_500, 'The node took longer than permitted.'],
] as const)(
  'a call with effects that %s cuts off is in doubt, in the log, too',
  async (how, status, timeoutMs, why) => {
    const pays = { kind: 'calls', calls: [{ toolId: 'demo:pay', arguments: {} }] } as const;
    const { activities } = scripted({
      turns: [{ ...pays, calls: [...pays.calls] }],
      tools: ['demo:pay'],
      sideEffects: true,
    });
    let begun: () => void = () => {};
    let giveUp: (error: Error) => void = () => {};
    const isPaying = new Promise<void>((resolve) => (begun = resolve));
    const callTool = (): Promise<never> => {
      begun();
      return new Promise((_, reject) => (giveUp = reject));
    };
    const nodes = [agentNode('think', AGENT, { settings: { timeoutMs } })];
    const run = await runOnce({
      input: runInput(definition(`cut-${randomUUID().slice(0, 8)}`, nodes), {
        agentList: [pinned(AGENT)],
      }),
      activities: { ...activities, callTool },
      script: async (handle) => {
        await isPaying;
        if (how !== 'a cancel') return;
        const message = { kind: 'cancel', cancelledBy: 'tester', bodyDigest: '' } as const;
        await taken(() => handle.executeUpdate(MESSAGES.cancel.update, { args: [message] }));
      },
    });
    giveUp(new Error('nobody waits any more'));
    expect(run.status).toBe(status);
    expect(payloadsOf(run, 'agent.toolCalled')).toMatchObject([{ sideEffects: true }]);
    expect(payloadsOf(run, 'agent.toolReturned')).toMatchObject([
      {
        status: 'error',
        error: {
          code: 'effect_in_doubt',
          message: `It is not known whether the effect happened. ${why}`,
        },
      },
    ]);
  },
);

// [I99]
it.each([
  ['was cut off', 1_500],
  ['was left in doubt by a human', 60_000],
] as const)(
  'a call with effects that %s says so to later calls of its tool, and to those alone',
  async (how, timeoutMs) => {
    const called: CallToolInput[] = [];
    const { activities } = scripted({
      turns: [
        { kind: 'calls', calls: [{ toolId: 'demo:pay', arguments: {} }] },
        { kind: 'calls', calls: [{ toolId: 'demo:tell', arguments: {} }] },
        decision(1),
      ],
      tools: ['demo:pay', 'demo:tell'],
      sideEffects: true,
      call: (input) => {
        const length = called.push(input);
        const returned = { kind: 'returned', status: 'ok', resultHash: 'h' } as const;
        return length === 1 && how !== 'was cut off'
          ? { kind: 'in-doubt', effectId: 'eff-1', reason: 'lost', epoch: 1 }
          : returned;
      },
    });
    let giveUp: (error: Error) => void = () => {};
    const callTool = async (input: CallToolInput) => {
      if (how !== 'was cut off' || called.length > 0) return activities.callTool(input);
      called.push(input);
      return new Promise<never>((_, reject) => (giveUp = reject));
    };
    const nodes = [
      agentNode('think', AGENT, { settings: { timeoutMs } }),
      agentNode('plan-b', AGENT),
    ];
    const rule = how === 'was cut off' ? { triggerRule: 'any_failed' as const } : {};
    const run = await runOnce({
      input: runInput(
        definition(`left-${randomUUID().slice(0, 8)}`, nodes, [
          { ...edge('think', 'plan-b'), ...rule },
        ]),
        { agentList: [pinned(AGENT)] },
      ),
      activities: { ...activities, callTool },
      script: async (handle) => {
        if (how === 'was cut off') return;
        await answer(handle, 'think', { action: 'reject' }, approvalSchema(DOUBT_ACTIONS));
      },
    });
    giveUp(new Error('nobody waits any more'));
    expect(run.status).toBe('completed');
    const [first, ...later] = called;
    expect(first?.hasLeftCalls).toBeUndefined();
    const ofPay = later.filter(({ call }) => call.toolId === 'demo:pay');
    const ofTell = later.filter(({ call }) => call.toolId === 'demo:tell');
    expect(ofPay.at(-1)).toMatchObject({ context: { nodeId: 'plan-b' }, hasLeftCalls: true });
    expect(ofTell.map(({ hasLeftCalls }) => hasLeftCalls)).toEqual(ofTell.map(() => undefined));
    expect(ofTell.length).toBeGreaterThan(0);
  },
);

// [I98]
it('a step that would be tried again when the run is cancelled was cancelled, and did not fail', async () => {
  const { activities } = scripted({ turns: [decision(1)] });
  let begun: () => void = () => {};
  let end: () => void = () => {};
  const isBegun = new Promise<void>((resolve) => (begun = resolve));
  const isOver = new Promise<void>((resolve) => (end = resolve));
  const input = runInput(
    definition(`away-${randomUUID().slice(0, 8)}`, [agentNode('think', AGENT)]),
    {
      agentList: [pinned(AGENT)],
    },
  );
  const run = await runOnce({
    input,
    activities: {
      ...activities,
      prepareInvocation: async (): Promise<never> => {
        begun();
        await isOver;
        throw ApplicationFailure.retryable('away', 'service_unavailable');
      },
    },
    script: async (handle) => {
      await isBegun;
      const message = { kind: 'cancel', cancelledBy: 'tester', bodyDigest: '' } as const;
      await taken(() => handle.executeUpdate(MESSAGES.cancel.update, { args: [message] }));
      await until(async () => {
        const { raw } = await handle.describe();
        return raw.pendingActivities?.[0]?.state === CANCEL_REQUESTED;
      }, 'the step is asked to end');
      end();
    },
  });
  expect(run.status).toBe('cancelled');
  expect(typesOf(run).slice(-2)).toEqual(['node.cancelled think', 'run.cancelled']);
  const lab = await openWorkflowLab();
  try {
    const replayed = await replayWhole(lab, run, input);
    expect(payloadsOf(replayed, 'replay.diverged')).toEqual([]);
    expect(replayed.status).toBe('cancelled');
  } finally {
    await lab.close();
  }
});
