// One streamed answer of Anthropic's Messages API of which something is missing: a broken stream, or nothing.
import { expect, test } from 'vitest';
import { AnthropicReading } from '../../src/adapters/models/anthropic-reading.ts';
import { codeOf } from '../../src/rules/errors.ts';

const END = [
  { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
  { type: 'message_stop' },
];

function read(...events: unknown[]) {
  const request = {
    ...{ provider: 'anthropic', model: 'asked-1', agentId: 'local.test.desk.agent' },
    ...{ items: [], tools: [], outputSchema: { type: 'object' }, idempotencyKey: 'key-1' },
  };
  const reading = new AnthropicReading(request, { onReasoning: () => {} });
  for (const event of events) reading.take(event);
  return reading.response();
}

function failure(...events: unknown[]): unknown {
  try {
    read(...events);
  } catch (error) {
    return codeOf(error);
  }
  return 'none';
}

test.each<[string, unknown]>([
  ['no object', null],
  ['a start without its message', { type: 'message_start' }],
  ['a block without its content', { type: 'content_block_start', index: 0 }],
  ['a block of null', { type: 'content_block_start', index: 0, content_block: null }],
  ['a delta of none', { type: 'content_block_delta', index: 0 }],
  ['an end without its delta', { type: 'message_delta', usage: {} }],
])('an event that lacks what it says is a lost connection: %s', (_name, event) => {
  const block = { type: 'content_block_start', index: 0, content_block: { type: 'text' } };
  expect(failure(block, event, ...END)).toBe('model_unavailable');
  expect(failure(block, ...END)).toBe('none');
});

test('a text that is none is nothing; an event of a new type is passed over', () => {
  const { final, reasoning } = read(
    { type: 'brand_new' },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: null } },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: null } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: '{"n":1}' } },
    ...END,
  );
  expect([final, reasoning]).toEqual(['{"n":1}', '']);
});
