// Forks of generated runs, at any event and in both modes, through the real workflow code in a model of Temporal and of
// time (architecture §6): the prefix is the source's, nothing recorded is performed again, a replay states what its source
// stated, and whatever a branch does then is legal.
//
// OPENWOP_FORKED_CASES: of how many runs, from the number OPENWOP_FORKED_FROM on; OPENWOP_FORKED_PLACES=all: each at every
// event; OPENWOP_FORKED_CASE: `<seed>` or `<seed>@<sequence>` alone.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { livedBy } from '../../src/rules/recording.ts';
import type { ForkOf } from '../../src/rules/run-input.ts';
import { recordingOf } from '../../src/translate/recording.ts';
import { playCase, playFork, type CaseEnd } from '../support/model/case.ts';
import { drawsOf } from '../support/model/draws.ts';
import { ACTIVITY_NAMES } from '../support/model/behaviours.ts';
import { openIsolate, type Isolate } from '../support/model/isolate.ts';

const CASES = 30;
const MOST_FAILURES = 5;
/** Of one run. */
const FORKS_PER_RUN = 6;
/** Forks of forks of forks. */
const GENERATIONS = 3;
const { OPENWOP_FORKED_CASES, OPENWOP_FORKED_CASE } = process.env;
const { OPENWOP_FORKED_FROM, OPENWOP_FORKED_PLACES } = process.env;
const [only, at] = (OPENWOP_FORKED_CASE ?? '').split('@');
const seeds = only
  ? [only]
  : Array.from(
      { length: Number(OPENWOP_FORKED_CASES ?? CASES) },
      (_, index) => `fork-${Number(OPENWOP_FORKED_FROM ?? 0) + index}`,
    );
const LIMIT_MS = 600_000 + seeds.length * 60_000;

let isolate: Isolate;
beforeAll(async () => {
  isolate = await openIsolate(ACTIVITY_NAMES);
}, 120_000);
afterAll(() => isolate.close());

function placesOf(seed: string, length: number): number[] {
  if (at !== undefined) return [Number(at)];
  if (OPENWOP_FORKED_PLACES === 'all') return Array.from({ length: length + 1 }, (_, it) => it);
  const draws = drawsOf(seed, 'forks');
  return Array.from({ length: FORKS_PER_RUN }, () => draws.int(0, length));
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
}

/** Both forks of the source at one place, and forks of these. */
async function fork({ seed, generation, source, fromSeq }: Forked): Promise<void> {
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
  expect(asIn(seed, branched).filter((row) => row.includes('replay.diverged'))).toEqual([]);
  if (generation === GENERATIONS) return;
  for (const [mode, made] of Object.entries({ replayed, branched })) {
    const draws = drawsOf(seed, `${mode}-${generation}-${fromSeq}`);
    const place = draws.int(0, made.rows.length);
    await fork({ seed, generation: generation + 1, source: made, fromSeq: place }).catch(
      (error: Error) => {
        error.message = `its ${mode} at ${place}: ${error.message}`;
        throw error;
      },
    );
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

test(
  'prefix equal, replay equal, branch legal',
  async () => {
    const failures: string[] = [];
    let forks = 0;
    for (const seed of seeds) {
      const source = await playCase(isolate, seed);
      for (const fromSeq of placesOf(seed, source.rows.length)) {
        forks++;
        await fork({ seed, generation: 1, source, fromSeq }).catch((error: Error) =>
          failures.push(`${seed}@${fromSeq} (${source.end}): ${firstDifference(error)}`),
        );
      }
      if (failures.length >= MOST_FAILURES) break;
    }
    console.info(`${forks} forks of ${seeds.length} runs, ${seeds[0]} to ${seeds.at(-1)}`);
    expect(failures).toEqual([]);
  },
  LIMIT_MS,
);
