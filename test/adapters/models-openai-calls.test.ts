// Calls of tools in the streams of OpenAI-compatible endpoints, which frame them in many ways and say some of them again:
// what is performed is the same, or nothing (architecture §11, I121). Real sockets, an HTTP server of the test's own.
import { afterEach, describe, expect, test } from 'vitest';
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { createOpenAiModel } from '../../src/adapters/models/openai.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import type { ToolDescription } from '../../src/ports/models.ts';
import {
  chunk,
  DONE,
  startOpenAiServer,
  streaming,
  type OpenAiServer,
} from '../support/openai-server.ts';

let server: OpenAiServer | undefined;
afterEach(() => server?.stop());

const tool = (toolId: string): ToolDescription => ({
  toolId,
  description: 'Pays, or reads.',
  inputSchema: { type: 'object' },
  timeoutMs: 1000,
  transport: 'http',
  safetyTier: 'write',
});
const [PAY, READ] = ['demo:pay', 'demo:orders.get'].map(functionNameOf);

async function infer(...parts: string[]) {
  server = await startOpenAiServer(() => streaming(...parts, chunk({}, 'tool_calls'), DONE));
  const request = {
    provider: 'openai',
    model: 'asked-1',
    agentId: 'local.test.desk.agent',
    items: [{ role: 'user', text: 'Task', trusted: false }],
    tools: [tool('demo:pay'), tool('demo:orders.get')],
    outputSchema: { type: 'object' },
    idempotencyKey: 'key-1',
  } as const;
  return createOpenAiModel({ baseUrl: server.url }).infer(request, {
    signal: new AbortController().signal,
    onReasoning: () => {},
  });
}

/** One piece of a call. */
const piece = (head: Record<string, unknown>, name: string | undefined, args?: unknown): string =>
  chunk({ tool_calls: [{ ...head, type: 'function', function: { name, arguments: args } }] });
const a = { index: 0, id: 'a' };
const b = { index: 0, id: 'b' };
const pay = piece(a, PAY, '{"n":1}');
const payTwice = ['demo:pay {"n":1}', 'demo:pay {"n":1}'];

// [I121]
describe('a call that is framed in another way is the same call', () => {
  test.each<[string, string, string[]]>([
    ['A1: said again', pay + pay, payTwice.slice(1)],
    [
      'A2: said again at another index',
      pay + piece({ ...a, index: 1 }, PAY, '{"n":1}'),
      payTwice.slice(1),
    ],
    [
      'A4: ids without an index',
      piece({ id: 'a' }, PAY, '{"n":1}') + piece({ id: 'b' }, PAY, '{"n":1}'),
      payTwice,
    ],
    [
      'A4: ids without an index, and no arguments',
      piece({ id: 'a' }, PAY, '') + piece({ id: 'b' }, READ, ''),
      ['demo:pay {}', 'demo:orders.get {}'],
    ],
    [
      'A5: two calls without arguments at one index',
      piece(a, PAY, '') + piece(b, PAY, ''),
      ['demo:pay {}', 'demo:pay {}'],
    ],
    ['A14: its arguments twice in one text', piece(a, PAY, '{"n":1}{"n":1}'), payTwice.slice(1)],
    [
      'A18: its arguments at another index',
      piece({ ...a, index: 1 }, PAY, '') + piece({ index: 0 }, undefined, '{"n":1}'),
      payTwice.slice(1),
    ],
    [
      'A26: arguments as a value, said again',
      piece(a, PAY, { n: 1 }) + piece(a, PAY, { n: 1 }),
      payTwice.slice(1),
    ],
    [
      'A6: in single characters, white space in a string',
      piece(a, PAY, '') + [...'{"n":"x y"}'].map((sign) => piece({ index: 0 }, '', sign)).join(''),
      ['demo:pay {"n":"x y"}'],
    ],
    [
      'A9: the id "null" with the arguments (Mistral)',
      piece(a, PAY, '') +
        piece({ index: 0, id: 'null' }, '', '{"n":1}') +
        piece({ index: 1, id: 'b' }, READ, '') +
        piece({ index: 1, id: 'null' }, '', '{"n":1}'),
      ['demo:pay {"n":1}', 'demo:orders.get {"n":1}'],
    ],
    [
      'A35: no list',
      chunk({ tool_calls: { ...a, function: { name: PAY, arguments: '{"n":1}' } } }),
      payTwice.slice(1),
    ],
    [
      'what is no piece in a list',
      chunk({ tool_calls: [null, 'x', 5, {}] }) + pay,
      payTwice.slice(1),
    ],
  ])('%s', async (_name, text, expected) => {
    const { kind, calls } = await infer(text);
    expect(kind).toBe('calls');
    expect(calls.map(({ toolId, arguments: sent }) => `${toolId} ${JSON.stringify(sent)}`)).toEqual(
      expected,
    );
  });

  test('a decision that is said again is one', async () => {
    const decides = piece(a, DECISION_TOOL, '{"decision":1}');
    expect(await infer(decides, decides)).toMatchObject({ kind: 'final', final: '{"decision":1}' });
  });
});

// [I121]
describe('a call that can be read in two ways is not performed', () => {
  test.each<[string, string, string]>([
    [
      'A12: one id for two tools',
      pay + piece(a, READ, '{"n":1}'),
      `One call came with two names, ${PAY} and ${READ}.`,
    ],
    [
      'A12: one id for two tools, no arguments',
      piece(a, PAY, '') + piece(a, READ, ''),
      'two names',
    ],
    [
      'A13: one id, two arguments',
      pay + piece(a, PAY, '{"n":2}'),
      `The call of ${PAY} came with two different arguments.`,
    ],
    [
      'A13: one id, two arguments, as text and as a value',
      pay + piece(a, PAY, { n: 2 }),
      'two different arguments',
    ],
    [
      'arguments nested deeper than a stack, as a value',
      // No server can write them but as text.
      pay + piece(b, PAY, 'DEEP').replace('"DEEP"', '['.repeat(20_000) + ']'.repeat(20_000)),
      'is nested deeper than 128 levels',
    ],
    [
      'A15: other arguments without id and name',
      pay + piece({ index: 0 }, undefined, '{"n":2}'),
      'two different arguments',
    ],
  ])('%s: nothing is called, and the model is told', async (_name, text, why) => {
    const response = await infer(text);
    expect(response).toMatchObject({ kind: 'unusable', calls: [] });
    expect(response.unusable).toContain(why);
    expect(response.unusable).toContain('No tool was called.');
    expect(response.final).toContain('demo:pay');
  });
});
