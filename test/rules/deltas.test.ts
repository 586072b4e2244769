// Live deltas, their rows and their compact record (architecture §3.5): what is recorded tells the same bytes.
import { describe, expect, it } from 'vitest';
import { recordDeltas } from '../../activities/recorded-deltas.ts';
import {
  deltaPayload,
  expandDeltas,
  isToolChannel,
  readDelta,
  toolChannel,
  type DeltaForm,
  type DeltaPiece,
} from '../../src/rules/deltas.ts';
import { deltaKey, eventIdOf } from '../../src/rules/ids.ts';
import type { LogRow } from '../../src/ports/log.ts';

const RUN = 'run-1';
const ACTIVITY = 'n/1/0/i0.t0.c0.call';

interface Case {
  readonly name: string;
  readonly type: string;
  readonly nodeId?: string;
  readonly form: DeltaForm;
  readonly pieces: readonly DeltaPiece[];
  /** Of the rows: dense, or with what other activities wrote between them. */
  readonly sequences: readonly number[];
  readonly recorded: object;
}

const REASONING = { type: 'agent.reasoning.delta', nodeId: 'n' };
const PROGRESS = { type: 'output.chunk', nodeId: 'n' };
const toolForm: DeltaForm = {
  base: { nodeId: 'n', runId: RUN, isLast: false, callId: 'c', toolId: 'a/t' },
  field: 'chunk',
};
const out = (text: string): DeltaPiece => ({ text, channel: 'tool.stdout' });
const err = (text: string): DeltaPiece => ({ text, channel: 'tool.stderr' });

const CASES: readonly Case[] = [
  {
    name: 'reasoning: neither field nor channels',
    ...REASONING,
    form: { base: { agentId: 'a', verbosity: 'full' } },
    pieces: [{ text: 'I ' }, { text: 'think' }],
    sequences: [4, 5],
    recorded: { base: { agentId: 'a', verbosity: 'full' }, cuts: [2, 7], sequences: [[4, 2]] },
  },
  {
    name: 'one channel of a tool',
    ...PROGRESS,
    form: toolForm,
    pieces: [out('a'), out('b')],
    sequences: [7, 9],
    recorded: {
      field: 'chunk',
      channels: [['tool.stdout', 2]],
      text: 'ab',
      sequences: [
        [7, 1],
        [9, 1],
      ],
    },
  },
  {
    name: 'channels that alternate',
    ...PROGRESS,
    form: toolForm,
    pieces: [out('1'), out('2'), err('e'), out('3')],
    sequences: [0, 1, 2, 3],
    recorded: {
      channels: [
        ['tool.stdout', 2],
        ['tool.stderr', 1],
        ['tool.stdout', 1],
      ],
      cuts: [1, 2, 3, 4],
    },
  },
  {
    name: 'a channel with the name of a property of objects',
    ...PROGRESS,
    form: toolForm,
    pieces: [{ text: 'x', channel: 'tool.__proto__' }],
    sequences: [3],
    recorded: { channels: [['tool.__proto__', 1]] },
  },
  {
    name: 'halves of a character on either side of a cut, controls and quotes',
    ...PROGRESS,
    form: toolForm,
    pieces: [out('\ud83d'), err('\ude00'), out('\u0000\u001b[1m"\\\u2028')],
    sequences: [0, 1, 2],
    recorded: { cuts: [1, 2, 10] },
  },
];

function rowsOf({ form, pieces, sequences, name: _, recorded: __, ...row }: Case): LogRow[] {
  return pieces.map((piece, k) => {
    const key = deltaKey(ACTIVITY, k);
    const payload = deltaPayload(form, piece, k);
    const sequence = sequences[k] ?? -1;
    return {
      runId: RUN,
      eventId: eventIdOf(RUN, key),
      key,
      ...row,
      payload,
      sequence,
      timestampMs: 1_000 + 7 * k,
    };
  });
}

describe('architecture §3.5 a block of deltas', () => {
  it.each(CASES)('$name: recorded compactly', (given) => {
    expect(recordDeltas(ACTIVITY, rowsOf(given))).toMatchObject(given.recorded);
  });

  it.each(CASES)('$name: rebuilt byte for byte, also from JSON', (given) => {
    const rows = rowsOf(given);
    const recorded = JSON.parse(JSON.stringify(recordDeltas(ACTIVITY, rows))) as NonNullable<
      ReturnType<typeof recordDeltas>
    >;
    expect(expandDeltas(RUN, recorded).map((delta) => ({ runId: RUN, ...delta }))).toEqual(rows);
  });

  it.each(CASES)('$name: a payload is read as it was joined', ({ type, form, pieces }) => {
    const read = pieces.map((piece, k) => readDelta(type, deltaPayload(form, piece, k)));
    expect(read).toEqual(pieces.map((piece) => ({ form, piece })));
  });

  it('a recording of reasoning is what it always was, key by key', () => {
    const [reasoning] = CASES as [Case];
    expect(JSON.stringify(recordDeltas(ACTIVITY, rowsOf(reasoning)))).toBe(
      '{"activityId":"n/1/0/i0.t0.c0.call","type":"agent.reasoning.delta","nodeId":"n",' +
        '"base":{"agentId":"a","verbosity":"full"},"text":"I think","cuts":[2,7],"sequences":[[4,2]],"times":[1000,7]}',
    );
    expect(rowsOf(reasoning)[1]?.payload).toBe(
      '{"agentId":"a","verbosity":"full","delta":"think","sequence":1}',
    );
  });

  it('a block without deltas has no record', () => {
    expect(recordDeltas(ACTIVITY, [])).toBeUndefined();
  });
});

it.each([
  [toolChannel('stdout'), true],
  ['tool.', true],
  ['tool', false],
  ['answer', false],
  [undefined, false],
  [7, false],
])('channel %j is a tool’s: %j', (channel, expected) => {
  expect(isToolChannel(channel)).toBe(expected);
});
