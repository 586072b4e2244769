// Waits of days, on the time-skipping server: a three-day deadline is answered on day two or expires on day three
// (architecture §8; interrupt.md).
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { approvalSchema } from '../../workflows/approvals.ts';
import { chain, node, runInput } from '../support/definitions.ts';
import { findTimeSkippingServer } from '../support/time-skipping.ts';
import { openWorkflowLab, type WorkflowLab } from '../support/workflow-lab.ts';
import { answer, payloadsOf, typesOf } from './both-ways.ts';

const DAY_MS = 24 * 3600 * 1000;
const server = await findTimeSkippingServer();
const schema = approvalSchema(['accept', 'reject']);
const gate = chain('gate', [
  node('gate', 'core.approvalGate', { config: { timeoutMs: 3 * DAY_MS } }),
  node('end', 'core.end'),
]);

describe.skipIf(!server.available)('a three-day deadline (time-skipping server: Java)', () => {
  let lab: WorkflowLab;
  beforeAll(async () => {
    if (server.available) lab = await openWorkflowLab({ timeSkipping: server });
  });
  afterAll(() => lab?.close());

  it('is answered on day two: the run completes', async () => {
    const startedAtMs = await lab.clock.nowMs();
    const run = await lab.run({
      input: runInput(gate),
      script: async (handle, clock) => {
        await clock.sleep(2 * DAY_MS);
        await answer(handle, 'gate', { action: 'accept' }, schema);
      },
    });
    expect(run.status).toBe('completed');
    expect(typesOf(run)).toContain('approval.received gate');
    expect((await lab.clock.nowMs()) - startedAtMs).toBeGreaterThanOrEqual(2 * DAY_MS);
    expect(typesOf(run).at(-1)).toBe('run.completed');
  });

  it('expires on day three: never granted, an answer afterwards finds no run', async () => {
    const run = await lab.run({
      input: runInput(gate),
      script: async (handle, clock) => {
        await clock.sleep(4 * DAY_MS);
        await expect(answer(handle, 'gate', { action: 'accept' }, schema)).rejects.toThrow(
          /completed|not found/,
        );
      },
    });
    expect(payloadsOf(run, 'approval.received')).toEqual([{ nodeId: 'gate', action: 'timeout' }]);
    expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({ code: 'interrupt_timeout' });
    const resolved = run.journal.find(
      (item) => 'type' in item && item.type === 'interrupt.resolved',
    );
    expect((resolved?.timeMs ?? 0) - (run.journal[0]?.timeMs ?? 0)).toBeGreaterThanOrEqual(
      3 * DAY_MS,
    );
  });
});
