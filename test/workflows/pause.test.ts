// rest-endpoints.md pause and resume, in workflow code: what waits, what goes on, what is cut, and in which order it is
// told.
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import type { CallToolInput, CallToolOutput, InferTurnInput } from '../../activities/contract.ts';
import type { StepResult } from '../../src/rules/journal.ts';
import { MESSAGES, type PauseRunMessage } from '../../src/rules/messages.ts';
import type { Run } from '../../workflows/context.ts';
import { newFrame, type Frame } from '../../workflows/frames.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { chain, definition, edge, node, runInput } from '../support/definitions.ts';
import { beginAnew } from '../../workflows/visit.ts';
import { until } from '../support/host.ts';
import { paced } from '../support/machine.ts';
import { isPaused, openInterruptIds, timersOf } from '../support/run-workflow.ts';
import {
  answer,
  payloadsOf,
  runBothWays,
  runOnce,
  taken,
  typesOf,
  useWorkflowRunner,
} from './both-ways.ts';
import { decision, oneAgent, scripted } from './scripted-agent.ts';
import { takes } from '../support/waiting.ts';

useWorkflowRunner();

/** The time of the node in which a pause has to arrive, and a task of the workflow before it may be late. */
const DELAY_MS = paced(3_000);
/**
 * How long a step goes on, so that what must not begin beside it could be seen. Well within the time after which a step
 * that was cut is abandoned (CANCELLATION_GRACE_MS), which no slow machine makes longer.
 */
const BESIDE_MS = 500;
/** A model that thinks until it is told to answer. */
function thinking() {
  const { activities } = scripted({ turns: [decision('done', 1)] });
  let wasAsked = false;
  let mayAnswer = false;
  return {
    activities: {
      ...activities,
      async inferTurn(input: InferTurnInput) {
        wasAsked = true;
        await until(() => mayAnswer, 'the model may answer');
        return activities.inferTurn(input);
      },
    },
    isAsked: () => until(() => wasAsked, 'the model is asked'),
    answer: () => void (mayAnswer = true),
  };
}

const GATE = approvalSchema(['accept', 'reject']);
const DRAIN = { drainPolicy: 'drain-current-node' } as const;
const CUT = { drainPolicy: 'immediate' } as const;

const delayed = chain('delayed', [
  node('wait', 'core.delay', { config: { ms: DELAY_MS } }),
  node('next', 'core.noop'),
]);
const gated = chain('gated', [node('gate', 'core.approvalGate'), node('next', 'core.noop')]);

/** Loads what its condition needs before it takes messages: what comes with the start is there first. */
const patterned = definition(
  'patterned',
  [node('gate', 'core.approvalGate'), node('next', 'core.noop')],
  [edge('gate', 'next', { condition: { type: 'regex', left: 'word', right: '^a' } })],
  { variables: [{ name: 'word', type: 'string', defaultValue: 'abc' }] },
);

const BETWEEN_SEGMENTS = new Set(['service_unavailable']);

function tell(
  handle: WorkflowHandle,
  kind: 'pause' | 'resume',
  message: Partial<PauseRunMessage> = {},
): Promise<unknown> {
  const args: [object] = [{ bodyDigest: 'b', ...message }];
  const { update } = MESSAGES[kind];
  return taken(() => handle.executeUpdate(update, { args }), BETWEEN_SEGMENTS);
}

/** The first node has begun: its time runs, or its question is open. */
const hasBegun = async (handle: WorkflowHandle): Promise<boolean> =>
  (await timersOf(handle)).open > 0 || (await openInterruptIds(handle, 'gate')).length > 0;

const pausedFor =
  (
    pause: Partial<PauseRunMessage>,
    more: (handle: WorkflowHandle) => Promise<unknown> = async () => {},
  ) =>
  async (handle: WorkflowHandle) => {
    await until(() => hasBegun(handle), 'the node has begun');
    expect(await tell(handle, 'pause', pause)).toMatchObject({ status: 'paused' });
    await until(() => isPaused(handle), 'it is paused');
    await more(handle);
    expect(await tell(handle, 'resume', { reason: 'go' })).toMatchObject({ status: 'running' });
  };

describe('drain-current-node', () => {
  it('lets the running node come to its end; the next one waits for the resume', async () => {
    const run = await runBothWays({
      input: runInput(delayed),
      script: pausedFor({ ...DRAIN, reason: 'lunch' }),
    });
    expect(typesOf(run)).toEqual([
      'run.started',
      'node.started wait',
      'node.completed wait',
      'run.paused',
      'run.resumed',
      'node.started next',
      'node.completed next',
      'run.completed',
    ]);
    expect(payloadsOf(run, 'run.paused')).toEqual([{ ...DRAIN, reason: 'lunch' }]);
    expect(payloadsOf(run, 'run.resumed')).toEqual([{ reason: 'go' }]);
  });

  it('of a run that waits for a human is paused at once: the question stays, an answer is kept for the resume', async () => {
    const run = await runBothWays({
      input: runInput(gated),
      script: pausedFor(DRAIN, (handle) => answer(handle, 'gate', { action: 'accept' }, GATE)),
    });
    const types = typesOf(run);
    expect(types.slice(types.indexOf('run.paused'))).toEqual([
      'run.paused',
      'interrupt.resolved gate',
      'approval.received gate',
      'node.resumed gate',
      'run.resumed',
      'node.completed gate',
      'node.started next',
      'node.completed next',
      'run.completed',
    ]);
  });

  it('taken back before anything came to rest, states nothing', async () => {
    const model = thinking();
    const run = await runOnce({
      input: oneAgent(),
      activities: model.activities,
      script: async (handle) => {
        await model.isAsked();
        await tell(handle, 'pause', DRAIN);
        await tell(handle, 'resume');
        model.answer();
      },
    });
    expect(typesOf(run).filter((type) => /paused|resumed/.test(type))).toEqual([]);
    expect(run.status).toBe('completed');
  });
});

describe('immediate', () => {
  it('cuts the attempt without an end of its own; the next one begins after the resume', async () => {
    const run = await runBothWays({ input: runInput(delayed), script: pausedFor(CUT) });
    expect(typesOf(run)).toEqual([
      'run.started',
      'node.started wait',
      'run.paused',
      'run.resumed',
      'node.started wait',
      'node.completed wait',
      'node.started next',
      'node.completed next',
      'run.completed',
    ]);
    expect(payloadsOf(run, 'node.started').map(({ attempt }) => attempt)).toEqual([0, 1, 0]);
  });

  it('closes the bracket of an agent that is at work, and no retry is spent for it', async () => {
    const model = thinking();
    const run = await runOnce({
      input: oneAgent(),
      activities: model.activities,
      script: async (handle) => {
        await model.isAsked();
        await tell(handle, 'pause', CUT);
        model.answer();
        await tell(handle, 'resume');
      },
    });
    expect(run.status).toBe('completed');
    const types = typesOf(run);
    expect(types.filter((type) => /^node\.|^run\./.test(type))).toEqual(
      expect.arrayContaining(['node.started think', 'node.completed think', 'run.completed']),
    );
    expect(payloadsOf(run, 'agent.invocation.completed').map(({ outcome }) => outcome)).toEqual([
      'failed',
      'completed',
    ]);
    expect(types).not.toContain('node.retried think');
  });

  it('leaves a question open: it can be answered when the run goes on', async () => {
    const run = await runOnce({
      input: runInput(gated),
      script: async (handle) => {
        await until(async () => (await openInterruptIds(handle, 'gate')).length === 1, 'it asks');
        const [asked] = await openInterruptIds(handle, 'gate');
        await tell(handle, 'pause', CUT);
        await tell(handle, 'resume');
        expect(await openInterruptIds(handle, 'gate')).toEqual([asked]);
        await answer(handle, 'gate', { action: 'accept' }, GATE);
      },
    });
    expect(run.status).toBe('completed');
    expect(payloadsOf(run, 'node.started').map(({ attempt }) => attempt)).toEqual([0, 0]);
  });
});

describe('what is refused', () => {
  it('a second pause, and a resume of a run that is not paused', async () => {
    await runOnce({
      input: runInput(gated),
      script: async (handle) => {
        const refused = { cause: { type: 'run_state_conflict' } };
        await until(async () => (await openInterruptIds(handle, 'gate')).length === 1, 'it asks');
        await expect(tell(handle, 'resume')).rejects.toMatchObject(refused);
        await tell(handle, 'pause', DRAIN);
        await expect(tell(handle, 'pause', CUT)).rejects.toMatchObject(refused);
        await tell(handle, 'resume');
        await answer(handle, 'gate', { action: 'accept' }, GATE);
      },
    });
  });
});

describe('what a pause must not do', () => {
  it.each([
    ['drained, of a run that hears at once', gated, DRAIN],
    ['at once, of a run that hears at once', gated, CUT],
    ['drained, of a run that loads something before', patterned, DRAIN],
    ['at once, of a run that loads something before', patterned, CUT],
  ])(
    'end a run that it meets in its first task, or be lost: %s; it is stated once, before any node',
    async (_what, workflow, policy) => {
      const run = await runBothWays({
        input: runInput(workflow),
        withStart: {
          update: MESSAGES.pause.update,
          message: { ...policy, kind: 'pause', reason: 'lunch', bodyDigest: 'b' },
        },
        script: async (handle) => {
          await until(() => isPaused(handle), 'it is paused');
          await tell(handle, 'resume', { reason: 'go' });
          await answer(handle, 'gate', { action: 'accept' }, GATE);
        },
      });
      expect(run.status).toBe('completed');
      const [first = []] = run.segments;
      const accepted = first.findIndex(
        (event) => event.workflowExecutionUpdateAcceptedEventAttributes,
      );
      const tasks = first
        .slice(0, accepted)
        .filter((event) => event.workflowTaskStartedEventAttributes);
      expect(tasks).toHaveLength(1);
      expect(typesOf(run)).toEqual([
        'run.started',
        'run.paused',
        'run.resumed',
        'node.started gate',
        'node.suspended gate',
        'interrupt.requested gate',
        'approval.requested gate',
        'interrupt.resolved gate',
        'approval.received gate',
        'node.resumed gate',
        'node.completed gate',
        'node.started next',
        'node.completed next',
        'run.completed',
      ]);
      expect(payloadsOf(run, 'run.paused')).toEqual([{ ...policy, reason: 'lunch' }]);
      expect(payloadsOf(run, 'run.resumed')).toEqual([{ reason: 'go' }]);
      expect(payloadsOf(run, 'node.started').map(({ attempt }) => attempt)).toEqual([0, 0]);
    },
  );

  it('let a cut attempt of a node with a time limit work beside the next one', async () => {
    const { activities } = scripted({ turns: [decision('done', 1)] });
    const works: [number, 'begins' | 'ends'][] = [];
    let isResumed = false;
    const input = oneAgent();
    const [think] = input.definition.nodes;
    const run = await runOnce({
      input: {
        ...input,
        definition: { ...input.definition, nodes: [{ ...think, settings: { timeoutMs: 30_000 } }] },
      },
      activities: {
        ...activities,
        async inferTurn(given: InferTurnInput) {
          const { attempt } = given.context;
          works.push([attempt, 'begins']);
          // It hears of no cancellation: its result comes when it comes.
          await until(() => isResumed, 'the run is resumed');
          await takes(attempt === 0 ? BESIDE_MS : 0);
          works.push([attempt, 'ends']);
          return activities.inferTurn(given);
        },
      },
      script: async (handle) => {
        await until(async () => works.length > 0, 'the model is asked');
        await tell(handle, 'pause', CUT);
        await tell(handle, 'resume');
        isResumed = true;
      },
    });
    expect(run.status).toBe('completed');
    expect(works).toEqual([
      [0, 'begins'],
      [0, 'ends'],
      [1, 'begins'],
      [1, 'ends'],
    ]);
    const outcomes = payloadsOf(run, 'agent.invocation.completed').map(({ outcome }) => outcome);
    expect(outcomes).toEqual(['failed', 'completed']);
  });

  it('give a number to an attempt that never begins: one that failed by itself as it was cut has a next one', () => {
    const frame: Frame = { ...newFrame('think', 1), attempt: 1, isCut: true, resumeAtMs: 5 };
    const state = { cuts: 0 };
    beginAnew({ nodes: new Map(), state } as unknown as Run, frame);
    expect(frame).toEqual({ ...newFrame('think', 1), attempt: 1 });
    expect(state.cuts).toBe(0);
  });

  it.each([0, 1])(
    'end a run whose attempt fails by itself as it is cut: the next one, due after %i ms, begins with the resume',
    async (initialDelayMs) => {
      const { activities } = scripted({ turns: [decision('done', 1)] });
      const input = oneAgent();
      const [think] = input.definition.nodes;
      const settings = { retry: { maxAttempts: 2, initialDelayMs } };
      let isWorking = false;
      let isCut = false;
      const run = await runOnce({
        input: {
          ...input,
          definition: { ...input.definition, nodes: [{ ...think, settings }] },
        },
        activities: {
          ...activities,
          async inferTurn(given: InferTurnInput) {
            if (isWorking) return activities.inferTurn(given);
            isWorking = true;
            await until(() => isCut, 'the attempt is cut');
            throw ApplicationFailure.nonRetryable('away', 'model_unavailable');
          },
        },
        script: async (handle) => {
          await until(async () => isWorking, 'the model is asked');
          await tell(handle, 'pause', CUT);
          isCut = true;
          await until(() => isPaused(handle), 'it is paused');
          await tell(handle, 'resume');
        },
      });
      expect(run.status).toBe('completed');
      expect(payloadsOf(run, 'node.started').map(({ attempt }) => attempt)).toEqual([0, 1]);
    },
  );

  it('spend executions of nodes', async () => {
    const run = await runOnce({
      input: runInput(gated, { configurable: { recursionLimit: 2 } }),
      script: pausedFor(CUT, (handle) => answer(handle, 'gate', { action: 'accept' }, GATE)),
    });
    expect(run.status).toBe('completed');
  });

  it('let an answered call begin while the others of its turn come to rest', async () => {
    const began: string[] = [];
    let isWorking = false;
    let isAnswered = false;
    const { activities } = scripted({
      turns: [
        {
          kind: 'calls',
          calls: ['asks', 'works'].map((name) => ({ toolId: 'core:clock', arguments: { name } })),
        },
        decision('done', 1),
      ],
    });
    const run = await runOnce({
      input: oneAgent(),
      activities: {
        ...activities,
        async callTool(input: CallToolInput): Promise<StepResult<CallToolOutput>> {
          const { name } = input.call.arguments as { name: string };
          if (name === 'asks' && !input.resolution && input.approvedBy === undefined)
            return { output: { kind: 'needs-approval', reason: 'asks' }, events: [] };
          began.push(name);
          if (name === 'works') {
            isWorking = true;
            await until(() => isAnswered, 'the question is answered');
            await takes(BESIDE_MS);
          }
          const output = { kind: 'returned', status: 'ok', resultHash: `h:${name}` } as const;
          return { output, events: [] };
        },
      },
      script: async (handle) => {
        await until(async () => isWorking, 'a call works');
        await until(async () => (await openInterruptIds(handle, 'think')).length === 1, 'one asks');
        await tell(handle, 'pause', CUT);
        await answer(handle, 'think', { action: 'accept' }, GATE);
        isAnswered = true;
        await until(() => isPaused(handle), 'it is paused');
        expect(began).toEqual(['works']);
        await tell(handle, 'resume');
      },
    });
    expect(run.status).toBe('completed');
    expect(began).toEqual(['works', 'asks']);
  });
});

it('a cancel ends a paused run', async () => {
  const run = await runOnce({
    input: runInput(delayed),
    script: async (handle) => {
      await until(() => hasBegun(handle), 'the node has begun');
      await tell(handle, 'pause', CUT);
      await handle.executeUpdate(MESSAGES.cancel.update, {
        args: [{ kind: 'cancel', cancelledBy: 'tester', bodyDigest: 'b' }],
      });
    },
  });
  expect(run.status).toBe('cancelled');
  expect(typesOf(run).at(-1)).toBe('run.cancelled');
});
