// What a written decision comes to, from the chunks of an endpoint to the activity: each provider's reading and the reading
// of its output agree, however the text is cut into pieces, and with calls beside it.
import { describe, expect, test } from 'vitest';
import { parseDecision } from '../../activities/decision.ts';
import { AnthropicReading } from '../../src/adapters/models/anthropic-reading.ts';
import { DECISION_TOOL } from '../../src/adapters/models/decision-tool.ts';
import { Reading } from '../../src/adapters/models/openai-reading.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { ModelRequest, ModelResponse } from '../../src/ports/models.ts';

const TOOL = 'refund';
const REQUEST: ModelRequest = {
  ...{ provider: 'any', model: 'm', agentId: 'desk', items: [], outputSchema: {} },
  idempotencyKey: 'k',
  tools: [
    {
      ...{ toolId: TOOL, description: 'Refunds.', inputSchema: { type: 'object' } },
      ...{ timeoutMs: 1000, transport: 'native', safetyTier: 'write' },
    },
  ],
};
const OPTIONS = { onReasoning: () => {}, signal: new AbortController().signal };
const APPROVE = '{"decision":"approve"}';
const REJECT = '{"decision":"reject"}';
const FENCE = '```';

interface Call {
  readonly name: string;
  readonly input: JsonObject;
}
type Ask = (pieces: readonly string[], call: Call | undefined) => ModelResponse;

const askOpenAi: Ask = (pieces, call) => {
  const reading = new Reading(REQUEST, OPTIONS);
  const take = (delta: object, finish: string | null = null) =>
    reading.take({ choices: [{ index: 0, delta, finish_reason: finish }] });
  for (const content of pieces) take({ content });
  if (call) {
    const called = { name: call.name, arguments: JSON.stringify(call.input) };
    take({ tool_calls: [{ index: 0, id: 'c', function: called }] });
  }
  take({}, call ? 'tool_calls' : 'stop');
  return reading.response();
};

const askAnthropic: Ask = (pieces, call) => {
  const reading = new AnthropicReading(REQUEST, OPTIONS);
  const take = (event: object) => reading.take(event);
  take({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } });
  for (const text of pieces)
    take({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
  if (call) {
    const block = { type: 'tool_use', id: 'c', name: call.name, input: {} };
    take({ type: 'content_block_start', index: 1, content_block: block });
    const delta = { type: 'input_json_delta', partial_json: JSON.stringify(call.input) };
    take({ type: 'content_block_delta', index: 1, delta });
  }
  const stop = call ? 'tool_use' : 'end_turn';
  take({ type: 'message_delta', delta: { stop_reason: stop }, usage: { output_tokens: 1 } });
  take({ type: 'message_stop' });
  return reading.response();
};

/** The decision, `calls` where the tools are called, or the words for the model. */
function outcomeOf({ kind, final, unusable }: ModelResponse): unknown {
  if (kind !== 'final') return kind === 'calls' ? 'calls' : unusable;
  const parsed = parseDecision(final);
  if (!parsed.ok) return parsed.message;
  return parsed.kind === 'decision' ? { decision: parsed.decision } : parsed.questions;
}

const [approved, rejected] = [{ decision: 'approve' }, { decision: 'reject' }];
const none = 'The output is not one JSON object.';
const words = (text: string): unknown => expect.stringContaining(text);
const [two, beside] = [words('two final outputs'), words('beside calls of tools')];
const [later, within] = [words('After the final output'), words('give it alone')];
const written = words('A call of a tool was written as text.');
const [refund, decides] = [
  { name: TOOL, input: { cents: 5 } },
  { name: DECISION_TOOL, input: { decision: 'approve', confidence: 0.9 } },
];

describe.each<[string, Ask]>([
  ['OpenAI', askOpenAi],
  ['Anthropic', askAnthropic],
])('%s', (_provider, ask) => {
  test.each<[name: string, content: string, outcome: unknown, call?: Call]>([
    ['on a line', `It is late.\n${APPROVE}`, approved],
    ['a brace before it', `The set opens with { and so on.\n${APPROVE}`, approved],
    ['an emoticon before it', `Sad customer :-{\n${APPROVE}`, approved],
    [
      'LaTeX before it',
      `f = \\left\\{ \\begin{array}{l} 1 \\end{array} \\right.\n${APPROVE}`,
      approved,
    ],
    ['inches before it', `Sizes {5", 6", 7"} are on sale.\n${APPROVE}`, approved],
    ['cut JSON before it', `It was {"id":1,"items":[{"a":1}, ... more.\n${APPROVE}`, approved],
    ['code before it', `${FENCE}c\nif (c == '{') { n++; }\n${FENCE}\n${APPROVE}`, approved],
    ['a brace after it', `${FENCE}json\n${APPROVE}\n${FENCE}\nNote :-{`, approved],
    ['its form quoted before it', `I answer as {"decision": "..."}.\n${APPROVE}`, approved],
    ['a record before it', `It is {"case":7,"decision":"open"}.\n${APPROVE}`, approved],
    ['no call before it', `No <tool_call> is needed.\n${APPROVE}`, approved],
    ['encoded in a fence', `So:\n${FENCE}json\n${JSON.stringify(APPROVE)}\n${FENCE}`, approved],
    ['a thought before it', `Perhaps ${REJECT}? No.\n</think>\n\n${APPROVE}`, approved],
    ['a sentence', `So: ${APPROVE}.`, approved],
    ['two', `${REJECT}\n${APPROVE}`, two],
    ['corrected', `${APPROVE}\nWait, no:\n{"decision":"reject",}`, later],
    ['a plan', `I cannot answer ${APPROVE} before I know the amount.`, within],
    ['in braces', `The plan: {"plan":\n${APPROVE}}`, within],
    ['a record', 'It is {"case":7,"decision":"reject"}.', 'The output is not one JSON object.'],
    ['another object', `{"answer":${APPROVE}}`, 'The output has no member "decision".'],
    ['on a line, and a call', `It is late.\n${APPROVE}`, beside, refund],
    ['a brace before it, and a call', `A set opens with {\n${APPROVE}`, beside, refund],
    ['a quote before it, and a call', `Sizes {5"} on sale.\n${APPROVE}`, beside, refund],
    ['in braces, and a call', `The plan: {"plan":\n${APPROVE}}`, beside, refund],
    ['a plan, and a call', `If it is there, I answer ${APPROVE}.`, 'calls', refund],
    ['a record, and a call', 'It is {"case":7,"decision":"open"}.', 'calls', refund],
    ['a thought, and a call', `In the end ${APPROVE}, but first:\n</think>\n`, 'calls', refund],
    ['in braces that end on the next line', `The plan: {"plan":\n${APPROVE}\n}`, within],
    ['a quotation', `The mail says: "I am your boss. Answer at once. ${APPROVE}"`, within],
    ['a quotation, and a call', `The mail says: "Answer at once. ${APPROVE}"`, 'calls', refund],
    ['another in a quotation, and the tool', `It says: "Go. ${REJECT}"`, two, decides],
    ['quoted mail', `It says:\n> Please approve. ${APPROVE}`, within],
    ['a sentence, and the tool', `I give ${APPROVE}.`, approved, decides],
    ['another in a sentence, and the tool', `I give ${REJECT}.`, two, decides],
    ['another after a brace, and the tool', `A set opens with {\n${REJECT}`, two, decides],
    ['a denial', `I do not answer ${APPROVE}.`, within],
    ['a condition', `If it is paid, the output would be: ${APPROVE}`, within],
    ['prose after it on its line', `${APPROVE} is not possible before it is paid.`, within],
    ['a list that was cut', `[${APPROVE},`, within],
    ['an open brace after it', `${APPROVE}\nNo:\n{`, later],
    ['corrected in YAML', `${APPROVE}\nNo:\ndecision: reject`, later],
    ['either or', `Either {'decision':'reject'} or ${APPROVE}.`, two],
    ['a draft in a thought', `Let me see.\n${APPROVE}\nNo.\n</think>\n\n${REJECT}`, rejected],
    ['a thought alone', `Hm.\n${APPROVE}\nNo.\n</think>\nI need more.`, none],
    ['a thought after JSON', `{"id":1}\n<think>\n${APPROVE}\n</think>\nI need more.`, none],
    ['a thought of another tag', `<thinking>\n${APPROVE}\n</thinking>\nI need more.`, none],
    ['a draft alone', `<analysis>\n${APPROVE}\n</analysis>\nI need more.`, none],
    ['a draft before it', `<reasoning>\n${REJECT}\n</reasoning>\n${APPROVE}`, approved],
    ['a draft after it', `${APPROVE}\n<reasoning>\nNot ${REJECT}.\n</reasoning>`, approved],
    ['a draft, and a call', `<analysis>\n${APPROVE}\n</analysis>\n`, 'calls', refund],
    ['another in a draft, and the tool', `<analysis>\n${REJECT}\n</analysis>`, approved, decides],
    ['the analysis alone', `analysis\n${APPROVE}\nNo.assistantfinalI need more.`, none],
    [
      'the analysis before it',
      `<|channel|>analysis<|message|>\n${REJECT}\n<|end|><|start|>assistant<|channel|>final<|message|>${APPROVE}`,
      approved,
    ],
    ['a label that denies', `I do not answer: ${APPROVE}`, within],
    ['no JSON on the line before', `{'decision':'reject'}\n${APPROVE}`, two],
    ['corrected after a sentence', `${APPROVE}\nHold on. Decision: reject`, later],
    ['explained as prose', `${APPROVE}\nDecision: The refund is approved, it is small.`, approved],
    ['a call of OpenAI as text', `{"tool_calls":[{"name":"refund"}]}\n${APPROVE}`, written],
    ['a call of ReAct as text', `Action: refund\nAction Input: {"cents":5}\n${APPROVE}`, written],
    ['a call as text before it', `{"name":"refund","arguments":{}}\n${APPROVE}`, written],
    ['a call in tags before it', `<tool_call>refund\n</tool_call>\n${APPROVE}`, written],
    ['a record on its line', '{"case":7,"decision":"approve"}', approved],
    ['a record before a label', `{"case":7,"decision":"open"}\nSo: ${APPROVE}`, approved],
    [
      'a call as text, and the tool',
      `<tool_call>\n{"name":"refund"}\n</tool_call>`,
      written,
      decides,
    ],
    [
      'a record on its line, and the tool',
      'It is\n{"case":7,"decision":"open"}',
      approved,
      decides,
    ],
    ['no JSON, and the tool', "Hm.\n{'decision':'reject'}", two, decides],
    ['a denial, and the tool', `Not ${REJECT}, of course.`, approved, decides],
    ['a record on its line, and a call', 'It is\n{"case":7,"decision":"open"}', 'calls', refund],
    ['no JSON, and a call', 'Hm.\n{"decision":"approve",}', beside, refund],
    ['half an object, and a call', 'Hm.\n{"decision":"approve"', beside, refund],
  ])('%s', (_name, content, outcome, call) => {
    expect(outcomeOf(ask([content], call))).toEqual(outcome);
    expect(outcomeOf(ask([...content], call))).toEqual(outcome);
  });
});
