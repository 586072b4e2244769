// What the provider `anthropic` asks: the endpoint refuses what the documented API refuses.
import { describe, expect, test } from 'vitest';
import { createAnthropicModel, type AnthropicConfig } from '../../src/adapters/models/anthropic.ts';
import { DEFAULT_ANTHROPIC_MAX_TOKENS } from '../../src/adapters/models/anthropic-request.ts';
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import type { ModelRequest, ToolDescription, TranscriptItem } from '../../src/ports/models.ts';
import { faultOfMessages } from '../support/anthropic-rules.ts';
import {
  KEY,
  serve,
  requests,
  refused,
  endpoint,
  ORDERS,
  ORDERS_NAME,
  SYSTEM,
  TASK,
  asking,
  result,
  REQUEST,
  infer,
  failureOf,
  decision,
  DECIDES,
} from './anthropic-calls.ts';
import {
  begin,
  blockStart,
  blockStop,
  end,
  failing,
  streaming,
  textBlock,
  thinkingBlock,
  toolBlock,
} from '../support/anthropic-server.ts';

/** The body of the request that these items make, which the rules of the endpoint let through. */
async function sent(
  items: readonly TranscriptItem[],
  config: Partial<AnthropicConfig> = {},
  more: Partial<ModelRequest> = {},
): Promise<Record<string, unknown>> {
  await infer({ ...(await endpoint(DECIDES)), ...config }, { items, ...more });
  expect(refused()).toEqual([]);
  return requests().at(-1) ?? {};
}

const text = (value: string) => ({ type: 'text', text: value });

test.each([
  ['an unknown field', { temperature: 1 }],
  ['no bound', { max_tokens: undefined }],
  ['no messages', { messages: [] }],
  ['an empty text', { messages: [{ role: 'user', content: [{ type: 'text', text: ' ' }] }] }],
  [
    'a prefill',
    {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
      ],
    },
  ],
  [
    'no alternation',
    {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'user', content: 'b' },
      ],
    },
  ],
  ['a tool without an object', { tools: [{ name: 'a', input_schema: { type: 'array' } }] }],
  ['a tool with a dot', { tools: [{ name: 'a.b', input_schema: { type: 'object' } }] }],
  ['a budget that is too small', { thinking: { type: 'enabled', budget_tokens: 1 } }],
])('the endpoint of these tests refuses %s, as the API does', (_name, wrong) => {
  const right = {
    model: 'claude-haiku-4-5',
    max_tokens: 9,
    messages: [{ role: 'user', content: 'a' }],
  };
  expect(faultOfMessages(right)).toBeUndefined();
  const body = Object.entries({ ...right, ...wrong }).filter(([, value]) => value !== undefined);
  expect(faultOfMessages(Object.fromEntries(body))).toBeTypeOf('string');
});

describe('what is sent', () => {
  test('system text apart, turns of blocks, tools under allowed names, the decision as the last tool', async () => {
    const body = await sent(REQUEST.items);
    expect(body).toMatchObject({
      model: 'claude-test-1',
      max_tokens: DEFAULT_ANTHROPIC_MAX_TOKENS,
      stream: true,
      system: [{ type: 'text', cache_control: { type: 'ephemeral' } }],
      messages: [
        { role: 'user', content: [text('Task')] },
        {
          role: 'assistant',
          content: [
            text('I look.'),
            { type: 'tool_use', id: 'call-1', name: ORDERS_NAME, input: { id: 'A' } },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call-1', content: '{}' }] },
      ],
      tools: [
        { name: ORDERS_NAME, input_schema: ORDERS.inputSchema },
        { name: DECISION_TOOL, input_schema: REQUEST.outputSchema },
      ],
    });
    expect(JSON.stringify(body.system)).toContain(`You decide.\\n`);
    expect(body).not.toHaveProperty('tool_choice');
  });

  test('an endpoint that asks for no key gets none; one that does gets it in either header', async () => {
    const seen: unknown[] = [];
    const { baseUrl } = await endpoint((response, body, request) => {
      seen.push([request.headers.authorization, request.headers['x-api-key']]);
      DECIDES(response, body, request);
    });
    await infer({ baseUrl, apiKey: KEY });
    expect(seen).toEqual([[`Bearer ${KEY}`, KEY]]);
    const server = await serve({
      answerOf: () => (response, body, request) => {
        seen.push([request.headers.authorization, request.headers['x-api-key']]);
        DECIDES(response, body, request);
      },
    });
    await infer({ baseUrl: server.url });
    expect(seen[1]).toEqual([undefined, undefined]);
  });

  test('results of one turn are one turn of the user, what the user adds stands behind them', async () => {
    const items = [
      ...[SYSTEM, TASK, asking('', 'call-1', 'call-2'), result('call-1', ''), result('call-2')],
      { role: 'user', text: 'Again.', trusted: true } as const,
    ];
    const { messages } = await sent(items);
    expect((messages as unknown[])[2]).toEqual({
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'call-1' },
        { type: 'tool_result', tool_use_id: 'call-2', content: '{}' },
        text('Again.'),
      ],
    });
  });

  test('ids of calls take the allowed form and come once; a result without its call is told as text', async () => {
    const items = [
      ...[SYSTEM, TASK, asking('', 'pending-0', 'ü:1'), result('pending-0'), result('ü:1')],
      ...[asking('', 'pending-0'), result('pending-0'), result('nobody', 'lost')],
    ];
    const { messages } = await sent(items);
    const ids = JSON.stringify(messages).match(/"(?:id|tool_use_id)":"[^"]+"/g);
    expect(ids?.length).toBe(6 + 3);
    expect(ids?.filter((id) => id.includes('pending-0-2')).length).toBe(2);
    expect(JSON.stringify(messages)).toContain('A result of demo:orders.get: lost');
  });

  test.each([
    ['begins with the agent', [SYSTEM, asking('I was first.'), TASK]],
    ['ends with the agent', [SYSTEM, TASK, asking('I was last.')]],
    ['has an agent that said nothing', [SYSTEM, TASK, asking(' \n'), TASK]],
    ['has an empty task', [SYSTEM, { role: 'user', text: '', trusted: false } as const]],
    ['is a system text alone', [SYSTEM]],
    ['has no system text', [TASK]],
    ['has the agent twice', [SYSTEM, TASK, asking('One.'), asking('Two.'), TASK]],
  ])('a conversation that %s is one that the API takes', async (_name, items) => {
    const { messages } = await sent(items);
    const roles = (messages as { role: string }[]).map(({ role }) => role);
    expect([roles[0], roles.at(-1)]).toEqual(['user', 'user']);
    expect(JSON.stringify(messages)).not.toContain('"text":" ');
  });

  test('a tool whose schema is none of an object is offered with one member, and gets what it holds', async () => {
    const list: ToolDescription = {
      ...ORDERS,
      toolId: 'demo:list',
      inputSchema: { type: 'array', items: { $ref: '#/$defs/id' }, $defs: { id: {} } },
    };
    const either: ToolDescription = {
      ...ORDERS,
      toolId: 'demo:either',
      inputSchema: { oneOf: [] },
    };
    const open: ToolDescription = { ...ORDERS, toolId: 'demo:open', inputSchema: {} };
    const tools = [list, either, open];
    const config = await endpoint(
      streaming(
        begin(),
        toolBlock(0, functionNameOf('demo:list'), '{"value":["A"]}'),
        toolBlock(1, functionNameOf('demo:open'), '{"value":2}'),
        toolBlock(2, functionNameOf('demo:either'), '{"else":3}'),
        end('tool_use'),
      ),
    );
    const { response } = await infer(config, { tools });
    expect(refused()).toEqual([]);
    expect(response.calls.map((call) => call.arguments)).toEqual([
      ['A'],
      { value: 2 },
      { else: 3 },
    ]);
  });

  test('the bound of the request above that of the configuration; thinking comes on top', async () => {
    expect((await sent([TASK], { maxTokens: 500 })).max_tokens).toBe(500);
    expect((await sent([TASK], { maxTokens: 500 }, { maxOutputTokens: 90 })).max_tokens).toBe(90);
    const model = 'claude-haiku-4-5';
    const more = { model, maxOutputTokens: 90 };
    expect(await sent([TASK], { thinking: 2000 }, more)).toMatchObject({
      max_tokens: 2090,
      thinking: { type: 'enabled', budget_tokens: 2000 },
    });
  });

  test('a temperature that a run was accepted with is left out: the API has none, and fails no run for it', async () => {
    expect(await sent([TASK], {}, { temperature: 0.2 })).not.toHaveProperty('temperature');
    expect(createAnthropicModel({}).untaken).toEqual(['temperature']);
  });
});

describe('thinking', () => {
  const shown = { type: 'adaptive', display: 'summarized' };

  test('is adaptive and shown unless it is off, also where calls are answered', async () => {
    expect((await sent(REQUEST.items)).thinking).toEqual(shown);
    expect((await sent(REQUEST.items, { thinking: 'adaptive' })).thinking).toEqual(shown);
    expect(await sent(REQUEST.items, { thinking: 'off' })).not.toHaveProperty('thinking');
  });

  test('a model that does not take it is asked without, and not asked for it again', async () => {
    const config = await endpoint(DECIDES);
    const model = createAnthropicModel(config);
    const request = { ...REQUEST, model: 'claude-haiku-4-5' };
    const options = { signal: new AbortController().signal, onReasoning: () => {} };
    await model.infer(request, options);
    await model.infer(request, options);
    expect(refused()).toEqual(['adaptive thinking is not supported on this model']);
    expect(requests().map(({ thinking }) => thinking)).toEqual([undefined, undefined]);
  });

  test('a request that is wrong otherwise is not blamed on it', async () => {
    const config = await endpoint(failing(400, 'invalid_request_error'), DECIDES);
    const always = await endpoint(failing(400, 'invalid_request_error'));
    expect(await failureOf(always)).toMatchObject({ code: 'model_rejected_request' });
    expect(requests().length).toBe(2);
    expect(await failureOf({ ...always, thinking: 'adaptive' })).toMatchObject({
      code: 'model_rejected_request',
    });
    expect(requests().length).toBe(3);
    expect(config.apiKey).toBe(KEY);
  });

  test('with a budget it rests while calls are answered: their signed thoughts are not kept', async () => {
    const model = 'claude-haiku-4-5';
    const budget = { thinking: 2048 };
    const enabled = { type: 'enabled', budget_tokens: 2048 };
    expect((await sent([SYSTEM, TASK], budget, { model })).thinking).toEqual(enabled);
    expect(await sent(REQUEST.items, budget, { model })).not.toHaveProperty('thinking');
    const answered = [...REQUEST.items, asking('{"decision":0}'), TASK];
    expect((await sent(answered, budget, { model })).thinking).toEqual(enabled);
  });

  test('thoughts are reasoning, in pieces and apart from what follows; what is redacted is never shown', async () => {
    const config = await endpoint(
      streaming(
        begin(),
        thinkingBlock(0, ['Hm. ', 'An order.']),
        blockStart(1, { type: 'redacted_thinking', data: 'c2VjcmV0' }) + blockStop(1),
        textBlock(2, ['I decide.']),
        decision(3),
        end('tool_use'),
      ),
    );
    const { response, pieces } = await infer(config);
    expect(pieces).toEqual(['Hm. ', 'An order.', '\nI decide.']);
    expect(response).toMatchObject({
      kind: 'final',
      final: '{"decision":1}',
      reasoning: 'Hm. An order.\nI decide.',
    });
  });
});
