// Calls of one model turn that need a human ask at once (architecture §4, §5): a node has several interrupts open, each
// is answered by its id, and each ends on its own: by its answer, with its time, with the node or with the run.
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure, defaultPayloadConverter } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import type { CallToolInput, CallToolOutput, InferTurnInput } from '../../activities/contract.ts';
import type { StepResult } from '../../src/rules/journal.ts';
import { isJsonObject, type JsonObject } from '../../src/rules/json.ts';
import { MESSAGES } from '../../src/rules/messages.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { until } from '../support/host.ts';
import { paced } from '../support/machine.ts';
import { openInterruptIds, pendingOf, type FinishedRun } from '../support/run-workflow.ts';
import {
  answer,
  factsOf,
  payloadsOf,
  runBothWays,
  runOnce,
  useWorkflowRunner,
} from './both-ways.ts';
import { decision, oneAgent, scripted } from './scripted-agent.ts';
import { LONGEST_SILENCE_MS, takes } from '../support/waiting.ts';

useWorkflowRunner();

const TOOL = 'core:clock';
const STAGGER_MS = 200;
const DOUBT = approvalSchema(['accept', 'reject', 'edit-accept']);
const APPROVAL = approvalSchema(['accept', 'reject']);

/** What the call with this name does: its outputs one after the other. */
type Behaviour = (input: CallToolInput, name: string) => Promise<CallToolOutput> | CallToolOutput;

const returned = ({ call }: CallToolInput): CallToolOutput => ({
  kind: 'returned',
  status: 'ok',
  resultHash: `h:${call.callId}`,
});
/** In doubt until a human has spoken. */
const inDoubt: Behaviour = (input, name) =>
  input.resolution
    ? returned(input)
    : { kind: 'in-doubt', effectId: `eff-${name}`, reason: 'the worker died', epoch: 1 };
const needsApproval: Behaviour = (input) =>
  input.resolution || input.approvedBy !== undefined
    ? returned(input)
    : { kind: 'needs-approval', reason: 'the operator asks' };

/** One turn with a call for each name, then the decision; what each call was told is noted. */
function turnOf(calls: Readonly<Record<string, Behaviour>>) {
  const told: (readonly [string, CallToolInput['resolution'] | string | undefined])[] = [];
  const results: string[][] = [];
  const { activities } = scripted({
    turns: [
      {
        kind: 'calls',
        calls: Object.keys(calls).map((name) => ({ toolId: TOOL, arguments: { name } })),
      },
      decision('done', 1),
    ],
    tools: [TOOL],
  });
  const callTool = async (input: CallToolInput): Promise<StepResult<CallToolOutput>> => {
    const given = input.call.arguments;
    const name = isJsonObject(given) && typeof given.name === 'string' ? given.name : '';
    told.push([name, input.resolution ?? input.approvedBy]);
    // They end in call order, so that both ways give the same log.
    await takes(STAGGER_MS * Object.keys(calls).indexOf(name));
    return { output: await (calls[name] as Behaviour)(input, name), events: [] };
  };
  return {
    told,
    results,
    activities: {
      ...activities,
      callTool,
      async inferTurn(input: InferTurnInput) {
        results.push(input.results.map(({ resultHash }) => resultHash));
        return activities.inferTurn(input);
      },
    },
  };
}

async function questions(handle: WorkflowHandle, count: number): Promise<string[]> {
  await until(
    async () => (await openInterruptIds(handle, 'think')).length === count,
    `${count} questions are open`,
  );
  return openInterruptIds(handle, 'think');
}

const word = (handle: WorkflowHandle, interruptId: string | undefined, value: JsonObject) =>
  answer(handle, 'think', value, DOUBT, { interruptId });

const asked = (run: FinishedRun): string[] =>
  payloadsOf(run, 'interrupt.requested').map(
    ({ data }) =>
      ((data as JsonObject).artifactData as { arguments: { name: string } }).arguments.name,
  );
const order = (run: FinishedRun): string[] =>
  factsOf(run)
    .map(({ type }) => type)
    .filter((type) =>
      /^(node\.(suspended|resumed|failed|retried)|interrupt\.resolved)$/.test(type),
    );

describe('calls of one turn ask at once', () => {
  it('two are in doubt: both questions are open before one is answered, each answer reaches its own call', async () => {
    const { activities, told, results } = turnOf({ one: inDoubt, two: inDoubt });
    const run = await runBothWays({
      input: oneAgent(),
      activities,
      parallel: true,
      script: async (handle) => {
        const [one, two] = await questions(handle, 2);
        // The later one first: none waits for another.
        await word(handle, two, { action: 'reject' });
        expect(await questions(handle, 1)).toEqual([one]);
        await word(handle, one, { action: 'edit-accept', editedArtifactData: { paid: 1 } });
      },
    });
    expect(run.status).toBe('completed');
    expect(asked(run)).toEqual(['one', 'two']);
    expect(order(run)).toEqual([
      ...['node.suspended', 'node.suspended'],
      ...['interrupt.resolved', 'node.resumed', 'interrupt.resolved', 'node.resumed'],
    ]);
    const after = told.filter(([, said]) => said !== undefined);
    expect(after).toEqual(
      Array(2)
        .fill([
          ['two', { kind: 'skip' }],
          ['one', { kind: 'happened', outcome: { paid: 1 } }],
        ])
        .flat(),
    );
    // In call order, whoever was answered first (RFC 0077 §B step 5).
    const [, first] = results;
    expect(first).toHaveLength(2);
    expect(results).toEqual([[], first, [], first]);
  });

  it('a segment ends with two questions open, and the next one takes both answers', async () => {
    const { activities } = turnOf({ one: inDoubt, two: needsApproval });
    const run = await runOnce({
      input: oneAgent({ forceContinueAsNewAfter: 5 }),
      activities,
      script: async (handle) => {
        const [one, two] = await questions(handle, 2);
        await word(handle, one, { action: 'accept' });
        await answer(handle, 'think', { action: 'accept' }, APPROVAL, { interruptId: two });
      },
    });
    expect(run.status).toBe('completed');
    const carried = run.segments.map(([first]) => {
      const { input } = first?.workflowExecutionStartedEventAttributes ?? {};
      const state = defaultPayloadConverter.fromPayload<{ carried?: { interrupts: JsonObject } }>(
        input?.payloads?.[0] ?? {},
      ).carried;
      return Object.keys(state?.interrupts ?? {}).length;
    });
    expect(Math.max(...carried)).toBe(2);
    expect(payloadsOf(run, 'node.suspended')).toHaveLength(2);
    expect(payloadsOf(run, 'interrupt.resolved')).toHaveLength(2);
  });

  it('a call that works long keeps no other from asking, and from being performed', async () => {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const { activities, told } = turnOf({
      long: async (input) => {
        await released;
        return returned(input);
      },
      asks: inDoubt,
    });
    const run = await runOnce({
      input: oneAgent(),
      activities,
      script: async (handle) => {
        const [asks] = await questions(handle, 1);
        await word(handle, asks, { action: 'accept' });
        await until(async () => told.length === 3, 'the answered call is performed');
        release();
      },
    });
    expect(told).toEqual([
      ['long', undefined],
      ['asks', undefined],
      ['asks', { kind: 'perform', epoch: 1 }],
    ]);
    expect(run.status).toBe('completed');
  });

  it('one that asks alone leaves no mark in the history: there is nothing to choose', async () => {
    const { activities, told } = turnOf({ one: inDoubt, two: (input) => returned(input) });
    let isAlone = false;
    const slow = async (input: CallToolInput) => {
      const result = activities.callTool(input);
      if (JSON.stringify(input.call.arguments).includes('one'))
        await until(() => isAlone, 'the other call has ended');
      return result;
    };
    const run = await runOnce({
      input: oneAgent(),
      activities: { ...activities, callTool: slow },
      script: async (handle) => {
        await until(async () => told.length === 2, 'both calls have begun');
        await until(async () => {
          const { activities: calls, hasTask } = await pendingOf(handle);
          return calls.length === 1 && !hasTask;
        }, 'the workflow knows the end of the other call');
        isAlone = true;
        const [one] = await questions(handle, 1);
        await word(handle, one, { action: 'accept' });
      },
    });
    expect(run.status).toBe('completed');
    expect(run.segments.flat().filter((event) => event.markerRecordedEventAttributes)).toEqual([]);
  });
});

describe('each question ends on its own', () => {
  it('its time: the first to expire fails the node, and the other is withdrawn (interrupt.md)', async () => {
    const { activities } = turnOf({
      early: inDoubt,
      late: async (input, name) => {
        await takes(2_500, LONGEST_SILENCE_MS);
        return inDoubt(input, name);
      },
    });
    const run = await runBothWays({
      input: oneAgent({}, { escalationTimeoutMs: paced(5_000) }),
      activities,
      parallel: true,
    });
    expect(asked(run)).toEqual(['early', 'late']);
    const ids = payloadsOf(run, 'node.suspended').map(({ interruptId }) => interruptId);
    expect(payloadsOf(run, 'interrupt.resolved')).toMatchObject([
      { interruptId: ids[0], outcome: 'rejected', reason: 'timeout' },
      { interruptId: ids[1], outcome: 'rejected', reason: 'interrupt_timeout' },
    ]);
    expect(payloadsOf(run, 'node.failed')).toMatchObject([
      { error: { code: 'interrupt_timeout' } },
    ]);
  });

  it('another call fails: the question is withdrawn at once, and a late answer is told so', async () => {
    let isAsked = false;
    let refused: unknown;
    const { activities } = turnOf({
      asks: inDoubt,
      fails: async () => {
        await until(() => isAsked, 'the question is open');
        throw ApplicationFailure.nonRetryable('no', 'tool_failed');
      },
      long: async (input) => {
        await until(() => refused !== undefined, 'the late answer is refused');
        return returned(input);
      },
    });
    const run = await runOnce({
      input: oneAgent(),
      activities,
      script: async (handle) => {
        const [asks] = await questions(handle, 1);
        isAsked = true;
        await questions(handle, 0);
        const message = { nodeId: 'think', interruptId: asks, value: { action: 'accept' } };
        refused = await handle
          .executeUpdate(MESSAGES['resolve-interrupt'].update, { args: [message] })
          .catch((error: { cause?: { type?: string } }) => error.cause?.type);
      },
    });
    expect(refused).toBe('interrupt_already_resolved');
    expect(payloadsOf(run, 'interrupt.resolved')).toMatchObject([
      { outcome: 'rejected', reason: 'tool_failed' },
    ]);
    expect(payloadsOf(run, 'node.failed')).toMatchObject([{ error: { code: 'tool_failed' } }]);
  });

  it("its node's time: both are closed as timed out, then the node fails, once", async () => {
    const { activities } = turnOf({ one: inDoubt, two: inDoubt });
    const input = oneAgent();
    const [think] = input.definition.nodes;
    const run = await runOnce({
      input: {
        ...input,
        definition: {
          ...input.definition,
          // Both ask within it, though one task is late.
          nodes: [{ ...think, settings: { timeoutMs: paced(4_000) } }],
        },
      },
      activities,
    });
    const ids = payloadsOf(run, 'node.suspended').map(({ interruptId }) => interruptId);
    expect(ids).toHaveLength(2);
    const closed = payloadsOf(run, 'interrupt.resolved');
    expect(closed.map(({ interruptId }) => interruptId).sort()).toEqual([...ids].sort());
    // Whichever of the timers of one millisecond is first: nobody says that it was withdrawn.
    for (const { reason } of closed) expect(reason).toMatch(/^(node_)?timeout$/);
    expect(payloadsOf(run, 'node.failed')).toHaveLength(1);
  });

  it('the run is cancelled: nothing is asked any more, and nothing is performed', async () => {
    const { activities, told } = turnOf({ one: inDoubt, two: needsApproval });
    const run = await runBothWays({
      input: oneAgent(),
      activities,
      parallel: true,
      script: async (handle) => {
        await questions(handle, 2);
        await handle.executeUpdate(MESSAGES.cancel.update, {
          args: [{ cancelledBy: 'tester', bodyDigest: 'test' }],
        });
      },
    });
    expect(run.status).toBe('cancelled');
    expect(told.every(([, said]) => said === undefined)).toBe(true);
    expect(order(run)).toEqual(['node.suspended', 'node.suspended']);
  });
});
