// What the demo's agents do without a model key: scripts for the provider `scripted`. A script reads numbers and cannot
// judge words, so it says nothing of an order that the shop did not say, and leaves every refund to a human.
import type { AgentScript, AgentScriptTurn } from '../../schemas/types.generated.ts';
import { REFUND_AGENT, TRIAGE_AGENT } from './definition.ts';
import { GET_ORDER, REFUND_ORDER } from './order-tools.ts';

/** Pause between two spoken pieces in ms: slow enough to watch. */
const SPEAKING_PACE_MS = 45;

const ORDER_READ =
  'The order is real: {{results.0.item}}, for {{results.0.totalCents}} cents. Goods that arrive damaged are refunded in full within {{results.0.returnWindowDays}} days of delivery. ';
const ORDERS_SO_FAR = 'Orders of this customer so far: {{results.0.customerOrders}}. ';

/** A refund that the agent is not sure of. */
function leansTowardsRefund(told: {
  reasoning: string;
  reason: string;
  confidence: number;
}): AgentScriptTurn {
  return {
    reasoning: told.reasoning,
    delayMsPerChunk: SPEAKING_PACE_MS,
    final: {
      decision: {
        action: 'refund',
        orderId: '{{task.orderId}}',
        amountCents: '{{results.0.totalCents}}',
        reason: told.reason,
      },
      confidence: told.confidence,
    },
  };
}

const WINDOW_CLOSED = leansTowardsRefund({
  reasoning: `${ORDER_READ}But it was delivered {{results.0.daysSinceDelivery}} days ago, which is later than that. ${ORDERS_SO_FAR}I lean towards a refund, but the policy is against it: this is a judgement that a human should ratify. `,
  reason:
    'Asked for {{results.0.daysSinceDelivery}} days after delivery, later than the {{results.0.returnWindowDays}} days of the policy: at the discretion of a human.',
  confidence: 0.55,
});

const WINDOW_OPEN = leansTowardsRefund({
  reasoning: `${ORDER_READ}It was delivered {{results.0.daysSinceDelivery}} days ago, which is within that time. ${ORDERS_SO_FAR}I lean towards a refund, but whether it arrived damaged only the customer's words tell: a human should read them and ratify. `,
  reason:
    'Asked for {{results.0.daysSinceDelivery}} days after delivery, within the {{results.0.returnWindowDays}} days of the policy; whether it arrived damaged is for a human to judge.',
  confidence: 0.65,
});

const NO_ORDER: AgentScriptTurn = {
  reasoning: 'The shop does not give me an order {{task.orderId}}, so there is nothing to refund. ',
  delayMsPerChunk: SPEAKING_PACE_MS,
  final: {
    decision: {
      action: 'decline',
      orderId: '{{task.orderId}}',
      amountCents: 0,
      reason: 'The order could not be read.',
    },
    confidence: 0.95,
  },
};

/** After an interruption a human may have said that it happened: then no id of the shop is known. */
const PAID_BY_WORD: AgentScriptTurn = {
  reasoning: 'A human says that the payment happened. I do not know its number. ',
  delayMsPerChunk: SPEAKING_PACE_MS,
  final: { decision: { status: 'refunded', refundId: '' }, confidence: 0.95 },
};

const NOT_PAID: AgentScriptTurn = {
  reasoning: 'The payment was not made. ',
  delayMsPerChunk: SPEAKING_PACE_MS,
  final: { decision: { status: 'failed', refundId: '' }, confidence: 0.95 },
  cases: [{ path: 'results.0.error', equals: null, turn: PAID_BY_WORD }],
};

/** By agentId. */
export const refundDeskScripts: Readonly<Record<string, AgentScript>> = {
  [TRIAGE_AGENT]: {
    turns: [
      {
        reasoning:
          'A customer writes about order {{task.orderId}}. Before I judge that, I need to know what was ordered, what it cost and when it was delivered. ',
        delayMsPerChunk: SPEAKING_PACE_MS,
        calls: [{ toolId: GET_ORDER, arguments: { orderId: '{{task.orderId}}' } }],
      },
      {
        ...NO_ORDER,
        cases: [
          { path: 'results.0.returnWindow', equals: 'closed', turn: WINDOW_CLOSED },
          { path: 'results.0.returnWindow', equals: 'open', turn: WINDOW_OPEN },
        ],
      },
    ],
  },
  [REFUND_AGENT]: {
    turns: [
      {
        reasoning: 'The refund of order {{task.decision.orderId}} is decided. I pay it once. ',
        delayMsPerChunk: SPEAKING_PACE_MS,
        calls: [
          {
            toolId: REFUND_ORDER,
            arguments: {
              orderId: '{{task.decision.orderId}}',
              amountCents: '{{task.decision.amountCents}}',
              reason: '{{task.decision.reason}}',
            },
          },
        ],
      },
      {
        reasoning: 'The payment went through as {{results.0.refundId}}. ',
        delayMsPerChunk: SPEAKING_PACE_MS,
        final: {
          decision: { status: 'refunded', refundId: '{{results.0.refundId}}' },
          confidence: 0.95,
        },
        cases: [{ path: 'results.0.refundId', equals: null, turn: NOT_PAID }],
      },
    ],
  },
};
