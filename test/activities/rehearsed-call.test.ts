// callTool in a rehearsal: what changes something outside is not performed, and a human says what came of it.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CallToolInput } from '../../activities/contract.ts';
import { digestOf } from '../../src/rules/ids.ts';
import { canonicalJson } from '../../src/rules/json.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { Tool } from '../../src/ports/tools.ts';
import { openAnyStores } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';
import { AGENT_ID, createRig, runActivity, TENANT, type Rig } from './rig.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

const ARGUMENTS = { order: 'A-1' };

/** A tool that changes something, and counts how often. */
function counting(more: Partial<Tool> = {}) {
  const counter = { count: 0 };
  const tool: Tool = {
    ...{ toolId: 'demo:refund', description: 'Refunds.', inputSchema: { type: 'object' } },
    ...{ idempotent: false, timeoutMs: 5_000, transport: 'native', safetyTier: 'write' },
    call: async () => ({ n: ++counter.count }),
    ...more,
  };
  return { counter, tool };
}

function inputOf(rig: Rig, more: Partial<CallToolInput> = {}): CallToolInput {
  return {
    context: { ...rig.context, activityId: 'n/1/0/i0.t0.c0.call' },
    agentId: AGENT_ID,
    call: {
      ...{ callId: 'call-1', toolId: 'demo:refund', arguments: ARGUMENTS, occurrence: 0 },
      argsHash: digestOf(canonicalJson(ARGUMENTS)),
    },
    tools: ['demo:refund'],
    calledKey: 'agent.toolCalled|n/1/0/i0.t0.c0',
    rehearsal: true,
    ...more,
  };
}

const call = (rig: Rig, more: Partial<CallToolInput> = {}) =>
  runActivity(rig, 'callTool', { input: inputOf(rig, more), tryNumber: 1 });

// [I78]
test('what changes something outside is not performed: a human says what came of it', async () => {
  const { counter, tool } = counting();
  const rig = await createRig(stores, { tools: [tool] });
  expect(await call(rig)).toMatchObject({
    output: { kind: 'in-doubt', refused: true, rehearsed: true },
    events: [],
  });
  expect(await stores.effects.ofRun(runRef(rig.runId, TENANT))).toEqual([]);
  const word = await call(rig, { resolution: { kind: 'happened', outcome: { n: 7 } } });
  expect(word).toMatchObject({
    output: { kind: 'returned', status: 'ok' },
    events: [{ payload: { outcome: { n: 7 } } }],
  });
  expect(counter.count).toBe(0);
});

// [I116]
test.each<[string, object, RegExp]>([
  ['that the tool could not have given', { n: 'seven' }, /not recorded.*\/n must be number/],
  ['that would be stored otherwise', { n: 7, by: `sk-${'a'.repeat(20)}` }, /\/by looks like/],
])('an outcome %s is asked for again, and not recorded', async (_, outcome, why) => {
  const outputSchema = { type: 'object', properties: { n: { type: 'number' } } };
  const { counter, tool } = counting({ outputSchema });
  const word = { resolution: { kind: 'happened' as const, outcome: outcome as never } };
  const rehearsed = await createRig(stores, { tools: [tool] });
  const again = await call(rehearsed, word);
  expect(again).toMatchObject({
    output: {
      kind: 'in-doubt',
      refused: true,
      rehearsed: true,
      reason: expect.stringMatching(why) as string,
    },
    events: [],
  });
  expect(counter.count).toBe(0);
  const lost: Tool['call'] = async () => Promise.reject(new Error('connection reset'));
  const live = await createRig(stores, { tools: [{ ...tool, call: lost }] });
  const { output: doubt } = await call(live, { rehearsal: undefined });
  expect(doubt).toMatchObject({ kind: 'in-doubt' });
  expect((await call(live, { rehearsal: undefined, ...word })).output).toEqual({
    ...doubt,
    reason: expect.stringMatching(why) as string,
  });
  const taken = { resolution: { kind: 'happened' as const, outcome: { n: 7 } } };
  expect((await call(live, { rehearsal: undefined, ...taken })).output).toMatchObject({
    status: 'ok',
  });
});

test.each<[string, Partial<Tool>]>([
  ['reads', { safetyTier: 'read' }],
  ['is pure', { safetyTier: 'pure' }],
  ['changes a sandbox', { isSandbox: true }],
])('what %s is performed', async (_, more) => {
  const { counter, tool } = counting(more);
  const rig = await createRig(stores, { tools: [tool] });
  expect((await call(rig)).output).toMatchObject({ status: 'ok' });
  expect(counter.count).toBe(1);
});
