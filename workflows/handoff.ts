// agent.handoff (RFC 0002 §B, RFC 0077 §E): control passes to another agent before the bracket closes, by the model, which
// names an agent that its manifest permits and that goes on in the same node, or by an edge: a decision whose one taken
// edge leads to a node of another agent.
import { AGENT_NODE_TYPE } from '../src/rules/capabilities.ts';
import { MAX_HANDOFFS_PER_VISIT } from '../src/rules/handoffs.ts';
import type { JsonValue } from '../src/rules/json.ts';
import { holds } from './conditions.ts';
import { emitFact, nodeFailure } from './context.ts';
import { outputsOf, stepName, type AgentDecision, type AgentWork } from './agent-work.ts';
import { readable } from './values.ts';

/** An agent that takes over, why, and with what. */
interface Successor {
  readonly agentId: string;
  readonly reason?: string;
  readonly context?: JsonValue;
}

/** States that control passes; returns the fact's key. */
export function stateHandoff(work: AgentWork, { agentId, reason, context }: Successor): string {
  return emitFact(work.visit, 'agent.handoff', {
    step: stepName(work, 'handoff'),
    payload: {
      fromAgentId: work.agent.agentId,
      toAgentId: agentId,
      ...(reason === undefined ? {} : { reason }),
      ...(context === undefined ? {} : { context }),
    },
  });
}

/** Agents that pass control in a ring end with the node: throws handoff_limit_exceeded. */
export function countHandoff(work: AgentWork): void {
  const { visit } = work;
  const { frame } = visit;
  const limit = MAX_HANDOFFS_PER_VISIT;
  const observed = (frame.handoffs ?? 0) + 1;
  if (observed > limit) {
    emitFact(visit, 'cap.breached', {
      step: stepName(work, 'handoff'),
      payload: { kind: 'handoffs', limit, observed, nodeId: frame.nodeId },
    });
    throw nodeFailure('handoff_limit_exceeded', `Control passed on ${limit} times already.`);
  }
  frame.handoffs = observed;
}

/** The agent that an edge leads to, or undefined: no other agent, or several nodes go on in parallel. */
export function nextAgent(
  { visit, agent }: Pick<AgentWork, 'visit' | 'agent'>,
  decision: AgentDecision,
): Successor | undefined {
  const { run, frame } = visit;
  const scope = { variables: readable(run), outputs: outputsOf(decision) };
  const taken = (run.graph.forwardOut.get(frame.nodeId) ?? []).filter((edge) =>
    holds(edge.condition, scope),
  );
  const edge = taken.length === 1 ? taken[0] : undefined;
  const target = edge && run.nodes.get(edge.targetNodeId);
  if (!target?.agent || target.typeId !== AGENT_NODE_TYPE || target.agent.agentId === agent.agentId)
    return undefined;
  return { agentId: target.agent.agentId, reason: edge?.label };
}
