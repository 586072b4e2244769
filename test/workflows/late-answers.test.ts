// An answer that reaches the workflow together with the end of the time that it had: both lay there while no worker
// was at work (architecture §4, race rules of interrupt.md). On a real server, whose workflow task then holds both.
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { NativeConnection } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { workflowBundle } from '../../src/adapters/temporal/bundle.ts';
import { dataConverter } from '../../src/adapters/temporal/codec.ts';
import { RUN_WORKFLOW } from '../../src/rules/run-input.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { chain, node, runInput } from '../support/definitions.ts';
import { until } from '../support/host.ts';
import { paced } from '../support/machine.ts';
import {
  askedInterrupt,
  createWorkflowRunner,
  quietRuntime,
  timersOf,
  type RunnerOptions,
} from '../support/run-workflow.ts';
import { CACHE_DIR, startTestTemporal, type TestTemporal } from '../support/temporal.ts';
import { answer, payloadsOf, typesOf } from './both-ways.ts';

/** Time for the answer: the run asks, its worker leaves and the answer is sent within it. */
const LIMIT_MS = paced(2_000);
const SCHEMA = approvalSchema(['accept', 'reject']);
const { failureConverterPath } = dataConverter({ ring: ringOf([]) });

let temporal: TestTemporal;
let options: Omit<RunnerOptions, 'taskQueue'>;
let disconnect: () => Promise<void>;
beforeAll(async () => {
  quietRuntime();
  temporal = await startTestTemporal();
  const connection = await temporal.connect();
  const nativeConnection = await NativeConnection.connect({ address: temporal.address });
  disconnect = async () => {
    await nativeConnection.close();
    await connection.close();
  };
  options = {
    server: { connection, nativeConnection, namespace: 'default' },
    bundle: await workflowBundle({ cacheDir: join(CACHE_DIR, 'bundles'), failureConverterPath }),
  };
});
afterAll(async () => {
  await disconnect();
  await temporal.stop();
});

/** Asks, loses its worker, is answered in time, and has a worker again when the time is over. */
async function answeredWhileAway(
  gate: { config?: JsonObject; settings?: JsonObject },
  settings: { timeout?: number } = {},
) {
  const taskQueue = `late-${randomUUID()}`;
  const first = await createWorkflowRunner({ ...options, taskQueue });
  let told: unknown;
  const input = runInput(
    chain(`late-${randomUUID().slice(0, 8)}`, [node('gate', 'core.approvalGate', gate)], {
      settings,
    }),
  );
  const run = await first.run({
    runId: input.runId,
    workflowType: RUN_WORKFLOW,
    input,
    script: async (handle) => {
      await until(async () => (await askedInterrupt(handle, 'gate')) !== '', 'it asks');
      await first.close();
      const telling = answer(handle, 'gate', { action: 'accept' }, SCHEMA).then(
        () => 'taken',
        ({ cause }: { cause?: { type?: string } }) => cause?.type,
      );
      await until(async () => (await timersOf(handle)).fired > 0, 'the time is over');
      const second = await createWorkflowRunner({ ...options, taskQueue });
      told = await telling;
      await handle.result().catch(() => undefined);
      await second.close();
    },
  });
  await run.replay();
  return { run, told };
}

describe('an answer that comes with the end of its time is refused, and says nothing in the log', () => {
  it.each<[string, Parameters<typeof answeredWhileAway>[0], string, { timeout?: number }?]>([
    ['of the question', { config: { timeoutMs: LIMIT_MS } }, 'interrupt_timeout'],
    ['of its node', { settings: { timeoutMs: LIMIT_MS } }, 'node_timeout'],
    ['of its run', {}, 'run_timeout', { timeout: LIMIT_MS }],
  ])('the time %s', async (_whose, gate, code, settings = {}) => {
    const { run, told } = await answeredWhileAway(gate, settings);
    expect(told).toBe('interrupt_expired');
    expect(payloadsOf(run, 'run.failed')[0]?.error).toMatchObject({ code });
    expect(typesOf(run)).not.toContain('node.resumed gate');
    const resolved = payloadsOf(run, 'interrupt.resolved');
    expect(resolved.filter(({ outcome }) => outcome !== 'rejected')).toEqual([]);
  });
});
