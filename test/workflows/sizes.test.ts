// Sums of values, each of them within its own bound: what one command, one workflow task and one segment take of them
// (architecture §2.3, §2.6), on a real server. A run that holds too much fails with `payload_too_large` and a whole
// log.
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { describe, expect, it } from 'vitest';
import type {
  CallToolInput,
  CallToolOutput,
  EndChildInput,
  InferTurnInput,
  StartChildrenInput,
} from '../../activities/contract.ts';
import { CHILD_ENDED_SIGNAL } from '../../src/rules/children.ts';
import { MESSAGES } from '../../src/rules/messages.ts';
import { RUN_OUTPUTS_BYTES, RUN_VALUES_BYTES } from '../../src/rules/limits.ts';
import type { WorkflowNode } from '../../schemas/types.generated.ts';
import {
  agentNode,
  chain,
  definition,
  edge,
  node,
  pinned,
  runInput,
} from '../support/definitions.ts';
import { until } from '../support/host.ts';
import { journalOf, type FinishedRun } from '../support/run-workflow.ts';
import { payloadsOf, runBothWays, runOnce, typesOf, useWorkflowRunner } from './both-ways.ts';

useWorkflowRunner();

const KIB = 1024;
const AGENT = 'local.test.pack.agent';
/** One value just within what an event may hold. */
const TEXT = 'x'.repeat(31 * KIB);
const variables = [{ name: 'text', type: 'string' as const, defaultValue: TEXT }];
const text = { type: 'variable' as const, variableName: 'text' };

function named<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

function failureOf(run: FinishedRun): unknown {
  expect(run.status).toBe('failed');
  return (payloadsOf(run, 'run.failed')[0]?.error as { code?: unknown } | undefined)?.code;
}

/** Most that one carrier and one workflow task put into history, as Temporal counts it. */
function largest(run: FinishedRun): number {
  return Math.max(
    ...run.segments.flat().map((event) => {
      const memo = event.workflowPropertiesModifiedEventAttributes?.upsertedMemo?.fields?.openwop;
      const { result } = event.workflowExecutionCompletedEventAttributes ?? {};
      return Math.max(memo?.data?.length ?? 0, result?.payloads?.[0]?.data?.length ?? 0);
    }),
  );
}

const TOOL = { toolId: 'core:clock', idempotent: true, timeoutMs: 1_000, transport: 'native' };
/** In an agent process that may come within an hour. */
const REMOTE = { agentId: 'com.example.gone', waitMs: 3_600_000, asks: false };

/** An agent that decides at once, or does as `infer` says. */
function activities(
  infer: (input: InferTurnInput) => unknown = () => undefined,
  call: (nodeId: string) => CallToolOutput | undefined = () => undefined,
) {
  return {
    prepareInvocation: async () => ({
      output: {
        ok: true,
        transcript: 't',
        model: { provider: 'scripted', model: 'scripted' },
        prompts: [],
        composed: { refs: ['prompt:a'], kind: 'system+user', hash: `sha256:${'0'.repeat(64)}` },
        tools: [TOOL],
      },
      events: [],
    }),
    inferTurn: async (input: InferTurnInput) =>
      infer(input) ?? {
        output: {
          kind: 'decision',
          decision: 'done',
          schemaValidated: true,
          transcript: `${input.transcript}.`,
        },
        events: [],
      },
    callTool: async ({ context }: CallToolInput) => ({
      output: call(context.nodeId) ?? { kind: 'returned', status: 'ok', resultHash: 'h' },
      events: [],
    }),
    sealBlock: async () => ({ output: { deltas: 0 }, events: [] }),
  };
}

/** Gives what it is asked for once it was asked so often: the results come in one moment. */
function together(count: number): <T>(result: T) => Promise<T> {
  let asked = 0;
  let open = (): void => undefined;
  const all = new Promise<void>((resolve) => (open = resolve));
  return async (result) => {
    if (++asked >= count) open();
    await all;
    return result;
  };
}

function turnOfCalls(count: number) {
  const calls = named(count, (n) => ({ toolId: 'core:clock', arguments: { n, text: TEXT } }));
  return { output: { kind: 'calls', calls, transcript: 't.' }, events: [] };
}

/** Until the run has stated so many. A history of megabytes is read only where it has grown. */
async function stated(handle: WorkflowHandle, type: string, count: number): Promise<void> {
  let length = 0;
  await until(async () => {
    const { historyLength } = await handle.describe();
    if (historyLength === length) return false;
    length = historyLength;
    const { events } = await handle.fetchHistory();
    const items = journalOf(events ?? []);
    return items.filter((item) => item.kind === 'emit' && item.type === type).length === count;
  }, `${count} are stated`);
}

const agents = (nodes: WorkflowNode[]) =>
  runInput(definition(`agents-${randomUUID().slice(0, 8)}`, nodes, [], { variables }), {
    agentList: [pinned(AGENT)],
  });

describe('sums are bounded, and the run ends with payload_too_large', () => {
  it('the outputs of a run: 70 ends of 31 KiB (memo of 2.2 MB, completion of 4.5 MB)', async () => {
    const ends = named(70, (n) => node(`end${n}`, 'core.end', { inputs: { [`out${n}`]: text } }));
    const run = await runBothWays({
      input: runInput(definition('ends', ends, [], { variables })),
      plainOnly: true,
    });
    expect(failureOf(run)).toBe('payload_too_large');
    const last = Math.floor(RUN_OUTPUTS_BYTES / TEXT.length);
    expect(payloadsOf(run, 'run.failed')[0]?.failedNodeId).toBe(`end${last}`);
    expect(largest(run)).toBeLessThan(600 * KIB);
  });

  it('what a run keeps of values, before a segment cannot carry it on: 70 outputs of 31 KiB', async () => {
    const nodes = named(70, (n) => node(`n${n}`, 'core.identity', { inputs: { out: text } }));
    const run = await runBothWays({ input: runInput(chain('kept', nodes, { variables })) });
    expect(failureOf(run)).toBe('payload_too_large');
    const completed = typesOf(run).filter((type) => type.startsWith('node.completed'));
    expect(completed.length).toBe(Math.floor(RUN_VALUES_BYTES / TEXT.length) - 1);
  });

  it.each([
    ['an approval shows', 'core.approvalGate', {}],
    ['an agent gets as its task', 'core.agent', { agent: { agentId: AGENT } }],
  ])('all that %s: 70 inputs of 31 KiB', async (_what, typeId, more) => {
    const inputs = Object.fromEntries(named(70, (n) => [`in${n}`, text]));
    const run = await runBothWays({
      input: agents([node('one', typeId, { inputs, ...more })]),
      activities: activities(),
    });
    expect(failureOf(run)).toBe('payload_too_large');
    expect(payloadsOf(run, 'node.failed')[0]).toMatchObject({ nodeId: 'one' });
  });

  it("the arguments of one turn's calls: 30 of 31 KiB", async () => {
    const run = await runBothWays({
      input: agents([agentNode('think', AGENT)]),
      activities: activities(() => turnOfCalls(30)),
    });
    expect(failureOf(run)).toBe('payload_too_large');
    expect(payloadsOf(run, 'agent.toolCalled')).toEqual([]);
  });

  it('a state that no segment can be started with, once the segment must end (20 MiB of history)', async () => {
    const waiting = named(9, (n) => agentNode(`waits${n}`, AGENT));
    const run = await runBothWays({
      input: { ...agents([...waiting, agentNode('talks', AGENT)]), forceContinueAsNewAfter: 5 },
      plainOnly: true,
      activities: activities(
        ({ context: { nodeId }, transcript }) => {
          if (nodeId !== 'talks') return turnOfCalls(8);
          const reasoning = 'x'.repeat(1_900 * KIB);
          const calls = [{ toolId: 'core:clock', arguments: {} }];
          return {
            output: { kind: 'calls', calls, transcript: `${transcript}.` },
            events: [{ type: 'agent.reasoned', payload: { agentId: AGENT, reasoning } }],
          };
        },
        (nodeId) => (nodeId === 'talks' ? undefined : { kind: 'needs-approval', reason: 'ask' }),
      ),
    });
    expect(failureOf(run)).toBe('payload_too_large');
  });
});

describe('one workflow task carries what a server takes, and work goes on in the next', () => {
  it('[I105] nodes without steps, one after the other: the segment ends (14 MB of entries)', async () => {
    const sets = (id: string) =>
      node(id, 'core.setVariable', { config: { variableName: 'text' }, inputs: { value: text } });
    const back = edge('two', 'one', { id: 'back' });
    const run = await runOnce({
      input: runInput(
        definition('turns', [sets('one'), sets('two')], [edge('one', 'two'), back], {
          variables,
          settings: { maxLoopbackIterations: 75 },
        }),
      ),
    });
    expect(run.status).toBe('completed');
    expect(payloadsOf(run, 'variable.changed')).toHaveLength(152);
    const sizes = run.segments.map((events) => JSON.stringify(events).length);
    // As JSON with base64, a third larger than in the server, which suggests an end at 4 MiB.
    expect(sizes.length).toBeGreaterThan(1);
    expect(Math.max(...sizes)).toBeLessThan(10 * 1024 * KIB);
  });

  it('150 approvals that show 31 KiB each, asked at once (4.7 MB of entries)', async () => {
    const gates = named(150, (n) => node(`gate${n}`, 'core.approvalGate', { inputs: { text } }));
    const run = await runBothWays({
      input: runInput(definition('gates', gates, [], { variables })),
      plainOnly: true,
      script: async (handle) => {
        await stated(handle, 'interrupt.requested', gates.length);
        await handle.executeUpdate(MESSAGES.cancel.update, {
          args: [{ cancelledBy: 'tester', bodyDigest: 'test' }],
        });
      },
    });
    expect(run.status).toBe('cancelled');
    expect(largest(run)).toBeLessThan(600 * KIB);
  });

  it('26 agents that get 186 KiB each, started at once (4.8 MB of inputs of steps)', async () => {
    const inputs = Object.fromEntries(named(6, (n) => [`in${n}`, text]));
    const nodes = named(26, (n) => agentNode(`think${n}`, AGENT, { inputs }));
    const run = await runBothWays({
      input: runInput(
        definition(
          'tasks',
          [node('start', 'core.start'), ...nodes],
          nodes.map(({ id }) => edge('start', id)),
          { variables },
        ),
        { agentList: [pinned(AGENT)] },
      ),
      activities: activities(),
      plainOnly: true,
    });
    expect(run.status).toBe('completed');
    expect(typesOf(run).filter((type) => type.startsWith('node.completed think'))).toHaveLength(26);
  });

  it('20 agents that call tools with 248 KiB each, all in one moment (5 MB of entries)', async () => {
    const nodes = named(20, (n) => agentNode(`think${n}`, AGENT));
    const all = together(nodes.length);
    const called = new Set<string>();
    const run = await runOnce({
      input: agents(nodes),
      activities: activities(({ context: { nodeId } }) => {
        if (called.has(nodeId)) return undefined;
        called.add(nodeId);
        return all(turnOfCalls(8));
      }),
    });
    expect(run.status).toBe('completed');
    expect(payloadsOf(run, 'agent.toolCalled')).toHaveLength(8 * nodes.length);
  });

  it('12 workers that end in one moment, each with 31 KiB for 12 variables (9 MB of entries)', async () => {
    const names = named(12, (n) => `got${n}`);
    const workers = named(12, (n) => `worker${n}`);
    const all = together(workers.length);
    const started: string[] = [];
    const run = await runOnce({
      input: runInput(
        chain(
          'harvest',
          [
            node('boss', 'core.orchestrator.supervisor', { agent: { agentId: AGENT } }),
            node('work', 'core.dispatch', {
              config: {
                fanOutPolicy: 'parallel',
                outputMapping: Object.fromEntries(names.map((name) => [name, 'big'])),
              },
            }),
          ],
          { variables: names.map((name) => ({ name, type: 'string' as const })) },
        ),
        { agentList: [pinned(AGENT)] },
      ),
      activities: {
        ...activities(() => {
          const decision = { kind: 'next-worker', nextWorkerIds: workers };
          return {
            output: { kind: 'decision', decision, schemaValidated: true, transcript: 't.' },
            events: [],
          };
        }),
        startChildren: async ({ requests }: StartChildrenInput) => {
          started.push(...requests.map(({ runId }) => runId));
          const starts = requests.map(() => ({ kind: 'started', workflowId: 'child' }));
          return { output: { starts }, events: [] };
        },
        endChild: ({ childRunId }: EndChildInput) => {
          const variables = { big: `${childRunId} ${TEXT}` };
          return all({ output: { status: 'completed', variables }, events: [] });
        },
      },
      script: async (handle) => {
        await until(async () => started.length === workers.length, 'all are started');
        await Promise.all(
          started.map((childRunId) => handle.signal(CHILD_ENDED_SIGNAL, { childRunId })),
        );
      },
    });
    expect(run.status).toBe('completed');
    const changed = payloadsOf(run, 'variable.changed');
    expect(changed).toHaveLength(names.length * workers.length);
    // Each worker's end and what it gives stand together, in the order of the ends.
    const ends = payloadsOf(run, 'core.workflowChain.event');
    const completed = ends.filter(({ phase }) => phase === 'child.completed');
    const [join] = payloadsOf(run, 'core.dispatch.join');
    expect(completed.map(({ childRunId }) => childRunId)).toEqual(join?.mergeOrder);
    const taken = changed.filter(({ name }) => name === 'got0').map(({ next }) => next as string);
    expect(taken.map((text) => text.split(' ')[0])).toEqual(join?.mergeOrder);
  });

  it('2,080 calls that wait for an agent which is not there, and a cancel of them', async () => {
    const nodes = named(65, (n) => agentNode(`think${n}`, AGENT));
    const calls = named(32, (n) => ({ toolId: 'com.example.gone/act', arguments: { n } }));
    const gone = { ...TOOL, toolId: 'com.example.gone/act', remote: REMOTE };
    const ofAll = activities(() => ({
      output: { kind: 'calls', calls, transcript: 't.' },
      events: [],
    }));
    const run = await runOnce({
      input: agents(nodes),
      activities: {
        ...ofAll,
        prepareInvocation: async () => {
          const { output } = await ofAll.prepareInvocation();
          return { output: { ...output, tools: [gone] }, events: [] };
        },
      },
      script: async (handle) => {
        await stated(handle, 'agent.toolCalled', 2_080);
        await handle.executeUpdate(MESSAGES.cancel.update, {
          args: [{ cancelledBy: 'tester', bodyDigest: 'test' }],
        });
      },
    });
    expect(run.status).toBe('cancelled');
    expect(payloadsOf(run, 'agent.toolReturned')).toHaveLength(2_080);
  });
});
