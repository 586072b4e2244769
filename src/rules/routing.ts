// Where a run goes when a node has come to its end (architecture §4): what becomes of an edge, when a node's trigger rule
// is decided, and where a failure is taken up. Workflow code goes by it, and so does whoever tells a person what follows
// from an answer (src/words/follows.ts).
import type { WorkflowEdge } from '../../schemas/types.generated.ts';
import { holds } from './conditions.ts';
import type { DefinitionGraph, TriggerRule } from './definition-graph.ts';
import type { JsonObject } from './json.ts';

/**
 * A node that completes takes edges, one that fails hands its failure over them; the others are dead. `withheld`: dead, and
 * so because a failure or a no stands behind it. A step that waits for success does not start over its other edges alone.
 */
export type EdgeDecision = 'taken' | 'failed' | 'dead' | 'withheld';

/** What a visit came to. `isRouted`: only edges with a condition that holds lead on. */
export type NodeEnd =
  | { readonly kind: 'completed'; readonly outputs: JsonObject; readonly isRouted?: true }
  | {
      readonly kind: 'failed';
      readonly error: { readonly code: string; readonly message: string };
    };

export function edgeDecision(
  { condition }: Pick<WorkflowEdge, 'condition'>,
  end: NodeEnd,
  variables: JsonObject,
): EdgeDecision {
  if (end.kind === 'completed') {
    const isHeld = holds(condition, { variables, outputs: end.outputs });
    if (end.isRouted) return isHeld && condition !== undefined ? 'taken' : 'withheld';
    return isHeld ? 'taken' : 'dead';
  }
  const { code, message } = end.error;
  return holds(condition, { variables, outputs: {}, error: { code, message } })
    ? 'failed'
    : 'withheld';
}

/** Decides over all forward in-edges. */
const RULES: Record<TriggerRule, (decisions: readonly EdgeDecision[]) => boolean> = {
  all_success: succeeds,
  none_failed: succeeds,
  any_success: (decisions) => decisions.includes('taken'),
  any_failed: (decisions) => decisions.includes('failed'),
  all_complete: (decisions) => decisions.includes('taken') || decisions.includes('failed'),
};

function succeeds(decisions: readonly EdgeDecision[]): boolean {
  return decisions.includes('taken') && !decisions.some(isHeldBack);
}

/** How the run stands, as far as routing asks. */
export interface Decided {
  readonly graph: DefinitionGraph;
  /** By edge id; undefined: not decided. */
  readonly decisionOf: (edgeId: string) => EdgeDecision | undefined;
  readonly isSkipped: (nodeId: string) => boolean;
}

/** Whether a node starts; undefined while one of its forward in-edges is undecided. */
export function isTriggered(decided: Decided, nodeId: string): boolean | undefined {
  const { graph, decisionOf } = decided;
  const into = graph.forwardIn.get(nodeId) ?? [];
  const taken = into.filter(({ id }) => decisionOf(id) === 'taken');
  const decisions: EdgeDecision[] = [];
  for (const edge of into) {
    const decision = decisionOf(edge.id);
    if (decision === undefined) return undefined;
    const isFree = decision === 'withheld' && isReleased(decided, edge, taken);
    decisions.push(isFree ? 'dead' : decision);
  }
  return RULES[ruleOf(graph, nodeId)](decisions);
}

export function ruleOf({ triggerRule }: DefinitionGraph, nodeId: string): TriggerRule {
  return triggerRule.get(nodeId) ?? 'all_success';
}

/** A path that leads on from the same failure or no came here: somebody took it up. */
function isReleased(
  decided: Decided,
  withheld: WorkflowEdge,
  taken: readonly WorkflowEdge[],
): boolean {
  if (taken.length === 0) return false;
  return [...originsOf(decided, withheld)].every((origin) => {
    const behind = reachedFrom(decided.graph, origin);
    return taken.some(({ sourceNodeId }) => behind.has(sourceNodeId));
  });
}

/** Nodes whose failure or answer withholds the edge, itself or over nodes that were skipped for it. */
function originsOf({ graph, decisionOf, isSkipped }: Decided, edge: WorkflowEdge): Set<string> {
  const origins = new Set<string>();
  const edges = new Set([edge]);
  // The set grows while it is read: each edge is followed once.
  for (const { sourceNodeId } of edges) {
    if (!isSkipped(sourceNodeId)) origins.add(sourceNodeId);
    else
      for (const into of graph.forwardIn.get(sourceNodeId) ?? [])
        if (isHeldBack(decisionOf(into.id))) edges.add(into);
  }
  return origins;
}

function isHeldBack(decision: EdgeDecision | undefined): boolean {
  return decision === 'failed' || decision === 'withheld';
}

/** Nodes that forward edges lead to from a node, itself included. */
export function reachedFrom(graph: DefinitionGraph, nodeId: string): ReadonlySet<string> {
  const reached = new Set([nodeId]);
  for (const id of reached)
    for (const { targetNodeId } of graph.forwardOut.get(id) ?? []) reached.add(targetNodeId);
  return reached;
}

/** What becomes of the edges of a node that is skipped. */
export function skippedDecision({ graph, decisionOf }: Decided, nodeId: string): EdgeDecision {
  const into = graph.forwardIn.get(nodeId) ?? [];
  return into.some(({ id }) => isHeldBack(decisionOf(id))) ? 'withheld' : 'dead';
}

/** A node of this rule takes a failure up: the run does not fail for it. */
export function takesFailures(rule: TriggerRule): boolean {
  return rule === 'any_failed' || rule === 'all_complete';
}
