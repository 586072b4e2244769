// Which answer to a question a run takes (architecture §4, race rules of interrupt.md), decided by the workflow alone.
import { plainRun, START_MS, type PlainRun } from '../support/plain-run.ts';
import { expect, test } from 'vitest';
import { digestOf, indexOfKey } from '../../src/rules/ids.ts';
import { canonicalJson, type JsonObject } from '../../src/rules/json.ts';
import type { ResolveInterruptMessage } from '../../src/rules/messages.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import { approvalGate } from '../../workflows/nodes/approval-gate.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { interrupt } from '../../workflows/interrupts.ts';
import { drainOutbox } from '../../workflows/journal.ts';
import { overlaid } from '../../workflows/overlay.ts';
import { definition, node, runInput } from '../support/definitions.ts';

const LIMIT_MS = 60_000;
const RESOLVED = { status: 'resolved', bodyDigest: 'body-1' };
const schemaDigest = (actions: string[]) => digestOf(canonicalJson(approvalSchema(actions)));

/** A run that asks at the node `gate`, and the answer that it takes. */
function asking(nodeId: string) {
  const gate = node(nodeId, 'core.approvalGate', { config: { timeoutMs: LIMIT_MS } });
  const plain = plainRun(runInput(definition('gate', [gate])));
  const outcome = approvalGate(plain.visit(nodeId)).catch((error: unknown) => error);
  const [suspended] = plain.stated();
  const { interruptId } = suspended?.payload as { interruptId: string };
  const answer: ResolveInterruptMessage = {
    kind: 'resolve-interrupt',
    nodeId,
    interruptId,
    value: { action: 'accept' },
    schemaDigest: schemaDigest(['accept', 'reject']),
    bodyDigest: 'body-1',
    resolvedBy: subjectOf('session', 'default', 'ada'),
  };
  return { plain, outcome, answer };
}

/** Refused, and nothing said of it in the journal. */
function expectRefused(plain: PlainRun, answer: ResolveInterruptMessage, code: string): void {
  expect(plain.send('k-refused', answer)).toBe(code);
  expect(plain.stated()).toEqual([]);
}

test('an answer is taken once, and what it decides is stated in the same breath', () => {
  const { plain, answer } = asking('once');
  expect(plain.send('k-1', answer)).toEqual(RESOLVED);
  expect(plain.stated().map(({ type }) => type)).toEqual([
    'interrupt.resolved',
    'approval.received',
    'node.resumed',
  ]);
  expectRefused(plain, answer, 'interrupt_already_resolved');
});

test('architecture §9: who answers is stated whole', () => {
  const { plain, answer } = asking('whole');
  const resolvedBy = subjectOf('session', 'default', 'ada');
  expect(plain.send('k-1', { ...answer, resolvedBy })).toEqual(RESOLVED);
  const [resolved, received] = plain.stated();
  expect(resolved?.payload).toMatchObject({ resolvedBy });
  expect(received?.payload).toMatchObject({ decidedBy: 'ada' });
});

// [I26]
test('an answer that was checked against another schema is refused', () => {
  const { plain, answer } = asking('schema');
  const other = { ...answer, schemaDigest: schemaDigest(['accept', 'reject', 'refine']) };
  expectRefused(plain, other, 'interrupt_already_resolved');
  expect(plain.send('k-1', answer)).toEqual(RESOLVED);
});

// [I28]
test('an answer to another question of the same node is refused', () => {
  const { plain, answer } = asking('other');
  expectRefused(plain, { ...answer, interruptId: 'int-another' }, 'interrupt_not_found');
});

// [I27]
test('an answer at the end of its time or later is refused, one before it is taken', () => {
  const { plain, answer } = asking('late');
  plain.nowMs = START_MS + LIMIT_MS;
  expectRefused(plain, answer, 'interrupt_expired');
  plain.nowMs = START_MS + LIMIT_MS - 1;
  expect(plain.send('k-1', answer)).toEqual(RESOLVED);
});

test("an answer at the end of its node's time is refused", () => {
  const { plain, answer } = asking('node-time');
  const frame = plain.run.state.frames['node-time'];
  if (frame) frame.deadlineMs = START_MS + 10;
  plain.nowMs = START_MS + 10;
  expectRefused(plain, answer, 'interrupt_expired');
});

test("an answer at the end of the run's time is refused", () => {
  const gate = node('run-time', 'core.approvalGate');
  const plain = plainRun(
    runInput(definition('gate', [gate], [], { settings: { timeout: LIMIT_MS } })),
  );
  void approvalGate(plain.visit('run-time'));
  const { interruptId } = plain.stated()[0]?.payload as { interruptId: string };
  const { answer } = asking('unused');
  plain.nowMs = START_MS + LIMIT_MS;
  plain.stated();
  expectRefused(plain, { ...answer, nodeId: 'run-time', interruptId }, 'interrupt_expired');
});

// [I29]
test('an answer that comes again under its id gets the first outcome and states nothing', () => {
  const { plain, answer } = asking('again');
  const first = plain.send('k-1', answer);
  plain.stated();
  expect(plain.send('k-1', answer)).toEqual(first);
  expect(plain.stated()).toEqual([]);
});

test('nothing is answered in a run that ends', () => {
  const { plain, answer } = asking('ending');
  plain.run.ending = { kind: 'cancelled' };
  expectRefused(plain, answer, 'interrupt_cancelled');
});

// [I30]
test('a gate that nobody answers never grants', async () => {
  const { plain, outcome } = asking('silent');
  plain.nowMs = START_MS + LIMIT_MS;
  plain.waits[0]?.end(false);
  expect(await outcome).toMatchObject({ type: 'interrupt_timeout' });
  expect(plain.stated()).toMatchObject([
    { type: 'interrupt.resolved', payload: { outcome: 'rejected', reason: 'timeout' } },
    { type: 'approval.received', payload: { action: 'timeout' } },
  ]);
});

type Stated = ReturnType<PlainRun['stated']>;

/** What a quorum of three states that is given these answers: they are sent, or read from the record of its source. */
async function statedBy(
  way: 'sent' | 'recorded',
  { at, values }: { readonly at: string; readonly values: readonly JsonObject[] },
): Promise<Stated> {
  const actions = ['accept', 'edit-accept', 'ask'];
  const nodeId = `${at} ${way}`;
  const gate = node(nodeId, 'core.approvalGate', { config: { requiredApprovals: 3, actions } });
  const resolvedBy = subjectOf('session', 'default', 'ada');
  const answers = values.map((value) => ({ value, resolvedBy }));
  const plain = plainRun(runInput(definition('gate', [gate])), () => ({ answers }));
  if (way === 'recorded')
    plain.run.state.overlay = { recordedAnswers: { runId: 'source', length: 1 } };
  void approvalGate(plain.visit(nodeId));
  const { interruptId } = plain.stated()[0]?.payload as { interruptId: string };
  if (way === 'sent')
    for (const [turn, answer] of answers.entries())
      plain.send(`k-${turn}`, {
        ...{ kind: 'resolve-interrupt', nodeId, interruptId, ...answer },
        ...{ schemaDigest: schemaDigest(actions), bodyDigest: `body-${turn}` },
      });
  plain.waits[0]?.end(true);
  await new Promise((resolve) => setImmediate(resolve));
  const text = JSON.stringify(plain.stated());
  return JSON.parse(text.replaceAll(nodeId, at).replaceAll(interruptId, 'int')) as Stated;
}

const VOTED = 'openwop-temporal.voted';
const vote = (voter: string, content: number): JsonObject => ({
  ...{ action: 'edit-accept', voter, editedArtifactData: content },
});
const timesOf = (length: number) => Array.from({ length }, (_, at) => at);

// [I94]
test.each<[string, JsonObject[], string, number]>([
  // Each for a content of its own: no two agree.
  ['voters', timesOf(101).map((at) => vote(`voter-${at}`, at)), VOTED, 100],
  ['votes of one voter', timesOf(21).map((at) => vote('voter-0', at)), VOTED, 20],
  [
    'questions back',
    timesOf(51).map((at) => ({ action: 'ask', feedback: `${at}` })),
    'openwop-temporal.asked-back',
    50,
  ],
])('of %s a record gives no more than people may send', async (name, given, type, most) => {
  const deciding = ['voter-1', 'voter-2', 'voter-3'].map((voter) => vote(voter, -1));
  const asked = { at: name, values: [...given, ...deciding] };
  const stated = await statedBy('recorded', asked);
  expect(stated).toEqual(await statedBy('sent', asked));
  expect(stated.at(-1)?.type).toBe('node.resumed');
  const last = type === VOTED ? deciding.length : 0;
  expect(stated.filter((one) => one.type === type)).toHaveLength(most + last);
});

/** A gate with a quorum of two, in a branch that has heard `before` and goes by a record with `answers`, while it asks that. */
async function seeking(at: string, answers: readonly JsonObject[], before = 0) {
  const actions = ['accept', 'reject', 'ask'];
  const gate = node(at, 'core.approvalGate', { config: { requiredApprovals: 2, actions } });
  let end: (found: object) => void = () => {};
  const found = new Promise<JsonObject>((resolve) => (end = resolve as typeof end));
  const plain = plainRun(runInput(definition('gate', [gate])), (name) =>
    name === 'recordedAnswers' ? (found as unknown as JsonObject) : null,
  );
  const outcome = approvalGate(plain.visit(at));
  const { interruptId } = plain.stated()[0]?.payload as { interruptId: string };
  const resolvedBy = subjectOf('session', 'default', 'ada');
  const send = (voter: string) =>
    plain.send(`k-${voter}`, {
      ...{ kind: 'resolve-interrupt', nodeId: at, interruptId, bodyDigest: `b-${voter}` },
      ...{ value: { action: 'accept', voter }, resolvedBy, schemaDigest: schemaDigest(actions) },
    });
  const open = plain.run.state.interrupts[interruptId];
  if (!open) throw new Error('nothing is asked');
  for (let count = 0; count < before; count++) send(`before-${count}`);
  plain.run.state.overlay = { recordedAnswers: { runId: 'source', length: 1 } };
  if (before > 0) open.heardOfRecord = before;
  plain.waits[0]?.end(true);
  const given = async () => {
    end({ answers: answers.map((value) => ({ value, resolvedBy })) });
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { plain, outcome, open, send, given };
}

const granted = (plain: PlainRun) =>
  plain.stated().flatMap(({ type, payload }) => {
    const { principal } = payload as { principal?: string };
    return type === 'approval.granted' ? [principal] : [];
  });

// [I73]
test('an answer that is sent while the record is asked takes no recorded one its place', async () => {
  const votes = ['a', 'b'].map((voter) => ({ action: 'accept', voter }));
  const { plain, open, send, given } = await seeking('meanwhile', votes);
  send('live');
  await given();
  expect(granted(plain)).toEqual(['live', 'a']);
  expect(open.resolution).toBeDefined();
});

// [I73]
test('an answer of the record that is not taken has its place before those that come later', async () => {
  const asks = timesOf(51).map((at) => ({ action: 'ask', feedback: `${at}` }));
  const { plain, open, send, given } = await seeking('refusing', asks);
  await given();
  expect(open.askedBack).toBe(50);
  send('live');
  expect(granted(plain)).toEqual(['live']);
  expect(open.heard).toBe(52);
});

// [I73]
test('an answer of the record that is not taken has its place before others of the record', async () => {
  const asks = timesOf(51).map((at) => ({ action: 'ask', feedback: `${at}` }));
  const votes = ['a', 'b'].map((voter) => ({ action: 'accept', voter }));
  const { open, given } = await seeking('refusing-amid', [...asks, ...votes]);
  await given();
  expect(open.askedBack).toBe(50);
  const places = drainOutbox().flatMap(({ entry }) =>
    entry.kind === 'emit' && entry.type === VOTED ? [indexOfKey(entry.key)] : [],
  );
  expect(places).toEqual([52, 53]);
  expect(open.heard).toBe(53);
});

// [I73]
test('of a record it is given what it has not heard of that before', async () => {
  const votes = ['before-0', 'b'].map((voter) => ({ action: 'accept', voter }));
  const { plain, open, given } = await seeking('behind', votes, 1);
  await given();
  expect(granted(plain)).toEqual(['before-0', 'b']);
  expect(open.heard).toBe(2);
});

// [I73]
test('a fork that left its source while that asked its record takes none of it where people answer', async () => {
  const votes = ['a', 'b'].map((voter) => ({ action: 'accept', voter }));
  const { plain, send, given } = await seeking('left', votes);
  plain.run.state.overlay = { recordedAnswers: null };
  await given();
  send('live');
  expect(granted(plain)).toEqual(['live']);
});

/** What a question in doubt comes to that a record with one answer is asked about. */
async function doubting(at: string, recordedTools: { runId: string; length: number } | null) {
  const asked: object[] = [];
  const resolvedBy = subjectOf('session', 'default', 'ada');
  const answers = [{ value: { action: 'accept' }, resolvedBy }];
  const plain = plainRun(runInput(definition('gate', [node(at, 'core.noop')])), (_name, about) => {
    asked.push(about);
    return { answers };
  });
  plain.run.state.overlay = { recordedAnswers: { runId: 'source', length: 1 }, recordedTools };
  void interrupt(plain.visit(at), {
    ...{ step: 'call.doubt', kind: 'approval', mayRepeat: true },
    ...{ data: { actions: ['accept', 'reject'] }, resumeSchema: {} },
  });
  plain.waits[0]?.end(true);
  await new Promise((resolve) => setImmediate(resolve));
  const [open] = Object.values(plain.run.state.interrupts);
  return { asked, heard: open?.heard, isAnswered: open?.resolution !== undefined };
}

// [I73]
test('of a word that has a call performed the record is asked as such, and people say it again', async () => {
  const { asked, ...became } = await doubting('doubt', null);
  expect(became).toEqual({ heard: 0, isAnswered: false });
  expect(asked).toMatchObject([{ mayRepeat: true }, { mayRepeat: true, isLeft: true }]);
  const taken = await doubting('tools', { runId: 'source', length: 1 });
  expect(taken).toMatchObject({ heard: 1, isAnswered: true });
});

// [I73]
test('a fork that left its source while that asked its record asks its own', () => {
  const asking = { runId: 'first', length: 1 };
  const own = { runId: 'source', length: 9 };
  const step = { name: 'recordedAnswers', activityId: 'gate/seek', policy: {} as never } as const;
  const asks = (recordedAnswers: typeof own | undefined) => {
    const input = { recordedBy: asking, askedKey: 'asked', interruptId: 'int-1' };
    const request = { step: 'ask.recorded', input: { ...input, question: {} as never } };
    const overlay = recordedAnswers ? { recordedAnswers } : {};
    return overlaid<'recordedAnswers'>(request, { ...step, overlay }).input.recordedBy;
  };
  expect(asks(own)).toEqual(own);
  expect(asks(undefined)).toEqual(asking);
});
