// The tools of this process by id (`<scope>:<tool-id>`, spec/03 §6.3): what is registered here is all that any agent
// can call.
import { HostError } from '../../core/errors.ts';
import type { Tool, Tools } from '../../ports.ts';
import { compileUserSchema } from '../../wire/user-schema.ts';

const TOOL_ID = /^[A-Za-z0-9_.-]{1,128}[:/][A-Za-z0-9_./-]{1,128}$/;
/** Longest call of a tool in ms. */
export const MAX_TOOL_TIMEOUT_MS = 240_000;

/** Sorted by toolId. Throws HostError config_invalid when an id, a schema or a timeout is not valid. */
export function createTools(registrations: readonly Tool[]): Tools {
  const byId = new Map<string, Tool>();
  for (const tool of registrations) {
    const fault = faultOf(tool) ?? (byId.has(tool.toolId) ? 'is registered twice' : undefined);
    if (fault)
      throw new HostError('config_invalid', { reason: `The tool ${tool.toolId} ${fault}.` });
    byId.set(tool.toolId, tool);
  }
  const sorted = [...byId.values()].sort((a, b) => (a.toolId < b.toolId ? -1 : 1));
  return { list: () => sorted, get: (_tenant, toolId) => byId.get(toolId) };
}

function faultOf(tool: Tool): string | undefined {
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
