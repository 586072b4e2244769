// Two runs held against each other (RFC 0054): their logs, read fresh and within bounds, and the states that they came to.
import { isJsonObject, jsonBytes, type JsonObject, type JsonValue } from '../rules/json.ts';
import { jsonDifferences, type JsonDifference } from '../rules/json-differences.ts';
import {
  logDifferences,
  renaming,
  withoutClocks,
  withoutIds,
  type ComparedLog,
  type LogDifference,
  type Renaming,
} from '../rules/log-differences.ts';
import type { Head, LogRow } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import { snapshotOf } from '../log/fold.ts';
import type { Log } from '../log/log.ts';
import type { RunSnapshot } from '../../schemas/types.generated.ts';

/** Rows of each log that are compared, and UTF-16 units of their payloads: what is behind is not looked at. */
const MAX_ROWS = 10_000;
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** Rows read at once. */
const PAGE_ROWS = 100;
/** Differences of logs that are told, and bytes of their events; the first is told however large it is. */
const MAX_EVENT_DIFFERENCES = 1_000;
const EVENT_BYTES = 4 * 1024 * 1024;
/** Differences of end states that are told, and bytes of their places and values; the first is told however large it is. */
const MAX_STATE_DIFFERENCES = 200;
const STATE_BYTES = 4 * 1024 * 1024;

export interface DiffDeps {
  readonly log: Pick<Log, 'fresh' | 'rows'>;
}

/** Where it stands. */
export interface StandingRun {
  readonly row: RunRow;
  readonly head: Head;
  readonly snapshot: RunSnapshot;
}

export interface ReadRun extends StandingRun {
  readonly log: ComparedLog<LogRow>;
}

export interface RunsDiff extends StandingRuns {
  readonly a: ReadRun;
  readonly b: ReadRun;
  /** By `seq`. */
  readonly events: readonly LogDifference<LogRow>[];
  /** Of status, variables, channels, outputs and error. */
  readonly state: readonly JsonDifference[];
  /** One is under way, or more than the bounds permit was to be told. */
  readonly truncated: boolean;
  /** Temporal is away, and one of them is under way. */
  readonly stale: boolean;
}

/** Throws HostError run_not_found. */
export async function diffRuns(deps: DiffDeps, one: RunRow, other: RunRow): Promise<RunsDiff> {
  const { stale: staleA, ...a } = await readRun(deps, one);
  const { stale: staleB, ...b } = await readRun(deps, other);
  const rename = renaming(a.log, b.log);
  const found = logDifferences(a.log, b.log);
  const payloads = found.map(({ a: one, b: other }) => [one?.payload ?? '', other?.payload ?? '']);
  const events = found.slice(0, fitting(payloads, EVENT_BYTES, MAX_EVENT_DIFFERENCES));
  const states = stateDifferences({ a, b, rename }, MAX_STATE_DIFFERENCES + 1);
  const state = states.slice(0, fitting(states, STATE_BYTES, MAX_STATE_DIFFERENCES));
  const isCut = events.length < found.length || state.length < states.length;
  return {
    ...{ a, b, rename, events, state },
    truncated: isCut || !a.log.isWhole || !b.log.isWhole,
    stale: staleA || staleB,
  };
}

/** Two runs, and what says a text of b in the ids of a. */
export interface StandingRuns {
  readonly a: StandingRun;
  readonly b: StandingRun;
  readonly rename: Renaming;
}

/** Of status, variables, channels, outputs and error. */
export function stateDifferences({ a, b, rename }: StandingRuns, limit: number): JsonDifference[] {
  return jsonDifferences(
    endState(a.snapshot, (text) => text),
    endState(b.snapshot, rename),
    limit,
  );
}

/** The same where it is not known which id of b is which one of a: they differ whatever ids they hold. */
export function plainStateDifferences(
  a: StandingRun,
  b: StandingRun,
  limit: number,
): JsonDifference[] {
  const plain = ({ row: { runId }, snapshot }: StandingRun): JsonValue =>
    withoutIds(
      endState(snapshot, (text) => text),
      runId,
    );
  return jsonDifferences(plain(a), plain(b), limit);
}

/** Throws HostError run_not_found. */
export async function standingRun(
  { log }: Pick<DiffDeps, 'log'>,
  row: RunRow,
): Promise<StandingRun & { readonly stale: boolean }> {
  const { head, stale } = await log.fresh(row);
  return { row, head, snapshot: snapshotOf(head, row), stale };
}

async function readRun(deps: DiffDeps, row: RunRow): Promise<ReadRun & { stale: boolean }> {
  const standing = await standingRun(deps, row);
  const { head } = standing;
  // Up to where the head stood: state and rows tell the same.
  const rows = await firstRows(deps.log, row, Math.min(MAX_ROWS, head.nextSequence));
  const isWhole = head.closed && rows.length === head.nextSequence;
  return { ...standing, log: { runId: row.runId, rows, isWhole } };
}

/** As many as are compared. */
async function firstRows(log: DiffDeps['log'], run: RunRow, limit: number): Promise<LogRow[]> {
  const rows: LogRow[] = [];
  let characters = 0;
  for await (const page of log.rows(run, { limit, pageRows: PAGE_ROWS }))
    for (const row of page) {
      characters += row.payload.length;
      if (characters > MAX_CHARACTERS) return rows;
      rows.push(row);
    }
  return rows;
}

/** How many of the first may be told. */
function fitting(told: readonly unknown[], maxBytes: number, limit: number): number {
  let bytes = 0;
  const over = told.findIndex((each, at) => {
    bytes += jsonBytes(each);
    return at >= limit || (at > 0 && bytes > maxBytes);
  });
  return over < 0 ? told.length : over;
}

/** What a run came to, as it may be shown. */
function endState(snapshot: RunSnapshot, rename: Renaming): JsonObject {
  const { status, variables, channels, outputs, error } = snapshot;
  const text = JSON.stringify({ status, variables, channels, outputs, error });
  const state = withoutClocks(JSON.parse(rename(text)) as JsonValue);
  return isJsonObject(state) ? state : {};
}
