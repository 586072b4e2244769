// How the world behaves in a generated case: models that think, call, order, ask, refuse and babble, tools that answer,
// fail or are in doubt, humans that answer late, twice, wrongly or never, operators that pause and cancel, workers that die.
// All of it is a function of the case's seed and of the place in the run (draws.ts).
import type {
  CallToolInput,
  CallToolOutput,
  InferTurnInput,
  InferTurnOutput,
  PrepareInvocationInput,
  PrepareInvocationOutput,
  RequestedCall,
  SealBlockInput,
} from '../../../activities/contract.ts';
import { agentNamed } from '../../../src/rules/children.ts';
import { MAX_CALLS_PER_TURN } from '../../../src/rules/limits.ts';
import type { ActivityEvent, StepResult } from '../../../src/rules/journal.ts';
import type { OrchestratorDecision } from '../../../schemas/types.generated.ts';
import { drawsOf, type Draws } from './draws.ts';
import { FAMILY_ACTIVITIES, FORK_CHILDREN } from './family.ts';
import type { ActivityFate, ScheduledActivity, TaskFate } from './execution.ts';
import type { ActivityEnd } from './outcomes.ts';

const SUB_AGENT = 'model.sub';
/** The last is an agent: a call of it is a run. */
const TOOLS = ['core:clock', 'demo:refund', 'remote.agent/search', `agent:${SUB_AGENT}`] as const;
export const WORKERS = ['worker-a', 'worker-b', `agent:${SUB_AGENT}`] as const;
const UNKNOWN_TOOL = 'core:nothing';

const done = <T>(output: T, events: readonly ActivityEvent[] = []): ActivityEnd => ({
  kind: 'completed',
  result: { output, events: [...events] } satisfies StepResult<T>,
});
const failed = (code: string): ActivityEnd => ({ kind: 'failed', code, message: `it is ${code}` });

/** Mostly soon, at times behind every grace and deadline. */
function durationOf(draws: Draws): number {
  return draws.chance(0.08) ? draws.int(2_500, 20_000) : draws.int(1, 400);
}

function prepared(_: PrepareInvocationInput, draws: Draws): ActivityEnd {
  if (draws.chance(0.03)) return failed('internal_error');
  if (draws.chance(0.04))
    return done<PrepareInvocationOutput>({
      ok: false,
      code: 'handoff_task_schema_violation',
      message: 'not such a task',
    });
  return done<PrepareInvocationOutput>({
    ok: true,
    transcript: 't',
    model: { provider: 'scripted', model: 'scripted' },
    prompts: [
      {
        kind: 'system',
        chain: [{ layer: 'agent-intrinsic', applied: true, source: 'prompt:a' }],
        resolved: 'prompt:a',
      },
    ],
    composed: { refs: ['prompt:a'], kind: 'system+user', hash: `sha256:${'0'.repeat(64)}` },
    tools: TOOLS.map((toolId) => ({
      toolId,
      idempotent: true,
      timeoutMs: 1_000,
      transport: 'native',
      ...(toolId.includes('/')
        ? { remote: { agentId: 'remote.agent', waitMs: 5_000, asks: draws.chance(0.3) } }
        : {}),
      ...(agentNamed(toolId) === undefined ? {} : { runs: agentNamed(toolId) }),
    })),
  });
}

function callsOf(draws: Draws): RequestedCall[] {
  const count = draws.chance(0.02) ? MAX_CALLS_PER_TURN + 1 : draws.int(1, 4);
  return Array.from({ length: count }, () => ({
    toolId: draws.chance(0.1) ? UNKNOWN_TOOL : draws.pick(TOOLS),
    // Equal ones too.
    arguments: draws.chance(0.03) ? 'no object' : { n: draws.int(0, 2) },
  }));
}

/** What a model says instead of a decision it can also be. */
function turnOf(
  transcript: string,
  handoffs: InferTurnInput['handoffs'],
  draws: Draws,
): InferTurnOutput {
  const said = draws.int(0, 99);
  if (said < 35) return { transcript, kind: 'calls', calls: callsOf(draws) };
  if (said < 50)
    return {
      transcript,
      kind: 'invalid',
      violation: draws.pick(['form', 'return-schema', 'task-schema']),
      message: 'no JSON',
    };
  if (said < 56)
    return { transcript, kind: 'clarification', questions: [{ id: 'q', question: 'Which?' }] };
  if (said < 59) return { transcript, kind: 'refusal' };
  const [target] = handoffs ?? [];
  if (target && said < 75)
    return { transcript, kind: 'handoff', toAgentId: target.agentId, task: { n: said } };
  return {
    transcript,
    kind: 'decision',
    decision: draws.int(0, 1),
    schemaValidated: draws.chance(0.5),
    ...(draws.chance(0.6) ? { confidence: draws.int(0, 10) / 10 } : {}),
  };
}

/** What an orchestrator says comes next. */
function ordersOf(draws: Draws): OrchestratorDecision {
  const sure = { confidence: draws.pick([1, 0.9, draws.int(0, 10) / 10]) };
  const said = draws.int(0, 99);
  if (said < 65) {
    const names = Array.from({ length: draws.int(1, 4) }, () => draws.pick(WORKERS));
    return { kind: 'next-worker', nextWorkerIds: names as never, ...sure };
  }
  return said < 80
    ? { kind: 'ask-user', prompt: 'Which?' }
    : { kind: 'terminate', ...(draws.chance(0.5) ? sure : {}) };
}

function inferred(
  { agent, context, handoffs, orchestrates, transcript, verbosity }: InferTurnInput,
  draws: Draws,
): ActivityEnd {
  if (draws.chance(0.03)) return failed('model_unavailable');
  if (draws.chance(0.02)) return { kind: 'timed-out' };
  const { nodeId } = context;
  const said = turnOf(`${transcript}.`, handoffs, draws);
  const output =
    said.kind === 'decision' && orchestrates ? { ...said, decision: { ...ordersOf(draws) } } : said;
  const reasoned: ActivityEvent = {
    type: 'agent.reasoned',
    nodeId,
    payload: { agentId: agent.agentId, reasoning: 'because' },
  };
  const usage: ActivityEvent = {
    type: 'provider.usage',
    nodeId,
    payload: { nodeId, provider: 'scripted', model: 'scripted', inputTokens: 1, outputTokens: 1 },
  };
  return done(output, [...(verbosity === 'off' ? [] : [reasoned]), usage]);
}

function called(
  { agentId, call, calledKey, context, resolution }: CallToolInput,
  draws: Draws,
): ActivityEnd {
  if (draws.chance(0.03)) return failed('internal_error');
  if (draws.chance(0.02)) return { kind: 'timed-out' };
  const isSettled = resolution !== undefined && resolution.kind !== 'perform';
  if (calledKey !== undefined && !isSettled && draws.chance(0.08))
    return done<CallToolOutput>({
      kind: 'in-doubt',
      effectId: `eff-${call.callId}`,
      reason: 'the connection broke',
      // Of others an earlier call stands in the way.
      ...(call.occurrence % 2 === 0 ? { epoch: 1 } : {}),
      ...(draws.chance(0.3) ? { refused: true } : {}),
    });
  if (calledKey !== undefined && !isSettled && draws.chance(0.05))
    return done<CallToolOutput>({ kind: 'needs-approval', reason: 'the policy asks' });
  const status: 'ok' | 'error' | 'forbidden' =
    calledKey === undefined ? 'forbidden' : draws.pick<'ok' | 'error'>(['ok', 'ok', 'ok', 'error']);
  const payload = { agentId, toolName: call.toolId, callId: call.callId, status };
  const error = { code: 'tool_failed', message: 'no' };
  const returned: Extract<ActivityEvent, { type: 'agent.toolReturned' }> = {
    type: 'agent.toolReturned',
    nodeId: context.nodeId,
    causedBy: calledKey,
    payload: status === 'ok' ? { ...payload, outcome: 1 } : { ...payload, error },
  };
  return done<CallToolOutput>({ kind: 'returned', status, resultHash: `h:${call.callId}` }, [
    returned,
  ]);
}

function sealed({ agentId, context, kind }: SealBlockInput, draws: Draws): ActivityEnd {
  const hasShown = kind !== 'tool' && draws.chance(0.4);
  const reasoned: ActivityEvent = {
    type: 'agent.reasoned',
    nodeId: context.nodeId,
    payload: { agentId, reasoning: 'bec' },
  };
  return done({ deltas: hasShown ? 1 : 0 }, hasShown ? [reasoned] : []);
}

const ACTIVITIES: Readonly<Record<string, (input: never, draws: Draws) => ActivityEnd>> = {
  prepareInvocation: prepared,
  inferTurn: inferred,
  callTool: called,
  sealBlock: sealed,
};

export const READ_RECORDING = 'readRecording';
/** As the test says (CaseOptions.record). */
export const READ_ANSWERS = 'recordedAnswers';
export const ACTIVITY_NAMES = [
  ...Object.keys(ACTIVITIES),
  ...FAMILY_ACTIVITIES,
  READ_RECORDING,
  READ_ANSWERS,
  FORK_CHILDREN,
];

export function fateOf(seed: string, { activityId, type, input }: ScheduledActivity): ActivityFate {
  const behave = ACTIVITIES[type];
  if (!behave) throw new Error(`nobody performs ${type}`);
  const draws = drawsOf(seed, activityId);
  const afterMs = type === 'sealBlock' ? draws.int(1, 200) : durationOf(draws);
  return { afterMs, end: behave(input as never, draws) };
}

/** Asked to stop, it acknowledges soon, or comes to its end first, or never hears of it. */
export function stopOf(seed: string, activity: ScheduledActivity): ActivityFate | undefined {
  const draws = drawsOf(seed, `stop ${activity.activityId}`);
  if (draws.chance(0.2)) return undefined;
  const { end } = fateOf(seed, activity);
  return draws.chance(0.25)
    ? { afterMs: draws.int(0, 4_000), end }
    : { afterMs: draws.int(0, 2_000), end: { kind: 'cancelled' } };
}

/** A step about children, asked to stop: it acknowledges, or comes to its end. */
export function stopOfStep(
  seed: string,
  { activityId }: ScheduledActivity,
): ActivityFate | undefined {
  const draws = drawsOf(seed, `stop ${activityId}`);
  return draws.chance(0.5) ? undefined : { afterMs: draws.int(0, 500), end: { kind: 'cancelled' } };
}

/** How the n-th workflow task goes. */
export function taskOf(seed: string, task: number): { fate: TaskFate; latencyMs: number } {
  const draws = drawsOf(seed, `task ${task}`);
  const latencyMs = draws.pick([0, 0, 0, 1, draws.int(0, 50), draws.chance(0.1) ? 2_000 : 0]);
  const fate = draws.chance(0.03) ? 'lost' : draws.chance(0.04) ? 'evicted' : 'done';
  return { fate, latencyMs };
}

/** What an operator does of his own accord once the run has had so many workflow tasks. */
export interface Intervention {
  readonly afterTasks: number;
  readonly afterMs: number;
  readonly what:
    'cancel' | 'cancel-request' | 'pause' | 'pause-immediate' | 'resume' | 'stray-answer';
}

export function interventionsOf(seed: string): Intervention[] {
  const draws = drawsOf(seed, 'operator');
  const interventions: Intervention[] = [];
  const later = () => ({
    afterTasks: draws.int(0, 14),
    afterMs: draws.pick([0, 0, draws.int(0, 500)]),
  });
  if (draws.chance(0.25))
    interventions.push({ ...later(), what: draws.pick(['cancel', 'cancel', 'cancel-request']) });
  for (let pauses = draws.pick([0, 0, 0, 1, 2]); pauses > 0; pauses--)
    interventions.push({ ...later(), what: draws.pick(['pause', 'pause-immediate']) });
  if (draws.chance(0.1)) interventions.push({ ...later(), what: 'resume' });
  if (draws.chance(0.15)) interventions.push({ ...later(), what: 'stray-answer' });
  return interventions;
}
