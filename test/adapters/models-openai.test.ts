// The provider `openai` against an HTTP server of the test's own: real sockets, the protocol as endpoints speak it.
import { afterEach, describe, expect, test } from 'vitest';
import { createOpenAiModel, type OpenAiConfig } from '../../src/adapters/models/openai.ts';
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import { codeOf } from '../../src/rules/errors.ts';
import type { ModelRequest, ToolDescription } from '../../src/ports/models.ts';
import {
  callPiece,
  chunk,
  deciding,
  DONE,
  failing,
  startOpenAiServer,
  streaming,
  USAGE,
  type OpenAiServer,
  type ServerAnswer,
} from '../support/openai-server.ts';
import { paced } from '../support/machine.ts';
import { takes } from '../support/waiting.ts';

let server: OpenAiServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

/** An endpoint that lacks something, and decides in the way that it is asked. */
async function lacking(...without: readonly ('tools' | 'json_schema')[]): Promise<OpenAiConfig> {
  server = await startOpenAiServer(() => deciding(['Hm. '], { decision: 1 }), { without });
  return { baseUrl: server.url };
}

async function endpoint(...answers: ServerAnswer[]): Promise<OpenAiConfig> {
  server = await startOpenAiServer((_body, index) => answers[Math.min(index, answers.length - 1)]);
  return { apiKey: 'sk-test-key-that-is-long', baseUrl: server.url };
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
const REQUEST: ModelRequest = {
  provider: 'openai',
  model: 'asked-1',
  agentId: 'local.test.desk.agent',
  items: [
    { role: 'system', text: 'You decide.' },
    { role: 'user', text: 'Task', trusted: false },
    {
      role: 'assistant',
      text: 'I look.',
      calls: [{ callId: 'call-1', toolId: 'demo:orders.get', arguments: { id: 'A' } }],
    },
    { role: 'tool', callId: 'call-1', toolId: 'demo:orders.get', text: '{}' },
  ],
  tools: [ORDERS],
  outputSchema: { type: 'object' },
  idempotencyKey: 'key-1',
};

async function infer(config: OpenAiConfig, signal = new AbortController().signal) {
  const pieces: string[] = [];
  const response = await createOpenAiModel(config).infer(REQUEST, {
    signal,
    onReasoning: (piece) => pieces.push(piece),
  });
  return { response, pieces };
}

async function codeOfFailure(config: OpenAiConfig): Promise<unknown> {
  return infer(config).then(
    () => 'no failure',
    (error: unknown) => ({
      code: codeOf(error),
      details: (error as { details?: unknown }).details,
    }),
  );
}

describe('what is sent', () => {
  test('messages, tools under allowed names, the decision as one more tool, one logical key', async () => {
    let seen: Record<string, unknown> = {};
    let key: unknown;
    const config = await endpoint((response, body, request) => {
      seen = body;
      key = request.headers['idempotency-key'];
      streaming(chunk({ content: '{"decision":1}' }, 'stop'), DONE)(response, body, request);
    });
    await infer(config);
    const name = functionNameOf('demo:orders.get');
    expect(seen).toMatchObject({
      model: 'asked-1',
      stream: true,
      messages: [
        {
          role: 'system',
          content: expect.stringMatching(/^You decide\.\n.*final_output/) as string,
        },
        { role: 'user', content: 'Task' },
        {
          role: 'assistant',
          tool_calls: [
            { id: 'call-1', type: 'function', function: { name, arguments: '{"id":"A"}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'call-1', content: '{}' },
      ],
      tools: [
        { type: 'function', function: { name, parameters: ORDERS.inputSchema } },
        { type: 'function', function: { name: DECISION_TOOL, parameters: REQUEST.outputSchema } },
      ],
      tool_choice: 'auto',
    });
    expect(seen).not.toHaveProperty('response_format');
    expect(key).toBe('key-1');
  });

  test('an endpoint that asks for no key gets no Authorization header', async () => {
    let authorization: unknown = 'not asked';
    const { baseUrl } = await endpoint((response, body, request) => {
      ({ authorization } = request.headers);
      streaming(chunk({ content: '{"decision":1}' }, 'stop'), DONE)(response, body, request);
    });
    await infer({ baseUrl });
    expect(authorization).toBeUndefined();
  });
});

describe('a tool whose arguments are wrapped', () => {
  const wrapped = {
    ...ORDERS,
    inputSchema: { anyOf: [{ type: 'object', properties: { op: {}, value: {} } }] },
  };
  const name = functionNameOf(ORDERS.toolId);
  const ask = async (args: string, sent?: unknown) => {
    const config = await endpoint(
      streaming(chunk(callPiece(0, name, args)), chunk({}, 'tool_calls'), DONE),
    );
    const items = REQUEST.items.map((item) =>
      item.role === 'assistant' && sent !== undefined
        ? { ...item, calls: item.calls.map((call) => ({ ...call, arguments: sent as never })) }
        : item,
    );
    const { calls } = await createOpenAiModel(config).infer(
      { ...REQUEST, items, tools: [wrapped] },
      { signal: new AbortController().signal, onReasoning: () => {} },
    );
    return calls[0]?.arguments;
  };

  test('what has a member of that name among others is not wrapped', async () => {
    expect(await ask('{"value":{"op":"set"}}')).toEqual({ op: 'set' });
    expect(await ask('{"op":"set","value":5}')).toEqual({ op: 'set', value: 5 });
  });

  test('the conversation shows calls as they are asked for', async () => {
    await ask('{}', { op: 'set', value: 5 });
    expect(JSON.stringify(server?.requests.at(-1)?.messages)).toContain(
      JSON.stringify(JSON.stringify({ value: { op: 'set', value: 5 } })).slice(1, -1),
    );
  });
});

describe('what comes back', () => {
  test('streamed tool calls, in pieces and interleaved; text before them is the reasoning', async () => {
    const name = functionNameOf('demo:orders.get');
    const config = await endpoint(
      streaming(
        chunk({ role: 'assistant', content: 'I read ' }),
        chunk({ content: 'the order.' }),
        chunk(callPiece(0, name, '{"id"')),
        chunk(callPiece(1, 'unknown_tool', '')),
        chunk(callPiece(0, undefined, ':"A-1"}')),
        chunk(callPiece(1, undefined, '{}')),
        chunk({}, 'tool_calls'),
        USAGE,
        DONE,
      ),
    );
    const { response, pieces } = await infer(config);
    expect(pieces).toEqual(['I read ', 'the order.']);
    expect(response).toEqual({
      reasoning: 'I read the order.',
      kind: 'calls',
      calls: [
        { toolId: 'demo:orders.get', arguments: { id: 'A-1' } },
        { toolId: 'unknown_tool', arguments: {} },
      ],
      final: '',
      usage: { inputTokens: 11, outputTokens: 7 },
      model: 'served-1',
    });
  });

  test.each([
    [
      'reasoning_content',
      [{ reasoning_content: 'Hm. ' }, { reasoning_content: 'Yes.' }, { content: '{"decision":1}' }],
      ['Hm. ', 'Yes.'],
    ],
    [
      '<think> over pieces',
      [
        { content: '<thi' },
        { content: 'nk>Hm.</th' },
        { content: 'ink>\n{"decision"' },
        { content: ':1}' },
      ],
      ['Hm.', '\n'],
    ],
    ['prose, then JSON', [{ content: 'Hm.\n' }, { content: '{"decision":1}' }], ['Hm.\n']],
  ])('reasoning by %s is shown, the JSON is not', async (_name, deltas, expected) => {
    const config = await endpoint(
      streaming(...deltas.map((delta) => chunk(delta)), chunk({}, 'stop'), DONE),
    );
    const { response, pieces } = await infer(config);
    expect(pieces).toEqual(expected);
    expect(response).toMatchObject({
      kind: 'final',
      final: '{"decision":1}',
      reasoning: expected.join(''),
    });
  });

  test('a fenced block is final output', async () => {
    const config = await endpoint(
      streaming(chunk({ content: '`' }), chunk({ content: '``json\n{}\n```' }, 'stop'), DONE),
    );
    expect((await infer(config)).response.final).toBe('```json\n{}\n```');
  });

  test('output that is no JSON is reasoning without a final', async () => {
    const config = await endpoint(
      streaming(chunk({ content: 'The moon, perhaps.' }, 'stop'), DONE),
    );
    expect((await infer(config)).response).toMatchObject({ kind: 'final', final: '' });
  });

  test('a refusal is an outcome', async () => {
    const config = await endpoint(
      streaming(chunk({ refusal: 'I will ' }), chunk({ refusal: 'not.' }), chunk({}, 'stop'), DONE),
    );
    expect((await infer(config)).response).toMatchObject({
      kind: 'refusal',
      refusal: 'I will not.',
    });
  });

  test('a content filter is a refusal, a length limit truncates', async () => {
    const config = await endpoint(
      streaming(chunk({ content: 'x' }, 'content_filter'), DONE),
      streaming(chunk({ content: '{"dec' }, 'length'), DONE),
    );
    expect((await infer(config)).response.kind).toBe('refusal');
    expect((await infer(config)).response.kind).toBe('truncated');
  });

  test('without usage it is estimated', async () => {
    const config = await endpoint(streaming(chunk({ content: '{"decision":1}' }, 'stop'), DONE));
    const { usage } = (await infer(config)).response;
    expect(usage.inputTokens).toBeGreaterThan(10);
    expect(usage.outputTokens).toBe(4);
    const wide = await endpoint(streaming(chunk({ content: '{"decision":"字字"}' }, 'stop'), DONE));
    expect((await infer(wide)).response.usage.outputTokens).toBe(6);
  });
});

describe('faults by class', () => {
  test('429 tells how long to wait, and the next call succeeds: the client itself never retries', async () => {
    const config = await endpoint(
      failing(429, { code: 'rate_limit_exceeded' }, { 'retry-after': '3' }),
      streaming(chunk({ content: '{}' }, 'stop'), DONE),
    );
    expect(await codeOfFailure(config)).toMatchObject({
      code: 'rate_limited',
      details: { retryAfterMs: 3000 },
    });
    expect((await infer(config)).response.final).toBe('{}');
  });

  test.each([
    [429, { code: 'insufficient_quota' }, 'model_rejected_request'],
    [400, {}, 'model_rejected_request'],
    [
      401,
      { code: 'invalid_api_key', message: 'Incorrect API key: sk-test-key-that-is-long' },
      'model_rejected_request',
    ],
    [403, {}, 'model_rejected_request'],
    [404, { code: 'model_not_found' }, 'model_rejected_request'],
    [408, {}, 'model_unavailable'],
    [500, {}, 'model_unavailable'],
    [503, {}, 'model_unavailable'],
  ])('HTTP %i %j is %s', async (status, error, code) => {
    const failure = await codeOfFailure(await endpoint(failing(status, error)));
    expect(failure).toMatchObject({ code });
    expect(JSON.stringify(failure)).not.toContain('sk-test');
  });

  test('a connection dropped mid-stream', async () => {
    const config = await endpoint((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunk({ content: 'Half a ' }), () => response.destroy());
    });
    expect(await codeOfFailure(config)).toMatchObject({ code: 'model_unavailable' });
  });

  test('a stream that ends without a finish', async () => {
    const config = await endpoint(streaming(chunk({ content: 'Half a ' })));
    expect(await codeOfFailure(config)).toMatchObject({ code: 'model_unavailable' });
  });

  test('nobody listens', async () => {
    const config = await endpoint(streaming());
    await server?.stop();
    server = undefined;
    expect(await codeOfFailure(config)).toMatchObject({ code: 'model_unavailable' });
  });

  test('invalid JSON in the stream', async () => {
    const config = await endpoint(streaming('data: {"choices": [\n\n', DONE));
    expect(await codeOfFailure(config)).toMatchObject({ code: 'model_unavailable' });
  });

  test('10 MB of output', async () => {
    const big = chunk({ content: 'x'.repeat(512 * 1024) });
    const config = await endpoint(streaming(...Array.from({ length: 20 }, () => big)));
    expect(await codeOfFailure(config)).toMatchObject({ code: 'model_output_too_large' });
  });

  test('a provider that falls silent', async () => {
    const config = await endpoint((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunk({ content: 'Half a ' }));
    });
    const failure = await codeOfFailure({ ...config, stallTimeoutMs: 50 });
    expect(failure).toMatchObject({ code: 'model_unavailable' });
  });

  test('a provider that sends comments while its model thinks is not silent', async () => {
    const config = await endpoint((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const thinking = setInterval(() => response.write(': PROCESSING\n\n'), paced(200));
      response.on('close', () => clearInterval(thinking));
      void takes(1_600).then(() => response.end(chunk({ content: '1' }, 'stop') + DONE));
    });
    expect((await infer({ ...config, stallTimeoutMs: paced(1_000) })).response.kind).toBe('final');
  });

  test('a cancelled call closes its socket', async () => {
    const stop = new AbortController();
    let closed: Promise<unknown> = Promise.resolve('never asked');
    const config = await endpoint((response, _body, request) => {
      closed = new Promise((resolve) => request.socket.on('close', () => resolve('closed')));
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(chunk({ content: 'Half a ' }), () => stop.abort(new Error('stopped')));
    });
    await expect(infer(config, stop.signal)).rejects.toThrow('stopped');
    expect(await closed).toBe('closed');
  });
});

describe('the way of asking for a decision', () => {
  const bare = { ...REQUEST, tools: [] };
  const noReasoning = { signal: new AbortController().signal, onReasoning: () => {} };

  test.each([
    [[], 0],
    [['tools'], 2],
    [['tools', 'json_schema'], 4],
  ] as const)(
    'an endpoint without %j: the first way that it takes, and after two answers that one alone',
    async (without, refusals) => {
      const model = createOpenAiModel(await lacking(...without));
      for (const time of ['first', 'second', 'third']) {
        const { kind, final } = await model.infer(bare, noReasoning);
        expect([kind, final], time).toEqual(['final', '{"decision":1}']);
      }
      expect([server?.refused.length, server?.requests.length]).toEqual([refusals, 3]);
    },
  );

  test('by setting there is one way alone', async () => {
    const config = await lacking('tools');
    const model = createOpenAiModel({ ...config, decision: 'tool' });
    await expect(model.infer(bare, noReasoning)).rejects.toMatchObject({
      code: 'model_rejected_request',
    });
    expect(server?.refused).toHaveLength(1);
  });

  test('all ways refused: the first refusal is told, and that the agent has tools', async () => {
    const config = await lacking('tools');
    const failure = await codeOfFailure(config);
    expect(failure).toMatchObject({ code: 'model_rejected_request', details: { status: 400 } });
    expect(JSON.stringify(failure)).toContain(`${REQUEST.agentId} has tools`);
    expect(server?.refused).toHaveLength(3);
  });

  test.each([401, 403, 429, 500, 503])('HTTP %i is of no way: asked once', async (status) => {
    await codeOfFailure(await endpoint(failing(status)));
    expect(server?.requests).toHaveLength(1);
  });

  test('a way that was once taken is not left for a refusal', async () => {
    const config = await endpoint(deciding([], { decision: 1 }), failing(400));
    const model = createOpenAiModel(config);
    await model.infer(REQUEST, noReasoning);
    await expect(model.infer(REQUEST, noReasoning)).rejects.toMatchObject({
      code: 'model_rejected_request',
    });
    expect(server?.requests).toHaveLength(2);
  });

  test('a refusal that passes moves no model to another way for good', async () => {
    const config = await endpoint(failing(404), deciding([], { decision: 1 }));
    const model = createOpenAiModel(config);
    for (let time = 0; time < 3; time++) await model.infer(bare, noReasoning);
    expect(server?.requests.map(({ tools }) => tools !== undefined)).toEqual([
      ...[true, false, true, true],
    ]);
  });

  test('of two first calls the one that is taken in the better way counts', async () => {
    let refuse: () => void = () => {};
    const isHeld = new Promise<void>((resolve) => (refuse = resolve));
    let first = true;
    server = await startOpenAiServer(() => {
      if (!first) return deciding([], { decision: 1 });
      first = false;
      return (response, body, request) =>
        void isHeld.then(() => failing(400)(response, body, request));
    });
    const model = createOpenAiModel({ baseUrl: server.url });
    const slow = model.infer(bare, noReasoning);
    await expect.poll(() => server?.requests.length).toBe(1);
    await model.infer(bare, noReasoning);
    refuse();
    await slow;
    await model.infer(bare, noReasoning);
    expect(server.requests.map(({ tools }) => tools !== undefined)).toEqual([
      ...[true, true, false, true],
    ]);
  });

  test('another way is another request, by its key', async () => {
    const keys: unknown[] = [];
    const config = await endpoint((response, body, request) => {
      keys.push(request.headers['idempotency-key']);
      (keys.length < 3 ? failing(400) : deciding([], { decision: 1 }))(response, body, request);
    });
    await createOpenAiModel(config).infer(bare, noReasoning);
    expect(keys).toEqual(['key-1', 'key-1-json_schema', 'key-1-text']);
  });

  test('a schema told in words where there is neither tool nor format', async () => {
    await infer({ ...(await lacking()), decision: 'text' });
    const [body] = server?.requests ?? [];
    expect(body).not.toHaveProperty('response_format');
    expect(JSON.stringify(body?.messages)).toContain('matches this JSON Schema');
  });
});

describe('a stream that lies', () => {
  const name = functionNameOf('demo:orders.get');
  const called = { kind: 'calls', calls: [{ toolId: 'demo:orders.get', arguments: { id: 'A' } }] };
  const piece = (more: Record<string, unknown>, args: string) =>
    chunk({ tool_calls: [{ ...more, function: { arguments: args } }] });
  const whole = chunk(callPiece(0, name, '{"id":"A"}'));
  const end = chunk({}, 'tool_calls') + DONE;
  const nothing = chunk({ content: null, tool_calls: null, refusal: null, reasoning: null });

  test.each<[string, string]>([
    [
      'ids that change between pieces',
      chunk(callPiece(0, name, '{"id"')) + piece({ index: 0, id: 'other' }, ':"A"}') + end,
    ],
    [
      'the name with each piece',
      chunk(callPiece(0, name, '{"id"')) + chunk(callPiece(0, name, ':"A"}')) + end,
    ],
    ['pieces without a number', chunk(callPiece(0, name, '{"id"')) + piece({}, ':"A"}') + end],
    ['null everywhere', nothing + whole + `data: null\n\n` + end],
    ['a second finish', whole + chunk({}, 'tool_calls') + chunk({}, 'stop') + DONE],
    ['an empty finish before the one', whole + chunk({}, '') + chunk({}, 'tool_calls') + DONE],
    ['data behind the end', whole + end + chunk({ content: 'and ' }, 'stop')],
    ['CRLF', (whole + end).replaceAll('\n', '\r\n')],
  ])('%s', async (_name, text) => {
    expect((await infer(await endpoint(streaming(text)))).response).toMatchObject(called);
  });

  test('half a call: nothing is called', async () => {
    const cut = chunk(callPiece(0, name, '{"id"'));
    const config = await endpoint(streaming(cut + end), streaming(whole + DONE));
    expect((await infer(config)).response).toMatchObject({ kind: 'unusable', calls: [] });
    expect((await infer(config)).response).toMatchObject({ kind: 'unusable', calls: [] });
  });

  test('an empty finish is none: the one that follows says whether the answer was cut', async () => {
    const config = await endpoint(
      streaming(whole + chunk({}, '') + chunk({}, 'length') + DONE),
      streaming(whole + chunk({}, '') + DONE),
    );
    expect((await infer(config)).response).toMatchObject({ kind: 'truncated', calls: [] });
    expect((await infer(config)).response).toMatchObject({ kind: 'unusable', calls: [] });
  });

  test.each([
    [{ type: 'server_error', code: null }, 'model_unavailable'],
    [{ code: 429 }, 'rate_limited'],
    [{ code: 'insufficient_quota' }, 'model_rejected_request'],
    [{ code: 'invalid_api_key' }, 'model_rejected_request'],
    ['overloaded', 'model_unavailable'],
  ])('200 with the error %j, as body and as event, is %s', async (error, code) => {
    const text = JSON.stringify({ error });
    const body: ServerAnswer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' });
      response.end(text);
    };
    expect(await codeOfFailure(await endpoint(body))).toMatchObject({ code });
    await server?.stop();
    const config = await endpoint(streaming(chunk({ content: 'Hm. ' }), `data: ${text}\n\n`));
    expect(await codeOfFailure(config)).toMatchObject({ code });
  });

  test('more calls than can be meant', async () => {
    const calls = Array.from({ length: 2000 }, (_, index) => chunk(callPiece(index, name, '{}')));
    const config = await endpoint(streaming(...calls, end));
    expect(await codeOfFailure(config)).toMatchObject({ code: 'model_output_too_large' });
  });

  test('blanks without an end are no beginning of a decision', async () => {
    const blanks = chunk({ content: ' '.repeat(1000) });
    const text = blanks + blanks + chunk({ content: 'Hm.' }, 'stop') + DONE;
    const { pieces, response } = await infer(await endpoint(streaming(text)));
    expect([pieces[0]?.length, response.reasoning.length]).toEqual([2000, 2003]);
  });

  test('arguments nested deeper than a stack: nothing is called', async () => {
    const deep = `{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
    for (const called of [name, DECISION_TOOL]) {
      const config = await endpoint(streaming(chunk(callPiece(0, called, deep)) + end));
      const { kind, calls, unusable } = (await infer(config)).response;
      expect([kind, calls, unusable]).toEqual([
        'unusable',
        [],
        expect.stringContaining('nested deeper'),
      ]);
    }
  });

  test('key and conversation go to the endpoint that was named, and nowhere that it points to', async () => {
    let asked = 0;
    const other = await startOpenAiServer(() => {
      asked++;
      return deciding([], { decision: 1 });
    });
    const config = await endpoint((response) => {
      response.writeHead(307, { location: `${other.url}/chat/completions` }).end();
    });
    const failure = await codeOfFailure(config);
    await other.stop();
    expect([failure, asked]).toMatchObject([{ code: 'model_rejected_request' }, 0]);
  });

  test.each([400, 500])(
    'a refusal (%i) whose words have no end is not waited for',
    async (status) => {
      const config = await endpoint((response) => {
        response.writeHead(status, { 'content-type': 'application/json' }).write('{"error":');
      });
      const failure = await codeOfFailure({ ...config, decision: 'tool' });
      expect(failure).toMatchObject({ details: { status } });
    },
  );

  test('an endpoint that does not begin to answer', async () => {
    const config = await endpoint(() => {});
    const failure = await codeOfFailure({ ...config, startTimeoutMs: 50 });
    expect(failure).toMatchObject({ code: 'model_unavailable' });
  });

  test('overloaded, with a time to wait', async () => {
    const config = await endpoint(failing(529, {}, { 'retry-after': '2' }));
    const details = { status: 529, retryAfterMs: 2000 };
    expect(await codeOfFailure(config)).toMatchObject({ code: 'model_unavailable', details });
  });
});
