// How a fork has the children of its source: as they were where it leaves, and under which names.
import { describe, expect, it, test } from 'vitest';
import { childForkOf, leavingOf, namesOf, type SourceChild } from '../../src/rules/fork-trees.ts';
import { childRunIdOf } from '../../src/rules/ids.ts';
import type { Batch, RecordedEntry, Recording, Stimulus } from '../../src/rules/recording.ts';
import { livedBy, renamed } from '../../src/rules/recording.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';

const PARENT = 'run-parent';
const CALL = 'call-1';
const CHILD = childRunIdOf(PARENT, CALL, 0);

const entry = (
  key: string,
  timestampMs: number,
  more: Partial<RecordedEntry> = {},
): RecordedEntry => ({
  ...{ key, type: 'log.appended', payload: '{}', timestampMs },
  ...more,
});
const dispatched = {
  type: 'node.dispatched',
  payload: JSON.stringify({ childRunId: CHILD, childWorkflowId: 'w' }),
};
const batch = (atMs: number, position: number, ...stimuli: Stimulus[]): Batch => ({
  ...{ atMs, position, stimuli, began: [] },
});

/** Started, asks for a child, is told of its end, and ends. */
const ENTRIES = [
  entry('run.started', 100),
  entry('began', 110),
  entry('dispatched', 120, dispatched),
  entry('completed', 200),
];
const RECORDING: Recording = livedBy(PARENT, {
  batches: [
    batch(100, 0),
    batch(115, 2),
    batch(190, 3, { kind: 'child-ended', childRunId: CHILD }),
  ],
  entries: ENTRIES,
});

const of = (mode: ForkOf['mode'], fromSeq: number): ForkOf => ({
  ...{ sourceRunId: PARENT, fromSeq, length: ENTRIES.length, mode, clocks: [], generation: 1 },
});
const child = (over: Partial<SourceChild> = {}): SourceChild => ({
  runId: CHILD,
  input: {
    header: {
      ...{ sessionId: 's', correlationId: PARENT, parentRunId: PARENT, causationId: CALL },
      startedBy: { runId: PARENT, key: 'began' },
    },
  },
  isClosed: true,
  timesMs: [118, 130, 150, 180],
  ...over,
});
const forked = (how: ForkOf, one: SourceChild) => childForkOf(leavingOf(how, RECORDING), one);

describe('architecture §6: how a fork has the children of its source', () => {
  // [I79]
  test('what a child did before its parent’s fork leaves is recorded, and nothing of it is done again', () => {
    expect(forked(of('branch', 3), child())).toEqual({ mode: 'branch', fromSeq: 1, length: 4 });
    expect(forked(of('branch', 4), child())).toEqual({ mode: 'replay', fromSeq: 4, length: 4 });
    for (const fromSeq of [0, 2, 4])
      expect(forked(of('replay', fromSeq), child())).toMatchObject({ mode: 'replay', fromSeq: 4 });
  });

  it.each<[string, ForkOf, Partial<SourceChild>, object | undefined]>([
    ['not asked for by then', of('branch', 1), {}, undefined],
    ['asked for, and not begun', of('branch', 2), {}, { mode: 'branch', fromSeq: 0, length: 4 }],
    ['begun later than the record', of('replay', 0), { timesMs: [118] }, { fromSeq: 1 }],
    [
      'open where its parent is',
      of('branch', 4),
      { isClosed: false },
      { mode: 'branch', fromSeq: 4 },
    ],
    ['without any entry', of('branch', 4), { isClosed: false, timesMs: [] }, { fromSeq: 0 }],
    [
      'its end came in the last ms',
      of('branch', 3),
      { timesMs: [118, 119, 120] },
      { mode: 'replay' },
    ],
    [
      'its end came behind',
      of('branch', 3),
      { timesMs: [118, 119, 121] },
      { mode: 'branch', fromSeq: 2 },
    ],
    [
      'by nobody of the record',
      of('replay', 0),
      { input: { header: { sessionId: 's', correlationId: 'c' } } },
      undefined,
    ],
  ])('%s', (_what, how, over, expected) => {
    const found = forked(how, child(over));
    if (expected) expect(found).toMatchObject(expected);
    else expect(found).toBeUndefined();
  });

  it('what the record names as begun, and by which names a fork of it knows the child', () => {
    expect(leavingOf(of('branch', 2), RECORDING).dispatched).toEqual([]);
    const leaving = leavingOf(of('branch', 4), RECORDING);
    expect([leaving.dispatched, [...leaving.ended]]).toEqual([[CHILD], [CHILD]]);
    const own = childRunIdOf('run-fork', CALL, 0);
    expect(namesOf(leaving, child({ runId: own }))).toEqual([own, CHILD]);
  });

  it('who lived a record stays, whoever is given it; of a fork what it lived itself', () => {
    const { batches } = RECORDING;
    expect(renamed(batches, PARENT, 'run-fork').map(({ lived }) => lived)).toEqual([
      ...[PARENT, undefined, undefined],
    ]);
    const left = [...batches, { ...batch(300, 4), leaves: of('branch', 4) }, batch(310, 5)];
    const fork = livedBy('run-fork', { batches: left, entries: [] }, of('branch', 4));
    expect(fork.batches.map(({ lived }) => lived)).toEqual([
      ...[PARENT, undefined, undefined, 'run-fork', undefined],
    ]);
  });
});
