// Channels of a run in workflow code (channels-and-reducers.md; RFC 0002 §G): writes as they are stated, what they
// become, who reads them, and what is refused.
import { describe, expect, it } from 'vitest';
import { fold, foldedRun } from '../../src/log/fold.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { checkValue } from '../../activities/check-value.ts';
import type { CheckValueInput } from '../../activities/contract.ts';
import type { WorkflowDefinition, WorkflowNode } from '../../schemas/types.generated.ts';
import { chain, definition, edge, node, runInput } from '../support/definitions.ts';
import type { FinishedRun, ScriptedActivities } from '../support/run-workflow.ts';
import { factsOf, payloadsOf, runBothWays, typesOf, useWorkflowRunner } from './both-ways.ts';

useWorkflowRunner();

type Channels = NonNullable<WorkflowDefinition['channels']>;

const writer = (id: string, value: JsonValue, config: JsonObject = {}): WorkflowNode =>
  node(id, 'core.channelWrite', { config: { channelName: 'c', value, ...config } });
const reader = node('read', 'core.end', {
  inputs: { got: { type: 'variable', variableName: 'c' } },
});
const activities = {
  checkValue: (input: CheckValueInput) => checkValue(input),
} as unknown as ScriptedActivities;

/**
 * One write after the other, then a node that reads the channel into the run's outputs. What a reducer makes of a value is the
 * same in any segment: those tests are plain; the first one, of a repeated messageId and of sums are over borders.
 */
async function written(
  channels: Channels,
  values: readonly JsonValue[],
  more: { config?: JsonObject; reads?: boolean; plainOnly?: boolean } = {},
): Promise<FinishedRun> {
  const nodes = values.map((value, index) => writer(`w${index}`, value, more.config));
  const ends = more.reads === false ? [] : [reader];
  return runBothWays({
    input: runInput(chain('channels', [...nodes, ...ends], { channels })),
    activities,
    plainOnly: more.plainOnly,
  });
}

const outputOf = (run: FinishedRun): JsonValue | undefined =>
  (payloadsOf(run, 'run.completed')[0]?.outputs as JsonObject | undefined)?.got;

/** The channels as the log folds them. */
function foldedChannels(run: FinishedRun, channels: Channels): JsonObject {
  const rows = factsOf(run).map(({ type, nodeId, key, payload }, sequence) => ({
    ...{ runId: 'r', sequence, eventId: key, key, type, timestampMs: 7 },
    ...(nodeId === undefined ? {} : { nodeId }),
    payload: JSON.stringify(payload),
  }));
  return foldedRun(fold(null, rows, { channels })).channels;
}

const message = (messageId: string, content: string): JsonObject => ({
  messageId,
  role: 'user',
  content,
  timestamp: '2026-01-01T00:00:00.000Z',
});

it('RFC 0077 §D what somebody said that started the run is the first thing that it states, and is in its channel', async () => {
  const channels: Channels = { messages: { reducer: 'message' } };
  const said = { messageId: 'r:0:user', from: 'user', to: 'a.b', content: 'hi', ts: 3 };
  const read = { ...reader, inputs: { got: { type: 'variable', variableName: 'messages' } } };
  const again = writer('w', { ...said, content: 'again' }, { channelName: 'messages' });
  const input = runInput(chain('said', [again, read as WorkflowNode], { channels }));
  const run = await runBothWays({ input: { ...input, message: said }, activities });
  const [, first] = factsOf(run);
  expect(typesOf(run).slice(0, 2)).toEqual(['run.started', 'channel.written']);
  expect(first).toMatchObject({
    ...{ key: 'message', causedBy: 'run.started' },
    payload: { channel: 'messages', reducer: 'message', value: said, schemaVersion: 1 },
  });
  expect(first?.payload).not.toHaveProperty('nodeId');
  expect([outputOf(run), foldedChannels(run, channels).messages]).toEqual([[said], [said]]);
});

describe('core.channelWrite (channels-and-reducers.md)', () => {
  it('§Wire surface: each write is stated as it was given, with its reducer, its time and its version', async () => {
    const channels: Channels = { c: { reducer: 'counter', schemaVersion: 3 } };
    const run = await written(channels, [2, -5]);
    expect(payloadsOf(run, 'channel.written')).toEqual(
      [2, -5].map((value, index) => ({
        ...{ channel: 'c', value, reducer: 'counter', nodeId: `w${index}`, schemaVersion: 3 },
        writtenAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/) as string,
      })),
    );
    expect(outputOf(run)).toBe(-3);
  });

  it.each<[string, Channels[string], JsonValue[], JsonValue]>([
    ['replace', { reducer: 'replace' }, [1, { a: 1 }], { a: 1 }],
    ['append', { reducer: 'append', maxSize: 2 }, ['a', 'b', 'c'], ['b', 'c']],
    ['merge', { reducer: 'merge', default: { a: 0 } }, [{ b: 1 }, { b: 2 }], { a: 0, b: 2 }],
    ['counter', { reducer: 'counter', default: 10 }, [2], 12],
    [
      'votes',
      { reducer: 'votes' },
      [
        { userId: 'u', action: 'accept' },
        { userId: 'v', action: 'accept' },
        { userId: 'u', action: 'reject' },
      ],
      [
        { userId: 'v', action: 'accept' },
        { userId: 'u', action: 'reject' },
      ],
    ],
    ['feedback', { reducer: 'feedback' }, [{ feedback: 'x' }], [{ feedback: 'x' }]],
    [
      'RFC 0002 §G message: append-only, one of each messageId, the first wins',
      { reducer: 'message' },
      [
        message('m', 'first'),
        { messageId: 'n', from: 'user', content: 1, ts: 1 },
        message('m', 'second'),
      ],
      [message('m', 'first'), { messageId: 'n', from: 'user', content: 1, ts: 1 }],
    ],
  ])(
    '%s: what is read, and what the log folds, is the reduced value',
    async (_, declared, values, expected) => {
      const channels = { c: declared };
      const run = await written(channels, values, { plainOnly: true });
      expect(run.status).toBe('completed');
      expect(outputOf(run)).toEqual(expected);
      expect(foldedChannels(run, channels)).toEqual({ c: expected });
    },
  );

  it('§Channel TTL: entries have their times, in the event too, and old ones go at the next write', async () => {
    const channels: Channels = { c: { reducer: 'append', ttlMs: 300 } };
    const nodes = [
      ...['a', 'b', 'c'].map((value) => writer(value, value)),
      node('pause', 'core.delay', { config: { ms: 500 } }),
      writer('d', 'd'),
      reader,
    ];
    const run = await runBothWays({ input: runInput(chain('ttl', nodes, { channels })) });
    const entry = (value: string) => ({ value, _ts: expect.any(Number) as number });
    expect(payloadsOf(run, 'channel.written').map(({ value }) => value)).toEqual(
      ['a', 'b', 'c', 'd'].map(entry),
    );
    expect(outputOf(run)).toEqual([entry('d')]);
    expect(foldedChannels(run, channels)).toEqual({ c: outputOf(run) });
  });

  it('observability.md: what is declared sensitive is masked in the event, and the run works with it', async () => {
    const channels: Channels = { c: { reducer: 'counter', sensitive: true } };
    const at = (total: number) => ({
      condition: { type: 'equals', left: 'variables.c', right: total } as const,
    });
    const nodes = [writer('two', 2), writer('three', 3), reader, node('other', 'core.noop')];
    const edges = [
      edge('two', 'three'),
      edge('three', 'read', at(5)),
      edge('three', 'other', at(3)),
    ];
    const input = runInput(definition('sensitive', nodes, edges, { channels }));
    const run = await runBothWays({ input, activities });
    expect(payloadsOf(run, 'channel.written').map(({ value }) => value)).toEqual([
      '[REDACTED]',
      '[REDACTED]',
    ]);
    expect(payloadsOf(run, 'node.completed').map(({ nodeId }) => nodeId)).toContain('read');
    expect(outputOf(run)).toBe('[REDACTED]');
  });

  it('§Legacy mode: a channel that is not declared is a variable, changed by its write', async () => {
    const input = runInput(
      chain('legacy', [
        writer('a', 'a', { reducer: 'append', ttlMs: 60_000 }),
        writer('b', 'b', { reducer: 'append', ttlMs: 60_000 }),
      ]),
    );
    const run = await runBothWays({ input });
    const entry = (value: string) => ({ value, _ts: expect.any(Number) as number });
    expect(payloadsOf(run, 'variable.changed').map(({ name, next }) => [name, next])).toEqual([
      ['c', [entry('a')]],
      ['c', [entry('a'), entry('b')]],
    ]);
    const [first] = factsOf(run).filter(({ type }) => type === 'variable.changed');
    const [cause] = factsOf(run).filter(({ type }) => type === 'channel.written');
    expect(first?.causedBy).toBe(cause?.key);
  });

  it('§Append ordering: writes of parallel branches stand in the order of their events', async () => {
    const ids = ['p1', 'p2', 'p3', 'p4'];
    const channels: Channels = { c: { reducer: 'append' } };
    const input = runInput(
      definition(
        'parallel',
        [node('s', 'core.start'), ...ids.map((id) => writer(id, id)), reader],
        [...ids.map((id) => edge('s', id)), ...ids.map((id) => edge(id, 'read'))],
        { channels },
      ),
    );
    const run = await runBothWays({ input, parallel: true });
    const order = payloadsOf(run, 'channel.written').map(({ value }) => value ?? null);
    expect(order).toHaveLength(4);
    expect(outputOf(run)).toEqual(order);
    expect(foldedChannels(run, channels)).toEqual({ c: order });
  });

  it('a condition reads a channel by its name', async () => {
    const nodes = [writer('w', 'x'), node('yes', 'core.noop'), node('no', 'core.noop')];
    const when = (id: string, right: string) =>
      edge('w', id, { condition: { type: 'contains', left: 'c', right } });
    const input = runInput(
      definition('condition', nodes, [when('yes', 'x'), when('no', 'y')], {
        channels: { c: { reducer: 'append' } },
      }),
    );
    const types = typesOf(await runBothWays({ input }));
    expect(types).toContain('node.completed yes');
    expect(types).toContain('node.skipped no');
  });
});

describe('what a channel refuses fails the node, and nothing is written', () => {
  const schema = { type: 'object', required: ['a'] };
  it.each<[string, Channels[string], JsonValue, string]>([
    ['a value against its schema', { reducer: 'append', schema }, { b: 1 }, 'validation_error'],
    ['a text for a counter', { reducer: 'counter' }, 'x', 'validation_error'],
    ['a list for a merge', { reducer: 'merge' }, [], 'validation_error'],
    ['a vote of nobody', { reducer: 'votes' }, { action: 'accept' }, 'validation_error'],
    ['feedback without any', { reducer: 'feedback' }, 'x', 'validation_error'],
    ['a message without id', { reducer: 'message' }, { content: 'x' }, 'validation_error'],
    ['a message with an empty id', { reducer: 'message' }, { messageId: '' }, 'validation_error'],
    [
      'a message with an id of 10 kB',
      { reducer: 'message' },
      { messageId: 'm'.repeat(10_240) },
      'validation_error',
    ],
    [
      'a sum that is no number',
      { reducer: 'counter', default: 1.7e308 },
      1.7e308,
      'validation_error',
    ],
    [
      'more than maxSize of what drops nothing',
      { reducer: 'replace', maxSize: 1 },
      [1, 2],
      'validation_error',
    ],
    ['a value above 32 KiB', { reducer: 'append' }, 'x'.repeat(33_000), 'payload_too_large'],
  ])('%s', async (_, declared, value, code) => {
    const run = await written({ c: declared }, [value], { reads: false, plainOnly: true });
    expect(run.status).toBe('failed');
    expect(payloadsOf(run, 'node.failed')[0]).toMatchObject({ error: { code } });
    expect(payloadsOf(run, 'channel.written')).toEqual([]);
  });

  it('a value that fits its schema is written', async () => {
    const run = await written({ c: { reducer: 'append', schema } }, [{ a: 1 }], {
      plainOnly: true,
    });
    expect(outputOf(run)).toEqual([{ a: 1 }]);
  });

  it('a channel that is full: its bytes have a limit, whatever it keeps', async () => {
    const channels: Channels = { c: { reducer: 'append' } };
    const nodes = [writer('w', 'x'.repeat(30_000)), node('again', 'core.noop')];
    const input = runInput(
      definition(
        'full',
        nodes,
        [edge('w', 'again'), edge('again', 'w', { triggerRule: 'any_success' })],
        { channels, settings: { maxLoopbackIterations: 50 } },
      ),
    );
    const run = await runBothWays({ input });
    expect(payloadsOf(run, 'node.failed')[0]).toMatchObject({
      error: { code: 'payload_too_large', message: expect.stringContaining('channel c') as string },
    });
    expect(payloadsOf(run, 'channel.written')).toHaveLength(8);
  });

  it('channels count among the values of the run, over the ends of segments', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `c${index}`);
    const channels: Channels = Object.fromEntries(
      names.map((name) => [name, { reducer: 'replace' }]),
    );
    const nodes = names.map((channelName) =>
      node(channelName, 'core.channelWrite', {
        config: { channelName, value: 'x'.repeat(32_000) },
      }),
    );
    // Segments end where something waits.
    const pauses = ['p1', 'p2'].map((id) => node(id, 'core.delay', { config: { ms: 200 } }));
    nodes.splice(20, 0, ...pauses);
    const run = await runBothWays({ input: runInput(chain('sum', nodes, { channels })) });
    expect(payloadsOf(run, 'node.failed')[0]).toMatchObject({
      error: {
        code: 'payload_too_large',
        message: expect.stringContaining('what the run keeps') as string,
      },
    });
  });
});

describe('conformance/fixtures.md emitDuplicateMessageId', () => {
  const channels: Channels = { log: { reducer: 'message' } };
  const probe = node('n', 'core.identity', { config: { emitDuplicateMessageId: true } });

  it('a repeated messageId folds to one entry, also of the log', async () => {
    const input = runInput(definition('conformance-message-reducer', [probe], [], { channels }), {
      testHooks: true,
    });
    const run = await runBothWays({ input });
    expect(payloadsOf(run, 'channel.written')).toHaveLength(3);
    const { log } = foldedChannels(run, channels) as { log: { messageId: string }[] };
    expect(log.map(({ messageId }) => messageId)).toEqual([
      `${input.idSeed}-message-1`,
      `${input.idSeed}-message-2`,
    ]);
  });

  it('outside test mode it is a config like any other', async () => {
    const input = runInput(definition('conformance-message-reducer', [probe], [], { channels }));
    expect(payloadsOf(await runBothWays({ input }), 'channel.written')).toEqual([]);
  });
});
