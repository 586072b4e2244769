// Ports of agents as processes (seed 004; architecture §5): what sessions declare, what operators see, and the registry
// that every process of a deployment shares.
import type { JsonObject } from '../rules/json.ts';
import type { AgentToolMetrics } from '../rules/tool-metrics.ts';

/** What the run has to know of a tool that lives in an agent process. */
export interface RemoteTool {
  readonly agentId: string;
  /** Longest wait in ms for a process that has the agent (schedule-to-start). */
  readonly waitMs: number;
  /** `ask`: a human decides about each call; `deny`: it is in no surface. By the operator's policy. */
  readonly approval: 'none' | 'ask' | 'deny';
  /** It may send progress while it works. */
  readonly streams: boolean;
}

/** A tool as an agent's session declared it, with what the operator's manifest says of it. */
export interface AgentTool {
  /** `<agentId>/<name>`. */
  readonly toolId: string;
  readonly agentId: string;
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly capabilities: readonly string[];
  readonly sideEffects: boolean;
  readonly requiresDirective: boolean;
  readonly tags: readonly string[];
  readonly approval: RemoteTool['approval'];
  readonly timeoutMs: number;
  readonly waitMs: number;
  readonly maxInputBytes: number;
  readonly maxOutputBytes: number;
}

export interface AgentCallView {
  readonly callId: string;
  readonly toolId: string;
  readonly runId: string;
  readonly state: 'queued' | 'in-flight' | 'canceling';
  readonly sinceMs: number;
}

export interface AgentSessionView {
  readonly sessionId: string;
  readonly agentVersion: string;
  readonly sdk?: { readonly name: string; readonly version: string };
  readonly transport: 'unix' | 'tcp';
  readonly attached: boolean;
  readonly pid?: number;
  readonly state: 'ready' | 'draining';
  readonly health: 'ok' | 'degraded' | 'unhealthy' | 'silent';
  readonly connectedAtMs: number;
  readonly lastHeartbeatAtMs?: number;
  readonly uptimeMs?: number;
  readonly manifestMatches?: boolean;
  readonly toolIds: readonly string[];
  readonly calls: readonly AgentCallView[];
  readonly bytesIn: number;
  readonly bytesOut: number;
}

/** The host enforces no permission: the operator acknowledges it by name, or the agent is refused. */
export interface AgentPermission {
  readonly permission: string;
  readonly state: 'acknowledged' | 'refused';
}

/** One agent in one Core: what operators see. Content-free: no arguments, no results. */
export interface AgentInstance {
  readonly tenant: string;
  readonly agentId: string;
  /** Core's process. */
  readonly instanceId: string;
  readonly coreHost: string;
  /** Address for agents that are started by hand. */
  readonly socket: string;
  readonly name: string;
  readonly version: string;
  readonly launch: 'process' | 'attach';
  readonly status:
    | 'starting'
    | 'connected'
    | 'waiting'
    | 'backing-off'
    | 'crash-loop'
    | 'draining'
    | 'stopped'
    /** It asks for a permission that the operator has not acknowledged. */
    | 'refused';
  /** What the manifest asks for, and the operator's word on it. Absent: it asks for nothing. */
  readonly permissions?: readonly AgentPermission[];
  readonly restarts: number;
  readonly lastExit?: { readonly atMs: number; readonly reason: string };
  readonly session?: AgentSessionView;
  readonly metrics: readonly AgentToolMetrics[];
}

export interface AgentAuditEntry {
  readonly atMs: number;
  readonly tenant: string;
  readonly instanceId: string;
  /** Absent while the other side has not said, in a valid hello, who it is. */
  readonly agentId?: string;
  readonly sessionId?: string;
  /** What happened, e.g. `session.opened`, `frame.too_large`, `call.late_result`. */
  readonly kind: string;
  /** Ids, sizes, counts and codes; never content. */
  readonly details: JsonObject;
}

/** Tools, instances, audit and attach tokens of agents, shared by every process of the deployment. */
/** What an agent declared, and the version that saveTools gave it: a later declaration has a higher one. */
export interface DeclaredTools {
  readonly tools: readonly AgentTool[];
  readonly version: number;
}

export interface AgentRegistry {
  /** Replaces the agent's tools: the last session that declared any holds. Returns the version of what it declared. */
  saveTools(tenant: string, agentId: string, tools: readonly AgentTool[]): Promise<number>;
  /** Puts a declaration back that the database has lost: where one of an older version, or none, stands. */
  keepTools(tenant: string, agentId: string, declared: DeclaredTools): Promise<void>;
  tools(tenant: string, toolIds?: readonly string[]): Promise<readonly AgentTool[]>;
  /** Renews the lease of the instance's row, too. */
  saveInstance(instance: AgentInstance, leaseMs: number): Promise<void>;
  /** Of agents whose Core is alive (lease running), sorted by agentId, then instanceId. */
  instances(tenant: string, agentId?: string): Promise<readonly AgentInstance[]>;
  removeInstances(instanceId: string): Promise<void>;
  appendAudit(entries: readonly AgentAuditEntry[]): Promise<void>;
  /** Newest first; `before` is the `position` of the last one seen. */
  audit(
    tenant: string,
    query: { agentId?: string; before?: number; limit: number },
  ): Promise<readonly (AgentAuditEntry & { readonly position: number })[]>;
  /**
   * Keeps the hash of a one-time token for an agent that is started by hand; returns when it expires, in ms since the
   * epoch, by the clock that all processes share.
   */
  mintToken(
    token: { readonly tenant: string; readonly agentId: string; readonly tokenHash: string },
    lifeMs: number,
  ): Promise<number>;
  /** Consumes it, once, for the agent it was made for; false when unknown, used or expired. */
  consumeToken(token: {
    readonly tenant: string;
    readonly agentId: string;
    readonly tokenHash: string;
  }): Promise<boolean>;
  /** Deletes audit that is `keptMs` old, and tokens and instances whose time has been over for so long; returns how many. */
  expire(keptMs: number): Promise<number>;
}
