// core.orchestrator.supervisor (RFC 0006): one decision about what comes next, by the node's agent. It is stated before
// anything comes of it (CO-1), by one agent in the whole run (CO-2). A decision that the agent is less sure of than its
// threshold is held until a human has ratified it (CP-1); until then nothing is stated of it as a turn.
import { effectiveThreshold, isBelowThreshold } from '../../src/rules/confidence.ts';
import { decisionSchema, isPlanned } from '../../src/rules/orchestrator.ts';
import type { OrchestratorDecision, SupervisorConfig } from '../../schemas/types.generated.ts';
import { nodeFailure, type NodeKind, type Visit } from '../context.ts';
import { ratified } from '../ratification.ts';
import { requireTurn, takeTurn, turnsOf } from '../turns.ts';
import { decided } from './agent.ts';

interface Spoken {
  readonly agentId: string;
  readonly decision: OrchestratorDecision;
  readonly isRatified: boolean;
}

export const supervisor: NodeKind = async (visit) => {
  requireTurn(visit);
  const { run, node } = visit;
  const speaks = isPlanned(node, run.input) ? followPlan : askAgent;
  const { agentId, ...turn } = await speaks(visit);
  takeTurn(visit, agentId, turn);
  return { kind: 'completed', outputs: { decision: { ...turn.decision } } };
};

/** What it decided was held to the schema of decisions, and so is what a human made of it. */
async function askAgent(visit: Visit): Promise<Spoken> {
  const { decision, isRatified } = await decided(visit);
  const agentId = visit.node.agent?.agentId ?? '';
  return { agentId, decision: decision.decision as OrchestratorDecision, isRatified };
}

/** Test mode only, in definitions made for tests: the config says what an agent would (conformance/fixtures.md). */
async function followPlan(visit: Visit): Promise<Spoken> {
  const { node, run } = visit;
  const config = node.config as SupervisorConfig;
  const agentId = node.agent?.agentId ?? config.agentId ?? `host:supervisor:${node.id}`;
  const planned = plannedDecision(config, turnsOf(visit));
  const { mockConfidence: confidence } = config;
  const threshold = effectiveThreshold(run.input.configurable.escalationThreshold, undefined);
  if (confidence === undefined || !isBelowThreshold(confidence, threshold))
    return { agentId, decision: planned, isRatified: false };
  const doubted = { step: 'held', agentId, threshold, confidence, decision: planned };
  const returnSchema = decisionSchema(config.workerIds);
  const answer = await ratified(visit, { ...doubted, returnSchema, orchestrates: true });
  if ('answers' in answer)
    throw nodeFailure('validation_error', 'A plan asks nothing: its decision is ratified or not.');
  return { agentId, decision: answer.decision as OrchestratorDecision, isRatified: true };
}

/** Of an empty config: one worker, then the end. Behind the end of a plan comes the end of the run. */
function plannedDecision(config: SupervisorConfig, turns: number): OrchestratorDecision {
  const { mockDispatchPlan, mockDecisions, mockPendingDecision } = config;
  const pending = mockPendingDecision && [mockPendingDecision];
  const plan = (mockDispatchPlan ??
    mockDecisions ??
    pending ??
    DEFAULT_PLAN) as OrchestratorDecision[];
  return plan[turns] ?? { kind: 'terminate' };
}

const DEFAULT_PLAN: readonly OrchestratorDecision[] = [
  { kind: 'next-worker', nextWorkerIds: ['conformance-noop'] },
];
