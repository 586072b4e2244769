// Turns of a run's orchestrator (RFC 0006): each is stated before anything comes of it, and acts once.
import { SUPERVISOR_NODE_TYPE } from '../src/rules/capabilities.ts';
import type { OrchestratorDecision } from '../schemas/types.generated.ts';
import { emitFact, endRun, nodeFailure, type Run, type Visit } from './context.ts';
import type { Turn } from './frames.ts';

interface LoopLimit {
  readonly kind: 'loop-iterations' | 'dispatch-iterations';
  readonly limit: number;
}

/** States the bound and ends the run (RFC 0058: loop_limit_exceeded); throws what the node fails with. */
function loopLimit(visit: Visit, { kind, limit }: LoopLimit): never {
  const { nodeId } = visit.frame;
  const observed = limit + 1;
  emitFact(visit, 'cap.breached', { step: 'turns', payload: { kind, limit, observed, nodeId } });
  const code = 'loop_limit_exceeded';
  const message = `The run may take ${limit} turns (${kind}).`;
  const details = { kind, limit, iteration: observed };
  endRun(visit.run, { kind: 'failed', error: { code, message, details }, failedNodeId: nodeId });
  throw nodeFailure(code, message, details);
}

/** Throws loop_limit_exceeded where the run has had all the turns that it was started with. */
export function requireTurn(visit: Visit): void {
  const { input, state } = visit.run;
  const { maxLoopIterations: limit } = input.configurable;
  if (typeof limit === 'number' && (state.orchestrator?.turns ?? 0) >= limit)
    loopLimit(visit, { kind: 'loop-iterations', limit });
}

/** Turns so far. */
export function turnsOf({ run }: Visit): number {
  return run.state.orchestrator?.turns ?? 0;
}

/**
 * States what comes next: runOrchestrator.decided, and the next dispatch may act on it. Throws the node failure
 * validation_error where the run has another orchestrator: it has one, as long as it lasts.
 */
export function takeTurn(
  visit: Visit,
  agentId: string,
  turn: { readonly decision: OrchestratorDecision; readonly isRatified: boolean },
): void {
  const { run } = visit;
  const before = run.state.orchestrator;
  if (before && before.agentId !== agentId)
    throw nodeFailure('validation_error', `The orchestrator of this run is ${before.agentId}.`, {
      agentId,
    });
  const { decision, isRatified } = turn;
  const iteration = turnsOf(visit) + 1;
  const key = emitFact(visit, 'runOrchestrator.decided', {
    step: 'turn',
    payload: { agentId, decision, iteration },
  });
  run.state.orchestrator = {
    agentId,
    turns: iteration,
    dispatches: before?.dispatches ?? 0,
    latest: { key, decision, ...(isRatified ? { isRatified } : {}) },
  };
}

/**
 * RFC 0002 §F action 1: of an agent that is not sure, in a run with an orchestrator, it is that one's decision to ask the
 * user: stated as its next turn, which no dispatch acts on, since the agent's own node asks. Returns the fact's key, or
 * undefined where the run has no orchestrator, more than one could be it, or it has had all its turns.
 */
export function stateAskUser(
  visit: Visit,
  { step, prompt }: { readonly step: string; readonly prompt: string },
): string | undefined {
  const { run } = visit;
  const agentId = orchestratorOf(run);
  if (agentId === undefined) return undefined;
  const iteration = turnsOf(visit) + 1;
  const { maxLoopIterations: limit } = run.input.configurable;
  if (typeof limit === 'number' && iteration > limit) return undefined;
  const { orchestrator } = run.state;
  run.state.orchestrator = { dispatches: 0, ...orchestrator, agentId, turns: iteration };
  const decision: OrchestratorDecision = { kind: 'ask-user', prompt };
  return emitFact(visit, 'runOrchestrator.decided', {
    step,
    payload: { agentId, decision, iteration },
  });
}

/** Who has spoken as it, else the one agent that is configured as it. */
function orchestratorOf({ state, input }: Run): string | undefined {
  if (state.orchestrator) return state.orchestrator.agentId;
  const supervisors = input.definition.nodes.filter(
    ({ typeId, disabled }) => typeId === SUPERVISOR_NODE_TYPE && disabled !== true,
  );
  const [agentId, ...others] = new Set(supervisors.map(({ agent }) => agent?.agentId));
  return others.length === 0 ? agentId : undefined;
}

/**
 * The decision that this visit acts on, in each of its attempts the same; it is counted once. Throws the node failures
 * no_pending_decision, and loop_limit_exceeded above `iterationCap` dispatches in the run. An end is no further turn.
 */
export function pendingTurn(
  visit: Visit,
  iterationCap: number | undefined,
): { readonly agentId: string; readonly turn: Turn } {
  const { run, frame } = visit;
  const { orchestrator } = run.state;
  const latest = orchestrator?.latest;
  if (!orchestrator || !latest) throw nothingPending();
  const { takenBy } = latest;
  if (takenBy && (takenBy.nodeId !== frame.nodeId || takenBy.visit !== frame.visit))
    throw nothingPending();
  if (!takenBy && latest.decision.kind !== 'terminate') {
    if (iterationCap !== undefined && orchestrator.dispatches >= iterationCap)
      loopLimit(visit, { kind: 'dispatch-iterations', limit: iterationCap });
    orchestrator.dispatches++;
  }
  latest.takenBy = { nodeId: frame.nodeId, visit: frame.visit };
  return { agentId: orchestrator.agentId, turn: latest };
}

function nothingPending(): Error {
  return nodeFailure('no_pending_decision', 'No decision of an orchestrator waits for this node.');
}
