// Nodes with a time limit of their own (`settings.timeoutMs`): what is true of every node is true of them.
import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import proto from '@temporalio/proto';
import { expect, it } from 'vitest';
import { activityIdOf } from '../../src/rules/ids.ts';
import { MESSAGES } from '../../src/rules/messages.ts';
import { chain, definition, node, pinned, agentNode, runInput } from '../support/definitions.ts';
import { until } from '../support/host.ts';
import { replayWhole } from '../support/whole-replay.ts';
import { openWorkflowLab } from '../support/workflow-lab.ts';
import { answersSchema } from '../../workflows/nodes/clarification-gate.ts';
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
