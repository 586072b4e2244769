// The refund desk from the request to its ends where something is paid and where nothing is (RFC 0002 §F, RFC 0077 §E, architecture §9).
import { describe, expect, it } from 'vitest';
import { REFUND_AGENT, TRIAGE_AGENT } from '../../src/demo/definition.ts';
import { demoRunRequest } from '../../src/demo/index.ts';
import { payloadOf, shapeOf } from './brackets.ts';
import { waiting, type Journey, type Told } from './journey.ts';
import { REFUND_DESK } from './journey-workflows.ts';

const { inputs } = demoRunRequest;
const OPENING = ['agent.invocation.started', 'agent.promptResolved', 'prompt.composed'];
const REASONED = ['agent.reasoning.delta', 'agent.reasoned', 'provider.usage'];
const CALLED = ['agent.toolCalled', 'agent.toolReturned'];
/** From the request to the question. */
const TO_THE_WAIT = [
  'run.started',
  'node.started',
  'node.completed',
  'node.started',
  ...OPENING,
  ...REASONED,
  ...CALLED,
  ...REASONED,
  'agent.decided',
  'agent.invocation.completed',
  'node.suspended',
  'interrupt.requested',
];
const ANSWERED = ['interrupt.resolved', 'node.resumed'];
const RATIFIED = [...OPENING, 'agent.decided', 'output.chunk'];
const PAYING = [
  ...OPENING,
  ...REASONED,
  ...CALLED,
  ...REASONED,
  'agent.decided',
  'output.chunk',
  'agent.invocation.completed',
  'node.completed',
];
const THE_END = ['node.started', 'node.completed', 'run.completed'];

const shapes = ({ brackets }: Told): string[] => brackets.map(shapeOf);
const outcomes = ({ brackets }: Told): string[] => brackets.map(({ outcome }) => outcome);
const last = ({ events }: Told, type: string): Record<string, unknown> =>
  payloadOf(events.findLast((event) => event.type === type));

export function deskJourneys(journey: Journey): void {
  async function asked(): Promise<{ runId: string; told: Told }> {
    const runId = await journey.run(REFUND_DESK, { inputs });
    const told = await journey.told(runId, waiting);
    expect(told.types).toEqual(TO_THE_WAIT);
    return { runId, told };
  }
  async function paidFor(runId: string): Promise<number[]> {
    const { snapshot } = await journey.told(runId);
    const { refundId } = (snapshot.outputs?.receipt ?? {}) as { refundId?: string };
    const all = await journey.refunds();
    return all.filter((_, at) => refundId === `R-${at + 1}`).map(({ amountCents }) => amountCents);
  }

  describe('the refund desk', () => {
    it('RFC 0002 §F, RFC 0077 §B step 7: waits for a human: who, how sure, how sure one must be, until when; accept: ratified without a model call, handed over, paid once, done', async () => {
      const { runId, told: open } = await asked();
      expect(open.snapshot).toMatchObject({
        status: 'waiting-approval',
        currentNodeId: 'triage',
        agent: { agentId: TRIAGE_AGENT },
        interrupt: { kind: 'low-confidence', agentId: TRIAGE_AGENT },
      });
      expect(last(open, 'node.suspended')).toMatchObject({
        nodeId: 'triage',
        kind: 'low-confidence',
        reason: 'low-confidence',
        agentId: TRIAGE_AGENT,
        threshold: 0.7,
        observed: 0.55,
      });
      expect(shapes(open)).toEqual(['SPcdRuTtdRuDC']);
      expect(outcomes(open)).toEqual(['escalated']);

      const answered = await journey.answer(runId, 'triage', { action: 'accept' });
      expect(answered.status).toBe(200);
      const told = await journey.told(runId);
      expect(told.types).toEqual([
        ...TO_THE_WAIT,
        ...ANSWERED,
        ...RATIFIED,
        'agent.handoff',
        'agent.invocation.completed',
        'node.completed',
        'node.started',
        'node.skipped',
        ...PAYING,
        ...THE_END,
      ]);
      expect(shapes(told)).toEqual(['SPcdRuTtdRuDC', 'SPcDHC', 'SPcdRuTtdRuDC']);
      expect(outcomes(told)).toEqual(['escalated', 'handed-off', 'completed']);
      expect(told.snapshot).toMatchObject({
        status: 'completed',
        agent: { agentId: REFUND_AGENT },
        outputs: { receipt: { status: 'refunded' } },
      });
      expect(await paidFor(runId)).toEqual([6490]);
    });

    it('edit-accept: the edited decision is decided, handed over and paid', async () => {
      const { runId } = await asked();
      const decision = {
        action: 'refund',
        orderId: 'A-1007',
        amountCents: 3000,
        reason: 'Half of it.',
      };
      await journey.answer(runId, 'triage', { action: 'edit-accept', decision });
      const told = await journey.told(runId);
      const decided = told.events.filter(({ type }) => type === 'agent.decided').map(payloadOf);
      expect(decided.map((payload) => payload.decision)).toMatchObject([
        { amountCents: 6490 },
        decision,
        { status: 'refunded' },
      ]);
      expect(decided[1]).not.toHaveProperty('confidence');
      expect(outcomes(told)).toEqual(['escalated', 'handed-off', 'completed']);
      expect(await paidFor(runId)).toEqual([3000]);
    });

    it('an edit may take the other edge: declined, nobody is paid, the paying node is skipped', async () => {
      const { runId } = await asked();
      const decision = {
        action: 'decline',
        orderId: 'A-1007',
        amountCents: 0,
        reason: 'Too late.',
      };
      await journey.answer(runId, 'triage', { action: 'edit-accept', decision });
      const told = await journey.told(runId);
      expect(told.snapshot).toMatchObject({ status: 'completed', outputs: { decision } });
      const skipped = told.events.filter(({ type }) => type === 'node.skipped');
      expect(skipped.map(({ nodeId }) => nodeId)).toEqual(['refund', 'paid']);
      expect(outcomes(told)).toEqual(['escalated', 'completed']);
    });
  });
}
