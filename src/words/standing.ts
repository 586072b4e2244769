// Where the steps of a run are while a question is open: what has ended in this round, what is at work or held back, and which
// loops are taken and wait. Derived from what the log states of each step, by the rules of src/rules/routing.ts.
import type { DefinitionGraph } from '../rules/definition-graph.ts';
import { offeredActions } from '../rules/gate-actions.ts';
import type { JsonObject } from '../rules/json.ts';
import { DEFAULT_LOOPBACK_ITERATIONS } from '../rules/limits.ts';
import { reachedFrom, type EdgeDecision } from '../rules/routing.ts';
import type { WorkflowDefinition, WorkflowEdge } from '../../schemas/types.generated.ts';

/** What the log states of a step. */
export interface StepState {
  readonly status: string;
  readonly visits?: number;
  /** Sequences of the events that began its last visit and that gave it its status. */
  readonly begunAt?: number;
  readonly changedAt?: number;
}

/** How the run stands. */
export interface Standing {
  readonly definition: WorkflowDefinition;
  /** By node id. */
  readonly nodes: Readonly<Record<string, StepState | undefined>>;
  readonly variables: JsonObject;
}

/** An edge that leads back from a step that has ended. Its target begins again once its region is at rest. */
export interface WaitingLoop {
  readonly target: string;
  /** Steps that its target leads to, itself included. */
  readonly region: ReadonlySet<string>;
  /** Whether its condition holds is not known. */
  readonly isOpen: boolean;
  /** It may have been passed as often as it may. */
  readonly isAtLimit: boolean;
}

/** It is taken, for all that is known. */
export function isSure({ isOpen, isAtLimit }: Pick<WaitingLoop, 'isOpen' | 'isAtLimit'>): boolean {
  return !isOpen && !isAtLimit;
}

export interface Round {
  /** Steps that have ended in this round. What one came to before a loop led back is decided again. */
  readonly ended: ReadonlySet<string>;
  readonly atWork: ReadonlySet<string>;
  /** By the rules they begin, and the log does not say so yet: a pause, or a full task, holds them back. */
  readonly held: ReadonlySet<string>;
  /** Loops that wait for the question's step, among others. */
  readonly loops: readonly WaitingLoop[];
  /** Loops that do not wait for it. */
  readonly others: readonly WaitingLoop[];
}

const AT_WORK = new Set(['running', 'suspended', 'retrying']);
const ENDED = new Set(['completed', 'failed', 'skipped']);

/** How the run stands around a node that asks. */
export function roundOf(graph: DefinitionGraph, standing: Standing, nodeId: string): Round {
  const { nodes } = standing;
  const isOther = (id: string) => id !== nodeId;
  const ended = endedSteps(graph, standing);
  const atWork = new Set(
    graph.order.filter((id) => isOther(id) && AT_WORK.has(nodes[id]?.status ?? '')),
  );
  const isHeld = (id: string) =>
    !ended.has(id) &&
    !atWork.has(id) &&
    (graph.forwardIn.get(id) ?? []).every(({ sourceNodeId }) => ended.has(sourceNodeId));
  const held = graph.order.filter((id) => isOther(id) && isHeld(id));
  const loops = waitingLoops({ graph, standing, ended }, nodeId);
  const others = loops.filter(({ region }) => !region.has(nodeId));
  // Nothing in its region is at work: it may have begun again, and its first step is held back.
  for (const { region } of others)
    if (![...atWork].some((id) => region.has(id))) for (const id of region) ended.delete(id);
  return {
    ...{ ended, others, atWork, held: new Set(held) },
    loops: loops.filter(({ region }) => region.has(nodeId)),
  };
}

function endedSteps(graph: DefinitionGraph, { definition, nodes }: Standing): Set<string> {
  const ended = new Set(graph.order.filter((id) => ENDED.has(nodes[id]?.status ?? '')));
  for (const [target, edges] of graph.backIn) {
    const state = nodes[target];
    if (edges.length === 0 || !state) continue;
    // A disabled step does not begin: its round begins as it is skipped.
    const { begunAt = 0, changedAt = 0 } = state;
    const sinceAt = isDisabled(definition, target) ? changedAt : begunAt;
    for (const id of reachedFrom(graph, target))
      if ((nodes[id]?.changedAt ?? 0) < sinceAt) ended.delete(id);
  }
  return ended;
}

interface Known {
  readonly graph: DefinitionGraph;
  readonly standing: Standing;
  readonly ended: ReadonlySet<string>;
}

function waitingLoops(known: Known, nodeId: string): WaitingLoop[] {
  const { graph, standing, ended } = known;
  const isSource = (id: string) =>
    id !== nodeId && ended.has(id) && standing.nodes[id]?.status === 'completed';
  return [...graph.backIn].flatMap(([target, edges]) => {
    const taken = edges.filter(
      (edge) => isSource(edge.sourceNodeId) && !isRuledOut(known, edge, nodeId),
    );
    if (taken.length === 0) return [];
    const isOpen = taken.every((edge) => endedDecision(standing, edge) === 'open');
    return [loopTo({ graph, standing }, target, isOpen)];
  });
}

/** A loop that begins with this step. */
export function loopTo(
  { graph, standing: { definition, nodes } }: Pick<Known, 'graph' | 'standing'>,
  target: string,
  isOpen: boolean,
): WaitingLoop {
  const { maxLoopbackIterations = DEFAULT_LOOPBACK_ITERATIONS } = definition.settings;
  const isAtLimit = (nodes[target]?.visits ?? 0) > maxLoopbackIterations;
  return { target, region: reachedFrom(graph, target), isOpen, isAtLimit };
}

/** Another edge of the same step was taken whose condition cannot hold together with this one's. */
function isRuledOut(
  { graph, standing, ended }: Known,
  back: WorkflowEdge,
  asking: string,
): boolean {
  const isBegun = (id: string) =>
    id === asking ||
    AT_WORK.has(standing.nodes[id]?.status ?? '') ||
    (ended.has(id) && standing.nodes[id]?.status !== 'skipped');
  const isOnlyWay = (edge: WorkflowEdge) =>
    (graph.forwardIn.get(edge.targetNodeId) ?? []).length === 1;
  return (graph.forwardOut.get(back.sourceNodeId) ?? []).some(
    (edge) =>
      isOnlyWay(edge) && isBegun(edge.targetNodeId) && isContrary(edge.condition, back.condition),
  );
}

type Condition = WorkflowEdge['condition'];

function isContrary(one: Condition, other: Condition): boolean {
  if (!one || !other || one.left !== other.left) return false;
  switch (`${one.type} ${other.type}`) {
    // 1 and "1" are equal (src/rules/conditions.ts).
    case 'equals equals':
      return String(one.right) !== String(other.right);
    case 'equals notEquals':
    case 'notEquals equals':
      return one.right === other.right;
    default:
      return TRUTH.has(one.type) && TRUTH.has(other.type) && one.type !== other.type;
  }
}

const TRUTH: ReadonlySet<string> = new Set(['truthy', 'falsy']);

/** Of an edge from a step that has ended: what its status says. `open`: it depends on what is not known. */
export function endedDecision(standing: Standing, edge: WorkflowEdge): EdgeDecision | 'open' {
  if (edge.condition !== undefined || mayRoute(standing, edge.sourceNodeId)) return 'open';
  return hasFailed(standing, edge.sourceNodeId) ? 'failed' : 'taken';
}

/** Which of its answers a gate was given is not in its status. */
export function mayRoute(standing: Standing, nodeId: string): boolean {
  const node = standing.definition.nodes.find(({ id }) => id === nodeId);
  if (node?.typeId !== 'core.approvalGate' || hasFailed(standing, nodeId)) return false;
  return offeredActions(node.config).some(({ effect }) => effect === 'route');
}

export function hasFailed({ nodes }: Standing, nodeId: string): boolean {
  return nodes[nodeId]?.status === 'failed';
}

export function isDisabled({ nodes }: Pick<WorkflowDefinition, 'nodes'>, nodeId: string): boolean {
  return nodes.find(({ id }) => id === nodeId)?.disabled === true;
}
