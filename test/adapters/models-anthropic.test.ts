// What the provider `anthropic` makes of answers, streamed over real sockets as the API sends them and as it should not.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { checkAnthropic } from '../../src/adapters/models/anthropic.ts';
import {
  KEY,
  serve,
  stopServer,
  requests,
  endpoint,
  ORDERS_NAME,
  infer,
  failureOf,
  decision,
  WHOLE,
  DECIDES,
} from './anthropic-calls.ts';
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
  STOP,
  streaming,
  textBlock,
  toolBlock,
  type AnthropicAnswer,
} from '../support/anthropic-server.ts';
import { paced } from '../support/machine.ts';

describe('what comes back', () => {
  test('calls in the order of their indexes, whole and in pieces; pings mean nothing', async () => {
    const config = await endpoint(
      streaming(
        begin({ input_tokens: 5, cache_creation_input_tokens: 4, cache_read_input_tokens: 2 }),
        textBlock(0, ['I read ', 'the order.']),
        blockStart(2, { type: 'tool_use', id: 'b', name: 'unknown_tool', input: { a: 1 } }),
        PING,
        blockStart(1, { type: 'tool_use', id: 'a', name: ORDERS_NAME, input: {} }),
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

  test('[I103] a whole input at the start, with a number that may have been another one', async () => {
    const input = { order: 2512292042121000000 };
    const config = await endpoint(
      streaming(
        begin(),
        blockStart(0, { type: 'tool_use', id: 't', name: ORDERS_NAME, input }),
        blockStop(0),
        end('tool_use'),
      ),
    );
    const { response } = await infer(config);
    expect(response).toMatchObject({ kind: 'unusable', calls: [] });
    expect(response.unusable).toContain('/order is a number that cannot be kept exactly');
  });

  test.each([
    [{ input_tokens: '50', output_tokens: -3 }],
    [{ input_tokens: 1.5, output_tokens: 1e300 }],
    [{ input_tokens: {}, output_tokens: null }],
  ])('counts that are none are not believed: %j', async (usage) => {
    const config = await endpoint(
      streaming(begin(usage), textBlock(0, ['{"decision":1}']), end('end_turn', { usage })),
    );
    const { inputTokens, outputTokens } = (await infer(config)).response.usage;
    for (const count of [inputTokens, outputTokens])
      expect(Number.isSafeInteger(count) && count > 0, String(count)).toBe(true);
  });

  test('the key goes to the endpoint that was named, and nowhere that it points to', async () => {
    const seen: unknown[] = [];
    const other = createServer((request, response) => {
      seen.push(request.headers);
      response.end('{}');
    });
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const location = `http://127.0.0.1:${(other.address() as AddressInfo).port}/v1/messages`;
    const config = await endpoint((response) => void response.writeHead(307, { location }).end());
    const failure = await failureOf(config);
    other.close();
    expect([failure, seen]).toMatchObject([{ code: 'model_rejected_request' }, []]);
  });

  test('an answer is whole at message_stop, though its connection stays open', async () => {
    const config = await endpoint((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(begin() + decision() + end('tool_use'));
    });
    const asked = await infer({ ...config, stallTimeoutMs: paced(5_000) });
    expect(asked.response.final).toBe('{"decision":1}');
  });

  test('[DONE] before message_stop is none of this API', async () => {
    const text = begin() + decision() + end('tool_use').replace(STOP, `data: [DONE]\n\n${STOP}`);
    expect((await infer(await endpoint(streaming(text)))).response.final).toBe('{"decision":1}');
  });

  test('events without names say by their type what they are', async () => {
    const text = (begin() + decision() + end('tool_use')).replaceAll(/^event: .*\n/gm, '');
    const error = errorEvent('overloaded_error', 'Too many.').replace(/^event: .*\n/, '');
    const config = await endpoint(streaming(text), streaming(begin(), error));
    expect((await infer(config)).response.final).toBe('{"decision":1}');
    const message = 'The model provider failed with HTTP 529: "Too many." (type overloaded_error)';
    expect(await failureOf(config)).toMatchObject({
      code: 'model_unavailable',
      details: { reason: message },
    });
  });

  test('a refusal without words is not waited for', async () => {
    const config = await endpoint((response) => {
      response.writeHead(500, { 'content-type': 'text/html' }).flushHeaders();
    });
    expect(await failureOf(config)).toMatchObject({ code: 'model_unavailable' });
  });

  test('a call without input has no arguments', async () => {
    const start = blockStart(0, { type: 'tool_use', id: 't', name: ORDERS_NAME, input: {} });
    const config = await endpoint(streaming(begin(), start, blockStop(0), end('tool_use')));
    expect((await infer(config)).response.calls).toEqual([
      { toolId: 'demo:orders.get', arguments: {} },
    ]);
  });

  const use = (id: string, input: unknown = {}, name = ORDERS_NAME) => ({
    ...{ type: 'tool_use', id, name, input },
  });
  const argued = (index: number, ...pieces: string[]) =>
    pieces
      .map((partial_json) => blockDelta(index, { type: 'input_json_delta', partial_json }))
      .join('');
  const whole = blockStart(0, use('a')) + argued(0, '{"id"', ':"A"}') + blockStop(0);
  const A = { toolId: 'demo:orders.get', arguments: { id: 'A' } };

  // [I121]
  test.each<[string, string, unknown[]]>([
    ['A31: said again', whole + whole.replaceAll('"index":0', '"index":1'), [A]],
    ['A31: said again, whole at the start', whole + blockStart(1, use('a', { id: 'A' })), [A]],
    ['A31: another id is another call', whole + blockStart(1, use('b', { id: 'A' })), [A, A]],
    ['A32: begun twice', blockStart(0, use('a')) + whole, [A]],
    ['A32: begun twice, the second time in the end', whole + blockStart(0, use('a')), [A]],
    ['A32: all of it at its own index', whole + whole, [A]],
    ['A34: whole at the start and in pieces', blockStart(0, use('a', { id: 'A' })) + whole, [A]],
    [
      'in single characters, white space in a string',
      blockStart(0, use('a')) + argued(0, ...'{"id":"x y"}'),
      [{ toolId: 'demo:orders.get', arguments: { id: 'x y' } }],
    ],
    ['the input as text at the start', blockStart(0, use('a', '{"id":"A"}')), [A]],
    ['an empty list as input', blockStart(0, use('a', [])) + argued(0, '{"id":"A"}'), [A]],
    ['without an id', blockStart(0, use('', { id: 'A' })) + argued(0, '{ "id": "A" }'), [A]],
  ])('a call that is framed in another way is the same call, %s', async (_name, blocks, calls) => {
    const config = await endpoint(streaming(begin(), blocks, end('tool_use')));
    expect((await infer(config)).response).toMatchObject({ kind: 'calls', calls });
  });

  // [I121]
  test.each<[string, string, string]>([
    ['A31: other input', blockStart(1, use('a', { id: 'B' })), 'two different arguments'],
    ['A31: another name', blockStart(1, use('a', { id: 'A' }, 'b')), 'two names'],
    ['A32: other input', blockStart(0, use('a', { id: 'B' })), 'two different arguments'],
    ['A34: other input in pieces', argued(0, '{"id":"B"}'), 'two different arguments'],
  ])('a call that can be read in two ways is not performed, %s', async (_name, more, why) => {
    const config = await endpoint(streaming(begin(), whole, more, end('tool_use')));
    const { response } = await infer(config);
    expect(response).toMatchObject({ kind: 'unusable', calls: [] });
    expect(response.unusable).toContain(why);
  });

  test('A32: a text that begins twice is one', async () => {
    const twice = blockStart(0, { type: 'text', text: '' }) + textBlock(0, ['I read.']);
    const config = await endpoint(streaming(begin(), twice, decision(1), end('tool_use')));
    expect((await infer(config)).response).toMatchObject({ reasoning: 'I read.', kind: 'final' });
  });

  const TOOL_USE = { type: 'tool_use', id: 't', name: ORDERS_NAME };

  test('a decision that is written out is the final output, what stands before it the reasoning', async () => {
    const config = await endpoint(
      streaming(begin(), textBlock(0, ['Hm.\n', '{"decision"', ':1}']), end('end_turn')),
    );
    const { response, pieces } = await infer(config);
    expect([response.kind, response.final, pieces]).toEqual(['final', '{"decision":1}', ['Hm.\n']]);
  });

  test('a decision in a line that was shown counts; beside a call it is a plan', async () => {
    const line = textBlock(0, ['So: {"decis', 'ion":1}']);
    const alone = await endpoint(streaming(begin(), line, end('end_turn')));
    expect((await infer(alone)).response).toMatchObject({
      ...{ kind: 'final', final: '{"decision":1}', reasoning: 'So: {"decision":1}' },
    });
    const call = toolBlock(1, ORDERS_NAME, '{}');
    const beside = await endpoint(streaming(begin(), line, call, end('tool_use')));
    expect((await infer(beside)).response).toMatchObject({
      ...{ kind: 'calls', calls: [{ arguments: {} }], reasoning: 'So: {"decision":1}' },
    });
  });

  test.each([
    ['two decisions', decision(0) + decision(1), /two final outputs/],
    ['a decision beside a call', decision(0) + toolBlock(1, ORDERS_NAME, '{}'), /beside calls/],
    ['an input that is no object', blockStart(0, { ...TOOL_USE, input: 'x' }), /no JSON/],
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
    expect(requests().length).toBe(1);
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
    'HTTP %i %s, and its event within a stream: %s, and what it says is repeated without the key',
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
      for (const { details } of failures as { details: unknown }[])
        expect(JSON.stringify(details)).toContain('Not with the key [REDACTED]');
    },
  );

  test('a type that is no name is not repeated: it may be anything', async () => {
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
    await stopServer();
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
        }, paced(100));
        response.on('close', () => clearInterval(timer));
      };
    const config = { ...(await endpoint(pinging(0), pinging(10))), stallTimeoutMs: paced(800) };
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

describe('whether it answers', () => {
  const never = new AbortController().signal;
  const asked = ['claude-haiku-4-5', 'claude-sonnet-5-5', 'claude-none'];
  const models = ['claude-sonnet-5-5', 'claude-haiku-4-5-20251001'];
  const answerOf = () => undefined;

  test('by its list of models, where dates may stand behind names; no message is sent', async () => {
    const server = await serve({ answerOf, key: KEY, models });
    const config = { apiKey: KEY, baseUrl: server.url };
    const answers = { kind: 'answers', count: 2 };
    const found = await checkAnthropic(config, asked, never);
    expect(found).toEqual({ ...answers, missing: ['claude-none'] });
    expect([server.listed(), server.requests.length]).toEqual([1, 0]);
    const { url } = await serve({ answerOf, models, hasMoreModels: true });
    const page = await checkAnthropic({ baseUrl: url }, asked, never);
    expect(page).toEqual({ ...answers, missing: [] });
  });

  test('a key that it refuses, nobody who listens, nobody who answers in time', async () => {
    const server = await serve({ answerOf, key: KEY });
    const config = { apiKey: 'sk-ant-other', baseUrl: server.url };
    const refuses = {
      kind: 'refuses',
      status: 401,
      said: 'invalid x-api-key: [REDACTED],[REDACTED]',
    };
    expect(await checkAnthropic(config, asked, never)).toEqual(refuses);
    const late = AbortSignal.abort();
    expect(await checkAnthropic(config, asked, late)).toEqual({ kind: 'silent' });
    await stopServer();
    expect(await checkAnthropic(config, asked, never)).toEqual({ kind: 'silent' });
  });
});
