// Agents in trouble and side by side: an effect in doubt goes to a human, a node runs out of time while its agent
// speaks, two agents speak at once into one log (design §3.5, §4, §5).
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import { deltasOf, shapeOf } from './brackets.ts';
import { waiting, type Journey, type Told } from './journey.ts';
import { charged, CHARGER, DUET, HURRIED, SPEECH, workflowOf } from './journey-workflows.ts';

const shapes = ({ brackets }: Told): string[] => brackets.map(shapeOf);

function doubts(journey: Journey): void {
  it.each([
    ['accept: performed now', { action: 'accept' }, { charge: 'made' }, 2],
    [
      'edit-accept: it happened, with this outcome',
      { action: 'edit-accept', editedArtifactData: { charge: 'found in the books' } },
      { charge: 'found in the books' },
      1,
    ],
    ['reject: left alone', { action: 'reject' }, { error: { code: 'effect_skipped' } }, 1],
  ])('a charge in doubt is never repeated silently; %s', async (_name, answer, result, times) => {
    const runId = await journey.run(workflowOf(CHARGER));
    const open = await journey.host.waitFor(runId, waiting);
    expect(open).toMatchObject({ status: 'waiting-approval', currentNodeId: 'think' });
    const { effectId } = (await journey.host.stores.effects.ofRun('default', runId))[0] ?? {};
    expect((await journey.answer(runId, 'think', answer)).status).toBe(200);
    const told = await journey.told(runId);
    expect((told.snapshot.outputs?.decision as JsonObject).result).toMatchObject(result);
    expect(told.brackets.map(({ outcome }) => outcome)).toEqual(['completed']);
    expect(charged.filter((key) => key === effectId).length).toBe(times);
  });
}

export function troubleJourneys(journey: Journey): void {
  describe('an effect in doubt', () => doubts(journey));

  describe('time and company', () => {
    it('design §4 a node out of time while its agent speaks: sealed, failed, tried again in a bracket of its own', async () => {
      const told = await journey.told(await journey.run(HURRIED));
      expect(told.snapshot.error?.code).toBe('node_timeout');
      expect(shapes(told)).toEqual(['SPcdRC', 'SPcdRC']);
      expect(told.brackets.map(({ outcome }) => outcome)).toEqual(['failed', 'failed']);
      expect(told.types.filter((type) => type.startsWith('node.'))).toEqual([
        'node.started',
        'node.retried',
        'node.started',
        'node.failed',
      ]);
    });

    it('RFC 0024 two agents at once: their deltas interleave, each block is whole and in order', async () => {
      const { events, brackets } = await journey.told(await journey.run(DUET));
      expect(brackets.map(shapeOf)).toEqual(['SPcdRuDC', 'SPcdRuDC']);
      const deltas = events.filter(({ type }) => type === 'agent.reasoning.delta');
      for (const side of ['left', 'right']) {
        const own = deltas.filter(({ nodeId }) => nodeId === side);
        expect(deltasOf(own)).toBe(SPEECH.join(''));
      }
      const turns = deltas.filter(({ nodeId }, at) => nodeId !== deltas[at - 1]?.nodeId).length;
      expect(turns).toBeGreaterThan(2);
    });
  });
}
