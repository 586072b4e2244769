// callTool: the surface once more, schemas, and the effect ledger's states seen from an activity (architecture §5).
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Activities, CallToolInput } from '../../activities/contract.ts';
import { coreTools } from '../../src/adapters/tools/core-tools.ts';
import { HostError } from '../../src/rules/errors.ts';
import { digestOf } from '../../src/rules/ids.ts';
import { canonicalJson, type JsonValue } from '../../src/rules/json.ts';
import type { Stores } from '../../src/ports/stores.ts';
import type { Tool, ToolCallContext } from '../../src/ports/tools.ts';
import {
  activityEnvironment,
  AGENT_ID,
  contentJson,
  createRig,
  expectValid,
  runActivity,
  TENANT,
  type Rig,
} from './rig.ts';
import { batchAfter, entry, headOf } from '../contract/given.ts';
import { openAnyStores } from '../support/log-parts.ts';
import { runRef } from '../support/run-ref.ts';
import { identityOf } from '../contract/given.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

/** A tool with a counter: how often its effect happened. */
class Counter {
  count = 0;
  keys: string[] = [];
  behave: (input: JsonValue, context: ToolCallContext) => Promise<JsonValue> = async () => ({
    n: this.count,
  });

  tool(more: Partial<Tool> = {}): Tool {
    return {
      toolId: 'demo:refund',
      description: 'Refunds.',
      inputSchema: {
        type: 'object',
        properties: { order: { type: 'string' } },
        required: ['order'],
        additionalProperties: false,
      },
      outputSchema: { type: 'object' },
      idempotent: false,
      timeoutMs: 5_000,
      transport: 'native',
      safetyTier: 'write',
      call: async (input, context) => {
        this.count++;
        this.keys.push(context.idempotencyKey);
        return this.behave(input, context);
      },
      ...more,
    };
  }
}

function input(
  rig: Rig,
  more: Partial<CallToolInput> & { arguments?: JsonValue } = {},
): CallToolInput {
  const { arguments: args = { order: 'A-1' }, ...rest } = more;
  return {
    context: { ...rig.context, activityId: 'n/1/0/i0.t0.c0.call' },
    agentId: AGENT_ID,
    call: {
      callId: 'call-1',
      toolId: 'demo:refund',
      arguments: args,
      argsHash: digestOf(canonicalJson(args)),
      occurrence: 0,
    },
    tools: ['demo:refund', 'core:json.query'],
    calledKey: 'agent.toolCalled|n/1/0/i0.t0.c0',
    ...rest,
  };
}

async function call(rig: Rig, more: Parameters<typeof input>[1] = {}, tryNumber = 1) {
  const result = await runActivity(rig, 'callTool', { input: input(rig, more), tryNumber });
  for (const event of result.events) expectValid(rig, event);
  return result;
}

async function failureOf(promise: Promise<unknown>): Promise<ApplicationFailure> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ApplicationFailure);
  return error as ApplicationFailure;
}

async function statesOf(rig: Rig): Promise<string[]> {
  return (await rig.stores.effects.ofRun(runRef(rig.runId, TENANT))).map(({ state }) => state);
}

function payloadOf(result: Awaited<ReturnType<Activities['callTool']>>) {
  expect(result.events).toHaveLength(1);
  return result.events[0]?.payload as Record<string, unknown>;
}

describe('a call by the ledger (architecture §5)', () => {
  // [I32]
  test('claimed, performed, settled; the event is caused by the call', async () => {
    const counter = new Counter();
    const rig = await createRig(stores, { tools: [counter.tool()] });
    const result = await call(rig);
    expect(result.events[0]).toMatchObject({
      type: 'agent.toolReturned',
      nodeId: 'n',
      causedBy: 'agent.toolCalled|n/1/0/i0.t0.c0',
      payload: {
        agentId: AGENT_ID,
        toolName: 'demo:refund',
        callId: 'call-1',
        outcome: { n: 1 },
        status: 'ok',
      },
    });
    expect(payloadOf(result).durationMs).toBeTypeOf('number');
    const { output } = result;
    expect(output).toMatchObject({ kind: 'returned', status: 'ok' });
    expect(await contentJson(rig, (output as { resultHash: string }).resultHash)).toEqual({ n: 1 });
    expect(await statesOf(rig)).toEqual(['done']);
  });

  test('a done effect is returned, not performed', async () => {
    const counter = new Counter();
    const rig = await createRig(stores, { tools: [counter.tool()] });
    const first = await call(rig);
    const second = await call(rig, {}, 2);
    expect(counter.count).toBe(1);
    expect(second.output).toEqual(first.output);
    expect(payloadOf(second)).toMatchObject({ outcome: { n: 1 }, status: 'ok' });
  });

  test('another occurrence of the same call is another effect', async () => {
    const counter = new Counter();
    const rig = await createRig(stores, { tools: [counter.tool()] });
    await call(rig);
    const again = input(rig);
    await call(rig, { call: { ...again.call, occurrence: 1, callId: 'call-2' } });
    expect(counter.count).toBe(2);
    expect(new Set(counter.keys).size).toBe(2);
  });

  // [I34]
  test('not idempotent: a throw after sending is in doubt and never repeated', async () => {
    const counter = new Counter();
    counter.behave = async () => Promise.reject(new Error('connection reset'));
    const rig = await createRig(stores, { tools: [counter.tool()] });
    expect((await call(rig)).output).toMatchObject({ kind: 'in-doubt' });
    expect(await call(rig, {}, 2)).toMatchObject({ output: { kind: 'in-doubt' }, events: [] });
    expect(counter.count).toBe(1);
    expect(await statesOf(rig)).toEqual(['in-doubt']);
  });

  test('not idempotent: a timeout is in doubt, also of a tool that heeds no signal', async () => {
    const counter = new Counter();
    counter.behave = () => new Promise(() => undefined);
    const rig = await createRig(stores, { tools: [counter.tool({ timeoutMs: 30 })] });
    expect((await call(rig)).output).toMatchObject({ kind: 'in-doubt' });
  });

  test('not idempotent: a claim whose worker died is in doubt when its lease is over', async () => {
    const counter = new Counter();
    const rig = await createRig(stores, { tools: [counter.tool()] });
    const { context, call: asked } = input(rig);
    const identity = (runId: string) =>
      identityOf(runId, {
        ...{ tenant: TENANT, visit: context.visit },
        ...{ toolId: asked.toolId, argsHash: asked.argsHash },
      });
    await stores.effects.claim(identity(rig.runId), 0, { idempotent: false, leaseMs: 60_000 });
    const busy = await failureOf(call(rig, {}, 2));
    expect(busy).toMatchObject({ type: 'service_unavailable', nonRetryable: false });
    expect(Number(busy.nextRetryDelay)).toBeGreaterThan(10_000);
    const dead = await createRig(stores, { tools: [counter.tool()] });
    await stores.effects.claim(identity(dead.runId), 0, {
      idempotent: false,
      leaseMs: -1,
    });
    expect((await call(dead, {}, 2)).output).toMatchObject({ kind: 'in-doubt' });
    expect(counter.count).toBe(0);
  });

  test('what was certainly not sent is tried again, and told to the model in the end', async () => {
    const counter = new Counter();
    counter.behave = async () =>
      Promise.reject(Object.assign(new Error('refused'), { sent: false }));
    const rig = await createRig(stores, { tools: [counter.tool()] });
    const failure = await failureOf(call(rig));
    expect(failure).toMatchObject({ type: 'tool_failed', nonRetryable: false, message: 'refused' });
    expect(await statesOf(rig)).toEqual(['failed-before-send']);
    const last = await call(rig, {}, 4);
    expect(payloadOf(last)).toMatchObject({
      error: { code: 'tool_failed', message: 'refused' },
      status: 'error',
    });
    counter.behave = async () => ({ n: 9 });
    expect((await call(rig, {}, 2)).output).toMatchObject({ status: 'ok' });
  });

  test('idempotent: what is not known is tried again with the same key', async () => {
    const counter = new Counter();
    counter.behave = async () => Promise.reject(new Error('connection reset'));
    const rig = await createRig(stores, { tools: [counter.tool({ idempotent: true })] });
    await failureOf(call(rig));
    counter.behave = async () => ({ n: 2 });
    expect((await call(rig, {}, 2)).output).toMatchObject({ status: 'ok' });
    expect(new Set(counter.keys).size).toBe(1);
    expect(await statesOf(rig)).toEqual(['done']);
  });

  test('idempotent: what stays unknown after its tries is in doubt, not an error that the model repeats under a new key', async () => {
    const counter = new Counter();
    counter.behave = async () => Promise.reject(new Error('connection reset'));
    const rig = await createRig(stores, { tools: [counter.tool({ idempotent: true })] });
    expect(await call(rig, {}, 4)).toMatchObject({ output: { kind: 'in-doubt' }, events: [] });
    expect(await statesOf(rig)).toEqual(['in-doubt']);
    const reconcile: Tool['reconcile'] = async () => ({ happened: true, outcome: { n: 7 } });
    const asked = await createRig(stores, {
      tools: [counter.tool({ idempotent: true, reconcile })],
    });
    expect(payloadOf(await call(asked, {}, 4))).toMatchObject({ outcome: { n: 7 }, status: 'ok' });
  });

  test('idempotent: a last try that was not sent does not undo the doubt of an earlier one', async () => {
    const counter = new Counter();
    counter.behave = async () => Promise.reject(new Error('connection reset'));
    const rig = await createRig(stores, { tools: [counter.tool({ idempotent: true })] });
    await failureOf(call(rig));
    counter.behave = async () =>
      Promise.reject(Object.assign(new Error('refused'), { sent: false }));
    await failureOf(call(rig, {}, 2));
    expect(await statesOf(rig)).toEqual(['in-doubt']);
    expect((await call(rig, {}, 4)).output).toMatchObject({ kind: 'in-doubt' });
  });

  test('a tool without effects that stays unknown is an error for the model: nobody is asked', async () => {
    const counter = new Counter();
    counter.behave = async () => Promise.reject(new Error('connection reset'));
    const tool = counter.tool({ idempotent: true, safetyTier: 'read' });
    const rig = await createRig(stores, { tools: [tool] });
    expect(payloadOf(await call(rig, {}, 4))).toMatchObject({ error: { code: 'tool_failed' } });
  });

  // [I35]
  test('a tool that does not say that it is idempotent is not', async () => {
    const counter = new Counter();
    counter.behave = async () => Promise.reject(new Error('connection reset'));
    const rig = await createRig(stores, { tools: [counter.tool({ idempotent: undefined })] });
    expect((await call(rig)).output).toMatchObject({ kind: 'in-doubt' });
    expect((await call(rig, {}, 2)).output).toMatchObject({ kind: 'in-doubt' });
    expect(counter.count).toBe(1);
  });

  test('a final no of the other side is recorded, not asked for again', async () => {
    const counter = new Counter();
    counter.behave = async () =>
      Promise.reject(new HostError('tool_failed', { final: true, reason: 'too late' }));
    const rig = await createRig(stores, { tools: [counter.tool()] });
    const first = await call(rig);
    expect(payloadOf(first)).toMatchObject({ error: { code: 'tool_failed', message: 'too late' } });
    const second = await call(rig, {}, 2);
    expect(second.output).toEqual(first.output);
    expect(counter.count).toBe(1);
    expect(await statesOf(rig)).toEqual(['failed-final']);
  });

  test('a result against the tool schema: the effect stands, the model learns of the fault', async () => {
    const counter = new Counter();
    counter.behave = async () => 'not an object';
    const rig = await createRig(stores, { tools: [counter.tool()] });
    expect(payloadOf(await call(rig))).toMatchObject({ error: { code: 'tool_invalid_output' } });
    await call(rig, {}, 2);
    expect(counter.count).toBe(1);
  });

  // [I33]
  test('nothing is performed for a run that has ended', async () => {
    const counter = new Counter();
    const rig = await createRig(stores, { tools: [counter.tool()] });
    const context = { ...input(rig).context, runId: 'run-that-is-not-there' };
    const unknown = await failureOf(call(rig, { context }));
    expect(unknown).toMatchObject({ type: 'run_not_found', nonRetryable: true });
    const end = { status: 'cancelled', closed: true } as const;
    const head = await headOf(stores, rig.runId);
    await stores.log.append(batchAfter(head, [entry(rig.runId, 'terminal')], end));
    const failure = await failureOf(call(rig));
    expect(failure).toMatchObject({ type: 'run_state_conflict', nonRetryable: true });
    expect(counter.count).toBe(0);
  });

  test('a cancelled call of a tool that is not idempotent is in doubt', async () => {
    const counter = new Counter();
    const env = activityEnvironment(1);
    counter.behave = () => {
      env.cancel('CANCELLED');
      return new Promise(() => undefined);
    };
    const rig = await createRig(stores, { tools: [counter.tool()] });
    const cancelled = runActivity(rig, 'callTool', { input: input(rig), env });
    await expect(cancelled).rejects.toBeInstanceOf(CancelledFailure);
    expect(await statesOf(rig)).toEqual(['in-doubt']);
  });
});

describe('in doubt (architecture §5)', () => {
  const lost = async (): Promise<JsonValue> => Promise.reject(new Error('connection reset'));

  test('the reconcile hook knows that it happened', async () => {
    const counter = new Counter();
    counter.behave = lost;
    const reconcile: Tool['reconcile'] = async () => ({ happened: true, outcome: { n: 7 } });
    const rig = await createRig(stores, { tools: [counter.tool({ reconcile })] });
    expect(payloadOf(await call(rig))).toMatchObject({ outcome: { n: 7 }, status: 'ok' });
    expect(await statesOf(rig)).toEqual(['done']);
  });

  test('the reconcile hook knows that it did not: it is performed again', async () => {
    const counter = new Counter();
    counter.behave = lost;
    const reconcile: Tool['reconcile'] = async () => ({ happened: false });
    const rig = await createRig(stores, { tools: [counter.tool({ reconcile })] });
    expect(await failureOf(call(rig))).toMatchObject({ nonRetryable: false });
    counter.behave = async () => ({ n: 1 });
    expect((await call(rig, {}, 2)).output).toMatchObject({ status: 'ok' });
  });

  test('the reconcile hook does not know: a human decides', async () => {
    const counter = new Counter();
    counter.behave = lost;
    const reconcile: Tool['reconcile'] = async () => Promise.reject(new Error('away'));
    const rig = await createRig(stores, { tools: [counter.tool({ reconcile })] });
    expect((await call(rig)).output).toMatchObject({ kind: 'in-doubt' });
  });

  async function inDoubt() {
    const counter = new Counter();
    counter.behave = lost;
    const rig = await createRig(stores, { tools: [counter.tool()] });
    const { output } = await call(rig);
    if (output.kind !== 'in-doubt' || output.epoch === undefined) expect.fail(output.kind);
    counter.behave = async () => ({ n: counter.count });
    return { counter, rig, epoch: output.epoch };
  }

  test('a human says that it happened: recorded, not performed', async () => {
    const { counter, rig } = await inDoubt();
    const resolution = { kind: 'happened' as const, outcome: { by: 'human' } };
    expect(payloadOf(await call(rig, { resolution }))).toMatchObject({
      outcome: { by: 'human' },
      status: 'ok',
    });
    expect(counter.count).toBe(1);
    expect(await statesOf(rig)).toEqual(['done']);
  });

  test('a human says to perform it: once', async () => {
    const { counter, rig, epoch } = await inDoubt();
    const resolution = { kind: 'perform' as const, epoch };
    expect((await call(rig, { resolution })).output).toMatchObject({ status: 'ok' });
    await call(rig, { resolution }, 2);
    expect(counter.count).toBe(2);
  });

  test("a human's word holds for one try: a later try in doubt asks again", async () => {
    const { counter, rig, epoch } = await inDoubt();
    counter.behave = lost;
    const resolution = { kind: 'perform' as const, epoch };
    expect((await call(rig, { resolution })).output).toMatchObject({ kind: 'in-doubt' });
    expect((await call(rig, { resolution }, 2)).output).toMatchObject({ kind: 'in-doubt' });
    expect(counter.count).toBe(2);
  });

  test('a human says to leave it: the model learns so, the doubt stays', async () => {
    const { counter, rig } = await inDoubt();
    const resolution = { kind: 'skip' as const };
    expect(payloadOf(await call(rig, { resolution }))).toMatchObject({
      error: { code: 'effect_skipped' },
    });
    expect(counter.count).toBe(1);
    expect(await statesOf(rig)).toEqual(['in-doubt']);
    // The model asks for it once more: the "no" holds until a human says otherwise.
    const repeated = { call: { ...input(rig).call, occurrence: 1 } };
    expect((await call(rig, repeated)).output).toMatchObject({ kind: 'in-doubt' });
    expect(counter.count).toBe(1);
  });

  test('a later node attempt with other arguments goes to a human', async () => {
    const counter = new Counter();
    const rig = await createRig(stores, { tools: [counter.tool()] });
    await call(rig);
    const context = { ...input(rig).context, attempt: 1 };
    const other = { context, arguments: { order: 'B-2' } };
    const { output } = await call(rig, other);
    if (output.kind !== 'in-doubt' || !output.shown) expect.fail(output.kind);
    expect(counter.count).toBe(1);
    const resolution = { kind: 'perform', shown: output.shown } as const;
    expect((await call(rig, { ...other, resolution })).output).toMatchObject({ status: 'ok' });
    expect(counter.count).toBe(2);
    // The same arguments are the same effect: it is done.
    expect((await call(rig, { context })).output).toMatchObject({ status: 'ok' });
    expect(counter.count).toBe(2);
  });
});

describe('a call that is refused now and was performed before (architecture §5)', () => {
  const REMOTE = 'demo.agent/refund';
  type Refusal = {
    name: string;
    more: Partial<Tool> | undefined;
    tools?: readonly string[];
    code: string | undefined;
  };
  const closed = { type: 'object', properties: {}, additionalProperties: false };
  const remote = (approval: 'ask' | 'deny'): Partial<Tool> => ({
    remote: { agentId: 'demo.agent', waitMs: 1_000, approval, streams: false },
  });
  const REFUSALS: readonly Refusal[] = [
    { name: 'the tool is gone', more: undefined, code: 'tool_not_found' },
    { name: 'its schema is another', more: { inputSchema: closed }, code: 'tool_invalid_input' },
    { name: 'the operator denies it', more: remote('deny'), code: 'tool_denied' },
    { name: 'the operator asks first', more: remote('ask'), code: undefined },
    { name: 'it is outside the surface', more: {}, tools: ['core:clock'], code: 'forbidden' },
  ];

  /** Performs with `first`, then calls again where it is refused. */
  async function again(
    { more, tools = [REMOTE] }: Refusal,
    first?: (counter: Counter) => void,
    resolution?: CallToolInput['resolution'],
  ) {
    const counter = new Counter();
    const known: Tool[] = [counter.tool({ toolId: REMOTE, ...remote('ask') })];
    const rig = await createRig(stores, { remote: known });
    const asked = { ...input(rig).call, toolId: REMOTE };
    if (first) {
      first(counter);
      await call(rig, { call: asked, tools: [REMOTE], approvedBy: 'human:a' });
    }
    known.splice(0, 1, ...(more ? [counter.tool({ toolId: REMOTE, ...more })] : []));
    const result = await call(rig, {
      call: asked,
      tools,
      ...(resolution ? { resolution } : {}),
    });
    return { result, rig, counter };
  }

  test.each(REFUSALS)('$name: what happened is told', async (refusal) => {
    const { result, counter } = await again(refusal, () => undefined);
    expect(payloadOf(result)).toMatchObject({ outcome: { n: 1 }, status: 'ok' });
    expect(counter.count).toBe(1);
  });

  test.each(REFUSALS)('$name: what failed is told', async (refusal) => {
    const { result } = await again(refusal, (counter) => {
      counter.behave = async () =>
        Promise.reject(new HostError('tool_failed', { final: true, reason: 'too late' }));
    });
    expect(payloadOf(result)).toMatchObject({ error: { message: 'too late' }, status: 'error' });
  });

  test.each(REFUSALS)('$name: what is in doubt goes to a human', async (refusal) => {
    const lost = (counter: Counter): void => {
      counter.behave = async () => Promise.reject(new Error('connection reset'));
    };
    const { result, counter, rig } = await again(refusal, lost);
    expect(result).toMatchObject({ output: { kind: 'in-doubt' }, events: [] });
    // What cannot be performed is not offered: a yes would only bring the question back.
    const refused = refusal.code === undefined ? {} : { refused: true };
    expect(result.output).toEqual({ ...result.output, ...refused });
    expect(counter.count).toBe(1);
    const happened = { kind: 'happened' as const, outcome: { n: 5 } };
    const word = await again(refusal, lost, happened);
    expect(payloadOf(word.result)).toMatchObject({ outcome: { n: 5 }, status: 'ok' });
    expect(await statesOf(word.rig)).toEqual(['done']);
    expect(await statesOf(rig)).toEqual(['in-doubt']);
  });

  test.each(REFUSALS)('$name: only what was never performed is refused', async (refusal) => {
    const { result } = await again(refusal);
    if (refusal.code === undefined) expect(result.output.kind).toBe('needs-approval');
    else expect(payloadOf(result)).toMatchObject({ error: { code: refusal.code } });
  });

  test('a human who leaves it does not unmake it: what happened is told', async () => {
    const { result } = await again({ name: '', more: {}, code: undefined }, () => undefined, {
      kind: 'skip',
    });
    expect(payloadOf(result)).toMatchObject({ outcome: { n: 1 }, status: 'ok' });
  });
});

describe('the surface (RFC 0077 §B step 3)', () => {
  // [I36]
  test('a tool outside it is forbidden and not performed', async () => {
    const counter = new Counter();
    const rig = await createRig(stores, { tools: [counter.tool()] });
    const result = await call(rig, { tools: ['core:clock'], calledKey: undefined });
    expect(result.output).toMatchObject({ kind: 'returned', status: 'forbidden' });
    expect(payloadOf(result)).toMatchObject({ error: { code: 'forbidden' }, status: 'forbidden' });
    expect(payloadOf(result)).not.toHaveProperty('durationMs');
    expect(result.events[0]?.causedBy).toBe(rig.context.cause);
    expect(counter.count).toBe(0);
  });

  test('a tool that this worker does not have is an error for the model', async () => {
    const rig = await createRig(stores);
    expect(payloadOf(await call(rig))).toMatchObject({ error: { code: 'tool_not_found' } });
  });

  test.each([[{ order: 7 }], [{}], [{ order: 'A', more: 1 }], ['{"order": "A"'], [null]])(
    'arguments %j do not match the schema: nothing is performed',
    async (args) => {
      const counter = new Counter();
      const rig = await createRig(stores, { tools: [counter.tool()] });
      const result = await call(rig, { arguments: args });
      expect(payloadOf(result)).toMatchObject({
        error: { code: 'tool_invalid_input' },
        status: 'error',
      });
      expect(counter.count).toBe(0);
      expect(await statesOf(rig)).toEqual([]);
    },
  );
});

describe('what is recorded (architecture §2.6)', () => {
  test('an outcome above 32 KiB is kept by reference', async () => {
    const counter = new Counter();
    counter.behave = async () => ({ text: 'x'.repeat(40_000) });
    const rig = await createRig(stores, { tools: [counter.tool()] });
    const result = await call(rig);
    const { resultHash } = result.output as { resultHash: string };
    expect(payloadOf(result).outcome).toMatchObject({ contentRef: resultHash, bytes: 40_011 });
    expect(await contentJson(rig, resultHash)).toEqual({ text: 'x'.repeat(40_000) });
  });

  // [I37]
  test('SR-1: secrets in outcomes and messages are redacted', async () => {
    const counter = new Counter();
    const secrets = [{ id: 'vault', value: 'hunter2-hunter2' }];
    const rig = await createRig(stores, { tools: [counter.tool()], secrets });
    counter.behave = async () => ({ 'hunter2-hunter2': ['hunter2-hunter2'] });
    const { output, events } = await call(rig);
    const stored = await contentJson(rig, (output as { resultHash: string }).resultHash);
    expect(JSON.stringify([events, stored])).not.toContain('hunter2');
    counter.behave = async () =>
      Promise.reject(new HostError('tool_failed', { final: true, reason: 'hunter2-hunter2' }));
    const failed = await call(rig, { call: { ...input(rig).call, occurrence: 1 } });
    expect(payloadOf(failed)).toMatchObject({ error: { message: '[REDACTED:vault]' } });
  });

  test('the tool acts as the run’s principal, with a key that is the same over retries', async () => {
    const counter = new Counter();
    let seen: ToolCallContext | undefined;
    counter.behave = async (_input, context) => {
      seen = context;
      return {};
    };
    const rig = await createRig(stores, { tools: [counter.tool(), ...coreTools()] });
    await call(rig);
    const [row] = await stores.effects.ofRun(runRef(rig.runId, TENANT));
    expect(seen).toMatchObject({
      tenant: TENANT,
      runId: rig.runId,
      principal: 'tester',
      idempotencyKey: row?.effectId,
    });
  });

  test('the tool is told the root of the chain, as the header says, and the run is not loaded', async () => {
    const counter = new Counter();
    let seen: ToolCallContext | undefined;
    counter.behave = async (_input, context) => {
      seen = context;
      return {};
    };
    const rig = await createRig(stores, { tools: [counter.tool()] });
    const load = vi.spyOn(stores.runs, 'find');
    const given = input(rig);
    const header = { sessionId: 's', correlationId: 'run-root' };
    const context = { ...given.context, header };
    await runActivity(rig, 'callTool', { input: { ...given, context } });
    expect(seen?.correlationId).toBe('run-root');
    expect(load).not.toHaveBeenCalled();
  });
});
