// Tools of agent processes as the runs see them (architecture §5; seed 004 §4.3): described from the registry, called
// through Core in the worker that has the agent. A worker without it can describe a tool, and settle a call, but not
// perform it.
import { codeOf } from '../rules/errors.ts';
import { sha256Hex } from '../rules/ids.ts';
import { isJsonObject, type JsonValue } from '../rules/json.ts';
import type { AgentInstance, AgentRegistry, AgentTool } from '../ports/agents.ts';
import type { Tool, ToolCallContext, Tools } from '../ports/tools.ts';
import { Deadline, rest } from '../system/time.ts';
import { callFailure } from './call-failure.ts';
import { DEFAULT_LIMITS } from './limits.ts';
import type { Core, SessionCall } from './parts.ts';

/** Longest wait in ms, inside a call that was taken already, for an agent that just went to come back. */
const CONNECT_MS = 30_000;
/** ms between two looks for an agent that is being started. */
const PROBE_MS = 200;
const COMING = new Set<AgentInstance['status']>(['starting', 'connected', 'backing-off']);
/** ms beyond the agent's own time to end a cancelled call. */
const STOP_MARGIN_MS = 300;

export interface AgentToolsOptions {
  readonly registry: Pick<AgentRegistry, 'tools' | 'instances'>;
  /** Absent where no agents live. */
  readonly core?: Pick<Core, 'call'>;
}

/** Looks tools up as they are registered now. */
export function createAgentTools(options: AgentToolsOptions): Pick<Tools, 'find'> {
  return {
    async find(tenant, toolIds, startMs = 0) {
      const start = new Deadline(startMs);
      for (;;) {
        const known = await options.registry.tools(tenant, toolIds);
        const found = new Map(known.map((tool) => [tool.toolId, toolOf(options, tool)]));
        const missing = toolIds.filter((toolId) => !found.has(toolId));
        if (start.isOver() || !(await anyStarts(options, tenant, missing))) return found;
        await rest(PROBE_MS);
      }
    },
  };
}

/** An agent of one of these tools is on its way: it is known to a Core and has not registered anything there yet. */
async function anyStarts(
  { registry }: AgentToolsOptions,
  tenant: string,
  toolIds: readonly string[],
): Promise<boolean> {
  for (const agentId of new Set(toolIds.map((toolId) => toolId.slice(0, toolId.indexOf('/'))))) {
    const instances = await registry.instances(tenant, agentId);
    if (instances.some(({ status, session }) => COMING.has(status) && !session?.toolIds.length))
      return true;
  }
  return false;
}

function toolOf(options: AgentToolsOptions, declared: AgentTool): Tool {
  const { toolId, agentId, description, inputSchema, outputSchema, capabilities } = declared;
  return {
    toolId,
    description,
    inputSchema,
    ...(outputSchema ? { outputSchema } : {}),
    // Repeats with one idempotency key have one effect, or there is none.
    idempotent: !declared.sideEffects || capabilities.includes('idempotency'),
    timeoutMs: declared.timeoutMs,
    transport: 'native',
    safetyTier: declared.sideEffects ? 'write' : 'read',
    remote: {
      agentId,
      waitMs: declared.waitMs,
      approval: declared.approval,
      streams: capabilities.includes('streaming'),
    },
    stopGraceMs: DEFAULT_LIMITS.cancelMs + STOP_MARGIN_MS,
    call: (input, context) => callAgent(options, { declared, input, context }),
  };
}

async function callAgent(
  { core }: AgentToolsOptions,
  { declared, input, context }: { declared: AgentTool; input: JsonValue; context: ToolCallContext },
): Promise<JsonValue> {
  if (!core) throw callFailure('agent_unavailable', false);
  if (!isJsonObject(input)) {
    const details = {
      reason: "The arguments of an agent's tool are one JSON object.",
      final: true,
    };
    throw callFailure('tool_invalid_input', false, details);
  }
  const { runId, correlationId, nodeId, workflowId, callerAgentId, directive } = context;
  const needsDirective = declared.sideEffects || declared.requiresDirective;
  const call: SessionCall = {
    toolId: declared.toolId,
    input,
    sideEffects: declared.sideEffects,
    timeoutMs: declared.timeoutMs,
    maxInputBytes: declared.maxInputBytes,
    maxOutputBytes: declared.maxOutputBytes,
    idempotencyKey: context.idempotencyKey,
    requestId: uuidOf(`${runId}/${context.callId}`),
    correlationId,
    ...(context.causationId === undefined ? {} : { causationId: context.causationId }),
    actor: { type: 'agent', id: callerAgentId },
    caller: { type: 'agent', id: callerAgentId },
    context: {
      run_id: runId,
      workflow_id: workflowId,
      node_id: nodeId,
      ...(needsDirective && directive !== undefined ? { directive } : {}),
      ui: { title: `${callerAgentId} · ${workflowId}` },
    },
    runId,
    signal: context.signal,
    ...(context.onProgress ? { onProgress: context.onProgress } : {}),
  };
  return core.call(declared.agentId, call, CONNECT_MS).catch((error: unknown) => {
    throw isOutOfTime(error, context.signal) ? callFailure('agent_unavailable', false) : error;
  });
}

/** Its own time was over before the agent was there, or had a place: no fault of the call, which goes on waiting. */
function isOutOfTime(error: unknown, signal: AbortSignal): boolean {
  const isUnsent = (error as { sent?: unknown } | null)?.sent === false;
  return isUnsent && signal.aborted && codeOf(signal.reason) === 'tool_timeout';
}

/** A UUID (version 8, RFC 9562) that is the same for the same text. */
function uuidOf(text: string): string {
  const hex = sha256Hex(text);
  const variant = ((parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}
