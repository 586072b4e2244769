// The provider `openai` against an HTTP server of the test's own: real sockets, the protocol as endpoints speak it.
import { afterEach, describe, expect, test } from 'vitest';
import { createOpenAiModel, type OpenAiConfig } from '../../src/adapters/models/openai.ts';
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { functionNameOf, toolIdOf } from '../../src/adapters/models/tool-names.ts';
import { codeOf } from '../../src/rules/errors.ts';
import type { ModelRequest, ToolDescription } from '../../src/ports/models.ts';
import {
  callPiece,
  chunk,
  DONE,
  failing,
  startOpenAiServer,
  streaming,
  USAGE,
  type OpenAiServer,
  type ServerAnswer,
} from '../support/openai-server.ts';

let server: OpenAiServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

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

  test('tool ids become names of the allowed form, none twice, and come back', () => {
    const ids = [
      'a:b',
      'a_cb',
      'a__cb',
      'a.b',
      'a/b',
      'a:ü',
      `x:${'y'.repeat(100)}`,
      `x:${'y'.repeat(101)}`,
    ];
    const names = ids.map(functionNameOf);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(new Set(names).size).toBe(ids.length);
    expect(names.map((name) => toolIdOf(name, ids))).toEqual(ids);
    expect(toolIdOf('made_up', ids)).toBe('made_up');
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
    expect(await codeOfFailure({ ...config, stallTimeoutMs: 50 })).toMatchObject({
      code: 'model_unavailable',
    });
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
