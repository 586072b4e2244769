// The search for closed runs (architecture §3.4), with a server that is played: what its clock may say.
import type { Connection } from '@temporalio/client';
import { expect, it } from 'vitest';
import { closedSince } from '../../src/adapters/temporal/closed-runs.ts';

const HOUR_MS = 3_600_000;

/** A server with one closed run. */
function closedAt(atMs: number): Connection {
  const closeTime = { seconds: Math.floor(atMs / 1_000), nanos: 0 };
  return {
    withAbortSignal: (_signal: unknown, call: () => unknown) => call(),
    withDeadline: (_deadline: unknown, call: () => unknown) => call(),
    workflowService: {
      countWorkflowExecutions: async () => ({ count: 1 }),
      listWorkflowExecutions: async () => ({
        ...{ executions: [{ execution: { workflowId: 'run' }, closeTime }], nextPageToken: [] },
      }),
    },
  } as unknown as Connection;
}

// [I97]
it('a close time ahead of now gives its run, and no watermark ahead of now', async () => {
  const sinceMs = Date.now() - HOUR_MS;
  const of = (atMs: number) =>
    closedSince(
      {
        ...{ connection: closedAt(atMs), namespace: 'n', taskQueue: 'q' },
        signal: new AbortController().signal,
      },
      sinceMs,
    );
  const { runIds, newestMs } = await of(Date.now() + 20 * HOUR_MS);
  expect(runIds).toEqual(['run']);
  expect(newestMs).toBeGreaterThan(sinceMs);
  expect(newestMs).toBeLessThanOrEqual(Date.now());
  expect((await of(sinceMs - HOUR_MS)).newestMs).toBe(sinceMs);
});
