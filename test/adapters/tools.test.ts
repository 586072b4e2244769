// The core tools and their registration.
import { describe, expect, test } from 'vitest';
import { coreTools } from '../../src/adapters/tools/core-tools.ts';
import { createTools } from '../../src/adapters/tools/index.ts';
import { codeOf } from '../../src/rules/errors.ts';
import type { JsonValue } from '../../src/rules/json.ts';
import type { Tool } from '../../src/ports/tools.ts';
import { compileUserSchema } from '../../src/wire/user-schema.ts';

const tools = createTools(coreTools(() => Date.UTC(2026, 0, 2)));
const context = {
  tenant: 't',
  runId: 'r',
  correlationId: 'r',
  nodeId: 'n',
  workflowId: 'w',
  callerAgentId: 'agent.caller',
  callId: 'call-1',
  principal: 'p',
  idempotencyKey: 'k',
  signal: new AbortController().signal,
};

async function call(toolId: string, input: JsonValue): Promise<JsonValue> {
  const tool = (await tools.find('t', [toolId])).get(toolId);
  if (!tool) throw new Error(toolId);
  const output = await tool.call(input, context);
  const schema = compileUserSchema(tool.outputSchema);
  expect(schema.ok && schema.value.validate(output)).toMatchObject({ ok: true });
  return output;
}

describe('core:json.query', () => {
  const document = { items: [{ price: 3, 'a/b': { '~': 1 }, none: null }], '': 'empty' };
  test.each([
    [{ pointer: '' }, { found: true, value: document }],
    [{ pointer: '/items/0/price' }, { found: true, value: 3 }],
    [{ pointer: '/items/0/a~1b/~0' }, { found: true, value: 1 }],
    [{ pointer: '/items/0/none' }, { found: true, value: null }],
    [{ pointer: '/' }, { found: true, value: 'empty' }],
    [{ pointer: '/items/1' }, { found: false }],
    [{ pointer: '/items/00' }, { found: false }],
    [{ pointer: '/items/length' }, { found: false }],
    [{ pointer: '/constructor' }, { found: false }],
    [{ path: 'items[0].price' }, { found: true, value: 3 }],
    [{ path: '' }, { found: true, value: document }],
    [{ path: 'items[0' }, { found: false }],
    [{ path: 'items..price' }, { found: false }],
    [{ path: '__proto__' }, { found: false }],
  ])('%j', async (query, expected) => {
    expect(await call('core:json.query', { document, ...query })).toEqual(expected);
  });

  test.each([
    [{ document }],
    [{ document, pointer: 'items' }],
    [{ document, pointer: '', path: '' }],
    [{ pointer: '' }],
  ])('arguments %j do not match its schema', async (input) => {
    const found = await tools.find('t', ['core:json.query']);
    const schema = compileUserSchema(found.get('core:json.query')?.inputSchema);
    expect(schema.ok && schema.value.validate(input).ok).toBe(false);
  });
});

test('core:clock tells the time', async () => {
  expect(await call('core:clock', {})).toEqual({
    iso: '2026-01-02T00:00:00.000Z',
    epochMs: 1767312000000,
  });
});

describe('registration', () => {
  const [tool] = coreTools() as [Tool];
  const bad: readonly [string, Tool[]][] = [
    ['twice', [tool, tool]],
    ['an id without scope', [{ ...tool, toolId: 'query' }]],
    ['no timeout', [{ ...tool, timeoutMs: 0 }]],
    ['a schema that does not compile', [{ ...tool, inputSchema: { type: 'thing' } }]],
  ];
  test.each(bad)('%s is config_invalid', (_name, registrations) => {
    let code: unknown;
    try {
      createTools(registrations);
    } catch (error) {
      code = codeOf(error);
    }
    expect(code).toBe('config_invalid');
  });

  test('listed by id', () => {
    expect(tools.list('t').map(({ toolId }) => toolId)).toEqual(['core:clock', 'core:json.query']);
  });
});
