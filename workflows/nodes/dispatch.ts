// core.dispatch (RFC 0007, RFC 0022, RFC 0118): does what the orchestrator said last, once. Workers are child runs, one
// after the other or side by side; a question goes to a human; an end ends the run. What an orchestrator is not sure of
// waits for a human's word first (RFC 0039 §A).
import { CONFIDENCE_FLOOR } from '../../src/rules/limits.ts';
import { actionIn, noOf, reasonOf } from '../../src/rules/gate-actions.ts';
import { isJsonObject, type JsonObject } from '../../src/rules/json.ts';
import { isBelowThreshold } from '../../src/rules/confidence.ts';
import { confidenceIn } from '../../src/rules/orchestrator.ts';
import type { DispatchConfig, OrchestratorDecision } from '../../schemas/types.generated.ts';
import { requireRoom } from '../child-runs.ts';
import { emitFact, nodeFailure, type NodeKind, type Visit } from '../context.ts';
import { DEFAULT_JOIN, fanOut, joinOf, type Join, type JoinOutcome } from '../fan-out.ts';
import { failureOf } from '../failures.ts';
import type { Turn } from '../frames.ts';
import { approvalSchema } from '../approvals.ts';
import { answersOf, interrupt } from '../interrupts.ts';
import { TURN_ACTIONS, turnQuestion } from '../questions.ts';
import { pendingTurn } from '../turns.ts';
import {
  failStart,
  finishWorker,
  newWorkers,
  startWorkers,
  type Worker,
  type Workers,
} from '../workers.ts';
import { answersSchema } from '../../src/rules/answer-schemas.ts';

/** State of the node's attempt. */
type DispatchData = {
  /** A copy: the orchestrator may speak again while this is under way. */
  pending?: { agentId: string; turn: Turn };
  /** The human was told that the orchestrator is not sure. */
  asked?: true;
  isRatified?: true;
  workers?: Worker[];
  /** Indexes of workers in the order in which their ends were taken. */
  ended?: number[];
  join?: Join;
};

type NextWorker = Extract<OrchestratorDecision, { kind: 'next-worker' }>;

export const dispatch: NodeKind = async (visit) => {
  const config = visit.node.config as DispatchConfig;
  const data = visit.frame.data as DispatchData;
  const { agentId, turn } = (data.pending ??= pendingTurn(visit, config.iterationCap));
  await requireConfidence(visit, agentId, turn);
  const { decision } = turn;
  switch (decision.kind) {
    case 'next-worker':
      return { kind: 'completed', outputs: await runWorkers(visit, turn, decision) };
    case 'ask-user':
      return { kind: 'completed', outputs: { answers: await askUser(visit, decision.prompt) } };
    case 'terminate': {
      const { reason, successCriteria } = decision;
      return {
        kind: 'completed',
        outputs: {
          ...(reason === undefined ? {} : { reason }),
          ...(successCriteria ? { successCriteria: successCriteria } : {}),
        },
        endsRun: true,
      };
    }
  }
};

/** Below the floor nothing is dispatched, and nothing ended, before a human agreed. Throws escalation_rejected. */
async function requireConfidence(visit: Visit, agentId: string, turn: Turn): Promise<void> {
  const data = visit.frame.data as DispatchData;
  const { decision, isRatified } = turn;
  const confidence = confidenceIn(decision);
  if (isRatified || data.isRatified || confidence === undefined) return;
  if (!isBelowThreshold(confidence, CONFIDENCE_FLOOR)) return;
  const step = 'confidence';
  if (!data.asked) noteDoubt(visit, turn, { confidence, step });
  const { value } = await interrupt(visit, {
    step,
    kind: 'approval',
    data: {
      artifactId: visit.frame.nodeId,
      artifactType: 'orchestrator-decision',
      ...turnQuestion(agentId),
      artifactData: { ...decision },
    },
    resumeSchema: approvalSchema(TURN_ACTIONS),
  });
  if (actionIn(value) !== 'accept') {
    const reason = isJsonObject(value) ? reasonOf(value) : undefined;
    throw nodeFailure(
      'escalation_rejected',
      noOf('A human rejected what the orchestrator decided', reason),
    );
  }
  data.isRatified = true;
}

function noteDoubt(
  visit: Visit,
  { key, decision }: Turn,
  { confidence, step }: { readonly confidence: number; readonly step: string },
): void {
  const [workerId] = decision.kind === 'next-worker' ? decision.nextWorkerIds : [];
  emitFact(visit, 'core.workflowChain.confidence-escalated', {
    step,
    payload: {
      confidence,
      floor: CONFIDENCE_FLOOR,
      escalationKind: 'escalate',
      parentRunId: visit.run.input.runId,
      ...(workerId === undefined ? {} : { workerId }),
      originalDecision: decision,
    },
    causedBy: key,
  });
  (visit.frame.data as DispatchData).asked = true;
}

const ANSWER = 'answer';

async function askUser(visit: Visit, question: string): Promise<JsonObject> {
  const questions = [{ id: ANSWER, question }];
  const { value } = await interrupt(visit, {
    step: 'ask',
    kind: 'clarification',
    data: { questions },
    resumeSchema: answersSchema(questions),
  });
  return answersOf(value);
}

async function runWorkers(visit: Visit, turn: Turn, decision: NextWorker): Promise<JsonObject> {
  const config = visit.node.config as DispatchConfig;
  const data = visit.frame.data as DispatchData;
  const { nextWorkerIds } = decision;
  const count = nextWorkerIds.length;
  if (config.fanOutPolicy === 'reject' && count > 1)
    throw nodeFailure('fan_out_unsupported', 'This node starts one worker at a time.', { count });
  const isParallel = config.fanOutPolicy === 'parallel' && count > 1;
  if (!data.workers) {
    requireRoom(visit, 'workers', count);
    data.workers = newWorkers(nextWorkerIds, turn.key);
    data.ended = [];
    if (isParallel) stateFanOut(visit, turn, count);
  }
  const { workers } = data;
  const ended = (data.ended ??= []);
  const all: Workers = {
    ...{ visit, config, workers },
    ended: (worker) => ended.push(workers.indexOf(worker)),
  };
  if (isParallel) await joined(all, turn, data);
  else await inTurn(all);
  return outputsOf(workers, ended, data.join);
}

/** One after the other: what one gives, the next is given. */
async function inTurn(all: Workers): Promise<void> {
  for (const worker of all.workers) {
    await startWorkers(all, worker.step, [worker]).catch((error: unknown) => {
      const failure = failureOf(error);
      if (failure) failStart(all, [worker], failure);
      throw error;
    });
    await finishWorker(all, worker);
  }
}

function stateFanOut(visit: Visit, { key }: Turn, childCount: number): void {
  const { maxConcurrency, joinPolicy = DEFAULT_JOIN } = visit.node.config as DispatchConfig;
  emitFact(visit, 'core.dispatch.fanOut', {
    step: 'fan-out',
    payload: {
      fanOutPolicy: 'parallel',
      childCount,
      ...(maxConcurrency === undefined ? {} : { maxConcurrency }),
      joinMode: joinPolicy.mode,
    },
    causedBy: key,
  });
}

async function joined(all: Workers, { key }: Turn, data: DispatchData): Promise<void> {
  const { visit, config, workers } = all;
  const { joinPolicy = DEFAULT_JOIN } = config;
  const join = (data.join ??= {});
  const endedSoFar = () => (data.ended ?? []).flatMap((index) => workers[index] ?? []);
  const decide = (as?: JoinOutcome) => {
    const soFar = endedSoFar();
    const outcome = as ?? joinOf(joinPolicy, { ended: soFar, total: workers.length });
    if (join.outcome || !outcome) return;
    join.outcome = outcome;
    join.decidedAfter = soFar.length;
  };
  // In the breath in which one ends: what ends in the same task comes behind it.
  const ending = (worker: Worker) => {
    all.ended(worker);
    decide();
  };
  await fanOut({ all: { ...all, ended: ending }, join, decide });
  const ended = endedSoFar();
  const count = (status: Worker['status']) => ended.filter((one) => one.status === status).length;
  const { outcome = 'failed', fault, decidedAfter } = join;
  emitFact(visit, 'core.dispatch.join', {
    step: 'join',
    payload: {
      joinOutcome: outcome,
      completedCount: count('completed'),
      failedCount: count('failed'),
      cancelledCount: count('cancelled'),
      mergeOrder: ended
        .slice(0, decidedAfter)
        .flatMap(({ child }) => (child?.phase === 'running' ? [child.runId] : [])),
    },
    causedBy: key,
  });
  if (fault) throw nodeFailure(fault.code, fault.message);
  if (outcome === 'failed' && joinPolicy.onChildFailure !== 'absorb')
    throw nodeFailure('child_failed', 'The workers did not come to what their join asks for.', {
      mode: joinPolicy.mode,
    });
}

/** Of the last one by its own names; of all in the order of the decision. */
function outputsOf(
  workers: readonly Worker[],
  ended: readonly number[],
  join: Join | undefined,
): JsonObject {
  const last = workers[ended.at(-1) ?? -1];
  return {
    ...(last ? outputOf(last) : {}),
    children: workers.map(outputOf),
    ...(join?.outcome ? { joinOutcome: join.outcome } : {}),
  };
}

/** Ids of workers are in the decision; a hundred of them and what they failed with would be too much here. */
function outputOf({ child, status, code }: Worker): JsonObject {
  return {
    ...(child && !child.refusal ? { childRunId: child.runId } : {}),
    ...(status === undefined ? {} : { childStatus: status }),
    ...(code === undefined ? {} : { errorCode: code }),
  };
}
