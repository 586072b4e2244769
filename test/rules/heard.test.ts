// What a run heard of its questions (architecture §6): each answer once, in the order in which it was heard.
import { describe, expect, it } from 'vitest';
import { answersHeard } from '../../src/rules/heard.ts';
import type { JsonValue } from '../../src/rules/json.ts';
import { DAY_MS } from '../../src/rules/limits.ts';
import { MESSAGES } from '../../src/rules/messages.ts';
import { answersTo } from '../../src/rules/recorded-answers.ts';
import {
  givenOf,
  type Batch,
  type RecordedEntry,
  type Stimulus,
} from '../../src/rules/recording.ts';
import { emissionKey } from '../../src/rules/ids.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import type { Overlay } from '../../src/rules/overlay.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';

const resolvedBy = subjectOf('session', 'default', 'ada');

const answer = (value: JsonValue, interruptId = 'int-1') => ({ interruptId, value, resolvedBy });
const says = (updateId: string, value: JsonValue = updateId): Stimulus => ({
  ...{ kind: 'message', update: MESSAGES['resolve-interrupt'].update, updateId },
  message: answer(value),
});
const batch = (stimuli: readonly Stimulus[], more: Partial<Batch> = {}): Batch => ({
  ...{ atMs: 0, position: 0, began: [], stimuli },
  ...more,
});
/** The whole record is read, each time it is asked. */
const reads = (...values: JsonValue[]): Extract<Stimulus, { kind: 'step' }> => ({
  ...{ kind: 'step', activityId: 'gate/seek' },
  outcome: {
    kind: 'completed',
    result: {
      output: {
        interruptId: 'int-1',
        answers: values.map((value) => ({ value, resolvedBy })) as unknown as JsonValue,
      },
      events: [],
    },
  },
});
const of = (runId: string, more: Overlay = {}): ForkOf => ({
  ...{ sourceRunId: runId, fromSeq: 1, length: 9, mode: 'branch', generation: 1, clocks: [] },
  overlay: { recordedAnswers: { runId, length: 9 }, ...more },
});
const valuesIn = (...batches: Batch[]) => answersTo('int-1', batches).map(({ value }) => value);

describe('an answer is heard once', () => {
  // [I73]
  it('also where it came again in another segment, under its id', () => {
    const again = batch([says('a'), says('b')], { begins: true });
    expect(valuesIn(batch([says('a')]), again)).toEqual(['a', 'b']);
    expect(answersHeard([batch([says('a')]), again]).map(({ place }) => place)).toEqual([1, 2]);
  });

  it('whoever repeats it when nothing holds its id any more says it again', () => {
    const later = (atMs: number) =>
      valuesIn(batch([says('a')]), batch([says('b'), says('a')], { atMs }));
    expect(later(DAY_MS - 1)).toEqual(['a', 'b']);
    expect(later(DAY_MS)).toEqual(['a', 'b', 'a']);
    const many = Array.from({ length: 200 }, (_, index) => says(`more-${index}`));
    expect(valuesIn(batch([says('a'), ...many, says('a')]))).toHaveLength(202);
    expect(valuesIn(batch([says('a'), ...many.slice(1), says('a')]))).toHaveLength(200);
  });

  it('what a fork hears under an id of its source is another answer', () => {
    const left = batch([says('a', 'its own')], { leaves: of('source', { recordedAnswers: null }) });
    expect(valuesIn(batch([says('a')]), left)).toEqual(['a', 'its own']);
  });

  // [I73]
  it('also where the run reads it in the record that had told it before', () => {
    const own = [batch([says('live')], { leaves: of('source') }), batch([reads('a', 'b')])];
    expect(valuesIn(batch([says('a')]), ...own)).toEqual(['a', 'live', 'b']);
  });

  it('in the place of one of the record stands what an overlay answers', () => {
    const message = { ...answer('other'), kind: 'resolve-interrupt' as const };
    const told = { nodeId: 'gate', schemaDigest: 'd', bodyDigest: 'b' };
    const leaves = of('source', { answer: { kind: 'message', message: { ...message, ...told } } });
    const batches = [batch([says('a')]), batch([], { leaves }), batch([reads('a', 'b', 'c')])];
    expect(valuesIn(...batches)).toEqual(['a', 'other', 'c']);
  });

  it('a fork whose source went by the same record goes on with what is left of it', () => {
    const [one, other] = [of('first'), of('first')];
    const batches = [batch([says('a')], {}), batch([says('live')], { leaves: one })];
    const again = [batch([], { leaves: other }), batch([reads('a', 'b')])];
    expect(valuesIn(...batches, ...again)).toEqual(['a', 'live', 'b']);
    const nearest = [batch([], { leaves: of('second') }), batch([reads('a', 'live', 'b')])];
    expect(valuesIn(...batches, ...nearest)).toEqual(['a', 'live', 'b']);
  });

  // [I73]
  it('a fork by the same record asks it again after each that it leaves, and each answer counts once', () => {
    const [one, other] = [of('first'), of('first')];
    const batches = [batch([], { leaves: one }), batch([reads('a')])];
    const again = [batch([says('live')], { leaves: other }), batch([reads('a', 'b')])];
    expect(valuesIn(...batches, ...again)).toEqual(['a', 'live', 'b']);
  });

  // [I73]
  it('but for a word of the record that has a call performed, which the fork left to people', () => {
    const [accept, reject] = [{ action: 'accept' }, { action: 'reject' }];
    const { outcome } = reads(reject, accept, reject);
    const { result } = outcome as Extract<typeof outcome, { kind: 'completed' }>;
    const output = { ...(result.output as object), mayRepeat: true };
    const read: Stimulus = {
      ...reads(),
      outcome: { kind: 'completed', result: { ...result, output } },
    };
    const heard = (recordedTools: Overlay['recordedTools']) =>
      valuesIn(
        batch([], { leaves: of('first', { recordedTools }) }),
        batch([read]),
        batch([says('live')]),
      );
    expect(heard(null)).toEqual([reject, 'live']);
    expect(heard({ runId: 'first', length: 9 })).toEqual([reject, accept, reject, 'live']);
  });

  it('a fork that goes by people takes nothing that a step has read for its source', () => {
    const leaves = [of('source'), of('fork', { recordedAnswers: null })];
    const batches = leaves.map((one) => batch([], { leaves: one }));
    expect(valuesIn(...batches, batch([reads('a')]))).toEqual([]);
  });
});

// [I73]
it('a branch is given the votes that the log tells before it, whatever was sent twice', () => {
  const tuple = { nodeId: 'gate', visit: 1, attempt: 0, step: 'ask' };
  const entry = (key: string, type: string, more: Partial<RecordedEntry> = {}): RecordedEntry => ({
    ...{ key, type, payload: JSON.stringify({ interruptId: 'int-1' }), timestampMs: 0, ...more },
  });
  const vote = (place: number) =>
    entry(emissionKey('openwop-temporal.voted', tuple, place), 'openwop-temporal.voted', {
      causedBy: 'asked',
    });
  const entries = [
    ...[entry('asked', 'node.suspended'), vote(1), vote(2), entry('end', 'interrupt.resolved')],
  ];
  const batches = [
    batch([], { position: 0 }),
    batch([says('a')], { position: 1 }),
    batch([says('a'), says('b'), says('c')], { position: 2 }),
  ];
  const given = givenOf({ ...of('source'), fromSeq: 3 }, { batches, entries });
  const ids = given.batches.flatMap(({ stimuli }) =>
    stimuli.map((it) => (it.kind === 'message' ? it.updateId : '')),
  );
  expect(ids.slice(0, 1)).toEqual(['a']);
  expect(ids).toContain('b');
  expect(ids).not.toContain('c');
});
