// A pause or a resume under a key (architecture §4): its tries go under one id, a later use of the key under another.
import { expect, test } from 'vitest';
import { holdRun } from '../../src/runs/pause.ts';
import { runRef } from '../support/run-ref.ts';

test('architecture §4: the tries of a key send one message, whatever the log has become meanwhile; a key that nothing holds any more sends another', async () => {
  const sent: string[] = [];
  let nextSequence = 3;
  const deps = {
    log: { head: async () => ({ nextSequence: nextSequence++, closed: false }) },
    redactor: { text: (text: string) => text },
    engine: {
      async send(_runId: string, updateId: string) {
        sent.push(updateId);
        return { status: 'paused', bodyDigest: 'digest' };
      },
    },
  } as unknown as Parameters<typeof holdRun>[0];
  const row = { ...runRef('r'), temporalRunId: 'T1' } as unknown as Parameters<
    typeof holdRun
  >[1]['row'];
  const pauseUnder = async (boundTo?: string): Promise<string> => {
    let bound = '';
    const bind = async (to: string): Promise<void> => void (bound = to);
    const delivery = { updateId: 'k-1', bodyDigest: 'digest', isRepeatable: true };
    const hold = { kind: 'pause', drainPolicy: 'immediate' } as const;
    await holdRun(deps, { row, hold }, { ...delivery, binding: { boundTo, bind } });
    return bound;
  };
  await pauseUnder(await pauseUnder());
  await pauseUnder();
  const [first, again, later] = sent;
  expect(again).toBe(first);
  expect(later).not.toBe(first);
});
