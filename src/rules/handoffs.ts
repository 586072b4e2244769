// Handoffs (RFC 0002 §B, RFC 0077 §E): whom an agent may pass control to, by its allowlist. What the target decides is
// what the node comes to.
import type { PinnedAgent } from './run-input.ts';

/** Prefix by which an allowlist names an agent that control may pass to. */
const HANDOFF_PREFIX = 'handoff:';

/** Handoffs within one visit of a node: agents that pass control in a ring end here (`cap.breached` kind `handoffs`). */
export const MAX_HANDOFFS_PER_VISIT = 8;
/** Agents that a run's own agents, and those in turn, may pass control to: each is pinned in the run. */
export const MAX_HANDOFF_AGENTS = 64;

/** Agents of whom a node is told that they pass control to it: those over its first edges. */
export const MAX_PASSED_BY = 8;

/** An agent that control may pass to, as it is pinned in the run. JSON: it travels in history. */
export type HandoffTarget = Pick<PinnedAgent, 'agentId' | 'manifestHash'>;

/** The agent that this entry of an allowlist lets control pass to. */
export function handoffNamed(name: string): string | undefined {
  return name.startsWith(HANDOFF_PREFIX) ? name.slice(HANDOFF_PREFIX.length) : undefined;
}

export function handoffToolId(agentId: string): string {
  return `${HANDOFF_PREFIX}${agentId}`;
}

/** Whom the agent may pass control to, itself excepted; whether there are such agents is not asked. */
export function handoffsOf({
  agentId,
  toolAllowlist,
}: Pick<PinnedAgent, 'agentId' | 'toolAllowlist'>): readonly string[] {
  const named = toolAllowlist.flatMap((name) => handoffNamed(name) ?? []);
  return [...new Set(named)].filter((target) => target !== agentId);
}

/** Those that are there of whom the agent may pass control to. */
export function handoffTargets(
  agent: PinnedAgent,
  agents: Readonly<Record<string, PinnedAgent>>,
): readonly HandoffTarget[] {
  return handoffsOf(agent).flatMap((name) => {
    const target = Object.hasOwn(agents, name) ? agents[name] : undefined;
    return target ? [{ agentId: target.agentId, manifestHash: target.manifestHash }] : [];
  });
}

/** Whom control may pass to from these agents, and from those in turn, each once. `find` gives an agent by its id. */
export function successorsOf(
  invoked: readonly PinnedAgent[],
  find: (agentId: string) => PinnedAgent | undefined,
): readonly PinnedAgent[] {
  const found = new Map<string, PinnedAgent>();
  const left = [...invoked];
  for (let agent = left.pop(); agent; agent = left.pop()) {
    for (const agentId of handoffsOf(agent)) {
      const next = found.has(agentId) ? undefined : find(agentId);
      if (!next) continue;
      found.set(agentId, next);
      left.push(next);
    }
  }
  return [...found.values()];
}
