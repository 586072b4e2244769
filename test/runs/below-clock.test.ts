// How the runs below a rehearsal are asked and told: parents before their children, and again while something moves.
import { expect, it } from 'vitest';
import { HostError } from '../../src/rules/errors.ts';
import type { KeepTimeMessage, Resting, RunMessage } from '../../src/rules/messages.ts';
import { keepTimeBelow } from '../../src/runs/below-clock.ts';

/** Where each run stands, or the code that it refuses with. */
function below(
  runs: Readonly<Record<string, Resting | 'run_state_conflict' | 'service_unavailable'>>,
) {
  const sent: { runId: string; updateId: string; toMs?: number }[] = [];
  const engine = {
    async send(runId: string, updateId: string, message: RunMessage) {
      const { toMs } = message as KeepTimeMessage;
      sent.push({ runId, updateId, ...(toMs === undefined ? {} : { toMs }) });
      const found = runs[runId] ?? 'run_state_conflict';
      if (typeof found === 'string') throw new HostError(found);
      return { bodyDigest: '', status: 'resting', rests: found };
    },
    start: async () => ({ temporalRunId: '' }),
    childEnded: async () => {},
    terminate: async () => {},
    ping: async () => {},
  };
  return { sent, deps: { engine } };
}

it('all are asked, and the first end of a wait among them is told', async () => {
  const { deps, sent } = below({
    a: { nextMs: 50, children: ['c'] },
    b: { children: [] },
    c: { nextMs: 20, children: [] },
  });
  expect(await keepTimeBelow(deps, { children: ['a', 'b'], id: 'x' })).toEqual({
    children: ['a', 'b', 'c'],
    nextMs: 20,
  });
  expect(new Set(sent.map(({ updateId }) => updateId)).size).toBe(3);
});

it('one that has ended, and whose parent asks, is told so; below that its end is on its way', async () => {
  const first = below({ a: { children: [] }, b: 'run_state_conflict' });
  expect(await keepTimeBelow(first.deps, { children: ['a', 'b'], id: 'x' })).toEqual({
    children: [],
    hasEnded: true,
  });
  const second = below({ a: { children: ['c'] }, c: 'run_state_conflict' });
  await expect(keepTimeBelow(second.deps, { children: ['a'], id: 'x' })).rejects.toMatchObject({
    code: 'service_unavailable',
  });
});

it('one that moves is asked again', async () => {
  const { deps } = below({ a: 'service_unavailable' });
  await expect(keepTimeBelow(deps, { children: ['a'], id: 'x' })).rejects.toMatchObject({
    code: 'service_unavailable',
  });
});

it('they are told in their order, whatever has ended meanwhile', async () => {
  const { deps, sent } = below({ a: 'run_state_conflict', b: { children: [] } });
  const children = ['a', 'b'];
  expect(await keepTimeBelow(deps, { children, toMs: 7, id: 'x' })).toEqual({ children });
  expect(sent).toMatchObject([
    { runId: 'a', toMs: 7 },
    { runId: 'b', toMs: 7 },
  ]);
});
