// The transport of model endpoints over real sockets: when an answer is whole, how long it is waited for, and what becomes
// of the words with which an endpoint refuses. Both providers stand on it; what events mean is theirs to test.
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { Endpoint, type Progress } from '../../src/adapters/models/endpoint/endpoint.ts';
import { hostErrorOf } from '../../src/adapters/models/endpoint/refusal.ts';
import { paced } from '../support/machine.ts';
import { takes } from '../support/waiting.ts';

const KEY = 'key-9f8e7d6c5b4a39281706';
const never = new AbortController().signal;

let server: Server | undefined;
let sockets: Socket[] = [];
afterEach(async () => {
  server?.closeAllConnections();
  await new Promise((resolve) => server?.close(resolve) ?? resolve(undefined));
  server = undefined;
  sockets = [];
});

type Limits = Omit<ConstructorParameters<typeof Endpoint>[0], 'baseUrl' | 'headers'>;

async function serve(listener: RequestListener, limits: Limits = {}, path = '/v1') {
  server = createServer(listener).on('connection', (socket) => void sockets.push(socket));
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

const whole = (data: unknown): Progress => (data === 'last' ? 'whole' : 'more');

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
    ['at [DONE]', ['data: 1\n\n', 'data: [DONE]\n\n', 'data: 2\n\n'], [1]],
    ['where its reader says so', ['data: 1\n\n', 'data: "last"\n\n', 'data: 2\n\n'], [1, 'last']],
  ])('%s, though its socket stays open, which is given up', async (_name, pieces, events) => {
    const endpoint = await serve(says(pieces, 'open'));
    expect(await taken(endpoint, whole)).toEqual(events);
    await expect.poll(() => sockets[0]?.destroyed).toBe(true);
  });

  test('and its connection serves the next request', async () => {
    const endpoint = await serve(says(['data: 1\n\n', 'data: [DONE]\n\n']));
    for (let time = 0; time < 3; time++) {
      expect(await taken(endpoint)).toEqual([1]);
      await takes(20);
    }
    expect(sockets).toHaveLength(1);
  });

  test('where it had its reason to end, and nothing follows', async () => {
    const endpoint = await serve(says(['data: 1\n\n'], 'open'), { endTimeoutMs: 50 });
    expect(await taken(endpoint, () => 'ending')).toEqual([1]);
  });

  test('not where its connection is lost after that: what follows may have been an error', async () => {
    const endpoint = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: 1\n\n', () => response.destroy());
    });
    await expect(taken(endpoint, () => 'ending')).rejects.toMatchObject({
      code: 'model_unavailable',
    });
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
    const { code, message } = await failure(() => {}, { startTimeoutMs: 50 });
    expect([code, message]).toEqual([
      'model_unavailable',
      'The model provider did not begin to answer within 0.05 s.',
    ]);
    await expect.poll(() => sockets[0]?.destroyed).toBe(true);
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
  ])('no part of a key that it repeats %s', async (_name, message) => {
    const names = { code: KEY, type: KEY, param: KEY };
    const listener = refuses(401, { error: { message, ...names } }, { 'x-request-id': KEY });
    const refused = JSON.stringify(await failure(listener, { apiKey: KEY }));
    for (let at = 0; at + 8 <= KEY.length; at++)
      expect(refused).not.toContain(KEY.slice(at, at + 8));
    expect(refused).not.toContain('1234567890');
    expect(refused).toContain('[REDACTED');
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
    [{ 'retry-after': '999999' }, 60_000],
    [{ 'retry-after': 'soon' }, 0],
    [{}, 0],
  ])('%j: %i ms', async (headers, retryAfterMs) => {
    const { details } = await failure(refuses(429, {}, headers));
    expect(details).toMatchObject({ retryAfterMs });
  });
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
