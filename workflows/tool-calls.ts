// The tool calls of one model turn (RFC 0077 §B step 5): performed in parallel, handed back in CALL order. A call whose
// effect is in doubt goes to a human, one at a time (design §5).
import { isJsonObject, type JsonObject, type JsonValue } from '../src/core/json.ts';
import type { CallToolInput } from '../activities/contract.ts';
import type { AgentWork, Invocation, ToolCall } from './agent-work.ts';
import { approvalSchema, interrupt } from './interrupts.ts';
import { step } from './step.ts';

/** Time beyond the tool's own limit for claim, settle and storage, in ms. */
const CALL_MARGIN_MS = 20_000;
const DOUBT_ACTIONS = ['accept', 'reject', 'edit-accept'];

/** Performs what is not performed yet; returns the results in call order. */
export async function performCalls(
  work: AgentWork,
  invocation: Invocation,
): Promise<{ callId: string; resultHash: string }[]> {
  const { calls } = invocation;
  const open = calls.filter((call) => call.resultHash === undefined && !call.doubt);
  await settled(open.map((call) => perform({ work, invocation, call })));
  for (const call of calls) {
    while (call.resultHash === undefined) await askAndPerform(work, invocation, call);
  }
  return calls.map(({ callId, resultHash }) => ({ callId, resultHash: resultHash ?? '' }));
}

/** Waits for all, then throws the first error: no call of the turn is left running. */
async function settled(work: readonly Promise<void>[]): Promise<void> {
  const results = await Promise.allSettled(work);
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

/** A call in its place. */
interface Placed {
  readonly work: AgentWork;
  readonly invocation: Invocation;
  readonly call: ToolCall;
}

async function perform(
  { work, invocation, call }: Placed,
  resolution?: CallToolInput['resolution'],
): Promise<void> {
  const tool = invocation.tools.find(({ toolId }) => toolId === call.toolId);
  const { callId, toolId, argsHash, occurrence } = call;
  const output = await step(work.visit, 'callTool', {
    step: call.rounds === 0 ? `${call.step}.call` : `${call.step}.call${call.rounds}`,
    input: {
      agentId: work.agent.agentId,
      call: { callId, toolId, arguments: call.arguments, argsHash, occurrence },
      tools: invocation.tools.map((known) => known.toolId),
      ...(call.calledKey === undefined ? {} : { calledKey: call.calledKey }),
      ...(resolution ? { resolution } : {}),
    },
    timeoutMs: (tool?.timeoutMs ?? 0) + CALL_MARGIN_MS,
  });
  if (output.kind === 'returned') {
    call.resultHash = output.resultHash;
    call.doubt = undefined;
  } else call.doubt = { effectId: output.effectId, reason: output.reason };
}

function resolutionOf(value: JsonValue): NonNullable<CallToolInput['resolution']> {
  const answer: JsonObject = isJsonObject(value) ? value : {};
  if (answer.action === 'edit-accept')
    return { kind: 'happened', outcome: answer.editedArtifactData ?? null };
  return { kind: answer.action === 'accept' ? 'perform' : 'skip' };
}

/** accept: perform it now; edit-accept: it happened, with this outcome; reject: leave it. */
async function askAndPerform(
  work: AgentWork,
  invocation: Invocation,
  call: ToolCall,
): Promise<void> {
  const { doubt } = call;
  const { value } = await interrupt(work.visit, {
    step: `${call.step}.doubt${call.rounds}`,
    kind: 'approval',
    data: {
      artifactId: doubt?.effectId ?? call.callId,
      artifactType: 'effect-in-doubt',
      title: `Did ${call.toolId} happen?`,
      description: doubt?.reason ?? '',
      actions: DOUBT_ACTIONS,
      artifactData: { toolId: call.toolId, callId: call.callId, arguments: call.arguments },
    },
    resumeSchema: approvalSchema(DOUBT_ACTIONS),
  });
  call.rounds++;
  call.doubt = undefined;
  await perform({ work, invocation, call }, resolutionOf(value));
}
