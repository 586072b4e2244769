// Answers of an OpenAI-compatible endpoint that leave unclear what is meant: nothing is called.
import { afterEach, expect, test } from 'vitest';
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { createOpenAiModel } from '../../src/adapters/models/openai.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import {
  callPiece,
  chunk,
  DONE,
  startOpenAiServer,
  streaming,
  type OpenAiServer,
  type ServerAnswer,
} from '../support/openai-server.ts';

let server: OpenAiServer | undefined;
afterEach(() => server?.stop());

async function infer(answer: ServerAnswer) {
  server = await startOpenAiServer(() => answer);
  const request = {
    provider: 'openai',
    model: 'asked-1',
    agentId: 'local.test.desk.agent',
    items: [{ role: 'user', text: 'Task', trusted: false }],
    tools: [],
    outputSchema: { type: 'object' },
    idempotencyKey: 'key-1',
  } as const;
  const { signal } = new AbortController();
  return createOpenAiModel({ baseUrl: server.url }).infer(request, {
    signal,
    onReasoning: () => {},
  });
}

const decides = (at: number) => chunk(callPiece(at, DECISION_TOOL, '{"decision":1}'));
const calls = chunk(callPiece(0, functionNameOf('demo:orders.get'), '{"id":"A"}'));

test.each([
  ['two decisions', decides(0) + decides(1), /two final outputs/],
  ['a decision beside a call', calls + decides(1), /beside calls/],
])('%s: unusable, and nothing is called', async (_name, text, why) => {
  const response = await infer(streaming(text, chunk({}, 'tool_calls'), DONE));
  expect(response).toMatchObject({ kind: 'unusable', calls: [] });
  expect(response.unusable).toMatch(why);
});

test('a decision in a line that was shown counts; beside a call it is a plan', async () => {
  const line = chunk({ content: 'So: {"decis' }) + chunk({ content: 'ion":1}' });
  const reasoning = 'So: {"decision":1}';
  expect(await infer(streaming(line, chunk({}, 'stop'), DONE))).toMatchObject({
    ...{ kind: 'final', final: '{"decision":1}', reasoning },
  });
  await server?.stop();
  expect(await infer(streaming(line, calls, chunk({}, 'tool_calls'), DONE))).toMatchObject({
    ...{ kind: 'calls', calls: [{}], reasoning },
  });
});

test('200 with a page', async () => {
  const answer: ServerAnswer = (response) =>
    void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>Busy</p>');
  await expect(infer(answer)).rejects.toMatchObject({ code: 'model_unavailable' });
});

test.each([
  [12, { kind: 'calls', calls: [{ arguments: { id: 12 } }] }],
  [2512292042121000000, { kind: 'unusable', calls: [] }],
  [0.30000000000000004, { kind: 'unusable', calls: [] }],
])('[I103] arguments as an object: %d, which may have been another number', async (id, read) => {
  const call = {
    index: 0,
    function: { name: functionNameOf('demo:orders.get'), arguments: { id } },
  };
  const response = await infer(streaming(chunk({ tool_calls: [call] }, 'tool_calls') + DONE));
  expect(response).toMatchObject(read);
  expect(response.unusable ?? '/id is a number').toContain('/id is a number');
});

test('arguments that are a value and no object are what they are', async () => {
  const call = { index: 0, function: { name: functionNameOf('demo:orders.get'), arguments: 5 } };
  const response = await infer(streaming(chunk({ tool_calls: [call] }, 'tool_calls') + DONE));
  expect(response).toMatchObject({ kind: 'calls', calls: [{ arguments: 5 }] });
});
