// Forks of generated runs, at any event and in both modes, through the real workflow code in a model of Temporal and of
// time (architecture §6): the prefix is the source's, nothing recorded is performed again, a replay states what its source
// stated, and whatever a branch does then is legal.
//
// `npm test` plays fixed runs, each as it is and with segments that end early, at two events, and forks of these forks; and
// each fork that was otherwise once. `npm run campaign -- forks` plays more: at every event, and at one of them forks of
// forks of forks; and `known-forks` those of each that was otherwise. OPENWOP_FORKED_CASES: of how many runs;
// OPENWOP_FORKED_FROM: from which number on; OPENWOP_FORKED_CASE: `<seed>` or `<seed>@<sequence>` alone; OPENWOP_FORKED=whole:
// forks of forks of forks of all that was otherwise.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { livedBy } from '../../src/rules/recording.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';
import { recordingOf } from '../../src/translate/recording.ts';
import { playCase, playFork, type CaseEnd } from '../support/model/case.ts';
import { drawsOf, SEGMENTED } from '../support/model/draws.ts';
import { ACTIVITY_NAMES } from '../support/model/behaviours.ts';
import { repeatedBy } from '../support/model/effects.ts';
import { openIsolate, type Isolate } from '../support/model/isolate.ts';
import { patient } from '../support/machine.ts';

/** Runs of `npm test`, the places at which each is forked, and the generations. */
const GATE = { cases: 4, places: 2, generations: 2 };
/** Of all that a red run shows, the first few are enough. */
const MOST_FAILURES = 5;
/** Forks of forks of forks. */
const GENERATIONS = 3;
/**
 * Where a later segment of a fork began with the end of a child, and where one of its source began while a child was told to
 * end, behind the end of the run's time, and where another call of a turn had failed while a step was held back: the fork
 * waited for ever, or differed. Where a pause met the end of a segment, and where a call was under way that an earlier attempt
 * had made; where a segment began with a cancel, and entered no node; and where a child was told to end and lived on.
 * Where the run's time was over when the source left its own; and where a call of an agent that was refused was held back,
 * and its turn failed with the segment; where a child had been told to end before the source left its own; and where a
 * question was withdrawn with the end of a segment.
 */
const KNOWN = [
  ...['fork-2@1', 'fork-58@10', 'fork-2026@0', 'fork-141@8', 'fork-135@4'],
  ...['fork-28-segmented@13', 'fork-11@25', 'fork-122@23'],
  ...['fork-58-segmented@19', 'fork-73-segmented@32', 'fork-97-segmented@30'],
  ...['fork-110-segmented@44', 'fork-134-segmented@0'],
];
/** Those that were found where forks of forks of forks are made. */
const KNOWN_DEEP = ['fork-203@2', 'fork-203-segmented@2', 'fork-30-segmented@13'];
const { OPENWOP_FORKED_CASES, OPENWOP_FORKED_CASE, OPENWOP_FORKED_FROM } = process.env;
const isWhole = process.env.OPENWOP_FORKED === 'whole';
const [only, at] = (OPENWOP_FORKED_CASE ?? '').split('@');
const isGate = OPENWOP_FORKED_CASES === undefined && OPENWOP_FORKED_CASE === undefined;
const from = Number(OPENWOP_FORKED_FROM ?? 0);
const seeds = only
  ? [only]
  : Array.from({ length: Number(OPENWOP_FORKED_CASES ?? GATE.cases) }, (_, index) => {
      const seed = `fork-${from + index}`;
      return [seed, `${seed}${SEGMENTED}`];
    }).flat();
const LIMIT_MS = patient(600_000 + seeds.length * 60_000);

let isolate: Isolate;
beforeAll(async () => {
  isolate = await openIsolate(ACTIVITY_NAMES);
});
afterAll(() => isolate.close());

interface Place {
  readonly fromSeq: number;
  readonly generations: number;
}

function placesOf(seed: string, length: number): Place[] {
  if (at !== undefined) return [{ fromSeq: Number(at), generations: GENERATIONS }];
  const draws = drawsOf(seed, 'forks');
  if (isGate) {
    const { places, generations } = GATE;
    return Array.from({ length: places }, () => ({ fromSeq: draws.int(0, length), generations }));
  }
  const deep = draws.int(0, length);
  return Array.from({ length: length + 1 }, (_, fromSeq) => ({
    fromSeq,
    generations: fromSeq === deep ? GENERATIONS : 1,
  }));
}

/** Rows as their source has them: what names the run itself is derived anew. */
function asIn(seed: string, { rows }: CaseEnd): string[] {
  return rows.map((row) =>
    JSON.stringify(row).replaceAll(new RegExp(`(fork[0-9]*|run)-${seed}`, 'g'), 'it'),
  );
}

/** Of a row what two runs have in common. */
const toldBy = (row: string): string => {
  const { type, nodeId, payload } = JSON.parse(row) as CaseEnd['rows'][number];
  return JSON.stringify({ type, nodeId, payload });
};

/** What one task brought together for several nodes is stated in any order, and what is stated of one in the same. */
function byNode(rows: readonly string[]): string[] {
  const ofNode = (row: string) => (JSON.parse(row) as CaseEnd['rows'][number]).nodeId ?? '';
  const told = rows.map((row) => ({ nodeId: ofNode(row), row: toldBy(row) }));
  return told.sort((a, b) => a.nodeId.localeCompare(b.nodeId)).map(({ row }) => row);
}

interface Forked {
  readonly seed: string;
  /** 1: its source is no fork. */
  readonly generation: number;
  readonly source: CaseEnd & { readonly fork?: ForkOf };
  readonly fromSeq: number;
  /** Forks of forks, so deep. */
  readonly generations: number;
}

/** Both forks of the source at one place, and forks of these. */
async function fork({ seed, generation, source, fromSeq, generations }: Forked): Promise<void> {
  const { histories, rows, end } = source;
  const own = asIn(seed, source);
  const sourceRunId =
    generation === 1 ? `run-${seed}` : `fork${generation - 1 === 1 ? '' : generation - 1}-${seed}`;
  const recording = livedBy(sourceRunId, recordingOf(histories, rows, source.fork), source.fork);
  const play = async (mode: 'replay' | 'branch') => {
    const of = { sourceRunId, fromSeq, mode, length: rows.length };
    return playFork(isolate, { seed, fork: of, recording, source, generation });
  };
  const replayed = await play('replay');
  const again = asIn(seed, replayed);
  expect(again.slice(0, fromSeq)).toEqual(own.slice(0, fromSeq));
  // A cancel is not replayed: what it stopped goes on.
  if (end !== 'cancelled') expect([replayed.end, ...byNode(again)]).toEqual([end, ...byNode(own)]);
  expect(replayed.performed).toEqual([]);
  const branched = await play('branch');
  expect(asIn(seed, branched).slice(0, fromSeq)).toEqual(own.slice(0, fromSeq));
  expect(repeatedBy(branched, fromSeq)).toEqual([]);
  expect(asIn(seed, branched).filter((row) => row.includes('replay.diverged'))).toEqual([]);
  if (generation === generations) return;
  for (const [mode, made] of Object.entries({ replayed, branched })) {
    const draws = drawsOf(seed, `${mode}-${generation}-${fromSeq}`);
    const place = draws.int(0, made.rows.length);
    const next = { seed, generation: generation + 1, source: made, fromSeq: place, generations };
    await fork(next).catch((error: Error) => {
      error.message = `its ${mode} at ${place}: ${error.message}`;
      throw error;
    });
  }
}

function firstDifference(error: Error & { expected?: unknown; actual?: unknown }): string {
  const { expected, actual } = error;
  if (!Array.isArray(expected) || !Array.isArray(actual)) return error.message;
  const at = expected.findIndex((one, index) => one !== actual[index]);
  const place = at < 0 ? expected.length : at;
  const [where = ''] = /^(?:its \w+ at \d+: )*/.exec(error.message) ?? [];
  return `${where}at ${place}: ${JSON.stringify(expected[place])} is ${JSON.stringify(actual[place])}`;
}

async function forkKnown(known: string, generations: number): Promise<void> {
  const [seed = '', place] = known.split('@');
  const source = await playCase(isolate, seed);
  await fork({ seed, generation: 1, source, fromSeq: Number(place), generations });
}

test.each([
  ...KNOWN.map((known) => [known, isWhole ? GENERATIONS : 1] as const),
  ...KNOWN_DEEP.map((known) => [known, GENERATIONS] as const),
])('once otherwise: %s', { timeout: LIMIT_MS }, forkKnown);

test('prefix equal, replay equal, branch legal', { timeout: LIMIT_MS }, async () => {
  const failures: string[] = [];
  let forks = 0;
  for (const seed of seeds) {
    const source = await playCase(isolate, seed);
    // Of one run, what fails first tells enough.
    let failure: string | undefined;
    for (const place of placesOf(seed, source.rows.length)) {
      forks++;
      await fork({ seed, generation: 1, source, ...place }).catch((error: Error) => {
        failure = `${seed}@${place.fromSeq} (${source.end}): ${firstDifference(error)}`;
      });
      if (failure !== undefined) break;
    }
    if (failure !== undefined) failures.push(failure);
    if (failures.length >= MOST_FAILURES) break;
  }
  console.info(`${forks} forks of ${seeds.length} runs, ${seeds[0]} to ${seeds.at(-1)}`);
  expect(failures).toEqual([]);
});
