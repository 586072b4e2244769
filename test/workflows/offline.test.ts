// Replays without Temporal (architecture §6), of generated runs: their records, played by the real workflow code in the
// SDK's sandbox, state again what was recorded; what differs is found, with both sides.
//
// OPENWOP_OFFLINE_CASES: of how many runs; OPENWOP_OFFLINE_FROM: from which number on.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { playIn } from '../../src/adapters/temporal/offline.ts';
import { livedBy, type RecordedEntry, type Recording } from '../../src/rules/recording.ts';
import type { RunInput } from '../../src/rules/run-input.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import type { HistoryEvent } from '../../src/ports/history.ts';
import { compareReplayed, type Compared } from '../../src/rules/replayed.ts';
import { recordingOf } from '../../src/translate/recording.ts';
import { ACTIVITY_NAMES } from '../support/model/behaviours.ts';
import { playCase, playFork, type CaseEnd, type TimedMessage } from '../support/model/case.ts';
import { openIsolate, type Isolate } from '../support/model/isolate.ts';
import { generatedInput } from '../support/model/workflows.ts';
import { chain, node, runInput } from '../support/definitions.ts';
import { patient } from '../support/machine.ts';

const CASES = Number(process.env.OPENWOP_OFFLINE_CASES ?? 60);
const FROM = Number(process.env.OPENWOP_OFFLINE_FROM ?? 0);

let isolate: Isolate;
beforeAll(async () => {
  isolate = await openIsolate(ACTIVITY_NAMES);
});
afterAll(() => isolate.close());

async function replayed(input: RunInput, recording: Recording): Promise<Compared> {
  const stated = await playIn(isolate, { input, recording });
  return compareReplayed(recording.entries, stated);
}

/** What was played differed. */
const KNOWN = [
  // A pause met a step that was held back over the end of a segment.
  'offline-49',
  // A cancel came with the beginning of a segment in which a child was open.
  'offline-139',
  // A worker was asked for at the end of a segment and started by the next.
  'offline-15611354',
  // A node started as a segment ended, and a cancel came with the beginning of the next one.
  'offline-37000081',
  // A node that the limit of executions forbade.
  'offline-12620190',
  // A pause took effect only when the segment that tried to end had ended.
  'offline-39000762',
  // An answer came to a paused run, and a cancel in the same task.
  ...['offline-33000963', 'offline-50002409'],
  // A call of the turn had failed and another was held by a pause when the segment ended: the next one fails the node at once.
  ...['offline-12620240', 'offline-37000229'],
  // A pause took effect as the segment began, before the frames went on with the end of a child.
  'offline-12620435',
  // Nodes that waited for a workflow task with room: the run was cancelled, was paused, or failed meanwhile.
  ...[
    'offline-1010-crowded',
    'offline-1014-crowded',
    'offline-1082-crowded',
    'offline-1155-crowded',
    'offline-5393-crowded',
  ],
];
/** Forks of them went apart. */
const KNOWN_FORKED = [
  ...['offline-2084-crowded', 'offline-2141-crowded'],
  // A call had failed when the segment ended: the next one withdraws the questions of the turn in the order of its calls.
  'offline-12620000',
  // An answer came with the beginning of a segment of the fork whose first frame ended the run.
  'offline-84000100-segmented',
];

it(
  '[I106] a record that is played states what was recorded, over all segments',
  { timeout: patient(600_000) },
  async () => {
    const failures: string[] = [];
    let segments = 0;
    const seeds = Array.from({ length: CASES }, (_, index) => `offline-${FROM + index}`);
    const played = new Set([...seeds, ...KNOWN]);
    for (const seed of played) {
      const source = await playCase(isolate, seed);
      const recording = recordingOf(source.histories, source.rows);
      segments += source.executions;
      const { difference, equal, pieces } = await replayed(generatedInput(seed), recording);
      if (difference) failures.push(`${seed} (${source.end}): ${JSON.stringify(difference)}`);
      else expect(equal + pieces).toBe(source.rows.length);
    }
    expect(failures).toEqual([]);
    expect(segments).toBeGreaterThan(played.size);
  },
);

it.each(['replay', 'branch'] as const)(
  '[I106] a fork that is played states it, too (%s)',
  { timeout: patient(600_000) },
  async (mode) => {
    const failures: string[] = [];
    const seeds = Array.from({ length: CASES / 4 }, (_, index) => `offline-${FROM + index}`);
    for (const seed of [...seeds, ...KNOWN_FORKED]) {
      const source = await playCase(isolate, seed);
      const { length } = source.rows;
      const sourceRunId = `run-${seed}`;
      const recording = livedBy(sourceRunId, recordingOf(source.histories, source.rows));
      const fork = { sourceRunId, mode, fromSeq: Math.floor(length / 2), length };
      const made = await playFork(isolate, { seed, source, fork, recording });
      const runId = `fork-${seed}`;
      const own = livedBy(runId, recordingOf(made.histories, made.rows, made.fork), made.fork);
      const input = { ...generatedInput(seed), runId };
      const { difference, equal, pieces } = await replayed(input, own);
      if (difference) failures.push(`${seed} (${made.end}): ${JSON.stringify(difference)}`);
      else expect(equal + pieces).toBe(made.rows.length);
    }
    expect(failures).toEqual([]);
  },
);

const HOUR_MS = 3_600_000;
const delay = (id: string, ms: number) => node(id, 'core.delay', { config: { ms } });

it.each(Array.from({ length: 8 }, (_, index) => index + 3))(
  '[I106] the clock of a rehearsal waits for a node that was left to the next segment (which begins after %i events)',
  async (forceContinueAsNewAfter) => {
    const workflow = chain('waits', [
      ...[delay('day', 24 * HOUR_MS), node('one', 'core.noop')],
      ...[delay('hour', HOUR_MS), node('two', 'core.noop'), delay('last', HOUR_MS)],
    ]);
    const runId = `run-rehearsal-${forceContinueAsNewAfter}`;
    const input = runInput(workflow, { runId, rehearsal: {}, forceContinueAsNewAfter });
    const skip = { kind: 'skip', to: 240 * HOUR_MS, bodyDigest: 'model' } as const;
    const messages = [{ afterMs: 50, message: skip }];
    const source = await playCase(isolate, runId, { input, messages, isUndisturbed: true });
    const recording = recordingOf(source.histories, source.rows);
    expect((await replayed(input, recording)).difference).toBeUndefined();
  },
);

it.each(['cancel', 'pause'] as const)(
  '[I106] a fork of a run whose first task was full, and which met a %s before its first node',
  async (kind) => {
    const text = 'x'.repeat(25 * 1024);
    const variables = Array.from({ length: 30 }, (_, index) => ({
      ...{ name: `v${index}`, type: 'string' as const, defaultValue: text },
    }));
    const workflow = chain('full', [node('one', 'core.noop'), node('two', 'core.noop')], {
      variables,
    });
    const input = runInput(workflow, { runId: 'run-full' });
    const message = {
      ...{ kind, bodyDigest: 'model' },
      ...(kind === 'cancel' ? { cancelledBy: 'ada' } : { drainPolicy: 'drain-current-node' }),
    };
    for (const afterMs of [1, 2, 3]) {
      const given = { input, messages: [{ afterMs, message }], isUndisturbed: true };
      const source = await playCase(isolate, 'full', given);
      const recording = livedBy('run-full', recordingOf(source.histories, source.rows));
      for (const mode of ['replay', 'branch'] as const)
        for (const fromSeq of [1, 2]) {
          const fork = { sourceRunId: 'run-full', mode, fromSeq, length: source.rows.length };
          const made = await playFork(isolate, { seed: 'full', input, source, fork, recording });
          expect(made.types).not.toContain('replay.diverged');
        }
    }
  },
);

/** Nodes without steps that fill several workflow tasks. */
function crowd(runId: string, more: Partial<RunInput> = {}): RunInput {
  const ids = Array.from({ length: 28 }, (_, index) => `n${index}`);
  const sets = ids.map((id) =>
    node(id, 'core.setVariable', {
      config: { variableName: 'text' },
      inputs: { value: { type: 'variable', variableName: 'text' } },
    }),
  );
  const text = 'x'.repeat(30 * 1024);
  const variables = [{ name: 'text', type: 'string' as const, defaultValue: text }];
  return runInput(chain('crowd', sets, { variables }), { runId, ...more });
}

it('[I106] a node that was left to the next segment starts before a cancel request that came with it', async () => {
  const input = crowd('run-left', { forceContinueAsNewAfter: 5 });
  // By its seed the second segment begins at 80 ms, 5 ms after the first one ended.
  const messages = [{ afterMs: 79, message: 'cancel-request' as const }];
  const source = await playCase(isolate, 'left25', { input, messages, isUndisturbed: true });
  const recording = recordingOf(source.histories, source.rows);
  const { position = 0, stimuli } = recording.batches.find((it, at) => at > 0 && it.begins) ?? {};
  expect(stimuli).toEqual([{ kind: 'cancel-requested' }]);
  expect(recording.entries[position]?.type).toBe('node.started');
  expect((await replayed(input, recording)).difference).toBeUndefined();
});

it('[I106] a fork of a run that waited for a task with room when it was forked', async () => {
  const runId = 'run-room';
  const input = crowd(runId);
  const source = await playCase(isolate, 'room', { input, isUndisturbed: true });
  const { entries, batches } = livedBy(runId, recordingOf(source.histories, source.rows));
  const borders = batches.slice(1).map(({ position }) => position);
  expect(borders.map((position) => entries[position]?.type)).toContain('node.completed');
  for (const [index, length] of borders.entries()) {
    const recording = { entries: entries.slice(0, length), batches: batches.slice(0, index + 1) };
    const fork = { sourceRunId: runId, mode: 'replay', fromSeq: 0, length } as const;
    const made = await playFork(isolate, { seed: 'room', input, source, fork, recording });
    expect(made.types).not.toContain('replay.diverged');
  }
});

describe('a message that the run refused as a segment began', () => {
  const input = runInput(
    chain('refusing', [
      delay('first', 40),
      node('gate', 'core.approvalGate', { config: { timeoutMs: 400 } }),
      node('end', 'core.noop'),
    ]),
    { runId: 'run-refusing', forceContinueAsNewAfter: 5 },
  );
  const play = (messages: TimedMessage[]) =>
    playCase(isolate, 'refusing', { input, messages, isUndisturbed: true });
  const isRefused = (event: HistoryEvent) => {
    const { acceptedEventId, outcome } =
      event.workflowExecutionUpdateCompletedEventAttributes ?? {};
    return acceptedEventId !== undefined && Boolean(outcome?.failure);
  };

  // [I73]
  it('is in no record, and what is forked after it has the log of its source', async () => {
    const { rows } = await play([]);
    const asked = rows.find(({ type }) => type === 'node.suspended');
    const { interruptId } = JSON.parse(asked?.payload ?? '{}') as { interruptId: string };
    const message = {
      ...{ kind: 'resolve-interrupt' as const, nodeId: 'gate', interruptId, bodyDigest: 'b' },
      ...{ value: { action: 'accept' }, schemaDigest: 'sha256:other' },
      resolvedBy: subjectOf('session', 'default', 'ada'),
    };
    const met = new Set<number>();
    for (let afterMs = 0; afterMs < 200; afterMs += 2) {
      const source = await play([{ afterMs, message }]);
      const at = source.histories.findIndex((events) => events.some(isRefused));
      if (at < 0 || met.has(at)) continue;
      met.add(at);
      const recording = livedBy(input.runId, recordingOf(source.histories, source.rows));
      const given = recording.batches.flatMap(({ stimuli }) => stimuli);
      expect(given.filter(({ kind }) => kind === 'message')).toEqual([]);
      expect((await replayed(input, recording)).difference).toBeUndefined();
      for (let fromSeq = 0; fromSeq <= source.rows.length; fromSeq++)
        for (const mode of ['replay', 'branch'] as const) {
          const fork = { sourceRunId: input.runId, mode, fromSeq, length: source.rows.length };
          const made = await playFork(isolate, {
            seed: 'refusing',
            input,
            source,
            fork,
            recording,
          });
          const own = JSON.stringify(made.rows.slice(0, fromSeq));
          expect(own.replaceAll('fork-refusing', input.runId)).toBe(
            JSON.stringify(source.rows.slice(0, fromSeq)),
          );
          expect(made.types).not.toContain('replay.diverged');
        }
    }
    // Before the question is asked, and while it is.
    expect(met.size).toBeGreaterThan(1);
  });
});

describe('what differs is found, with both sides', () => {
  /** A run of several nodes without children. */
  const SEED = 'fork-3';
  let source: CaseEnd;
  let whole: Recording;
  /** Where the first node ends. */
  let at: number;
  beforeAll(async () => {
    source = await playCase(isolate, SEED);
    whole = recordingOf(source.histories, source.rows);
    at = source.rows.findIndex(({ type }) => type === 'node.completed' || type === 'node.failed');
  });

  const of = (entries: readonly RecordedEntry[]) =>
    replayed(generatedInput(SEED), { ...whole, entries });
  const changed = (change: Partial<RecordedEntry>) =>
    of(source.rows.map((entry, index) => (index === at ? { ...entry, ...change } : entry)));
  const side = () => {
    const { type, nodeId, payload } = source.rows[at] as RecordedEntry;
    return { type, nodeId, payload: JSON.parse(payload) as unknown };
  };

  it('nothing differs in the record as it is', async () => {
    expect(await of(source.rows)).toMatchObject({ equal: source.rows.length, outside: 0 });
  });

  it('another payload', async () => {
    const { difference } = await changed({ payload: '{"other":1}' });
    expect(difference).toMatchObject({
      ...{ kind: 'output', atSequence: at, recorded: { payload: { other: 1 } } },
      replayed: side(),
    });
  });

  it('another type', async () => {
    const { difference } = await changed({ type: 'node.skipped' });
    expect(difference).toMatchObject({
      ...{ kind: 'type-mismatch', atSequence: at, recorded: { type: 'node.skipped' } },
      replayed: side(),
    });
  });

  it('a fact that the record lacks', async () => {
    const { difference } = await of(source.rows.filter((_, index) => index !== at));
    expect(difference).toMatchObject({ kind: 'extra', atSequence: at, replayed: side() });
    expect(difference).not.toHaveProperty('recorded');
  });

  it('a fact that is not stated', async () => {
    const more = { key: 'nobody|states', type: 'log.appended', payload: '{"level":"info"}' };
    const entries = source.rows.flatMap((entry, index) =>
      index === at ? [{ ...entry, ...more }, entry] : [entry],
    );
    const { difference } = await of(entries);
    expect(difference).toMatchObject({
      ...{ kind: 'missing', atSequence: at, key: more.key },
      recorded: { type: more.type },
    });
    expect(difference).not.toHaveProperty('replayed');
  });

  it('another decision, by what follows from it', async () => {
    const batches = whole.batches.map((batch) => ({
      ...batch,
      stimuli: batch.stimuli.filter(({ kind }) => kind !== 'step'),
    }));
    const { difference } = await replayed(generatedInput(SEED), { ...whole, batches });
    expect(difference).toMatchObject({ kind: 'missing' });
  });
});

it('what workflow code cannot begin with is told', async () => {
  const { histories, rows } = await playCase(isolate, 'offline-0');
  const input = generatedInput('offline-0');
  const broken = { ...input, definition: { ...input.definition, nodes: null as never } };
  await expect(
    playIn(isolate, { input: broken, recording: recordingOf(histories, rows) }),
  ).rejects.toThrow('TypeError');
});

it('of a run that no workflow ran for nothing is stated', async () => {
  const payload = JSON.stringify({ error: { code: 'start_failed', message: 'no' } });
  const ended = { key: 'terminal', type: 'run.failed', payload, timestampMs: 1 } as const;
  const entries = [{ ...ended, isDerived: true } as const];
  expect(await replayed(generatedInput('offline-0'), { batches: [], entries })).toEqual({
    ...{ equal: 0, pieces: 0, outside: 1 },
  });
});
