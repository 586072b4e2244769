// agent.handoff (RFC 0002 §B, RFC 0077 §E): control passes to another agent before the bracket closes, by the model, which
// names an agent that its manifest permits and that goes on in the same node, or by an edge: a decision whose one taken
// edge leads to a node of another agent.
import { MAX_HANDOFFS_PER_VISIT, MAX_PASSED_BY } from '../src/rules/handoffs.ts';
import type { JsonValue } from '../src/rules/json.ts';
import { invokesAgent } from '../src/rules/orchestrator.ts';
import type { WorkflowEdge } from '../schemas/types.generated.ts';
import { holds } from '../src/rules/conditions.ts';
import { emitFact, loopsLeft, nodeFailure, type Run, type Visit } from './context.ts';
import type { Frame, Passing } from './frames.ts';
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
): (Successor & { readonly nodeId: string }) | undefined {
  const { nodes } = visit.run;
  const edge = onlyEdge(visit, decision);
  const target = edge && nodes.get(edge.targetNodeId);
  if (!target?.agent || target.disabled || target.agent.agentId === agent.agentId) return undefined;
  if (!invokesAgent(target)) return undefined;
  return {
    ...{ agentId: target.agent.agentId, nodeId: target.id, reason: edge?.label },
    context: decision.decision,
  };
}

/** The edge by which the run goes on behind the decision, a loop's included, where it is one. */
function onlyEdge({ run, frame }: Visit, decision: AgentDecision): WorkflowEdge | undefined {
  const { graph } = run;
  const scope = { variables: readable(run), outputs: outputsOf(decision) };
  const back = graph.backOut.get(frame.nodeId) ?? [];
  const open = back.filter((edge) => loopsLeft(run, edge) > 0);
  const out = [...(graph.forwardOut.get(frame.nodeId) ?? []), ...open];
  const taken = out.filter((edge) => holds(edge.condition, scope));
  return taken.length === 1 ? taken[0] : undefined;
}

// --- between nodes: what no bracket of an agent states --------------------------------------------------------------
// Who decided in a node, or passed control to one that names no agent, passes it over each edge that is taken. The next
// node that names another agent states it as it begins, for each of them: behind nodes without agents, fan-outs, joins.

/** The edge is taken: whoever held control in the visit passes it over. */
export function passOver(run: Run, edge: WorkflowEdge, frame: Frame): void {
  const passed = holdersOf(run, frame)
    .filter((holder) => holder.told !== edge.targetNodeId)
    .map(({ agentId, reason }) => {
      const why = edge.label ?? reason;
      return { agentId, ...(why === undefined ? {} : { reason: why }) };
    });
  if (passed.length > 0) (run.state.passing ??= {})[edge.id] = passed;
}

function holdersOf(
  { nodes }: Run,
  { nodeId, holder, passedBy = [] }: Frame,
): readonly (Passing & { readonly told?: string })[] {
  const pinned = nodes.get(nodeId)?.agent;
  if (holder) return [holder];
  return pinned ? [{ agentId: pinned.agentId }] : passedBy;
}

/** Who passes control to a visit of the node that begins now, or to one that is skipped: each once. */
export function takeOver({ graph, state }: Run, nodeId: string): Passing[] {
  const { passing } = state;
  if (!passing) return [];
  const byAgent = new Map<string, Passing>();
  for (const { id } of [
    ...(graph.forwardIn.get(nodeId) ?? []),
    ...(graph.backIn.get(nodeId) ?? []),
  ]) {
    for (const passed of passing[id] ?? [])
      if (!byAgent.has(passed.agentId)) byAgent.set(passed.agentId, passed);
    delete passing[id];
  }
  return [...byAgent.values()].slice(0, MAX_PASSED_BY);
}

/** agent.handoff of each other agent that passed control to this visit; at its first start. */
export function stateTakeovers(visit: Visit): void {
  const { node, frame } = visit;
  const { passedBy = [], attempt } = frame;
  const to = node.agent?.agentId;
  if (to === undefined || attempt > 0) return;
  passedBy
    .filter(({ agentId }) => agentId !== to)
    .forEach(({ agentId, reason }, index) => {
      const payload = { fromAgentId: agentId, toAgentId: to };
      emitFact(visit, 'agent.handoff', {
        ...{ step: 'takeover', index },
        payload: { ...payload, ...(reason === undefined ? {} : { reason }) },
      });
    });
}
