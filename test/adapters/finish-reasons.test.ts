// Why an answer ended, in the words of the families: behaviour → what it means.
import { expect, test } from 'vitest';
import { meaningOf } from '../../src/adapters/models/finish-reasons.ts';

test.each([
  ['stop', 'whole'],
  ['tool_calls', 'whole'],
  ['function_call', 'whole'],
  ['STOP', 'whole'],
  ['end_turn', 'whole'],
  ['eos', 'whole'],
  [undefined, 'whole'],
  ['constructor', 'whole'],
  ['length', 'cut'],
  ['model_length', 'cut'],
  ['MAX_TOKENS', 'cut'],
  ['content_filter', 'refused'],
  ['SAFETY', 'refused'],
  ['sensitive', 'refused'],
  ['guardrail_intervened', 'refused'],
  ['error', 'broken-off'],
  ['abort', 'broken-off'],
  ['network_error', 'broken-off'],
  ['insufficient_system_resource', 'broken-off'],
] as const)('finish_reason %j: %s', (reason, meaning) => {
  expect(meaningOf(reason)).toBe(meaning);
});
