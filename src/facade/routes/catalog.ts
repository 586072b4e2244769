// What can be run: GET /v1/workflows/{workflowId} and this host's list of them, GET /v1/agents, GET /v1/agents/{agentId} (rest-endpoints.md,
// RFC 0072).
import { HostError } from '../../rules/errors.ts';
import type { Caller } from '../../ports/caller.ts';
import type { CatalogAgent } from '../../ports/catalog.ts';
import { withShownIds } from '../../wire/major.ts';
import type { AgentInventoryEntry } from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import {
  answered,
  shape,
  type Answer,
  type Declaration,
  type InputOf,
  type Route,
} from '../route.ts';
import { offersAgents } from '../host-facts.ts';

export const GET_WORKFLOW = {
  method: 'get',
  path: '/workflows/{workflowId}',
  operationId: 'getWorkflow',
  summary: 'A workflow definition as it was loaded.',
  access: 'manifest:read',
  success: { status: 200, description: 'The definition.', schema: shape('WorkflowDefinition') },
  errors: ['workflow_not_found'],
} as const satisfies Declaration;

export const LIST_WORKFLOWS = {
  method: 'get',
  path: '/host/openwop-temporal/workflows',
  operationId: 'listWorkflows',
  summary:
    'The workflows that can be started, by id, with their inputs. An extension of this host.',
  access: 'manifest:read',
  success: { status: 200, description: 'Sorted by id.', schema: shape('WorkflowList') },
} as const satisfies Declaration;

export const LIST_AGENTS = {
  method: 'get',
  path: '/agents',
  operationId: 'listAgents',
  summary: 'The agents that can be invoked.',
  access: 'manifest:read',
  success: {
    status: 200,
    description: 'Sorted by agentId.',
    schema: shape('AgentInventoryResponse'),
  },
} as const satisfies Declaration;

export const GET_AGENT = {
  method: 'get',
  path: '/agents/{agentId}',
  operationId: 'getAgent',
  summary: 'One agent.',
  access: 'manifest:read',
  success: {
    status: 200,
    description: 'The entry.',
    schema: shape('AgentInventoryResponse/$defs/AgentInventoryEntry'),
  },
  errors: ['agent_not_found'],
} as const satisfies Declaration;

/** This release makes no artifacts; the address answers, so that the key is asked for before existence is told. */
export const GET_ARTIFACT = {
  method: 'get',
  path: '/runs/{runId}/artifacts/{artifactId}',
  operationId: 'getArtifact',
  summary: 'An artifact of a run. Runs of this release make none.',
  access: 'artifacts:read',
  success: { status: 200, description: 'The artifact.' },
  errors: ['artifact_not_found'],
} as const satisfies Declaration;

export function catalogRoutes(deps: FacadeDeps): Route[] {
  const agents = [
    answered(LIST_AGENTS, ({ caller }) => listAgents(deps, caller)),
    answered(GET_AGENT, (input) => getAgent(deps, input)),
  ];
  return [
    answered(GET_WORKFLOW, (input) => getWorkflow(deps, input)),
    answered(LIST_WORKFLOWS, (input) => listWorkflows(deps, input)),
    ...(offersAgents(deps) ? agents : []),
    answered(GET_ARTIFACT, () => {
      throw new HostError('artifact_not_found');
    }),
  ];
}

export function listAgents({ catalog }: FacadeDeps, { tenant }: Caller): Answer {
  const entries = catalog.agents(tenant).map(inventoryEntry);
  return { body: { agents: entries, total: entries.length } };
}

function getWorkflow(
  { catalog }: FacadeDeps,
  { caller, path }: InputOf<typeof GET_WORKFLOW>,
): Answer {
  const definition = catalog.definition(caller.tenant, path.workflowId);
  if (!definition) throw new HostError('workflow_not_found');
  return { body: definition };
}

function listWorkflows(
  { catalog }: FacadeDeps,
  { caller, major }: InputOf<typeof LIST_WORKFLOWS>,
): Answer {
  const workflows = [...catalog.definitions(caller.tenant)]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ id, name, version, description, variables }) => ({
      ...withShownIds(major, caller.tenant, { workflowId: id }),
      ...{ name, version, inputs: variables },
      ...(description === undefined ? {} : { description }),
    }));
  return { body: { workflows } };
}

function getAgent({ catalog }: FacadeDeps, { caller, path }: InputOf<typeof GET_AGENT>): Answer {
  const agent = catalog.agent(caller.tenant, path.agentId);
  if (!agent) throw new HostError('agent_not_found');
  return { body: inventoryEntry(agent) };
}

/** Closed: never prompts, schemas or credentials. */
function inventoryEntry({
  manifest,
  packName,
  packVersion,
  pinned,
  degraded,
}: CatalogAgent): AgentInventoryEntry {
  const { agentId, persona, label, description, modelClass, memoryShape, handoff } = manifest;
  return {
    agentId,
    persona,
    label: label ?? persona,
    modelClass,
    packName,
    packVersion,
    toolAllowlist: [...pinned.toolAllowlist],
    hasHandoffSchemas:
      handoff?.taskSchemaRef !== undefined || handoff?.returnSchemaRef !== undefined,
    ...(description === undefined ? {} : { description }),
    ...(memoryShape === undefined ? {} : { memoryShape }),
    ...(pinned.confidenceThreshold === undefined
      ? {}
      : { confidenceThreshold: pinned.confidenceThreshold }),
    ...(degraded.length === 0 ? {} : { degraded: [...degraded] }),
  };
}
