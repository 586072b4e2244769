// One live invocation (RFC 0077 §B, §E; RFC 0077 §E):
//
//   phase      what happens                                   next
//   prepare    model, prompt, tools, task schema (activity)   infer, or the node fails
//   infer      one model call (activity)                      calls | decided | asking | handing-off | infer (repair) | fails
//   calls      the turn's tool calls, in parallel             infer
//   decided    agent.decided stands in the journal            closed by the node kind
//   asking     clarification.request in place of a decision   closed by the node kind, which asks a human
//   handing-off  the model names its successor                closed by the node kind, which goes on with that agent
//
// The bracket: started is the first agent event, completed the last on every exit; an exit by error is closed by the
// visit's clean-up (src/rules/endings.ts). Phases are data: a later segment enters again where the last one stopped.
import { digestOf, payloadId } from '../src/rules/ids.ts';
import { canonicalJson, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import { verbosityOf } from '../src/rules/run-input.ts';
import {
  MAX_CALLS_PER_TURN,
  MAX_TURNS_PER_INVOCATION,
  SCHEMA_ROUNDS,
  TURN_ARGUMENTS_BYTES,
} from '../src/rules/limits.ts';
import { handoffTargets, type HandoffTarget } from '../src/rules/handoffs.ts';
import type { Handoff, InferTurnOutput } from '../activities/contract.ts';
import {
  stepName,
  type AgentDecision,
  type AgentWork,
  type Concluded,
  type Invocation,
} from './agent-work.ts';
import { emitFact, nodeFailure, tupleOf } from './context.ts';
import { mayStream } from './failures.ts';
import { countHandoff, nextAgent, stateHandoff } from './handoff.ts';
import { seal } from './steps.ts';
import { performCalls } from './tool-calls.ts';
import { bounded } from './values.ts';

/** Runs the invocation up to its decision, which is in the journal then, or its questions. Throws node failures. */
export async function infer(work: AgentWork): Promise<Concluded> {
  const invocation = work.current() ?? (await prepare(work));
  for (;;) {
    switch (invocation.phase) {
      case 'infer':
        await inferTurn(work, invocation);
        break;
      case 'calls':
        invocation.results = await performCalls(work, invocation);
        invocation.calls = [];
        nextTurn(invocation);
        break;
      case 'decided':
        if (!invocation.decision) throw nodeFailure('internal_error', 'A decision is missing.');
        return { kind: 'decided', decision: invocation.decision };
      case 'asking':
        return { kind: 'asking', questions: invocation.questions ?? [] };
      case 'handing-off':
        if (!invocation.handoff) throw nodeFailure('internal_error', 'A handoff is missing.');
        return { kind: 'handing-off', handoff: invocation.handoff };
    }
  }
}

async function prepare(work: AgentWork): Promise<Invocation> {
  const { visit, agent, task, resume, orchestrates } = work;
  const { configurable } = visit.run.input;
  const prepared = await visit.run.steps.run(visit, 'prepareInvocation', {
    step: stepName(work, 'prepare'),
    input: {
      ...{ agent, task, configurable },
      ...(resume ? { resume } : {}),
      ...(orchestrates ? { orchestrates } : {}),
      ...handoffsOf(work),
    },
  });
  if (!prepared.ok) {
    openBracket(work, {});
    throw nodeFailure(prepared.code, prepared.message, prepared.details);
  }
  // Stable within a run: the first choice for a model class holds.
  const model = (visit.run.state.models[agent.modelClass] ??= prepared.model);
  const invocationId = openBracket(work, {
    resolvedModel: model.model,
    resolvedProvider: model.provider,
    toolSurfaceCount: prepared.tools.length,
    memoryBound: false,
  });
  const { prompts, composed, tools, returnSchema, transcript } = prepared;
  const invocation: Invocation = {
    number: work.number,
    invocationId,
    phase: 'infer',
    model,
    prompts,
    composed,
    tools,
    ...(returnSchema ? { returnSchema } : {}),
    transcript,
    turn: 0,
    schemaRounds: 0,
    calls: [],
    results: [],
  };
  statePrompts(work, invocation);
  work.keep(invocation);
  return invocation;
}

function handoffsOf({ visit, agent }: AgentWork): { handoffs?: readonly HandoffTarget[] } {
  const handoffs = handoffTargets(agent, visit.run.input.agents);
  return handoffs.length > 0 ? { handoffs } : {};
}

/** The same at both ends of the bracket. */
function invocationIdOf(work: AgentWork): string {
  const { visit } = work;
  return payloadId('inv', visit.run.input.idSeed, tupleOf(visit, stepName(work, 'invocation')));
}

/** agent.invocation.started: content-free (RFC 0077 §C). Returns the invocationId. */
function openBracket(work: AgentWork, selection: JsonObject): string {
  const { visit, agent, because } = work;
  const invocationId = invocationIdOf(work);
  emitFact(visit, 'agent.invocation.started', {
    step: stepName(work, 'invocation'),
    payload: {
      invocationId,
      agentId: agent.agentId,
      source: visit.run.input.source,
      modelClass: agent.modelClass,
      ...selection,
    },
    because,
  });
  return invocationId;
}

/**
 * RFC 0077 §B step 2 asks for agent.promptResolved of each live invocation, whether or not the host resolves refs
 * (`prompts.supported`, by which RFC 0029 §B gates it elsewhere). prompt.composed goes with it, by hash alone.
 */
function statePrompts(work: AgentWork, { prompts, composed }: Invocation): void {
  const { visit, agent } = work;
  const { nodeId } = visit.frame;
  prompts.forEach(({ kind, chain, resolved }, index) => {
    const entries = chain.map((entry) => ({ ...entry }));
    emitFact(visit, 'agent.promptResolved', {
      step: stepName(work, 'prompt'),
      index,
      payload: { nodeId, kind, agentId: agent.agentId, chain: entries, resolved },
    });
  });
  emitFact(visit, 'prompt.composed', {
    step: stepName(work, 'prompt'),
    payload: { nodeId, ...composed },
  });
}

async function inferTurn(work: AgentWork, invocation: Invocation): Promise<void> {
  const { visit, agent, orchestrates } = work;
  const { configurable } = visit.run.input;
  const name = stepName(work, `t${invocation.turn}.infer`);
  const verbosity = verbosityOf(visit.run.input);
  let output: InferTurnOutput;
  try {
    output = await visit.run.steps.run(visit, 'inferTurn', {
      step: name,
      input: {
        agent,
        model: invocation.model,
        configurable,
        transcript: invocation.transcript,
        tools: invocation.tools.map(({ toolId }) => toolId),
        results: invocation.results,
        ...(invocation.repair === undefined ? {} : { repair: invocation.repair }),
        verbosity,
        ...(orchestrates ? { orchestrates } : {}),
        ...handoffsOf(work),
      },
    });
  } catch (error) {
    if (mayStream(error)) await seal(visit, name, { agentId: agent.agentId, verbosity });
    throw error;
  }
  invocation.transcript = output.transcript;
  invocation.results = [];
  invocation.repair = undefined;
  take(work, invocation, output);
}

function nextTurn(invocation: Invocation): void {
  if (++invocation.turn >= MAX_TURNS_PER_INVOCATION) {
    throw nodeFailure(
      'turn_limit_exceeded',
      `The agent took ${MAX_TURNS_PER_INVOCATION} model turns.`,
    );
  }
  invocation.phase = 'infer';
}

function take(work: AgentWork, invocation: Invocation, output: InferTurnOutput): void {
  switch (output.kind) {
    case 'calls':
      openCalls(work, invocation, output.calls);
      return;
    case 'decision': {
      const { decision, confidence, reasoning, schemaValidated } = output;
      decide(work, invocation, {
        decision,
        ...(confidence === undefined ? {} : { confidence }),
        ...(reasoning === undefined ? {} : { reasoning }),
        schemaValidated,
      });
      return;
    }
    case 'clarification':
      invocation.questions = [...output.questions];
      invocation.phase = 'asking';
      return;
    case 'handoff': {
      const { toAgentId, task, reason } = output;
      invocation.handoff = { toAgentId, task, ...(reason === undefined ? {} : { reason }) };
      invocation.phase = 'handing-off';
      return;
    }
    case 'invalid':
      repairOrFail(work, invocation, output);
      return;
    case 'refusal':
      closeInvocation(work, 'refused');
      throw nodeFailure('envelope_refusal', 'The model provider refused.');
  }
}

/**
 * States all calls of the turn in the model's order, before any of them is performed (run-event-payloads.schema.json).
 */
function openCalls(
  work: AgentWork,
  invocation: Invocation,
  calls: readonly { toolId: string; arguments: JsonValue }[],
): void {
  if (calls.length > MAX_CALLS_PER_TURN) {
    throw nodeFailure(
      'tool_call_limit_exceeded',
      `The model asked for ${calls.length} calls in one turn.`,
    );
  }
  bounded(
    calls.map((call) => call.arguments),
    'what the calls of the turn have as arguments',
    TURN_ARGUMENTS_BYTES,
  );
  const { visit, agent, occurrences } = work;
  const surface = new Map(invocation.tools.map((tool) => [tool.toolId, tool]));
  invocation.calls = calls.map((call, index) => {
    const callStep = stepName(work, `t${invocation.turn}.c${index}`);
    const callId = payloadId('call', visit.run.input.idSeed, tupleOf(visit, callStep));
    const argsHash = digestOf(canonicalJson(call.arguments));
    const count = (name: string): number => {
      const before = occurrences[name] ?? 0;
      occurrences[name] = before + 1;
      return before;
    };
    const occurrence = count(`${call.toolId}|${argsHash}`);
    const tool = surface.get(call.toolId);
    const calledKey = tool
      ? emitFact(visit, 'agent.toolCalled', {
          step: callStep,
          payload: {
            agentId: agent.agentId,
            toolName: call.toolId,
            callId,
            inputs: call.arguments,
            transport: tool.transport,
            // A rehearsal performs no such call.
            ...(tool.sideEffects && !visit.run.input.rehearsal ? { sideEffects: true } : {}),
          },
        })
      : undefined;
    return {
      step: callStep,
      callId,
      toolId: call.toolId,
      arguments: call.arguments,
      argsHash,
      occurrence,
      ...(tool?.runs === undefined ? {} : { place: `${call.toolId}#${count(call.toolId)}` }),
      calledKey,
      rounds: 0,
      ...(tool?.remote?.asks ? { approval: 'needed' as const } : {}),
    };
  });
  invocation.phase = 'calls';
}

function decide(work: AgentWork, invocation: Invocation, decision: AgentDecision): void {
  invocation.decision = decision;
  invocation.phase = 'decided';
  stateDecision(work, decision);
}

function stateDecision(work: AgentWork, { decision, confidence, reasoning }: AgentDecision): void {
  emitFact(work.visit, 'agent.decided', {
    step: stepName(work, 'decision'),
    payload: {
      agentId: work.agent.agentId,
      decision,
      ...(confidence === undefined ? {} : { confidence }),
      ...(reasoning === undefined ? {} : { reasoning }),
    },
  });
}

/** An unusable output is given back to the model at most SCHEMA_ROUNDS times (limits.schemaRounds). */
function repairOrFail(
  work: AgentWork,
  invocation: Invocation,
  output: Pick<Extract<InferTurnOutput, { kind: 'invalid' }>, 'violation' | 'message'>,
): void {
  if (invocation.schemaRounds < SCHEMA_ROUNDS) {
    invocation.schemaRounds++;
    invocation.repair = output.message;
    nextTurn(invocation);
    return;
  }
  const { nodeId } = work.visit.frame;
  emitFact(work.visit, 'cap.breached', {
    step: stepName(work, 'schema'),
    payload: { kind: 'schema', limit: SCHEMA_ROUNDS, observed: SCHEMA_ROUNDS + 1, nodeId },
  });
  emitFact(work.visit, 'envelope.retry.exhausted', {
    step: stepName(work, 'schema'),
    payload: {
      nodeId,
      totalAttempts: SCHEMA_ROUNDS + 1,
      finalReason: output.violation === 'form' ? 'parse-error' : 'schema-violation',
      finalError: output.message,
    },
  });
  throw nodeFailure(UNUSABLE[output.violation], output.message);
}

/** What a node fails with whose agent gives nothing that can be used. */
const UNUSABLE = {
  form: 'agent_output_invalid',
  'return-schema': 'handoff_return_schema_violation',
  'task-schema': 'handoff_task_schema_violation',
} as const;

/** A decision that a human ratified: its own bracket, no model call, no second threshold check (architecture §9). */
export function openRatification(work: AgentWork, decision: AgentDecision): void {
  const { visit } = work;
  const before = (visit.frame.data as { invocation?: Invocation }).invocation;
  const invocationId = openBracket(work, { toolSurfaceCount: 0, memoryBound: false });
  if (before) {
    const invocation: Invocation = {
      ...before,
      number: work.number,
      invocationId,
      phase: 'decided',
      decision,
    };
    statePrompts(work, invocation);
    work.keep(invocation);
  }
  stateDecision(work, decision);
}

/**
 * The final answer as text, whole: what `messages` streams show of an agent (stream-modes.md). A decision comes as the
 * arguments of one output, so there is nothing to show of it before it is valid, and ratified where a human is asked.
 */
function stateAnswer(work: AgentWork, { decision }: AgentDecision): void {
  const { visit } = work;
  const { model } = work.current() ?? {};
  emitFact(visit, 'output.chunk', {
    step: stepName(work, 'answer'),
    payload: {
      nodeId: visit.frame.nodeId,
      runId: visit.run.input.runId,
      chunk: typeof decision === 'string' ? decision : JSON.stringify(decision),
      isLast: true,
      meta: { finishReason: 'stop', ...(model ? { model: model.model } : {}) },
    },
  });
}

/** Last agent event of the invocation. A decision whose edge leads to another agent hands control over first. */
export function closeInvocation(
  work: AgentWork,
  outcome: 'completed' | 'escalated' | 'refused',
  decision?: AgentDecision,
): void {
  if (outcome === 'completed' && decision) stateAnswer(work, decision);
  const to = outcome === 'completed' && decision ? nextAgent(work, decision) : undefined;
  if (to !== undefined) stateHandoff(work, to);
  if (outcome === 'completed') {
    const told = to && { told: to.nodeId };
    work.visit.frame.holder = { agentId: work.agent.agentId, ...told };
  }
  closeBracket(work, to === undefined ? outcome : 'handed-off', decision);
}

/**
 * Control passes to the agent that the model named (RFC 0077 §E: decided, then the handoff, then the bracket closes).
 * Returns the key of the handoff. Throws handoff_limit_exceeded.
 */
export function handOver(work: AgentWork, { toAgentId, task, reason }: Handoff): string {
  countHandoff(work);
  const decision = { action: 'handoff', toAgentId };
  stateDecision(work, { decision, reasoning: reason, schemaValidated: false });
  const key = stateHandoff(work, { agentId: toAgentId, reason, context: task });
  closeBracket(work, 'handed-off');
  return key;
}

function closeBracket(
  work: AgentWork,
  outcome: 'completed' | 'escalated' | 'refused' | 'handed-off',
  decision?: AgentDecision,
): void {
  const { visit, agent } = work;
  emitFact(visit, 'agent.invocation.completed', {
    step: stepName(work, 'invocation'),
    payload: {
      invocationId: invocationIdOf(work),
      agentId: agent.agentId,
      outcome,
      ...(decision?.schemaValidated ? { schemaValidated: true } : {}),
      ...(decision?.confidence === undefined ? {} : { confidence: decision.confidence }),
    },
  });
}
