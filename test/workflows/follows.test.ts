// What a person is told that follows from an answer, held against what the run then does (architecture §11, I95).
import type { WorkflowHandle } from '@temporalio/client';
import { describe, expect, it } from 'vitest';
import { offeredActions } from '../../src/rules/gate-actions.ts';
import { graphOf } from '../../src/rules/definition-graph.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { reachedFrom } from '../../src/rules/routing.ts';
import { choicesOf } from '../../src/words/choices.ts';
import { EMPTY_RUN, foldRow, type FoldedRun } from '../../src/log/fold-rows.ts';
import { MESSAGES } from '../../src/rules/messages.ts';
import { followsOf, type Standing } from '../../src/words/follows.ts';
import type {
  ApprovalGateConfig,
  EdgeCondition,
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
} from '../../schemas/types.generated.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { definition, edge, node, runInput } from '../support/definitions.ts';
import { patient } from '../support/machine.ts';
import { drawsOf } from '../support/model/draws.ts';
import { until } from '../support/host.ts';
import { askedInterrupt, isPaused } from '../support/run-workflow.ts';
import { answer, factsOf, runOnce, taken, useWorkflowRunner, type Fact } from './both-ways.ts';

useWorkflowRunner();

const CONFIG: ApprovalGateConfig = {
  actions: ['accept', 'reject', ...later('later'), ...later('never')],
};
const gate = (id = 'gate') => node(id, 'core.approvalGate', { config: { ...CONFIG } });
const plain = (id: string) => node(id, 'core.approvalGate');
const noop = (id: string, more = {}) => node(id, 'core.noop', more);
const is = (right: string): { condition: EdgeCondition } => ({
  condition: { type: 'equals', left: 'outputs.action', right },
});
const onFailure = { triggerRule: 'any_failed' } as const;

function schemaAt({ nodes }: WorkflowDefinition, nodeId: string): JsonObject {
  const config = nodes.find(({ id }) => id === nodeId)?.config as ApprovalGateConfig;
  return approvalSchema(offeredActions(config).map(({ action }) => action));
}

function later(action: string) {
  return [{ action, effect: 'route' } as const];
}

/** As the page reads it. */
function standingAfter(facts: readonly Fact[], workflow: WorkflowDefinition): Standing {
  const folded = facts.reduce<FoldedRun>(
    (run, { type, nodeId = '', payload }, sequence) =>
      foldRow(run, { type, nodeId, payload, sequence, timeMs: 0 }, {}),
    EMPTY_RUN,
  );
  return { definition: workflow, nodes: folded.nodes, variables: {} };
}

interface Outcome {
  /** Steps that the last question's answer was told to lead to, each with its notes. */
  readonly told: readonly string[];
  readonly words: string;
  /** Steps that began behind it. */
  readonly began: readonly string[];
  readonly end: string;
}

/** Gives the answers in turn, the last of which is looked at. */
async function outcomeOf(
  workflow: WorkflowDefinition,
  ...answers: readonly [nodeId: string, action: string][]
): Promise<Outcome> {
  const run = await runOnce({
    input: runInput(workflow),
    script: async (handle) => {
      for (const [nodeId, action] of answers)
        await answer(handle, nodeId, { action }, schemaAt(workflow, nodeId));
    },
  });
  const [nodeId = '', action = ''] = answers.at(-1) ?? [];
  return readOutcome(factsOf(run), { workflow, nodeId, action });
}

interface Looked {
  readonly workflow: WorkflowDefinition;
  readonly nodeId: string;
  readonly action: string;
}

/** Of the node's last answer. */
function readOutcome(facts: readonly Fact[], { workflow, nodeId, action }: Looked): Outcome {
  const ofGate = (type: string) =>
    facts.findLastIndex((fact) => fact.type === type && fact.nodeId === nodeId);
  const at = ofGate('interrupt.resolved');
  const data = facts[ofGate('interrupt.requested')]?.payload.data as JsonObject;
  const asked = { nodeId, kind: 'approval', data };
  const choice = choicesOf(asked).find((one) => one.action === action);
  if (!choice) throw new Error(`${action} is not offered`);
  const { steps, words = '' } = followsOf(
    asked,
    choice,
    standingAfter(facts.slice(0, at), workflow),
  );
  return {
    told: steps.map(({ name, when, isLater, isAgain, isAtLimit }) =>
      [name, isAgain && 'again', isAtLimit && 'at limit', when, isLater && 'later']
        .filter(Boolean)
        .join(' '),
    ),
    words,
    began: facts
      .slice(at)
      .flatMap((fact) => (fact.type === 'node.started' && fact.nodeId ? [fact.nodeId] : [])),
    end: facts.at(-1)?.type ?? '',
  };
}

/** What the run states until the gate asks again, or to its end. Then it is cancelled. */
async function factsOfRound(workflow: WorkflowDefinition, action: string): Promise<Fact[]> {
  const run = await runOnce({
    input: runInput(workflow),
    script: async (handle) => {
      await until(async () => (await askedInterrupt(handle, 'gate')) !== '', 'the gate asks');
      const first = await askedInterrupt(handle, 'gate');
      await answer(handle, 'gate', { action }, schemaAt(workflow, 'gate'));
      await until(
        async () => (await isOver(handle)) || (await askedInterrupt(handle, 'gate')) !== first,
        'the gate asks again, or the run is over',
      );
      if (!(await isOver(handle))) await handle.cancel();
    },
  });
  const facts = factsOf(run);
  const resolved = facts.findIndex(({ type }) => type === 'interrupt.resolved');
  const asked = facts.findIndex(({ type }, at) => at > resolved && type === 'interrupt.requested');
  return facts.slice(0, asked < 0 ? facts.length : asked);
}

async function isOver(handle: WorkflowHandle): Promise<boolean> {
  return (await handle.describe()).status.name !== 'RUNNING';
}

const COMPLETE = 'the run is complete. Nothing more is done.';
const FAILS = 'the run ends as failed, because no step takes a no.';

describe('a payment behind a gate and another step', () => {
  // [I94], [I95]
  it('which the answer holds back by its route', async () => {
    const workflow = definition(
      'route',
      [noop('prep'), gate(), noop('pay'), noop('wait')],
      [edge('prep', 'pay'), edge('gate', 'pay'), edge('gate', 'wait', is('later'))],
    );
    expect(await outcomeOf(workflow, ['gate', 'never'])).toMatchObject({
      ...{ told: [], words: COMPLETE, began: [], end: 'run.completed' },
    });
    expect(await outcomeOf(workflow, ['gate', 'accept'])).toMatchObject({
      ...{ told: ['pay'], began: ['pay'] },
    });
  });

  // [I94]
  it.each(['reject', 'later'])('which a condition keeps for a yes: %s', async (action) => {
    const workflow = definition(
      'condition',
      [noop('prep'), gate(), noop('pay'), noop('tell')],
      [edge('prep', 'pay'), edge('gate', 'pay', is('accept')), edge('gate', 'tell', onFailure)],
    );
    const led = action === 'reject' ? ['tell'] : [];
    expect(await outcomeOf(workflow, ['gate', action])).toMatchObject({ told: led, began: led });
  });

  // [I94]
  it('which a skipped step holds back, and silence too', async () => {
    const steps = [noop('prep'), noop('reserve'), noop('pay'), noop('tell')];
    const edges = [
      ...[edge('prep', 'pay'), edge('gate', 'reserve'), edge('reserve', 'pay')],
      edge('gate', 'tell', onFailure),
    ];
    expect(
      await outcomeOf(definition('skipped', [gate(), ...steps], edges), ['gate', 'reject']),
    ).toMatchObject({ told: ['tell'], began: ['tell'] });
    const hurried = node('gate', 'core.approvalGate', { config: { ...CONFIG, timeoutMs: 300 } });
    const silent = await runOnce({
      input: runInput(definition('silent', [hurried, ...steps], edges)),
    });
    const started = factsOf(silent).filter(({ type }) => type === 'node.started');
    expect(started.map(({ nodeId }) => nodeId).sort()).toEqual(['gate', 'prep', 'tell']);
  });

  it('goes on where somebody took the no up', async () => {
    const workflow = definition(
      'merged',
      [gate(), noop('pay'), noop('tell'), noop('close')],
      [
        ...[edge('gate', 'pay'), edge('gate', 'tell', onFailure)],
        ...[edge('pay', 'close'), edge('tell', 'close')],
      ],
    );
    expect(await outcomeOf(workflow, ['gate', 'reject'])).toMatchObject({
      ...{ told: ['tell'], began: ['tell', 'close'], end: 'run.completed' },
    });
  });
});

describe('a loop that waits for the answer', () => {
  const loop = (limit: number) =>
    definition(
      'waits',
      [noop('draft'), gate(), noop('check')],
      [edge('draft', 'gate'), edge('draft', 'check'), edge('check', 'draft')],
      { settings: { maxLoopbackIterations: limit } },
    );

  // [I95]
  it('begins again, and is told', async () => {
    const facts = await factsOfRound(loop(1), 'accept');
    expect(
      readOutcome(facts, { workflow: loop(1), nodeId: 'gate', action: 'accept' }),
    ).toMatchObject({
      told: ['draft again'],
      began: expect.arrayContaining(['draft', 'gate']) as string[],
    });
  });

  it('at its limit is told as such', async () => {
    const answers = [1, 2].map((): [string, string] => ['gate', 'accept']);
    expect(await outcomeOf(loop(1), ...answers)).toMatchObject({
      ...{ told: ['draft again at limit'], began: [] },
    });
  });
});

describe('what else decides', () => {
  it('a no that no step takes fails the run, whatever waits for any success', async () => {
    const rule = { triggerRule: 'any_success' } as const;
    const workflow = definition(
      'any',
      [noop('prep'), gate(), noop('pay')],
      [edge('prep', 'pay', rule), edge('gate', 'pay', rule)],
    );
    expect(await outcomeOf(workflow, ['gate', 'reject'])).toMatchObject({
      ...{ told: [], words: FAILS, began: [], end: 'run.failed' },
    });
  });

  it('a disabled step is skipped, and what is behind it with it', async () => {
    const workflow = definition(
      'disabled',
      [gate(), noop('pay', { disabled: true }), noop('next')],
      [edge('gate', 'pay'), edge('pay', 'next')],
    );
    expect(await outcomeOf(workflow, ['gate', 'accept'])).toMatchObject({
      ...{ told: [], words: COMPLETE, began: [] },
    });
  });

  it('a loop at its limit is told as such', async () => {
    const workflow = definition(
      'loop',
      [noop('draft'), gate()],
      [edge('draft', 'gate'), edge('gate', 'draft', is('later'))],
      { settings: { maxLoopbackIterations: 1 } },
    );
    expect(await outcomeOf(workflow, ['gate', 'later'], ['gate', 'accept'])).toMatchObject({
      began: [],
    });
    expect(await outcomeOf(workflow, ['gate', 'later'], ['gate', 'later'])).toMatchObject({
      ...{ told: ['draft again at limit'], began: [] },
    });
  });

  it('of the round before a loop nothing counts', async () => {
    const workflow = definition(
      'rounds',
      [noop('draft'), gate(), plain('pre'), plain('check'), noop('pay'), noop('rescue')],
      [
        ...[edge('draft', 'gate'), edge('draft', 'pre'), edge('pre', 'check')],
        ...[edge('gate', 'pay', is('accept')), edge('check', 'pay')],
        ...[edge('check', 'rescue', onFailure), edge('gate', 'draft', is('later'))],
      ],
    );
    const first = [
      ['pre', 'accept'],
      ['check', 'reject'],
      ['gate', 'later'],
    ] as const;
    const outcome = await outcomeOf(
      workflow,
      ...first.map(([nodeId, action]): [string, string] => [nodeId, action]),
      ...(['pre', 'check', 'gate'] as const).map((nodeId): [string, string] => [nodeId, 'accept']),
    );
    expect(outcome).toMatchObject({ told: ['pay'], began: ['pay'] });
  });
});

/** Of a run that is paused when it asks, and goes on once it was answered. */
async function pausedOutcome(workflow: WorkflowDefinition, action: string): Promise<Outcome> {
  const tell = (handle: WorkflowHandle, kind: 'pause' | 'resume', more: object = {}) =>
    taken(() =>
      handle.executeUpdate(MESSAGES[kind].update, { args: [{ bodyDigest: 'b', ...more }] }),
    );
  const run = await runOnce({
    input: runInput(workflow),
    script: async (handle) => {
      await until(async () => (await askedInterrupt(handle, 'gate')) !== '', 'the gate asks');
      await tell(handle, 'pause', { drainPolicy: 'drain-current-node' });
      await until(() => isPaused(handle), 'the run is paused');
      await answer(handle, 'gate', { action }, schemaAt(workflow, 'gate'));
      await tell(handle, 'resume');
    },
  });
  return readOutcome(factsOf(run), { workflow, nodeId: 'gate', action });
}

const slow = (id: string) => node(id, 'core.delay', { config: { ms: 400 } });
const HELD = 'no step follows; other steps still begin.';

describe('while the run is paused', () => {
  // [I95]
  it('steps that it holds back are not forgotten', async () => {
    const workflow = definition(
      'paused',
      [noop('prep'), gate(), slow('check'), noop('pay')],
      [edge('prep', 'gate'), edge('prep', 'check'), edge('check', 'pay')],
    );
    expect(await pausedOutcome(workflow, 'accept')).toMatchObject({
      ...{ told: [], words: HELD, began: ['pay'] },
    });
  });
});

const RULES = ['all_success', 'none_failed', 'any_success', 'any_failed', 'all_complete'] as const;
const STEPS = ['p0', 'p1', 'gate', 'a', 'b', 'c'];
/** Graphs that are drawn. */
const GRAPHS = 40;
const PAUSED_GRAPHS = 16;

interface Drawn {
  readonly edges: WorkflowEdge[];
  readonly action: string;
}

function drawnEdges(seed: string): Drawn {
  const draws = drawsOf(seed, 'graph');
  const rules = new Map(STEPS.map((id) => [id, draws.pick(RULES)]));
  const pairs = STEPS.flatMap((from, i) => STEPS.slice(i + 1).map((to) => [from, to] as const));
  const edges = pairs.flatMap(([from, to]) => {
    const isIn = to === 'gate' ? from === 'p0' || draws.chance(0.3) : draws.chance(0.5);
    if (!isIn || to === 'p1') return [];
    const isConditional = from === 'gate' && draws.chance(0.3);
    const condition = isConditional ? is(draws.pick(['accept', 'later'])) : {};
    const triggerRule = to === 'gate' ? 'all_success' : (rules.get(to) ?? 'all_success');
    return [edge(from, to, { triggerRule, ...condition })];
  });
  return { edges, action: draws.pick(['accept', 'reject', 'later']) };
}

// [I95]
it(
  'of drawn graphs: what is told begins, and nothing else begins at once',
  { timeout: patient(120_000) },
  async () => {
    for (let at = 0; at < GRAPHS; at++) {
      const { edges, action } = drawnEdges(`follows-${at}`);
      const workflow = definition(
        `drawn-${at}`,
        STEPS.map((id) => (id === 'gate' ? gate() : noop(id))),
        edges,
      );
      const { told, words, began, end } = await outcomeOf(workflow, ['gate', action]);
      // What is behind a step that begins follows from that.
      const graph = graphOf(workflow);
      const isBehind = (id: string) =>
        began.some((other) => other !== id && reachedFrom(graph, other).has(id));
      const atOnce = began.filter((id) => !isBehind(id));
      const what = JSON.stringify({ action, words, end, edges });
      expect(told, what).toEqual(STEPS.filter((id) => atOnce.includes(id)));
      expect([words === FAILS, words === COMPLETE], what).toEqual([
        end === 'run.failed',
        end === 'run.completed' && began.length === 0,
      ]);
    }
  },
);

/** A prep, a gate behind it and steps beside it; each graph has edges that lead back. */
function drawnLoops(seed: string): Drawn {
  const draws = drawsOf(seed, 'loops');
  const forward = ['gate', 'a', 'b', 'c'].map((id) => edge('p0', id));
  const others = [
    ...[edge('a', 'b'), edge('gate', 'b'), edge('gate', 'c'), edge('b', 'c')],
    ...[edge('a', 'p0'), edge('b', 'a'), edge('b', 'p0'), edge('c', 'p0'), edge('gate', 'p0')],
  ];
  const drawn = others
    .filter(() => draws.chance(0.4))
    .map((one) => {
      const isConditional = one.sourceNodeId === 'gate' && draws.chance(0.4);
      return isConditional ? { ...one, ...is(draws.pick(['accept', 'later'])) } : one;
    });
  return { edges: [...forward, ...drawn], action: draws.pick(['accept', 'reject', 'later']) };
}

/** Of what begins, nothing is kept back: each step is told, or follows from one that is. */
function untold(began: readonly string[], told: readonly string[], workflow: WorkflowDefinition) {
  const led = new Set(told.map((words) => words.split(' ')[0] ?? ''));
  for (const id of led)
    for (const { sourceNodeId, targetNodeId } of workflow.edges)
      if (sourceNodeId === id) led.add(targetNodeId);
  return began.filter((id) => !led.has(id));
}

// [I95]
it(
  'of drawn loops: whatever begins is told, or follows from what is',
  { timeout: patient(120_000) },
  async () => {
    for (let at = 0; at < GRAPHS; at++) {
      const { edges, action } = drawnLoops(`loops-${at}`);
      const nodes = ['p0', 'gate', 'a', 'b', 'c'].map((id) => (id === 'gate' ? gate() : noop(id)));
      const settings = { maxLoopbackIterations: 3 };
      const workflow = definition(`loops-${at}`, nodes, edges, { settings });
      const facts = await factsOfRound(workflow, action);
      const { told, words, began, end } = readOutcome(facts, { workflow, nodeId: 'gate', action });
      const what = JSON.stringify({ action, told, words, began, end, edges });
      expect(untold(began, told, workflow), what).toEqual([]);
      const sure = told.filter((one) => /^\w+( again)?( later)?$/.test(one));
      expect(
        sure.filter((one) => !began.includes(one.split(' ')[0] ?? '')),
        what,
      ).toEqual([]);
      if (words === COMPLETE) expect([end, began], what).toEqual(['run.completed', []]);
    }
  },
);

// [I95]
it(
  'of drawn graphs that are paused: whatever begins is told, or others are said to begin',
  { timeout: patient(120_000) },
  async () => {
    for (let at = 0; at < PAUSED_GRAPHS; at++) {
      const { edges: drawn, action } = drawnEdges(`paused-${at}`);
      const edges = at % 2 === 0 ? drawn : [...drawn, edge('p1', 'beside')];
      const of: Readonly<Record<string, WorkflowNode>> = { gate: gate(), p1: slow('p1') };
      const nodes = [...STEPS, 'beside'].map((id) => of[id] ?? noop(id));
      const workflow = definition(`paused-${at}`, nodes, edges);
      const { told, words, began, end } = await pausedOutcome(workflow, action);
      const what = JSON.stringify({ action, told, words, began, end, edges });
      if (words === FAILS) expect(end, what).toBe('run.failed');
      else if (words === COMPLETE) expect([end, began], what).toEqual(['run.completed', []]);
      else if (words === '') expect(began, what).not.toEqual([]);
      else expect([words, began.length > 0], what).toEqual([HELD, true]);
    }
  },
);
