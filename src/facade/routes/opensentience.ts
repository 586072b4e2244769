// The operator's view of agents (seed 004; architecture §5): agents, tools, calls, audit, metrics, and the token with
// which an agent that is started by hand attaches (seed 004 §5.3). Extensions of this host, there only when agents can
// connect.
import { randomBytes } from 'node:crypto';
import { HostError } from '../../rules/errors.ts';
import { sha256Hex } from '../../rules/ids.ts';
import { principalOf } from '../../rules/subject.ts';
import type { AgentInstance } from '../../ports/agents.ts';
import type { Caller } from '../../ports/caller.ts';
import type {
  OpenSentienceAgentList,
  OpenSentienceAttachment,
  OpenSentienceAudit,
} from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import { METRICS_CONTENT_TYPE, metricsText } from '../opensentience-metrics.ts';
import { auditEntryOf, detailOf, groupByAgent, summaryOf } from '../opensentience-views.ts';
import { integer, text } from '../parameters.ts';
import {
  answered,
  shape,
  type Answer,
  type Declaration,
  type InputOf,
  type Route,
} from '../route.ts';

/** Time in ms within which a minted token must be used. */
const ATTACH_TOKEN_MS = 5 * 60_000;
const TOKEN_BYTES = 32;
/** What an agent may be called; anything else is no agent of anybody. */
const AGENT_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{2,127}$/;

const BASE = '/host/openwop-temporal/opensentience';

/** The declarations, by the names under which discovery tells their addresses. */
export const OPENSENTIENCE = {
  listAgents: {
    method: 'get',
    path: `${BASE}/agents`,
    operationId: 'listOpenSentienceAgents',
    summary: 'Agents as processes: where they run, how they are. An extension of this host.',
    access: 'agents:operate',
    success: {
      status: 200,
      description: 'Sorted by agentId.',
      schema: shape('OpenSentienceAgentList'),
    },
    errors: ['service_unavailable'],
  },
  getAgent: {
    method: 'get',
    path: `${BASE}/agents/{agentId}`,
    operationId: 'getOpenSentienceAgent',
    summary:
      'One agent: sessions, tools with their policy, calls by id, metrics. An extension of this host.',
    access: 'agents:operate',
    success: { status: 200, description: 'The agent.', schema: shape('OpenSentienceAgentDetail') },
    errors: ['service_unavailable', 'agent_not_found'],
  },
  attachAgent: {
    method: 'post',
    path: `${BASE}/agents/{agentId}/attach`,
    operationId: 'attachOpenSentienceAgent',
    summary:
      'A token with which the agent, started by hand, connects once, within 5 minutes. An extension of this host.',
    access: 'agents:operate',
    success: {
      status: 201,
      description: 'Where to connect, and with what.',
      schema: shape('OpenSentienceAttachment'),
    },
    errors: ['service_unavailable', 'agent_not_found'],
  },
  audit: {
    method: 'get',
    path: `${BASE}/audit`,
    operationId: 'listOpenSentienceAudit',
    summary: 'What happened between host and agents, newest first. An extension of this host.',
    access: 'agents:operate',
    parameters: {
      agentId: text('Only of this agent.', {
        ...{ pattern: AGENT_ID, reason: 'is not the id of an agent', example: 'example.notes' },
      }),
      before: integer('`nextBefore` of the page before.', {
        ...{ min: 1, max: Number.MAX_SAFE_INTEGER, example: 4711 },
      }),
      limit: integer('Entries per page.', { min: 1, max: 200, default: 50, example: 20 }),
    },
    success: { status: 200, description: 'A page.', schema: shape('OpenSentienceAudit') },
    errors: ['service_unavailable'],
  },
  metrics: {
    method: 'get',
    path: `${BASE}/metrics`,
    operationId: 'getOpenSentienceMetrics',
    summary: "Metrics per agent and tool in Prometheus' text format. An extension of this host.",
    access: 'agents:operate',
    success: {
      status: 200,
      description: 'Text format 0.0.4.',
      schema: { type: 'string' },
      mediaTypes: ['text/plain'],
    },
    errors: ['service_unavailable'],
  },
} as const satisfies Record<string, Declaration>;

export function opensentienceRoutes(deps: FacadeDeps): Route[] {
  if (deps.config.opensentience !== true) return [];
  return [
    answered(OPENSENTIENCE.listAgents, async ({ caller }) => {
      const groups = await groupsOf(deps, caller.tenant);
      return { body: { agents: groups.map(summaryOf) } satisfies OpenSentienceAgentList };
    }),
    answered(OPENSENTIENCE.getAgent, async ({ caller, path }) => {
      const groups = await groupsOf(deps, caller.tenant);
      const group = groups.find(({ agentId }) => agentId === path.agentId);
      if (!group) throw new HostError('agent_not_found');
      return { body: detailOf(group) };
    }),
    answered(OPENSENTIENCE.attachAgent, async ({ caller, path }) => ({
      body: await mint(deps, caller, path.agentId),
    })),
    answered(OPENSENTIENCE.audit, (input) => getAudit(deps, input)),
    answered(OPENSENTIENCE.metrics, async ({ caller }) => ({
      headers: { 'Content-Type': METRICS_CONTENT_TYPE },
      text: await metricsText(await groupsOf(deps, caller.tenant)),
    })),
  ];
}

async function groupsOf({ stores }: FacadeDeps, tenant: string) {
  const [instances, tools] = await Promise.all([
    stores.agents.instances(tenant),
    stores.agents.tools(tenant),
  ]);
  return groupByAgent(instances, tools);
}

async function mint(
  { stores }: FacadeDeps,
  { tenant, subject }: Caller,
  agentId: string,
): Promise<OpenSentienceAttachment> {
  const all = AGENT_ID.test(agentId) ? await stores.agents.instances(tenant, agentId) : [];
  if (all.length === 0) throw new HostError('agent_not_found');
  const instance = freest(all.filter(({ status }) => status !== 'refused'));
  if (!instance)
    throw new HostError('forbidden', {
      reason: 'The agent asks for permissions that the operator has not acknowledged.',
    });
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  const minted = { tenant, agentId, tokenHash: sha256Hex(token) };
  const expiresAtMs = await stores.agents.mintToken(minted, ATTACH_TOKEN_MS);
  const expiresAt = new Date(expiresAtMs).toISOString();
  // Audited before anybody has it: no token is in use that nobody can see was made.
  await stores.agents.appendAudit([
    {
      ...{ atMs: expiresAtMs - ATTACH_TOKEN_MS, tenant, agentId, instanceId: instance.instanceId },
      kind: 'token.minted',
      details: { principal: principalOf(subject), expiresAt },
    },
  ]);
  return { agentId, socket: instance.socket, token, expiresAt };
}

/** A Core that has no session of the agent, where there is one: two sessions of one id are refused. */
function freest(instances: readonly AgentInstance[]): AgentInstance | undefined {
  return (
    instances.find(({ status }) => status === 'waiting') ??
    instances.find(({ session }) => session === undefined) ??
    instances[0]
  );
}

async function getAudit(
  { stores }: FacadeDeps,
  { caller, parameters }: InputOf<typeof OPENSENTIENCE.audit>,
): Promise<Answer> {
  const entries = await stores.agents.audit(caller.tenant, parameters);
  const last = entries.length === parameters.limit ? entries.at(-1) : undefined;
  const body: OpenSentienceAudit = {
    entries: entries.map(auditEntryOf),
    ...(last && last.position > 1 && { nextBefore: last.position }),
  };
  return { body };
}
