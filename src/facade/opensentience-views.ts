// What operators see of agents (seed 004; design §5): the registry's rows of all Cores, grouped by agent. Pure.
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

const iso = (ms: number): string => new Date(ms).toISOString();

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

// Field by field, so that what a Core adds to its rows is not told before somebody decides so.

function instanceOf(instance: AgentInstance): OpenSentienceInstance {
  const { instanceId, coreHost, socket, launch, status, version, restarts, lastExit, permissions } =
    instance;
  return {
    instanceId,
    coreHost,
    socket,
    launch,
    status,
    version,
    restarts,
    ...(permissions && {
      permissions: permissions.map(({ permission, state }) => ({ permission, state })),
    }),
    ...(lastExit && { lastExit: { at: iso(lastExit.atMs), reason: lastExit.reason } }),
    ...(instance.session && { session: sessionOf(instance.session) }),
  };
}

function sessionOf(session: AgentSessionView): OpenSentienceSession {
  const { sessionId, agentVersion, sdk, transport, attached, pid, state, health } = session;
  const { connectedAtMs, lastHeartbeatAtMs, uptimeMs, manifestMatches, bytesIn, bytesOut } =
    session;
  return {
    sessionId,
    agentVersion,
    ...(sdk && { sdk: { name: sdk.name, version: sdk.version } }),
    transport,
    attached,
    ...(pid !== undefined && { pid }),
    state,
    health,
    connectedAt: iso(connectedAtMs),
    ...(lastHeartbeatAtMs !== undefined && { lastHeartbeatAt: iso(lastHeartbeatAtMs) }),
    ...(uptimeMs !== undefined && { uptimeMs }),
    ...(manifestMatches !== undefined && { manifestMatches }),
    ...loadOf(session.calls),
    bytesIn,
    bytesOut,
  };
}

function callOf(instanceId: string, call: AgentCallView): OpenSentienceCall {
  const { callId, toolId, runId, state, sinceMs } = call;
  return { callId, toolId, runId, instanceId, state, since: iso(sinceMs) };
}

function toolOf(tool: AgentTool): OpenSentienceTool {
  return {
    toolId: tool.toolId,
    name: tool.name,
    description: tool.description,
    inputSchema: tool.inputSchema,
    ...(tool.outputSchema && { outputSchema: tool.outputSchema }),
    capabilities: [...tool.capabilities],
    sideEffects: tool.sideEffects,
    requiresDirective: tool.requiresDirective,
    tags: [...tool.tags],
    approval: tool.approval,
    timeoutMs: tool.timeoutMs,
    waitMs: tool.waitMs,
    maxInputBytes: tool.maxInputBytes,
    maxOutputBytes: tool.maxOutputBytes,
  };
}

export function auditEntryOf(
  entry: AgentAuditEntry & { readonly position: number },
): OpenSentienceAuditEntry {
  const { position, atMs, instanceId, agentId, sessionId, kind, details } = entry;
  return {
    position,
    at: iso(atMs),
    instanceId,
    ...(agentId !== undefined && { agentId }),
    ...(sessionId !== undefined && { sessionId }),
    kind,
    details,
  };
}
