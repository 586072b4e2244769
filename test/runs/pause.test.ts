// A pause or a resume under a key (architecture §4): its tries go under one id, a later use of the key under another.
import { expect, it, test } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
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

// [I97]
it.each([
  [9e15, {}],
  [0, { pausedAt: '1970-01-01T00:00:00.000Z' }],
])('of a run that is paused already is refused as that, at %d', async (timestampMs, since) => {
  const deps = {
    log: {
      head: async () => ({ nextSequence: 3, closed: false }),
      fresh: async () => ({ head: { status: 'paused', closed: false }, stale: false }),
      async *rows() {
        yield [{ type: 'run.paused', timestampMs }];
      },
    },
    redactor: { text: (text: string) => text },
    engine: { send: () => Promise.reject(new HostError('run_state_conflict')) },
  } as unknown as Parameters<typeof holdRun>[0];
  const row = { ...runRef('r'), temporalRunId: 'T1' } as never;
  const delivery = { updateId: 'k-1', bodyDigest: 'digest', isRepeatable: true };
  const binding = { boundTo: undefined, bind: async () => undefined };
  const hold = { kind: 'pause', drainPolicy: 'immediate' } as const;
  const refused = await holdRun(deps, { row, hold }, { ...delivery, binding }).catch(
    (error: unknown) => error,
  );
  expect(refused).toMatchObject({ code: 'run_state_conflict' });
  expect((refused as HostError).details).toEqual({ runStatus: 'paused', ...since });
});
