// core.conformance.mock-agent (RFC 0023): states agent.* events as its config has them, without model, tools or bracket:
//
//   reasoning (live deltas, then agent.reasoned) -> calls with their returns -> handoff -> decision -> low confidence
//
// Only in test mode, in definitions made for tests. Each event names the one before it as its cause, a return its call.
import { effectiveThreshold, isBelowThreshold } from '../../src/rules/confidence.ts';
import type { EventType, PayloadOf } from '../../src/rules/events.ts';
import { activityEventKey, activityIdOf, payloadId } from '../../src/rules/ids.ts';
import { isJsonObject, type JsonValue } from '../../src/rules/json.ts';
import { REASONING_TOKEN_LIMIT } from '../../src/rules/limits.ts';
import { BYTES_PER_TOKEN, boundText } from '../../src/rules/tokens.ts';
import type { MockAgentConfig } from '../../schemas/types.generated.ts';
import {
  attemptKey,
  emitFact,
  nodeFailure,
  tupleOf,
  type NodeKind,
  type Visit,
} from '../context.ts';
import { mayStream } from '../failures.ts';
import { verbosityOf } from '../../src/rules/run-input.ts';
import { seal } from '../steps.ts';
import { bounded } from '../values.ts';
import { ratified } from '../ratification.ts';

/** What is said where the config only says that something is. */
const REASONING = 'The agent thinks.';
const DECISION = 'go on';

type Decision = NonNullable<MockAgentConfig['mockDecision']>;

/** An agent at its place, and the key of what it stated last. */
class Teller {
  readonly visit: Visit;
  readonly agentId: string;
  readonly config: MockAgentConfig;
  last: string;

  constructor(visit: Visit) {
    const { node } = visit;
    this.visit = visit;
    this.config = node.config;
    this.agentId = this.config.agentId ?? node.agent?.agentId ?? `host:mock-agent:${node.id}`;
    this.last = attemptKey(visit);
  }

  state<T extends EventType>(type: T, step: string, payload: PayloadOf<T>): void {
    this.last = emitFact(this.visit, type, { step, payload, causedBy: this.last });
  }
}

async function tellReasoning(teller: Teller): Promise<void> {
  const { visit, agentId, config } = teller;
  const { mockReasoning } = config;
  const verbosity = verbosityOf(visit.run.input);
  if (mockReasoning === undefined || verbosity === 'off') return;
  const told = mockReasoning === true ? { summary: REASONING } : mockReasoning;
  const { streamChunks = [], trace, summary } = told;
  if (streamChunks.length === 0) {
    const reasoning = boundText(trace ?? summary, REASONING_TOKEN_LIMIT * BYTES_PER_TOKEN);
    return teller.state('agent.reasoned', 'reasoning', { agentId, reasoning, verbosity });
  }
  const step = 'reasoning';
  try {
    await visit.run.steps.run(visit, 'tellReasoning', {
      step,
      input: { agentId, chunks: streamChunks, verbosity, causedBy: teller.last },
    });
    teller.last = activityEventKey(activityIdOf(tupleOf(visit, step)), 0);
  } catch (error) {
    if (mayStream(error)) await seal(visit, step, { agentId, verbosity });
    throw error;
  }
}

function stateCalls(teller: Teller): void {
  const { visit, agentId, config } = teller;
  (config.mockToolCalls ?? []).forEach((call, index) => {
    const step = `call${index}`;
    const callId = payloadId('call', visit.run.input.idSeed, tupleOf(visit, step));
    const ids = { agentId, toolName: call.toolId, callId };
    const {
      arguments: inputs,
      result,
      error,
      durationMs,
    } = call as {
      [Name in keyof typeof call]: JsonValue;
    };
    bounded([inputs ?? null, result ?? null], 'what a call of the agent holds');
    teller.state('agent.toolCalled', step, { ...ids, ...(inputs === undefined ? {} : { inputs }) });
    const failed = isJsonObject(error)
      ? { code: error.error as string, message: error.message as string }
      : undefined;
    teller.state('agent.toolReturned', step, {
      ...ids,
      ...(failed ? { status: 'error', error: failed } : { status: 'ok', outcome: result ?? null }),
      ...(typeof durationMs === 'number' ? { durationMs } : {}),
    });
  });
}

function stateHandoff(teller: Teller): void {
  const { agentId, config } = teller;
  if (!config.mockHandoff) return;
  const { toAgentId, reason, context } = config.mockHandoff;
  teller.visit.frame.holder = { agentId: toAgentId };
  teller.state('agent.handoff', 'handoff', {
    fromAgentId: agentId,
    toAgentId,
    ...(reason === undefined ? {} : { reason }),
    ...(context === undefined ? {} : { context: bounded(context as JsonValue, 'the context') }),
  });
}

function decisionOf({ mockDecision, mockConfidence }: MockAgentConfig): Decision | undefined {
  if (mockDecision) return mockDecision;
  return mockConfidence === undefined
    ? undefined
    : { decision: DECISION, confidence: mockConfidence };
}

function stateDecision(teller: Teller, step: string, { confidence, reasoning, ...said }: Decision) {
  teller.state('agent.decided', step, {
    agentId: teller.agentId,
    decision: bounded(said.decision as JsonValue, 'the decision'),
    ...(confidence === undefined ? {} : { confidence }),
    ...(reasoning === undefined ? {} : { reasoning }),
  });
}

/** Below the threshold a human ratifies it, or the node fails; what was ratified is stated once more. */
async function escalate(teller: Teller, said: Decision, observed: number): Promise<void> {
  const { visit, agentId } = teller;
  const { configurable, policy, agents } = visit.run.input;
  const { confidenceThreshold } = agents[agentId] ?? {};
  const threshold = effectiveThreshold(configurable.escalationThreshold, confidenceThreshold);
  if (!isBelowThreshold(observed, threshold)) return;
  if (!policy.escalation) {
    const { nodeId } = visit.frame;
    const kind = 'confidence-escalation-suppressed';
    return teller.state('cap.breached', 'suppressed', { kind, limit: threshold, observed, nodeId });
  }
  const decision = said.decision as JsonValue;
  const doubted = { step: 'escalation', agentId, threshold, decision, confidence: observed };
  const answer = await ratified(visit, doubted);
  teller.last = answer.key;
  // There is no model that could think again: answers leave the decision as it is.
  const stands = 'decision' in answer ? answer.decision : decision;
  stateDecision(teller, 'ratified', { decision: stands });
}

export const mockAgent: NodeKind = async (visit) => {
  if (!visit.run.input.testHooks)
    throw nodeFailure('capability_not_provided', 'Agents are scripted so in test mode alone.');
  const teller = new Teller(visit);
  const { data } = visit.frame;
  const decision = decisionOf(teller.config);
  if (data.isStated !== true) {
    await tellReasoning(teller);
    stateCalls(teller);
    stateHandoff(teller);
    if (decision) stateDecision(teller, 'decision', decision);
    data.isStated = true;
  }
  if (decision?.confidence !== undefined) await escalate(teller, decision, decision.confidence);
  return { kind: 'completed', outputs: {} };
};
