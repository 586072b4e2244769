// An agent in this Core as operators see it (issue 4, operator's view): what its life says, its session, and its
// metrics, which outlast the sessions that they were counted in.
import { hostname } from 'node:os';
import type { AgentInstance, AgentToolMetrics } from '../ports/agents.ts';
import { permissionsOf, type AgentFolder } from './manifest.ts';
import type { LiveSession } from './parts.ts';

/** Tools of one agent whose former sessions' metrics are kept; tools come and go. */
const MAX_TOOLS = 1_024;

export interface RowParts {
  readonly tenant: string;
  readonly instanceId: string;
  readonly socket: string;
  readonly agent: AgentFolder;
  readonly life: Pick<AgentInstance, 'status' | 'restarts' | 'lastExit'>;
  readonly session?: LiveSession;
  readonly former: readonly AgentToolMetrics[];
}

export function instanceRow(parts: RowParts): AgentInstance {
  const { tenant, instanceId, socket, agent, life, session, former } = parts;
  const { id, name = id, version, launch } = agent.manifest;
  const view = session?.view();
  const permissions = permissionsOf(agent.manifest);
  return {
    tenant,
    agentId: id,
    instanceId,
    coreHost: hostname(),
    socket,
    name,
    version: view?.agentVersion ?? version ?? '0.0.0',
    launch: launch ? 'process' : 'attach',
    ...life,
    ...(permissions.length > 0 ? { permissions } : {}),
    ...(view ? { session: view } : {}),
    metrics: sumMetrics(former, session?.metrics() ?? []),
  };
}

/** By tool, in order of first appearance. */
export function sumMetrics(
  ...parts: readonly (readonly AgentToolMetrics[])[]
): readonly AgentToolMetrics[] {
  const sums = new Map<string, AgentToolMetrics>();
  for (const row of parts.flat()) {
    const sum = sums.get(row.toolId);
    sums.set(row.toolId, sum ? added(sum, row) : row);
  }
  return [...sums.values()].slice(-MAX_TOOLS);
}

function added(a: AgentToolMetrics, b: AgentToolMetrics): AgentToolMetrics {
  return {
    toolId: a.toolId,
    calls: a.calls + b.calls,
    succeeded: a.succeeded + b.succeeded,
    failed: a.failed + b.failed,
    canceled: a.canceled + b.canceled,
    unanswered: a.unanswered + b.unanswered,
    totalMs: a.totalMs + b.totalMs,
    maxMs: Math.max(a.maxMs, b.maxMs),
  };
}
