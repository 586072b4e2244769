// Every tool that an agent can call, by id: those of this process (`<scope>:<tool-id>`, RFC 0078), and those of
// agent processes (`<agent_id>/<tool_name>`, seed 004 §4.2), which come and go.
import { agentNamed } from '../../rules/children.ts';
import { handoffNamed } from '../../rules/handoffs.ts';
import { HostError } from '../../rules/errors.ts';
import type { Tool, Tools } from '../../ports/tools.ts';
import { isAgentToolId } from '../../rules/ids.ts';
import { compileUserSchema } from '../../wire/user-schema.ts';

const TOOL_ID = /^[A-Za-z0-9_.-]{1,128}:[A-Za-z0-9_./-]{1,128}$/;
/** Longest call of a tool in ms. */
const MAX_TOOL_TIMEOUT_MS = 240_000;

/** Where tools that are not of this process are looked up. */
export type RemoteTools = Pick<Tools, 'find'>;

/** Sorted by toolId. Throws HostError config_invalid when an id, a schema or a timeout is not valid. */
export function createTools(
  registrations: readonly Tool[],
  remote?: RemoteTools,
  agentRuns?: RemoteTools,
): Tools {
  const byId = new Map<string, Tool>();
  for (const tool of registrations) {
    const fault = faultOf(tool) ?? (byId.has(tool.toolId) ? 'is registered twice' : undefined);
    if (fault)
      throw new HostError('config_invalid', { reason: `The tool ${tool.toolId} ${fault}.` });
    byId.set(tool.toolId, tool);
  }
  const sorted = [...byId.values()].sort((a, b) => (a.toolId < b.toolId ? -1 : 1));
  return {
    list: () => sorted,
    async find(tenant, toolIds, startMs) {
      const here = toolIds.flatMap((toolId) => byId.get(toolId) ?? []);
      const elsewhere = toolIds.filter((toolId) => !byId.has(toolId) && isAgentToolId(toolId));
      const found =
        remote && elsewhere.length > 0
          ? await remote.find(tenant, elsewhere, startMs)
          : new Map<string, Tool>();
      const runs = toolIds.filter((toolId) => agentNamed(toolId) !== undefined);
      const agents = agentRuns && runs.length > 0 ? await agentRuns.find(tenant, runs) : [];
      return new Map([...here.map((tool) => [tool.toolId, tool] as const), ...found, ...agents]);
    },
  };
}

function faultOf(tool: Tool): string | undefined {
  if ([agentNamed, handoffNamed].some((named) => named(tool.toolId) !== undefined))
    return 'has an id that names an agent';
  if (!TOOL_ID.test(tool.toolId)) return 'has an id that is not <scope>:<tool-id>';
  if (!(tool.timeoutMs > 0 && tool.timeoutMs <= MAX_TOOL_TIMEOUT_MS)) {
    return `has a timeout outside 1..${MAX_TOOL_TIMEOUT_MS} ms`;
  }
  for (const schema of [tool.inputSchema, tool.outputSchema ?? true]) {
    const compiled = compileUserSchema(schema);
    if (!compiled.ok) return `has a schema that is not valid: ${compiled.errors[0].message}`;
  }
  return undefined;
}
