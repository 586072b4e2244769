// A run of the refund desk as its log has it, for tests of the pages.
import type { OpenQuestion } from '../../src/words/question.ts';
import { decisionQuestion } from '../../workflows/questions.ts';
import type { RunEventDoc } from '../../schemas/types.generated.ts';

/** A while ago, so that relative times are as a reader sees them. */
export const STARTED_MS = Date.now() - 8 * 60_000;
const TRIAGE = 'local.demo.refund-desk.triage';

/** Numbers, dates and identifies the events in order, 400 ms apart. */
export function eventsOf(
  list: readonly { type: string; nodeId?: string; payload: Record<string, unknown> }[],
  from = 0,
): RunEventDoc[] {
  return list.map((event, at) => ({
    eventId: `evt-${from + at}`,
    runId: 'run-1',
    sequence: from + at,
    timestamp: new Date(STARTED_MS + (from + at) * 400).toISOString(),
    ...event,
  }));
}

const decision = {
  action: 'refund',
  orderId: 'A-1007',
  amountCents: 6490,
  reason:
    'Lid cracked; reported after the 30 days, but from a loyal customer with no earlier refund.',
};

const thoughts = [
  'A customer writes about order A-1007: a crack in the lid. Before I judge that, I need to know the order.',
  'The order is real. But it was delivered 41 days ago, and the customer says that the crack was noticed only today. I lean towards a refund, but this is a judgement that a human should ratify.',
] as const;

/** From the start to the wait for a human. */
export const untilQuestion = eventsOf([
  {
    type: 'run.started',
    payload: {
      workflowId: 'refund-desk',
      inputs: { orderId: 'A-1007', message: 'The kettle arrived with a crack in the lid.' },
    },
  },
  {
    type: 'node.started',
    nodeId: 'start',
    payload: { nodeId: 'start', typeId: 'core.start', attempt: 0 },
  },
  { type: 'node.completed', nodeId: 'start', payload: { nodeId: 'start', outputs: {} } },
  {
    type: 'node.started',
    nodeId: 'triage',
    payload: { nodeId: 'triage', typeId: 'core.agent', attempt: 0, agent: { agentId: TRIAGE } },
  },
  {
    type: 'agent.invocation.started',
    nodeId: 'triage',
    payload: { invocationId: 'inv-1', agentId: TRIAGE },
  },
  { type: 'agent.promptResolved', nodeId: 'triage', payload: { agentId: TRIAGE } },
  {
    type: 'agent.reasoning.delta',
    nodeId: 'triage',
    payload: { agentId: TRIAGE, delta: 'A customer writes ', sequence: 0 },
  },
  {
    type: 'agent.reasoning.delta',
    nodeId: 'triage',
    payload: { agentId: TRIAGE, delta: 'about order A-1007', sequence: 1 },
  },
  {
    type: 'agent.reasoned',
    nodeId: 'triage',
    payload: { agentId: TRIAGE, reasoning: thoughts[0] },
  },
  {
    type: 'provider.usage',
    nodeId: 'triage',
    payload: { provider: 'scripted', model: 's', inputTokens: 300, outputTokens: 80 },
  },
  {
    type: 'agent.toolCalled',
    nodeId: 'triage',
    payload: {
      agentId: TRIAGE,
      toolName: 'demo:orders.get',
      callId: 'call-1',
      inputs: { orderId: 'A-1007' },
    },
  },
  {
    type: 'agent.toolReturned',
    nodeId: 'triage',
    payload: {
      agentId: TRIAGE,
      toolName: 'demo:orders.get',
      callId: 'call-1',
      status: 'ok',
      durationMs: 12,
      outcome: {
        orderId: 'A-1007',
        item: 'Glass kettle, 1.7 l',
        totalCents: 6490,
        daysSinceDelivery: 41,
      },
    },
  },
  {
    type: 'agent.reasoned',
    nodeId: 'triage',
    payload: { agentId: TRIAGE, reasoning: thoughts[1] },
  },
  {
    type: 'agent.decided',
    nodeId: 'triage',
    payload: { agentId: TRIAGE, decision, confidence: 0.55 },
  },
  {
    type: 'agent.invocation.completed',
    nodeId: 'triage',
    payload: { invocationId: 'inv-1', agentId: TRIAGE, outcome: 'escalated' },
  },
  {
    type: 'node.suspended',
    nodeId: 'triage',
    payload: {
      nodeId: 'triage',
      interruptId: 'int-1',
      kind: 'low-confidence',
      reason: 'low-confidence',
      agentId: TRIAGE,
      threshold: 0.7,
      observed: 0.55,
    },
  },
  {
    type: 'interrupt.requested',
    nodeId: 'triage',
    payload: {
      kind: 'low-confidence',
      key: 'k',
      data: {
        ...decisionQuestion(TRIAGE),
        ...{ agentId: TRIAGE, threshold: 0.7, observed: 0.55, decision },
      },
    },
  },
]);

export const question: OpenQuestion = {
  nodeId: 'triage',
  interruptId: 'int-1',
  kind: 'low-confidence',
  data: {
    ...decisionQuestion(TRIAGE),
    ...{ agentId: TRIAGE, threshold: 0.7, observed: 0.55, decision },
  },
  requestedAtMs: STARTED_MS + 6_400,
  deadlineMs: STARTED_MS + 3 * 24 * 3600 * 1000,
};

/** What comes live after the answer: the second agent thinks, pays, and the run ends. */
export const afterAnswer = eventsOf(
  [
    {
      type: 'interrupt.resolved',
      nodeId: 'triage',
      payload: {
        nodeId: 'triage',
        interruptId: 'int-1',
        kind: 'low-confidence',
        resumeValue: { action: 'accept' },
        resolvedBy: 'page',
      },
    },
    { type: 'node.resumed', nodeId: 'triage', payload: { nodeId: 'triage', interruptId: 'int-1' } },
    {
      type: 'node.completed',
      nodeId: 'triage',
      payload: { nodeId: 'triage', outputs: { decision } },
    },
    {
      type: 'node.started',
      nodeId: 'refund',
      payload: {
        nodeId: 'refund',
        typeId: 'core.agent',
        attempt: 0,
        agent: { agentId: 'local.demo.refund-desk.refund' },
      },
    },
    {
      type: 'agent.reasoning.delta',
      nodeId: 'refund',
      payload: { agentId: 'local.demo.refund-desk.refund', delta: 'The refund ', sequence: 0 },
    },
    {
      type: 'agent.reasoning.delta',
      nodeId: 'refund',
      payload: { agentId: 'local.demo.refund-desk.refund', delta: 'is decided.', sequence: 1 },
    },
    {
      type: 'agent.reasoned',
      nodeId: 'refund',
      payload: {
        agentId: 'local.demo.refund-desk.refund',
        reasoning: 'The refund is decided. I pay it once.',
      },
    },
    {
      type: 'agent.toolCalled',
      nodeId: 'refund',
      payload: {
        agentId: 'local.demo.refund-desk.refund',
        toolName: 'demo:orders.refund',
        callId: 'call-2',
        inputs: { orderId: 'A-1007', amountCents: 6490 },
      },
    },
    {
      type: 'agent.toolReturned',
      nodeId: 'refund',
      payload: {
        agentId: 'local.demo.refund-desk.refund',
        toolName: 'demo:orders.refund',
        callId: 'call-2',
        status: 'ok',
        durationMs: 31,
        outcome: { refundId: 'R-1' },
      },
    },
    { type: 'node.completed', nodeId: 'refund', payload: { nodeId: 'refund', outputs: {} } },
    {
      type: 'node.skipped',
      nodeId: 'declined',
      payload: { nodeId: 'declined', reason: 'no edge into it was taken' },
    },
    {
      type: 'run.completed',
      payload: { outputs: { status: 'refunded', refundId: 'R-1' }, durationMs: 11_000 },
    },
  ],
  untilQuestion.length,
);
