// A secret that the model says wherever it can (SR-1; architecture §2.6, §3.5): redacted in all that is told and
// stored. That nothing holds it is looked for at the end, over everything (suite-lasting.ts).
import { describe, expect, it } from 'vitest';
import { deltasOf, payloadOf } from './brackets.ts';
import { waiting, type Journey } from './journey.ts';
import { BLABBER, CANARY, REFUSER, workflowOf } from './journey-workflows.ts';

const MARK = '[REDACTED:OPENAI_API_KEY]';

export function secretJourneys(journey: Journey): void {
  describe('a registered secret', () => {
    it('said whole, over two deltas, by single characters, in arguments, results and decision, entered and answered', async () => {
      const runId = await journey.run(workflowOf(BLABBER), {
        inputs: { amount: { note: `my key is ${CANARY}` } },
        tags: [`tag-${CANARY}`],
        metadata: { note: CANARY },
      });
      const open = await journey.told(runId, waiting);
      const refused = await journey.answer(runId, 'think', { action: 'reject', reason: CANARY });
      expect([refused.status, refused.body]).toMatchObject([
        400,
        { error: 'validation_error', details: { field: '/resumeValue/reason' } },
      ]);
      await journey.answer(runId, 'think', { action: 'reject', reason: 'No!' });
      const { events, snapshot } = await journey.told(runId);
      expect(deltasOf(events)).toBe(`The key ${MARK} is split: ${MARK} and ${MARK}. Done.`);
      const of = (type: string) => events.filter((event) => event.type === type).map(payloadOf);
      expect(of('agent.toolCalled')[0]?.inputs).toEqual({
        key: MARK,
        [MARK]: [`in ${MARK} text`],
      });
      const [decided] = of('agent.decided');
      expect(decided).toMatchObject({
        decision: { key: MARK, [MARK]: MARK, leaked: { key: MARK, [MARK]: `-${MARK}-` } },
        reasoning: `Because of ${MARK}.`,
      });
      expect(snapshot.error).toMatchObject({ message: 'A human rejected the decision: No!' });
      expect(JSON.stringify([open, refused.body, events, snapshot])).not.toContain(CANARY);
    });

    it('in a refusal and in a reason to cancel', async () => {
      const refused = await journey.told(await journey.run(workflowOf(REFUSER)));
      const refusal = refused.events.find(({ type }) => type === 'envelope.refusal');
      expect(payloadOf(refusal).refusalText).toBe(`I will not, not even for ${MARK}.`);
      const runId = await journey.run('refund-desk', {
        inputs: { orderId: 'A-1007', message: CANARY },
      });
      await journey.host.api(`/v1/runs/${runId}/cancel`, { body: { reason: `for ${CANARY}` } });
      const { events } = await journey.told(runId);
      expect(payloadOf(events.at(-1)).reason).toBe(`for ${MARK}`);
    });
  });
}
