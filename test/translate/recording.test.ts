// Temporal history -> recording (architecture §6): what came to which workflow task.
import { defaultPayloadConverter } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { CARRIER_MEMO_FIELD, CARRIER_METADATA_KEY } from '../../src/rules/journal.ts';
import type { HistoryEvent } from '../../src/ports/history.ts';
import { recordingOf } from '../../src/translate/recording.ts';

const at = (seconds: number) => ({ seconds: seconds as never, nanos: 5_000_000 });
const payloads = (value: unknown) => ({ payloads: [defaultPayloadConverter.toPayload(value)] });

/** Ids and times from the place. */
const historyOf = (...events: HistoryEvent[]): HistoryEvent[] =>
  events.map((event, index) => ({ eventId: (index + 1) as never, eventTime: at(index), ...event }));

const started: HistoryEvent = { workflowTaskStartedEventAttributes: {} };
const completed: HistoryEvent = { workflowTaskCompletedEventAttributes: {} };
const lost: HistoryEvent = { workflowTaskTimedOutEventAttributes: {} };
const signal = (childRunId: string): HistoryEvent => ({
  workflowExecutionSignaledEventAttributes: {
    signalName: 'childEnded',
    input: payloads({ childRunId }),
  },
});

const accepted = (updateId: string, message: object): HistoryEvent => ({
  workflowExecutionUpdateAcceptedEventAttributes: {
    acceptedRequest: {
      meta: { updateId },
      input: { name: 'cancelRun', args: payloads(message) },
    },
  },
});
type Outcome = NonNullable<
  NonNullable<HistoryEvent['workflowExecutionUpdateCompletedEventAttributes']>['outcome']
>;
const SUCCESS: Outcome = { success: payloads({ status: 'resolved' }) };
const FAILURE: Outcome = { failure: { message: 'no' } };
/** Of the Update that was accepted by that event. */
const ended = (acceptedEventId: number, outcome: Outcome): HistoryEvent => ({
  workflowExecutionUpdateCompletedEventAttributes: {
    ...{ acceptedEventId: acceptedEventId as never, outcome },
  },
});

describe('a batch is what one workflow task was given', () => {
  it('what came while a task ran is of the next one; what a lost task was given is given again', () => {
    const history = historyOf(
      ...[started, completed, signal('a'), started, lost],
      ...[signal('b'), started, signal('c'), completed, started, completed],
    );
    const { batches } = recordingOf([history], []);
    expect(batches).toMatchObject([
      { atMs: 5, begins: true, stimuli: [] },
      { atMs: 6_005, stimuli: [{ childRunId: 'a' }, { childRunId: 'b' }] },
      { atMs: 9_005, stimuli: [{ childRunId: 'c' }] },
    ]);
  });

  it('what the run was given since it was forked is no part of it', () => {
    const states = (key: string): HistoryEvent => {
      const entry = { kind: 'emit', key, type: 'run.paused', payload: {} };
      const carrier = defaultPayloadConverter.toPayload({ v: 1, at: [0], entries: [entry] });
      const metadata = { ...carrier.metadata, [CARRIER_METADATA_KEY]: Buffer.from('1') };
      const fields = { [CARRIER_MEMO_FIELD]: { ...carrier, metadata } };
      return { workflowPropertiesModifiedEventAttributes: { upsertedMemo: { fields } } };
    };
    const history = historyOf(
      ...[started, completed, states('one'), signal('a'), started, completed],
      ...[signal('b'), started, completed, states('two'), signal('c'), started, completed],
    );
    const entry = (key: string) => ({ key, type: 'run.paused', payload: '{}', timestampMs: 0 });
    const given = (...keys: string[]) =>
      recordingOf([history], keys.map(entry)).batches.map(({ stimuli }) => stimuli.length);
    expect(given('one', 'two')).toEqual([0, 1, 1, 1]);
    expect(given('one')).toEqual([0, 1]);
  });

  it('a timer is known by its end, a message by the task behind which history notes it', () => {
    const history = historyOf(
      ...[started, completed],
      { timerStartedEventAttributes: { startToFireTimeout: { seconds: 2 as never, nanos: 0 } } },
      { timerFiredEventAttributes: { startedEventId: 3 as never } },
      ...[started, completed, accepted('u1', { cancelledBy: 'me' }), ended(7, SUCCESS)],
    );
    const [, second] = recordingOf([history], []).batches;
    expect(second?.stimuli).toEqual([
      { kind: 'message', update: 'cancelRun', updateId: 'u1', message: { cancelledBy: 'me' } },
      { kind: 'timer', deadlineMs: 2_005 },
    ]);
  });

  // [I73]
  it('a message that the run refused is none that it was given, nor is one that it has not taken yet', () => {
    const said = (updateId: string) => accepted(updateId, { by: updateId });
    const history = historyOf(
      ...[started, completed, said('refused'), ended(3, FAILURE)],
      ...[said('second'), said('first'), ended(6, SUCCESS), ended(5, SUCCESS), said('open')],
      ...[signal('a'), started, completed],
    );
    const { batches } = recordingOf([history], []);
    expect(batches).toMatchObject([
      { stimuli: [{ updateId: 'second' }, { updateId: 'first' }] },
      { stimuli: [{ childRunId: 'a' }] },
    ]);
    // The same in the next segment, whose events have their own ids.
    const next = historyOf(started, completed, said('next'), ended(3, SUCCESS));
    expect(recordingOf([history, next], []).batches.at(-1)?.stimuli).toMatchObject([
      { updateId: 'next' },
    ]);
  });

  it('an activity’s end: its result, its failure with its code, its time', () => {
    const scheduled = (activityId: string): HistoryEvent => ({
      activityTaskScheduledEventAttributes: { activityId },
    });
    const history = historyOf(
      ...[started, completed, scheduled('one'), scheduled('two'), scheduled('three')],
      {
        activityTaskCompletedEventAttributes: {
          scheduledEventId: 3 as never,
          result: payloads({ output: 1, events: [] }),
        },
      },
      {
        activityTaskFailedEventAttributes: {
          scheduledEventId: 4 as never,
          failure: {
            message: 'no',
            applicationFailureInfo: { type: 'forbidden', details: payloads({ why: 'so' }) },
          },
        },
      },
      {
        activityTaskTimedOutEventAttributes: {
          scheduledEventId: 5 as never,
          failure: { timeoutFailureInfo: { timeoutType: 4 } },
        },
      },
      ...[started, completed],
    );
    const { batches } = recordingOf([history], []);
    expect(batches[0]?.began).toEqual(['one', 'two', 'three']);
    expect(batches[1]?.stimuli).toEqual([
      {
        ...{ kind: 'step', activityId: 'one' },
        outcome: { kind: 'completed', result: { output: 1, events: [] } },
      },
      {
        ...{ kind: 'step', activityId: 'two' },
        outcome: { kind: 'failed', code: 'forbidden', message: 'no', details: { why: 'so' } },
      },
      {
        ...{ kind: 'step', activityId: 'three' },
        outcome: { kind: 'timed-out', type: 'HEARTBEAT' },
      },
    ]);
  });
});
