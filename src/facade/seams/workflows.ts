// POST /v1/host/sample/workflows and …/test/reset (host-sample-test-seams.md): definitions that tests bring along, kept in
// this process until they are reset. Runs pin them as any; no worker finds them as a child's.
import { HostError } from '../../rules/errors.ts';
import type { JsonObject } from '../../rules/json.ts';
import type { Catalog } from '../../ports/catalog.ts';
import type { WorkflowDefinition } from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import { answered, type Answer, type Declaration, type InputOf, type Route } from '../route.ts';
import { checkedDefinition, seamBody } from './seam.ts';

/** Definitions that are kept for a tenant at once. */
const MAX_DEFINITIONS = 100;

interface AskedNode {
  readonly nodeId: string;
  readonly typeId: string;
  readonly config?: JsonObject;
}

interface Asked {
  readonly workflowId: string;
  readonly nodes: readonly AskedNode[];
}

const text = { type: 'string', minLength: 1, maxLength: 128 };

const ADD_WORKFLOW = {
  method: 'post',
  path: '/host/sample/workflows',
  operationId: 'seamAddWorkflow',
  summary: 'A workflow of nodes in a row; a supervisor and a dispatch take turns. Test mode only.',
  access: 'runs:create',
  body: seamBody<Asked>(
    {
      type: 'object',
      properties: {
        workflowId: text,
        nodes: {
          ...{ type: 'array', minItems: 1, maxItems: 100 },
          items: {
            type: 'object',
            properties: { nodeId: text, typeId: text, config: { type: 'object' } },
            required: ['nodeId', 'typeId'],
          },
        },
      },
      required: ['workflowId', 'nodes'],
    },
    { workflowId: 'conformance-x', nodes: [{ nodeId: 'a', typeId: 'core.noop' }] },
  ),
  success: { status: 201, description: 'It can be run.' },
  errors: ['run_state_conflict'],
} as const satisfies Declaration;

const RESET = {
  method: 'post',
  path: '/host/sample/test/reset',
  operationId: 'seamReset',
  summary: 'Forget what tests brought along; runs stay. Test mode only.',
  access: 'runs:create',
  success: { status: 200, description: 'How many definitions were forgotten.' },
} as const satisfies Declaration;

/** Definitions by tenant and id. */
export type Brought = Map<string, Map<string, WorkflowDefinition>>;

/** The catalog with what tests brought along: a loaded definition stays what it is. */
export function withBrought(catalog: Catalog, brought: Brought): Catalog {
  return {
    ...catalog,
    definition: (tenant, id) => catalog.definition(tenant, id) ?? brought.get(tenant)?.get(id),
  };
}

export function workflowSeams(deps: FacadeDeps, brought: Brought): Route[] {
  return [
    answered(ADD_WORKFLOW, (input) => addWorkflow(deps, brought, input)),
    answered(RESET, ({ caller: { tenant } }) => {
      const forgotten = brought.get(tenant)?.size ?? 0;
      brought.delete(tenant);
      return { body: { forgotten } };
    }),
  ];
}

function addWorkflow(
  deps: FacadeDeps,
  brought: Brought,
  { caller, body }: InputOf<typeof ADD_WORKFLOW>,
): Answer {
  const definition = checkedDefinition(deps, caller, rowOf(body));
  const own = brought.get(caller.tenant) ?? new Map<string, WorkflowDefinition>();
  if (own.size >= MAX_DEFINITIONS && !own.has(definition.id))
    throw new HostError('run_state_conflict', { reason: 'Reset first.', limit: MAX_DEFINITIONS });
  brought.set(caller.tenant, own.set(definition.id, definition));
  return { body: { workflowId: definition.id } };
}

function rowOf({ workflowId, nodes }: Asked): object {
  const edge = (sourceNodeId: string, targetNodeId: string) => ({
    ...{ id: `${sourceNodeId}>${targetNodeId}`, sourceNodeId, targetNodeId },
  });
  return {
    ...{ id: workflowId, name: workflowId, version: '1', metadata: {}, settings: {} },
    nodes: nodes.map(({ nodeId, typeId, config = {} }) => ({
      ...{ id: nodeId, typeId, name: nodeId, config },
      ...{ position: { x: 0, y: 0 }, inputs: {} },
    })),
    edges: nodes.slice(1).flatMap(({ nodeId, typeId }, at) => {
      const before = nodes[at];
      if (!before) return [];
      const turns = before.typeId === 'core.orchestrator.supervisor' && typeId === 'core.dispatch';
      return [edge(before.nodeId, nodeId), ...(turns ? [edge(nodeId, before.nodeId)] : [])];
    }),
    ...{ triggers: [], variables: [] },
  };
}
