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
import { printable } from '../words/printable.js';
import { fields, table, type Screen } from './terminal.ts';

export function agentsTable(agents: readonly OpenSentienceAgentSummary[], screen: Screen): string {
  if (agents.length === 0) return 'No agents.';
  return table(
    ['AGENT', 'STATUS', 'HEALTH', 'TOOLS', 'IN FLIGHT', 'QUEUED', 'CORES', 'VERSION'],
    agents.map((agent) => [
      ...[agent.agentId, agent.status, agent.health, agent.toolCount, agent.inFlight],
      ...[agent.queued, agent.instances.length, agent.version],
    ]),
    { screen },
  );
}

export function agentText(agent: OpenSentienceAgentDetail, screen: Screen): string {
  const head = fields(
    [
      ['Agent', agent.agentId],
      ['Name', agent.name],
      ['Version', agent.version],
      ['Status', agent.status],
      ['Health', agent.health],
      ['Calls', `${agent.inFlight} in flight, ${agent.queued} queued`],
    ],
    screen,
  );
  const parts: [string, number, string][] = [
    ['Cores', agent.instances.length, instancesTable(agent.instances, screen)],
    [
      'Permissions',
      permissionsOf(agent.instances).length,
      permissionsTable(agent.instances, screen),
    ],
    ['Sessions', sessionsOf(agent.instances).length, sessionsTable(agent.instances, screen)],
    ['Tools', agent.tools.length, toolsTable(agent.tools, screen)],
    ['Calls', agent.calls.length, callsTable(agent.calls, screen)],
    ['Metrics', agent.metrics.length, metricsTable(agent.metrics, screen)],
  ];
  const shown = parts.filter(([, size]) => size > 0).map(([name, , text]) => `${name}\n${text}`);
  return [head, ...shown].join('\n\n');
}

function instancesTable(instances: readonly OpenSentienceInstance[], screen: Screen): string {
  return table(
    ['CORE', 'HOST', 'LAUNCH', 'STATUS', 'RESTARTS', 'LAST EXIT', 'SOCKET'],
    instances.map((one) => [
      ...[one.instanceId, one.coreHost, one.launch, one.status, one.restarts],
      ...[one.lastExit && `${one.lastExit.at} ${one.lastExit.reason}`, one.socket],
    ]),
    { screen },
  );
}

/** Cores may have different manifests of one agent. */
function permissionsOf(instances: readonly OpenSentienceInstance[]) {
  return instances.flatMap(({ instanceId, permissions = [] }) =>
    permissions.map(({ permission, state }) => ({ instanceId, permission, state })),
  );
}

/** The host enforces none: who acknowledges one gives it. */
function permissionsTable(instances: readonly OpenSentienceInstance[], screen: Screen): string {
  return table(
    ['PERMISSION', 'STATE', 'CORE'],
    permissionsOf(instances).map(({ permission, state, instanceId }) => [
      ...[permission, state === 'refused' ? 'refused' : 'acknowledged, not enforced', instanceId],
    ]),
    { screen },
  );
}

function sessionsOf(instances: readonly OpenSentienceInstance[]) {
  return instances.flatMap(({ session }) => session ?? []);
}

function sessionsTable(instances: readonly OpenSentienceInstance[], screen: Screen): string {
  return table(
    ['SESSION', 'STATE', 'HEALTH', 'PID', 'VIA', 'CONNECTED', 'LAST HEARTBEAT', 'SDK'],
    sessionsOf(instances).map((session) => [
      ...[session.sessionId, session.state, session.health, session.pid],
      ...[session.transport + (session.attached ? ', attached' : ''), session.connectedAt],
      ...[session.lastHeartbeatAt, session.sdk && `${session.sdk.name} ${session.sdk.version}`],
    ]),
    { screen },
  );
}

export function toolsTable(tools: readonly OpenSentienceTool[], screen: Screen): string {
  if (tools.length === 0) return 'No tools.';
  return table(
    ['TOOL', 'APPROVAL', 'EFFECTS', 'DIRECTIVE', 'TIMEOUT', 'DESCRIPTION'],
    tools.map((tool) => [
      ...[tool.toolId, tool.approval, tool.sideEffects ? 'yes' : 'no'],
      ...[tool.requiresDirective ? 'yes' : 'no', `${tool.timeoutMs / 1000} s`, tool.description],
    ]),
    { screen },
  );
}

export function callsTable(calls: readonly OpenSentienceCall[], screen: Screen): string {
  if (calls.length === 0) return 'No calls.';
  return table(
    ['CALL', 'TOOL', 'RUN', 'STATE', 'SINCE', 'CORE'],
    calls.map((one) => [one.callId, one.toolId, one.runId, one.state, one.since, one.instanceId]),
    { screen },
  );
}

function metricsTable(metrics: readonly OpenSentienceToolMetrics[], screen: Screen): string {
  return table(
    ['TOOL', 'CALLS', 'SUCCEEDED', 'FAILED', 'CANCELED', 'UNANSWERED', 'MEAN MS', 'MAX MS'],
    metrics.map((one) => [
      ...[one.toolId, one.calls, one.succeeded, one.failed, one.canceled],
      ...[one.unanswered, one.meanMs, one.maxMs],
    ]),
    { screen },
  );
}

export function auditTable(entries: readonly OpenSentienceAuditEntry[], screen: Screen): string {
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
    { screen },
  );
}

export function attachmentText({
  agentId,
  socket,
  token,
  expiresAt,
}: OpenSentienceAttachment): string {
  // To be copied: never broken.
  const environment = fields(
    [
      ['OPENSENTIENCE_SOCKET', socket],
      ['OPENSENTIENCE_SESSION_TOKEN', token],
    ],
    { colour: false },
  );
  return `Start ${printable(agentId)} with these in its environment, once, before ${printable(expiresAt)}:\n\n${environment}`;
}
