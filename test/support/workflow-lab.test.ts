// The lab itself (architecture §7, time skipping; §8): both servers run the same workflow code and give the same
// journal.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chain, node, runInput } from './definitions.ts';
import { bundleFixtures } from './temporal-fixture.ts';
import { findTimeSkippingServer } from './time-skipping.ts';
import {
  openWorkflowLab,
  runWorkflowOnce,
  type LabOptions,
  type WorkflowLab,
} from './workflow-lab.ts';

const skipping = await findTimeSkippingServer();
const DAYS_MS = 24 * 3600 * 1000;

const servers: [string, LabOptions | undefined][] = [
  ['dev server', {}],
  ['dev server, replaying every task', { maxCachedWorkflows: 0 }],
  ['dev server, encrypted', { encryptionKeys: [{ id: 'k', key: randomBytes(32) }] }],
  [
    skipping.available ? 'time-skipping server' : `time-skipping server (${skipping.reason})`,
    skipping.available ? { timeSkipping: skipping } : undefined,
  ],
];

describe.each(servers)('architecture §8: workflow code on the %s', (_, options) => {
  test.skipIf(options === undefined)(
    'a run ends with one terminal entry, in order, and replays',
    async () => {
      const input = runInput(
        chain('plain', [node('a', 'core.start'), node('b', 'core.noop'), node('c', 'core.end')]),
      );
      const run = await runWorkflowOnce({ input }, options);
      expect(run.error).toBeUndefined();
      expect(run.status).toBe('completed');
      const emitted = run.journal.flatMap((item) => (item.kind === 'emit' ? [item] : []));
      expect(emitted[0]?.type).toBe('run.started');
      expect(emitted.filter(({ key }) => key === 'terminal')).toHaveLength(1);
      expect(emitted.at(-1)?.key).toBe('terminal');
      expect(run.hints.at(-1)?.terminal).toBe(true);
      await run.replay();
    },
  );
});

describe.skipIf(!skipping.available)('architecture §7: the time-skipping server', () => {
  let lab: WorkflowLab;
  beforeAll(async () => {
    if (!skipping.available) return;
    lab = await openWorkflowLab({ timeSkipping: skipping, bundle: await bundleFixtures() });
  });
  afterAll(() => lab.close());

  test('three days pass for the workflow', async () => {
    const before = await lab.clock.nowMs();
    const run = await lab.runOther('patient', { ms: 3 * DAYS_MS });
    expect(run.status).toBe('completed');
    expect((await lab.clock.nowMs()) - before).toBeGreaterThanOrEqual(3 * DAYS_MS);
    expect(Date.now()).toBeLessThan(before + DAYS_MS);
  });

  test('sleep of the clock skips two days at once', async () => {
    const before = await lab.clock.nowMs();
    await lab.clock.sleep(2 * DAYS_MS);
    expect((await lab.clock.nowMs()) - before).toBeGreaterThanOrEqual(2 * DAYS_MS);
  });
});
