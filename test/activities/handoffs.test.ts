// Handoffs that a model asks for (RFC 0002 §B, RFC 0077 §E): what it is offered, and what it is told where it cannot be.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { coreTools } from '../../src/adapters/tools/core-tools.ts';
import type { HandoffTarget } from '../../src/rules/handoffs.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { deciding, startOpenAiServer } from '../support/openai-server.ts';
import { openAnyStores } from '../support/log-parts.ts';
import {
  bytesOf,
  createRig,
  expectValid,
  newestItems,
  runActivity,
  TENANT,
  turnInput,
} from './rig.ts';

let stores: Stores;
beforeAll(async () => {
  stores = await openAnyStores();
});
afterAll(() => stores.close());

const PAY = 'local.test.desk.pay';
const TOOL = `handoff:${PAY}`;
const TASK: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  required: ['amount'],
  properties: { amount: { $ref: '#/$defs/amount' } },
  additionalProperties: false,
  $defs: { amount: { type: 'number', minimum: 1 } },
};

async function target(taskSchema?: JsonObject): Promise<HandoffTarget> {
  const manifest = {
    agentId: PAY,
    persona: 'Cashier',
    modelClass: 'general',
    systemPrompt: 'Pay.',
  };
  const resolved = { manifest, packName: 'p', packVersion: '1.0.0', systemPrompt: 'Pay.' };
  const stored = { ...resolved, ...(taskSchema ? { taskSchema } : {}) };
  return {
    agentId: PAY,
    manifestHash: await stores.content.put({ tenant: TENANT }, bytesOf(stored)),
  };
}

type Call = { toolId: string; arguments: JsonValue };
const clock: Call = { toolId: 'core:clock', arguments: {} };
const handOver = (given: JsonValue): Call => ({ toolId: TOOL, arguments: given });

/** One turn of an agent that may hand over to PAY, and may look at the clock. */
async function turn(calls: readonly Call[], given: { takesAny?: boolean } = {}) {
  const toolAllowlist = ['core:clock', TOOL, 'handoff:local.test.desk.nobody'];
  const rig = await createRig(stores, {
    turns: [{ calls: calls as never, reasoning: 'I pass it on.' }],
    manifest: { toolAllowlist },
    tools: coreTools(),
    secrets: [{ id: 'KEY', value: 'hunter2-hunter2' }],
  });
  const handoffs = [await target(given.takesAny ? undefined : TASK)];
  const prepared = await runActivity(rig, 'prepareInvocation', {
    input: { context: rig.context, agent: rig.agent, task: {}, configurable: {}, handoffs },
  });
  if (!prepared.output.ok) throw new Error(prepared.output.code);
  const tools = prepared.output.tools.map(({ toolId }) => toolId);
  const input = await turnInput(rig, { tools, handoffs });
  const result = await runActivity(rig, 'inferTurn', { input });
  for (const event of result.events) expectValid(rig, event);
  return { ...result, tools, items: await newestItems(rig, result.output.transcript) };
}

describe('a handoff is offered as a tool', () => {
  test('where its agent is in the run, in the place that the allowlist gives it; strangers are not', async () => {
    const { tools } = await turn([clock]);
    expect(tools).toEqual(['core:clock', TOOL]);
  });

  test('with the task that its agent takes, references in their new place, and what it comes to in words', async () => {
    const sent: JsonObject[] = [];
    const server = await startOpenAiServer((body) => {
      sent.push(body as JsonObject);
      return deciding([], { decision: 'yes' });
    });
    try {
      const openai = { apiKey: 'sk-test-key-that-is-long', baseUrl: server.url, model: 'm' };
      const rig = await createRig(stores, {
        models: { openai },
        manifest: { toolAllowlist: [TOOL] },
      });
      const input = await turnInput(rig, { tools: [TOOL], handoffs: [await target(TASK)] });
      await runActivity(rig, 'inferTurn', { input });
    } finally {
      await server.stop();
    }
    expect(sent[0]?.tools).toContainEqual({
      type: 'function',
      function: expect.objectContaining({
        description: expect.stringContaining(
          'Hands over to Cashier, who decides in your place: you are not asked again.',
        ) as string,
        parameters: {
          ...{ type: 'object', required: ['task'], additionalProperties: false },
          properties: {
            task: {
              ...{ type: 'object', required: ['amount'], additionalProperties: false },
              properties: { amount: { $ref: '#/properties/task/$defs/amount' } },
              $defs: { amount: { type: 'number', minimum: 1 } },
            },
            reason: { type: 'string' },
          },
        },
      }) as object,
    });
  });
});

describe('what the model asks for', () => {
  test('its only call, with a task that fits: control passes; the reason stands for its reasoning', async () => {
    const { output } = await turn([
      handOver({ task: { amount: 5 }, reason: 'hunter2-hunter2: money' }),
    ]);
    expect(output).toMatchObject({
      kind: 'handoff',
      toAgentId: PAY,
      task: { amount: 5 },
      reason: expect.stringMatching(/^(?!.*hunter2).*: money$/) as string,
    });
  });

  test.each<[string, readonly Call[], string, string]>([
    [
      'a task against the schema (§B step 6)',
      [handOver({ task: { amount: 0 } })],
      'task-schema',
      '/amount',
    ],
    ['no task', [handOver({ amount: 5 })], 'form', '"task"'],
    ['no object', [handOver('pay')], 'form', '"task"'],
    [
      'a reason that is no text',
      [handOver({ task: { amount: 5 }, reason: 1 })],
      'form',
      '"reason"',
    ],
    ['beside another call', [clock, handOver({ task: { amount: 5 } })], 'form', 'only call'],
    ['a task of 40 KB', [handOver({ task: 'x'.repeat(40_000) })], 'form', 'at most 32768'],
    ['beside 40 calls', [...Array<Call>(40).fill(clock), handOver({})], 'form', 'at most 32 '],
    ['two at once', [handOver({ task: {} }), handOver({ task: {} })], 'form', 'only call'],
  ])('%s: nothing is performed, and the model is told', async (_name, calls, violation, told) => {
    const { output, items } = await turn(calls);
    expect(output).toMatchObject({
      kind: 'invalid',
      violation,
      message: expect.stringContaining(told) as string,
    });
    // It sees what it is asked to mend.
    const [first] = calls;
    const sent = `${first?.toolId} ${JSON.stringify(first?.arguments)}`.slice(0, 30_000);
    expect(items.at(-1)).toMatchObject({
      role: 'assistant',
      text: expect.stringContaining(sent) as string,
      calls: [],
    });
  });

  test('an agent without a task schema takes any object, and nothing else', async () => {
    const any = { takesAny: true };
    expect((await turn([handOver({ task: {} })], any)).output.kind).toBe('handoff');
    expect((await turn([handOver({ task: 'pay' })], any)).output).toMatchObject({
      violation: 'task-schema',
    });
  });

  test('a stranger is no handoff: the call goes on to where it is forbidden', async () => {
    const stranger = { toolId: 'handoff:local.test.desk.nobody', arguments: { task: {} } };
    expect((await turn([stranger])).output).toMatchObject({ kind: 'calls', calls: [stranger] });
  });
});
