// The runs of the overhead: definitions whose nodes schedule exactly the wanted activities, and doubles of the
// activities that answer at once with results as large as real ones. The bare workflow gets the same doubles.
import { createHash, randomUUID } from 'node:crypto';
import type {
  Activities,
  CallToolInput,
  InferTurnOutput,
  PrepareInvocationOutput,
  RequestedCall,
  StepContext,
} from '../activities/contract.ts';
import type { ActivityEvent, StepResult } from '../src/rules/journal.ts';
import {
  INTERRUPT_TIMEOUT_MS,
  MAX_NODE_EXECUTIONS,
  MAX_RUN_DURATION_MS,
} from '../src/rules/limits.ts';
import { subjectOf } from '../src/rules/subject.ts';
import { ERA, REVISION } from '../src/rules/versions.ts';
import { TRANSLATE_VERSION, type PinnedAgent, type RunInput } from '../src/rules/run-input.ts';
import type { WorkflowDefinition, WorkflowEdge, WorkflowNode } from '../schemas/types.generated.ts';

export const BENCH_AGENT = 'local.bench.worker';
export const BENCH_TOOL = 'core:json.query';
const DOCUMENT = { order: { id: 'A-1007', item: 'kettle', totalCents: 4900 } };
const REASONING =
  'The order is known and its total is within the policy. Before I decide I look at one more field of it, so that ' +
  'the decision names the right amount and nobody has to ask again.';

/** What the model of a case says, turn by turn: so many calls, something unusable, or the decision. */
type Turn = { readonly calls: number } | 'unusable' | 'decision';

export interface BenchCase {
  readonly name: string;
  readonly activities: number;
  readonly parallel: boolean;
  readonly definition: WorkflowDefinition;
  /** Empty: the agent's task is refused, and that is the only activity of its node. */
  readonly turns: readonly Turn[];
}

function node(id: string, typeId: string, more: Partial<WorkflowNode> = {}): WorkflowNode {
  return { id, typeId, name: id, position: { x: 0, y: 0 }, config: {}, inputs: {}, ...more };
}

function edge(sourceNodeId: string, targetNodeId: string, more: Partial<WorkflowEdge> = {}) {
  return { id: `${sourceNodeId}-${targetNodeId}`, sourceNodeId, targetNodeId, ...more };
}

function definitionOf(
  id: string,
  nodes: readonly WorkflowNode[],
  edges: readonly WorkflowEdge[],
): WorkflowDefinition {
  return {
    id,
    name: id,
    version: '1.0',
    nodes: [...nodes] as WorkflowDefinition['nodes'],
    edges: [...edges],
    triggers: [],
    variables: [],
    metadata: {},
    settings: {},
  };
}

/** start -> middle nodes side by side -> end, which takes whatever comes. */
export function between(id: string, middle: readonly WorkflowNode[]): WorkflowDefinition {
  return definitionOf(
    id,
    [node('start', 'core.start'), ...middle, node('end', 'core.end')],
    middle.flatMap((one) => [
      edge('start', one.id),
      edge(one.id, 'end', { triggerRule: 'all_complete' }),
    ]),
  );
}

/** start -> node -> node -> … -> end. */
export function chained(id: string, middle: readonly WorkflowNode[]): WorkflowDefinition {
  const nodes = [node('start', 'core.start'), ...middle, node('end', 'core.end')];
  const edges = nodes.slice(1).map((one, index) => edge(nodes[index]?.id ?? '', one.id));
  return definitionOf(id, nodes, edges);
}

export function agentNode(id: string): WorkflowNode {
  return node(id, 'core.agent', { agent: { agentId: BENCH_AGENT } });
}

export function humanGate(id: string): WorkflowNode {
  return node(id, 'core.approvalGate', {
    config: { title: 'May I?', actions: ['accept', 'reject'] },
  });
}

export function noop(id: string): WorkflowNode {
  return node(id, 'core.noop');
}

function sequential(name: string, turns: readonly Turn[]): BenchCase {
  const calls = turns.filter((turn) => typeof turn === 'object').length;
  return {
    name,
    activities: 1 + turns.length + calls,
    parallel: false,
    definition: between(name, [agentNode('agent')]),
    turns,
  };
}

const CALL: Turn = { calls: 1 };
const BRANCHES = 10;
const CALLS_AT_ONCE = 10;

export const ONE = sequential('sequential-1', []);
const FIVE = sequential('sequential-5', [CALL, 'unusable', 'decision']);
export const TWENTY = sequential('sequential-20', [...Array<Turn>(9).fill(CALL), 'decision']);
/** Ten branches of one activity each. */
const TEN_BRANCHES: BenchCase = {
  name: 'parallel-10',
  activities: BRANCHES,
  parallel: true,
  definition: between(
    'parallel-10',
    Array.from({ length: BRANCHES }, (_, index) => agentNode(`agent-${index}`)),
  ),
  turns: [],
};
/** One model turn that asks for ten calls: ten of its thirteen activities are parallel. */
const TEN_CALLS: BenchCase = {
  name: 'calls-10',
  activities: 3 + CALLS_AT_ONCE,
  parallel: true,
  definition: between('calls-10', [agentNode('agent')]),
  turns: [{ calls: CALLS_AT_ONCE }, 'decision'],
};

export const CASES: readonly BenchCase[] = [ONE, FIVE, TWENTY, TEN_BRANCHES, TEN_CALLS];

export function pinnedAgent(manifestHash?: string): PinnedAgent {
  const byName = `sha256:${createHash('sha256').update(BENCH_AGENT).digest('hex')}`;
  return {
    agentId: BENCH_AGENT,
    manifestHash: manifestHash ?? byName,
    modelClass: 'general',
    toolAllowlist: [BENCH_TOOL],
  };
}

/** A run as the facade would start it. */
export function runInputOf(definition: WorkflowDefinition, agent = pinnedAgent()): RunInput {
  const runId = `run-${randomUUID().replaceAll('-', '')}`;
  return {
    runId,
    tenant: 'default',
    subject: subjectOf('api-key', 'default', 'api-key:default'),
    idSeed: runId,
    translateVersion: TRANSLATE_VERSION,
    header: { sessionId: `session-${runId}`, correlationId: runId },
    definition,
    source: 'workflow-node',
    variables: {},
    configurable: {},
    agents: { [agent.agentId]: agent },
    limits: {
      maxNodeExecutions: MAX_NODE_EXECUTIONS,
      maxRunDurationMs: MAX_RUN_DURATION_MS,
      interruptTimeoutMs: INTERRUPT_TIMEOUT_MS,
    },
    policy: { escalation: true, verbosity: 'summary' },
    era: ERA,
    revision: REVISION,
  };
}

/** What a double was asked. */
export type Asked = (type: keyof Activities, context: StepContext, inputBytes: number) => void;

const hashOf = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`;
const TRANSCRIPT = hashOf('transcript');

const PREPARED: PrepareInvocationOutput = {
  ok: true,
  transcript: TRANSCRIPT,
  model: { provider: 'scripted', model: 'scripted-1' },
  prompts: [
    {
      kind: 'system',
      chain: [{ layer: 'agent-intrinsic', applied: true, source: BENCH_AGENT }],
      resolved: null,
    },
  ],
  composed: { refs: [], kind: 'system-only', hash: TRANSCRIPT },
  tools: [{ toolId: BENCH_TOOL, idempotent: true, timeoutMs: 5_000, transport: 'native' }],
};
const REFUSED: PrepareInvocationOutput = {
  ok: false,
  code: 'handoff_task_schema_violation',
  message: "The task does not match the agent's task schema: / must have an orderId.",
};

function turnIn(activityId: string): number {
  return Number(/\.t(\d+)\./.exec(decodeURIComponent(activityId))?.[1] ?? 0);
}

function said(turn: Turn): InferTurnOutput {
  const transcript = TRANSCRIPT;
  if (turn === 'unusable')
    return { transcript, kind: 'invalid', violation: 'form', message: 'This is not a decision.' };
  if (turn === 'decision') {
    return {
      transcript,
      kind: 'decision',
      decision: { action: 'refund', orderId: 'A-1007', amountCents: 4900 },
      confidence: 0.95,
      schemaValidated: false,
    };
  }
  const calls = Array.from({ length: turn.calls }, (_, index): RequestedCall => ({
    toolId: BENCH_TOOL,
    arguments: { document: DOCUMENT, pointer: `/order/${index}` },
  }));
  return { transcript, kind: 'calls', calls };
}

function told(nodeId: string): ActivityEvent[] {
  return [
    {
      type: 'agent.reasoned',
      nodeId,
      payload: { agentId: BENCH_AGENT, reasoning: REASONING, verbosity: 'summary' },
    },
    {
      type: 'provider.usage',
      nodeId,
      payload: { provider: 'scripted', model: 'scripted-1', inputTokens: 420, outputTokens: 60 },
    },
  ];
}

/** The bare workflow has no call: there a result names one of the same length. */
const NO_CALL = `call-${'0'.repeat(27)}`;

function returned(nodeId: string, callId = NO_CALL): ActivityEvent {
  const payload = {
    agentId: BENCH_AGENT,
    toolName: BENCH_TOOL,
    callId,
    outcome: { found: true, value: 4900 },
    status: 'ok' as const,
  };
  return { type: 'agent.toolReturned', nodeId, payload };
}

/** No case has children. */
function noChild(): Promise<never> {
  throw new Error('a case of the bench started a child run');
}

/** Nor is one a fork. */
function noFork(): Promise<never> {
  throw new Error('a case of the bench is a fork');
}

/** For both workflows: what it answers depends on the case (`context.workflowId`) and the activity's id alone. */
export function createDoubles(cases: readonly BenchCase[], asked: Asked = () => {}): Activities {
  const byName = new Map(cases.map((one) => [one.name, one]));
  const turnsOf = (context: StepContext) => byName.get(context.workflowId)?.turns ?? [];
  const note = (type: keyof Activities, input: { context: StepContext }) =>
    asked(type, input.context, Buffer.byteLength(JSON.stringify(input)));
  return {
    async prepareInvocation(input) {
      note('prepareInvocation', input);
      return { output: turnsOf(input.context).length === 0 ? REFUSED : PREPARED, events: [] };
    },
    async inferTurn(input) {
      note('inferTurn', input);
      const turn = turnsOf(input.context)[turnIn(input.context.activityId)] ?? 'decision';
      return { output: said(turn), events: told(input.context.nodeId) };
    },
    async callTool(
      input,
    ): Promise<StepResult<{ kind: 'returned'; status: 'ok'; resultHash: string }>> {
      note('callTool', input);
      const resultHash = hashOf('result');
      const { call } = input as Partial<CallToolInput>;
      const events = [returned(input.context.nodeId, call?.callId)];
      return { output: { kind: 'returned', status: 'ok', resultHash }, events };
    },
    async checkValue(input) {
      note('checkValue', input);
      return { output: { ok: true }, events: [] };
    },
    async tellReasoning(input) {
      note('tellReasoning', input);
      return { output: { told: true }, events: [] };
    },
    async sealBlock(input) {
      note('sealBlock', input);
      return { output: { deltas: 0 }, events: [] };
    },
    startChildren: noChild,
    endChild: noChild,
    cancelChild: noChild,
    keepTime: noChild,
    readRecording: noFork,
    recordedAnswers: noFork,
    forkChildren: noFork,
  };
}
