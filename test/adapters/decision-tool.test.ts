// The decision as the arguments of one tool: what models are told, and what is read from an answer (architecture §5).
import { describe, expect, test } from 'vitest';
import {
  DECISION_TOOL,
  isDecision,
  readAnswer,
  toldOfDecisionTool,
  toldOfSchema,
  type Answer,
} from '../../src/adapters/models/decision-tool.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import type { ModelRequest, ToolDescription } from '../../src/ports/models.ts';

const TOOL: ToolDescription = {
  toolId: 'demo:orders.get',
  description: 'Reads an order.',
  inputSchema: { type: 'object' },
  timeoutMs: 1000,
  transport: 'native',
  safetyTier: 'read',
};
const NAME = functionNameOf(TOOL.toolId);
const DECISION = '{"decision": 1, "confidence": 0.5}';
const decides = { name: DECISION_TOOL, arguments: DECISION };
const reads = { name: NAME, arguments: '{"id":"A"}' };

function read(answer: Partial<Answer>) {
  return readAnswer({ calls: [], text: '', finished: true, ...answer }, { tools: [TOOL] });
}

test('no tool id gives the name of the decision tool', () => {
  const ids = ['final_output', 'final.output', 'final:output', 'final/output', 'final output'];
  for (const id of [...ids, DECISION_TOOL]) expect(functionNameOf(id)).not.toBe(DECISION_TOOL);
  // Each `_` of a name begins an escape, and this one begins none.
  expect(DECISION_TOOL).toMatch(/^[a-z]+_[^_cdshx][a-z]+$/);
});

describe('what is read', () => {
  test('the decision tool alone is the final output', () => {
    const final = '{"decision":1,"confidence":0.5}';
    expect(read({ calls: [decides] })).toEqual({ kind: 'final', calls: [], final });
  });

  test('a decision as text, without a call, is the final output', () => {
    expect(read({ text: DECISION })).toEqual({ kind: 'final', calls: [], final: DECISION });
  });

  test('no output at all is a final output that is empty', () => {
    expect(read({})).toEqual({ kind: 'final', calls: [], final: '' });
  });

  test('calls of tools are calls, a made-up one too; JSON that is quoted beside them decides nothing', () => {
    const calls = [reads, { name: 'made_up', arguments: '' }];
    expect(read({ calls, text: '{"id":"A"}' })).toEqual({
      kind: 'calls',
      calls: [
        { toolId: TOOL.toolId, arguments: { id: 'A' } },
        { toolId: 'made_up', arguments: {} },
      ],
      final: '{"id":"A"}',
    });
  });

  // [I54]
  test.each<[string, Partial<Answer>, string]>([
    ['two decisions', { calls: [decides, decides] }, 'two final outputs'],
    ['a decision as text and one by the tool', { calls: [decides], text: DECISION }, 'two final'],
    ['a decision beside a call', { calls: [reads, decides] }, 'beside calls'],
    ['a decision as text beside a call', { calls: [reads], text: DECISION }, 'beside calls'],
    ['a call cut in its arguments', { calls: [{ name: NAME, arguments: '{"id"' }] }, 'cut off'],
    ['a call without a name', { calls: [{ name: ' ', arguments: '{}' }] }, 'names no tool'],
    ['a decision cut off', { calls: [{ ...decides, arguments: '{"deci' }] }, 'cut off'],
    [
      '[I103] a number that would be another one',
      { calls: [reads, { name: NAME, arguments: '{"pay":{"order":2512292042121000001}}' }] },
      '/pay/order is a number that cannot be kept exactly; send it as text, in quotes',
    ],
    [
      '[I103] a decision with one',
      { calls: [{ ...decides, arguments: '{"decision":1e400}' }] },
      '/decision is a number',
    ],
    [
      '[I103] a member named __proto__',
      { calls: [{ name: NAME, arguments: '{"__proto__":1}' }] },
      'a name',
    ],
    [
      'arguments that are too deep',
      { calls: [{ name: NAME, arguments: '['.repeat(129) + ']'.repeat(129) }] },
      'nested deeper than 128 levels',
    ],
    ['a call without an end of the answer', { calls: [reads], finished: false }, 'cut off'],
  ])('%s: unusable, nothing is called, and what was said is kept', (_name, answer, told) => {
    const result = read(answer);
    expect(result).toMatchObject({ kind: 'unusable', calls: [] });
    expect(result.unusable).toContain(told);
    expect(result.unusable).toContain('No tool was called.');
    for (const call of answer.calls ?? []) expect(result.final).toContain(call.arguments);
  });

  test.each([
    [DECISION, true],
    ['```json\n{"decision": null}\n```', true],
    ['{"type":"clarification.request","payload":{}}', true],
    ['{"id":"A"}', false],
    ['"decision"', false],
    ['{"decision":', false],
    ['', false],
  ])('%j is a decision: %j', (text, expected) => {
    expect(isDecision(text)).toBe(expected);
  });
});

describe('what models are told', () => {
  const items: ModelRequest['items'] = [
    { role: 'system', text: 'You decide.' },
    { role: 'user', text: 'Task', trusted: false },
  ];

  test('the rule joins the system text: the conversation has one', () => {
    const [system, ...rest] = toldOfDecisionTool(items);
    expect(system?.text).toMatch(/^You decide\.\n.*final_output/);
    expect(rest).toEqual(items.slice(1));
    expect(items[0]?.role === 'system' && items[0].text).toBe('You decide.');
  });

  test('a conversation without a system text begins with the rule', () => {
    expect(toldOfDecisionTool(items.slice(1)).map(({ role }) => role)).toEqual(['system', 'user']);
  });

  test('without tools the schema is told', () => {
    const request = { items, outputSchema: { type: 'object', title: 'T' } };
    expect(toldOfSchema(request)[0]?.text).toContain('"title":"T"');
  });
});
