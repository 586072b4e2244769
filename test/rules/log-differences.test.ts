// Two logs, fact by fact (RFC 0054): what counts as the same, what does not, and what may still come.
import { describe, expect, it } from 'vitest';
import { eventIdOf } from '../../src/rules/ids.ts';
import {
  logDifferences,
  type ComparedLog,
  type ComparedRow,
} from '../../src/rules/log-differences.ts';

const A = 'run-AAAAAAAAAAAAAAAAAAAAAAAAAAA';
const B = 'run-BBBBBBBBBBBBBBBBBBBBBBBBBBB';
const id = (kind: string, letter: string): string => `${kind}-${letter.repeat(27)}`;

type Told = readonly [key: string, type: string, payload?: object, nodeId?: string];

function logOf(runId: string, told: readonly Told[], isWhole = true): ComparedLog {
  const rows = told.map(([key, type, payload = {}, nodeId], sequence): ComparedRow => ({
    ...{ sequence, key, type, eventId: eventIdOf(runId, key) },
    ...(nodeId === undefined ? {} : { nodeId }),
    payload: JSON.stringify(payload),
  }));
  return { runId, rows, isWhole };
}

const told = (a: ComparedLog, b: ComparedLog) =>
  logDifferences(a, b).map(({ seq, a: one, b: other }) => [seq, one?.key, other?.key]);
const between = (a: readonly Told[], b: readonly Told[]) => told(logOf(A, a), logOf(B, b));

const called = (callId: string, more: object = {}): Told => [
  'called',
  'agent.toolCalled',
  { agentId: 'x', toolName: 't', callId, ...more },
];

describe('RFC 0054: the same fact, whatever a run mints and a clock shows', () => {
  const same: readonly [string, Told, Told][] = [
    ['ids of calls', called(id('call', 'a')), called(id('call', 'b'))],
    [
      'digests of arguments, which stand beside them',
      called(id('call', 'a'), { argsHash: 'x' }),
      called(id('call', 'a'), { argsHash: 'y' }),
    ],
    [
      "the run's own id, wherever it stands",
      ['k', 'channel.written', { value: { messageId: `${A}:0:user` }, writtenAt: '2026' }],
      ['k', 'channel.written', { value: { messageId: `${B}:0:user` }, writtenAt: '2027' }],
    ],
    [
      'when a message was said',
      ['k', 'channel.written', { value: { messageId: 'm', ts: 1 } }],
      ['k', 'channel.written', { value: { messageId: 'm', ts: 2 } }],
    ],
    [
      'ids of events',
      ['k', 'replay.diverged', { originalEventId: eventIdOf(A, 'k') }],
      ['k', 'replay.diverged', { originalEventId: eventIdOf(B, 'k') }],
    ],
    [
      'how long it took',
      ['k', 'agent.toolReturned', { status: 'ok', durationMs: 1 }],
      ['k', 'agent.toolReturned', { status: 'ok', durationMs: 2 }],
    ],
    [
      "what a model's use came to",
      ['k', 'provider.usage', { model: 'm', inputTokens: 1, costEstimateUsd: 1 }],
      ['k', 'provider.usage', { model: 'm', inputTokens: 2 }],
    ],
    ['the order of members', ['k', 'x', { a: 1, b: 2 }], ['k', 'x', { b: 2, a: 1 }]],
  ];
  it.each(same)('%s', (_what, a, b) => {
    expect(between([a], [b])).toEqual([]);
  });

  it('an id that is minted by one fact is that of another fact no more', () => {
    const asks = (callId: string): Told => ['asks', 'interrupt.requested', { data: { callId } }];
    const [a1, a2, b1, b2] = ['a', 'c', 'b', 'd'].map((letter) => id('call', letter));
    const calls = (first = '', second = ''): Told[] => [
      called(first),
      ['called-again', 'agent.toolCalled', { callId: second }],
    ];
    expect(between([...calls(a1, a2), asks(a1 ?? '')], [...calls(b1, b2), asks(b1 ?? '')])).toEqual(
      [],
    );
    expect(between([...calls(a1, a2), asks(a1 ?? '')], [...calls(b1, b2), asks(b2 ?? '')])).toEqual(
      [[2, 'asks', 'asks']],
    );
  });

  it("a run's own id, whatever it looks like", () => {
    const said = (runId: string) => logOf(runId, [['k', 'x', { text: `of ${runId}.` }]]);
    expect(logDifferences(said('first'), said('second'))).toEqual([]);
  });

  it('nor does an id become that of a fact which names it later', () => {
    const names = (of: string, callId: string): Told => [of, 'agent.toolReturned', { callId }];
    const [a1, a2, b1, b2] = ['a', 'c', 'b', 'd'].map((letter) => id('call', letter));
    const both = (first = '', second = '', third = ''): Told[] => [
      names('1', first),
      names('2', second),
      names('3', third),
    ];
    expect(between(both(a1, a2, a1), both(b1, b2, b1))).toEqual([]);
    expect(between(both(a1, a2, a1), both(b1, b2, b2))).toEqual([[2, '3', '3']]);
  });

  const other: readonly [string, Told, Told][] = [
    ['a value', ['k', 'x', { a: 1 }], ['k', 'x', { a: 2 }]],
    ['a type', ['k', 'x', {}], ['k', 'y', {}]],
    ['a node', ['k', 'x', {}, 'n'], ['k', 'x', {}, 'm']],
    ['the model', ['k', 'provider.usage', { model: 'm' }], ['k', 'provider.usage', { model: 'n' }]],
    [
      'an id that somebody gave',
      ['k', 'run.started', { inputs: { of: id('run', 'x') } }],
      ['k', 'run.started', { inputs: { of: id('run', 'y') } }],
    ],
  ];
  it.each(other)('but %s counts', (_what, a, b) => {
    expect(between([a], [b])).toEqual([[0, 'k', 'k']]);
  });
});

describe('RFC 0054: aligned by key', () => {
  const steps = (...keys: string[]): Told[] => keys.map((key) => [key, 'x', {}, 'n']);

  it('a log and itself have no differences', () => {
    const log = logOf(A, steps('1', '2', '3'));
    expect(logDifferences(log, log)).toEqual([]);
  });

  it('another order alone is no difference: branches are told as they come', () => {
    expect(between(steps('1', '2', '3'), steps('1', '3', '2'))).toEqual([]);
  });

  it('what only one has stands where it stands there, in the order of both', () => {
    expect(between(steps('1', '2', '4', '5'), steps('1', '3', '5', '6'))).toEqual([
      [1, '2', undefined],
      [1, undefined, '3'],
      [2, '4', undefined],
      [3, undefined, '6'],
    ]);
  });

  it('what a run under way has not stated yet is no difference, unless its node has gone on', () => {
    const whole: Told[] = [
      ['start', 'x'],
      ['n1', 'x', {}, 'n'],
      ['m1', 'x', {}, 'm'],
      ['n2', 'x', {}, 'n'],
      ['m2', 'x', {}, 'm'],
      ['end', 'x'],
    ];
    const part = (...keys: string[]) =>
      logOf(
        B,
        whole.filter(([key]) => keys.includes(key)),
        false,
      );
    expect(told(logOf(A, whole), part('start', 'n1', 'n2'))).toEqual([]);
    expect(told(part('start', 'n1', 'n2'), logOf(A, whole))).toEqual([]);
    expect(told(logOf(A, whole), part('start', 'n2'))).toEqual([[1, 'n1', undefined]]);
    expect(told(logOf(A, whole), part('start', 'm2'))).toEqual([[2, 'm1', undefined]]);
    // What it has and the other one lacks is one, however far it is.
    const more = logOf(B, [...whole.slice(0, 2), ['n9', 'x', {}, 'n']], false);
    expect(told(logOf(A, whole), more)).toEqual([[2, undefined, 'n9']]);
  });
});

describe('replay.md: how a stream was cut does not count', () => {
  const think = (...pieces: string[]): Told[] =>
    pieces.map((delta, k) => [`n/1#d${k}`, 'agent.reasoning.delta', { delta, sequence: k }]);
  const tell = (...pieces: string[]): Told[] =>
    pieces.map((chunk, k) => [`n/1#d${k}`, 'output.chunk', { chunk, channel: 'tool.out' }]);

  it('what a model thought is told by what closes it', () => {
    expect(between(think('a', 'b'), think('ab'))).toEqual([]);
    expect(between(think('a', 'b'), [])).toEqual([]);
  });

  it('of what a tool told while it worked the text counts, as far as both have it', () => {
    expect(between(tell('a', 'b'), tell('ab'))).toEqual([]);
    expect(between(tell('a', 'b'), tell('a'))).toEqual([]);
    expect(between(tell('a', 'b'), [])).toEqual([]);
    expect(between([['k', 'x'], ...tell('a', 'b')], [['k', 'x'], ...tell('ac')])).toEqual([
      [1, 'n/1#d0', 'n/1#d0'],
    ]);
    expect(between(tell(`in ${A}`), tell(`in ${B}`))).toEqual([]);
  });

  it('the answer of an agent is stated whole, and counts', () => {
    const answer = (chunk: string): Told => ['answer', 'output.chunk', { chunk, isLast: true }];
    expect(between([answer('yes')], [answer('no')])).toEqual([[0, 'answer', 'answer']]);
  });
});
