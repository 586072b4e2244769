// When a fork was made, from which its deadlines go on (architecture §6), is by the clock that all processes share.
import { expect, it } from 'vitest';
import { appendRows } from '../contract/given.ts';
import { withClockOff } from '../support/wall-clock.ts';
import { startFaultHost } from './fault-host.ts';

const HOUR_MS = 3_600_000;

it.each([-HOUR_MS, HOUR_MS])('whatever the clock of its facade says: %i ms off', async (offMs) => {
  const host = await startFaultHost();
  try {
    const { body: run } = await host.api<{ runId: string }>('/v1/runs', {
      body: { workflowId: 'noop' },
    });
    await appendRows(host.stores, run.runId, ['a']);
    const fork = { mode: 'branch', fromSeq: 0 };
    const made = await withClockOff(offMs, () =>
      host.api(`/v1/runs/${run.runId}:fork`, { body: fork }),
    );
    expect([made.status, made.text]).toEqual([201, expect.anything()]);
    const [clock] = host.temporal.started.at(-1)?.fork?.clocks ?? [];
    expect(Math.abs((clock?.madeAtMs ?? 0) - Date.now())).toBeLessThan(HOUR_MS / 2);
  } finally {
    await host.stop();
  }
});
