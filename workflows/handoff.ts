// agent.handoff (RFC 0002 §B, RFC 0077 §E): an agent's decision whose one taken edge leads to a node of another agent
// passes control to it, before the bracket closes.
import { AGENT_NODE_TYPE } from '../src/rules/capabilities.ts';
import { holds } from './conditions.ts';
import type { Visit } from './context.ts';
import { outputsOf, type AgentDecision } from './agent-work.ts';
import { readable } from './values.ts';

/** The agent that takes over, or undefined: no other agent, or several nodes go on in parallel. */
export function nextAgent(
  visit: Visit,
  decision: AgentDecision,
): { agentId: string; reason?: string } | undefined {
  const { run, frame, node } = visit;
  const scope = { variables: readable(run), outputs: outputsOf(decision) };
  const taken = (run.graph.forwardOut.get(frame.nodeId) ?? []).filter((edge) =>
    holds(edge.condition, scope),
  );
  const edge = taken.length === 1 ? taken[0] : undefined;
  const target = edge && run.nodes.get(edge.targetNodeId);
  if (
    !target?.agent ||
    target.typeId !== AGENT_NODE_TYPE ||
    target.agent.agentId === node.agent?.agentId
  )
    return undefined;
  return { agentId: target.agent.agentId, reason: edge?.label };
}
