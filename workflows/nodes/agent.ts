// The agent node (`core.agent`, WorkflowNode.agent): a live manifest invocation (RFC 0077 §B) and what a low
// confidence leads to (RFC 0002 §F, architecture §9). Invocations of a visit follow each other, each in its own
// bracket.
import type { AskedQuestion } from '../../activities/contract.ts';
import { effectiveThreshold, isBelowThreshold } from '../../src/rules/confidence.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../src/rules/json.ts';
import { MAX_ESCALATIONS_PER_VISIT } from '../../src/rules/limits.ts';
import type { PinnedAgent } from '../../src/rules/run-input.ts';
import { emitFact, nodeFailure, type Visit, type NodeKind } from '../context.ts';
import { answersOf, interrupt } from '../interrupts.ts';
import { outputsOf, type AgentDecision, type AgentWork, type Invocation } from '../agent-work.ts';
import { decisionQuestion } from '../questions.ts';
import { answersSchema } from './clarification-gate.ts';
import { closeInvocation, infer, openRatification } from '../invocation.ts';
import { inputsOf } from '../values.ts';

/** State of the node's attempt: the current invocation, and the decision that a human looks at. */
type AgentData = {
  number: number;
  invocation?: Invocation;
  escalated?: { decision: AgentDecision; threshold: number };
  /** Questions that a human has not answered yet. */
  asked?: AskedQuestion[];
  answers?: JsonValue;
  occurrences: { [call: string]: number };
};

function pinned(visit: Visit): PinnedAgent {
  const agent = visit.run.input.agents[visit.node.agent?.agentId ?? ''];
  if (!agent)
    throw nodeFailure('agent_not_found', 'The agent of this node is not pinned in the run.');
  return agent;
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

/**
 * What a human may answer; `decision` of an edit is held to the agent's return schema, which keeps its own root for
 * `#` references by an `$id`.
 */
export function ratificationSchema(returnSchema: JsonObject | undefined): JsonObject {
  const action = (name: string, more: JsonObject, required: string[] = []): JsonObject => ({
    type: 'object',
    required: ['action', ...required],
    properties: { action: { const: name }, ...more },
  });
  return {
    anyOf: [
      action('accept', {}),
      action('reject', { reason: { type: 'string', maxLength: 8192 } }),
      action(
        'edit-accept',
        { decision: returnSchema ? { ...returnSchema, $id: 'decision' } : {} },
        ['decision'],
      ),
      { type: 'object', required: ['answers'], properties: { answers: { type: 'object' } } },
    ],
  };
}

/** Waits for the human; returns the ratified decision, or undefined when the agent goes on with answers. */
async function escalate(visit: Visit, agent: PinnedAgent): Promise<AgentDecision | undefined> {
  const data = dataOf(visit);
  const { invocation, escalated } = data;
  if (!invocation || !escalated) throw nodeFailure('internal_error', 'Nothing is escalated.');
  const { decision, threshold } = escalated;
  const facts = { agentId: agent.agentId, threshold, observed: decision.confidence ?? 0 };
  const { value } = await interrupt(visit, {
    step: `i${invocation.number}.escalation`,
    kind: 'low-confidence',
    data: { ...decisionQuestion(agent.agentId), ...facts, decision: decision.decision },
    resumeSchema: ratificationSchema(invocation.returnSchema),
    timeoutMs: visit.node.config.escalationTimeoutMs as number | undefined,
    suspended: { reason: 'low-confidence', ...facts },
  });
  const answer = isJsonObject(value) ? value : {};
  if (answer.action === 'reject') {
    const reason =
      typeof answer.reason === 'string' ? answer.reason : 'A human rejected the decision.';
    throw nodeFailure('escalation_rejected', reason);
  }
  if (answer.action === undefined) {
    data.answers = answersOf(value);
    return undefined;
  }
  const edited = answer.action === 'edit-accept' ? (answer.decision ?? null) : decision.decision;
  return {
    decision: edited,
    reasoning: decision.reasoning,
    schemaValidated: decision.schemaValidated,
  };
}

function workOf(visit: Visit, agent: PinnedAgent): AgentWork {
  const data = dataOf(visit);
  const { number, answers, invocation, occurrences } = data;
  const resume =
    answers === undefined || !invocation
      ? undefined
      : { transcript: invocation.transcript, answers };
  return {
    visit,
    agent,
    number,
    task: inputsOf(visit),
    resume,
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

/** Notes an escalation in the frame, as noteQuestions does. */
function noteEscalation(work: AgentWork, decision: AgentDecision, threshold: number): void {
  const { visit } = work;
  countRound(visit);
  closeInvocation(work, 'escalated', decision);
  dataOf(visit).escalated = { decision, threshold };
}

function completed(decision: AgentDecision): { kind: 'completed'; outputs: JsonObject } {
  return { kind: 'completed', outputs: outputsOf(decision) };
}

export const agent: NodeKind = async (visit) => {
  const manifest = pinned(visit);
  for (;;) {
    const data = dataOf(visit);
    if (data.asked) await ask(visit, manifest);
    if (!data.escalated) {
      const work = workOf(visit, manifest);
      const concluded = await infer(work);
      if (concluded.kind === 'asking') {
        noteQuestions(work, concluded.questions);
        continue;
      }
      const { decision } = concluded;
      const threshold = lowThreshold(visit, manifest, decision);
      if (threshold === undefined) {
        closeInvocation(work, 'completed', decision);
        return completed(decision);
      }
      noteEscalation(work, decision, threshold);
    }
    const ratified = await escalate(visit, manifest);
    data.number++;
    if (ratified) {
      const work = workOf(visit, manifest);
      openRatification(work, ratified);
      closeInvocation(work, 'completed', ratified);
      return completed(ratified);
    }
    data.escalated = undefined;
  }
};
