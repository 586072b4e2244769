// Mutants of what people are shown, and of what they answer (architecture §11, I104, I116, I117): rows of mutants.ts.
import type { Row } from './mutants.ts';

const PRINTABLE = 'src/words/printable.js';
const HTML = 'src/pages/timeline-html.js';
const QUESTION = 'src/pages/question.ts';
const ANSWER = 'src/words/answer.ts';
const CHANGE = 'src/words/question.ts';
const OF_TEXT = 'test/words/printable.test.ts';
const OF_PAGE = 'test/pages/shown-text.test.ts';

export const OF_SHOWN_TEXT: readonly Row[] = [
  [104, [PRINTABLE, String.raw`\p{Default_Ignorable_Code_Point}`, ''], [OF_TEXT, 'fillers']],
  [104, [PRINTABLE, '? found + found :', '? found :'], [OF_TEXT, 'no two values look alike']],
  [
    104,
    [HTML, 'return escapeExact(printableLines(String(value)));', 'return escapeExact(value);'],
    [OF_PAGE, 'a question of an agent'],
  ],
  [
    104,
    [HTML, 'clip(printableJson(value, 2), most)', 'clip(JSON.stringify(value, null, 2), most)'],
    [OF_PAGE, 'one in a text of JSON'],
  ],
  [
    104,
    [HTML, 'return renderValue(value, Infinity);', 'return renderValue(value);'],
    [OF_PAGE, 'shown whole'],
  ],
  [
    104,
    [QUESTION, 'const fields = hasFields(value)\n', 'const fields = isFlatObject(value)\n'],
    [OF_PAGE, 'no hidden part either'],
  ],
  [104, [QUESTION, ' || /[\\r\\n]/.test(text)', ''], [OF_PAGE, 'sends back']],
  [
    104,
    [QUESTION, '>\\n${escapeExact(value)}</textarea>', '>${escapeExact(value)}</textarea>'],
    [OF_PAGE, 'sends back'],
  ],
  [
    104,
    [ANSWER, 'parts.push([name, asField(text)])', 'parts.push([name, text])'],
    ['test/words/answer.test.ts', 'a text that was changed'],
  ],
  [
    104,
    [CHANGE, 'if (isAboveAnswer(interrupt)) return undefined;', ''],
    [OF_PAGE, 'has no form to change it'],
  ],
  [
    104,
    [CHANGE, "isAboveAnswer(interrupt) ? limit : ''", 'limit'],
    [OF_PAGE, 'has no form to change it'],
  ],
  [
    104,
    ['src/words/choices.ts', 'changeTextOf(interrupt) === undefined', 'false'],
    ['test/app/question-lines.test.ts', 'nor is it in a request'],
  ],
  [
    104,
    [CHANGE, '[printableJson(value, 2), printableJson(value)]', '[printableJson(value, 2)]'],
    [OF_PAGE, 'sends back'],
  ],
  [104, [HTML, 'NUMBER.test(shown) ?', 'false ?'], [OF_PAGE, 'is not shown as']],
  [
    116,
    ['src/runs/secrets.ts', 'if (at === undefined) return value;', 'return redactor.json(value);'],
    ['test/runs/answer.test.ts', 'stored otherwise'],
  ],
  [
    116,
    ['src/runs/overlay.ts', '  kept(deps, shown, OVERLAY);', ''],
    ['test/runs/fork-scopes.test.ts', 'stored otherwise'],
  ],
  [
    116,
    ['src/runs/cohort-selection.ts', '  kept(deps, asked, CHANGE);', ''],
    ['test/runs/cohort-selection.test.ts', 'stored otherwise'],
  ],
  [
    116,
    ['src/runs/secrets.ts', 'if (at === undefined) return [];', 'return [];'],
    ['test/facade/agents-asked.test.ts', 'secret was masked'],
  ],
  [
    116,
    ['src/facade/pages/start.ts', 'return [...atFields, ...inTags];', 'return atFields;'],
    ['test/facade/http.test.ts', 'a secret among tags'],
  ],
  [
    116,
    ['activities/call-tool.ts', 'if (fault) return askAgain(', 'if (!input) return askAgain('],
    ['test/activities/rehearsed-call.test.ts', 'asked for again'],
  ],
  [
    117,
    ['workflows/approvals.ts', 'else: { properties: { [name]: false } },', ''],
    ['test/workflows/answer-schemas.test.ts', 'is refused'],
  ],
  [
    117,
    ['workflows/approvals.ts', 'schema: {}, isRequired: true }', 'schema: {} }'],
    ['test/workflows/answer-schemas.test.ts', 'is refused'],
  ],
  [
    117,
    [
      'src/rules/gate-actions.ts',
      'return textOf(feedback) ?? textOf(reason) ?? wishIn(refineFeedback);',
      'return textOf(feedback) ?? wishIn(refineFeedback);',
    ],
    ['test/workflows/approvals.test.ts', 'why somebody says no'],
  ],
  [
    117,
    ['src/rules/gate-actions.ts', ': `${what}: ${reason}`;', ': reason;'],
    ['test/workflows/answer-schemas.test.ts', 'why it is rejected'],
  ],
  [
    117,
    [
      ANSWER,
      '...changeTo(interrupt, value.value), ...feedbackOf(fields)',
      '...changeTo(interrupt, value.value)',
    ],
    ['test/words/answer.test.ts', 'change it with a word'],
  ],
  [
    117,
    ['src/cli/answer-command.ts', 'if (beside !== undefined)', 'if (false)'],
    ['test/cli/answers.test.ts', 'a whole answer has no'],
  ],
  [
    117,
    ['activities/decision.ts', 'if (!first || !own) return first;', 'return first;'],
    ['test/activities/prepare-invocation.test.ts', 'what a human may decide'],
  ],
  [
    117,
    ['src/runs/answer.ts', 'compileUserSchema(schema, COMPOSED)', 'compileUserSchema(schema)'],
    ['test/runs/answer.test.ts', 'can be answered'],
  ],
  [
    117,
    ['src/wire/user-schema.ts', 'work: 2 * MAX_WORK,', 'work: MAX_WORK,'],
    ['test/runs/answer.test.ts', 'can be answered'],
  ],
  [
    117,
    ['src/wire/user-schema.ts', 'canonicalJson([work, schema])', 'canonicalJson(schema)'],
    ['test/wire/user-schema.test.ts', 'what is made of schemas'],
  ],
  [
    117,
    ['src/wire/load-definition.ts', 'if (compiled.ok) return [];', 'return [];'],
    ['test/wire/answerable.test.ts', 'and not in a question'],
  ],
  [
    117,
    ['src/rules/gate-actions.ts', ', feedback: why, reason: why };', ' };'],
    ['test/workflows/approvals.test.ts', 'why is an output of the gate'],
  ],
  [
    117,
    ['src/runs/answer.ts', 'jsonBytes(outputsOf(value)) <=', 'jsonBytes(value) <='],
    ['test/runs/answer.test.ts', 'an answer is as large'],
  ],
  [
    117,
    ['src/runs/answer.ts', 'if (!isPutOut || jsonBytes(', 'if (jsonBytes('],
    ['test/runs/answer.test.ts', 'an answer is as large'],
  ],
  [
    117,
    ['src/runs/answer.ts', '&& hasTwoReasons(value);', '&& false;'],
    ['test/runs/answer.test.ts', 'one reason is told'],
  ],
];
