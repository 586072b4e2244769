// The tool calls of one model turn (RFC 0077 §B step 5): performed in parallel, handed back in CALL order. A call whose
// effect is in doubt, and one that the operator's policy asks a human about, goes to a human (architecture §5), each as
// soon as it needs one; when a call fails, the questions of the others are withdrawn and their runs told to end, since
// nothing comes of them. A call of a tool in an agent process waits on that agent's queue for a worker that has it. What
// a human said stands in the call until it has a result: the next segment goes on with it (architecture §4).
import { isCancellation } from '@temporalio/workflow';
import { actionIn, reasonOf } from '../src/rules/gate-actions.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../src/rules/json.ts';
import type { CallToolInput, CallToolOutput } from '../activities/contract.ts';
import { agentTaskQueue } from '../src/rules/run-input.ts';
import { principalOf } from '../src/rules/subject.ts';
import { stepName, type AgentWork, type Invocation, type ToolCall } from './agent-work.ts';
import {
  endOf,
  newChild,
  refuse,
  requireRoom,
  startChildren,
  type Asked,
  type Wanted,
} from './child-runs.ts';
import { nodeFailure, noteLeft, type Visit } from './context.ts';
import { endedInOutage, failureOf, isUnreached, mayStream, settled } from './failures.ts';
import type { NodeError, Resolution } from './frames.ts';
import { approvalSchema } from './approvals.ts';
import { interrupt, type InterruptRequest } from './interrupts.ts';
import {
  APPROVAL_ACTIONS,
  DOUBT_ACTIONS,
  approvalQuestion,
  doubtQuestion,
  NEW_CALL_ACTIONS,
  newCallQuestion,
  REFUSED_DOUBT_ACTIONS,
  refusedDoubtQuestion,
  rehearsedQuestion,
} from './questions.ts';
import { seal } from './steps.ts';

/** Time beyond the tool's own limit for claim, settle and storage, in ms. */
const CALL_MARGIN_MS = 20_000;
/** Further time for a call that finds its agent gone, and waits for it to come back. */
const RETURN_MARGIN_MS = 30_000;

/** Performs what is not performed yet; returns the results in call order. */
export async function performCalls(
  work: AgentWork,
  invocation: Invocation,
): Promise<{ callId: string; resultHash: string }[]> {
  const { calls } = invocation;
  const failed = failureIn(calls);
  const left = calls.filter(({ resultHash }) => resultHash === undefined);
  if (failed) {
    await endRuns(work, invocation, left);
    throw nodeFailure(failed.code, failed.message, failed.details);
  }
  const runs = startRuns(work, invocation, left);
  const open = left.map((call) => ({ work, invocation, call, runs }));
  const asking = open.filter(({ call }) => isAsking(call));
  await settled([
    ...open.filter((placed) => !asking.includes(placed)).map(perform),
    ...asking.filter(asksAtOnce).map(askInTurn),
  ]);
  // At most one is left.
  for (const placed of open) {
    while (placed.call.resultHash === undefined) await askAndPerform(placed);
  }
  return calls.map(({ callId, resultHash }) => ({ callId, resultHash: resultHash ?? '' }));
}

/**
 * A call had failed when the segment before ended: what the others had started ends before their turn does, and what they
 * had asked is withdrawn.
 */
async function endRuns(
  work: AgentWork,
  invocation: Invocation,
  calls: readonly ToolCall[],
): Promise<void> {
  const { state } = work.visit.run;
  const hasAsked = ({ step }: ToolCall) =>
    Object.values(state.interrupts).some(
      (open) => open.nodeId === work.visit.frame.nodeId && open.step.startsWith(`${step}.`),
    );
  const runs = Promise.resolve();
  const left = calls.map((call) => ({ work, invocation, call, runs }));
  await Promise.allSettled([
    ...left.filter(({ call }) => call.child?.phase === 'running').map(perform),
    ...left.filter(({ call }) => isAsking(call) && hasAsked(call)).map(askInTurn),
  ]);
}

function failureIn(calls: readonly ToolCall[]): NodeError | undefined {
  return calls.find((call) => call.failed)?.failed;
}

function isAsking({ doubt, approval }: ToolCall): boolean {
  return doubt !== undefined || approval === 'needed';
}

/** A call in its place. */
interface Placed {
  readonly work: AgentWork;
  readonly invocation: Invocation;
  readonly call: ToolCall;
  /** The runs of all agents that the turn calls are there. */
  readonly runs: Promise<void>;
}

/** A call that asks while others of its turn have no result does not wait for them. */
function asksAtOnce({ invocation: { calls }, call }: Placed): boolean {
  const isAlone = calls.every((other) => other === call || other.resultHash !== undefined);
  return !isAlone && !failureIn(calls);
}

async function askInTurn(placed: Placed): Promise<void> {
  try {
    await askAndPerform(placed);
  } catch (error) {
    noteFailure(placed.call, error);
    throw error;
  }
}

/** Performs the call; where it comes back without a result, a human is asked, at once or when it is alone. */
async function perform(placed: Placed): Promise<void> {
  const { call } = placed;
  try {
    take(call, await callTool(placed));
    if (isAsking(call) && asksAtOnce(placed)) await askAndPerform(placed);
  } catch (error) {
    noteFailure(call, error);
    throw error;
  }
}

function take(call: ToolCall, output: CallToolOutput): void {
  // It has done its work: what comes now, another question too, stands without it.
  call.resolution = undefined;
  switch (output.kind) {
    case 'returned':
      call.resultHash = output.resultHash;
      return;
    case 'in-doubt':
      call.doubt = {
        effectId: output.effectId,
        reason: output.reason,
        ...(output.epoch === undefined ? {} : { epoch: output.epoch }),
        ...(output.shown ? { shown: output.shown } : {}),
        ...(output.refused ? { refused: true } : {}),
        ...(output.rehearsed ? { rehearsed: true } : {}),
      };
      return;
    case 'needs-approval':
      call.approval = 'needed';
  }
}

/** Notes in the frame that the call failed: whoever waits for a word on another one need not. */
function noteFailure(call: ToolCall, error: unknown): void {
  if (isCancellation(error)) return;
  const { details, ...failure } = failureOf(error) ?? {
    code: 'internal_error',
    message: 'Something went wrong inside the host.',
    details: undefined,
  };
  call.failed = { ...failure, ...(isJsonObject(details) ? { details } : {}) };
}

async function callTool(placed: Placed): Promise<CallToolOutput> {
  const { work, invocation, call } = placed;
  if (call.unreached) return giveUp(placed, call.unreached);
  const { resolution } = call;
  if (runsOf(invocation, call) !== undefined) return callAgent(placed);
  const tool = invocation.tools.find(({ toolId }) => toolId === call.toolId);
  // Only what is performed needs the agent; what is only settled does not.
  const isPerformed = resolution === undefined || resolution.kind === 'perform';
  const remote = isPerformed ? tool?.remote : undefined;
  const name = nameOf(call);
  const timeoutMs = (tool?.timeoutMs ?? 0) + CALL_MARGIN_MS;
  const request = { step: name, input: inputOf(placed, resolution) };
  const { steps } = work.visit.run;
  if (!remote) return steps.run(work.visit, 'callTool', { ...request, timeoutMs });
  const { waitMs } = remote;
  const taskQueue = agentTaskQueue(work.visit.run.input.tenant, remote.agentId);
  try {
    return await steps.run(work.visit, 'callTool', {
      ...request,
      timeoutMs: timeoutMs + RETURN_MARGIN_MS,
      queue: { taskQueue, waitMs },
    });
  } catch (error) {
    if (isUnreached(error)) {
      call.rounds++;
      // During an outage nobody looked for the agent: the call waits again.
      if (endedInOutage(error)) {
        await sealCall(placed, name);
        return callTool(placed);
      }
      call.unreached = { waited: name };
      return giveUp(placed, call.unreached);
    }
    // Whatever the agent declared when the call was prepared: it may stream by now.
    if (mayStream(error)) await sealCall(placed, name);
    throw error;
  }
}

/** The agent whose run this call is. */
function runsOf({ tools }: Invocation, { calledKey, toolId }: ToolCall): string | undefined {
  if (calledKey === undefined) return undefined;
  return tools.find((tool) => tool.toolId === toolId)?.runs;
}

/** What an agent is asked is an object: its members are the run's variables. */
const NO_TASK = 'The arguments of an agent are an object.';

/** The agents that a turn calls are one batch, in the model's order (seed 003 §3.4). */
async function startRuns(
  work: AgentWork,
  invocation: Invocation,
  calls: readonly ToolCall[],
): Promise<void> {
  const { visit } = work;
  const agents = calls.flatMap((call) => {
    const agentId = runsOf(invocation, call);
    return agentId === undefined ? [] : [{ call, agentId }];
  });
  if (agents.length === 0) return;
  const batch = `${stepName(work, `t${invocation.turn}`)}.runs`;
  requireRoom(visit, batch, agents.filter(({ call }) => !call.child).length);
  const wanted = agents.map(({ call, agentId }) => wantedOf(visit, call, agentId));
  await startChildren(visit, batch, wanted);
}

function wantedOf(visit: Visit, call: ToolCall, agentId: string): Wanted {
  const { step, callId, place = step, calledKey = '' } = call;
  const child = (call.child ??= newChild(visit, { step, callId, place }));
  const isTask = isJsonObject(call.arguments);
  if (!isTask) refuse(child, 'tool_invalid_input', NO_TASK);
  const asked: Asked = {
    target: { agentId },
    inputs: isTask ? call.arguments : {},
    cause: 'agent-tool',
    startedBy: calledKey,
    harvest: [],
  };
  return { child, asked };
}

/** The decision of the agent's run, or why there is none, is what the model gets (RFC 0007). */
async function callAgent({ work, invocation, call, runs }: Placed): Promise<CallToolOutput> {
  await runs;
  const { callId, toolId, calledKey = '', child } = call;
  if (!child) throw nodeFailure('internal_error', 'The call has no run.');
  const tool = { agentId: work.agent.agentId, callId, toolId, calledKey };
  const isNeeded = () => failureIn(invocation.calls) === undefined;
  const taken = { harvest: [], tool, isNeeded };
  const { status, resultHash = '' } = await endOf(work.visit, child, taken);
  return { kind: 'returned', status: status === 'completed' ? 'ok' : 'error', resultHash };
}

function nameOf({ step: name, rounds }: ToolCall): string {
  return rounds === 0 ? `${name}.call` : `${name}.call${rounds}`;
}

/** Nobody came: what was shown is sealed, and what is known of the effect is told. A later segment goes on from here. */
async function giveUp(
  placed: Placed,
  unreached: NonNullable<ToolCall['unreached']>,
): Promise<CallToolOutput> {
  const { work, call } = placed;
  if (unreached.waited !== undefined) await sealCall(placed, unreached.waited);
  unreached.waited = undefined;
  const input = inputOf(placed, { kind: 'unreached' });
  const output = await work.visit.run.steps.run(work.visit, 'callTool', {
    step: nameOf(call),
    input,
    timeoutMs: CALL_MARGIN_MS,
  });
  call.unreached = undefined;
  return output;
}

function sealCall({ work }: Placed, step: string): Promise<void> {
  const { agentId } = work.agent;
  return seal(work.visit, step, { agentId, verbosity: 'off', kind: 'tool' });
}

function inputOf(
  { work, invocation, call }: Placed,
  resolution: CallToolInput['resolution'],
): Omit<CallToolInput, 'context'> {
  const { callId, toolId, argsHash, occurrence, approval } = call;
  const { state } = work.visit.run;
  const hasLeftCalls = state.leftTools?.includes(toolId) === true;
  // What was left anywhere is in the record that the branch left.
  const sourceLength =
    work.visit.frame.sourceLength ?? (hasLeftCalls ? state.sourceLength : undefined);
  return {
    agentId: work.agent.agentId,
    call: { callId, toolId, arguments: call.arguments, argsHash, occurrence },
    tools: invocation.tools.map((known) => known.toolId),
    ...(call.calledKey === undefined ? {} : { calledKey: call.calledKey }),
    ...(resolution ? { resolution } : {}),
    ...(typeof approval === 'object' ? { approvedBy: approval.by } : {}),
    ...(work.visit.run.input.rehearsal ? { rehearsal: true } : {}),
    ...(hasLeftCalls ? { hasLeftCalls } : {}),
    ...(sourceLength === undefined ? {} : { sourceLength }),
  };
}

function resolutionOf(
  value: JsonValue,
  { epoch, shown, askedAbout, reason }: Partial<NonNullable<ToolCall['doubt']>> = {},
): NonNullable<CallToolInput['resolution']> {
  const answer: JsonObject = isJsonObject(value) ? value : {};
  if (answer.action === 'edit-accept')
    return { kind: 'happened', outcome: answer.editedArtifactData ?? null };
  if (answer.action !== 'accept') return skipped(answer);
  return {
    kind: 'perform',
    ...(epoch === undefined ? {} : { epoch }),
    ...(shown ? { shown } : {}),
    ...(askedAbout !== undefined && reason !== undefined ? { asked: reason, askedAbout } : {}),
  };
}

/** The agent is given the reason. */
function skipped(
  answer: JsonObject,
): Extract<CallToolInput['resolution'], { readonly kind: 'skip' }> {
  const reason = reasonOf(answer);
  return { kind: 'skip', ...(reason === undefined ? {} : { reason }) };
}

function askAndPerform(placed: Placed): Promise<void> {
  return placed.call.doubt ? askAboutDoubt(placed) : askForApproval(placed);
}

function ask({ work, invocation, call }: Placed, request: InterruptRequest): Promise<Resolution> {
  return interrupt(work.visit, {
    ...request,
    ...(call.calledKey === undefined ? {} : { because: call.calledKey }),
    withdrawnBy: () => failureIn(invocation.calls),
  });
}

function questionAbout(doubt: ToolCall['doubt']) {
  if (doubt?.rehearsed) return { ask: rehearsedQuestion, actions: REFUSED_DOUBT_ACTIONS };
  if (doubt?.refused) return { ask: refusedDoubtQuestion, actions: REFUSED_DOUBT_ACTIONS };
  // Without a row in the ledger it is about an earlier call: nothing has come of this one.
  if (doubt?.epoch === undefined) return { ask: newCallQuestion, actions: NEW_CALL_ACTIONS };
  return { ask: doubtQuestion, actions: DOUBT_ACTIONS };
}

async function askAboutDoubt(placed: Placed): Promise<void> {
  const { call } = placed;
  const { doubt } = call;
  const question = questionAbout(doubt);
  const { value, isRecorded } = await ask(placed, {
    step: `${call.step}.doubt${call.rounds}`,
    kind: 'approval',
    mayRepeat: true,
    // A doubt without a row in the ledger is about an earlier call: this one was not made.
    ...(doubt?.epoch === undefined ? { suspended: { callId: call.callId } } : {}),
    data: {
      artifactId: doubt?.effectId ?? call.callId,
      artifactType: doubt?.rehearsed ? 'rehearsed-call' : 'effect-in-doubt',
      ...question.ask(call.toolId, doubt?.reason ?? ''),
      artifactData: { toolId: call.toolId, callId: call.callId, arguments: call.arguments },
    },
    resumeSchema: approvalSchema(question.actions),
  });
  call.rounds++;
  call.doubt = undefined;
  const word = resolutionOf(value, doubt);
  // It was said to another run: the call goes by what is known of it here.
  call.resolution = word.kind === 'perform' && isRecorded ? undefined : word;
  if (word.kind === 'skip' && !doubt?.rehearsed) noteLeft(placed.work.visit.run, [call.toolId]);
  await perform(placed);
}

async function askForApproval(placed: Placed): Promise<void> {
  const { work, call } = placed;
  const { value, resolvedBy } = await ask(placed, {
    step: `${call.step}.approval${call.rounds}`,
    kind: 'approval',
    suspended: { callId: call.callId },
    data: {
      artifactId: call.callId,
      artifactType: 'tool-call',
      ...approvalQuestion(work.agent.agentId, call.toolId),
      artifactData: { toolId: call.toolId, callId: call.callId, arguments: call.arguments },
    },
    resumeSchema: approvalSchema(APPROVAL_ACTIONS),
  });
  call.rounds++;
  const isAccepted = actionIn(value) === 'accept';
  call.approval = isAccepted ? { by: `human:${principalOf(resolvedBy)}` } : undefined;
  call.resolution = isAccepted
    ? undefined
    : { ...skipped(isJsonObject(value) ? value : {}), isRefusal: true };
  await perform(placed);
}
