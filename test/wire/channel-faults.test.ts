// Channels of a definition: what is taken, and what is refused where it stands (channels-and-reducers.md).
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { checkDefinition } from '../../src/wire/load-definition.ts';
import { NODE_TYPE_IDS } from '../../src/wire/validators.ts';
import { edge, node } from '../support/definitions.ts';

const context = { nodeTypes: new Set(NODE_TYPE_IDS), agents: () => false };
const base = JSON.parse(
  readFileSync(new URL('../fixtures/definitions/chain.json', import.meta.url), 'utf8'),
) as object;

function checked(channels: JsonObject | undefined, more: object = {}) {
  const nodes = [node('n', 'core.noop')];
  const change = { nodes, edges: [], variables: [], ...(channels ? { channels } : {}), ...more };
  return checkDefinition({ ...base, ...change }, context);
}

/** `pointer code` of each fault. */
function faults(...given: Parameters<typeof checked>): string[] {
  const result = checked(...given);
  return result.ok ? [] : result.faults.map(({ pointer, code }) => `${pointer} ${code}`);
}

const write = (config: JsonObject, inputs: object = {}) => ({
  nodes: [
    node('w', 'core.channelWrite', { config: { channelName: 'c', ...config }, inputs } as object),
  ],
});
const reading = {
  nodes: [node('r', 'core.end', { inputs: { x: { type: 'variable', variableName: 'c' } } })],
};

describe('declarations', () => {
  test.each<[string, JsonObject, object?]>([
    [
      'each reducer',
      Object.fromEntries(
        ['replace', 'append', 'merge', 'counter', 'votes', 'feedback', 'message'].map((reducer) => [
          reducer,
          { reducer },
        ]),
      ),
    ],
    [
      'everything at once',
      {
        c: {
          reducer: 'append',
          schema: { type: 'string' },
          maxSize: 3,
          ttlMs: 5,
          options: {},
          schemaVersion: 2,
          compatibleWith: [1],
          sensitive: true,
          access: { readers: ['a'], writers: ['core.*'] },
        },
      },
    ],
    [
      'defaults that writes could have made',
      {
        a: { reducer: 'append', default: [1] },
        b: { reducer: 'counter', default: -1 },
        c: { reducer: 'merge', default: {} },
        d: { reducer: 'message', default: [{ messageId: 'm' }] },
      },
    ],
    [
      'a time to live where it has no meaning: it has none',
      { c: { reducer: 'merge', ttlMs: 5, default: {} } },
    ],
    [
      'names of any kind',
      { 'approvalVotes:{node}': { reducer: 'votes' }, 'a/b': { reducer: 'append' } },
    ],
  ])('taken: %s', (_, channels, more) => {
    expect(faults(channels, more)).toEqual([]);
  });

  test.each<[string, JsonValue, string]>([
    ['a reducer of a vendor', { reducer: 'vendor.acme.dedupe' }, '/channels/c/reducer'],
    [
      'a schema that is none',
      { reducer: 'append', schema: { type: 'nope' } },
      '/channels/c/schema',
    ],
    [
      'a compatible version that is not older',
      { reducer: 'append', schemaVersion: 2, compatibleWith: [1, 2] },
      '/channels/c/compatibleWith/1',
    ],
    [
      'a default beside a time to live',
      { reducer: 'append', ttlMs: 5, default: ['x'] },
      '/channels/c/default',
    ],
    ['a default that is no list', { reducer: 'append', default: 'x' }, '/channels/c/default'],
    ['a default that is no number', { reducer: 'counter', default: 'x' }, '/channels/c/default'],
    [
      'a default of messages without ids',
      { reducer: 'message', default: [{}] },
      '/channels/c/default',
    ],
    [
      'a default that is full',
      { reducer: 'message', maxSize: 1, default: [{ messageId: 'a' }, { messageId: 'b' }] },
      '/channels/c/default',
    ],
    ['an access of another kind', { reducer: 'append', access: 'mine' }, '/channels/c/access'],
    [
      'a list of readers without end',
      { reducer: 'append', access: { readers: Array.from({ length: 257 }, (_, at) => `r${at}`) } },
      '/channels/c/access',
    ],
  ])('refused: %s', (_, declared, pointer) => {
    expect(faults({ c: declared })).toEqual([`${pointer} validation_error`]);
  });

  test('refused: a name that is a variable, empty, too long, or every object’s', () => {
    const variables = [{ name: 'c', type: 'array' }];
    expect(faults({ c: { reducer: 'append' } }, { variables })).toEqual([
      '/channels/c validation_error',
    ]);
    expect(faults({ '': { reducer: 'append' } })).toEqual(['/channels/ validation_error']);
    const long = 'c'.repeat(257);
    expect(faults({ [long]: { reducer: 'append' } })).toEqual([
      `/channels/${long} validation_error`,
    ]);
    expect(faults({ constructor: { reducer: 'append' } })).toEqual([
      '/channels/constructor validation_error',
    ]);
  });
});

describe('writes', () => {
  const append = { c: { reducer: 'append' } };
  test.each<[string, JsonObject | undefined, object]>([
    ['what is declared says how', append, write({ value: 1 })],
    [
      'the same words as the declaration',
      { c: { reducer: 'append', ttlMs: 5 } },
      write({ reducer: 'append', ttlMs: 5 }),
    ],
    [
      'a value that comes later',
      { c: { reducer: 'counter' } },
      write({ value: 'x' }, { value: { type: 'static', value: 1 } }),
    ],
    [
      '§Legacy mode: without declarations',
      undefined,
      write({ reducer: 'append', ttlMs: 5, value: 1 }),
    ],
    [
      '§Channel-aware mode: a name that is not declared',
      append,
      { nodes: [node('w', 'core.channelWrite', { config: { channelName: 'd' } })] },
    ],
    [
      '§Legacy mode: a variable of the type',
      undefined,
      { ...write({}), variables: [{ name: 'c', type: 'array' }] },
    ],
  ])('taken: %s', (_, channels, more) => {
    expect(faults(channels, more)).toEqual([]);
  });

  test.each<[string, JsonObject | undefined, object, string]>([
    [
      'another reducer than declared',
      append,
      write({ reducer: 'replace' }),
      '/nodes/0/config/reducer',
    ],
    ['another time to live', append, write({ ttlMs: 5 }), '/nodes/0/config/ttlMs'],
    [
      'a value that does not fit the reducer',
      { c: { reducer: 'counter' } },
      write({ value: 'x' }),
      '/nodes/0/config/value',
    ],
    [
      'a value against the schema',
      { c: { reducer: 'append', schema: { type: 'number' } } },
      write({ value: 'x' }),
      '/nodes/0/config/value',
    ],
    ['no channel', append, { nodes: [node('w', 'core.channelWrite')] }, '/nodes/0/config'],
    [
      'a reducer of a vendor',
      undefined,
      write({ reducer: 'vendor.acme.x' }),
      '/nodes/0/config/reducer',
    ],
    [
      'a name of every object',
      undefined,
      write({ channelName: '__proto__' }),
      '/nodes/0/config/channelName',
    ],
    [
      'a variable of another type',
      undefined,
      { ...write({}), variables: [{ name: 'c', type: 'string' }] },
      '/nodes/0/config/reducer',
    ],
    [
      'core.setVariable on a channel',
      append,
      { nodes: [node('s', 'core.setVariable', { config: { variableName: 'c' } })] },
      '/nodes/0/config/variableName',
    ],
  ])('refused: %s', (_, channels, more, pointer) => {
    expect(faults(channels, more)).toEqual([`${pointer} validation_error`]);
  });
});

describe('§Channel access control', () => {
  const withAccess = (access: JsonValue) => ({ c: { reducer: 'append', access } });
  test.each<[string, JsonValue, object, boolean]>([
    ['public: anybody', 'public', write({}), true],
    ['private: nobody writes', 'private', write({}), false],
    ['private: nobody reads', 'private', reading, false],
    ['a side that is not listed is open', { readers: [] }, write({}), true],
    ['a list is strict', { writers: [] }, write({}), false],
    ['by the node’s id', { writers: ['w'] }, write({}), true],
    ['by its type', { writers: ['core.*'] }, write({}), true],
    ['every type', { writers: ['*'] }, write({}), true],
    ['another branch of types', { writers: ['core.ai.*'] }, write({}), false],
    [
      'the beginning of a word is no branch',
      { writers: ['co.*', 'core', 'core.cha*'] },
      write({}),
      false,
    ],
    ['a reader', { readers: ['r'] }, reading, true],
    ['no reader', { readers: ['w'] }, reading, false],
  ])('%s', (_, access, more, allowed) => {
    expect(checked(withAccess(access), more).ok).toBe(allowed);
  });

  test('a denial names channel, node and side', () => {
    const result = checked(withAccess({ writers: ['x'] }), write({}));
    expect(result.ok ? [] : result.faults).toEqual([
      {
        pointer: '/nodes/0/config/channelName',
        message: 'node "w" may not write to channel "c"',
        code: 'channel_access_denied',
        details: {
          ...{ channel: 'c', allowed: 'writers' },
          requestedBy: { nodeId: 'w', typeId: 'core.channelWrite' },
        },
      },
    ]);
  });

  test('a condition reads in the name of the node that it decides about', () => {
    const nodes = [node('a', 'core.noop'), node('b', 'core.noop')];
    const reads = (left: string) => ({
      nodes,
      edges: [edge('a', 'b', { condition: { type: 'truthy', left } })],
    });
    expect(faults(withAccess({ readers: ['a'] }), reads('c.0'))).toEqual([]);
    for (const left of ['c', 'variables.c'])
      expect(faults(withAccess({ readers: ['b'] }), reads(left))).toEqual([
        '/edges/0/condition/left channel_access_denied',
      ]);
    expect(faults(withAccess({ readers: ['b'] }), reads('outputs.c'))).toEqual([]);
  });
});
