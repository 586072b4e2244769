// The provider `anthropic` against an HTTP server of the test's own, which is as strict as the documented API: real
// sockets, streams as the API sends them and as it should not.
import { afterEach, describe, expect, test } from 'vitest';
import { createAnthropicModel, type AnthropicConfig } from '../../src/adapters/models/anthropic.ts';
import { DEFAULT_ANTHROPIC_MAX_TOKENS } from '../../src/adapters/models/anthropic-request.ts';
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import { codeOf } from '../../src/rules/errors.ts';
import type { ModelRequest, ToolDescription, TranscriptItem } from '../../src/ports/models.ts';
import { faultOfMessages } from '../support/anthropic-rules.ts';
import {
  begin,
  blockDelta,
  blockStart,
  blockStop,
  end,
  errorEvent,
  event,
  failing,
  PING,
  startAnthropicServer,
  STOP,
  streaming,
  textBlock,
  thinkingBlock,
  toolBlock,
  type AnthropicAnswer,
  type AnthropicServer,
} from '../support/anthropic-server.ts';

const KEY = 'sk-ant-test-key-that-is-long';

let server: AnthropicServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

async function endpoint(...answers: AnthropicAnswer[]): Promise<AnthropicConfig> {
  server = await startAnthropicServer({
    answerOf: (_body, index) => answers[Math.min(index, answers.length - 1)],
    key: KEY,
  });
  return { apiKey: KEY, baseUrl: server.url };
}

const ORDERS: ToolDescription = {
  toolId: 'demo:orders.get',
  description: 'Reads an order.',
  inputSchema: { type: 'object', properties: { id: { type: 'string' } } },
  idempotent: true,
  timeoutMs: 1000,
  transport: 'http',
  safetyTier: 'read',
};
const ORDERS_NAME = functionNameOf(ORDERS.toolId);

const SYSTEM: TranscriptItem = { role: 'system', text: 'You decide.' };
const TASK: TranscriptItem = { role: 'user', text: 'Task', trusted: false };
const asking = (text: string, ...callIds: string[]): TranscriptItem => ({
  role: 'assistant',
  text,
  calls: callIds.map((callId) => ({ callId, toolId: ORDERS.toolId, arguments: { id: 'A' } })),
});
const result = (callId: string, text = '{}'): TranscriptItem => ({
  role: 'tool',
  callId,
  toolId: ORDERS.toolId,
  text,
});

const REQUEST: ModelRequest = {
  provider: 'anthropic',
  model: 'claude-test-1',
  agentId: 'local.test.desk.agent',
  items: [SYSTEM, TASK, asking('I look.', 'call-1'), result('call-1')],
  tools: [ORDERS],
  outputSchema: { type: 'object', properties: { decision: {} }, required: ['decision'] },
  idempotencyKey: 'key-1',
};

async function infer(
  config: AnthropicConfig,
  more: Partial<ModelRequest> = {},
  stop?: AbortSignal,
) {
  const pieces: string[] = [];
  const response = await createAnthropicModel(config).infer(
    { ...REQUEST, ...more },
    { signal: stop ?? new AbortController().signal, onReasoning: (piece) => pieces.push(piece) },
  );
  return { response, pieces };
}

function failureOf(config: AnthropicConfig, more: Partial<ModelRequest> = {}): Promise<unknown> {
  return infer(config, more).then(
    () => 'no failure',
    (error: unknown) => {
      const { message, details } = error as { message: string; details?: unknown };
      return { code: codeOf(error), message, details };
    },
  );
}

const decision = (index = 0): string => toolBlock(index, DECISION_TOOL, '{"decision":1}');
const WHOLE = decision() + end('tool_use');
const DECIDES = streaming(begin(), WHOLE);

/** The body of the request that these items make, which the rules of the endpoint let through. */
async function sent(
  items: readonly TranscriptItem[],
  config: Partial<AnthropicConfig> = {},
  more: Partial<ModelRequest> = {},
): Promise<Record<string, unknown>> {
  await infer({ ...(await endpoint(DECIDES)), ...config }, { items, ...more });
  expect(server?.refused).toEqual([]);
  return server?.requests.at(-1) ?? {};
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
    server = await startAnthropicServer({
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
    expect(server?.refused).toEqual([]);
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

  test('a temperature is refused before anybody is asked: the API has none', async () => {
    const config = await endpoint(DECIDES);
    expect(await failureOf(config, { temperature: 0.2 })).toMatchObject({
      code: 'model_rejected_request',
      message: expect.stringContaining('takes no temperature') as unknown,
    });
    expect(server?.requests.length).toBe(0);
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
    expect(server?.refused).toEqual(['adaptive thinking is not supported on this model']);
    expect(server?.requests.map(({ thinking }) => thinking)).toEqual([undefined, undefined]);
  });

  test('a request that is wrong otherwise is not blamed on it', async () => {
    const config = await endpoint(failing(400, 'invalid_request_error'), DECIDES);
    const always = await endpoint(failing(400, 'invalid_request_error'));
    expect(await failureOf(always)).toMatchObject({ code: 'model_rejected_request' });
    expect(server?.requests.length).toBe(2);
    expect(await failureOf({ ...always, thinking: 'adaptive' })).toMatchObject({
      code: 'model_rejected_request',
    });
    expect(server?.requests.length).toBe(3);
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

describe('what comes back', () => {
  test('calls in the order of their indexes, whole and in pieces; ids and pings mean nothing', async () => {
    const config = await endpoint(
      streaming(
        begin({ input_tokens: 5, cache_creation_input_tokens: 4, cache_read_input_tokens: 2 }),
        textBlock(0, ['I read ', 'the order.']),
        blockStart(2, { type: 'tool_use', id: 'same', name: 'unknown_tool', input: { a: 1 } }),
        PING,
        blockStart(1, { type: 'tool_use', id: 'same', name: ORDERS_NAME, input: {} }),
        blockDelta(1, { type: 'input_json_delta', partial_json: '' }),
        blockDelta(1, { type: 'input_json_delta', partial_json: '{"id"' }),
        blockStop(2),
        blockDelta(1, { type: 'input_json_delta', partial_json: ':"A-1"}' }),
        blockStop(1),
        end('tool_use'),
      ),
    );
    const { response, pieces } = await infer(config);
    expect(pieces).toEqual(['I read ', 'the order.']);
    expect(response).toEqual({
      reasoning: 'I read the order.',
      kind: 'calls',
      calls: [
        { toolId: 'demo:orders.get', arguments: { id: 'A-1' } },
        { toolId: 'unknown_tool', arguments: { a: 1 } },
      ],
      final: '',
      usage: { inputTokens: 11, outputTokens: 7 },
      model: 'served-1',
    });
  });

  test('a call without input has no arguments', async () => {
    const start = blockStart(0, { type: 'tool_use', id: 't', name: ORDERS_NAME, input: {} });
    const config = await endpoint(streaming(begin(), start, blockStop(0), end('tool_use')));
    expect((await infer(config)).response.calls).toEqual([
      { toolId: 'demo:orders.get', arguments: {} },
    ]);
  });

  test('a decision that is written out is the final output, what stands before it the reasoning', async () => {
    const config = await endpoint(
      streaming(begin(), textBlock(0, ['Hm.\n', '{"decision"', ':1}']), end('end_turn')),
    );
    const { response, pieces } = await infer(config);
    expect([response.kind, response.final, pieces]).toEqual(['final', '{"decision":1}', ['Hm.\n']]);
  });

  test.each([
    ['two decisions', decision(0) + decision(1), /two final outputs/],
    ['a decision beside a call', decision(0) + toolBlock(1, ORDERS_NAME, '{}'), /beside calls/],
    ['half a call', toolBlock(0, ORDERS_NAME, '{"id": "A'), /no JSON/],
    ['a call with no JSON', toolBlock(0, ORDERS_NAME, 'the moon'), /no JSON/],
  ])('%s: unusable, and nothing is called', async (_name, blocks, why) => {
    const config = await endpoint(streaming(begin(), blocks, end('tool_use')));
    const { response } = await infer(config);
    expect(response).toMatchObject({ kind: 'unusable', calls: [] });
    expect(response.unusable).toMatch(why);
  });

  test('a refusal is an outcome, with what the API says of it', async () => {
    const said = { type: 'refusal', category: 'cyber', explanation: 'I will not.' };
    const config = await endpoint(
      streaming(begin(), textBlock(0, ['I']), end('refusal', { stop_details: said })),
      streaming(begin(), end('refusal', { stop_details: { ...said, explanation: null } })),
      streaming(begin(), decision(), end('refusal')),
    );
    const told = async () => {
      const { kind, refusal } = (await infer(config)).response;
      return [kind, refusal];
    };
    const model = await told();
    expect(model).toEqual(['refusal', 'I will not.']);
    expect(await told()).toEqual(['refusal', 'cyber']);
    expect(await told()).toEqual(['refusal', '']);
  });

  test.each([
    ['max_tokens', 'truncated'],
    ['end_turn', 'final'],
    ['stop_sequence', 'final'],
    ['pause_turn', 'final'],
    ['something_new', 'final'],
  ])('stop_reason %s: %s', async (reason, kind) => {
    const config = await endpoint(
      streaming(begin(), textBlock(0, ['{"decision":1}']), end(reason)),
    );
    expect((await infer(config)).response.kind).toBe(kind);
  });

  test('a conversation that is longer than the context window is not asked for again', async () => {
    const config = await endpoint(streaming(begin(), end('model_context_window_exceeded')));
    expect(await failureOf(config)).toMatchObject({
      code: 'model_rejected_request',
      message: expect.stringContaining('context window') as unknown,
    });
  });

  test('without usage it is estimated', async () => {
    const silent = event({ type: 'message_start', message: { model: '' } });
    const config = await endpoint(streaming(silent, decision(), end('tool_use', { usage: {} })));
    const { usage, model } = (await infer(config)).response;
    expect(model).toBe('claude-test-1');
    expect(usage.inputTokens).toBeGreaterThan(10);
    expect(usage.outputTokens).toBeGreaterThan(3);
  });
});

describe('faults by class', () => {
  test('429 tells how long to wait, and the next call succeeds: the client itself never retries', async () => {
    const headers = { 'retry-after': '3' };
    const config = await endpoint(failing(429, 'rate_limit_error', { headers }), DECIDES);
    expect(await failureOf(config)).toMatchObject({
      code: 'rate_limited',
      details: { retryAfterMs: 3000, providerCode: 'rate_limit_error' },
    });
    expect(server?.requests.length).toBe(1);
    expect((await infer(config)).response.final).toBe('{"decision":1}');
  });

  test.each([
    [400, 'invalid_request_error', 'model_rejected_request'],
    [401, 'authentication_error', 'model_rejected_request'],
    [402, 'billing_error', 'model_rejected_request'],
    [403, 'permission_error', 'model_rejected_request'],
    [404, 'not_found_error', 'model_rejected_request'],
    [413, 'request_too_large', 'model_rejected_request'],
    [500, 'api_error', 'model_unavailable'],
    [503, 'api_error', 'model_unavailable'],
    [504, 'timeout_error', 'model_unavailable'],
    [529, 'overloaded_error', 'model_unavailable'],
  ])(
    'HTTP %i %s, and its event within a stream: %s, and what it says is not repeated',
    async (status, type, code) => {
      const message = `Not with the key ${KEY}`;
      const config = await endpoint(
        failing(status, type, { message }),
        streaming(begin(), textBlock(0, ['Half a ']), errorEvent(type, message)),
      );
      const asked = { ...config, thinking: 'off' as const };
      const failures = [await failureOf(asked), await failureOf(asked)];
      expect(failures[0]).toMatchObject({ code, details: { status, providerCode: type } });
      expect(failures[1]).toMatchObject({ code, details: { providerCode: type } });
      expect(JSON.stringify(failures)).not.toContain('sk-ant');
    },
  );

  test('a type that nobody documents is not repeated: it may be anything', async () => {
    const config = await endpoint(
      failing(418, `is ${KEY} yours?`),
      streaming(begin(), errorEvent(`is ${KEY} yours?`)),
    );
    const failures = [await failureOf(config), await failureOf(config)];
    expect(failures).toMatchObject([
      { code: 'model_rejected_request' },
      { code: 'model_unavailable' },
    ]);
    expect(JSON.stringify(failures)).not.toContain('sk-ant');
  });

  const halves: readonly (readonly [string, string])[] = [
    ['no end', textBlock(0, ['Half a '])],
    ['no message_stop', textBlock(0, ['{"decision":1}']) + end('end_turn').replace(STOP, '')],
    ['no reason to stop', textBlock(0, ['{"decision":1}']) + end(null)],
    [
      'a piece of a block that never began',
      blockDelta(3, { type: 'text_delta', text: 'x' }) + WHOLE,
    ],
    ['a block that begins twice', blockStart(0, { type: 'text', text: '' }) + WHOLE],
    ['no JSON', `event: content_block_start\ndata: {"index": [\n\n${WHOLE}`],
  ];
  test.each(halves)('a stream with %s', async (_name, parts) => {
    const config = await endpoint(streaming(begin(), parts));
    expect(await failureOf(config)).toMatchObject({ code: 'model_unavailable' });
  });

  test('200 with an error in place of a stream, and with a page', async () => {
    const error = JSON.stringify({ type: 'error', error: { type: 'api_error', message: KEY } });
    const config = await endpoint(
      (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(error),
      (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Busy</p>'),
    );
    expect(await failureOf(config)).toMatchObject({ code: 'model_unavailable' });
    expect(await failureOf(config)).toMatchObject({ code: 'model_unavailable' });
  });

  test('a connection dropped mid-stream', async () => {
    const config = await endpoint((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(begin(), () => response.destroy());
    });
    expect(await failureOf(config)).toMatchObject({ code: 'model_unavailable' });
  });

  test('nobody listens', async () => {
    const config = await endpoint(DECIDES);
    await server?.stop();
    server = undefined;
    expect(await failureOf(config)).toMatchObject({ code: 'model_unavailable' });
  });

  test('10 MB of output', async () => {
    const big = textBlock(
      0,
      Array.from({ length: 20 }, () => 'x'.repeat(512 * 1024)),
    );
    const config = await endpoint(streaming(begin(), big, end('end_turn')));
    expect(await failureOf(config)).toMatchObject({ code: 'model_output_too_large' });
  });

  test('a provider that falls silent; one that says ping is alive', async () => {
    const pinging =
      (times: number): AnthropicAnswer =>
      (response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(begin());
        let left = times;
        const timer = setInterval(() => {
          if (left-- > 0) return response.write(PING);
          clearInterval(timer);
          return times > 0 && response.end(decision() + end('tool_use'));
        }, 100);
        response.on('close', () => clearInterval(timer));
      };
    const config = { ...(await endpoint(pinging(0), pinging(10))), stallTimeoutMs: 800 };
    expect(await failureOf(config)).toMatchObject({ code: 'model_unavailable' });
    expect((await infer(config)).response.final).toBe('{"decision":1}');
  });

  test('a cancelled call closes its socket', async () => {
    const stop = new AbortController();
    let closed: Promise<unknown> = Promise.resolve('never asked');
    const config = await endpoint((response, _body, request) => {
      closed = new Promise((resolve) => request.socket.on('close', () => resolve('closed')));
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(begin(), () => stop.abort(new Error('stopped')));
    });
    await expect(infer(config, {}, stop.signal)).rejects.toThrow('stopped');
    expect(await closed).toBe('closed');
  });
});
