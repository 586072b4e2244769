// The terminal's words for a question: for each kind the requests that it prints are ones that the question takes
// (interrupt.md), whatever the question holds.
import { describe, expect, it } from 'vitest';
import { questionLines } from '../../src/app/question-lines.ts';
import { commandLines } from '../../src/cli/question-lines.ts';
import { offeredActions } from '../../src/rules/gate-actions.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { choicesOf } from '../../src/words/choices.ts';
import { printableJson } from '../../src/words/printable.js';
import type { OpenQuestion } from '../../src/words/question.ts';
import { compileUserSchema } from '../../src/wire/user-schema.ts';
import { validate } from '../../src/wire/validators.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import {
  approvalQuestion,
  decisionQuestion,
  doubtQuestion,
  newCallQuestion,
  refusedDoubtQuestion,
} from '../../workflows/questions.ts';

const address = { url: 'http://127.0.0.1:1', apiKey: 'key', runId: 'run-1' };
const EVIL = `it's "so" \u001b[2J \u202e`;

function open(kind: string, data: JsonObject, resumeSchema?: JsonObject): OpenQuestion {
  return { nodeId: `n'1`, interruptId: 'int-1', kind, data, resumeSchema, requestedAtMs: 1 };
}

/** What a POSIX shell makes of `-d <word>`. */
function bodiesOf(lines: readonly string[]): JsonObject[] {
  return lines
    .filter((line) => line.trim().startsWith('-d '))
    .map((line) =>
      line
        .trim()
        .slice(3)
        .replaceAll(String.raw`'\''`, '\u0000'),
    )
    .map((word) => JSON.parse(word.slice(1, -1).replaceAll('\u0000', "'")) as JsonObject);
}

const DECISION: JsonObject = {
  anyOf: [
    { properties: { action: { enum: ['accept', 'reject'] } }, required: ['action'] },
    {
      properties: { action: { const: 'edit-accept' }, decision: { const: { say: EVIL } } },
      required: ['action', 'decision'],
    },
    { properties: { answers: { type: 'object' } }, required: ['answers'] },
  ],
};
const DOUBT = ['accept', 'reject', 'edit-accept'];
const GATE = ['accept', 'reject', 'edit-accept', 'refine', 'ask'];
const BOTH = ['accept', 'reject'];

const CASES: readonly (readonly [string, OpenQuestion, readonly string[]])[] = [
  [
    'an effect in doubt',
    open(
      'approval',
      { artifactType: 'effect-in-doubt', ...doubtQuestion('demo:pay', EVIL) },
      approvalSchema(DOUBT),
    ),
    DOUBT,
  ],
  [
    'a call that an earlier one stands in the way of',
    open(
      'approval',
      { artifactType: 'effect-in-doubt', ...newCallQuestion('demo:pay', EVIL) },
      approvalSchema(BOTH),
    ),
    BOTH,
  ],
  [
    'an effect in doubt of a call that is refused now',
    open(
      'approval',
      { artifactType: 'effect-in-doubt', ...refusedDoubtQuestion('demo:pay', EVIL) },
      approvalSchema(['reject', 'edit-accept']),
    ),
    ['reject', 'edit-accept'],
  ],
  [
    "a call that needs a human's word",
    open(
      'approval',
      { artifactType: 'tool-call', ...approvalQuestion('a', 'a/pay') },
      approvalSchema(BOTH),
    ),
    BOTH,
  ],
  [
    'low confidence',
    open('low-confidence', { ...decisionQuestion('a'), decision: { say: EVIL } }, DECISION),
    ['accept', 'edit-accept', 'answers', 'reject'],
  ],
  ['a gate', open('approval', { title: EVIL, actions: GATE }, approvalSchema(GATE)), GATE],
  [
    'a clarification',
    open(
      'clarification',
      {
        questions: [
          { id: 'n', question: 'N?', schema: { type: 'integer' } },
          { id: 'c', question: 'C?', schema: { enum: ['red'] } },
        ],
      },
      {
        properties: {
          answers: {
            properties: { n: { type: 'integer' }, c: { enum: ['red'] } },
            required: ['n', 'c'],
          },
        },
        required: ['answers'],
      },
    ),
    ['answers'],
  ],
];

describe('the key of the requests', () => {
  it('is not shown when somebody chose it: the shell fills it in', () => {
    const [, question] = CASES[0] as (typeof CASES)[number];
    const { url, runId } = address;
    const text = questionLines(question, { url, runId }).join('\n');
    expect(text).toContain('-H "Authorization: Bearer $OPENWOP_API_KEY"');
  });
});

describe('the requests that the terminal prints', () => {
  it.each(CASES)(
    '%s: one per answer, each of the form that the question takes',
    (_, asked, actions) => {
      const lines = questionLines(asked, address);
      const schema = compileUserSchema(asked.resumeSchema ?? {});
      if (!schema.ok) throw new Error(schema.errors[0].message);
      const bodies = bodiesOf(lines);
      expect(bodies).toHaveLength(actions.length);
      bodies.forEach((body, at) => {
        expect(validate.interruptResolveRequest(body)).toMatchObject({ ok: true });
        expect(body.interruptId).toBe(asked.interruptId);
        expect(schema.value.validate(body.resumeValue ?? null)).toMatchObject({ ok: true });
        const { action = 'answers' } = body.resumeValue as JsonObject;
        expect(action).toBe(actions[at]);
      });
      for (const { label } of choicesOf(asked)) expect(lines.join('\n')).toContain(label);
    },
  );

  it('nothing that a terminal would obey, and one word for the shell', () => {
    for (const [, asked] of CASES)
      for (const line of questionLines(asked, address)) expect(line).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(questionLines(open('approval', {}), address).join('\n')).toContain(
      String.raw`/interrupts/n'\''1' \ `.trimEnd(),
    );
  });

  it('[I104] what is decided about stands there, with what would be hidden as its escape', () => {
    const asked = open('approval', { artifactData: { order: 'A-\u202e7001' } });
    expect(questionLines(asked, address).join('\n')).toContain(String.raw`"order": "A-\u202e7001"`);
  });

  it.each(['a\u200bb', 'a\nb', null, { a: 1 }])(
    '[I104] a command that cannot say the option %j by text says it as JSON',
    (option) => {
      const schema = { enum: [option] };
      const asked = open('clarification', { questions: [{ id: 'q', question: 'Q?', schema }] });
      const line = questionLines(asked, address).find((each) => each.includes('runs answer')) ?? '';
      expect(line).toContain(`--value '${printableJson({ answers: { q: option } })}'`);
      expect(line).not.toContain('--answer');
    },
  );

  it('[I104] so do questions with their options, and what was said', () => {
    const [, asked] = CASES.find(([name]) => name === 'a clarification') as (typeof CASES)[number];
    expect(questionLines(asked, address).join('\n')).toContain('c: C? (red)');
    const talk = open('conversation.exchange', { turns: [{ from: 'user', content: 'Hi \u202e' }] });
    expect(questionLines(talk, address).join('\n')).toContain(String.raw`user: Hi \u202e`);
  });

  it('[I104] a content that is larger than an answer is in no command, which is said', () => {
    const choices = offeredActions({ actions: ['edit-accept'] });
    const lines = (size: number) =>
      commandLines(open('approval', { choices, artifactData: 'x'.repeat(size) }), 'run-1');
    const [, said, command] = lines(32 * 1024);
    expect(said).toContain('an answer holds at most 32 KiB.');
    expect(command).toMatch(/edit-accept --interrupt \S+ --value '…'$/);
    expect(lines(31 * 1024).at(-1)).toContain('xxx');
    expect(lines(31 * 1024)).toHaveLength(2);
  });

  it('[I104] nor is it in a request, or the value of a choice', () => {
    const choices = (...actions: ['edit-accept', ...'accept'[]]) => offeredActions({ actions });
    const asked = (size: number, given = choices('edit-accept', 'accept')) =>
      open('approval', { choices: given, artifactData: 'x'.repeat(size) });
    const sent = (question: OpenQuestion) =>
      bodiesOf(questionLines(question, address)).map(({ resumeValue }) => resumeValue);
    const [changed, accepted] = [31, 32].map((size) => asked(size * 1024)).map(sent);
    expect(changed).toMatchObject([{ action: 'edit-accept' }, { action: 'accept' }]);
    expect(accepted).toEqual([{ action: 'accept' }]);
    expect(choicesOf(asked(32 * 1024)).map(({ value }) => value)).toEqual([
      undefined,
      { action: 'accept' },
    ]);
    const alone = questionLines(asked(32 * 1024, choices('edit-accept')), address).join('\n');
    expect(alone).toContain("--value '…'");
    expect(alone).not.toContain('curl');
  });

  it('a wait for another system has no answer to print', () => {
    const lines = questionLines(open('external-event', {}), address);
    expect(lines.join('\n')).not.toContain('curl');
  });

  it('says until when an answer counts, where there is a deadline', () => {
    const asked = { ...open('approval', {}), deadlineMs: Date.UTC(2030, 0, 1) };
    expect(questionLines(asked, address).join('\n')).toContain('2030-01-01T00:00:00.000Z');
  });
});
