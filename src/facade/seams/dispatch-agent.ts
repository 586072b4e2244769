// POST /v1/host/sample/agents/{agentId}/dispatch and GET …/agents (RFC 0070, host-sample-test-seams.md): an agent's run with
// a task, told as one answer; and the inventory under its older address.
import { HostError } from '../../rules/errors.ts';
import { isJsonObject, type JsonValue } from '../../rules/json.ts';
import type { FacadeDeps } from '../deps.ts';
import { answered, type Answer, type Declaration, type InputOf, type Route } from '../route.ts';
import { listAgents } from '../routes/catalog.ts';
import { lastOf, seamBody, seenRun, startSeamRun } from './seam.ts';

interface Asked {
  readonly task?: JsonValue;
  readonly availableTools?: readonly string[];
}

const DISPATCH = {
  method: 'post',
  path: '/host/sample/agents/{agentId}/dispatch',
  operationId: 'seamDispatchAgent',
  summary: 'Give an agent a task, which its schema is held to, and wait. Test mode only.',
  access: 'runs:create',
  body: seamBody<Asked>(
    {
      type: 'object',
      properties: {
        task: {},
        validateHandoff: { type: 'boolean' },
        availableTools: { type: 'array', items: { type: 'string' }, maxItems: 256 },
      },
    },
    { task: { question: 'why?' }, availableTools: [] },
  ),
  success: { status: 200, description: 'It decided, or waits for somebody, or failed.' },
  errors: ['agent_not_found'],
} as const satisfies Declaration;

const AGENTS = {
  method: 'get',
  path: '/host/sample/agents',
  operationId: 'seamListAgents',
  summary: 'The agents that can be invoked. Test mode only.',
  access: 'manifest:read',
  success: { status: 200, description: 'Sorted by agentId.' },
} as const satisfies Declaration;

export function agentSeams(deps: FacadeDeps): Route[] {
  return [
    answered(AGENTS, ({ caller }) => listAgents(deps, caller)),
    answered(DISPATCH, (input) => dispatch(deps, input)),
  ];
}

async function dispatch(deps: FacadeDeps, input: InputOf<typeof DISPATCH>): Promise<Answer> {
  const { caller, path, body } = input;
  const { agentId } = path;
  const agent = deps.catalog.agent(caller.tenant, agentId);
  if (!agent) throw new HostError('agent_not_found', { agentId });
  const { task = {}, availableTools } = body;
  const inputs = isJsonObject(task) ? task : { task };
  const runId = await startSeamRun(deps, caller, { agentId, inputs, configurable: {} });
  const seen = await seenRun(deps, caller, runId);
  const decision = lastOf(seen, 'decision');
  const waits = lastOf(seen, 'wait-opens');
  const error = lastOf(seen, 'run-ends')?.error;
  const registered = new Set(deps.tools.list(caller.tenant).map(({ toolId }) => toolId));
  const surface = agent.pinned.toolAllowlist.filter(
    (toolId) => registered.has(toolId) && availableTools?.includes(toolId) !== false,
  );
  const events = seen.rows.filter(({ payload }) => payload.agentId === agentId);
  const status = waits ? 'escalated' : error === undefined ? 'completed' : 'failed';
  return {
    body: {
      ...{ runId, agentId, status, toolSurface: surface },
      confidence: decision?.confidence,
      threshold: waits?.threshold,
      events: events.map(({ eventId, type, payload }) => ({ eventId, type, agentId, payload })),
      ...{ result: decision?.decision, error },
    },
  };
}
