// The graph of a definition: starts, back edges, fan-in and faults (workflow-definition.schema.json; architecture §4).
import { describe, expect, test } from 'vitest';
import { graphFaults, graphOf } from '../../src/rules/definition-graph.ts';
import type {
  WorkflowDefinition,
  WorkflowEdge,
  WorkflowNode,
} from '../../schemas/types.generated.ts';

type Inputs = WorkflowNode['inputs'];
const node = (id: string, inputs: Inputs = {}): WorkflowNode => ({
  ...{ id, typeId: 'core.noop', name: id, position: { x: 0, y: 0 } },
  ...{ config: {}, inputs },
});

/** `a>b` is an edge, `a>b:any_failed` one with a trigger rule; its id is its text. */
function edge(text: string): WorkflowEdge {
  const [ends = '', rule] = text.split(':');
  const [sourceNodeId = '', targetNodeId = ''] = ends.split('>');
  return {
    ...{ id: text, sourceNodeId, targetNodeId },
    ...(rule ? { triggerRule: rule as NonNullable<WorkflowEdge['triggerRule']> } : {}),
  };
}

function definition(
  nodes: string,
  edges: string,
  inputs: Record<string, Inputs> = {},
): WorkflowDefinition {
  const [first = node('a'), ...rest] = nodes.split(' ').map((id) => node(id, inputs[id]));
  return {
    ...{ id: 'd', name: 'd', version: '1', triggers: [], metadata: {}, settings: {} },
    ...{ nodes: [first, ...rest], edges: edges.split(' ').filter(Boolean).map(edge) },
    variables: [{ name: 'known', type: 'string' }],
  };
}

const ids = (edges: readonly WorkflowEdge[] | undefined) =>
  (edges ?? []).map((it) => it.id).join(' ');

interface Shape {
  readonly nodes: string;
  readonly edges: string;
  readonly starts: string;
  readonly back: string;
  readonly order: string;
}

const SHAPES: Record<string, Shape> = {
  'one node': { nodes: 'a', edges: '', starts: 'a', back: '', order: 'a' },
  'a chain written backwards': {
    nodes: 'c b a',
    edges: 'b>c a>b',
    starts: 'a',
    back: '',
    order: 'a b c',
  },
  'a diamond': {
    nodes: 'a b c d',
    edges: 'a>b a>c b>d c>d',
    starts: 'a',
    back: '',
    order: 'a b c d',
  },
  'two starts': { nodes: 'a b c', edges: 'a>c b>c', starts: 'a b', back: '', order: 'a b c' },
  'a self loop': { nodes: 'a b', edges: 'a>a a>b', starts: 'a', back: 'a>a', order: 'a b' },
  'a loop behind a start': {
    ...{ nodes: 's w e', edges: 's>e e>w w>e', starts: 's' },
    ...{ back: 'w>e', order: 's e w' },
  },
  'a loop without a start begins with its first node': {
    ...{ nodes: 'sup disp', edges: 'sup>disp disp>sup', starts: 'sup' },
    ...{ back: 'disp>sup', order: 'sup disp' },
  },
  'nested loops': {
    ...{ nodes: 'a b c', edges: 'a>b b>c c>b c>a', starts: 'a' },
    ...{ back: 'c>b c>a', order: 'a b c' },
  },
  'a shortcut over a loop is forward': {
    ...{ nodes: 'a b c', edges: 'a>b b>c a>c c>b', starts: 'a' },
    ...{ back: 'c>b', order: 'a b c' },
  },
};

describe('graphOf', () => {
  test.each(Object.entries(SHAPES))('architecture §4 %s', (_, shape) => {
    const graph = graphOf(definition(shape.nodes, shape.edges));
    expect({
      starts: graph.starts.join(' '),
      back: [...graph.backEdges].join(' '),
      order: graph.order.join(' '),
    }).toEqual({ starts: shape.starts, back: shape.back, order: shape.order });
  });

  test('architecture §4 a back edge counts neither for fan-in nor among the forward edges', () => {
    const graph = graphOf(definition('s e w', 's>e e>w w>e'));
    expect(ids(graph.forwardIn.get('e'))).toBe('s>e');
    expect(ids(graph.forwardOut.get('w'))).toBe('');
    expect(ids(graph.backOut.get('w'))).toBe('w>e');
  });

  test('every node is in the order once, and every forward edge points onwards, in random graphs', () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    for (let round = 0; round < 200; round++) {
      const names = Array.from({ length: 1 + random(8) }, (_, index) => `n${index}`);
      const pick = () => names[random(names.length)] ?? 'n0';
      const edges = Array.from({ length: random(14) }, (_, index) => ({
        ...edge(`${pick()}>${pick()}`),
        id: `e${index}`,
      }));
      const graph = graphOf({ ...definition(names.join(' '), ''), edges });
      expect([...graph.order].sort()).toEqual([...names].sort());
      const place = new Map(graph.order.map((id, index) => [id, index]));
      for (const it of edges) {
        if (graph.backEdges.has(it.id)) continue;
        expect(place.get(it.sourceNodeId)).toBeLessThan(place.get(it.targetNodeId) ?? -1);
      }
    }
  });

  test('a chain of 5,000 nodes does not exhaust the stack', () => {
    const names = Array.from({ length: 5000 }, (_, index) => `n${index}`);
    const edges = names.slice(1).map((name, index) => `n${index}>${name}`);
    expect(graphOf(definition(names.join(' '), edges.join(' '))).order).toEqual(names);
  });

  test('workflow-definition.schema.json: the trigger rule of a node is that of its forward in-edges, all_success without one', () => {
    const graph = graphOf(definition('a b c', 'a>b:any_failed a>c c>b:any_failed b>b:any_success'));
    expect(Object.fromEntries(graph.triggerRule)).toEqual({
      a: 'all_success',
      b: 'any_failed',
      c: 'all_success',
    });
  });
});

const FAULTS: Record<
  string,
  { nodes: string; edges: string; inputs?: Record<string, Inputs>; pointers: string[] }
> = {
  'nothing wrong': { nodes: 'a b', edges: 'a>b', pointers: [] },
  'a duplicate node id': { nodes: 'a b a', edges: 'a>b', pointers: ['/nodes/2/id'] },
  'a duplicate edge id': { nodes: 'a b', edges: 'a>b a>b', pointers: ['/edges/1/id'] },
  'a dangling source': { nodes: 'a', edges: 'x>a', pointers: ['/edges/0/sourceNodeId'] },
  'both ends dangling': {
    nodes: 'a',
    edges: 'x>y',
    pointers: ['/edges/0/sourceNodeId', '/edges/0/targetNodeId'],
  },
  'trigger rules that differ': {
    nodes: 'a b c',
    edges: 'a>c b>c:any_failed',
    pointers: ['/edges/1/triggerRule'],
  },
  'a back edge may say another rule': { nodes: 'a b', edges: 'a>b b>b:any_success', pointers: [] },
  'a loop that nothing leads into': {
    nodes: 'a b c',
    edges: 'b>c c>b',
    pointers: ['/nodes/1', '/nodes/2'],
  },
  'an undeclared variable': {
    ...{
      nodes: 'a',
      edges: '',
      inputs: { a: { 'x/y': { type: 'variable', variableName: 'unknown' } } },
    },
    pointers: ['/nodes/0/inputs/x~1y'],
  },
  'an undeclared optional variable': {
    ...{
      nodes: 'a',
      edges: '',
      inputs: { a: { x: { type: 'variable', variableName: 'unknown', optional: true } } },
    },
    pointers: [],
  },
  'a declared variable': {
    ...{ nodes: 'a', edges: '', inputs: { a: { x: { type: 'variable', variableName: 'known' } } } },
    pointers: [],
  },
  'a connection to nowhere': {
    ...{
      nodes: 'a',
      edges: '',
      inputs: { a: { x: { type: 'connection', nodeId: 'z', outputKey: 'o' } } },
    },
    pointers: ['/nodes/0/inputs/x'],
  },
  'a connection to a later node': {
    ...{
      nodes: 'a b',
      edges: 'a>b',
      inputs: { a: { x: { type: 'connection', nodeId: 'b', outputKey: 'o' } } },
    },
    pointers: ['/nodes/0/inputs/x'],
  },
  'a connection to a node that a loop has run before': {
    ...{
      nodes: 'a b',
      edges: 'a>b b>a',
      inputs: { a: { x: { type: 'connection', nodeId: 'b', outputKey: 'o' } } },
    },
    pointers: [],
  },
  'a connection to itself without a loop': {
    ...{
      nodes: 'a',
      edges: '',
      inputs: { a: { x: { type: 'connection', nodeId: 'a', outputKey: 'o' } } },
    },
    pointers: ['/nodes/0/inputs/x'],
  },
};

describe('graphFaults', () => {
  test.each(Object.entries(FAULTS))(
    'workflow-definition.schema.json: %s',
    (_, { nodes, edges, inputs, pointers }) => {
      expect(graphFaults(definition(nodes, edges, inputs)).map((fault) => fault.pointer)).toEqual(
        pointers,
      );
    },
  );

  test('workflow-definition.schema.json: a variable declared twice is a fault', () => {
    const twice = {
      ...definition('a', ''),
      variables: [1, 2].map(() => ({ name: 'v', type: 'string' as const })),
    };
    expect(graphFaults(twice)).toEqual([
      { pointer: '/variables/1/name', message: '"v" is already used at /variables/0' },
    ]);
  });
});
