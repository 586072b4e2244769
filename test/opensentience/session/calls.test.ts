// src/opensentience/session/calls.ts: every state of a call meets everything that can happen to it, then its limits, its stream
// and its ids (seed 004 §2.2, §3.1, §4.3, §4.4). What a result means: call-outcomes.test.ts.
import { describe, expect, it } from 'vitest';
import type { CallRequest } from '../../../src/opensentience/session/calls.ts';
import type { Correlation } from '../../../src/opensentience/messages.ts';
import type { ProtocolLimits } from '../../../src/opensentience/limits.ts';
import { Desk, IDS, T0 } from '../../support/opensentience/call-desk.ts';
import { AGENT, CANARY } from '../../support/opensentience/wire.ts';

type CallState =
  'queued' | 'in-flight' | 'canceling' | 'timing out' | 'answered' | 'given up' | 'unknown';
type Happening =
  | 'stream'
  | 'succeeded'
  | 'failed'
  | 'canceled'
  | 'unreadable result'
  | 'error reply'
  | 'cancel_ack'
  | 'cancel'
  | 'timeout'
  | 'cancelMs over'
  | 'drain'
  | 'connection lost';

/** The call is `c`; when it is queued, `first` is in its way. */
function deskIn(state: CallState): Desk {
  const desk = new Desk({ maxInflightRequests: 1 });
  if (state === 'queued') desk.add('first');
  if (state !== 'unknown') desk.add('c', { timeoutMs: 500 });
  if (state === 'canceling' || state === 'given up') desk.calls.cancel('c', T0);
  if (state === 'timing out') desk.calls.tick(T0 + 500);
  if (state === 'given up') desk.calls.tick(T0 + 1_000);
  if (state === 'answered') desk.result('c');
  desk.effects = [];
  return desk;
}

const HAPPENINGS: Record<Happening, (desk: Desk) => void> = {
  stream: (desk) => desk.stream('c', 1),
  succeeded: (desk) => desk.result('c'),
  failed: (desk) =>
    desk.result('c', { status: 'failed', error: { code: 'notes.locked', message: 'locked' } }),
  canceled: (desk) => desk.result('c', { status: 'canceled' }),
  'unreadable result': (desk) => desk.calls.onUnreadableResult({ callId: 'c' }, T0),
  'error reply': (desk) =>
    void desk.calls.onError('m-c', { code: 'protocol.unknown_type', message: '' }, T0),
  cancel_ack: (desk) => desk.ack('c'),
  cancel: (desk) => desk.calls.cancel('c', T0),
  timeout: (desk) => desk.calls.tick(T0 + 501),
  'cancelMs over': (desk) => desk.calls.tick(T0 + 1_500),
  drain: (desk) => desk.calls.dropQueued(),
  'connection lost': (desk) => desk.calls.abandon(T0),
};

const ENDED = {
  cancel: [],
  timeout: [],
  'cancelMs over': [],
  drain: [],
  'connection lost': [],
  'unreadable result': [],
  'error reply': [],
};
const UNKNOWN = ['call.unknown_result'];
const LATE = ['call.late_result'];
const SECOND = ['call.second_result'];
const TABLE: Record<CallState, Record<Happening, readonly string[]>> = {
  queued: {
    stream: ['call.unknown_stream'],
    succeeded: UNKNOWN,
    failed: UNKNOWN,
    canceled: UNKNOWN,
    'unreadable result': [],
    'error reply': [],
    cancel_ack: ['call.unknown_cancel_ack'],
    cancel: ['c cancelled'],
    timeout: ['c tool_timeout'],
    'cancelMs over': ['c tool_timeout'],
    drain: ['c agent_unavailable'],
    'connection lost': ['c agent_unavailable', 'first agent_unavailable sent'],
  },
  'in-flight': {
    stream: ['log: t1'],
    succeeded: ['c ok'],
    failed: ['c tool_failed sent final'],
    canceled: ['c tool_failed sent'],
    'unreadable result': ['c tool_invalid_output sent'],
    'error reply': ['c tool_failed sent'],
    cancel_ack: ['call.unasked_cancel_ack'],
    cancel: ['core.tool.cancel'],
    timeout: ['core.tool.cancel'],
    'cancelMs over': ['core.tool.cancel'],
    drain: [],
    'connection lost': ['c agent_unavailable sent'],
  },
  canceling: {
    stream: ['log: t1'],
    succeeded: ['c ok'],
    failed: ['c tool_failed sent final'],
    canceled: ['c cancelled sent'],
    'unreadable result': ['c tool_invalid_output sent'],
    'error reply': ['c tool_failed sent'],
    cancel_ack: ['call.cancel_ack'],
    cancel: [],
    timeout: [],
    'cancelMs over': ['call.given_up', 'c cancelled sent'],
    drain: [],
    'connection lost': ['c cancelled sent'],
  },
  'timing out': {
    stream: ['log: t1'],
    succeeded: ['c ok'],
    failed: ['c tool_failed sent final'],
    canceled: ['c tool_timeout sent'],
    'unreadable result': ['c tool_invalid_output sent'],
    'error reply': ['c tool_failed sent'],
    cancel_ack: ['call.cancel_ack'],
    cancel: [],
    timeout: [],
    'cancelMs over': ['call.given_up', 'c tool_timeout sent'],
    drain: [],
    'connection lost': ['c tool_timeout sent'],
  },
  answered: {
    ...ENDED,
    stream: ['call.late_stream'],
    succeeded: SECOND,
    failed: SECOND,
    canceled: SECOND,
    cancel_ack: ['call.late_cancel_ack'],
  },
  'given up': {
    ...ENDED,
    stream: ['call.late_stream'],
    succeeded: LATE,
    failed: LATE,
    canceled: LATE,
    cancel_ack: ['call.late_cancel_ack'],
  },
  unknown: {
    ...ENDED,
    stream: ['call.unknown_stream'],
    succeeded: UNKNOWN,
    failed: UNKNOWN,
    canceled: UNKNOWN,
    cancel_ack: ['call.unknown_cancel_ack'],
  },
};

describe('every state of a call meets everything that can happen to it', () => {
  for (const state of Object.keys(TABLE) as CallState[])
    for (const happening of Object.keys(TABLE[state]) as Happening[])
      it(`given ${state}, when ${happening}`, () => {
        const desk = deskIn(state);
        HAPPENINGS[happening](desk);
        expect(desk.said()).toEqual(TABLE[state][happening]);
      });
});

describe('seed 004 §2.2: calls in flight and in the queue', () => {
  it('calls above the limit wait and are sent first in, first out, as places get free', () => {
    const desk = new Desk({ maxInflightRequests: 2 });
    for (const id of ['a', 'b', 'c', 'd']) desk.add(id);
    expect(desk.said()).toEqual(['core.tool.call', 'core.tool.call']);
    desk.result('b');
    expect(desk.calls.views().map(({ callId, state }) => `${callId} ${state}`)).toEqual([
      'a in-flight',
      'c in-flight',
      'd queued',
    ]);
  });
  it('more than the queue takes are refused, and were not sent', () => {
    const desk = new Desk({ maxInflightRequests: 1, maxQueuedRequests: 1 });
    for (const id of ['a', 'b', 'c']) desk.add(id);
    expect(desk.said()).toEqual(['core.tool.call', 'c rate_limited']);
  });
  it('a call that waits for a tool that is no more is told so', () => {
    const desk = new Desk({ maxInflightRequests: 1 });
    desk.add('a');
    desk.add('b');
    desk.add('c', {}, 'other');
    desk.said();
    desk.calls.dropTools([`${AGENT}/echo`]);
    expect(desk.said()).toEqual(['b tool_not_found']);
  });
  it('ended calls are remembered up to a limit', () => {
    const desk = new Desk({ rememberedCalls: 1 });
    for (const id of ['a', 'b']) {
      desk.add(id);
      desk.result(id);
    }
    desk.said();
    desk.result('a');
    desk.result('b');
    expect(desk.said()).toEqual(['call.unknown_result', 'call.second_result']);
  });
});

describe('seed 004 §4.3.1: what is sent', () => {
  const refused: readonly [string, Partial<CallRequest>, Partial<ProtocolLimits>, string][] = [
    ['input that breaks the schema', { input: { n: 'one' } }, {}, 'a tool_invalid_input final'],
    [
      'input above the call’s limit',
      { input: { text: 'x'.repeat(200) }, maxInputBytes: 100 },
      {},
      'a payload_too_large final',
    ],
    [
      'input that fits no frame',
      { input: { text: 'x'.repeat(9_000) } },
      { maxFrameBytes: 10_000 },
      'a payload_too_large final',
    ],
    [
      'an id that fits no frame',
      { correlationId: 'x'.repeat(9_000) },
      { maxFrameBytes: 10_000 },
      'a payload_too_large final',
    ],
    ['a tool that is not declared', { toolId: `${AGENT}/nothing` }, {}, 'a tool_not_found'],
  ];
  for (const [what, request, limits, expected] of refused)
    it(`${what} is refused before anything is sent`, () => {
      const desk = new Desk(limits);
      desk.add('a', request);
      expect(desk.said()).toEqual([expected]);
    });
  it('the time that a call waited is not given twice: timeout_ms is what is left', () => {
    const desk = new Desk({ maxInflightRequests: 1 });
    desk.add('a');
    desk.add('b', { timeoutMs: 1_000 });
    desk.effects = [];
    desk.result('a');
    const sent = desk.effects.find((effect) => effect.kind === 'send');
    expect(sent).toMatchObject({ message: { payload: { call_id: 'b', timeout_ms: 995 } } });
  });
});

describe('seed 004 §4.3.2: streams', () => {
  it('seq goes from 1 by one; repeats are dropped, gaps noted, what comes too late is a repeat', () => {
    const desk = new Desk();
    desk.add('a');
    desk.said();
    for (const seq of [1, 1, 2, 5, 3, 6]) desk.stream('a', seq);
    expect(desk.said()).toEqual([
      'log: t1',
      'stream.repeat',
      'log: t2',
      'stream.gap',
      'log: t5',
      'stream.repeat',
      'log: t6',
    ]);
  });
  it('a stream that does not begin with 1 has a gap', () => {
    const desk = new Desk();
    desk.add('a');
    desk.said();
    desk.stream('a', 2);
    expect(desk.said()).toEqual(['stream.gap', 'log: t2']);
  });
  it('nothing is taken after done, and the result still is', () => {
    const desk = new Desk();
    desk.add('a');
    desk.said();
    desk.stream('a', 1, { done: true });
    desk.stream('a', 2);
    desk.result('a');
    expect(desk.said()).toEqual(['log: t1', 'stream.after_done', 'a ok']);
  });
  it('a stream is bounded in messages and in bytes; what follows is dropped and noted once', () => {
    for (const limits of [{ maxStreamMessages: 2 }, { maxStreamBytes: 4 }]) {
      const desk = new Desk(limits);
      desk.add('a');
      desk.said();
      for (const seq of [1, 2, 3, 4, 5]) desk.stream('a', seq);
      expect(desk.said()).toEqual(['log: t1', 'log: t2', 'stream.too_long']);
    }
  });
  it('[I103] a partial result that cannot be kept exactly is dropped by itself', () => {
    const desk = new Desk();
    desk.add('a');
    desk.said();
    const json = { order: NaN };
    desk.stream('a', 1, { channel: 'partial_result', data: { json } });
    desk.stream('a', 2, { channel: 'partial_result', data: { json: { order: '1' } } });
    expect(desk.said()).toEqual(['stream.inexact', 'partial_result: {"order":"1"}']);
  });
  it('§7.2: texts and partial results are redacted', () => {
    const desk = new Desk();
    desk.add('a');
    desk.said();
    desk.stream('a', 1, { data: { text: `key ${CANARY}` } });
    desk.stream('a', 2, { channel: 'partial_result', data: { json: { key: CANARY } } });
    expect(desk.said()).toEqual([
      'log: key [REDACTED:canary]',
      'partial_result: {"key":"[REDACTED:canary]"}',
    ]);
  });
});

describe('seed 004 §3.1: request_id, correlation_id and causation_id are echoed', () => {
  const wrong: readonly [string, Correlation, string[]][] = [
    ['none', {}, ['request_id', 'correlation_id', 'causation_id']],
    ['another request', { ...IDS, request_id: 'other' }, ['request_id']],
    ['no causation', { request_id: 'request-1', correlation_id: 'run-1' }, ['causation_id']],
  ];
  for (const [what, ids, fields] of wrong)
    it(`${what}: noted once, and call_id decides`, () => {
      const desk = new Desk();
      desk.add('a');
      desk.effects = [];
      desk.stream('a', 1, {}, ids);
      desk.result('a', {}, ids);
      const notes = desk.effects.filter((effect) => effect.kind === 'audit');
      expect(notes).toEqual([
        { kind: 'audit', what: 'call.correlation_mismatch', details: { callId: 'a', fields } },
      ]);
      expect(desk.said()).toContain('a ok');
    });
});

describe('metrics', () => {
  it('each ending is counted once, by tool', () => {
    const desk = new Desk();
    for (const id of ['a', 'b', 'c', 'd', 'e']) desk.add(id);
    desk.add('o', {}, 'other');
    desk.result('a');
    desk.result('a');
    desk.result('b', { status: 'failed' });
    desk.calls.cancel('c', T0);
    desk.result('c', { status: 'canceled' });
    desk.calls.abandon(T0 + 20);
    expect(desk.calls.metrics()).toEqual([
      {
        toolId: `${AGENT}/echo`,
        calls: 5,
        succeeded: 1,
        failed: 1,
        canceled: 1,
        unanswered: 2,
        totalMs: 55,
        maxMs: 20,
      },
      {
        toolId: `${AGENT}/other`,
        calls: 1,
        succeeded: 0,
        failed: 0,
        canceled: 0,
        unanswered: 1,
        totalMs: 20,
        maxMs: 20,
      },
    ]);
  });
});
