// Answers of the host about agents as a human reads them.
import type {
  OpenSentienceAgentDetail,
  OpenSentienceAgentSummary,
  OpenSentienceAttachment,
  OpenSentienceAuditEntry,
  OpenSentienceCall,
  OpenSentienceInstance,
  OpenSentienceTool,
  OpenSentienceToolMetrics,
} from '../../schemas/types.generated.ts';
import { fields, table } from './terminal.ts';

export function agentsTable(agents: readonly OpenSentienceAgentSummary[]): string {
  if (agents.length === 0) return 'No agents.';
  return table(
    ['AGENT', 'STATUS', 'HEALTH', 'TOOLS', 'IN FLIGHT', 'QUEUED', 'CORES', 'VERSION'],
    agents.map((agent) => [
      ...[agent.agentId, agent.status, agent.health, agent.toolCount, agent.inFlight],
      ...[agent.queued, agent.instances.length, agent.version],
    ]),
  );
}

export function agentText(agent: OpenSentienceAgentDetail): string {
  const head = fields([
    ['Agent', agent.agentId],
    ['Name', agent.name],
    ['Version', agent.version],
    ['Status', agent.status],
    ['Health', agent.health],
    ['Calls', `${agent.inFlight} in flight, ${agent.queued} queued`],
  ]);
  const parts: [string, number, string][] = [
    ['Cores', agent.instances.length, instancesTable(agent.instances)],
    ['Permissions', permissionsOf(agent.instances).length, permissionsTable(agent.instances)],
    ['Sessions', sessionsOf(agent.instances).length, sessionsTable(agent.instances)],
    ['Tools', agent.tools.length, toolsTable(agent.tools)],
    ['Calls', agent.calls.length, callsTable(agent.calls)],
    ['Metrics', agent.metrics.length, metricsTable(agent.metrics)],
  ];
  const shown = parts.filter(([, size]) => size > 0).map(([name, , text]) => `${name}\n${text}`);
  return [head, ...shown].join('\n\n');
}

function instancesTable(instances: readonly OpenSentienceInstance[]): string {
  return table(
    ['CORE', 'HOST', 'LAUNCH', 'STATUS', 'RESTARTS', 'LAST EXIT', 'SOCKET'],
    instances.map((one) => [
      ...[one.instanceId, one.coreHost, one.launch, one.status, one.restarts],
      ...[one.lastExit && `${one.lastExit.at} ${one.lastExit.reason}`, one.socket],
    ]),
  );
}

/** Cores may have different manifests of one agent. */
function permissionsOf(instances: readonly OpenSentienceInstance[]) {
  return instances.flatMap(({ instanceId, permissions = [] }) =>
    permissions.map(({ permission, state }) => ({ instanceId, permission, state })),
  );
}

/** The host enforces none: who acknowledges one gives it. */
function permissionsTable(instances: readonly OpenSentienceInstance[]): string {
  return table(
    ['PERMISSION', 'STATE', 'CORE'],
    permissionsOf(instances).map(({ permission, state, instanceId }) => [
      ...[permission, state === 'refused' ? 'refused' : 'acknowledged, not enforced', instanceId],
    ]),
  );
}

function sessionsOf(instances: readonly OpenSentienceInstance[]) {
  return instances.flatMap(({ session }) => session ?? []);
}

function sessionsTable(instances: readonly OpenSentienceInstance[]): string {
  return table(
    ['SESSION', 'STATE', 'HEALTH', 'PID', 'VIA', 'CONNECTED', 'LAST HEARTBEAT', 'SDK'],
    sessionsOf(instances).map((session) => [
      ...[session.sessionId, session.state, session.health, session.pid],
      ...[session.transport + (session.attached ? ', attached' : ''), session.connectedAt],
      ...[session.lastHeartbeatAt, session.sdk && `${session.sdk.name} ${session.sdk.version}`],
    ]),
  );
}

export function toolsTable(tools: readonly OpenSentienceTool[]): string {
  if (tools.length === 0) return 'No tools.';
  return table(
    ['TOOL', 'APPROVAL', 'EFFECTS', 'DIRECTIVE', 'TIMEOUT', 'DESCRIPTION'],
    tools.map((tool) => [
      ...[tool.toolId, tool.approval, tool.sideEffects ? 'yes' : 'no'],
      ...[tool.requiresDirective ? 'yes' : 'no', `${tool.timeoutMs / 1000} s`, tool.description],
    ]),
  );
}

export function callsTable(calls: readonly OpenSentienceCall[]): string {
  if (calls.length === 0) return 'No calls.';
  return table(
    ['CALL', 'TOOL', 'RUN', 'STATE', 'SINCE', 'CORE'],
    calls.map((one) => [one.callId, one.toolId, one.runId, one.state, one.since, one.instanceId]),
  );
}

function metricsTable(metrics: readonly OpenSentienceToolMetrics[]): string {
  return table(
    ['TOOL', 'CALLS', 'SUCCEEDED', 'FAILED', 'CANCELED', 'UNANSWERED', 'MEAN MS', 'MAX MS'],
    metrics.map((one) => [
      ...[one.toolId, one.calls, one.succeeded, one.failed, one.canceled],
      ...[one.unanswered, one.meanMs, one.maxMs],
    ]),
  );
}

export function auditTable(entries: readonly OpenSentienceAuditEntry[]): string {
  if (entries.length === 0) return 'No entries.';
  return table(
    ['TIME', 'KIND', 'AGENT', 'SESSION', 'DETAILS'],
    entries.map(({ at, kind, agentId, sessionId, details }) => [
      ...[at, kind, agentId, sessionId],
      Object.entries(details)
        .map(
          ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
        )
        .join(' '),
    ]),
  );
}

export function attachmentText({
  agentId,
  socket,
  token,
  expiresAt,
}: OpenSentienceAttachment): string {
  const environment = fields([
    ['OPENSENTIENCE_SOCKET', socket],
    ['OPENSENTIENCE_SESSION_TOKEN', token],
  ]);
  return `Start ${agentId} with these in its environment, once, before ${expiresAt}:\n\n${environment}`;
}
