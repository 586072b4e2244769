// What operators see of agents (seed 004; architecture §5): the registry's rows of all Cores, grouped by agent. Pure.
import type {
  AgentAuditEntry,
  AgentCallView,
  AgentInstance,
  AgentSessionView,
  AgentTool,
} from '../ports/agents.ts';
import { OUTCOMES, sumByTool, type AgentToolMetrics } from '../rules/tool-metrics.ts';
import type {
  OpenSentienceAgentDetail,
  OpenSentienceAgentSummary,
  OpenSentienceAuditEntry,
  OpenSentienceCall,
  OpenSentienceHealth,
  OpenSentienceInstance,
  OpenSentienceSession,
  OpenSentienceStatus,
  OpenSentienceTool,
} from '../../schemas/types.generated.ts';
import { iso } from '../rules/unreadable.ts';

/** The first that an instance has is the agent's: what serves comes before what does not. */
const STATUS_ORDER = [
  'connected',
  'draining',
  'starting',
  'waiting',
  'backing-off',
  'crash-loop',
  'stopped',
  'refused',
] as const satisfies readonly OpenSentienceStatus[];
/** The first that a session has is the agent's: what needs a look comes before what does not. */
const HEALTH_ORDER = [
  'unhealthy',
  'silent',
  'degraded',
  'ok',
] as const satisfies readonly OpenSentienceHealth[];

export interface AgentGroup {
  readonly agentId: string;
  readonly instances: readonly AgentInstance[];
  readonly tools: readonly AgentTool[];
}

/** Sorted by agentId; an agent without a living Core is there while tools of its are registered. */
export function groupByAgent(
  instances: readonly AgentInstance[],
  tools: readonly AgentTool[],
): AgentGroup[] {
  const agentIds = new Set([...instances, ...tools].map(({ agentId }) => agentId));
  return [...agentIds].sort().map((agentId) => ({
    agentId,
    instances: instances.filter((instance) => instance.agentId === agentId),
    tools: tools.filter((tool) => tool.agentId === agentId),
  }));
}

export function summaryOf({ agentId, instances, tools }: AgentGroup): OpenSentienceAgentSummary {
  const [first] = instances;
  const sessions = instances.flatMap(({ session }) => session ?? []);
  const health = HEALTH_ORDER.find((one) => sessions.some((session) => session.health === one));
  const calls = sessions.flatMap((session) => session.calls);
  return {
    agentId,
    ...(first && { name: first.name, version: first.version }),
    status: STATUS_ORDER.find((one) => instances.some(({ status }) => status === one)) ?? 'absent',
    ...(health && { health }),
    toolCount: tools.length,
    ...loadOf(calls),
    instances: instances.map(instanceOf),
  };
}

export function detailOf(group: AgentGroup): OpenSentienceAgentDetail {
  return {
    ...summaryOf(group),
    tools: group.tools.map(toolOf),
    calls: group.instances.flatMap(({ instanceId, session }) =>
      (session?.calls ?? []).map((call) => callOf(instanceId, call)),
    ),
    metrics: metricsOf(group.instances).map(({ totalMs, ...metrics }) => {
      const ended = OUTCOMES.reduce((sum, outcome) => sum + metrics[outcome], 0);
      return { ...metrics, meanMs: ended === 0 ? 0 : Math.round(totalMs / ended) };
    }),
  };
}

/** Per tool over all instances, sorted by toolId. */
export function metricsOf(instances: readonly AgentInstance[]): AgentToolMetrics[] {
  const rows = sumByTool(instances.flatMap(({ metrics }) => metrics));
  return rows.sort((a, b) => (a.toolId < b.toolId ? -1 : 1));
}

/** A call that is being cancelled is still with the agent. */
function loadOf(calls: readonly AgentCallView[]): { inFlight: number; queued: number } {
  const queued = calls.filter(({ state }) => state === 'queued').length;
  return { inFlight: calls.length - queued, queued };
}

/** These fields of it, those that it has: what a Core adds to its rows is not told before somebody decides so. */
function told<Of extends object, Name extends keyof Of>(of: Of, names: readonly Name[]) {
  const there = names.filter((name) => of[name] !== undefined);
  return Object.fromEntries(there.map((name) => [name, of[name]])) as Pick<Of, Name>;
}

const PLACE = ['instanceId', 'coreHost', 'socket', 'launch'] as const;

function instanceOf(instance: AgentInstance): OpenSentienceInstance {
  const { status, version, restarts, lastExit, permissions, session } = instance;
  return {
    ...told(instance, PLACE),
    ...{ status, version, restarts },
    ...(permissions && {
      permissions: permissions.map((one) => told(one, ['permission', 'state'])),
    }),
    ...(lastExit && { lastExit: { at: iso(lastExit.atMs), reason: lastExit.reason } }),
    ...(session && { session: sessionOf(session) }),
  };
}

function sessionOf(session: AgentSessionView): OpenSentienceSession {
  const { sdk, connectedAtMs, lastHeartbeatAtMs, calls } = session;
  return {
    ...told(session, ['sessionId', 'agentVersion']),
    ...(sdk && { sdk: told(sdk, ['name', 'version']) }),
    ...told(session, ['transport', 'attached', 'pid', 'state', 'health']),
    connectedAt: iso(connectedAtMs),
    ...(lastHeartbeatAtMs !== undefined && { lastHeartbeatAt: iso(lastHeartbeatAtMs) }),
    ...told(session, ['uptimeMs', 'manifestMatches']),
    ...loadOf(calls),
    ...told(session, ['bytesIn', 'bytesOut']),
  };
}

function callOf(instanceId: string, call: AgentCallView): OpenSentienceCall {
  const { state, sinceMs } = call;
  return {
    ...told(call, ['callId', 'toolId', 'runId']),
    ...{ instanceId, state, since: iso(sinceMs) },
  };
}

const TOOL = ['toolId', 'name', 'description', 'inputSchema', 'outputSchema'] as const;
const LIMITS = ['approval', 'timeoutMs', 'waitMs', 'maxInputBytes', 'maxOutputBytes'] as const;

function toolOf(tool: AgentTool): OpenSentienceTool {
  return {
    ...told(tool, TOOL),
    capabilities: [...tool.capabilities],
    ...told(tool, ['sideEffects', 'requiresDirective']),
    tags: [...tool.tags],
    ...told(tool, LIMITS),
  };
}

export function auditEntryOf(
  entry: AgentAuditEntry & { readonly position: number },
): OpenSentienceAuditEntry {
  return {
    position: entry.position,
    at: iso(entry.atMs),
    ...told(entry, ['instanceId', 'agentId', 'sessionId', 'kind', 'details']),
  };
}
