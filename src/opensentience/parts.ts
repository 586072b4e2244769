// How the parts of Core fit together (seed 004; architecture §5): the server speaks the protocol with whoever connects,
// the gate says who may, the supervisor starts processes and ends them, and Core joins them and takes calls from runs.
import type { JsonObject } from '../rules/json.ts';
import type { Redactor } from '../rules/redaction.ts';
import type { Logger } from '../ports/logger.ts';
import type { AgentAuditEntry, AgentSessionView } from '../ports/agents.ts';
import type { AgentToolMetrics } from '../rules/tool-metrics.ts';
import type { ToolProgress } from '../ports/tools.ts';
import type { ProtocolLimits } from './limits.ts';
import type { Actor, DeclaredTool, ProtocolErrorCode } from './messages.ts';

export interface Hello {
  readonly agentId: string;
  /** The one secret of the protocol: compared, never stored, logged or shown. */
  readonly sessionToken: string;
  readonly manifestHash?: string;
  readonly transport: 'unix' | 'tcp';
}

export type Admission =
  | {
      readonly ok: true;
      /** Started by hand with a minted token. */
      readonly attached: boolean;
      readonly pid?: number;
      readonly manifestMatches?: boolean;
      /** By the operator's manifest; absent: ProtocolLimits.maxInflightRequests. */
      readonly maxInflightRequests?: number;
    }
  | { readonly ok: false; readonly code: ProtocolErrorCode; readonly reason: string };

/** Says who may connect (seed 004 §5). Consumes the token. */
export type Gate = (hello: Hello) => Promise<Admission>;

/** `atMs`, `tenant` and `instanceId` are filled by Core. */
export type AuditNote = Pick<AgentAuditEntry, 'agentId' | 'sessionId' | 'kind' | 'details'>;

/** One call to a connected agent. Ids are those of the protocol (seed 004 §3.1, §4.3.1). */
export interface SessionCall {
  readonly toolId: string;
  readonly input: JsonObject;
  /** By the operator's word, else the tool's: a failure that does not say what became of it leaves it in doubt. */
  readonly sideEffects: boolean;
  readonly timeoutMs: number;
  readonly maxInputBytes: number;
  readonly maxOutputBytes: number;
  readonly idempotencyKey: string;
  /** Stable over retries. `call_id` is new at each sending. */
  readonly requestId: string;
  readonly correlationId: string;
  readonly causationId?: string;
  readonly actor: Actor;
  readonly caller: { readonly type: Actor['type']; readonly id: string };
  readonly context: JsonObject;
  /** For the operator's view. */
  readonly runId: string;
  readonly onProgress?: (progress: ToolProgress) => void;
  /** Aborting sends core.tool.cancel and waits at most `cancelMs` for the agent's word. */
  readonly signal: AbortSignal;
}

/** A connected agent after core.welcome. */
export interface LiveSession {
  readonly sessionId: string;
  readonly agentId: string;
  readonly attached: boolean;
  /** Tools now declared and accepted. */
  tools(): readonly DeclaredTool[];
  /** Ready, not draining, heartbeats in time, health not `unhealthy`. */
  routable(): boolean;
  view(): AgentSessionView;
  metrics(): readonly AgentToolMetrics[];
  /**
   * The agent's output. Throws HostError with `sent` (ToolFailure of src/ports): `sent: false` while the call was not
   * written to the socket. Codes: tool_invalid_input, tool_invalid_output, payload_too_large, tool_failed, tool_timeout,
   * cancelled, tool_not_found, agent_unavailable (connection lost, or never routable), rate_limited (queue full).
   * `details.final` is true when the agent said how it ended and asking again gives the same; `details.happened` is true
   * with it where the tool had its effect and its result cannot be used.
   */
  call(call: SessionCall): Promise<JsonObject>;
  /** core.goodbye, no new calls, waits at most `deadlineMs` for those in flight, then closes. */
  drain(reason: string, deadlineMs: number): Promise<void>;
  close(reason: string): void;
}

export interface SessionEvents {
  opened(session: LiveSession): void;
  /** Accepted tools, health, calls or state changed. */
  changed(session: LiveSession, what: 'tools' | 'health' | 'calls' | 'state'): void;
  closed(session: LiveSession, reason: string): void;
}

export interface AgentServerOptions {
  readonly socketPath: string;
  /** Loopback only; absent: no TCP. 0 takes a free port. */
  readonly tcpPort?: number;
  readonly limits: ProtocolLimits;
  readonly instanceId: string;
  readonly coreVersion: string;
  readonly gate: Gate;
  readonly events: SessionEvents;
  readonly audit: (note: AuditNote) => void;
  /** Takes known secrets out of text and JSON that an agent sent. */
  readonly redactor: Pick<Redactor, 'text' | 'json'>;
  readonly logger: Pick<Logger, 'warn'>;
}

export interface AgentServer {
  readonly socketPath: string;
  /** `127.0.0.1:<port>` when TCP is on. */
  readonly tcpAddress?: string;
  sessions(): readonly LiveSession[];
  /** Drains every session, closes, removes the socket. */
  stop(drainMs: number): Promise<void>;
}

/** What runs see of Core. */
export interface Core {
  readonly instanceId: string;
  /** Agents whose calls are taken here now: they have a routable session, or are given up, and their calls fail. */
  routable(): readonly string[];
  /** Called with every change. Returns the end of the subscription. */
  onRoutable(listener: (agentId: string, routable: boolean) => void): () => void;
  /**
   * Waits at most `connectMs` for a routable session of the agent, then as LiveSession.call. Of an agent that is not started
   * any more it throws tool_failed, never sent and final, with the agent's last exit; where another Core may have that agent,
   * agent_unavailable at once.
   */
  call(agentId: string, call: SessionCall, connectMs: number): Promise<JsonObject>;
  /** No new calls; drains sessions, ends the processes that it started. */
  stop(): Promise<void>;
}
