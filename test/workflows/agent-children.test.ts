// Agents and orchestrators that wait for runs of others (RFC 0007; architecture §4, §5): what becomes of those when a call
// beside them fails, when their start does, and in a pause that begins no step.
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import type {
  CallToolInput,
  CancelChildInput,
  EndChildInput,
  PrepareInvocationOutput,
  StartChildrenInput,
} from '../../activities/contract.ts';
import { CHILD_ENDED_SIGNAL } from '../../src/rules/children.ts';
import { childPlaceOf } from '../../src/rules/ids.ts';
import { MESSAGES } from '../../src/rules/messages.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import { agentNode, chain, node, pinned, runInput } from '../support/definitions.ts';
import { until as untilSo } from '../support/host.ts';
import { isPaused, type FinishedRun, type ScriptedActivities } from '../support/run-workflow.ts';
import {
  factsOf,
  payloadsOf,
  runBothWays,
  runOnce,
  taken,
  typesOf,
  useWorkflowRunner,
} from './both-ways.ts';
import { AGENT, decision, oneAgent, scripted, type Turn } from './scripted-agent.ts';
import { takes } from '../support/waiting.ts';

useWorkflowRunner();

const HELPER = 'agent:local.test.pack.helper';
const CLOCK = 'core:clock';
/** One agent is a tool of another. */
const PREPARED: PrepareInvocationOutput = {
  ok: true,
  transcript: 't',
  model: { provider: 'scripted', model: 'scripted' },
  prompts: [],
  composed: { refs: [], kind: 'system-only', hash: `sha256:${'0'.repeat(64)}` },
  tools: [
    { toolId: CLOCK, idempotent: true, timeoutMs: 1000, transport: 'native' },
    { toolId: HELPER, idempotent: false, timeoutMs: 1000, transport: 'native', runs: 'helper' },
  ],
};

const calls = (...tools: string[]): Turn => ({
  kind: 'calls',
  calls: tools.map((toolId) => ({ toolId, arguments: {} })),
});

const fails = (): never => {
  throw ApplicationFailure.create({ type: 'forbidden', message: 'no', nonRetryable: true });
};

/** Children that nobody ends but a test or a cancel. */
function family(turns: readonly Turn[], more: ScriptedActivities = {}) {
  const started: string[][] = [];
  const cancelled: CancelChildInput[] = [];
  const asked: string[] = [];
  const activities: ScriptedActivities = {
    ...scripted({ turns, prepare: PREPARED }).activities,
    async startChildren({ requests }: StartChildrenInput) {
      started.push(requests.map(({ runId }) => runId));
      return {
        output: { starts: requests.map(() => ({ kind: 'started', workflowId: 'child' })) },
        events: [],
      };
    },
    async endChild({ childRunId, tool, context }: EndChildInput) {
      asked.push(childRunId);
      const { agentId, callId, toolId, calledKey } = tool ?? { calledKey: undefined };
      return {
        output: { status: 'completed', resultHash: `h:${callId}` },
        events: tool
          ? [
              {
                type: 'agent.toolReturned',
                nodeId: context.nodeId,
                causedBy: calledKey,
                payload: { agentId, toolName: toolId, callId, status: 'ok', outcome: 1 },
              },
            ]
          : [],
      };
    },
    async cancelChild(input: CancelChildInput) {
      cancelled.push(input);
      return { output: { found: 'open' }, events: [] };
    },
    ...more,
  };
  return { started, cancelled, asked, activities };
}

const tell = (handle: WorkflowHandle, childRunId: string) =>
  handle.signal(CHILD_ENDED_SIGNAL, { childRunId });

const until = (ready: () => boolean | Promise<boolean>) => untilSo(ready, String(ready));

/** Each child ends when it is told to, and tells so. */
const endsWhenTold =
  (cancelled: readonly CancelChildInput[]) =>
  async (handle: WorkflowHandle): Promise<void> => {
    let told = cancelled.length;
    const ended = handle.result().then(
      () => true,
      () => true,
    );
    while (!(await Promise.race([ended, takes(25)])))
      for (; told < cancelled.length; told++)
        await taken(() => tell(handle, cancelled[told]?.childRunId ?? '')).catch(() => undefined);
  };

const endsOf = (run: FinishedRun) =>
  typesOf(run).filter((type) => /toolReturned|node\.failed|run\.failed/.test(type));

describe('a call that fails for good', () => {
  it('ends the runs of the agents beside it, and its turn waits for their ends, over segment borders', async () => {
    const { cancelled, started, activities } = family([calls(CLOCK, HELPER, HELPER)], {
      async callTool(_: CallToolInput) {
        return fails();
      },
    });
    const run = await runBothWays({
      input: oneAgent(),
      activities,
      parallel: true,
      script: endsWhenTold(cancelled),
    });
    expect(run.status).toBe('failed');
    // Two ways: what was started was told to end, each once or again behind a border.
    expect(started).toHaveLength(2);
    expect(new Set(cancelled.map(({ childRunId }) => childRunId))).toEqual(new Set(started.flat()));
    expect(new Set(cancelled.map(({ reason }) => reason))).toEqual(new Set(['not-needed']));
    expect(payloadsOf(run, 'agent.toolReturned').map(({ status }) => status)).toEqual([
      'ok',
      'ok',
      'error',
    ]);
    expect(endsOf(run).slice(-2)).toEqual(['node.failed think', 'run.failed']);
    const keys = factsOf(run).map(({ key }) => key);
    const ends = keys.flatMap((key, at) => (key.includes('.end#') ? [at] : []));
    expect(ends).toHaveLength(2);
    expect(Math.max(...ends)).toBeLessThan(keys.indexOf('node.failed|think/1/0/node'));
  });
});

describe('a later attempt', () => {
  it('[I99] calls the n-th of an agent in the place of the n-th of the attempt before', async () => {
    const places: string[] = [];
    let ended = 0;
    const given = family([calls(HELPER, HELPER), decision(1)]);
    const run = await runOnce({
      input: runInput(
        chain('twice', [
          agentNode('think', AGENT, { settings: { retry: { maxAttempts: 2, initialDelayMs: 1 } } }),
        ]),
        { agentList: [pinned(AGENT)] },
      ),
      activities: {
        ...given.activities,
        async startChildren({ requests }: StartChildrenInput) {
          places.push(...requests.map(({ place }) => place));
          const starts = requests.map(({ runId }) => ({
            ...{ kind: 'recorded', childRunId: runId, workflowId: 'child', recordedOf: 'other' },
          }));
          return { output: { starts }, events: [] };
        },
        async endChild(input: never) {
          if (ended++ === 0) fails();
          return given.activities.endChild?.(input);
        },
      },
    });
    expect(run.status).toBe('completed');
    const at = (count: number) => childPlaceOf({ nodeId: 'think', visit: 1 }, `${HELPER}#${count}`);
    expect(places).toEqual([at(0), at(1), at(0), at(1)]);
  });
});

describe('workers that could not be started', () => {
  const orders = (config: object): RunInput =>
    runInput(
      chain('orders', [
        node('boss', 'core.orchestrator.supervisor', { agent: { agentId: AGENT } }),
        node('work', 'core.dispatch', { config: { ...config } }),
      ]),
      { agentList: [pinned(AGENT)] },
    );
  const turn = decision({ kind: 'next-worker', nextWorkerIds: ['a', 'b'] });

  it.each([
    ['side by side', { fanOutPolicy: 'parallel' }, ['a', 'b']],
    ['one after the other', {}, ['a']],
  ])(
    '%s: each is told of, none is asked for again, and what had begun is ended',
    async (_how, config, begun) => {
      let starts = 0;
      const { cancelled, activities } = family([turn], {
        async startChildren(_: StartChildrenInput) {
          starts++;
          return fails();
        },
      });
      const run = await runBothWays({
        input: orders(config),
        activities,
        parallel: true,
        script: endsWhenTold(cancelled),
      });
      expect(run.status).toBe('failed');
      // Both ways.
      expect(starts).toBe(2);
      const error = { code: 'forbidden' };
      expect(payloadsOf(run, 'core.workflowChain.event')).toMatchObject([
        ...begun.map((workerId) => ({ phase: 'dispatch.began', workerId })),
        ...begun.map((workerId) => ({ phase: 'dispatch.failed', workerId, error })),
      ]);
    },
  );
});

describe('a pause that begins no step', () => {
  it('takes effect once the run that a call waited for has ended', async () => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    const given = family([calls(HELPER), decision(1)]);
    let isAsked = false;
    const endChild = async (input: never) => {
      isAsked = true;
      await held;
      return given.activities.endChild?.(input);
    };
    const send = (handle: WorkflowHandle, kind: 'pause' | 'resume') =>
      taken(() =>
        handle.executeUpdate(MESSAGES[kind].update, {
          args: [{ kind, drainPolicy: 'immediate', bodyDigest: '' }],
        }),
      );
    const run = await runOnce({
      input: oneAgent(),
      activities: { ...given.activities, endChild },
      script: async (handle) => {
        await until(() => given.started.length === 1);
        await tell(handle, given.started[0]?.[0] ?? '');
        await until(() => isAsked);
        await send(handle, 'pause');
        release();
        await until(() => isPaused(handle));
        await send(handle, 'resume');
        await handle.result();
      },
    });
    expect(run.status).toBe('completed');
    expect(typesOf(run).filter((type) => /paused|resumed|toolReturned|decided/.test(type))).toEqual(
      ['agent.toolReturned think', 'run.paused', 'run.resumed', 'agent.decided think'],
    );
  });
});
