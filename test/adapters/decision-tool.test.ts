// The decision as the arguments of one tool: what models are told, and what is read from an answer (architecture §5).
import { describe, expect, test } from 'vitest';
import {
  DECISION_TOOL,
  holdsDecision,
  readAnswer,
  toldOfDecisionTool,
  toldOfSchema,
  type Answer,
} from '../../src/adapters/models/decision-tool.ts';
import { OutputSplitter } from '../../src/adapters/models/output-splitter.ts';
import { scanCost } from '../support/scan-cost.ts';
import { functionNameOf } from '../../src/adapters/models/tool-names.ts';
import type { JsonObject } from '../../src/rules/json.ts';
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
const OTHER = '{"decision": 2}';
const decides = { name: DECISION_TOOL, arguments: DECISION };
const reads = { name: NAME, arguments: '{"id":"A"}' };

function read(answer: Partial<Answer>, tools = [TOOL]) {
  const said = answer.text ?? '';
  return readAnswer({ calls: [], text: '', said, finished: true, ...answer }, { tools });
}

/** An answer of content, in pieces, and what of it was shown. */
function readContent(content: string | readonly string[], calls: Answer['calls'] = []) {
  const shown: string[] = [];
  const splitter = new OutputSplitter((piece) => shown.push(piece));
  for (const piece of [content].flat()) splitter.push(piece);
  const text = splitter.end();
  return { ...read({ calls, text, said: splitter.said }), shown: shown.join('') };
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
    ['a decision as text and another by the tool', { calls: [decides], text: OTHER }, 'two final'],
    [
      'a decision that was shown and another by the tool',
      { calls: [decides], said: `So: ${OTHER}` },
      'two final',
    ],
    [
      'a decision after a brace that nothing closes, beside a call',
      { calls: [reads], text: DECISION, said: `A set opens with {\n${DECISION}` },
      'beside calls',
    ],
    [
      'a decision in braces that were opened before, beside a call',
      { calls: [reads], text: `${DECISION}\n}`, said: `In {\n${DECISION}\n}` },
      'beside calls',
    ],
    [
      'a decision that was shown in a list, beside a call',
      { calls: [reads], said: `[${DECISION}]` },
      'beside calls',
    ],
    [
      'a decision that was corrected, and the same by the tool',
      { calls: [decides], text: `${DECISION}\nNo:\n{'decision': 2}` },
      'cannot be read',
    ],
    ['two decisions as text', { text: `${OTHER}\n${DECISION}` }, 'two final outputs'],
    [
      'calls that contradict themselves',
      { calls: [reads], malformed: 'A call came twice.' },
      'A call came twice. No',
    ],
    [
      'nothing but what contradicts itself',
      { malformed: 'A call came twice.' },
      'A call came twice. No',
    ],
    [
      'a contradiction in a call that was cut off',
      { calls: [{ name: '', arguments: '{' }], malformed: 'A call came twice.' },
      'A call came twice. No',
    ],
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
    expect(holdsDecision(text)).toBe(expected);
  });
});

describe('arguments of a tool that takes an object', () => {
  const argued = (sent: string, inputSchema: JsonObject = { type: 'object' }) => {
    const result = read({ calls: [{ name: NAME, arguments: sent }] }, [{ ...TOOL, inputSchema }]);
    return result.calls[0]?.arguments;
  };
  const twice = (text: string) => JSON.stringify(text);

  test.each<[string, string, unknown]>([
    ['null', 'null', {}],
    ['null with blanks', ' null\n', {}],
    ['an object', '{"id":"A"}', { id: 'A' }],
    ['an object encoded twice', twice('{"id":"A","of":["\\n"]}'), { id: 'A', of: ['\n'] }],
    ['an object encoded twice, with blanks', ` ${twice(' {"id":"A"}\n')} `, { id: 'A' }],
    ['an object encoded three times', twice(twice('{"id":"A"}')), twice('{"id":"A"}')],
    ['half an object encoded twice', twice('{"id":'), '{"id":'],
    ['a text', twice('The moon'), 'The moon'],
    ['a list encoded twice', twice('["A"]'), '["A"]'],
    ['a text in a member', '{"id":"{}"}', { id: '{}' }],
  ])('%s', (_name, sent, expected) => {
    expect(argued(sent)).toEqual(expected);
  });

  test.each<[string, string, JsonObject, unknown]>([
    ['null', 'null', { type: 'null' }, null],
    ['null in its place', '{"value":null}', { type: ['object', 'null'] }, null],
    ['a text that is JSON', twice('{"id":"A"}'), { type: 'string' }, '{"id":"A"}'],
    ['one in its place', `{"value":${twice('{}')}}`, { enum: ['{}'] }, '{}'],
  ])('of a tool that takes something else, %s is what it is', (_name, sent, schema, expected) => {
    expect(argued(sent, schema)).toEqual(expected);
  });

  test('of a tool that nobody offers, they are what they are', () => {
    const sent = [twice('{}'), 'null'];
    const calls = sent.map((each) => ({ name: 'made_up', arguments: each }));
    expect(read({ calls }).calls.map((call) => call.arguments)).toEqual(['{}', null]);
  });

  test.each([
    ['a number', '{"pay":9007199254740993}', '/pay is a number that cannot be kept exactly'],
    ['a name twice', '{"pay":{"a":1,"a":2}}', '/pay/a is a name that its object has twice'],
    ['__proto__', '{"__proto__":1}', '/__proto__ is a name that is not accepted'],
    ['depth', `{"a":${'['.repeat(128)}${']'.repeat(128)}}`, 'is nested deeper than 128 levels'],
  ])('[I103] %s: what is encoded twice is refused with its place', (_name, text, words) => {
    for (const name of [NAME, DECISION_TOOL])
      expect(read({ calls: [{ name, arguments: twice(text) }] })).toMatchObject({
        kind: 'unusable',
        calls: [],
        unusable: expect.stringContaining(words) as unknown,
      });
  });

  test.each([
    [twice(DECISION), { kind: 'final', final: '{"decision":1,"confidence":0.5}' }],
    ['null', { kind: 'final', final: '{}' }],
  ])('the decision by its tool: %s', (sent, expected) => {
    expect(read({ calls: [{ ...decides, arguments: sent }] })).toMatchObject(expected);
  });
});

describe('a decision in text', () => {
  test.each<[string, string[], { final: string; shown: string }]>([
    [
      'after prose on its line',
      ['So: {"deci', 'sion": 2}'],
      { final: OTHER, shown: `So: ${OTHER}` },
    ],
    [
      'after a plan on its line',
      [`Then I say ${DECISION}, or so.\n${OTHER}`],
      { final: OTHER, shown: `Then I say ${DECISION}, or so.\n` },
    ],
    [
      'after a thought on its line',
      [`<think>${DECISION}</think>So: ${OTHER}`],
      { final: OTHER, shown: `${DECISION}So: ${OTHER}` },
    ],
    ['encoded twice', [JSON.stringify(OTHER)], { final: OTHER, shown: JSON.stringify(OTHER) }],
    [
      'after JSON that is quoted',
      [`Read:\n{"id":"A"}\nSo:\n${OTHER}`],
      { final: `{"id":"A"}\nSo:\n${OTHER}`, shown: 'Read:\n' },
    ],
    [
      'before prose',
      [`Hm.\n${OTHER}\nI hope {that} is right.`],
      { final: `${OTHER}\nI hope {that} is right.`, shown: 'Hm.\n' },
    ],
    ['shown, and again', [`So: ${OTHER}\n${OTHER}`], { final: OTHER, shown: `So: ${OTHER}\n` }],
    ['none', [`{"id":"A"}`], { final: '{"id":"A"}', shown: '' }],
    [
      'after a thought that the template opened',
      [`Perhaps ${DECISION}, on the other`, ` hand:</th`, `ink>${OTHER}`],
      { final: OTHER, shown: `Perhaps ${DECISION}, on the other hand:</think>${OTHER}` },
    ],
    [
      'after that thought in prose',
      [`I think: ${DECISION}.\n</think>\n\nSo: ${OTHER}`],
      { final: OTHER, shown: `I think: ${DECISION}.\n</think>\n\nSo: ${OTHER}` },
    ],
    [
      'that holds the end of a thought',
      ['{"decision": "a</think>b"}'],
      { final: '{"decision": "a</think>b"}', shown: '' },
    ],
  ])('%s', (_name, pieces, expected) => {
    expect(readContent(pieces)).toEqual({ kind: 'final', calls: [], ...expected });
  });

  test.each([
    ['two of them', `So:\n${OTHER}\n${DECISION}`],
    ['either of them', `Either ${OTHER} or ${DECISION}.`],
    [
      'an example in a fenced block before it',
      `Like\n\`\`\`json\n${OTHER}\n\`\`\`\nSo:\n${DECISION}`,
    ],
  ])('%s: nothing is guessed', (_name, content) => {
    const result = readContent(content);
    expect(result).toMatchObject({ kind: 'unusable', calls: [] });
    expect(result.unusable).toBe('There were two final outputs at once. No tool was called.');
    expect(`${result.shown}${result.final}`).toBe(content);
  });

  test.each([
    ['between prose on its line', `So ${OTHER} it is.`],
    ['in braces that were opened before its line', `The plan: {"plan":\n${OTHER}}`],
    ['in an object that was cut', `The plan: {"plan":\n${OTHER}`],
  ])('%s it does not count, and the model is told', (_name, content) => {
    const result = readContent(content);
    expect(result).toMatchObject({ kind: 'unusable', calls: [] });
    expect(result.unusable).toContain('give it alone, on a line of its own. No tool was called.');
    expect(`${result.shown}${result.final}`).toBe(content);
  });

  test('the same by the tool too is one: the tool says with which confidence', () => {
    const final = '{"decision":1,"confidence":0.5}';
    const expected = { kind: 'final', calls: [], final };
    expect(read({ calls: [decides], text: DECISION })).toEqual(expected);
    for (const said of [`So: ${final}`, 'So: {"decision":1}', `Not ${OTHER}, of course.`])
      expect(read({ calls: [decides], said })).toEqual(expected);
    expect(read({ calls: [decides], text: '{"decision":1,"confidence":1}' })).toEqual(expected);
  });

  test.each([
    ['a plan', `If it is there, I say ${DECISION}.`],
    ['plans', `I say ${DECISION} or ${OTHER}.`],
    ['a record', 'The case is {"case":7,"decision":"open"}.'],
    ['what a thought says that the template opened', `Then ${DECISION}\n</think>\n`],
  ])('beside calls of tools %s in a sentence is none', (_name, content) => {
    expect(readContent(content, [reads])).toMatchObject({
      kind: 'calls',
      calls: [{ toolId: TOOL.toolId }],
    });
  });
});

test.each([
  ['ends of thoughts', '</think>'.repeat(25_000)],
  ['thoughts', '<think></think>'.repeat(13_000)],
  ['thoughts in prose', 'a<think>b</think>'.repeat(12_000)],
  ['begins of lines', '\n``'.repeat(60_000)],
])('[I54] a piece of %s is split in a fixed number of passes', (_name, text) => {
  const splitter = new OutputSplitter(() => {});
  const cost = scanCost(() => splitter.push(text));
  expect(cost).toBeLessThan(60 * text.length);
});

describe('a call that is written as text', () => {
  const call = `{"name":"${NAME}","arguments":{"id":"A"}}`;
  test.each([
    ['of tags', `<tool_call>${call}</tool_call>`],
    ['of tags, on lines', `I read.\n<tool_call>\n${call}\n</tool_call>`],
    ['of a function', `<function=${NAME}>{"id":"A"}</function>`],
    [
      'of the decision',
      `<tool_call>{"name":"${DECISION_TOOL}","arguments":${DECISION}}</tool_call>`,
    ],
    ['whose arguments look like a decision', `<function=${NAME}>${DECISION}</function>`],
    ['of a list', `[TOOL_CALLS][${call}]`],
    ['beside a decision', `<tool_call>${call}</tool_call>\n${DECISION}`],
  ])('%s is not performed, and the model is told', (_name, content) => {
    const result = readContent(content);
    expect(result).toMatchObject({ kind: 'unusable', calls: [] });
    expect(result.unusable).toBe('A call of a tool was written as text. No tool was called.');
    expect(`${result.shown}${result.final}`).toBe(content);
  });

  test('beside calls it is text', () => {
    const result = read({ calls: [reads], said: `<tool_call>${call}</tool_call>` });
    expect(result).toMatchObject({ kind: 'calls', calls: [{ arguments: { id: 'A' } }] });
  });

  test('a decision may speak of one', () => {
    const text = '{"decision":"It wrote <tool_call>."}';
    expect(read({ text })).toEqual({ kind: 'final', calls: [], final: text });
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
