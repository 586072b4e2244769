// Forms become resume values (interrupt.md, architecture §9): every form, every action, every wrong one.
import { describe, expect, it } from 'vitest';
import { offeredActions } from '../../src/rules/gate-actions.ts';
import { resumeValueOf } from '../../src/words/answer.ts';
import { choicesOf } from '../../src/words/choices.ts';
import { ANSWER_NOTICES } from '../../src/words/outcome.ts';
import type { OpenQuestion } from '../../src/words/question.ts';
import { decisionQuestion, doubtQuestion } from '../../workflows/questions.ts';

type Asked = Pick<OpenQuestion, 'kind' | 'data'>;

const CHOICES = offeredActions({
  actions: [
    'accept',
    'edit-accept',
    'reject',
    'ask',
    { action: 'refine', effect: 'route' },
    { action: 'deny', effect: 'end' },
  ],
});

/** Names that mean something in questions of the host alone, and one that asks again. */
const NAMED = offeredActions({
  actions: [
    'accept',
    ...['answers', 'say', 'close'].map((action) => ({ action, effect: 'end' as const })),
    { action: 'more', effect: 'ask-again' },
  ],
});
const named: Asked = { kind: 'approval', data: { artifactType: 'text', choices: NAMED } };
const call: Asked = {
  kind: 'approval',
  data: {
    artifactType: 'tool-call',
    choices: offeredActions({ actions: ['edit-accept', { action: 'refine', effect: 'end' }] }),
  },
};

const approval: Asked = {
  kind: 'approval',
  data: { artifactId: 'a', artifactType: 'text', artifactData: { text: 'hi' }, choices: CHOICES },
};
const nested: Asked = {
  kind: 'approval',
  data: { artifactType: 'doc', artifactData: { parts: ['one'] }, choices: CHOICES },
};
const unsure: Asked = {
  kind: 'low-confidence',
  data: {
    ...decisionQuestion('a'),
    threshold: 0.7,
    observed: 0.5,
    decision: { action: 'refund', amount: 5, urgent: false, note: null },
  },
};
const doubt: Asked = {
  kind: 'approval',
  data: { artifactType: 'effect-in-doubt', ...doubtQuestion('a:b', 'It was cut off.') },
};
const clarification: Asked = {
  kind: 'clarification',
  data: {
    questions: [
      { id: 'colour', question: 'Which colour?' },
      { id: 'count', question: 'How many?', schema: { type: 'integer' } },
      { id: 'gift', question: 'A gift?', schema: { type: 'boolean' } },
      { id: 'sizes', question: 'Sizes?', schema: { type: 'array' } },
    ],
  },
};
const talk: Asked = { kind: 'conversation.exchange', data: { turnIndex: 3 } };
const bounded: Asked = {
  kind: 'conversation.exchange',
  data: { outcomeSchema: { type: 'integer' } },
};
const external: Asked = { kind: 'external-event', data: { eventType: 'paid', correlation: {} } };

const answers = {
  'answer.colour': ' blue ',
  'answer.count': ' 2 ',
  'answer.gift': ' true\n',
  'answer.sizes': '["S"]',
};

describe('interrupt.md: a form that is right', () => {
  it.each<[string, Asked, Record<string, string>, unknown]>([
    ['approve', approval, { action: 'accept' }, { action: 'accept' }],
    [
      'an answer of a gate that is called answers',
      named,
      { action: 'answers', reason: 'no' },
      { action: 'answers', feedback: 'no' },
    ],
    ['one that is called say', named, { action: 'say' }, { action: 'say' }],
    ['one that is called close', named, { action: 'close' }, { action: 'close' }],
    [
      'one that asks again',
      named,
      { action: 'more', reason: 'why?' },
      { action: 'more', feedback: 'why?' },
    ],
    [
      'nothing can be changed of a call',
      call,
      { action: 'edit-accept' },
      { action: 'edit-accept' },
    ],
    [
      'a call is not refined',
      call,
      { action: 'refine', reason: 'less' },
      { action: 'refine', feedback: 'less' },
    ],
    [
      'an old name of a change',
      nested,
      { action: 'edit', editedDecision: '"keep"' },
      { action: 'edit-accept', editedArtifactData: 'keep' },
    ],
    [
      'a turn, with the place that it was said at',
      talk,
      { action: 'say', reason: ' Hello ' },
      { operation: 'exchange', turn: { content: 'Hello', turnIndex: 3 } },
    ],
    [
      'a turn of a form that was shown before somebody else, or its own first click, said something',
      talk,
      { action: 'say', reason: 'Hello', turnIndex: '2' },
      { operation: 'exchange', turn: { content: 'Hello', turnIndex: 2 } },
    ],
    [
      'a turn whose form tells no place',
      talk,
      { action: 'say', reason: 'Hello', turnIndex: 'x' },
      { operation: 'exchange', turn: { content: 'Hello', turnIndex: 3 } },
    ],
    ['a close', talk, { action: 'close', reason: '' }, { operation: 'close' }],
    [
      'a close with an outcome and a last word',
      bounded,
      { action: 'close', editedDecision: '7', reason: 'Bye' },
      { operation: 'close', outcome: 7, turn: { content: 'Bye' } },
    ],
    [
      'approve with a word',
      approval,
      { action: 'accept', reason: ' fine ' },
      { action: 'accept', feedback: 'fine' },
    ],
    ['reject', approval, { action: 'reject', reason: '' }, { action: 'reject' }],
    [
      'reject with a reason',
      approval,
      { action: 'reject', reason: 'no' },
      { action: 'reject', feedback: 'no' },
    ],
    [
      'edit a member',
      approval,
      { action: 'edit-accept', 'field.text': 'ho' },
      { action: 'edit-accept', editedArtifactData: { text: 'ho' } },
    ],
    [
      'edit as JSON',
      nested,
      { action: 'edit-accept', editedDecision: '{"parts":[]}' },
      { action: 'edit-accept', editedArtifactData: { parts: [] } },
    ],
    [
      'send back',
      approval,
      { action: 'refine', reason: 'shorter' },
      { action: 'refine', refineFeedback: { scope: 'whole', text: 'shorter' } },
    ],
    [
      'an answer of its definition',
      approval,
      { action: 'deny', reason: 'too late' },
      { action: 'deny', feedback: 'too late' },
    ],
    [
      'ask something first',
      approval,
      { action: 'ask', reason: ' Why? ' },
      { action: 'ask', feedback: 'Why?' },
    ],
    [
      '[I117] ratify with a word',
      unsure,
      { action: 'accept', reason: ' fine ' },
      { action: 'accept', feedback: 'fine' },
    ],
    [
      '[I117] change it with a word',
      unsure,
      { action: 'edit-accept', editedDecision: '"keep"', reason: 'better' },
      { action: 'edit-accept', decision: 'keep', feedback: 'better' },
    ],
    [
      '[I117] edit with a word',
      nested,
      { action: 'edit-accept', editedDecision: '{"parts":[]}', reason: 'better' },
      { action: 'edit-accept', editedArtifactData: { parts: [] }, feedback: 'better' },
    ],
    [
      '[I117] answer with a word',
      clarification,
      { action: 'answers', ...answers, reason: 'I asked Ada' },
      {
        answers: { colour: ' blue ', count: 2, gift: true, sizes: ['S'] },
        feedback: 'I asked Ada',
      },
    ],
    [
      'turn down',
      unsure,
      { action: 'reject', reason: 'too late' },
      { action: 'reject', reason: 'too late' },
    ],
    [
      'change members, each keeping its type',
      unsure,
      {
        action: 'edit-accept',
        'field.action': 'refund',
        'field.amount': '3.5',
        'field.urgent': 'true',
        'field.note': '',
      },
      {
        action: 'edit-accept',
        decision: { action: 'refund', amount: 3.5, urgent: true, note: null },
      },
    ],
    [
      'change it as JSON',
      unsure,
      { action: 'edit-accept', editedDecision: '"keep"' },
      { action: 'edit-accept', decision: 'keep' },
    ],
    [
      'tell the agent more',
      unsure,
      { action: 'answers', 'answer.guidance': 'a photo came' },
      { answers: { guidance: 'a photo came' } },
    ],
    [
      'answer by type',
      clarification,
      { action: 'answers', ...answers },
      { answers: { colour: ' blue ', count: 2, gift: true, sizes: ['S'] } },
    ],
    ['perform the effect', doubt, { action: 'accept' }, { action: 'accept' }],
    ['skip the effect', doubt, { action: 'reject' }, { action: 'reject' }],
    [
      'the effect happened',
      doubt,
      { action: 'edit-accept', editedDecision: '{"refundId":"R-1"}' },
      { action: 'edit-accept', editedArtifactData: { refundId: 'R-1' } },
    ],
  ])('%s', (_, asked, form, value) => {
    expect(resumeValueOf(form, asked)).toEqual({ ok: true, value });
  });
});

it.each([
  [' a ', ' a ', ' a '],
  ['lines', 'a\nb', 'a\r\nb'],
  ['a number', 1, '1'],
  ['a text beside one without its spaces', ' b ', ' b '],
])('an option is answered as the question has it: %s', (_, option, sent) => {
  const schema = { enum: ['b', option, 'other'] };
  const data = { questions: [{ id: 'q', question: 'Which?', schema }] };
  const form = { action: 'answers', 'answer.q': sent };
  const value = { answers: { q: option } };
  expect(resumeValueOf(form, { kind: 'clarification', data })).toEqual({ ok: true, value });
});

it('[I104] a text that was changed has the line breaks that others have', () => {
  const asked = { ...approval, data: { ...approval.data, artifactData: { note: 'a\nb' } } };
  const sent = resumeValueOf({ action: 'edit-accept', 'field.note': 'a\r\nc' }, asked);
  expect(sent).toMatchObject({ value: { editedArtifactData: { note: 'a\nc' } } });
});

it.each([
  ['integer', 1],
  ['string', '1'],
])('of options that look alike the one of the type is meant: %s', (type, answer) => {
  const schema = { type, enum: type === 'string' ? [1, '1'] : ['1', 1] };
  const data = { questions: [{ id: 'q', question: 'Which?', schema }] };
  const sent = resumeValueOf(
    { action: 'answers', 'answer.q': '1' },
    { kind: 'clarification', data },
  );
  expect(sent).toEqual({ ok: true, value: { answers: { q: answer } } });
});

it('a name with a line break comes back as a browser sends it', () => {
  const data = { questions: [{ id: 'q\n1', question: 'Which?' }] };
  const form = { action: 'answers', 'answer.q\r\n1': 'x' };
  const value = { answers: { 'q\n1': 'x' } };
  expect(resumeValueOf(form, { kind: 'clarification', data })).toEqual({ ok: true, value });
});

it('a member and a question named as a prototype are answered like others', () => {
  const name = '__proto__';
  const value = Object.fromEntries([[name, 1]]);
  const asked = { ...approval, data: { ...approval.data, artifactData: value } };
  const sent = resumeValueOf({ action: 'edit-accept', [`field.${name}`]: '2' }, asked);
  expect(JSON.stringify(sent)).toContain(`{"${name}":2}`);
});

describe('interrupt.md: a form that is wrong is refused in words, and nothing is sent', () => {
  it.each<[string, Asked, Record<string, unknown>, RegExp]>([
    ['no action', approval, {}, /Choose/],
    ['an unknown action', unsure, { action: '__proto__' }, /Choose/],
    ['a repeated field', approval, { action: ['accept', 'reject'] }, /"action"/],
    ['a field as an object', approval, { action: { a: 'b' } }, /"action"/],
    ['an endless field', approval, { action: 'reject', reason: 'x'.repeat(70_000) }, /"reason"/],
    ['broken JSON', nested, { action: 'edit-accept', editedDecision: '{' }, /not valid JSON/],
    ['no JSON at all', nested, { action: 'edit-accept' }, /not valid JSON/],
    [
      'text for a number',
      unsure,
      { action: 'edit-accept', 'field.amount': 'five' },
      /"amount" must be a number/,
    ],
    [
      'nothing for a number',
      unsure,
      { action: 'edit-accept', 'field.amount': ' ' },
      /"amount" must be a number/,
    ],
    [
      '[I103] a number that a double would change',
      unsure,
      { action: 'edit-accept', 'field.amount': '9007199254740993' },
      /"amount" is a number that cannot be kept exactly/,
    ],
    ['hexadecimal', unsure, { action: 'edit-accept', 'field.amount': '0x10' }, /must be a number/],
    [
      '[I103] such a number within a value',
      nested,
      { action: 'edit-accept', editedDecision: '{"a":[1e400]}' },
      /\/a\/0 is a number that cannot be kept exactly/,
    ],
    [
      '[I103] such a number as an answer',
      clarification,
      { action: 'answers', ...answers, 'answer.count': '9007199254740993' },
      /is a number that cannot be kept exactly/,
    ],
    ['text for a boolean', unsure, { action: 'edit-accept', 'field.urgent': 'yes' }, /"urgent"/],
    ['sending back without a word', approval, { action: 'refine' }, /what should change/i],
    ['sending back a decision', unsure, { action: 'refine', reason: 'x' }, /Choose/],
    ['an answer that is not offered', doubt, { action: 'approve' }, /Choose/],
    [
      'an answer that asks again, without a word',
      named,
      { action: 'more' },
      /what you want to know/i,
    ],
    ['asking without a word', approval, { action: 'ask' }, /what you want to know/i],
    ['answering an approval', approval, { action: 'answers', 'answer.x': 'y' }, /Choose/],
    ['a turn without words', talk, { action: 'say', reason: ' ' }, /Say something/],
    ['no word what to do in a conversation', talk, { reason: 'x' }, /Choose/],
    ['a close without its outcome', bounded, { action: 'close' }, /outcome/],
    [
      'a close with an outcome of another form',
      bounded,
      { action: 'close', editedDecision: 'seven' },
      /outcome/,
    ],
    [
      '[I117] a close with an outcome that nobody asks for',
      talk,
      { action: 'close', editedDecision: '7' },
      /no outcome/,
    ],
    ['a missing answer', clarification, { ...answers, 'answer.colour': '' }, /Which colour/],
    ['text for a count', clarification, { ...answers, 'answer.count': 'two' }, /How many/],
    ['text for yes or no', clarification, { ...answers, 'answer.gift': 'maybe' }, /A gift/],
    ['text for a list', clarification, { ...answers, 'answer.sizes': 'S' }, /Sizes/],
    ['a wait that another system ends', external, { action: 'accept' }, /not answered by a person/],
  ])('%s', (_, asked, form, message) => {
    const result = resumeValueOf(form, asked);
    expect(result).toEqual({ ok: false, message: expect.stringMatching(message) as string });
  });
});

it('the example of an answer is that of its question, whatever it is called', () => {
  expect(choicesOf(named).map(({ value }) => value)).toEqual([
    ...['accept', 'answers', 'say', 'close'].map((action) => ({ action })),
    { action: 'more', feedback: '…' },
  ]);
});

it('interrupt-profiles.md §quorum: a vote of who has voted so already is not counted, and not said to be taken', () => {
  expect(ANSWER_NOTICES.open).not.toContain('taken');
});
