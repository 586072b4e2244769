// Two runs that have ended, held against each other to the ends of their logs, however long these are: page by page, each
// fact by its digest. For verdicts; what people are shown of two runs is bounded sooner (diff.ts, compare.ts).
import { DigestedLog, type FirstDifference } from '../rules/digested-log.ts';
import { MintedIds, renamingBy, type LogDifference } from '../rules/log-differences.ts';
import type { StepSides } from '../rules/cohort.ts';
import type { JsonDifference } from '../rules/json-differences.ts';
import type { LogRow } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import {
  standingRun,
  stateDifferences,
  type DiffDeps,
  type StandingRun,
  type StandingRuns,
} from './diff.ts';

/** Rows of each log that are read, pieces of streams among them, and ids that a run mints. Facts: MAX_DIGESTED_FACTS. */
const MAX_ROWS = 1_000_000;
const MAX_IDS = 200_000;
/** Rows read at once. */
const PAGE_ROWS = 100;
/** Differences of end states that are looked for: a verdict needs one, a report shows some. */
const MAX_STATE_DIFFERENCES = 50;

export interface WholeDiff extends StandingRuns {
  /** Both logs were compared to their ends. If not, nothing of them is said below. */
  readonly isWhole: boolean;
  readonly first?: LogDifference<LogRow>;
  /** Of end states. */
  readonly end: readonly JsonDifference[];
  /** All of both runs, by the order of a; what only b came to stands where b came to it. */
  readonly steps: readonly StepSides[];
}

export interface WholeDiffDeps extends DiffDeps {
  readonly signal?: AbortSignal | undefined;
}

/** Throws HostError run_not_found, and what `signal` aborts with. */
export async function diffWhole(
  deps: WholeDiffDeps,
  one: RunRow,
  other: RunRow,
): Promise<WholeDiff> {
  const [a, b] = [await standingRun(deps, one), await standingRun(deps, other)];
  const [idsA, idsB] = [new MintedIds(one.runId), new MintedIds(other.runId)];
  const [logA, logB] = [new DigestedLog(), new DigestedLog()];
  const isRead =
    (await readWhole(deps, a, (row) => takeIds(idsA, row) && logA.take(row))) &&
    // Before it can be read in the ids of a.
    (await readWhole(deps, b, (row) => takeIds(idsB, row)));
  const rename = renamingBy(idsA, idsB);
  const renamed = (row: LogRow): LogRow => ({ ...row, payload: rename(row.payload) });
  const isWhole = isRead && (await readWhole(deps, b, (row) => logB.take(renamed(row))));
  const runs = { a, b, rename };
  const end = stateDifferences(runs, MAX_STATE_DIFFERENCES);
  if (!isWhole) return { ...runs, isWhole, end, steps: [] };
  logA.end();
  logB.end();
  const found = logA.firstDifference(logB);
  const first = found && (await rowsOf(deps, runs, found));
  return { ...runs, isWhole, ...(first ? { first } : {}), end, steps: stepSides(logA, logB) };
}

function takeIds(ids: MintedIds, row: LogRow): boolean {
  ids.take(row);
  return ids.byFact.size <= MAX_IDS;
}

/** False: `take` takes no more, or there is more, or less, than a log that has ended has. */
async function readWhole(
  { log, signal }: WholeDiffDeps,
  { row: run, head }: StandingRun,
  take: (row: LogRow) => boolean,
): Promise<boolean> {
  let count = 0;
  for await (const page of log.rows(run, { limit: MAX_ROWS, pageRows: PAGE_ROWS })) {
    signal?.throwIfAborted();
    for (const row of page) if (!take(row)) return false;
    count += page.length;
  }
  return head.closed && count === head.nextSequence;
}

async function rowsOf(
  { log }: WholeDiffDeps,
  { a, b }: StandingRuns,
  found: FirstDifference,
): Promise<LogDifference<LogRow>> {
  const rowAt = async (
    { row }: StandingRun,
    sequence: number | undefined,
  ): Promise<LogRow | undefined> => {
    if (sequence === undefined) return undefined;
    for await (const [first] of log.rows(row, { after: sequence - 1, limit: 1 })) return first;
    return undefined;
  };
  const [one, other] = [await rowAt(a, found.a), await rowAt(b, found.b)];
  return { seq: found.seq, ...(one ? { a: one } : {}), ...(other ? { b: other } : {}) };
}

function stepSides(a: DigestedLog, b: DigestedLog): StepSides[] {
  const places = [...new Set([...a.steps.keys(), ...b.steps.keys()])];
  const sides = places.map((place): StepSides & { readonly at: number } => {
    const [one, other] = [a.steps.get(place), b.steps.get(place)];
    return {
      ...(one ? { a: one } : {}),
      ...(other ? { b: other } : {}),
      at: (one ?? other)?.sequence ?? 0,
    };
  });
  return sides.sort((left, right) => left.at - right.at);
}
