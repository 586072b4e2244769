// What can be run: GET /v1/workflows/{workflowId}, GET /v1/agents, GET /v1/agents/{agentId} (spec/01 §6.6, spec/03 §14).
import { HostError } from '../../rules/errors.ts';
import type { CatalogAgent } from '../../ports/catalog.ts';
import type { AgentInventoryEntry } from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import type { Route } from '../route.ts';
import { offersAgents } from '../host-facts.ts';

export function catalogRoutes(deps: FacadeDeps): Route[] {
  const agents = offersAgents(deps) ? [listAgents(deps), getAgent(deps)] : [];
  return [getWorkflow(deps), ...agents, getArtifact()];
}

function getWorkflow({ catalog }: FacadeDeps): Route {
  return {
    method: 'get',
    path: '/v1/workflows/{workflowId}',
    operationId: 'getWorkflow',
    summary: 'A workflow definition as it was loaded.',
    access: 'manifest:read',
    success: {
      status: 200,
      description: 'The definition.',
      schema: { $ref: '#/components/schemas/WorkflowDefinition' },
    },
    errors: ['unauthenticated', 'forbidden', 'workflow_not_found'],
    handle({ response, caller, params }) {
      const definition = catalog.definition(caller.tenant, params.workflowId ?? '');
      if (!definition) throw new HostError('workflow_not_found');
      response.status(200).json(definition);
    },
  };
}

/** Closed: never prompts, schemas or credentials. */
export function inventoryEntry({
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

function listAgents({ catalog }: FacadeDeps): Route {
  return {
    method: 'get',
    path: '/v1/agents',
    operationId: 'listAgents',
    summary: 'The agents that can be invoked.',
    access: 'manifest:read',
    success: {
      status: 200,
      description: 'Sorted by agentId.',
      schema: { $ref: '#/components/schemas/AgentInventoryResponse' },
    },
    errors: ['unauthenticated', 'forbidden'],
    handle({ response, caller }) {
      const agents = catalog.agents(caller.tenant).map(inventoryEntry);
      response.status(200).json({ agents, total: agents.length });
    },
  };
}

function getAgent({ catalog }: FacadeDeps): Route {
  return {
    method: 'get',
    path: '/v1/agents/{agentId}',
    operationId: 'getAgent',
    summary: 'One agent.',
    access: 'manifest:read',
    success: {
      status: 200,
      description: 'The entry.',
      schema: { $ref: '#/components/schemas/AgentInventoryResponse/$defs/AgentInventoryEntry' },
    },
    errors: ['unauthenticated', 'forbidden', 'agent_not_found'],
    handle({ response, caller, params }) {
      const agent = catalog.agent(caller.tenant, params.agentId ?? '');
      if (!agent) throw new HostError('agent_not_found');
      response.status(200).json(inventoryEntry(agent));
    },
  };
}

/** This release makes no artifacts; the address answers, so that the key is asked for before existence is told. */
function getArtifact(): Route {
  return {
    method: 'get',
    path: '/v1/runs/{runId}/artifacts/{artifactId}',
    operationId: 'getArtifact',
    summary: 'An artifact of a run. Runs of this release make none.',
    access: 'artifacts:read',
    success: { status: 200, description: 'The artifact.' },
    errors: ['unauthenticated', 'forbidden', 'artifact_not_found'],
    handle() {
      throw new HostError('artifact_not_found');
    },
  };
}
