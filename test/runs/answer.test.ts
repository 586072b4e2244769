// Which question an answer reaches (architecture §4): the one that it names, else the oldest that is open at the node.
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import type { ResolveInterruptMessage } from '../../src/rules/messages.ts';
import { subjectOf, type Subject } from '../../src/rules/subject.ts';
import { fold } from '../../src/log/fold.ts';
import { answerInterrupt } from '../../src/runs/answer.ts';
import { runRef } from '../support/run-ref.ts';

const ADA = subjectOf('api-key', 'default', 'ada');

interface Sent {
  readonly updateId: string;
  readonly interruptId: string;
  readonly resolvedBy: Subject;
}

/** What goes to a run whose node asked these, in this order, and waits for all of them. */
async function sentTo(open: readonly string[], interruptId?: string): Promise<Sent | undefined> {
  const rows = open.map((id, sequence) => ({
    ...{ runId: 'r', sequence, eventId: `evt-${id}`, key: id, type: 'node.suspended' },
    ...{ nodeId: 'gate', timestampMs: sequence },
    payload: JSON.stringify({ nodeId: 'gate', interruptId: id, kind: 'approval', key: id }),
  }));
  const head = { snapshot: fold(null, rows), closed: false };
  let sent: Sent | undefined;
  const deps = {
    log: { fresh: async () => ({ head, stale: false }) },
    redactor: { json: (value: JsonObject) => value },
    engine: {
      async send(_runId: string, updateId: string, message: ResolveInterruptMessage) {
        const { interruptId: asked, resolvedBy } = message;
        sent = { updateId, interruptId: asked, resolvedBy };
        return { status: 'resolved', bodyDigest: 'digest' };
      },
    },
  } as unknown as Parameters<typeof answerInterrupt>[0];
  const row = runRef('r') as Parameters<typeof answerInterrupt>[1]['row'];
  await answerInterrupt(
    deps,
    { row, nodeId: 'gate', interruptId, value: {}, resolvedBy: ADA },
    {
      ...{ updateId: 'k-1', bodyDigest: 'digest', isRepeatable: true },
      binding: { boundTo: undefined, bind: async () => undefined },
    },
  );
  return sent;
}

test("the node's address answers the oldest of several that are open, whatever their ids are", async () => {
  expect(await sentTo(['int-9', 'int-1', 'int-5'])).toMatchObject({ interruptId: 'int-9' });
});

test('one that is named is answered, though an older one is open', async () => {
  expect(await sentTo(['int-9', 'int-1'], 'int-1')).toMatchObject({ interruptId: 'int-1' });
});

test('a key that nothing holds any more is another answer for another question of the node', async () => {
  const [first, again, other] = [
    await sentTo(['int-1']),
    await sentTo(['int-1']),
    await sentTo(['int-2']),
  ];
  expect(again?.updateId).toBe(first?.updateId);
  expect(other?.updateId).not.toBe(first?.updateId);
});

test('architecture §9: who answers is told to the run whole', async () => {
  expect((await sentTo(['int-1']))?.resolvedBy).toEqual(ADA);
});
