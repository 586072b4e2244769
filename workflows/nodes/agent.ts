// The agent node (`core.agent`, WorkflowNode.agent): a live manifest invocation (RFC 0077 §B) and what a low
// confidence leads to (RFC 0002 §F, architecture §9). Invocations of a visit follow each other, each in its own
// bracket.
import type { AskedQuestion, Handoff, Orchestrates } from '../../activities/contract.ts';
import { SUPERVISOR_NODE_TYPE } from '../../src/rules/capabilities.ts';
import { effectiveThreshold, isBelowThreshold } from '../../src/rules/confidence.ts';
import type { JsonValue } from '../../src/rules/json.ts';
import { MAX_ESCALATIONS_PER_VISIT } from '../../src/rules/limits.ts';
import type { PinnedAgent } from '../../src/rules/run-input.ts';
import type { SupervisorConfig } from '../../schemas/types.generated.ts';
import { emitFact, nodeFailure, type Visit, type NodeKind } from '../context.ts';
import { answersOf, interrupt } from '../interrupts.ts';
import {
  outputsOf,
  stepName,
  type AgentDecision,
  type AgentWork,
  type Invocation,
} from '../agent-work.ts';
import { decisionQuestion } from '../questions.ts';
import { ratified } from '../ratification.ts';
import { stateAskUser } from '../turns.ts';
import { answersSchema } from '../../src/rules/answer-schemas.ts';
import { closeInvocation, handOver, infer, openRatification } from '../invocation.ts';
import { inputsOf } from '../values.ts';

/** State of the node's attempt: the current invocation, and the decision that a human looks at. */
type AgentData = {
  number: number;
  invocation?: Invocation;
  escalated?: { decision: AgentDecision; threshold: number; because?: string };
  /** Questions that a human has not answered yet. */
  asked?: AskedQuestion[];
  answers?: JsonValue;
  occurrences: { [call: string]: number };
  /** Who decides now, where control passed on: its task, and the fact that it did. */
  successor?: { agentId: string; task: JsonValue; because: string };
};

/** Who decides now: the agent of the node, or the one that control passed to. */
function pinned(visit: Visit): PinnedAgent {
  const { successor } = dataOf(visit);
  const agent = visit.run.input.agents[successor?.agentId ?? visit.node.agent?.agentId ?? ''];
  if (!agent)
    throw nodeFailure('agent_not_found', 'The agent of this node is not pinned in the run.');
  return agent;
}

/** Of a node whose agent says what comes next in the run. */
function orchestratesOf({ node }: Visit): Orchestrates | undefined {
  if (node.typeId !== SUPERVISOR_NODE_TYPE) return undefined;
  const { workerIds } = node.config as SupervisorConfig;
  return workerIds ? { workerIds } : {};
}

function dataOf(visit: Visit): AgentData {
  const { frame } = visit;
  if (frame.data.number === undefined) frame.data = { number: 0, occurrences: {} };
  return frame.data as unknown as AgentData;
}

/** Threshold to look at, or undefined when the decision stands (architecture §9: exactly one reaction). */
function lowThreshold(
  visit: Visit,
  agent: PinnedAgent,
  { confidence }: AgentDecision,
): number | undefined {
  const { configurable, policy } = visit.run.input;
  const threshold = effectiveThreshold(configurable.escalationThreshold, agent.confidenceThreshold);
  if (confidence === undefined || !isBelowThreshold(confidence, threshold)) return undefined;
  if (policy.escalation) return threshold;
  emitFact(visit, 'cap.breached', {
    step: `i${dataOf(visit).number}.suppressed`,
    payload: {
      kind: 'confidence-escalation-suppressed',
      limit: threshold,
      observed: confidence,
      nodeId: visit.frame.nodeId,
    },
  });
  return undefined;
}

/** Waits for the human; returns the ratified decision, or undefined when the agent goes on with answers. */
async function escalate(visit: Visit, agent: PinnedAgent): Promise<AgentDecision | undefined> {
  const data = dataOf(visit);
  const { invocation, escalated } = data;
  if (!invocation || !escalated) throw nodeFailure('internal_error', 'Nothing is escalated.');
  const { decision, threshold, because } = escalated;
  const answer = await ratified(visit, {
    step: `i${invocation.number}.escalation`,
    agentId: agent.agentId,
    threshold,
    decision: decision.decision,
    confidence: decision.confidence,
    ...(invocation.returnSchema ? { returnSchema: invocation.returnSchema } : {}),
    orchestrates: orchestratesOf(visit) !== undefined,
    ...(because === undefined ? {} : { because }),
  });
  if ('answers' in answer) {
    data.answers = answer.answers;
    return undefined;
  }
  const { reasoning, schemaValidated } = decision;
  return { decision: answer.decision, reasoning, schemaValidated };
}

function workOf(visit: Visit, agent: PinnedAgent): AgentWork {
  const data = dataOf(visit);
  const { number, answers, invocation, occurrences, successor } = data;
  const orchestrates = orchestratesOf(visit);
  const resume =
    answers === undefined || !invocation
      ? undefined
      : { transcript: invocation.transcript, answers };
  return {
    visit,
    agent,
    number,
    task: successor ? successor.task : inputsOf(visit),
    resume,
    // Only the first of its brackets: the next ones begin with what a human said.
    ...(successor && !invocation ? { because: successor.because } : {}),
    ...(orchestrates ? { orchestrates } : {}),
    occurrences,
    keep: (next) => (data.invocation = next),
    current: () => (data.invocation?.number === number ? data.invocation : undefined),
  };
}

/** A human is asked so often in a visit about decisions and for answers (limits.clarificationRounds); about calls besides. */
function countRound({ frame }: Visit): void {
  if (frame.escalations >= MAX_ESCALATIONS_PER_VISIT) {
    throw nodeFailure(
      'escalation_limit',
      `The node escalated ${MAX_ESCALATIONS_PER_VISIT} times already.`,
    );
  }
  frame.escalations++;
}

/** Notes what is asked in the frame; the bracket closes before anybody is asked (RFC 0077 §B step 7). */
function noteQuestions(work: AgentWork, questions: AskedQuestion[]): void {
  const { visit } = work;
  const limit = MAX_ESCALATIONS_PER_VISIT;
  if (visit.frame.escalations >= limit) {
    emitFact(visit, 'cap.breached', {
      step: `i${work.number}.clarification`,
      payload: { kind: 'clarification', limit, observed: limit + 1, nodeId: visit.frame.nodeId },
    });
  }
  countRound(visit);
  closeInvocation(work, 'escalated');
  const data = dataOf(visit);
  data.asked = questions;
  // They stand once in what a segment carries on.
  if (data.invocation) data.invocation.questions = undefined;
}

/** The other agent decides in the place of this one, with a conversation of its own. */
function passOn(work: AgentWork, handoff: Handoff): void {
  const because = handOver(work, handoff);
  const data = dataOf(work.visit);
  const { toAgentId: agentId, task } = handoff;
  data.successor = { agentId, task, because };
  data.invocation = undefined;
  data.answers = undefined;
  data.number++;
}

/** Waits for the answers to the agent's own questions; it goes on with them. */
async function ask(visit: Visit, agent: PinnedAgent): Promise<void> {
  const data = dataOf(visit);
  const { invocation, asked } = data;
  if (!invocation || !asked) throw nodeFailure('internal_error', 'Nothing is asked.');
  const { value } = await interrupt(visit, {
    step: `i${invocation.number}.clarification`,
    kind: 'clarification',
    data: { title: `${agent.agentId} asks`, agentId: agent.agentId, questions: asked },
    resumeSchema: answersSchema(asked),
    timeoutMs: visit.node.config.escalationTimeoutMs as number | undefined,
  });
  data.answers = answersOf(value);
  data.asked = undefined;
  data.number++;
}

/** An orchestrator asks the user for another agent; its own decisions are held instead (CP-1). */
function relayed(work: AgentWork): string | undefined {
  if (work.orchestrates) return undefined;
  const { title } = decisionQuestion(work.agent.agentId);
  return stateAskUser(work.visit, { step: stepName(work, 'ask-user'), prompt: title });
}

/** Notes an escalation in the frame, as noteQuestions does. */
function noteEscalation(work: AgentWork, decision: AgentDecision, threshold: number): void {
  const { visit } = work;
  countRound(visit);
  closeInvocation(work, 'escalated', decision);
  const because = relayed(work);
  dataOf(visit).escalated = { decision, threshold, ...(because === undefined ? {} : { because }) };
}

/** What the agent of the node decided: its own, or what a human made of it. */
export interface Decided {
  readonly decision: AgentDecision;
  readonly isRatified: boolean;
}

/** The invocations of an attempt, up to a decision that stands. Throws node failures. */
export async function decided(visit: Visit): Promise<Decided> {
  for (;;) {
    const data = dataOf(visit);
    const manifest = pinned(visit);
    if (data.asked) await ask(visit, manifest);
    if (!data.escalated) {
      const work = workOf(visit, manifest);
      const concluded = await infer(work);
      if (concluded.kind === 'asking') {
        noteQuestions(work, concluded.questions);
        continue;
      }
      if (concluded.kind === 'handing-off') {
        passOn(work, concluded.handoff);
        continue;
      }
      const { decision } = concluded;
      const threshold = lowThreshold(visit, manifest, decision);
      if (threshold === undefined) {
        closeInvocation(work, 'completed', decision);
        return { decision, isRatified: false };
      }
      noteEscalation(work, decision, threshold);
    }
    const decision = await escalate(visit, manifest);
    data.number++;
    if (decision) {
      const work = workOf(visit, manifest);
      openRatification(work, decision);
      closeInvocation(work, 'completed', decision);
      return { decision, isRatified: true };
    }
    data.escalated = undefined;
  }
}

export const agent: NodeKind = async (visit) => {
  const { decision } = await decided(visit);
  return { kind: 'completed', outputs: outputsOf(decision) };
};
