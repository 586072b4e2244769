// Generated definitions and inputs of runs: what a case runs. A new node kind is one more row of KINDS.
import type { JsonObject } from '../../../src/rules/json.ts';
import type { RunInput } from '../../../src/rules/run-input.ts';
import { nodeTypesOf } from '../../../src/rules/capabilities.ts';
import { INLINE_VALUE_BYTES } from '../../../src/rules/limits.ts';
import { checkDefinition } from '../../../src/wire/load-definition.ts';
import type { WorkflowEdge, WorkflowNode } from '../../../schemas/types.generated.ts';
import { agentNode, definition, edge, node, pinned, runInput } from '../definitions.ts';
import { WORKERS } from './behaviours.ts';
import { CROWDED, drawsOf, SEGMENTED, type Draws } from './draws.ts';
import { GIVEN } from './family.ts';

const AGENTS = ['model.agent-a', 'model.agent-b'] as const;
const MOST_NODES = 6;
/** Nodes that CROWDED adds. */
const CROWD = 25;
/** Just within what an event holds inline (INLINE_VALUE_BYTES). */
const LARGE = 'x'.repeat(INLINE_VALUE_BYTES - 2 * 1024);
/** History events behind which a segment ends: fewer than the first task of any run. */
const EARLIEST = 5;
/** Every question ends in a case, whether or not somebody answers. */
const INTERRUPT_TIMEOUT_MS = 60_000;

type Make = (id: string, draws: Draws) => WorkflowNode;

const agent: Make = (id, draws) =>
  agentNode(id, draws.pick(AGENTS), {
    config: draws.chance(0.2) ? { escalationTimeoutMs: draws.int(1, 5_000) } : {},
  });
const approval: Make = (id, draws) =>
  node(id, 'core.approvalGate', {
    config: {
      actions: ['accept', 'reject', ...(draws.chance(0.3) ? ['ask', 'edit-accept'] : [])],
      ...(draws.chance(0.3) ? { requiredApprovals: draws.int(2, 3) } : {}),
      ...(draws.chance(0.3) ? { timeoutMs: draws.int(1, 5_000) } : {}),
    },
  });
const clarification: Make = (id) =>
  node(id, 'core.clarificationGate', { config: { questions: [{ id: 'q', question: 'Which?' }] } });
const delay: Make = (id, draws) => node(id, 'core.delay', { config: { ms: draws.int(0, 4_000) } });
const fails: Make = (id) => node(id, 'core.fail', { config: { code: 'made_to_fail' } });
const sets: Make = (id, draws) =>
  node(id, 'core.setVariable', { config: { variableName: 'v', value: draws.int(0, 9) } });
const passes: Make = (id) => node(id, 'core.noop');

const child: Make = (id, draws) =>
  node(id, 'core.subWorkflow', {
    config: {
      workflowId: 'child',
      ...(draws.chance(0.4) ? { outputMapping: { v: GIVEN } } : {}),
      ...(draws.chance(0.4) ? { onChildFailure: 'absorb' } : {}),
      ...(draws.chance(0.2) ? { propagateCancellation: false } : {}),
      ...(draws.chance(0.4) ? { timeoutMs: draws.int(1, 4_000) } : {}),
    },
  });
/** A run has one orchestrator. */
const supervisor: Make = (id) =>
  node(id, 'core.orchestrator.supervisor', {
    agent: { agentId: AGENTS[0] },
    config: { workerIds: [...WORKERS] },
  });
const dispatch: Make = (id, draws) => {
  const isParallel = draws.chance(0.7);
  const mode = draws.pick(['wait-all', 'quorum', 'first', 'race']);
  return node(id, 'core.dispatch', {
    config: {
      fanOutPolicy: isParallel ? 'parallel' : draws.pick(['sequential', 'sequential', 'reject']),
      ...(isParallel && draws.chance(0.8)
        ? {
            joinPolicy: {
              mode,
              ...(mode === 'quorum' ? { quorum: draws.int(1, 3) } : {}),
              ...(draws.chance(0.6)
                ? { onChildFailure: draws.pick(['collect', 'fail-fast', 'absorb']) }
                : {}),
            },
          }
        : {}),
      ...(isParallel && draws.chance(0.3) ? { maxConcurrency: draws.int(1, 3) } : {}),
      ...(draws.chance(0.4) ? { outputMapping: { v: GIVEN } } : {}),
      ...(draws.chance(0.2) ? { iterationCap: draws.int(1, 2) } : {}),
    },
  });
};

/** Weighted by repetition. */
const KINDS = [
  ...[agent, agent, agent, agent, agent, agent, agent, agent, agent, agent],
  ...[approval, approval, clarification, delay, delay, sets, passes, fails, child, child, child],
] as const satisfies readonly Make[];

function settingsOf(draws: Draws): JsonObject {
  return {
    ...(draws.chance(0.3)
      ? { retry: { maxAttempts: draws.int(1, 3), initialDelayMs: draws.int(1, 500) } }
      : {}),
    ...(draws.chance(0.2) ? { timeoutMs: draws.int(1, 20_000) } : {}),
  };
}

function edgesOf(nodes: readonly WorkflowNode[], draws: Draws): WorkflowEdge[] {
  const edges: WorkflowEdge[] = [];
  const triggerRule = (): Pick<WorkflowEdge, 'triggerRule'> =>
    draws.chance(0.4)
      ? {
          triggerRule: draws.pick([
            'all_success',
            'any_success',
            'all_complete',
            'none_failed',
            'any_failed',
          ]),
        }
      : {};
  nodes.forEach((target, index) => {
    const before = nodes[index - 1];
    if (before && target.typeId === 'core.dispatch') {
      edges.push(edge(before.id, target.id));
      return;
    }
    // More than one first node: branches that run side by side.
    if (index === 0 || draws.chance(0.15)) return;
    const sources = new Set([draws.int(0, index - 1), draws.int(0, index - 1)]);
    // Of one node all in-edges have one rule.
    const rule = triggerRule();
    for (const source of sources) {
      const condition: Pick<WorkflowEdge, 'condition'> = draws.chance(0.15)
        ? { condition: { type: 'equals', left: 'outputs.decision', right: draws.int(0, 1) } }
        : {};
      edges.push(edge(nodes[source]?.id ?? '', target.id, { ...rule, ...condition }));
    }
  });
  const last = nodes.at(-1)?.id ?? '';
  // A loop leads back to where its source came from, and to no node that the run begins with.
  const targets = edges.map(({ targetNodeId }) => targetNodeId);
  const back = targets[draws.int(0, MOST_NODES)] ?? '';
  if (draws.chance(0.4) && (back === last || leads(edges, back, last))) {
    const rule = edges.find(({ targetNodeId }) => targetNodeId === back)?.triggerRule;
    edges.push(edge(last, back, { id: 'back', ...(rule ? { triggerRule: rule } : {}) }));
  }
  return edges;
}

function leads(edges: readonly WorkflowEdge[], from: string, to: string): boolean {
  return edges.some(
    ({ sourceNodeId, targetNodeId }) =>
      sourceNodeId === from && (targetNodeId === to || leads(edges, targetNodeId, to)),
  );
}

/** A dispatch stands behind its orchestrator, mostly with nothing between. */
function kindsOf(draws: Draws): Make[] {
  const kinds: Make[] = Array.from({ length: draws.int(1, MOST_NODES) }, () => draws.pick(KINDS));
  if (!draws.chance(0.25)) return kinds;
  const at = draws.int(0, kinds.length - 1);
  return [...kinds.slice(0, at), supervisor, dispatch, ...kinds.slice(at + 1)];
}

/** Nodes without steps, one after the other, each with a large value. */
function crowdOf(seed: string): { nodes: WorkflowNode[]; edges: WorkflowEdge[] } {
  if (!seed.endsWith(CROWDED)) return { nodes: [], edges: [] };
  const more = {
    config: { variableName: 'text' },
    inputs: { value: { type: 'variable' as const, variableName: 'text' } },
  };
  const ids = Array.from({ length: CROWD }, (_, index) => `sets${index}`);
  return {
    nodes: ids.map((id) => node(id, 'core.setVariable', more)),
    edges: ids.slice(1).map((id, index) => edge(ids[index] ?? '', id)),
  };
}

/** What the case `seed` runs; a definition that the host itself would refuse is a fault of this file. */
export function generatedInput(seed: string): RunInput {
  const draws = drawsOf(seed, 'input');
  const kinds = kindsOf(draws);
  const nodes = kinds.map((make, index) => ({
    ...make(`n${index}`, draws),
    settings: settingsOf(draws),
  }));
  const crowd = crowdOf(seed);
  const edges = [...edgesOf(nodes, draws), ...crowd.edges];
  const workflow = definition(`case-${seed}`, [...nodes, ...crowd.nodes], edges, {
    variables: [
      { name: 'v', type: 'number', defaultValue: 0 },
      { name: 'text', type: 'string', defaultValue: LARGE },
    ],
    settings: {
      ...(draws.chance(0.1) ? { timeout: draws.int(1, 20_000) } : {}),
      ...(draws.chance(0.5) ? { maxLoopbackIterations: draws.int(1, 3) } : {}),
    },
  });
  const checked = checkDefinition(workflow, {
    nodeTypes: nodeTypesOf({ testMode: true }),
    agents: () => true,
    testMode: true,
  });
  if (!checked.ok) throw new Error(JSON.stringify(checked.faults));
  return runInput(workflow, {
    runId: `run-${seed}`,
    agentList: AGENTS.map((agentId) =>
      pinned(agentId, {
        ...(draws.chance(0.5) ? { confidenceThreshold: 0.5 } : {}),
        // Each to the other: rings, too.
        ...(draws.chance(0.6) ? { toolAllowlist: AGENTS.map((name) => `handoff:${name}`) } : {}),
      }),
    ),
    configurable: {
      ...(draws.chance(0.2) ? { escalationThreshold: 0.9 } : {}),
      ...(draws.chance(0.1) ? { recursionLimit: draws.int(1, 6) } : {}),
    },
    limits: {
      maxNodeExecutions: 100,
      maxRunDurationMs: 86_400_000,
      interruptTimeoutMs: INTERRUPT_TIMEOUT_MS,
    },
    policy: { escalation: draws.chance(0.9), verbosity: draws.pick(['summary', 'summary', 'off']) },
    ...(draws.chance(0.5) ? { forceContinueAsNewAfter: draws.int(5, 40) } : {}),
    ...(seed.endsWith(SEGMENTED) ? { forceContinueAsNewAfter: EARLIEST } : {}),
  });
}
