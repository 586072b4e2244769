// The operator's view of agents (seed 004; design §5): agents, tools, calls, audit, metrics, and the token with which an
// agent that is started by hand attaches (seed 004 §5.3). Extensions of this host, there only when agents can connect.
import { randomBytes } from 'node:crypto';
import { HostError, type ErrorCode, invalid } from '../../rules/errors.ts';
import { sha256Hex } from '../../rules/ids.ts';
import { principalOf } from '../../rules/subject.ts';
import type { AgentInstance } from '../../ports/agents.ts';
import type {
  OpenSentienceAgentList,
  OpenSentienceAttachment,
  OpenSentienceAudit,
} from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import { METRICS_CONTENT_TYPE, metricsText } from '../opensentience-metrics.ts';
import { auditEntryOf, detailOf, groupByAgent, summaryOf } from '../opensentience-views.ts';
import { queryInteger, queryText } from '../query.ts';
import type { Route, RouteCall } from '../route.ts';

/** Time in ms within which a minted token must be used. */
export const ATTACH_TOKEN_MS = 5 * 60_000;
const TOKEN_BYTES = 32;
const DEFAULT_AUDIT_PAGE = 50;
const MAX_AUDIT_PAGE = 200;
/** What an agent may be called; anything else is no agent of anybody. */
const AGENT_ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{2,127}$/;

const BASE = '/v1/host/openwop-temporal/opensentience';

/** The addresses, as routes are made of them and discovery tells them. */
export const OPENSENTIENCE_ADDRESSES = {
  listAgents: { method: 'get', path: `${BASE}/agents` },
  getAgent: { method: 'get', path: `${BASE}/agents/{agentId}` },
  attachAgent: { method: 'post', path: `${BASE}/agents/{agentId}/attach` },
  audit: { method: 'get', path: `${BASE}/audit` },
  metrics: { method: 'get', path: `${BASE}/metrics` },
} as const satisfies Record<string, Pick<Route, 'method' | 'path'>>;

export function opensentienceRoutes(deps: FacadeDeps): Route[] {
  if (deps.config.opensentience !== true) return [];
  return [listAgents(deps), getAgent(deps), attachAgent(deps), getAudit(deps), getMetrics(deps)];
}

const OPERATOR = { access: 'agents:operate' } as const satisfies Pick<Route, 'access'>;
const ERRORS_OF_ALL = [
  'unauthenticated',
  'forbidden',
  'service_unavailable',
] as const satisfies readonly ErrorCode[];

const answerOf = (name: string): { $ref: string } => ({ $ref: `#/components/schemas/${name}` });

async function groupsOf({ stores }: FacadeDeps, tenant: string) {
  const [instances, tools] = await Promise.all([
    stores.agents.instances(tenant),
    stores.agents.tools(tenant),
  ]);
  return groupByAgent(instances, tools);
}

function listAgents(deps: FacadeDeps): Route {
  return {
    ...OPENSENTIENCE_ADDRESSES.listAgents,
    ...OPERATOR,
    operationId: 'listOpenSentienceAgents',
    summary: 'Agents as processes: where they run, how they are. An extension of this host.',
    success: {
      status: 200,
      description: 'Sorted by agentId.',
      schema: answerOf('OpenSentienceAgentList'),
    },
    errors: ERRORS_OF_ALL,
    async handle({ response, caller }) {
      const groups = await groupsOf(deps, caller.tenant);
      const answer: OpenSentienceAgentList = { agents: groups.map(summaryOf) };
      response.status(200).json(answer);
    },
  };
}

function getAgent(deps: FacadeDeps): Route {
  return {
    ...OPENSENTIENCE_ADDRESSES.getAgent,
    ...OPERATOR,
    operationId: 'getOpenSentienceAgent',
    summary:
      'One agent: sessions, tools with their policy, calls by id, metrics. An extension of this host.',
    success: {
      status: 200,
      description: 'The agent.',
      schema: answerOf('OpenSentienceAgentDetail'),
    },
    errors: [...ERRORS_OF_ALL, 'agent_not_found'],
    async handle({ response, caller, params }) {
      const groups = await groupsOf(deps, caller.tenant);
      const group = groups.find(({ agentId }) => agentId === params.agentId);
      if (!group) throw new HostError('agent_not_found');
      response.status(200).json(detailOf(group));
    },
  };
}

function attachAgent(deps: FacadeDeps): Route {
  return {
    ...OPENSENTIENCE_ADDRESSES.attachAgent,
    ...OPERATOR,
    operationId: 'attachOpenSentienceAgent',
    summary:
      'A token with which the agent, started by hand, connects once, within 5 minutes. An extension of this host.',
    success: {
      status: 201,
      description: 'Where to connect, and with what.',
      schema: answerOf('OpenSentienceAttachment'),
    },
    errors: [...ERRORS_OF_ALL, 'agent_not_found', 'forbidden'],
    async handle({ response, caller, params }) {
      response.setHeader('Cache-Control', 'no-store');
      response.status(201).json(await mint(deps, caller, params.agentId ?? ''));
    },
  };
}

async function mint(
  { stores }: FacadeDeps,
  { tenant, subject }: RouteCall['caller'],
  agentId: string,
): Promise<OpenSentienceAttachment> {
  const all = AGENT_ID.test(agentId) ? await stores.agents.instances(tenant, agentId) : [];
  if (all.length === 0) throw new HostError('agent_not_found');
  const instance = freest(all.filter(({ status }) => status !== 'refused'));
  if (!instance)
    throw new HostError('forbidden', {
      reason: 'The agent asks for permissions that the operator has not acknowledged.',
    });
  const nowMs = Date.now();
  const expiresAt = new Date(nowMs + ATTACH_TOKEN_MS).toISOString();
  const token = randomBytes(TOKEN_BYTES).toString('base64url');
  // Audited first: there is no token that nobody can see was made.
  await stores.agents.appendAudit([
    {
      ...{ atMs: nowMs, tenant, agentId, instanceId: instance.instanceId },
      kind: 'token.minted',
      details: { principal: principalOf(subject), expiresAt },
    },
  ]);
  await stores.agents.mintToken(
    { tenant, agentId, tokenHash: sha256Hex(token) },
    nowMs + ATTACH_TOKEN_MS,
  );
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

function getAudit({ stores }: FacadeDeps): Route {
  return {
    ...OPENSENTIENCE_ADDRESSES.audit,
    ...OPERATOR,
    operationId: 'listOpenSentienceAudit',
    summary: 'What happened between host and agents, newest first. An extension of this host.',
    parameters: [
      {
        name: 'agentId',
        in: 'query',
        description: 'Only of this agent.',
        schema: { type: 'string', pattern: AGENT_ID.source },
      },
      {
        name: 'before',
        in: 'query',
        description: '`nextBefore` of the page before.',
        schema: { type: 'integer', minimum: 1, maximum: Number.MAX_SAFE_INTEGER },
      },
      {
        name: 'limit',
        in: 'query',
        description: 'Entries per page.',
        schema: {
          ...{ type: 'integer', minimum: 1, maximum: MAX_AUDIT_PAGE },
          default: DEFAULT_AUDIT_PAGE,
        },
      },
    ],
    success: {
      status: 200,
      description: 'A page.',
      schema: answerOf('OpenSentienceAudit'),
    },
    errors: [...ERRORS_OF_ALL, 'validation_error'],
    async handle({ request, response, caller }) {
      const range = { min: 1, max: Number.MAX_SAFE_INTEGER };
      const agentId = queryText(request, 'agentId');
      if (agentId !== undefined && !AGENT_ID.test(agentId))
        throw invalid('agentId', 'is not the id of an agent');
      const before = queryInteger(request, 'before', range);
      const limit =
        queryInteger(request, 'limit', { min: 1, max: MAX_AUDIT_PAGE }) ?? DEFAULT_AUDIT_PAGE;
      const entries = await stores.agents.audit(caller.tenant, { agentId, before, limit });
      const last = entries.length === limit ? entries.at(-1) : undefined;
      const answer: OpenSentienceAudit = {
        entries: entries.map(auditEntryOf),
        ...(last && last.position > 1 && { nextBefore: last.position }),
      };
      response.status(200).json(answer);
    },
  };
}

function getMetrics(deps: FacadeDeps): Route {
  return {
    ...OPENSENTIENCE_ADDRESSES.metrics,
    ...OPERATOR,
    operationId: 'getOpenSentienceMetrics',
    summary: "Metrics per agent and tool in Prometheus' text format. An extension of this host.",
    success: {
      status: 200,
      description: 'Text format 0.0.4.',
      schema: { type: 'string' },
      mediaTypes: ['text/plain'],
    },
    errors: ERRORS_OF_ALL,
    async handle({ response, caller }) {
      const text = await metricsText(await groupsOf(deps, caller.tenant));
      response.status(200).setHeader('Content-Type', METRICS_CONTENT_TYPE).end(text);
    },
  };
}
