// An agent in this Core as operators see it: what its life says, its session, and its
// metrics, which outlast the sessions that they were counted in.
import { hostname } from 'node:os';
import { MAX_COUNTED_TOOLS, sumByTool, type AgentToolMetrics } from '../rules/tool-metrics.ts';
import type { AgentInstance } from '../ports/agents.ts';
import { permissionsOf, type AgentFolder } from './manifest.ts';
import type { LiveSession } from './parts.ts';

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
    metrics: addMetrics(former, session?.metrics() ?? []),
  };
}

/** What is known of an agent's tools when a session is counted in. */
export function addMetrics(
  former: readonly AgentToolMetrics[],
  more: readonly AgentToolMetrics[],
): readonly AgentToolMetrics[] {
  return sumByTool([...former, ...more]).slice(-MAX_COUNTED_TOOLS);
}
