// The transport of model endpoints over real sockets: when an answer is whole, how long it is waited for, and what becomes
// of the words with which an endpoint refuses. Both providers stand on it; what events mean is theirs to test.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { Progress } from '../../src/adapters/models/endpoint/answer.ts';
import { Endpoint } from '../../src/adapters/models/endpoint/endpoint.ts';
import { hostErrorOf } from '../../src/adapters/models/endpoint/refusal.ts';
import { paced } from '../support/machine.ts';
import { takes } from '../support/waiting.ts';

const KEY = 'key/9f8e/7d6c/5b4a/3928/1706';
const never = new AbortController().signal;

let server: Server | undefined;
let servers: Server[] = [];
let sockets: Socket[] = [];
afterEach(async () => {
  for (const each of servers) {
    each.closeAllConnections();
    await new Promise((resolve) => each.close(resolve));
  }
  servers = [];
  sockets = [];
});

type Limits = Omit<ConstructorParameters<typeof Endpoint>[0], 'baseUrl' | 'headers'>;

async function serve(listener: RequestListener, limits: Limits = {}, path = '/v1') {
  server = createServer(listener).on('connection', (socket) => void sockets.push(socket));
  servers.push(server);
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const baseUrl = `http://127.0.0.1:${port}${path}`;
  return new Endpoint({ baseUrl, headers: {}, ...limits });
}

/** Writes the pieces as they are, and ends the answer unless it stays `open`. */
function says(
  pieces: readonly (string | Buffer)[],
  rest: 'ends' | 'open' = 'ends',
): RequestListener {
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const piece of pieces) response.write(piece);
    if (rest === 'ends') response.end();
  };
}

function refuses(
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): RequestListener {
  return (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
}

/** Data of all events. */
async function taken(
  endpoint: Endpoint,
  progress: (data: unknown) => Progress = () => 'more',
  signal = never,
): Promise<unknown[]> {
  const all: unknown[] = [];
  const question = { path: '/chat', body: {}, headers: {}, signal };
  await endpoint.ask(question, (data) => {
    all.push(data);
    return progress(data);
  });
  return all;
}

/** Code, message and details of how a request fails. */
async function failure(listener: RequestListener, limits: Limits = {}) {
  const endpoint = await serve(listener, limits);
  const error = await taken(endpoint).then(() => undefined, hostErrorOf);
  const { code, message, details } = (error ?? {}) as Record<string, unknown>;
  return { code, message, details };
}

const whole = (data: unknown): Progress =>
  data === 'last' || data === undefined ? 'whole' : 'more';

describe('events, however they are cut', () => {
  const text = 'data: {"a":"ä🙂"}\n\n: busy\n\nevent: x\ndata:{"b":\ndata:2}\n\n';
  const events = [{ a: 'ä🙂' }, { b: 2 }];

  test.each([
    ['in one piece', [text]],
    ['byte by byte', [...Buffer.from(text)].map((byte) => Buffer.from([byte]))],
    ['CRLF', [text.replaceAll('\n', '\r\n')]],
    ['a byte order mark', [`\ufeff${text}`]],
    ['without the line that ends the last', [text.slice(0, -2)]],
    ['data without anything', [`data:\n\ndata: \n\n${text}`]],
  ])('%s', async (_name, pieces) => {
    expect(await taken(await serve(says(pieces)))).toEqual(events);
  });

  test('an answer that is no stream is one event, whatever it is', async () => {
    const endpoint = await serve(refuses(200, { choices: [] }));
    expect(await taken(endpoint)).toEqual([{ choices: [] }]);
  });

  const typed =
    (type: string, text: string): RequestListener =>
    (_request, response) =>
      void response.writeHead(200, { 'content-type': type }).end(text);

  test.each([
    ['application/json', 'data: 1\n\n'],
    ['text/event-stream, application/json', 'data: 1\n\n'],
    ['text/plain', ' {"a":\n1}'],
    ['text/event-stream', '{"a":1}'],
  ])('a body labelled %s is read as what it is: %j', async (type, text) => {
    const [event, ...others] = await taken(await serve(typed(type, text)));
    expect([event, others]).toEqual([text.includes('data') ? 1 : { a: 1 }, []]);
  });

  test('an error in place of a stream is one, however it is labelled', async () => {
    const error = JSON.stringify({ error: { message: 'no such model', code: 'model_not_found' } });
    for (const type of ['text/event-stream', 'text/plain']) {
      const { code, message } = await failure(typed(type, error));
      expect([code, message]).toEqual([
        'model_rejected_request',
        expect.stringContaining('no such model'),
      ]);
    }
  });

  test('a body has a bound, though it has no line', async () => {
    const pieces = Array.from({ length: 20 }, () => 'x'.repeat(1_000));
    const { code } = await failure(says(['data: ', ...pieces], 'open'), {
      mostBytes: 10_000,
      stallTimeoutMs: paced(5_000),
    });
    expect(code).toBe('model_output_too_large');
    await expect.poll(() => sockets[0]?.destroyed).toBe(true);
  });

  test('text that means nothing is no stream, and is not read on', async () => {
    const { code, message } = await failure(says(['x\n'.repeat(10_000)], 'open'));
    expect([code, message]).toEqual([
      'model_unavailable',
      'The model provider answered with text that means nothing and no events.',
    ]);
    expect(await taken(await serve(says(['x: y\n'.repeat(900), 'data: 1\n\n'.repeat(2)])))).toEqual(
      [1, 1],
    );
  });

  test('a ping that is no JSON is a sign of life', async () => {
    const pings = 'event: ping\ndata: keepalive\n\nevent: ping\ndata: {}\n\ndata: 1\n\n';
    expect(await taken(await serve(says([pings])))).toEqual([{}, 1]);
  });

  test('an event that is no JSON', async () => {
    const { code, message } = await failure(says(['data: {"a":\n\n']));
    expect([code, message]).toEqual([
      'model_unavailable',
      'The model provider sent an event that is no JSON.',
    ]);
  });

  test('a page in place of an answer is named', async () => {
    const { code, message } = await failure((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<title>Sign in</title>');
    });
    expect([code, message]).toEqual([
      'model_unavailable',
      'The model provider answered with text/html and no events.',
    ]);
  });
});

describe('[I122] an answer is whole', () => {
  test.each([
    ['at [DONE]', ['data: 1\n\n', 'data: [DONE]\n\n', 'data: 2\n\n'], [1, undefined]],
    ['where its reader says so', ['data: 1\n\n', 'data: "last"\n\n', 'data: 2\n\n'], [1, 'last']],
  ])('%s, though its socket stays open, which is given up', async (_name, pieces, events) => {
    const endpoint = await serve(says(pieces, 'open'), { stallTimeoutMs: paced(5_000) });
    expect(await taken(endpoint, whole)).toEqual(events);
    await expect.poll(() => sockets[0]?.destroyed).toBe(true);
  });

  test('and its connection serves the next request', async () => {
    const endpoint = await serve(says(['data: 1\n\n', 'data: [DONE]\n\n']));
    for (let time = 0; time < 5; time++) {
      expect(await taken(endpoint, whole)).toEqual([1, undefined]);
      await takes(100);
    }
    expect(sockets.length).toBeLessThan(3);
  });

  test('where it had its reason to end, and nothing follows', async () => {
    const endpoint = await serve(says(['data: 1\n\n'], 'open'), { endTimeoutMs: 50 });
    expect(await taken(endpoint, () => 'ending')).toEqual([1]);
  });

  const breaking =
    (text: string): RequestListener =>
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write(text, () => response.destroy());
    };

  test.each([
    ['its connection is lost', breaking('data: 1\n\n')],
    ['what follows is cut', says(['data: 1\n\ndata: {"usa'])],
    [
      'pings follow without end',
      (...[, response]: Parameters<RequestListener>) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: 1\n\n');
        const pings = setInterval(() => response.write(': ping\n\n'), 20);
        response.on('close', () => clearInterval(pings));
      },
    ],
  ])('where it had its reason to end, and %s', async (_name, listener) => {
    const endpoint = await serve(listener, { endTimeoutMs: 200 });
    expect(await taken(endpoint, () => 'ending')).toEqual([1]);
  });

  test('not where its reader fails', async () => {
    const endpoint = await serve(says(['data: 1\n\ndata: 2\n\n']));
    const asked = taken(endpoint, (data) => {
      if (data === 2) throw new Error('stopped');
      return 'ending';
    });
    await expect(asked).rejects.toMatchObject({ code: 'model_unavailable' });
  });

  test('not where an error follows its reason to end', async () => {
    const endpoint = await serve(says(['data: 1\n\ndata: {"error":{"message":"it failed"}}\n\n']));
    await expect(taken(endpoint, () => 'ending')).rejects.toMatchObject({
      parts: { status: 503, words: { text: 'it failed' } },
    });
  });

  test.each([
    ['a reader that throws', 'data: 1\n\n'],
    ['an error', 'data: {"error":{"message":"no"}}\n\n'],
    ['an event that is no JSON', 'data: {\n\n'],
  ])('%s leaves no connection behind, though its stream stays open', async (_name, text) => {
    const endpoint = await serve(says([text], 'open'));
    const asked = taken(endpoint, (data) => {
      if (data === 1) throw new Error('stopped');
      return 'more';
    });
    await expect(asked).rejects.toThrow();
    await expect.poll(() => sockets[0]?.destroyed).toBe(true);
  });
});

describe('how long it is waited for', () => {
  /** A model that is loaded first: the header comes late, or the first byte. */
  const late =
    (flushed: boolean): RequestListener =>
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (flushed) response.flushHeaders();
      void takes(600).then(() => response.end('data: 1\n\n'));
    };

  test.each([
    ['header', false],
    ['byte', true],
  ])('a first %s that is late is waited for longer than a pause', async (_name, flushed) => {
    const limits = { startTimeoutMs: paced(60_000), stallTimeoutMs: 100 };
    expect(await taken(await serve(late(flushed), limits))).toEqual([1]);
  });

  test('one that does not come ends the request, and the message says how long it had', async () => {
    const startTimeoutMs = paced(500);
    const { code, message } = await failure(() => {}, { startTimeoutMs });
    expect([code, message]).toEqual([
      'model_unavailable',
      `The model provider did not begin to answer within ${startTimeoutMs / 1000} s.`,
    ]);
    await expect.poll(() => sockets[0]?.destroyed).toBe(true);
  });

  test('what says nothing that counts has begun', async () => {
    const { message } = await failure(says([': ping\n\n'], 'open'), { stallTimeoutMs: 50 });
    expect(message).toBe('The model provider said nothing more within 0.05 s.');
  });

  test('silence within an answer ends it', async () => {
    const { message } = await failure(says(['data: 1\n\n'], 'open'), { stallTimeoutMs: 50 });
    expect(message).toBe('The model provider said nothing more within 0.05 s.');
  });

  test('who cancels is given their own reason, at once', async () => {
    const stop = new AbortController();
    const asked = taken(
      await serve(says(['data: 1\n\n'], 'open')),
      () => (stop.abort(new Error('stopped')), 'more'),
      stop.signal,
    );
    await expect(asked).rejects.toThrow('stopped');
    await expect(taken(await serve(says([])), whole, stop.signal)).rejects.toThrow('stopped');
  });
});

describe('[I123] what an endpoint says when it refuses', () => {
  const error = { message: 'Unknown parameter.', code: 'unknown_parameter', param: 'tools[0]' };

  test('reaches the error, with its names and the id of the request', async () => {
    const refused = await failure(refuses(400, { error }, { 'x-request-id': 'req-1' }));
    expect(refused).toMatchObject({
      code: 'model_rejected_request',
      message:
        'The model provider rejected the request with HTTP 400: "Unknown parameter." (code unknown_parameter, parameter tools[0], request req-1)',
      details: { status: 400, providerCode: 'unknown_parameter' },
    });
  });

  test.each([
    [429, 'rate_limited', 'The model provider limits requests (HTTP 429): "Slow down."'],
    [503, 'model_unavailable', 'The model provider failed with HTTP 503: "Slow down."'],
    [
      501,
      'model_rejected_request',
      'The model provider rejected the request with HTTP 501: "Slow down."',
    ],
    [
      404,
      'model_rejected_request',
      'The model provider rejected the request with HTTP 404: "Slow down."',
    ],
  ])('HTTP %i is %s, in its words', async (status, code, message) => {
    expect(await failure(refuses(status, { error: 'Slow down.' }))).toMatchObject({
      code,
      message,
    });
  });

  test.each([
    ['as a body', refuses(200, { error })],
    ['as an event', says([`data: ${JSON.stringify({ error })}\n\n`])],
    ['as an event by name', says([`event: error\ndata: ${JSON.stringify(error)}\n\n`])],
    ['as an event by type', says([`data: ${JSON.stringify({ type: 'error', ...error })}\n\n`])],
    ['as an event after others', says(['data: 1\n\n', `data: ${JSON.stringify({ error })}\n\n`])],
  ])('reaches the error %s of a success', async (_name, listener) => {
    const { message } = await failure(listener);
    expect(message).toContain('(code unknown_parameter, ');
    expect(message).toContain(': "Unknown parameter."');
  });

  test('an event by name that is no JSON is repeated as it is', async () => {
    const { code, message } = await failure(says(['event: error\ndata: no room\n\n']));
    expect([code, message]).toEqual([
      'model_unavailable',
      'The model provider failed with HTTP 503: "no room"',
    ]);
  });

  test.each([
    ['whole', `No: ${KEY}`],
    ['in part', `No: ${KEY.slice(0, 12)}...${KEY.slice(-9)}`],
    ['at the border of what is repeated', `${'x'.repeat(590)} ${KEY}`],
    ['behind what is repeated', `${'x'.repeat(700)} ${KEY}`],
    ['another one', 'No: sk-proj-1234567890abcdef'],
    ['in capitals', `No: ${KEY.toUpperCase()}`],
    ['encoded for an address', `No: ${encodeURIComponent(KEY)}`],
    ['in base64', `No: ${Buffer.from(KEY).toString('base64')}`],
  ])('no part of a key that it repeats %s', async (_name, message) => {
    const names = { code: KEY, type: KEY, param: KEY };
    const listener = refuses(401, { error: { message, ...names } }, { 'x-request-id': KEY });
    const refused = JSON.stringify(await failure(listener, { apiKey: KEY }));
    for (const form of [KEY, encodeURIComponent(KEY), Buffer.from(KEY).toString('base64')])
      for (let at = 0; at + 8 <= form.length; at++)
        expect(refused.toLowerCase()).not.toContain(form.slice(at, at + 8).toLowerCase());
    expect(refused).not.toContain('1234567890');
    expect(refused).toContain('[REDACTED');
  });

  test('no secret of the address that it repeats', async () => {
    const listener: RequestListener = (request, response) =>
      refuses(404, { error: `No ${request.url}` })(request, response);
    const endpoint = await serve(
      listener,
      { apiKey: 'a key & signs' },
      '/v1?token=tok-87654321&v=2026-10-21',
    );
    const error = await taken(endpoint).then(() => undefined, hostErrorOf);
    expect((error as Error).message).toContain('"No /v1/chat?token=[REDACTED]&v=2026-10-21"');
  });

  test.each([
    ['shorter than it was to be', { 'content-length': '100' }],
    ['no gzip, though it says so', { 'content-encoding': 'gzip' }],
  ])('keeps its status where its body is %s', async (_name, headers) => {
    const { details } = await failure((_request, response) => {
      response.writeHead(401, headers as Record<string, string>);
      response.write('{"error":"no"}', () => response.destroy());
    });
    expect(details).toMatchObject({ status: 401 });
  });

  test('without end has a limit of its own, whatever is left of that of the first byte', async () => {
    const { details } = await failure(
      (_request, response) => void response.writeHead(401).write('no'),
      { startTimeoutMs: paced(1_500) },
    );
    expect(details).toMatchObject({
      status: 401,
      reason: expect.stringContaining('"no"') as unknown,
    });
  });

  test('within an answer has the times and names of its head', async () => {
    const headers = {
      'retry-after': '7',
      'x-request-id': 'req-2',
      'content-type': 'text/event-stream',
    };
    const { code, details } = await failure((_request, response) => {
      response.writeHead(200, headers).end('data: {"error":{"code":429,"message":"Slow."}}\n\n');
    });
    expect([code, details]).toMatchObject([
      'rate_limited',
      {
        retryAfterMs: 7_000,
        reason: 'The model provider limits requests (HTTP 429): "Slow." (request req-2)',
      },
    ]);
  });

  test('no more of it than fits', async () => {
    const { message } = await failure(refuses(400, { error: { message: '🙂'.repeat(5_000) } }));
    expect(Buffer.byteLength(String(message))).toBeLessThan(700);
    expect(String(message)).not.toMatch(/\p{Cs}/u);
  });

  test('where it points to is named without its query, and not asked', async () => {
    let asked = 0;
    const refused = await failure((_request, response) => {
      asked++;
      response.writeHead(307, { location: `/v2/chat?token=${KEY}` }).end();
    });
    expect(refused.code).toBe('model_rejected_request');
    expect(refused.message).toMatch(/HTTP 307: "It points to http:\/\/127.0.0.1:\d+\/v2\/chat, /);
    expect([asked, JSON.stringify(refused).includes(KEY)]).toEqual([1, false]);
  });

  test.each<[Record<string, string>, number]>([
    [{ 'retry-after': '2' }, 2_000],
    [{ 'retry-after-ms': '1500', 'retry-after': '2' }, 1_500],
    [{ 'retry-after': 'Thu, 01 Jan 1970 00:00:00 GMT' }, 0],
    [{ 'retry-after': new Date(Date.now() + 86_400_000).toUTCString() }, 60_000],
    [{ 'retry-after': '999999' }, 60_000],
    [{ 'retry-after': 'soon' }, 0],
    [{ 'retry-after': '5, 5' }, 5_000],
    [{ 'retry-after': '2', 'retry-after-ms': 'soon' }, 2_000],
    [{}, 0],
  ])('%j: %i ms', async (headers, retryAfterMs) => {
    const { details } = await failure(refuses(429, {}, headers));
    expect(details).toMatchObject({ retryAfterMs });
  });
});

describe('a list', () => {
  const list = async (listener: RequestListener) => {
    const endpoint = await serve(listener);
    return endpoint
      .get('/models', never)
      .catch((error: unknown) => (hostErrorOf(error) as Error).message);
  };

  test('is given', async () => {
    expect(await list(refuses(200, { data: [] }))).toEqual({ data: [] });
  });

  test.each([
    ['an error with 200', { error: { message: 'bad key', code: 401 } }, 'HTTP 401: "bad key"'],
    ['a page to sign in', '<title>Sign in</title>', 'HTTP 200: "Sign in"'],
  ])('is not %s', async (_name, body, message) => {
    expect(await list(refuses(200, body))).toContain(message);
  });
});

test('a connection that cannot be made is named by its cause', async () => {
  const endpoint = await serve(says([]));
  await new Promise((resolve) => server?.close(resolve));
  await expect(taken(endpoint)).rejects.toThrow(
    'The connection to the model provider could not be made (ECONNREFUSED).',
  );
});

test.each([
  ['/v1', '/v1/chat'],
  ['/v1/', '/v1/chat'],
  ['', '/chat'],
  ['/openai?api-version=1', '/openai/chat?api-version=1'],
])('the base URL %j is asked at %s', async (path, asked) => {
  const urls: unknown[] = [];
  const endpoint = await serve(
    (request, response) => {
      urls.push(request.url);
      says(['data: 1\n\n'])(request, response);
    },
    {},
    path,
  );
  await taken(endpoint);
  expect(urls).toEqual([asked]);
});
