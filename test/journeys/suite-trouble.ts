// Agents in trouble and side by side: an effect in doubt goes to a human, a node runs out of time while its agent
// speaks, two agents speak at once into one log (architecture §3.5, §4, §5).
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import { deltasOf, payloadOf, shapeOf } from './brackets.ts';
import { waiting, type Journey, type Told } from './journey.ts';
import { until } from '../support/host.ts';
import {
  charged,
  CHARGER,
  DOUBLE_CHARGER,
  DUET,
  HURRIED,
  SPEECH,
  workflowOf,
} from './journey-workflows.ts';
import { runRef } from '../support/run-ref.ts';

const shapes = ({ brackets }: Told): string[] => brackets.map(shapeOf);

function doubts(journey: Journey): void {
  it('a charge in doubt is never repeated silently; accept: performed now', async () => {
    const runId = await journey.run(workflowOf(CHARGER));
    const open = await journey.host.waitFor(runId, waiting);
    expect(open).toMatchObject({ status: 'waiting-approval', currentNodeId: 'think' });
    const { effectId } = (await journey.host.stores.effects.ofRun(runRef(runId)))[0] ?? {};
    expect((await journey.answer(runId, 'think', { action: 'accept' })).status).toBe(200);
    const told = await journey.told(runId);
    const { result } = told.snapshot.outputs?.decision as JsonObject;
    expect(result).toMatchObject({ charge: 'made' });
    expect(told.brackets.map(({ outcome }) => outcome)).toEqual(['completed']);
    expect(charged.filter((key) => key === effectId)).toHaveLength(2);
  });
}

interface Asked {
  readonly key: string;
  readonly data: { readonly artifactData: { readonly arguments: { readonly cents: number } } };
}

/** Two charges of one turn, one that happened and one that is left alone, asked about at once: by id, by the node's address, on the page (architecture §4). */
function doubtsAtOnce(journey: Journey): void {
  it('two charges of one turn: both are asked about before one is answered, and each answer reaches its own', async () => {
    const runId = await journey.run(workflowOf(DOUBLE_CHARGER));
    const questions = async (): Promise<{ interruptId: string; cents: number }[]> => {
      const { events } = await journey.events(runId);
      const payloads = (type: string) => events.filter((it) => it.type === type).map(payloadOf);
      const asked = payloads('interrupt.requested') as unknown as Asked[];
      return payloads('node.suspended').map(({ interruptId, key }) => ({
        interruptId: interruptId as string,
        cents: asked.find((it) => it.key === key)?.data.artifactData.arguments.cents ?? 0,
      }));
    };
    await until(async () => (await questions()).length === 2, 'both are asked');
    const [one, two] = await questions();
    const first = one?.interruptId ?? '';
    const second = two?.interruptId ?? '';
    const snapshot = await journey.host.waitFor(runId, waiting);
    expect(snapshot).toMatchObject({
      status: 'waiting-approval',
      interrupt: { interruptId: first },
    });
    const page = await journey.page(runId);
    const shown = [...page.matchAll(/data-interrupt="([^"]+)"/g)].map(([, id]) => id);
    expect(shown).toEqual([first, second]);

    const found = { action: 'edit-accept', editedArtifactData: { charge: 'found in the books' } };
    const named = { nodeId: 'think', interruptId: second };
    expect((await journey.answerOne(runId, named, found)).status).toBe(200);
    const halfway = await journey.host.waitFor(runId, waiting);
    expect(halfway).toMatchObject({
      interrupt: { interruptId: first },
      nodeStates: { think: { status: 'suspended' } },
    });
    expect(await journey.page(runId)).not.toContain(second);
    const again = await journey.answerOne(runId, named, found);
    expect(again).toMatchObject({ status: 409, body: { error: 'interrupt_already_resolved' } });
    // The node's address answers the oldest that is open.
    expect((await journey.answer(runId, 'think', { action: 'reject' })).status).toBe(200);

    const told = await journey.told(runId);
    const inCallOrder = [{ error: { code: 'effect_skipped' } }, { charge: 'found in the books' }];
    if (two?.cents === 6) inCallOrder.reverse();
    expect((told.snapshot.outputs?.decision as JsonObject).results).toMatchObject(inCallOrder);
    expect(told.types.filter((type) => type === 'interrupt.resolved')).toHaveLength(2);
    const effects = await journey.host.stores.effects.ofRun(runRef(runId));
    const keys = effects.map(({ effectId }) => effectId);
    expect(keys).toHaveLength(2);
    for (const key of keys) expect(charged.filter((made) => made === key)).toHaveLength(1);
  });
}

export function troubleJourneys(journey: Journey): void {
  describe('an effect in doubt', () => {
    doubts(journey);
    doubtsAtOnce(journey);
  });

  describe('time and company', () => {
    it('architecture §4 a node out of time while its agent speaks: sealed, failed, tried again in a bracket of its own', async () => {
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
