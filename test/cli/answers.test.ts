// `openwop runs answer` at gates with answers of their own: what is shown, what is asked for, and what is sent
// (interrupt.md).
import { Readable } from 'node:stream';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { offeredActions } from '../../src/rules/gate-actions.ts';
import { scriptedHost, type Scripted, type ScriptedHost } from './scripted-host.ts';
import { standingVote } from '../support/votes.ts';

const QUESTIONS = 'GET /v1/host/openwop-temporal/runs/run-1/questions';
const ANSWER = 'POST /v1/runs/run-1/interrupts/gate';
const HOSTILE = 'a\u001b[2Jb\u0007\u202ed\u009be';
const OBEYED = /[\p{Cc}\p{Cf}\p{Cs}]/u;

const question = (more: object = {}): object => ({
  ...{ nodeId: 'gate', interruptId: 'int-1', kind: 'approval', key: 'k' },
  ...{ title: 'Pay?', requestedAt: '2026-01-02T03:04:06.000Z' },
  actions: ['accept', 'reject', 'edit-accept'],
  ...more,
});
const asking = (...questions: object[]): Scripted => ({ body: { questions } });

let host: ScriptedHost;
beforeAll(async () => {
  host = await scriptedHost();
});
afterAll(() => host.close());
const answer = (...args: string[]) => host.run(['runs', 'answer', 'run-1', ...args]);

it('answers to questions where none is asked are refused, and nothing is sent', async () => {
  host.script({ [QUESTIONS]: asking(question()) });
  const { code, err } = await answer('accept', '--answer', 'x=1');
  expect([code, host.asked.length]).toEqual([2, 1]);
  expect(err).toContain('Nothing was sent.');
});

it('an answer is to the question that was read, which is named', async () => {
  host.script({ [QUESTIONS]: asking(question()), [ANSWER]: { body: { status: 'resolved' } } });
  const { code, err } = await answer('accept');
  expect([code, err]).toEqual([0, 'Answers: Pay? (gate, int-1)\n']);
  expect(host.asked.at(-1)?.body).toMatchObject({ interruptId: 'int-1' });
});

it('what comes of it where nobody answers is said beside the deadline', async () => {
  host.script({ [QUESTIONS]: asking(question({ deadline: '2026-01-09T03:04:06.000Z' })) });
  expect((await answer()).out.replaceAll(/\s+/g, ' ')).toContain(
    'Answer until 2026-01-09T03:04:06.000Z. If nobody answers by then, this step fails: silence is never a yes.',
  );
});

it('two answers to one question are refused, and nothing is sent', async () => {
  const questions = [{ id: 'a', question: 'Which?' }];
  host.script({ [QUESTIONS]: asking(question({ kind: 'clarification', questions })) });
  const { code, err } = await answer('--answer', 'a=1', '--answer', 'a=2');
  expect([code, err]).toEqual([2, expect.stringContaining('"a" twice. Nothing was sent.')]);
  expect(host.asked.length).toBe(1);
});

// [I117]
it.each<[string, object, string[], object]>([
  ['of a yes', { kind: 'low-confidence' }, ['accept'], { action: 'accept', feedback: 'So be it.' }],
  [
    'of a change',
    {},
    ['edit-accept', '--value', '1'],
    { action: 'edit-accept', editedArtifactData: 1, feedback: 'So be it.' },
  ],
  [
    'of answers',
    { kind: 'clarification', questions: [{ id: 'a', question: 'Which?' }] },
    ['--answer', 'a=1'],
    { answers: { a: '1' }, feedback: 'So be it.' },
  ],
])('a reason is sent with each answer: %s', async (_, more, args, resumeValue) => {
  host.script({ [QUESTIONS]: asking(question(more)), [ANSWER]: { body: { status: 'resolved' } } });
  expect((await answer(...args, '--reason', 'So be it.')).code).toBe(0);
  expect(host.asked.at(-1)?.body).toMatchObject({ resumeValue });
});

// [I117]
it.each([
  ['--reason', 'Why?'],
  ['--answer', 'a=1'],
])('a whole answer has no %s beside it', async (...beside) => {
  host.script({ [QUESTIONS]: asking(question()) });
  const { code, err } = await answer('--value', '{"action":"accept"}', ...beside);
  expect([code, err, host.asked.length]).toEqual([2, expect.stringContaining(beside[0]), 1]);
});

it('where a value goes is said', async () => {
  host.script({ [QUESTIONS]: asking(question()) });
  const { err } = await answer('accept', '--value', '1');
  expect(err).toContain('--value goes with edit-accept, with close, or alone. Nothing was sent.');
});

it('`edit` is an old name of `edit-accept` here, too', async () => {
  host.script({ [QUESTIONS]: asking(question()), [ANSWER]: { body: { status: 'resolved' } } });
  expect((await answer('edit', '--value', '{"a":1}')).code).toBe(0);
  expect(host.asked.at(-1)?.body).toMatchObject({
    resumeValue: { action: 'edit-accept', editedArtifactData: { a: 1 } },
  });
});

it('the words of a question: its votes, what was asked back, and a command with what the answer needs', async () => {
  const gate = question({
    choices: offeredActions({ actions: ['accept', { action: 'more', effect: 'ask-again' }] }),
    ...{ requiredApprovals: 2, rejectionPolicy: 'majority' },
    votes: [
      standingVote('eve', { action: 'accept' }, { reason: 'It is fair.', comment: HOSTILE }),
      standingVote('bob', { action: 'deny' }, {}),
      standingVote('cyd', { action: 'edit-accept', editedArtifactData: { amount: 5 } }, {}),
    ],
    askedBack: [{ by: HOSTILE, text: 'For whom?' }],
  });
  host.script({ [QUESTIONS]: asking(gate) });
  const { out } = await answer();
  expect(out).toContain('  1 of 2 approvals for one answer, 1 of 2 against\n');
  expect(out).toContain('  Accept: 1 of 2\n');
  expect(out).toMatch(/ {2}eve: It is fair\.: /);
  expect(out).toContain('  Against it: 1 of 2\n  bob: deny\n');
  expect(out).toContain('  edit-accept: 1 of 2\n  {"amount":5}\n  cyd\n');
  expect(out).toContain('asks about it: For whom?\n');
  expect(out.replaceAll('\n', '')).not.toMatch(OBEYED);
  expect(out).toContain("runs answer run-1 more --interrupt int-1 --reason '…'\n");
  expect(out).toMatch(/runs answer run-1 accept --interrupt int-1\n/);
});

it.each<[string, string, string[], object]>([
  ['an answer that asks again wants a text', 'more', ['Why?'], { feedback: 'Why?' }],
  ['an answer that ends may have a reason', 'deny', [''], {}],
  ['so may one that leads on elsewhere', 'defer', ['Later.'], { feedback: 'Later.' }],
  ['one that goes on is asked for nothing', 'accept', [], {}],
])('at a terminal: %s', async (_, action, texts, sent) => {
  const choices = offeredActions({
    actions: [
      'accept',
      { action: 'more', effect: 'ask-again' },
      { action: 'deny', effect: 'end' },
      { action: 'defer', effect: 'route' },
    ],
  });
  host.script({
    [QUESTIONS]: asking(question({ choices })),
    [ANSWER]: { body: { status: 'open' } },
  });
  const at = 1 + choices.findIndex((one) => one.action === action);
  const typed = [String(at), ...texts, 'y'].map((line) => `${line}\n`);
  const { code } = await host.run(['runs', 'answer', 'run-1'], {
    ...{ isAttended: true, input: Readable.from(typed) },
  });
  expect(code).toBe(0);
  expect(host.asked.at(-1)?.body).toEqual({
    resumeValue: { action, ...sent },
    interruptId: 'int-1',
  });
});

// [I117]
it.each<[string, object[], object]>([
  [
    'what it asked is in the log',
    [
      {
        type: 'interrupt.requested',
        nodeId: 'gate',
        payload: { key: 'k', kind: 'approval', data: {} },
      },
    ],
    { action: 'reject', feedback: 'fraud' },
  ],
  ['the log does not say what it asked', [], { action: 'reject', reason: 'fraud' }],
])('to a question that is open no more, a reason is sent as well: %s', async (_, events, sent) => {
  const suspended = { type: 'node.suspended', nodeId: 'gate' };
  host.script({
    [QUESTIONS]: asking(),
    'GET /v1/runs/run-1/events': {
      body: { events: [{ ...suspended, payload: { interruptId: 'int-1', key: 'k' } }, ...events] },
    },
    [ANSWER]: { body: { status: 'resolved' } },
  });
  const { code } = await answer('reject', '--interrupt', 'int-1', '--reason', 'fraud');
  expect(code).toBe(0);
  expect(host.asked.at(-1)?.body).toMatchObject({ resumeValue: sent, interruptId: 'int-1' });
});
