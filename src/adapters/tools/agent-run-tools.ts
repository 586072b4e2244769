// Agents as tools (RFC 0007; seed 003 §3.4): `agent:<agentId>` in an allowlist. What a model sees of one is a tool; a
// call of it is a run of that agent, which workflow code starts: nothing is performed here.
import type { Catalog, CatalogAgent } from '../../ports/catalog.ts';
import type { Tool } from '../../ports/tools.ts';
import { agentNamed } from '../../rules/children.ts';
import { HostError } from '../../rules/errors.ts';
import type { RemoteTools } from './index.ts';

/** Of the activity that starts the run, in ms; the run has a time of its own. */
const START_TIMEOUT_MS = 120_000;
/** What an agent without a task schema takes. */
const ANY_TASK = { type: 'object' };

/** `catalog` is asked when a tool is looked up: agents are loaded behind the tools. */
export function createAgentRunTools(catalog: () => Pick<Catalog, 'agent'>): RemoteTools {
  return {
    async find(tenant, toolIds) {
      const found = toolIds.flatMap((toolId): [string, Tool][] => {
        const agent = catalog().agent(tenant, agentNamed(toolId) ?? '');
        return agent ? [[toolId, toolOf(toolId, agent)]] : [];
      });
      return new Map(found);
    },
  };
}

function toolOf(toolId: string, { manifest, taskSchema }: CatalogAgent): Tool {
  const { agentId, persona, label, description } = manifest;
  return {
    toolId,
    description: description ?? `Asks the agent ${label ?? persona}, and waits for its decision.`,
    inputSchema: taskSchema ?? ANY_TASK,
    idempotent: false,
    timeoutMs: START_TIMEOUT_MS,
    transport: 'native',
    safetyTier: 'write',
    runs: agentId,
    async call() {
      const reason = 'A call of an agent is a run, and no tool of this process.';
      throw Object.assign(new HostError('tool_failed', { reason }), { sent: false });
    },
  };
}
