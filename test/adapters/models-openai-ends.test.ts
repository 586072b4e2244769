// How answers of an OpenAI-compatible endpoint end and fail: when one is whole, what is half an answer, and what the person
// who must mend a refusal is given.
import { afterEach, describe, expect, test } from 'vitest';
import { createOpenAiModel, type OpenAiConfig } from '../../src/adapters/models/openai.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import type { Model, ModelRequest } from '../../src/ports/models.ts';
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
import { ORDERS } from './anthropic-calls.ts';

let server: OpenAiServer | undefined;
afterEach(async () => {
  await server?.stop();
  server = undefined;
});

async function model(answers: readonly ServerAnswer[], config: OpenAiConfig = {}): Promise<Model> {
  server = await startOpenAiServer((_body, index) => answers[Math.min(index, answers.length - 1)]);
  return createOpenAiModel({ baseUrl: server.url, ...config });
}

const REQUEST: ModelRequest = {
  provider: 'openai',
  model: 'asked-1',
  agentId: 'local.test.desk.agent',
  items: [{ role: 'user', text: 'Task', trusted: false }],
  tools: [ORDERS],
  outputSchema: { type: 'object' },
  idempotencyKey: 'key-1',
};
const options = { signal: new AbortController().signal, onReasoning: () => {} };

async function response(...answers: ServerAnswer[]) {
  return (await model(answers)).infer(REQUEST, options);
}

async function failure(answers: readonly ServerAnswer[], config: OpenAiConfig = {}) {
  return failureOf(await model(answers, config));
}

async function failureOf(asked: Model): Promise<{ code?: string; message?: string }> {
  return asked.infer(REQUEST, options).then(
    () => ({}),
    (error: unknown) => error as { code: string; message: string },
  );
}

const whole = chunk(callPiece(0, functionNameOf(ORDERS.toolId), '{"id":"A"}'));
const called = { kind: 'calls', calls: [{ toolId: ORDERS.toolId, arguments: { id: 'A' } }] };

/** Says it, and keeps the connection. */
const keeping =
  (text: string): ServerAnswer =>
  (answer) => {
    answer.writeHead(200, { 'content-type': 'text/event-stream' });
    answer.write(text);
  };
const answering =
  (body: unknown): ServerAnswer =>
  (answer) => {
    answer.writeHead(200, { 'content-type': 'application/json' });
    answer.end(JSON.stringify(body));
  };

describe('an answer is whole', () => {
  test('at [DONE], though the connection stays open', async () => {
    const text = whole + chunk({}, 'tool_calls') + DONE;
    expect(await response(keeping(text))).toMatchObject(called);
  });

  test.each([
    ['by itself', whole + chunk({}, 'tool_calls'), called],
    [
      'with its last piece',
      chunk({ content: '{"decision":' }) + chunk({ content: '1}' }, 'stop'),
      { final: '{"decision":1}' },
    ],
    [
      'with its only piece, and the usage',
      chunk({ content: '{"decision":1}' }, 'stop') + USAGE,
      { final: '{"decision":1}' },
    ],
    ['that refuses', chunk({}, 'content_filter'), { kind: 'refusal' }],
    ['that cuts', chunk({}, 'length'), { kind: 'truncated' }],
  ])(
    'where it has its finish %s, and neither [DONE] nor the end of its connection follows',
    async (_name, text, expected) => {
      const asked = await model([keeping(text)], {
        endTimeoutMs: 50,
        stallTimeoutMs: paced(5_000),
      });
      expect(await asked.infer(REQUEST, options)).toMatchObject(expected);
    },
  );

  test('at [DONE], though no finish came: a text, and no call, which may be cut', async () => {
    const text = chunk({ content: '{"decision":1}' }) + DONE;
    expect(await response(streaming(text))).toMatchObject({ final: '{"decision":1}' });
    await server?.stop();
    expect(await response(streaming(whole + DONE))).toMatchObject({ kind: 'unusable' });
  });

  test.each([
    ['with each piece', chunk({ content: '{"a":' }, 'stop')],
    ['before anything is said', chunk({ role: 'assistant', content: '' }, 'stop')],
    [
      'and then more is said',
      chunk({ content: 'Hm. ' }) + chunk({}, 'stop') + chunk({ content: 'Hm. ' }),
    ],
  ])('not by a finish that is said %s: what follows is waited for', async (_name, text) => {
    const limits = { endTimeoutMs: 1, stallTimeoutMs: 100 };
    expect(await failure([keeping(text)], limits)).toMatchObject({ code: 'model_unavailable' });
  });

  test('that is no stream: a message', async () => {
    const message = {
      role: 'assistant',
      content: null,
      tool_calls: [
        {
          id: 'c',
          type: 'function',
          function: { name: functionNameOf(ORDERS.toolId), arguments: '{"id":"A"}' },
        },
      ],
    };
    const usage = { prompt_tokens: 3, completion_tokens: 2 };
    const body = {
      model: 'served-1',
      choices: [{ index: 0, message, finish_reason: 'tool_calls' }],
      usage,
    };
    expect(await response(answering(body))).toMatchObject({
      ...called,
      model: 'served-1',
      usage: { inputTokens: 3, outputTokens: 2 },
    });
  });
});

test.each([
  ['an empty list of calls', chunk({ tool_calls: [], content: '' })],
  ['an empty piece', chunk({})],
  ['the usage', USAGE],
])('%s after the finish holds nothing up', async (_name, text) => {
  const asked = await model([keeping(whole + chunk({}, 'tool_calls') + text)], {
    endTimeoutMs: 50,
  });
  expect(await asked.infer(REQUEST, options)).toMatchObject(called);
});

test('the text "null" is no finish: the one that follows says that it is cut', async () => {
  const text = chunk({ content: '{"decision":1}' }, 'null') + chunk({}, 'length') + DONE;
  expect(await response(streaming(text))).toMatchObject({ kind: 'truncated' });
});

test('what has no choices is no answer: the next refusal may be for the way of asking', async () => {
  const asked = await model([
    answering({ detail: 'later' }),
    failing(400),
    deciding([], { decision: 1 }),
  ]);
  expect(await failureOf(asked)).toMatchObject({ code: 'model_unavailable' });
  expect(await failureOf(asked)).toEqual({});
});

describe('half an answer is none', () => {
  test.each(['error', 'abort', 'network_error', 'insufficient_system_resource'])(
    'a whole call, and the finish "%s": nothing is called, and the connection counts as lost',
    async (finish) => {
      const failed = await failure([streaming(whole + chunk({}, finish) + DONE)]);
      expect(failed).toMatchObject({
        code: 'model_unavailable',
        message: 'The model provider broke off its answer.',
      });
    },
  );

  test('a whole call, and an error in its own words', async () => {
    const error = `data: ${JSON.stringify({ error: { code: 502, message: 'Upstream is gone.' } })}\n\n`;
    expect(await failure([streaming(whole + error)])).toMatchObject({
      code: 'model_unavailable',
      message: 'The model provider failed with HTTP 502: "Upstream is gone."',
    });
  });

  test.each([
    ['model_length', 'truncated'],
    ['SAFETY', 'refusal'],
  ])('a whole call, and the finish "%s": %s, nothing is called', async (finish, kind) => {
    const cut = await response(streaming(whole + chunk({}, finish) + DONE));
    expect(cut).toMatchObject({ kind, calls: [] });
  });
});

describe('thoughts', () => {
  test.each([
    [{ reasoning_content: '', reasoning: 'I look. ' }],
    [{ reasoning_content: null, reasoning: 'I look. ' }],
    [{ reasoning_content: 'I look. ', reasoning: '' }],
    [{ reasoning_content: 'I look. ', reasoning: 'I look. ' }],
  ])('%j', async (delta) => {
    const text = chunk({ content: '', ...delta }) + whole + chunk({}, 'tool_calls') + DONE;
    expect(await response(streaming(text))).toMatchObject({ ...called, reasoning: 'I look. ' });
  });
});

describe('what an endpoint says when it refuses', () => {
  const message = 'This model does not support tools.';

  test('is in the error, once where each way is refused in the same words', async () => {
    const failed = await failure([failing(400, { message })]);
    expect(failed.message).toBe(
      `The model provider rejected the request with HTTP 400: "${message}" The agent local.test.desk.agent has tools, which this endpoint or model may not take.`,
    );
  });

  test('and so is what it says last, where that is something else', async () => {
    const refusals = ['no tools', 'no format', 'no system text'].map((text) =>
      failing(400, { message: text }),
    );
    const failed = await failure(refusals);
    expect(failed.message).toContain(
      'HTTP 400: "no tools" Asked in another way, it says: "no system',
    );
    expect(failed.message).not.toContain('no format');
  });

  test('after an answer is of this request, and not for tools', async () => {
    const asked = await model([
      ...[failing(400, { message }), failing(400, { message })],
      deciding([], { decision: 1 }),
      failing(400, { message: 'max_tokens is above 4096.' }),
    ]);
    expect(await failureOf(asked)).toEqual({});
    const failed = await failureOf(asked);
    expect(failed.message).toBe(
      'The model provider rejected the request with HTTP 400: "max_tokens is above 4096."',
    );
  });

  test('as the first event of a stream is a refusal like another: another way is tried', async () => {
    const event = `data: ${JSON.stringify({ error: { code: 400, message } })}\n\n`;
    const asked = await model([streaming(event), deciding([], { decision: 1 })]);
    expect(await asked.infer(REQUEST, options)).toMatchObject({ final: '{"decision":1}' });
    expect(server?.requests.map((body) => 'response_format' in body)).toEqual([false, true]);
  });
});
