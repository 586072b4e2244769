// A log that cannot be told while a step streams (architecture §3.5, §4.1): it is made again, its history is gone or damaged. What is only
// shown live ends then, and the step does not. [I118]
import type { ApplicationFailure } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createActivities } from '../../activities/create-activities.ts';
import { HostError, type ErrorCode } from '../../src/rules/errors.ts';
import { digestOf } from '../../src/rules/ids.ts';
import { canonicalJson } from '../../src/rules/json.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { Tool } from '../../src/ports/tools.ts';
import { openAnyStores } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';
import {
  activityEnvironment,
  AGENT_ID,
  createRig,
  runActivity,
  turnInput,
  type Rig,
} from './rig.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

const UNTOLD = [
  'run_state_conflict',
  'history_missing',
  'history_undecodable',
  'internal_error',
] as const;

/** Of a later try, whose log says this. */
function untold(rig: Rig, code: ErrorCode) {
  const log = { ...rig.ports.log, catchUp: () => Promise.reject(new HostError(code)) };
  return { activities: createActivities({ ...rig.ports, log }) };
}

const laterTry = () =>
  activityEnvironment(2, { heartbeatDetails: { tries: { begun: 1, failures: 0, outages: 1 } } });

const failureOf = (promise: Promise<unknown>): Promise<ApplicationFailure> =>
  promise.then(
    () => expect.fail('it succeeded'),
    (error: ApplicationFailure) => error,
  );

const SAYS = { chunks: ['One. ', 'Two.'], final: { decision: 'yes', confidence: 1 } };

test.each(UNTOLD)('a later try of a turn goes on and shows nothing live: %s', async (code) => {
  const rig = await createRig(stores, { turns: [SAYS] });
  const input = await turnInput(rig);
  const result = await runActivity(untold(rig, code), 'inferTurn', { input, env: laterTry() });
  expect(result.output).toMatchObject({ kind: 'decision' });
  expect(result.events[0]?.payload).toMatchObject({ reasoning: 'One. Two.' });
  expect(result.deltas).toBeUndefined();
});

test('what an earlier try had shown is recorded, and its block is closed', async () => {
  const rig = await createRig(stores, { turns: [SAYS] });
  const input = await turnInput(rig);
  const { activityId } = input.context;
  const run = runRef(rig.runId);
  const key = `${activityId}#d0`;
  const row = {
    ...{ runId: rig.runId, eventId: `evt-${rig.runId}`, key, type: 'agent.reasoning.delta' },
    ...{ nodeId: 'n', payload: '{"agentId":"x","delta":"Zero.","sequence":0}', timestampMs: 1 },
  };
  await stores.log.appendDeltas(run, activityId, 1, [{ k: 0, row }]);
  const { deltas } = await runActivity(untold(rig, 'history_missing'), 'inferTurn', {
    ...{ input, env: laterTry() },
  });
  expect(deltas?.text).toBe('Zero.');
  expect(await stores.log.openBlocks(run)).toEqual([]);
});

test('an outage of the log is one of the step', async () => {
  const rig = await createRig(stores, { turns: [SAYS] });
  const input = await turnInput(rig);
  const failed = await failureOf(
    runActivity(untold(rig, 'service_unavailable'), 'inferTurn', { input, env: laterTry() }),
  );
  expect(failed).toMatchObject({ type: 'service_unavailable', nonRetryable: false });
});

test.each(UNTOLD)('a text that is told in pieces is told as a whole: %s', async (code) => {
  const rig = await createRig(stores);
  const result = await runActivity(untold(rig, code), 'tellReasoning', {
    input: {
      ...{ agentId: AGENT_ID, chunks: ['One. ', 'Two.'], verbosity: 'full' },
      ...{ context: rig.context, causedBy: { runId: rig.runId, key: 'node.started|n' } },
    },
    env: laterTry(),
  });
  expect(result.events[0]?.payload).toMatchObject({ reasoning: 'One. Two.' });
});

/** A call of a tool that shows what it does. */
async function payingRig() {
  let paid = 0;
  const tool: Tool = {
    ...{ toolId: 'demo:pay', description: 'Pays.', inputSchema: { type: 'object' } },
    ...{ idempotent: false, timeoutMs: 5_000, transport: 'native', safetyTier: 'write' },
    remote: { agentId: 'local.pay', waitMs: 1_000, approval: 'none', streams: true },
    call: async (_input, context) => {
      context.onProgress?.({ channel: 'log', text: 'paying' });
      return { paid: ++paid };
    },
  };
  const rig = await createRig(stores, { tools: [tool] });
  const input = {
    context: { ...rig.context, activityId: 'n/1/0/i0.t0.c0.call' },
    agentId: AGENT_ID,
    call: {
      ...{ callId: 'call-1', toolId: 'demo:pay', arguments: {}, occurrence: 0 },
      argsHash: digestOf(canonicalJson({})),
    },
    tools: ['demo:pay'],
    calledKey: 'agent.toolCalled|n/1/0/i0.t0.c0',
  };
  return { rig, input, paid: () => paid };
}

test.each(UNTOLD)('a call that was performed is told with its result: %s', async (code) => {
  const { rig, input, paid } = await payingRig();
  const { output } = await runActivity(untold(rig, code), 'callTool', { input, env: laterTry() });
  expect(output).toMatchObject({ kind: 'returned', status: 'ok' });
  expect(paid()).toBe(1);
});

// [I99]
test('also where what fails after it has the code of a run that has ended', async () => {
  const { rig, input, paid } = await payingRig();
  const closeBlock = () => Promise.reject(new HostError('run_state_conflict'));
  const log = { ...stores.log, closeBlock };
  const activities = createActivities({ ...rig.ports, stores: { ...stores, log } });
  const { output } = await runActivity({ activities }, 'callTool', { input, env: laterTry() });
  expect(output).toMatchObject({ kind: 'returned', status: 'ok' });
  expect(paid()).toBe(1);
});
