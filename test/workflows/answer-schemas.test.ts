// What the schemas that are frozen with a question let through (interrupt.md clarification, low-confidence): every form of
// an answer is held to the same.
import { describe, expect, it } from 'vitest';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { checkAgainst } from '../../src/wire/user-schema.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { answersSchema } from '../../src/rules/answer-schemas.ts';
import { decisionSchema } from '../../src/rules/orchestrator.ts';
import { ANSWER_LIST, PLAIN_DECISION, ratificationSchema } from '../../workflows/ratification.ts';
import { answer, payloadsOf, runOnce, useWorkflowRunner } from './both-ways.ts';
import { decision, oneAgent, scripted } from './scripted-agent.ts';

useWorkflowRunner();

const isTaken = (schema: JsonObject, value: JsonValue): boolean => checkAgainst(schema, value).ok;

describe('answers to questions: one to each, by its schema, as object and as list', () => {
  const amount = { type: 'number', maximum: 10 };
  // With a root of its own: `#` is the question's schema.
  const place = { $ref: '#/$defs/place', $defs: { place: { enum: ['here', 'there'] } } };
  const schema = answersSchema([
    { id: 'amount', question: 'How much?', schema: amount },
    { id: 'place', question: 'Where?', schema: place },
    { id: 'why', question: 'Why?' },
  ]);
  const listed = (...entries: [string, JsonValue][]): JsonValue =>
    entries.map(([id, answer]) => ({ id, answer }));

  it.each<[boolean, JsonValue]>([
    [true, { amount: 10, place: 'here', why: null }],
    [true, listed(['amount', 10], ['place', 'here'], ['why', null])],
    [true, listed(['why', 'so'], ['place', 'there'], ['amount', 0])],
    [false, {}],
    [false, []],
    [false, { amount: 10, place: 'here' }],
    [false, listed(['amount', 10], ['place', 'here'])],
    [false, { amount: 1e9, place: 'here', why: '' }],
    [false, listed(['amount', 1e9], ['place', 'here'], ['why', ''])],
    [false, { amount: 1, place: 'nowhere', why: '' }],
    [false, listed(['amount', 1], ['place', 'nowhere'], ['why', ''])],
    [false, { amount: 1, place: 'here', why: '', more: '' }],
    [false, listed(['amount', 1], ['place', 'here'], ['why', ''], ['more', ''])],
    [false, listed(['amount', 1], ['place', 'here'], ['more', ''])],
    // One of them twice, in the place of another, or beside all.
    [false, listed(['amount', 1], ['amount', 2], ['why', ''])],
    [false, listed(['amount', 1], ['place', 'here'], ['why', ''], ['why', ''])],
    [false, [{ id: 'amount' }, { id: 'place', answer: 'here' }, { id: 'why', answer: '' }]],
    [false, ['amount', 'place', 'why']],
    [false, null],
  ])('%s: %j', (expected, answers) => {
    expect(isTaken(schema, { answers })).toBe(expected);
  });

  // [I117]
  it.each<[string | undefined, JsonObject]>([
    [undefined, { feedback: 'fine', comment: 'ok', decidedBy: 'ada', decidedAt: 1 }],
    ['/answer', { answer: { amount: 1 } }],
    ['/action', { action: 'accept' }],
  ])('beside the answers only notes are taken; refused at %s: %j', (pointer, more) => {
    const answers = { amount: 10, place: 'here', why: null };
    const checked = checkAgainst(schema, { answers, ...more });
    const [first] = checked.ok ? [] : checked.errors;
    expect([first?.pointer, first?.message]).toEqual([
      ...[pointer, pointer && 'is not a known field'],
    ]);
    const entry = { id: 'why', answer: '', ...more };
    expect(isTaken(answersSchema([{ id: 'why', question: 'Why?' }]), { answers: [entry] })).toBe(
      'answer' in more,
    );
  });

  it('as many questions as a gate may have can be answered in both forms', () => {
    const questions = Array.from({ length: 50 }, (_, at) => ({
      ...{ id: `question-${at}`, question: '?' },
      schema: { type: 'object', required: ['a'], properties: { a: amount } },
    }));
    const many = answersSchema(questions);
    const entries = questions.map(({ id }): [string, JsonValue] => [id, { a: 1 }]);
    expect(isTaken(many, { answers: Object.fromEntries(entries) })).toBe(true);
    expect(isTaken(many, { answers: listed(...entries) })).toBe(true);
    expect(isTaken(many, { answers: listed(...entries.slice(1)) })).toBe(false);
  });
});

describe('a decision in doubt: what changes it is held to the return schema, whatever else the answer has', () => {
  const returned: JsonObject = {
    type: 'object',
    required: ['refund'],
    properties: { refund: { type: 'number', maximum: 100 } },
  };
  const schema = ratificationSchema(returned, [ANSWER_LIST]);
  const list = [{ id: 'guidance', answer: 'less' }];

  it.each<[boolean, JsonValue]>([
    [true, { action: 'accept' }],
    [true, { action: 'reject', reason: 'no' }],
    [true, { action: 'edit-accept', decision: { refund: 5 } }],
    [true, { action: 'accept', feedback: 'fine', comment: 'ok', decidedBy: 'ada', decidedAt: 1 }],
    [false, { action: 'accept', decision: { refund: 5 } }],
    [false, { action: 'reject', decision: { refund: 5 } }],
    [false, { action: 'accept', reason: 'no' }],
    [false, { action: 'edit-accept', decision: { refund: 5 }, answers: {} }],
    [false, { action: 'accept', more: 1 }],
    [false, { answers: {}, decision: { refund: 5 } }],
    [true, { answers: {} }],
    [true, { answers: list }],
    [true, { answers: {}, feedback: 'less', comment: 'ok', decidedBy: 'ada', decidedAt: 1 }],
    [true, { answers: list, comment: 'ok' }],
    [false, { answers: list, more: 1 }],
    [false, { action: 'edit-accept' }],
    [false, { action: 'edit-accept', answers: {} }],
    [false, { action: 'edit-accept', answers: list }],
    [false, { action: 'edit-accept', decision: { refund: 1e6 } }],
    [false, { action: 'edit-accept', decision: { refund: 1e6 }, answers: {} }],
    [false, { action: 'edit-accept', decision: { refund: 1e6 }, answers: list }],
    [false, { action: 'other', answers: {} }],
  ])('%s: %j', (expected, value) => {
    expect(isTaken(schema, value)).toBe(expected);
  });

  it('an orchestrator’s decision that is given by itself is held to the same', () => {
    const own = { ...returned, properties: {}, required: ['confidence'], $defs: { a: {} } };
    for (const rule of [
      decisionSchema(['a']),
      { allOf: [decisionSchema(['a']), { ...own, $id: 'own', $ref: '#/$defs/a' }] },
    ]) {
      const both = ratificationSchema(rule, [ANSWER_LIST], PLAIN_DECISION);
      const plain = (worker: string): JsonObject => ({
        ...{ kind: 'next-worker', nextWorkerIds: [worker], confidence: 1 },
      });
      for (const worker of ['a', 'other'])
        for (const value of [plain(worker), { action: 'edit-accept', decision: plain(worker) }])
          expect([value, isTaken(both, value)]).toEqual([value, worker === 'a']);
      expect(isTaken(both, { kind: 'next-worker', nextWorkerIds: ['a'] })).toBe(!('allOf' in rule));
      expect(isTaken(both, { answers: {} })).toBe(true);
      expect(isTaken(both, {})).toBe(false);
    }
    const free = ratificationSchema(undefined, [], PLAIN_DECISION);
    expect(isTaken(free, { kind: 'terminate' })).toBe(true);
    expect(isTaken(free, { kind: 'end' })).toBe(false);
  });

  // [I117]
  it.each<[JsonObject, string]>([
    [{ reason: 'Too dear.' }, ': Too dear.'],
    [{ feedback: 'Too dear.' }, ': Too dear.'],
    [{}, '.'],
  ])('why it is rejected is the error of the node: %j', async (why, said) => {
    const run = await runOnce({
      input: oneAgent(),
      activities: scripted({ turns: [decision({ refund: 10 }, 0.55)] }).activities,
      script: async (handle) => {
        const value = { action: 'reject', ...why };
        await answer(handle, 'think', value, ratificationSchema(undefined, [ANSWER_LIST]));
      },
    });
    expect(payloadsOf(run, 'node.failed')).toMatchObject([
      { error: { code: 'escalation_rejected', message: `A human rejected the decision${said}` } },
    ]);
  });

  it('a change that contains no decision fails the node', async () => {
    const run = await runOnce({
      input: oneAgent(),
      activities: scripted({ turns: [decision({ refund: 10 }, 0.55)] }).activities,
      script: async (handle) => {
        const value = { action: 'edit-accept', answers: {} };
        await answer(handle, 'think', value, ratificationSchema(undefined, [ANSWER_LIST]));
      },
    });
    expect(payloadsOf(run, 'node.completed')).toEqual([]);
    expect(payloadsOf(run, 'node.failed')).toMatchObject([{ error: { code: 'validation_error' } }]);
  });
});

describe('interrupt.md §approval: what goes with one answer goes with no other', () => {
  const schema = approvalSchema(['accept', 'reject', 'edit-accept', 'refine', 'deny']);
  const said = {
    ...{ feedback: 'fine', comment: 'ok', decidedBy: 'ada' },
    decidedAt: '2026-01-02T03:04:05.000Z',
  };
  const refusal = (of: JsonObject, value: JsonValue) => {
    const checked = checkAgainst(of, value);
    return checked.ok ? undefined : checked.errors[0];
  };

  it.each<JsonValue>([
    { action: 'accept', ...said },
    { action: 'reject', ...said },
    { action: 'deny', ...said },
    { action: 'edit-accept', ...said, editedArtifactData: null },
    { action: 'refine', ...said, refineFeedback: { scope: 'whole', text: 'less' } },
    { action: 'refine', feedback: 'less' },
    { action: 'accept', voter: 'bob' },
    ...['accept', 'reject', 'deny', 'refine'].map((action) => ({ action, reason: 'too dear' })),
    { action: 'edit-accept', editedArtifactData: null, reason: 'too dear' },
  ])('is taken: %j', (value) => {
    expect(refusal(schema, value)).toBeUndefined();
  });

  // [I117]
  it.each<[JsonValue, string, RegExp]>([
    [{ action: 'accept', editedArtifactData: { amount: 1 } }, '/editedArtifactData', /permitted/],
    [{ action: 'deny', editedArtifactData: null }, '/editedArtifactData', /permitted/],
    [{ action: 'edit-accept' }, '', /editedArtifactData/],
    [{ action: 'accept', refineFeedback: { scope: 'whole' } }, '/refineFeedback', /permitted/],
    [{ action: 'accept', amount: 3 }, '/amount', /not a known field/],
    [
      { action: 'refine', refineFeedback: { scope: 'whole', more: 1 } },
      '/refineFeedback/more',
      /./,
    ],
  ])('is refused: %j', (value, pointer, message) => {
    expect(refusal(schema, value)).toMatchObject({
      pointer,
      message: expect.stringMatching(message) as string,
    });
  });

  it('a content where none can be changed is no known field', () => {
    const plain = approvalSchema(['accept', 'reject']);
    expect(refusal(plain, { action: 'accept', editedArtifactData: 1 })).toMatchObject({
      ...{ pointer: '/editedArtifactData', message: 'is not a known field' },
    });
  });
});

describe('interrupt.md §approval: what should change', () => {
  it.each<[boolean, JsonValue]>([
    [true, { scope: 'whole', text: 'shorter' }],
    [true, { scope: 'items', itemIds: ['a'], tags: ['tone'] }],
    [false, { scope: 'bogus' }],
    [false, { text: 'shorter' }],
    [false, 'shorter'],
  ])('is taken (%s): %j', (taken, refineFeedback) => {
    const value = { action: 'refine', refineFeedback };
    expect(isTaken(approvalSchema(['accept', 'refine']), value)).toBe(taken);
  });
});
