// What a person decides about is what they see: all of it, with nothing hidden and nothing turned around, and a form
// sends back what nobody changed as it was (architecture §11, I104; interrupt.md).
import { expect, it } from 'vitest';
import { EVENT_STORIES } from '../../src/rules/events.ts';
import { renderRunPage, type RunPageModel } from '../../src/pages/index.ts';
import { refundDesk } from '../../src/demo/definition.ts';
import type { JsonObject, JsonValue } from '../../src/rules/json.ts';
import { resumeValueOf } from '../../src/words/answer.ts';
import type { OpenQuestion } from '../../src/words/question.ts';
import { approvalQuestion } from '../../workflows/questions.ts';
import { eventsOf, question, untilQuestion } from './sample-run.ts';

const REVERSED = 'A-\u202e7001';
const SHOWN = String.raw`A-\u202e7001`;
/** The card alone. */
function cardOf(asked: Partial<OpenQuestion>, more: Partial<RunPageModel> = {}): string {
  const model: RunPageModel = {
    snapshot: { runId: 'run-1', workflowId: 'refund-desk', status: 'waiting-approval' },
    events: untilQuestion,
    stories: EVENT_STORIES,
    interrupts: [{ ...question, ...asked }],
    csrfToken: 'csrf-1',
    eventsUrl: '/events',
    answerUrlOf: (nodeId) => `/answers/${nodeId}`,
    stale: false,
    definition: refundDesk,
    ...more,
  };
  return /<section class="card question"[\s\S]*?<\/section>/.exec(renderRunPage(model))?.[0] ?? '';
}
const call = (args: JsonValue): Partial<OpenQuestion> => ({
  kind: 'approval',
  data: {
    artifactType: 'tool-call',
    ...approvalQuestion('a', 'a:pay'),
    artifactData: { toolId: 'a:pay', callId: 'c', arguments: args },
  },
});
const approval = (artifactData: JsonValue, more: JsonObject = {}): Partial<OpenQuestion> => ({
  kind: 'approval',
  data: { title: 'Pay?', artifactData, ...more },
});

it.each<[string, Partial<OpenQuestion>]>([
  ['the arguments of a call', call({ order: REVERSED })],
  ['a value in a list, one in a text of JSON', call([[{ order: REVERSED }]])],
  ['the name of a value', call({ [REVERSED]: 1 })],
  ['what is approved', approval(REVERSED)],
  ['a title', approval(1, { title: REVERSED })],
  ['a description', approval(1, { description: `Order ${REVERSED}` })],
  ['a decision', { data: { ...question.data, decision: { order: REVERSED } } }],
  ['what was asked back', approval(1, { askedBack: [{ by: 'x', text: REVERSED }] })],
  [
    'a turn of a conversation',
    { kind: 'conversation.exchange', data: { turns: [{ from: 'user', content: REVERSED }] } },
  ],
  [
    'a question of an agent',
    { kind: 'clarification', data: { questions: [{ id: 'q', question: REVERSED }] } },
  ],
])('[I104] %s: what turns the order around stands as its escape', (_, asked) => {
  const card = cardOf(asked);
  expect(card).toContain(SHOWN);
  expect(card).not.toContain('\u202e');
});

it('[I104] what is changed has no hidden part either', () => {
  const card = cardOf(approval({ order: REVERSED }, { actions: ['accept', 'edit-accept'] }));
  expect(card).toContain('edit-accept');
  expect(card).not.toContain('\u202e');
});

it('[I104] an event of the timeline, too', () => {
  const events = eventsOf([{ type: 'run.started', payload: {} }]);
  const page = renderRunPage({
    snapshot: { runId: 'run-1', workflowId: REVERSED, status: 'failed' },
    events,
    stories: EVENT_STORIES,
    interrupts: [],
    csrfToken: 'c',
    eventsUrl: '/events',
    answerUrlOf: String,
    stale: false,
  });
  expect(page).toContain(SHOWN);
  expect(page).not.toContain('\u202e');
});

it('[I104] an escape that somebody wrote looks otherwise than one that is shown', () => {
  for (const asked of [call({ order: SHOWN }), approval(1, { title: SHOWN })])
    expect(cardOf(asked)).toContain(String.raw`A-\\u202e7001`);
});

it.each<[string, JsonValue, JsonValue]>([
  ['nothing and null', { to: null }, { to: 'null' }],
  ['a space at its end', { to: 'B-2' }, { to: 'B-2 ' }],
  ['an empty text and two quotes', { to: '' }, { to: '""' }],
])('[I104] two values look otherwise: %s', (_, one, other) => {
  expect(cardOf(call(one))).not.toBe(cardOf(call(other)));
});

it('[I104] what is decided about is shown whole, however long', () => {
  const end = 'and to account B-2';
  const long = `${'x'.repeat(20_000)} ${end}`;
  for (const asked of [call({ text: long }), call([long]), approval(long)])
    expect(cardOf(asked)).toContain(end);
});

/** The fields of the form that changes a value, as a browser would send them back untouched. */
function untouched(card: string): Record<string, string> {
  const form = /<form [^>]*>(?:(?!<\/form>)[\s\S])*value="edit-accept"[\s\S]*?<\/form>/.exec(card);
  const all = form?.[0] ?? '';
  const areas = [...all.matchAll(/<textarea name="([^"]*)"[^>]*>([^<]*)</g)].map(
    ([, name = '', text = '']) => [name, text.replace(/^\n/, '').replaceAll(/\r\n?|\n/g, '\r\n')],
  );
  const lines = [...all.matchAll(/<input name="([^"]*)" value="([^"]*)"/g)].map(
    ([, name = '', text = '']) => [name, text.replaceAll(/[\r\n]/g, '')],
  );
  const plain = (text = ''): string =>
    text.replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&');
  return Object.fromEntries([...areas, ...lines].map(([name, text]) => [plain(name), plain(text)]));
}

it.each<[string, JsonValue]>([
  ['lines', { note: 'a\nb', amount: 1 }],
  ['lines of another system', { note: 'a\r\nb\rc', amount: 1 }],
  ['lines of both', { note: 'a\nb\r\nc', amount: 1 }],
  ['names with line breaks', { 'k\nm': 'x', 'k\r\nm': 'y' }],
  ['a line break first', { note: '\n\nx', all: 'y'.repeat(100) }],
  ['what is hidden', { order: REVERSED, amount: 1.5 }],
  ['a name with a hidden part', { [REVERSED]: 'x' }],
  ['what is hidden, within', { parts: [REVERSED, '\u0000'] }],
  ['an escape as a text', { order: SHOWN, quote: '"' }],
  ['null and nothing', { a: null, b: '' }],
  ['a number as JavaScript writes it', { a: 1e21, b: 1e-7 }],
  ['as much as an answer holds', { note: 'x'.repeat(32 * 1024 - 70) }],
  ['what indented is longer than a field', { parts: Array<number>(16_000).fill(1) }],
  [
    'more members than a form has fields',
    Object.fromEntries(Array.from({ length: 2_500 }, (_, at) => [`m${at}`, 1])),
  ],
])('[I104] a form sends back what nobody changed as it was: %s', (_, value) => {
  const asked = { ...question, ...approval(value, { actions: ['accept', 'edit-accept'] }) };
  const fields = untouched(cardOf(asked));
  expect(Object.keys(fields).length).toBeGreaterThan(0);
  expect(Object.keys(fields).length).toBeLessThan(2_000);
  const sent = resumeValueOf({ action: 'edit-accept', ...fields }, asked);
  expect(sent).toEqual({
    ok: true,
    value: { action: 'edit-accept', editedArtifactData: value },
  });
});

it.each<[string, JsonValue, string]>([
  ['than an answer', { note: 'x'.repeat(32 * 1024) }, ': an answer holds at most 32 KiB.'],
  ['than a field', { note: '\u007f'.repeat(30 * 1024) }, '.'],
])('[I104] what is larger %s has no form to change it, which is said', (_, value, why) => {
  const asked = approval(value, { actions: ['accept', 'edit-accept'] });
  const card = cardOf(asked);
  expect(untouched(card)).toEqual({});
  expect(card).toContain(`<p>This value is too large for a form here${why}</p>`);
  expect(card).toContain('name="action" value="accept"');
});

// [I104]
it.each<[JsonValue, JsonValue]>([
  [{ to: ['a', 'b'] }, { to: 'a, b' }],
  [{ to: ['a', 'b'] }, { to: ['a, b'] }],
  [{ to: ['a'] }, { to: 'a' }],
  [{ n: '12' }, { n: 12 }],
  [{ n: ['1e3'] }, { n: [1e3] }],
  ['12', 12],
])('%j is not shown as %j is', (one, other) => {
  const words = (value: JsonValue) => cardOf(approval(value)).split('<form')[0];
  expect(words(one)).not.toBe(words(other));
});

it('what comes of it where nobody answers is said beside the deadline', () => {
  const never = 'If nobody answers by then, this step fails: silence is never a yes.';
  expect(cardOf({ ...approval(1), deadlineMs: 1 })).toContain(never);
  const other = cardOf({ kind: 'external-event', data: {}, deadlineMs: 1 });
  expect(other).toContain('If nothing has come by then, this step fails.');
});
