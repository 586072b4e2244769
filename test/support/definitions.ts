// Workflow definitions for tests, short to write: `definition('id', [node('a', 'core.noop'), …], [edge('a', 'b'), …])`.
import { createHash, randomUUID } from 'node:crypto';
import type { JsonObject } from '../../src/rules/json.ts';
import {
  INTERRUPT_TIMEOUT_MS,
  MAX_NODE_EXECUTIONS,
  MAX_RUN_DURATION_MS,
} from '../../src/rules/limits.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import { ERA, REVISION } from '../../src/rules/versions.ts';
import { TRANSLATE_VERSION, type PinnedAgent, type RunInput } from '../../src/rules/run-input.ts';
import type {
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
} from '../../schemas/types.generated.ts';

/** Who starts and answers runs of tests. */
export const TESTER = subjectOf('api-key', 'default', 'tester');

export function node(id: string, typeId: string, more: Partial<WorkflowNode> = {}): WorkflowNode {
  return { id, typeId, name: id, position: { x: 0, y: 0 }, config: {}, inputs: {}, ...more };
}

export function edge(
  sourceNodeId: string,
  targetNodeId: string,
  more: Partial<WorkflowEdge> = {},
): WorkflowEdge {
  return { id: `${sourceNodeId}-${targetNodeId}`, sourceNodeId, targetNodeId, ...more };
}

export function definition(
  id: string,
  nodes: WorkflowNode[],
  edges: WorkflowEdge[] = [],
  more: Partial<WorkflowDefinition> = {},
): WorkflowDefinition {
  return {
    id,
    name: id,
    version: '1.0',
    nodes: nodes as WorkflowDefinition['nodes'],
    edges,
    triggers: [],
    variables: [],
    metadata: {},
    settings: {},
    ...more,
  };
}

/** a -> b -> c … */
export function chain(
  id: string,
  nodes: WorkflowNode[],
  more: Partial<WorkflowDefinition> = {},
): WorkflowDefinition {
  const edges = nodes.slice(1).map((target, index) => edge(nodes[index]?.id ?? '', target.id));
  return definition(id, nodes, edges, more);
}

export function agentNode(
  id: string,
  agentId: string,
  more: Partial<WorkflowNode> = {},
): WorkflowNode {
  return node(id, 'core.agent', { agent: { agentId }, ...more });
}

export function pinned(agentId: string, more: Partial<PinnedAgent> = {}): PinnedAgent {
  const manifestHash = `sha256:${createHash('sha256').update(agentId).digest('hex')}`;
  return { agentId, manifestHash, modelClass: 'general', toolAllowlist: [], ...more };
}

export function runInput(
  workflow: WorkflowDefinition,
  more: Partial<RunInput> & { agentList?: readonly PinnedAgent[] } = {},
): RunInput {
  const { agentList = [], ...rest } = more;
  const runId = rest.runId ?? `run-${randomUUID()}`;
  const variables: JsonObject = Object.fromEntries(
    workflow.variables
      .filter((it) => it.defaultValue !== undefined)
      .map((it) => [it.name, it.defaultValue as JsonObject]),
  );
  return {
    runId,
    tenant: 'default',
    subject: TESTER,
    idSeed: runId,
    translateVersion: TRANSLATE_VERSION,
    header: { sessionId: runId, correlationId: runId },
    definition: workflow,
    source: 'workflow-node',
    variables,
    configurable: {},
    agents: Object.fromEntries(agentList.map((agent) => [agent.agentId, agent])),
    limits: {
      maxNodeExecutions: MAX_NODE_EXECUTIONS,
      maxRunDurationMs: MAX_RUN_DURATION_MS,
      interruptTimeoutMs: INTERRUPT_TIMEOUT_MS,
    },
    policy: { escalation: true, verbosity: 'summary' },
    era: ERA,
    revision: REVISION,
    ...rest,
  };
}
