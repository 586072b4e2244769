// A branch of a branch, made at each place of what was asked and answered (replay.md §Modes, architecture §6): which of the
// answers it is given, which record it asks for the others, and what a cohort learns of that. In the model of Temporal.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestOf, indexOfKey } from '../../src/rules/ids.ts';
import { canonicalJson } from '../../src/rules/json.ts';
import type { Overlay } from '../../src/rules/overlay.ts';
import { answersTo } from '../../src/rules/recorded-answers.ts';
import { livedBy, type RecordedEntry, type Recording } from '../../src/rules/recording.ts';
import type { ForkOf, RunInput } from '../../src/rules/run-input.ts';
import { subjectOf } from '../../src/rules/subject.ts';
import { recordingOf } from '../../src/translate/recording.ts';
import { approvalSchema } from '../../workflows/approvals.ts';
import { chain, node, runInput } from '../support/definitions.ts';
import { patient } from '../support/machine.ts';
import { ACTIVITY_NAMES } from '../support/model/behaviours.ts';
import {
  playCase,
  playFork,
  type CaseEnd,
  type CaseOptions,
  type TimedMessage,
} from '../support/model/case.ts';
import { openIsolate, type Isolate } from '../support/model/isolate.ts';

const SOURCE = 'run-two';
const FORK = 'fork-two';
const config = { requiredApprovals: 2, actions: ['accept', 'reject', 'ask'], timeoutMs: 2000 };
const gates = ['g1', 'g2'].map((id) => node(id, 'core.approvalGate', { config }));
const input = runInput(chain('two', gates), { runId: SOURCE });

type Asked = Parameters<NonNullable<CaseOptions['record']>>[0];
type Made = CaseEnd & { readonly fork: ForkOf };

let isolate: Isolate;
const ids = new Map<string, string>();
const records = new Map<string, Recording>();
let source: CaseEnd;
let fork: Made;

/** Reads the records, and writes down what was asked of which (`note`: nothing, and that the question waits). */
function reader(afterMs = 20, isGone = false) {
  const asked: string[] = [];
  const record = ({ context, recordedBy, interruptId, isLeft }: Asked) => {
    const { nodeId = '' } = context;
    const { batches = [] } = records.get(recordedBy.runId) ?? {};
    const answers = isLeft ? [] : answersTo(interruptId, batches);
    if (!isLeft) asked.push(`${nodeId} of ${recordedBy.runId}`);
    if (answers.length === 0) asked.push(`${nodeId} waits`);
    const message = 'the record is gone';
    const code = 'replay_source_missing';
    if (isGone && !isLeft) return { afterMs, end: { kind: 'failed', code, message } as const };
    const output = { interruptId, answers } as never;
    return { afterMs, end: { kind: 'completed', result: { output, events: [] } } as const };
  };
  return { asked, record };
}

const say = (nodeId: string, voter: string, afterMs: number): TimedMessage => {
  const message = {
    ...{
      kind: 'resolve-interrupt' as const,
      nodeId,
      interruptId: ids.get(nodeId),
      bodyDigest: voter,
    },
    value: { action: 'accept', voter },
    schemaDigest: digestOf(canonicalJson(approvalSchema(config.actions))),
    resolvedBy: subjectOf('session', 'default', voter),
  };
  return { afterMs, message };
};

/** What each question heard, in order, and in which place. */
const votesIn = (rows: readonly RecordedEntry[]) =>
  rows.flatMap(({ key, type, nodeId, payload }) => {
    const { voter } = JSON.parse(payload) as { voter?: string };
    return type === 'openwop-temporal.voted' ? [`${nodeId} ${voter} ${indexOfKey(key)}`] : [];
  });

async function told(messages: readonly TimedMessage[]): Promise<CaseEnd> {
  const made = await playCase(isolate, 'two', {
    ...{ input, messages, isUndisturbed: true, record: reader().record },
  });
  for (const { type, nodeId = '', payload } of made.rows)
    if (type === 'node.suspended')
      ids.set(nodeId, (JSON.parse(payload) as { interruptId: string }).interruptId);
  return made;
}

const goesBy = (runId: string): Overlay => ({ recordedAnswers: { runId, length: 99 } });

/** A branch of the source from its first event. */
const branch = (of: RunInput, record: CaseOptions['record'], messages: TimedMessage[] = []) =>
  playFork(isolate, {
    ...{ seed: 'two', input: of, source, recording: records.get(SOURCE) as Recording },
    ...{ messages, record },
    fork: {
      ...{ sourceRunId: SOURCE, mode: 'branch', fromSeq: 0, length: source.rows.length },
      overlay: goesBy(SOURCE),
    },
  });

/** A branch of that branch. */
const again = (
  fromSeq: number,
  record: CaseOptions['record'],
  { messages, ...overlay }: Overlay & Pick<CaseOptions, 'messages'> = {},
) =>
  playFork(isolate, {
    ...{ seed: 'two', input, source: fork, recording: records.get(FORK) as Recording, record },
    ...(messages ? { messages } : {}),
    generation: 2,
    fork: {
      ...{ sourceRunId: FORK, mode: 'branch', fromSeq, length: fork.rows.length },
      ...{ inherited: goesBy(SOURCE), overlay },
    },
  });

/** Its log begins with that of its source. */
function expectPrefix({ rows, types }: CaseEnd, fromSeq: number): void {
  const of = (all: readonly RecordedEntry[], runId: string) =>
    JSON.stringify(all.slice(0, fromSeq)).replaceAll(runId, SOURCE);
  expect(of(rows, 'fork2-two')).toBe(of(fork.rows, FORK));
  expect(types).not.toContain('replay.diverged');
}

const ALL = ['g1 a 1', 'g1 b 2', 'g2 x 1', 'g2 c 2'];

beforeAll(async () => {
  isolate = await openIsolate(ACTIVITY_NAMES);
  const [a, b] = [() => say('g1', 'a', 200), () => say('g1', 'b', 300)];
  await told([]);
  await told([a(), b()]);
  source = await told([a(), b(), say('g2', 'x', 600)]);
  records.set(SOURCE, livedBy(SOURCE, recordingOf(source.histories, source.rows)));
  fork = await branch(input, reader().record, [say('g2', 'c', 900)]);
  const { histories, rows } = fork;
  records.set(FORK, livedBy(FORK, recordingOf(histories, rows, fork.fork), fork.fork));
}, patient(60_000));
afterAll(() => isolate.close());

/** Places of its source that it may be made at. */
const places = () => Array.from(fork.rows.keys()).slice(1);

describe('a branch of a branch by recorded answers', () => {
  // [I73]
  it('by the record of its source is given all that was heard there, and no cohort learns of a question', async () => {
    expect(votesIn(fork.rows)).toEqual(ALL);
    for (const fromSeq of places()) {
      const { asked, record } = reader();
      const made = await again(fromSeq, record, goesBy(FORK));
      expectPrefix(made, fromSeq);
      expect([fromSeq, votesIn(made.rows), made.end]).toEqual([fromSeq, ALL, 'completed']);
      expect(asked.filter((one) => !one.endsWith(` of ${FORK}`))).toEqual([]);
    }
  });

  // [I73]
  it('where people answer is given what the log tells before it, and reads no record', async () => {
    for (const fromSeq of places()) {
      const { asked, record } = reader(20, true);
      const made = await again(fromSeq, record, { recordedAnswers: null });
      expectPrefix(made, fromSeq);
      const heard = votesIn(fork.rows.slice(0, fromSeq));
      expect([fromSeq, votesIn(made.rows)]).toEqual([fromSeq, heard]);
      expect(asked.filter((one) => one.includes(' of '))).toEqual([]);
      expect(made.rows.at(-1)?.payload).not.toContain('replay_source_missing');
    }
  });

  // [I73]
  it('by the record that its source went by is given what is left of that', async () => {
    for (const fromSeq of places()) {
      const { asked, record } = reader();
      const made = await again(fromSeq, record, { messages: [say('g2', 'd', 900)] });
      expectPrefix(made, fromSeq);
      const hasHeard = votesIn(fork.rows.slice(0, fromSeq)).includes('g2 c 2');
      const heard = hasHeard ? ALL : [...ALL.slice(0, -1), 'g2 d 2'];
      expect([fromSeq, votesIn(made.rows)]).toEqual([fromSeq, heard]);
      expect(asked.filter((one) => one === 'g2 waits')).toEqual(hasHeard ? [] : ['g2 waits']);
    }
  });
});

it(
  'a fork of what such a branch came to states the same, wherever that left its source',
  async () => {
    for (const fromSeq of [6, 8, 16, 18, 19]) {
      const made = await again(fromSeq, reader().record, goesBy(FORK));
      const { histories, rows } = made;
      const own = livedBy('fork2-two', recordingOf(histories, rows, made.fork), made.fork);
      const whole = { sourceRunId: 'fork2-two', fromSeq: rows.length, length: rows.length };
      for (const mode of ['replay', 'branch'] as const) {
        const { asked, record } = reader();
        const last = await playFork(isolate, {
          ...{ seed: 'two', input, source: made, recording: own, record, generation: 3 },
          fork: { ...whole, mode },
        });
        expect([fromSeq, mode, votesIn(last.rows), last.end]).toEqual([
          ...[fromSeq, mode, ALL, 'completed'],
        ]);
        expect(last.types).not.toContain('replay.diverged');
        expect(asked).toEqual([]);
      }
    }
  },
  patient(60_000),
);

// [I73]
it(
  'a question that a record leaves open is noted once, wherever a segment ends',
  async () => {
    const ends = new Set<number>();
    for (const afterMs of [5, 20, 60])
      for (let most = 2; most < 30; most++) {
        const { asked, record } = reader(afterMs);
        const made = await branch({ ...input, forceContinueAsNewAfter: most }, record);
        ends.add(made.executions);
        expect([most, asked]).toEqual([most, [`g1 of ${SOURCE}`, `g2 of ${SOURCE}`, 'g2 waits']]);
      }
    expect(ends.size).toBeGreaterThan(1);
  },
  patient(60_000),
);
