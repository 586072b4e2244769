// Two runs that have ended, held against each other to the ends of their logs, within named limits: page by page, each fact by
// its digest. For verdicts; what people are shown of two runs is bounded sooner (diff.ts, compare.ts).
import { HostError } from '../rules/errors.ts';
import {
  MintedIds,
  renamingBy,
  type LogDifference,
  type Renaming,
} from '../rules/log-differences.ts';
import type { StepSides } from '../rules/cohort.ts';
import type { JsonDifference } from '../rules/json-differences.ts';
import type { LogRow } from '../ports/log.ts';
import {
  plainStateDifferences,
  stateDifferences,
  type DiffDeps,
  type StandingRun,
} from './diff.ts';
import { DigestedLog, type FirstDifference } from './digested-log.ts';
import { pairsByPlace } from './pairs.ts';

/** Rows of each log that are read, pieces of streams among them. */
const MAX_ROWS = 1_000_000;
/** Ids that a run mints: of each event, and of calls, questions, conversations and child runs. */
const MAX_IDS = 200_000;
/** Rows of a page at most, and about so many UTF-16 units of JSON: others have their turn after each page. */
const PAGE_ROWS = 200;
const PAGE_CHARACTERS = 256 * 1024;
/** Payloads of each log, in UTF-16 units of JSON. */
export const MAX_COMPARED_CHARACTERS = 32 * 1024 * 1024;
/** Differences of end states that are looked for: a verdict needs one, a report shows some. */
const MAX_STATE_DIFFERENCES = 50;

interface BothRuns {
  readonly a: StandingRun;
  readonly b: StandingRun;
  /** Of end states; of logs that are too long only those that no id can explain. */
  readonly end: readonly JsonDifference[];
}

export interface ComparedWhole extends BothRuns {
  readonly isWhole: true;
  /** Says a text of b in the ids of a. */
  readonly rename: Renaming;
  readonly first?: LogDifference<LogRow>;
  /** All of both runs, by the order of a; what only b came to stands where b came to it. */
  readonly steps: readonly StepSides[];
}

/** `isWhole` is false where a log is too long. */
export type WholeDiff = ComparedWhole | (BothRuns & { readonly isWhole: false });

export interface WholeDiffDeps {
  readonly log: Pick<DiffDeps['log'], 'rows'>;
  readonly signal?: AbortSignal | undefined;
}

/**
 * As they stand. Throws HostError history_missing (a log has fewer rows than its head says), service_unavailable (one has not
 * ended), and what `signal` aborts with.
 */
export async function diffWhole(
  deps: WholeDiffDeps,
  a: StandingRun,
  b: StandingRun,
): Promise<WholeDiff> {
  for (const { head } of [a, b])
    if (!head.closed) throw new HostError('service_unavailable', { runId: head.runId });
  const [idsA, idsB] = [new MintedIds(a.row.runId), new MintedIds(b.row.runId)];
  const logA = new DigestedLog();
  const isRead =
    (await readWhole(deps, a, (row) => takeId(idsA, row) && logA.take(row))) &&
    // Before it can be read in the ids of a.
    (await readWhole(deps, b, (row) => takeId(idsB, row)));
  const rename = renamingBy(idsA, idsB);
  const logB = new DigestedLog(rename);
  const isWhole = isRead && (await readWhole(deps, b, (row) => logB.take(row)));
  if (!isWhole) return { a, b, isWhole, end: plainStateDifferences(a, b, MAX_STATE_DIFFERENCES) };
  logA.end();
  logB.end();
  const found = logA.firstDifference(logB);
  return {
    ...{ a, b, rename, isWhole },
    ...(found ? { first: await rowsOf(deps, { a, b }, found) } : {}),
    end: stateDifferences({ a, b, rename }, MAX_STATE_DIFFERENCES),
    steps: pairsByPlace(logA.steps, logB.steps).map(({ one, other }) => ({
      ...(one ? { a: one } : {}),
      ...(other ? { b: other } : {}),
    })),
  };
}

function takeId(ids: MintedIds, row: LogRow): boolean {
  ids.take(row);
  return ids.byFact.size <= MAX_IDS;
}

/** False: `take` takes no more, or there is more than is read. */
async function readWhole(
  { log, signal }: WholeDiffDeps,
  { row: run, head }: StandingRun,
  take: (row: LogRow) => boolean,
): Promise<boolean> {
  const { runId } = run;
  let count = 0;
  let all = 0;
  for (let pageRows = 1; count < head.nextSequence;) {
    signal?.throwIfAborted();
    if (count >= MAX_ROWS) return false;
    let characters = 0;
    let read = 0;
    for await (const page of log.rows(run, { after: count - 1, limit: pageRows, pageRows }))
      for (const row of page) {
        if (row.sequence !== count + read) throw new HostError('history_missing', { runId });
        if (!take(row)) return false;
        characters += row.payload.length;
        read++;
      }
    if (read === 0) throw new HostError('history_missing', { runId });
    count += read;
    all += characters;
    if (all > MAX_COMPARED_CHARACTERS) return false;
    pageRows = characters > PAGE_CHARACTERS ? Math.ceil(pageRows / 2) : pageRows * 2;
    pageRows = Math.min(PAGE_ROWS, pageRows, head.nextSequence - count);
  }
  return true;
}

async function rowsOf(
  { log }: WholeDiffDeps,
  { a, b }: Pick<BothRuns, 'a' | 'b'>,
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
