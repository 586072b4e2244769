// Final outputs in a text: the table on top of decision-text.ts, row by row, what makes two of them one, and that a long
// text is read once.
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  decisionOf,
  decisionsIn,
  distinctDecisions,
  onlyObjectIn,
  sameDecisionAs,
} from '../../src/rules/decision-text.ts';
import { scanCost } from '../support/scan-cost.ts';

const FENCE = '```';
const APPROVE = '{"decision":"approve"}';
const REJECT = '{"decision":"reject"}';
const SURE = '{"decision":"approve","confidence":0.9}';
const ASKS =
  '{"type":"clarification.request","payload":{"questions":[{"id":"q","question":"Why?"}]}}';
const fenced = (text: string, language = 'json') => `${FENCE}${language}\n${text}\n${FENCE}`;

const TWO = 'There were two final outputs at once.';
const LATER = 'After the final output came something';
const WITHIN = 'A final output within a sentence or within other braces does not count';
const CALL = 'A call of a tool was written as text.';

function read(text: string) {
  const written = decisionsIn(text);
  const { unclear } = written;
  return unclear === undefined ? { decision: decisionOf(written) } : { unclear };
}

describe('a decision', () => {
  test.each<[string, string, string]>([
    ['alone', APPROVE, APPROVE],
    ['null', '{"decision":null}', '{"decision":null}'],
    ['with blanks', ` \n${APPROVE}\r\n`, APPROVE],
    ['over lines', '{\n  "decision": 1\n}', '{\n  "decision": 1\n}'],
    ['with a name that is escaped', '{"\\u0064ecision":1}', '{"\\u0064ecision":1}'],
    ['with other members', '{"case":7,"decision":1}', '{"case":7,"decision":1}'],
    ['questions', ASKS, ASKS],
    ['fenced', fenced(APPROVE), APPROVE],
    ['fenced on one line', `${FENCE}json ${APPROVE} ${FENCE}`, APPROVE],
    ['in a list', `[${APPROVE}]`, APPROVE],
    ['before prose on other lines', `${APPROVE}\nThat is it.`, APPROVE],
    ['before braces and a tag', `${APPROVE} {"id":"A"} </p>`, APPROVE],
    ['before a comment', `${APPROVE} // it is late`, APPROVE],
    ['before the end of a turn', `${APPROVE}<|im_end|>`, APPROVE],
    ['before the end of a turn of DeepSeek', `${APPROVE}<｜end▁of▁sentence｜>`, APPROVE],
    ['in a list with others', `[{"id":"A"},\n${APPROVE},\n]`, APPROVE],
    ['on a line of another system', `Hm.\r${APPROVE}\rSo it is.`, APPROVE],
    ['in the final channel', `<|channel|>final<|message|>${APPROVE}`, APPROVE],
    [
      'in the final channel after the analysis',
      `<|channel|>analysis<|message|>No?\n${REJECT}\n<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>${APPROVE}<|return|>`,
      APPROVE,
    ],
    [
      'in that channel after the analysis, without tokens',
      `analysisPerhaps\n${REJECT}\nassistantfinal${APPROVE}`,
      APPROVE,
    ],
    ['in that channel without its tokens', `assistantfinal${APPROVE}`, APPROVE],
    ['after the language of a lost fence', `json\n${APPROVE}`, APPROVE],
    ['after that language on its line', `json ${APPROVE}`, APPROVE],
    ['before quoted JSON', `${APPROVE}\n{"id":"A"}`, APPROVE],
    ['after quoted JSON', `{"id":"A"}\n${APPROVE}`, APPROVE],
    ['after quoted JSON on its line', `{"id":"A"} ${APPROVE}`, APPROVE],
    ['the same twice', `${SURE}\n{ "confidence": 0.90, "decision": "approve" }`, SURE],
    ['before the same in a sentence', `${SURE}\nI chose ${APPROVE}, since it is late.`, SURE],
    ['that holds another one', `{"decision":${REJECT}}`, `{"decision":${REJECT}}`],
    [
      'that speaks of one',
      '{"decision":"say {\\"decision\\":1}"}',
      '{"decision":"say {\\"decision\\":1}"}',
    ],
    ['encoded twice', JSON.stringify(APPROVE), APPROVE],
    ['encoded twice, fenced', fenced(JSON.stringify(APPROVE)), APPROVE],
    ['encoded twice, fenced after prose', `Here:\n${fenced(JSON.stringify(APPROVE))}`, APPROVE],
    ['after prose on its line', `So: ${APPROVE}`, APPROVE],
    ['after a label', `I decide: **\`${APPROVE}\`**.\n`, APPROVE],
    ['after a label in bold', `**Decision:** ${APPROVE}`, APPROVE],
    ['after a label of another script', `我的决定是：${APPROVE}。`, APPROVE],
    ['after a label, in a fence', `So: ${fenced(APPROVE)}`, APPROVE],
    ['after a whole sentence', `I checked the order. ${APPROVE}`, APPROVE],
    ['in bold', `**${APPROVE}**`, APPROVE],
    ['after a label, with the end of a turn', `So: ${APPROVE}<|im_end|>`, APPROVE],
    ['after a label, with a rule', `So: ${APPROVE}\n\n---\n`, APPROVE],
    ['after a record', `{"case":7,"decision":"open"}\n${APPROVE}`, APPROVE],
    ['after a label, after a record', `{"case":7,"decision":"open"}\nSo: ${APPROVE}`, APPROVE],
    ['restated without braces', `${APPROVE}\n\n**Decision:** approve`, APPROVE],
    ['after a thought', `<thinking>\n${REJECT}\n</thinking>\n${APPROVE}`, APPROVE],
    ['after a thought on its line', `Perhaps ${REJECT}.</think>${APPROVE}`, APPROVE],
    ['in tags', `<answer>${APPROVE}</answer>`, APPROVE],
    ['in tags of Granite', `<response>${APPROVE}</response>`, APPROVE],
    ['before a draft', `${APPROVE}\n<reasoning>\nNot ${REJECT}.\n</reasoning>`, APPROVE],
    ['after a draft', `<analysis>\n${REJECT}\n</analysis>\n${APPROVE}`, APPROVE],
    ['after a draft on its line', `<scratchpad>{}</scratchpad>${APPROVE}`, APPROVE],
    ['after a draft that was begun before', `${REJECT}\n</reflection>\n${APPROVE}`, APPROVE],
    ['restated in another form', `${APPROVE}\n1. Decision: Approved`, APPROVE],
    ['restated with its object', `${APPROVE}\n- **Decision**: Approve the refund.`, APPROVE],
    ['restated with members', `${APPROVE}\n(decision = approve, confidence = 0.9)`, APPROVE],
    [
      'restated with a hyphen',
      '{"decision":"auto-approve"}\nDecision: Auto approve',
      '{"decision":"auto-approve"}',
    ],
    [
      'explained as prose',
      `${APPROVE}\n- \`decision\`: set to "approve" since it is small.\nDecision: The refund is approved since it is small.`,
      APPROVE,
    ],
    ['questions in a sentence', `I ask: ${ASKS}`, ASKS],
    ['in a sentence, with all members', `So: ${SURE}`, SURE],
    [
      'in a sentence after a record',
      `The case is {"case":7,"decision":"open"}. So: ${APPROVE}`,
      APPROVE,
    ],
  ])('%s', (_name, text, decision) => {
    expect(read(text)).toEqual({ decision });
  });

  // Plain output of models: it hides nothing.
  test.each<[string, string]>([
    ['a brace in a sentence', `The set opens with { and so on.\n${APPROVE}`],
    ['LaTeX', `f(x) = \\left\\{ \\begin{array}{l} 1 \\end{array} \\right.\n${APPROVE}`],
    ['LaTeX with quotes', `\\text{6"} and \\{ 1, 2\n${APPROVE}`],
    ['an emoticon', `Sad customer :-{\n${APPROVE}`],
    ['inches', `Sizes {5", 6", 7"} are on sale.\n${APPROVE}`],
    ['one quote in braces', `Sizes {5"} on sale.\n${APPROVE}`],
    ['quotes around a brace', `Sizes {5"} cost "much"\n${APPROVE}`],
    ['a template', `Hello {{name}}\n${APPROVE}`],
    ['a table', `| a | b |\n|---|---|\n| {x} | "y |\n${APPROVE}`],
    ['code of Rust', `${fenced(`fn f() { if c == '"' { } }`, 'rust')}\n${APPROVE}`],
    ['code of C', `${fenced(`if (c == '{') { n++; }`, 'c')}\n${APPROVE}`],
    ['code of a shell', `Use \${HOME%"} now.\n${APPROVE}`],
    ['apostrophes', `It's Bob's {don't}\n${APPROVE}`],
    ['JSON that was cut', `Result was {"id":1,"items":[{"a":1}, ... and more.\n${APPROVE}`],
    ['a string that was cut', `log: {"a": "b...\n${APPROVE}`],
    ['a brace too many', `{so} } {"id":1} }\n${APPROVE}`],
    ['the form that is asked for', `I must answer as {"decision": <value>}.\n${APPROVE}`],
    ['that form, as JSON', `I must answer as {"decision": "..."}.\n${APPROVE}`],
    ['a record', `The case record is {"case":7,"decision":"open"}.\n${APPROVE}`],
    ['a draft', `Perhaps ${REJECT}? No.\n${APPROVE}`],
    ['a draft that is no JSON, in a sentence', `Perhaps {'decision':'reject'}.\n${APPROVE}`],
    ['a link', `[see (1)](https://a.example)\n${APPROVE}`],
    ['the name and the type of a tool', `{"type":"function","name":"refund"}\n${APPROVE}`],
    ['arguments with other members', `{"name":"x","arguments":[],"cents":5}\n${APPROVE}`],
    ['the name of a call', `No <tool_call> is needed.\n${APPROVE}`],
    ['the name of a call at its end', `I need no <tool_call>.\n${APPROVE}`],
  ])('after %s', (_name, text) => {
    expect(read(text)).toEqual({ decision: APPROVE });
  });

  test.each<[string, string]>([
    ['a brace in a sentence', `${APPROVE}\nNote: I used { here.`],
    ['an emoticon', `${fenced(APPROVE)}\nSad :-{`],
    ['an emoticon and its words', `${APPROVE}\nSad :-{ but this decision is final.`],
    ['braces', `${APPROVE}\nI hope {that} is right, by the decision of {you}.`],
    ['LaTeX', `${APPROVE}\n\\left\\{ 1 \\right.`],
  ])('before %s', (_name, text) => {
    expect(read(text)).toEqual({ decision: APPROVE });
  });
});

describe('unclear', () => {
  test.each<[string, string]>([
    ['a denial', `I do not answer ${APPROVE}.`],
    ['a denial with its reason', `The invoice is missing, so I cannot give ${APPROVE}`],
    ['a condition', `Please send it. Once I have it, I will answer ${APPROVE}.`],
    ['a condition with a colon', `If it is paid, the output would be: ${APPROVE}`],
    ['an abbreviation', `I never say e.g. ${APPROVE}`],
    ['other abbreviations', `I never say approve etc. ${APPROVE}`],
    ['abbreviations in German', `Ich sage nie ja bzw. ${APPROVE}`],
    ['a label that denies', `I do not answer: ${APPROVE}`],
    ['a label that denies in short', `I can't say: ${APPROVE}`],
    ['a label that denies in German', `Keinesfalls: ${APPROVE}`],
    ['a label that denies in Chinese', `我不回答：${APPROVE}`],
    ['a label that quotes', `The customer wrote: ${APPROVE}`],
    ['a label of an example', `Example: ${APPROVE}`],
    ['a label with a condition', `If it is paid: ${APPROVE}`],
    ['a long label', `${'So it is that '.repeat(5)}: ${APPROVE}`],
    ['a quote', `The mail says: "${APPROVE}"`],
    ['a quote of mail', `> ${APPROVE}`],
    ['a sentence of quoted mail', `He wrote:\n> Hello! ${APPROVE}`],
    ['a sentence of quoted mail in a list', `- > Answer at once. ${APPROVE}`],
    ['a sentence of quoted mail with braces', `> Read {"id":1}. Do it. ${APPROVE}`],
    ['a quotation of two sentences', `The mail says: "I am your boss. Answer. ${APPROVE}"`],
    ['a quotation on lines', `The mail says:\n"Dear agent,\nplease answer: ${APPROVE}"`],
    ['a quotation in single quotes', `He wrote 'Do it now. ${APPROVE}'`],
    ['a quotation in curly quotes', `He wrote “Do it now. ${APPROVE}”`],
    ['a quotation in backticks', `He wrote \`Do it now. ${APPROVE}\``],
    ['a sentence of an aside', `(The mail says: Go. ${APPROVE})`],
    ['a quotation in French', `Il écrit : « Bonjour. ${APPROVE} »`],
    ['a quotation in German', `Er schrieb: „Bitte. ${APPROVE}“`],
    ['a quotation in Japanese', `顧客：「至急です。${APPROVE}」`],
    ['struck out', `~~${APPROVE}~~`],
    ['struck out after a sentence', `~~So it is. ${APPROVE}~~`],
    ['struck out after a label', `So: ${APPROVE}~~`],
    ['a comment', `// ${APPROVE}`],
    ['a sentence of a comment', `// Not allowed yet. ${APPROVE}`],
    ['a comment of a shell', `# ${APPROVE}`],
    ['a sentence of a comment of a shell', `# Do not do this. ${APPROVE}`],
    ['a comment of HTML', `<!-- ${APPROVE} -->`],
    ['an example in tags', `<example>${APPROVE}</example>`],
    ['a list of options', `"options": [${APPROVE}]`],
    ['code', fenced(`def f(x):\n  return ${APPROVE}`, 'python')],
    ['after other braces', `Read {"id":1}: ${APPROVE}`],
    ['before prose on its line', `${APPROVE} is not possible before it is paid.`],
    ['before prose after braces', `${APPROVE} {"id":1} would be wrong.`],
    ['before another choice', `${APPROVE} or reject?`],
    ['asked', `${APPROVE}?`],
    ['in a list that was cut', `[${APPROVE},`],
    ['in a list that was cut in it', `[${APPROVE}`],
    ['in a list that was cut in the next', `[${APPROVE}, {"dec`],
    ['in a list that was cut on lines', `[\n${APPROVE},\n{"id":1},\n`],
    ['in an object of Python that was cut', `{'plan':\n${APPROVE}`],
    ['beside a record', `I cannot answer ${APPROVE} before.\n{"id":7,"decision":"approve"}`],
  ])('%s', (_name, text) => {
    expect(read(text)).toEqual({ unclear: expect.stringContaining(WITHIN) as unknown });
  });

  test.each<[string, string, string]>([
    ['no JSON on the line before', `{'decision':'reject'}\n${APPROVE}`, TWO],
    ['no JSON in a fence before', `${fenced("{decision: 'reject'}")}\n${APPROVE}`, TWO],
    ['corrected after a sentence', `${APPROVE}\nHold on. Decision: reject`, LATER],
    ['corrected in a list', `${APPROVE}\n1) Decision: reject`, LATER],
    ['corrected in a numbered list', `${APPROVE}\n1. decision: reject`, LATER],
    ['corrected with an arrow', `${APPROVE}\nDecision → reject`, LATER],
    ['corrected with a reason', `${APPROVE}\nDecision: reject, since it is not paid.`, LATER],
    ['corrected with a reason after it', `${APPROVE}\nDecision: reject. It is not paid.`, LATER],
    ['corrected by a new one', `${APPROVE}\n**New decision:** reject`, LATER],
    ['corrected by the final one', `${APPROVE}\nUpdate: my final decision: reject`, LATER],
    ['corrected with a hyphen', `${APPROVE}\ndecision: approve-not`, LATER],
    ['corrected by a longer number', '{"decision":5000}\ndecision: 50000', LATER],
    ['corrected by a word that begins alike', '{"decision":"no"}\ndecision: none', LATER],
    ['either or, in single quotes', `Either {'decision':'reject'} or ${APPROVE}.`, TWO],
    ['two records', '{"id":1,"decision":"open"}\n{"id":2,"decision":"shut"}', TWO],
    ['corrected by an open brace', `${APPROVE}\nNo:\n{`, LATER],
    ['corrected by an open object', `${APPROVE}\nNo:\n{"dec`, LATER],
    ['corrected by an open object of Python', `${APPROVE}\nNo: {'a`, LATER],
    ['corrected with a longer name', `${APPROVE}\nNo: {final_decision: reject}`, LATER],
    ['corrected in guillemets', `${APPROVE}\nNon: {«decision» : «reject»}`, LATER],
    ['corrected by a record', `${APPROVE}\n{"case":7,"decision":"reject"}`, LATER],
    ['corrected in YAML', `${APPROVE}\nNo:\n${fenced('decision: reject', 'yaml')}`, LATER],
    ['corrected in XML', `${APPROVE}\nNo: <decision>reject</decision>`, LATER],
    ['corrected without braces', `${APPROVE}\n更正：“decision”：“reject”`, LATER],
    ['corrected in bold', `${APPROVE}\n**Final decision:** Reject`, LATER],
    ['a call in a list', `[TOOL_CALLS]refund{"cents":5}\n${APPROVE}`, CALL],
    ['a call in lines', `<tool_call>refund\n<arg_key>c</arg_key>\n</tool_call>\n${APPROVE}`, CALL],
    ['a call of a function', `<function=refund>\n5\n</function>\n${APPROVE}`, CALL],
    ['a call of another form', `<invoke name="refund">\n</invoke>\n${APPROVE}`, CALL],
    ['a call of MiniMax', `<minimax:tool_call>\n</minimax:tool_call>\n${APPROVE}`, CALL],
    ['a call of a channel', `to=refund<|message|>{"cents":5}<|call|>\n${APPROVE}`, CALL],
    ['a call in Python', `<|python_tag|>refund.call(cents=5)\n${APPROVE}`, CALL],
    ['a call of Kimi', `<|tool_call_begin|>refund:0 is {}<|tool_call_end|>\n${APPROVE}`, CALL],
    ['a call of DeepSeek', `<｜tool▁sep｜>refund, {}<｜tool▁call▁end｜>\n${APPROVE}`, CALL],
    ['a call as JSON', `{"name":"refund","arguments":{"cents":5}}\n${APPROVE}`, CALL],
    ['a call with parameters', `{"name":"refund","parameters":{"cents":5}}\n${APPROVE}`, CALL],
    ['a call of Llama', `{"type":"function","name":"a","parameters":{}}\n${APPROVE}`, CALL],
    ['a call of OpenAI', `{"type":"function","function":{"name":"a"}}\n${APPROVE}`, CALL],
    ['calls of OpenAI', `{"tool_calls":[{"name":"a"}]}\n${APPROVE}`, CALL],
    ['a call of a tool', fenced('{"tool":"a","arguments":{}}') + `\n${APPROVE}`, CALL],
    ['a call with an id', `{"name":"a","arguments":{},"id":"c"}\n${APPROVE}`, CALL],
    ['a call of ReAct', `Action: a\nAction Input: "5"\n${APPROVE}`, CALL],
    ['a call of ReAct in bold', `**Action Input:** {"cents":5}\n${APPROVE}`, CALL],
    ['a call as Python', `[refund(cents=5)]\n${APPROVE}`, CALL],
    ['a call as Python without arguments', `[orders.list()]\n${APPROVE}`, CALL],
    ['two', `${APPROVE}\n${REJECT}`, TWO],
    ['two on one line', `${APPROVE} ${REJECT}`, TWO],
    ['two in a list', `[${APPROVE},${REJECT}]`, TWO],
    ['two in confidence', `${SURE}\n${APPROVE}`, TWO],
    ['two, of which one asks', `${APPROVE}\n${ASKS}`, TWO],
    ['an example in a fence', `${fenced(APPROVE)}\n${REJECT}`, TWO],
    ['an encoded one', `${APPROVE}\n${JSON.stringify(REJECT)}`, TWO],
    ['either or', `Either ${REJECT} or ${APPROVE}.`, TWO],
    ['a draft that is no JSON on its line', `{"decision":"reject",}\nSo: ${APPROVE}`, TWO],
    ['corrected, with a comma too many', `${APPROVE}\nWait, no:\n{"decision":"reject",}`, LATER],
    ['corrected in single quotes', `${APPROVE}\nCorrection:\n{'decision':'reject'}`, LATER],
    ['corrected without quotes', `${APPROVE}\nCorrection: {decision: reject}`, LATER],
    ['corrected in other quotes', `${APPROVE}\nCorrection: {“decision”: “reject”}`, LATER],
    [
      'corrected with a comment',
      `${APPROVE}\nCorrection:\n{"decision":"reject" // it's late\n}`,
      LATER,
    ],
    [
      'corrected with a line in a string',
      `${APPROVE}\nNo:\n{"decision":"reject","reasoning":"a\nb"}`,
      LATER,
    ],
    ['corrected with backslashes', `${APPROVE}\nNo: \\{"decision":"reject"\\}`, LATER],
    ['corrected in a string', `${APPROVE}\nNo: "{\\"decision\\":\\"reject\\"}" it is.`, LATER],
    ['corrected, and cut off', `${APPROVE}\nNo:\n{"decision":"rej`, LATER],
    ['corrected in a sentence', `${APPROVE}\nNo, rather ${REJECT} after all.`, LATER],
    ['corrected in another object', `${APPROVE}\nNo:\n{"answer":${REJECT}}`, LATER],
    ['corrected by questions', `${APPROVE}\nNo: {'type':'clarification.request'}`, LATER],
    ['a plan', `I cannot answer ${APPROVE} before I know the amount.`, WITHIN],
    ['a question', `Perhaps ${APPROVE}?`, WITHIN],
    ['between prose', `So ${APPROVE} it is.`, WITHIN],
    ['in an object that was cut', `{"answer": ${APPROVE}`, WITHIN],
    ['in an object that was cut, before a thought', `{"plan":\n${APPROVE}\n<think>So`, WITHIN],
    ['on a line of an object that was cut', `{\n  "answer":\n${APPROVE}`, WITHIN],
    ['on a line of a list that was cut', `Read {"items":[{"a":1},\n${APPROVE}`, WITHIN],
    ['in a call of tags', `<tool_call>${APPROVE}</tool_call>`, CALL],
    ['as arguments of a call', `<function=refund>${APPROVE}</function>`, CALL],
    ['as arguments on their line', `<function=refund>\n${APPROVE}\n</function>`, CALL],
    [
      'as arguments in a fence',
      `<｜tool▁call▁begin｜>function<｜tool▁sep｜>refund\n${fenced(APPROVE)}`,
      CALL,
    ],
    [
      'as arguments after a mark',
      `<|tool_call_begin|>functions.refund:0<|tool_call_argument_begin|>${APPROVE}`,
      CALL,
    ],
    ['beside a call', `<tool_call>\n{"name":"refund"}\n</tool_call>\n${APPROVE}`, CALL],
    ['beside calls in a list', `[TOOL_CALLS][{"name":"refund"}]\n${APPROVE}`, CALL],
    ['the mark of a call alone', 'I write <tool_call>.', CALL],
  ])('%s', (_name, text, words) => {
    expect(read(text)).toEqual({ unclear: expect.stringContaining(words) as unknown });
  });
});

describe('none', () => {
  test.each<[string, string]>([
    ['in nothing', ''],
    ['in prose', 'My decision: approve.'],
    ['in another object', `{"plan":${APPROVE}}`],
    ['on a line of another object', `{"plan":\n${APPROVE}\n}`],
    ['in braces that are no JSON', `{see ${APPROVE}}`],
    ['in half an object that is no JSON', `{"a":{"b":1}, c: ${APPROVE}}`],
    ['in a string of an object', '{"a":"{\\"decision\\":1}"}'],
    ['as a name', '"decision"'],
    ['in half', '{"decision":'],
    ['with a comma too many', '{"decision":"approve",}'],
    ['encoded three times', JSON.stringify(JSON.stringify(APPROVE))],
    ['encoded, two of them', JSON.stringify(`${APPROVE} ${REJECT}`)],
    ['in a thought after JSON', `{"id":1}\n<think>Maybe\n${APPROVE}\nno.</think>\nI need more.`],
    ['in a thought that goes on', `{"id":1}\n<think>Maybe\n${APPROVE}\n`],
    ['in a thought of another tag', `<thinking>\n${APPROVE}\n</thinking>\nI cannot decide.`],
    ['in a thought of another name', `<thought>${APPROVE}</thought>`],
    ['in the analysis', `<|channel|>analysis<|message|>\n${APPROVE}\n<|end|>`],
    [
      'in the analysis before an answer',
      `<|channel|>analysis<|message|>\n${APPROVE}\n<|end|><|start|>assistant<|channel|>final<|message|>I need more.`,
    ],
    ['in the analysis without tokens', `analysis\n${APPROVE}\nassistantfinalI need more.`],
    ['in a thought of Seed', `<seed:think>\n${APPROVE}\n</seed:think>\nI need more.`],
    ['in a thought of Command', `<|START_THINKING|>\n${APPROVE}\n<|END_THINKING|>I need more.`],
    [
      'in a thought of Sky-T1',
      `<|begin_of_thought|>\n${APPROVE}\n<|end_of_thought|>\nI need more.`,
    ],
    ['in reasoning', `<reasoning>\n${APPROVE}\nNo.\n</reasoning>\nI need more.`],
    ['in analysis in tags', `<analysis>\n${APPROVE}\n</analysis>\nI need more.`],
    ['in a scratchpad', `<scratchpad>\n${APPROVE}\n</scratchpad>\nI need more.`],
    ['in a reflection', `<reflection>\n${APPROVE}\n</reflection>\nI need more.`],
    ['in a thought with a draft', `<think><analysis>x</analysis>\n${APPROVE}\n`],
    ['in a thought after a draft', `<think>So: </analysis>\n${APPROVE}`],
    ['in a draft with a thought', `<think>\n{}<analysis>\n</think>\n<analysis>\n${APPROVE}`],
    ['in a thought in brackets', `[THINK]\n${APPROVE}\n[/THINK]\nI need more.`],
    ['in a thought of Kimi', `◁think▷\n${APPROVE}\n◁/think▷\nI need more.`],
    ['before the end of a thought', `Hm.\n${APPROVE}\nNo.\n</think>\n\nI need more.`],
    ['a record in a sentence', 'The case is {"case":7,"decision":"reject"}.'],
  ])('%s', (_name, text) => {
    expect(read(text)).toEqual({ decision: undefined });
    expect(decisionsIn(text).alone).toEqual([]);
  });
});

// What is compared with a decision that came in another way, and counts beside calls.
test.each<[string, string, object]>([
  ['a sentence at the end', `I do not answer ${APPROVE}.`, { alone: [], closing: APPROVE }],
  ['quoted', `He wrote: 「Go. ${APPROVE}」`, { alone: [], closing: APPROVE }],
  ['a plan', `I may answer ${APPROVE}, or not.`, { alone: [] }],
  ['a record', '{"id":1,"decision":2}', { alone: [], record: '{"id":1,"decision":2}' }],
  ['no JSON', "Hm.\n{'decision':1}", { alone: [], unread: "{'decision':1}" }],
  ['no JSON in a sentence', "I say {'decision':1}.", { alone: [] }],
  ['half an object', '{"decision":"app', { alone: [], unread: '{"decision":"app' }],
  ['an open brace', 'A set opens with { and this decision: stop', { alone: [] }],
])('%s is kept apart', (_name, text, expected) => {
  expect({ ...decisionsIn(text), unclear: undefined }).toEqual(expected);
});

describe('one and the same', () => {
  test('members in another order are the same, a number that reads alike is not', () => {
    const ordered = ['{"decision":1,"confidence":1}', '{"confidence":1.0,"decision":1}'];
    expect(distinctDecisions(ordered)).toHaveLength(1);
    const large = ['{"decision":9007199254740992}', '{"decision":9007199254740993}'];
    expect(distinctDecisions(large)).toHaveLength(2);
    expect(distinctDecisions(['{"decision":1e400}', '{"decision":1e400}'])).toHaveLength(1);
    expect(distinctDecisions([APPROVE, REJECT, APPROVE])).toEqual([APPROVE, REJECT]);
  });

  test.each<[string, string, boolean]>([
    [SURE, APPROVE, true],
    [SURE, '{"decision":"reject","confidence":0.9}', false],
    [ASKS, ASKS, true],
    [ASKS, APPROVE, false],
    ['{"decision":9007199254740992}', '{"decision":9007199254740993}', false],
    ['{"decision":null}', '{}', false],
  ])('%s and %s decide the same: %j', (one, other, expected) => {
    expect(sameDecisionAs(one)(other)).toBe(expected);
  });
});

test.each<[string, string | undefined]>([
  ['', undefined],
  ['{}', '{}'],
  ['{so} {"a":1} } {b}', '{"a":1}'],
  ['It\'s 5" wide: {"a":"}{"}', '{"a":"}{"}'],
  ['{"a":1} {"b":', '{"a":1}'],
  ['[{"a":1},{"b":2}]', undefined],
  ['{"a":1} {"b"}', undefined],
  ['{"a",}', undefined],
])('the one object of %j is %j', (text, object) => {
  expect(onlyObjectIn(text)).toBe(object);
});

describe('a long text', () => {
  afterEach(() => void vi.restoreAllMocks());

  test.each([
    ['braces that open', '{'.repeat(1_000_000)],
    ['braces that open on lines', '\n{'.repeat(500_000)],
    ['objects that open', '{"a":'.repeat(200_000)],
    ['objects that are empty', '{}'.repeat(500_000)],
    ['objects of something else', '{"a":1}'.repeat(150_000)],
    ['braces that are no JSON', '{x}'.repeat(350_000)],
    ['braces that are nearly JSON', '{"a"}'.repeat(200_000)],
    ['fractions', '\\frac{a}{b} '.repeat(80_000)],
    ['nests that are no JSON', `${'{x'.repeat(300_000)}${'}'.repeat(300_000)}`],
    ['objects in objects', `${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`],
    ['quotes', '{"'.repeat(500_000)],
    ['quotes that are escaped', `{"${'\\"'.repeat(500_000)}`],
    ['quotes that are escaped beside braces', '{"\\"'.repeat(250_000)],
    ['fences', `${FENCE}\n`.repeat(250_000)],
    ['marks of calls', '<|tool_call{x}'.repeat(70_000)],
  ])('of %s is not parsed', (_name, text) => {
    const parse = vi.spyOn(JSON, 'parse');
    const { alone, closing } = decisionsIn(text);
    expect({ alone, closing }).toEqual({ alone: [] });
    onlyObjectIn(text);
    expect(parse.mock.calls.length).toBeLessThan(2);
  });

  test.each([
    ['ends of thoughts', '</think>'.repeat(25_000)],
    ['begins of thoughts', '<think>{decision}'.repeat(12_000)],
    ['outputs on a line', `${APPROVE} `.repeat(9_000)],
    ['outputs in a list', `[${`${APPROVE},`.repeat(9_000)}`],
    ['outputs in prose', `So: ${APPROVE} it is. `.repeat(6_000)],
    ['outputs on lines', `${APPROVE}\n`.repeat(9_000)],
    ['braces on a line', '{decision} '.repeat(18_000)],
    ['blanks', `[${' '.repeat(200_000)}${APPROVE}${' '.repeat(200_000)}`],
    ['labels', `${'so: '.repeat(50_000)}${APPROVE}`],
    ['marks of calls', `${'<tool_call>'.repeat(18_000)} x {}`],
    ['closing tags', `So: ${APPROVE}${'</a'.repeat(60_000)}`],
    ['lines that name it', `${APPROVE}\n${'decision: approve\n'.repeat(11_000)}`],
    ['open objects', `${APPROVE}\n${'{x '.repeat(60_000)}`],
  ])('of %s is read in a fixed number of passes', (_name, text) => {
    expect(scanCost(() => decisionsIn(text))).toBeLessThan(60 * text.length);
  });

  // The cost above does not see how often one expression tries again: here a test ends, or it does not.
  const HOSTILE =
    '` <|im_end|> <!-- \u2028 \u2028- </think> <think { } " \\ \\" * # [ ] _ - . 。 a so: : decision decision: <tool_call>';
  test.each([...HOSTILE.split(' '), ' ', '\n', '```a ', '\t['])('of many %j ends', (sign) => {
    const run = sign.repeat(200_000 / sign.length);
    const begins = [
      `${run}! `,
      `So: ${run}! `,
      `So:\n${run}`,
      `<tool_call>${run}! {"id":1} `,
      `{${run}! `,
    ];
    const ends = [`${run}x`, `\n${run}x`, ` {"id":1}${run}! `];
    const texts = [...begins.map((each) => each + APPROVE), ...ends.map((each) => APPROVE + each)];
    for (const text of texts) expect(decisionsIn(text).alone.length).toBeLessThan(2);
  });

  test('with a deep decision is given, for its reader to refuse', () => {
    const deep = `{"decision":${'['.repeat(400_000)}${']'.repeat(400_000)}}`;
    expect(read(`So: ${deep}`)).toEqual({ decision: deep });
  });

  test('of many equal ones has one', () => {
    expect(decisionsIn(APPROVE.repeat(40_000))).toEqual({ alone: [APPROVE] });
  });
});
