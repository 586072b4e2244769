// Two logs held against each other by digests come to what they come to fact by fact (RFC 0054), within named limits.
import { describe, expect, it } from 'vitest';
import { DigestedLog, MAX_DIGESTED_FACTS } from '../../src/runs/digested-log.ts';
import { eventIdOf } from '../../src/rules/ids.ts';
import {
  logDifferences,
  MintedIds,
  renaming,
  renamingBy,
  type ComparedLog,
} from '../../src/rules/log-differences.ts';
import type { SteppedRow } from '../../src/rules/run-steps.ts';

const A = 'run-AAAAAAAAAAAAAAAAAAAAAAAAAAA';
const B = 'run-BBBBBBBBBBBBBBBBBBBBBBBBBBB';
type Told = readonly [key: string, type: string, payload?: object];

function logOf(runId: string, told: readonly Told[]): ComparedLog<SteppedRow> {
  const rows = told.map(([key, type, payload = {}], sequence): SteppedRow => ({
    ...{ sequence, key, type, eventId: eventIdOf(runId, key), nodeId: 'n' },
    ...{ payload: JSON.stringify(payload), timestampMs: sequence },
  }));
  return { runId, rows, isWhole: true };
}

function digested(rows: readonly SteppedRow[], rename = (text: string) => text): DigestedLog {
  const log = new DigestedLog();
  for (const row of rows) log.take({ ...row, payload: rename(row.payload) });
  log.end();
  return log;
}

/** Where both ways find the first difference. */
function firstBy(a: ComparedLog<SteppedRow>, b: ComparedLog<SteppedRow>) {
  const [first] = logDifferences(a, b);
  const [idsA, idsB] = [new MintedIds(A), new MintedIds(B)];
  for (const row of a.rows) idsA.take(row);
  for (const row of b.rows) idsB.take(row);
  const found = digested(a.rows).firstDifference(digested(b.rows, renamingBy(idsA, idsB)));
  return [
    first && { seq: first.seq, a: first.a?.sequence, b: first.b?.sequence },
    found && { seq: found.seq, a: found.a, b: found.b },
  ];
}

const call = (letter: string) => `call-${letter.repeat(27)}`;
const called = (key: string, letter: string): Told => [
  key,
  'agent.toolCalled',
  { callId: call(letter), toolName: 't', argsHash: letter },
];

describe('a log by its digests', () => {
  it.each<[string, readonly Told[], readonly Told[]]>([
    ['nothing', [], []],
    [
      'the same in other ids',
      [called('1', 'a'), called('2', 'c')],
      [called('1', 'b'), called('2', 'd')],
    ],
    [
      'a value',
      [
        ['1', 'x', { v: 1 }],
        ['2', 'x', { v: 1 }],
      ],
      [
        ['1', 'x', { v: 1 }],
        ['2', 'x', { v: 2 }],
      ],
    ],
    ['a type', [['1', 'x']], [['1', 'y']]],
    [
      'a fact that one lacks',
      [
        ['1', 'x'],
        ['2', 'x'],
        ['3', 'x'],
      ],
      [
        ['1', 'x'],
        ['3', 'x'],
      ],
    ],
    [
      'a fact that the other lacks',
      [
        ['1', 'x'],
        ['3', 'x'],
      ],
      [
        ['1', 'x'],
        ['2', 'x'],
        ['3', 'x'],
      ],
    ],
    [
      'an order',
      [
        ['1', 'x'],
        ['2', 'x'],
      ],
      [
        ['2', 'x'],
        ['1', 'x'],
      ],
    ],
    [
      'a stream that is cut otherwise',
      [['n/1/0/i#d0', 'output.chunk', { chunk: 'ab' }]],
      [
        ['n/1/0/i#d0', 'output.chunk', { chunk: 'a' }],
        ['n/1/0/i#d1', 'output.chunk', { chunk: 'bc' }],
      ],
    ],
    [
      'a stream that says otherwise',
      [['n/1/0/i#d0', 'output.chunk', { chunk: 'ab' }]],
      [['n/1/0/i#d0', 'output.chunk', { chunk: 'ac' }]],
    ],
    ['a stream that a replay has none of', [['n/1/0/i#d0', 'output.chunk', { chunk: 'ab' }]], []],
    [
      'pieces that a fact states',
      [['n/1/0/i#d0', 'agent.reasoning.delta', { delta: 'ab' }]],
      [['n/1/0/i#d0', 'agent.reasoning.delta', { delta: 'x' }]],
    ],
  ])('finds the first difference where the facts do: %s', (_what, a, b) => {
    const [byFacts, byDigests] = firstBy(logOf(A, a), logOf(B, b));
    expect(byDigests).toEqual(byFacts);
  });

  it('a piece of a stream mints no id: a replay that has none of it names the same', () => {
    const piece = (letter: string): Told => [
      ...(['n/1/0/i#d0', 'output.chunk', { callId: call(letter), chunk: 'a' }] as const),
    ];
    const [a, b] = [logOf(A, [piece('a'), called('1', 'a')]), logOf(B, [called('1', 'b')])];
    expect(renaming(a, b)(call('b'))).toBe(call('a'));
    expect(firstBy(a, b)).toEqual([undefined, undefined]);
  });

  it('takes no more facts than it holds, and says so', () => {
    const log = new DigestedLog();
    const rowAt = (sequence: number): SteppedRow => ({
      ...{ sequence, key: `k${sequence}`, type: 'x', eventId: 'e', payload: '{}', timestampMs: 0 },
    });
    for (let at = 0; at < MAX_DIGESTED_FACTS; at++) log.take(rowAt(at));
    expect(log.take({ ...rowAt(0), key: 'n/1/0/i#d0', type: 'output.chunk' })).toBe(true);
    expect(log.take(rowAt(MAX_DIGESTED_FACTS))).toBe(false);
    expect(log.facts.size).toBe(MAX_DIGESTED_FACTS);
  });

  it('knows the errors of a step and of its calls by their codes, however long they are', () => {
    const error = { code: 'replay_source_missing', message: 'x'.repeat(10_000) };
    const log = digested(
      logOf(A, [
        ['1', 'node.started', { attempt: 0 }],
        ['2', 'agent.toolReturned', { callId: 'c', toolName: 't', status: 'error', error }],
        ['3', 'node.failed', { error: { code: 'tool_failed' } }],
      ]).rows,
    );
    expect([...log.steps.values()]).toMatchObject([
      { errorCodes: ['tool_failed', 'replay_source_missing'], status: 'failed' },
    ]);
  });
});
