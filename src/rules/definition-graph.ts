// The graph of a workflow definition (workflow-definition.schema.json; architecture §4): where a run starts, which
// edges count for fan-in, which edges lead back, and what is wrong with it. Pure: workflow code and the loader read the
// same facts.
import type {
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
} from '../../schemas/types.generated.ts';
import { pointerSegment } from './json.ts';

export type TriggerRule = NonNullable<WorkflowEdge['triggerRule']>;
const DEFAULT_TRIGGER_RULE: TriggerRule = 'all_success';

export interface DefinitionGraph {
  /** Nodes that start with the run: no forward in-edge. Definition order. */
  readonly starts: readonly string[];
  /** By node id, for every node; edges in definition order. Back edges are in neither. */
  readonly forwardIn: ReadonlyMap<string, readonly WorkflowEdge[]>;
  readonly forwardOut: ReadonlyMap<string, readonly WorkflowEdge[]>;
  /** Back edges by source node, for every node; a back edge starts a new visit of its target. */
  readonly backOut: ReadonlyMap<string, readonly WorkflowEdge[]>;
  readonly backIn: ReadonlyMap<string, readonly WorkflowEdge[]>;
  /** Ids of the edges that close a loop (self loops included). */
  readonly backEdges: ReadonlySet<string>;
  /** Every node once, sources before targets along forward edges. */
  readonly order: readonly string[];
  /** How the forward in-edges of a node decide; `all_success` where nothing is said. */
  readonly triggerRule: ReadonlyMap<string, TriggerRule>;
}

/** One thing that is wrong, with the JSON pointer (RFC 6901) of its place in the definition. */
export interface GraphFault {
  readonly pointer: string;
  readonly message: string;
}

/**
 * Facts of a definition. Back edges are found by a depth-first walk from the nodes that no other node leads to, nodes
 * and edges in definition order: an edge to a node on the current path leads back. A definition in which every node
 * is led to starts with its first node. Edges without both ends are ignored (`graphFaults` reports them).
 */
export function graphOf(definition: Pick<WorkflowDefinition, 'nodes' | 'edges'>): DefinitionGraph {
  const ids = definition.nodes.map((node) => node.id);
  const known = new Set(ids);
  const edges = definition.edges.filter(
    (edge) => known.has(edge.sourceNodeId) && known.has(edge.targetNodeId),
  );
  const out = groupBy(ids, edges, (edge) => edge.sourceNodeId);
  const back = backEdgesOf(rootsOf(ids, edges), out);
  const forward = edges.filter((edge) => !back.has(edge));
  const forwardIn = groupBy(ids, forward, (edge) => edge.targetNodeId);
  const forwardOut = groupBy(ids, forward, (edge) => edge.sourceNodeId);
  return {
    starts: ids.filter((id) => forwardIn.get(id)?.length === 0),
    forwardIn,
    forwardOut,
    backOut: groupBy(ids, [...back], (edge) => edge.sourceNodeId),
    backIn: groupBy(ids, [...back], (edge) => edge.targetNodeId),
    backEdges: new Set([...back].map((edge) => edge.id)),
    order: topological(ids, forwardIn, forwardOut),
    triggerRule: new Map(
      ids.map((id) => [id, forwardIn.get(id)?.[0]?.triggerRule ?? DEFAULT_TRIGGER_RULE]),
    ),
  };
}

function groupBy(
  ids: readonly string[],
  edges: readonly WorkflowEdge[],
  keyOf: (edge: WorkflowEdge) => string,
): Map<string, WorkflowEdge[]> {
  const groups = new Map<string, WorkflowEdge[]>(ids.map((id) => [id, []]));
  for (const edge of edges) groups.get(keyOf(edge))?.push(edge);
  return groups;
}

/** Nodes that no other node leads to, and then all the rest: islands made of loops get their first node as root. */
function rootsOf(ids: readonly string[], edges: readonly WorkflowEdge[]): string[] {
  const ledTo = new Set(
    edges
      .filter((edge) => edge.sourceNodeId !== edge.targetNodeId)
      .map((edge) => edge.targetNodeId),
  );
  return [...ids.filter((id) => !ledTo.has(id)), ...ids.filter((id) => ledTo.has(id))];
}

/** Depth-first walk without recursion: a definition may be one long chain. */
function backEdgesOf(
  roots: readonly string[],
  out: ReadonlyMap<string, readonly WorkflowEdge[]>,
): ReadonlySet<WorkflowEdge> {
  const state = new Map<string, 'open' | 'done'>();
  const back = new Set<WorkflowEdge>();
  for (const root of roots) {
    if (state.has(root)) continue;
    const path = [{ id: root, next: 0 }];
    state.set(root, 'open');
    for (let top = path.at(-1); top; top = path.at(-1)) {
      const edge = out.get(top.id)?.[top.next++];
      if (!edge) {
        state.set(top.id, 'done');
        path.pop();
      } else if (state.get(edge.targetNodeId) === 'open') back.add(edge);
      else if (!state.has(edge.targetNodeId)) {
        state.set(edge.targetNodeId, 'open');
        path.push({ id: edge.targetNodeId, next: 0 });
      }
    }
  }
  return back;
}

function topological(
  ids: readonly string[],
  forwardIn: ReadonlyMap<string, readonly WorkflowEdge[]>,
  forwardOut: ReadonlyMap<string, readonly WorkflowEdge[]>,
): string[] {
  const missing = new Map(ids.map((id) => [id, forwardIn.get(id)?.length ?? 0]));
  const order = ids.filter((id) => missing.get(id) === 0);
  // The list grows while it is read: a node is appended when its last source was passed.
  for (const id of order) {
    for (const { targetNodeId } of forwardOut.get(id) ?? []) {
      const left = (missing.get(targetNodeId) ?? 0) - 1;
      missing.set(targetNodeId, left);
      if (left === 0) order.push(targetNodeId);
    }
  }
  return order;
}

/**
 * Everything that is wrong with the graph of a definition of valid shape (workflow-definition.schema.json): one fault
 * per place. Duplicate ids and dangling edges come first; the rest is judged on the edges that have both ends.
 */
export function graphFaults(definition: WorkflowDefinition): GraphFault[] {
  const faults = [
    ...duplicates(
      '/nodes',
      'id',
      definition.nodes.map((node) => node.id),
    ),
    ...duplicates(
      '/edges',
      'id',
      definition.edges.map((edge) => edge.id),
    ),
    ...duplicates(
      '/variables',
      'name',
      definition.variables.map((variable) => variable.name),
    ),
    ...danglingEdges(definition),
    ...portFaults(definition),
  ];
  // A duplicate or dangling id would make the two below report its consequences.
  if (faults.some((fault) => !fault.pointer.includes('/inputs/'))) return faults;
  return [...faults, ...triggerRuleFaults(definition), ...unreachableNodes(definition)];
}

function duplicates(list: string, field: string, names: readonly string[]): GraphFault[] {
  const first = new Map<string, number>();
  return names.flatMap((name, index) => {
    const earlier = first.get(name);
    if (earlier === undefined) first.set(name, index);
    if (earlier === undefined) return [];
    return [
      {
        pointer: `${list}/${index}/${field}`,
        message: `"${name}" is already used at ${list}/${earlier}`,
      },
    ];
  });
}

function danglingEdges(definition: WorkflowDefinition): GraphFault[] {
  const known = new Set(definition.nodes.map((node) => node.id));
  return definition.edges.flatMap((edge, index) =>
    (['sourceNodeId', 'targetNodeId'] as const)
      .filter((end) => !known.has(edge[end]))
      .map((end) => ({
        pointer: `/edges/${index}/${end}`,
        message: `there is no node "${edge[end]}"`,
      })),
  );
}

/** A node has one trigger rule, so its forward in-edges must agree on it; one without a rule says `all_success`. */
function triggerRuleFaults(definition: WorkflowDefinition): GraphFault[] {
  const { triggerRule, backEdges } = graphOf(definition);
  return definition.edges.flatMap((edge, index) => {
    const expected = triggerRule.get(edge.targetNodeId);
    if (backEdges.has(edge.id) || (edge.triggerRule ?? DEFAULT_TRIGGER_RULE) === expected)
      return [];
    const message = `the edges into "${edge.targetNodeId}" must have one trigger rule; an earlier one says ${expected}`;
    return [{ pointer: `/edges/${index}/triggerRule`, message }];
  });
}

/** Loops that nothing leads into while other nodes start the run: they would never be entered. */
function unreachableNodes(definition: WorkflowDefinition): GraphFault[] {
  const ids = definition.nodes.map((node) => node.id);
  const roots = rootsOf(ids, definition.edges);
  const ledTo = new Set(
    definition.edges
      .filter((edge) => edge.sourceNodeId !== edge.targetNodeId)
      .map((edge) => edge.targetNodeId),
  );
  const free = roots.filter((id) => !ledTo.has(id));
  const next = groupBy(ids, definition.edges, (edge) => edge.sourceNodeId);
  const reached = closure(free.length > 0 ? free : ids.slice(0, 1), next);
  return definition.nodes.flatMap((node, index) =>
    reached.has(node.id)
      ? []
      : [{ pointer: `/nodes/${index}`, message: `"${node.id}" cannot be reached from a start` }],
  );
}

function closure(
  from: readonly string[],
  next: ReadonlyMap<string, readonly WorkflowEdge[]>,
): ReadonlySet<string> {
  const reached = new Set(from);
  // A set that grows while it is read: each node is expanded once.
  for (const id of reached) for (const edge of next.get(id) ?? []) reached.add(edge.targetNodeId);
  return reached;
}

function portFaults(definition: WorkflowDefinition): GraphFault[] {
  const variables = new Set([
    ...definition.variables.map((variable) => variable.name),
    ...Object.keys(definition.channels ?? {}),
  ]);
  const ids = definition.nodes.map((node) => node.id);
  const next = groupBy(ids, definition.edges, (edge) => edge.sourceNodeId);
  const precedes = memo((id: string) =>
    closure(
      (next.get(id) ?? []).map((edge) => edge.targetNodeId),
      next,
    ),
  );
  const known = new Set(ids);
  const problem = (
    node: WorkflowNode,
    port: WorkflowNode['inputs'][string],
  ): string | undefined => {
    if (port.type === 'variable' && !port.optional && !variables.has(port.variableName)) {
      return `there is no variable "${port.variableName}"`;
    }
    if (port.type !== 'connection') return undefined;
    if (!known.has(port.nodeId)) return `there is no node "${port.nodeId}"`;
    return precedes(port.nodeId).has(node.id)
      ? undefined
      : `"${port.nodeId}" never runs before "${node.id}"`;
  };
  return definition.nodes.flatMap((node, index) =>
    Object.entries(node.inputs).flatMap(([name, port]) => {
      const message = problem(node, port);
      return message
        ? [{ pointer: `/nodes/${index}/inputs/${pointerSegment(name)}`, message }]
        : [];
    }),
  );
}

function memo<Result>(compute: (id: string) => Result): (id: string) => Result {
  const known = new Map<string, Result>();
  return (id) => {
    const found = known.get(id);
    if (found !== undefined) return found;
    const result = compute(id);
    known.set(id, result);
    return result;
  };
}
