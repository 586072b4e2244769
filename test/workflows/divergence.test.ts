// replay.md §Divergence: what a fork states otherwise than its source is said at once, with both sides, and ends it. The
// record is changed here, as if other code had made it.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventIdOf } from '../../src/rules/ids.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { RecordedEntry } from '../../src/rules/recording.ts';
import { recordingOf } from '../../src/translate/recording.ts';
import { playCase, playFork, type CaseEnd } from '../support/model/case.ts';
import { ACTIVITY_NAMES } from '../support/model/behaviours.ts';
import { openIsolate, type Isolate } from '../support/model/isolate.ts';

/** A run of several nodes without children. */
const SEED = 'fork-3';
const SOURCE = `run-${SEED}`;
const FORK = `fork-${SEED}`;

let isolate: Isolate;
let source: CaseEnd;
/** Where the first node ends. */
let at: number;
beforeAll(async () => {
  isolate = await openIsolate(ACTIVITY_NAMES);
  source = await playCase(isolate, SEED);
  at = source.rows.findIndex(({ type }) => type === 'node.completed' || type === 'node.failed');
});
afterAll(() => isolate.close());

/** The end of a replay whose record has these entries in the place of its own. */
async function replayed(entries: readonly RecordedEntry[]): Promise<JsonObject[]> {
  const { batches } = recordingOf(source.histories, source.rows);
  const { rows } = await playFork(isolate, {
    ...{ seed: SEED, source },
    fork: { sourceRunId: SOURCE, fromSeq: 0, length: entries.length, mode: 'replay' },
    recording: { batches, entries },
  });
  const told = rows.filter(({ type }) => type === 'replay.diverged' || type === 'run.failed');
  return told.map(({ type, payload }) => ({ type, ...(JSON.parse(payload) as JsonObject) }));
}

const changed = (change: (entry: RecordedEntry) => RecordedEntry): RecordedEntry[] =>
  source.rows.map((entry, index) => (index === at ? change(entry) : entry));

describe('a branch that goes on behind a difference', () => {
  it.each(['output', 'missing', 'extra'] as const)('%s: it says so, and lives', async (kind) => {
    const { batches } = recordingOf(source.histories, source.rows);
    const other = { ...(source.rows[at] as RecordedEntry), key: 'of another code' };
    const entries = {
      output: changed((entry) => ({ ...entry, payload: '{"nodeId":"another"}' })),
      missing: [...source.rows.slice(0, at), other, ...source.rows.slice(at)],
      extra: source.rows.filter((_, index) => index !== at),
    }[kind];
    // The end stands in no branch that lives.
    const fromSeq = entries.length - 1;
    const { rows, performed } = await playFork(isolate, {
      ...{ seed: SEED, source },
      fork: {
        ...{ sourceRunId: SOURCE, fromSeq, length: entries.length, mode: 'branch' },
        overlay: { onDivergence: 'live' },
      },
      recording: { batches, entries },
      isAnyLegal: true,
    });
    const types = rows.map(({ type }) => type);
    expect(types.filter((type) => type === 'replay.diverged')).toHaveLength(1);
    expect(types.indexOf('replay.diverged')).toBe(fromSeq);
    expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length);
    expect(rows.at(-1)?.payload).not.toContain('replay_diverged');
    // What came behind the difference is done again, and told under names of its own.
    expect(performed.length).toBeGreaterThan(0);
    expect(performed.filter((activityId) => activityId.endsWith('.again'))).not.toEqual([]);
    const known = rows.slice(0, fromSeq).map(({ key }) => key.slice(0, key.lastIndexOf('#')));
    expect(performed.filter((activityId) => known.includes(activityId))).toEqual([]);
  });
});

it('a branch that goes on behind a difference, over segments: each fact has a name of its own', async () => {
  const seed = 'fork-20';
  const long = await playCase(isolate, seed);
  const begun = long.rows.findIndex(({ type }) => type === 'node.started');
  const other = { ...(long.rows[begun] as RecordedEntry), key: 'of another code' };
  const entries = [...long.rows.slice(0, begun), other, ...long.rows.slice(begun)];
  const { rows, executions } = await playFork(isolate, {
    ...{ seed, source: long, isAnyLegal: true },
    fork: {
      ...{ sourceRunId: `run-${seed}`, fromSeq: entries.length - 1, length: entries.length },
      ...{ mode: 'branch', overlay: { onDivergence: 'live' } },
    },
    recording: { batches: recordingOf(long.histories, long.rows).batches, entries },
  });
  expect(executions).toBeGreaterThan(1);
  const keys = rows.map(({ key }) => key);
  expect(keys.filter((key, at) => keys.indexOf(key) !== at)).toEqual([]);
});

describe('replay.diverged', () => {
  it('says nothing where nothing differs', async () => {
    const told = await replayed(source.rows);
    expect(told.filter(({ type }) => type === 'replay.diverged')).toEqual([]);
  });

  it.each([
    [
      'output',
      () => changed((entry) => ({ ...entry, payload: '{"nodeId":"another"}' })),
      ['originalEventId', 'replayEventId'],
    ],
    [
      'type-mismatch',
      () => changed((entry) => ({ ...entry, type: 'node.skipped' })),
      ['originalEventId', 'replayEventId'],
    ],
    ['extra', () => source.rows.filter((_, index) => index !== at), ['replayEventId']],
    [
      'missing',
      () => [
        ...source.rows.slice(0, at + 1),
        { ...(source.rows[at] as RecordedEntry), key: 'of another code' },
        ...source.rows.slice(at + 1),
      ],
      ['originalEventId'],
    ],
  ])('%s: with both sides, and it is the end of the fork', async (kind, entries, sides) => {
    const [diverged = {}, end = {}, ...more] = await replayed(entries());
    expect(more).toEqual([]);
    expect(diverged).toMatchObject({
      ...{ type: 'replay.diverged', sourceRunId: SOURCE, divergenceKind: kind },
    });
    expect(['originalEventId', 'replayEventId'].filter((side) => side in diverged)).toEqual(sides);
    const { key = '' } = source.rows[at] ?? {};
    if (kind !== 'missing') expect(diverged.replayEventId).toBe(eventIdOf(FORK, key));
    if (kind === 'output') expect(diverged.originalEventId).toBe(eventIdOf(SOURCE, key));
    expect(end).toMatchObject({ type: 'run.failed', error: { code: 'replay_diverged' } });
  });
});
