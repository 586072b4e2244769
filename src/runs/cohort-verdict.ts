// What a member of a cohort came to (architecture §6): its fork, which has ended, is held against its source whole.
import {
  didOtherwise,
  lacksRecord,
  outcomeChanges,
  outcomeOf,
  SOURCE_MISSING,
  type MemberOutcome,
  type MemberReport,
  type MemberStop,
} from '../rules/cohort.ts';
import { codeOf, ERRORS } from '../rules/errors.ts';
import { isJsonObject, type JsonObject } from '../rules/json.ts';
import type { CohortMember, MemberName } from '../ports/cohorts.ts';
import type { RunRow, RunStore } from '../ports/runs.ts';
import { foldedRun } from '../log/fold.ts';
import type { Log } from '../log/log.ts';
import { divergenceAt, pinnedBetween, toldRun, type PinnedDeps } from './compare.ts';
import { standingRun, type StandingRun } from './diff.ts';
import { MAX_DIGESTED_FACTS, MAX_STREAM_CHARACTERS } from './digested-log.ts';
import {
  diffWhole,
  MAX_COMPARED_CHARACTERS,
  type ComparedWhole,
  type WholeDiff,
} from './whole-diff.ts';

type VerdictDeps = PinnedDeps & {
  readonly log: Pick<Log, 'fresh' | 'rows'>;
  readonly stores: { readonly runs: Pick<RunStore, 'find'> };
};

export interface Settled {
  readonly outcome: MemberOutcome;
  readonly report: MemberReport;
}

interface EndedMember {
  readonly name: MemberName;
  readonly member: CohortMember;
  readonly fork: RunRow;
}

export interface Verdicts {
  /** Throws what a later try may do, and what `signal` aborts with. */
  of(ended: EndedMember, signal?: AbortSignal): Promise<Settled>;
}

/** One at a time: each holds the digests of two logs. */
export function createVerdicts(deps: VerdictDeps): Verdicts {
  let before: Promise<unknown> = Promise.resolve();
  return {
    of(ended, signal) {
      const own = before.then(() => {
        signal?.throwIfAborted();
        return verdictOf(deps, ended, signal);
      });
      before = own.catch(() => undefined);
      return signal ? unlessAborted(own, signal) : own;
    },
  };
}

/** Who is to end waits for no turn, and for no read. */
function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    const done = (): void => signal.removeEventListener('abort', abort);
    work.finally(done).then(resolve, reject);
  });
}

export const STOP_WORDS: Readonly<Record<MemberStop, string>> = {
  asks: 'It asks what nobody answered in its source.',
  'time-limit': 'Its time in the cohort is over.',
  cancelled: 'The cohort ended before it.',
};

export function stopError(stop: MemberStop): NonNullable<MemberReport['error']> {
  return { code: 'cancelled', message: STOP_WORDS[stop] };
}

export function stoppedAs(stop: MemberStop): MemberOutcome {
  return stop === 'asks' ? 'asks' : 'not-finished';
}

async function verdictOf(
  deps: VerdictDeps,
  { name, member, fork }: EndedMember,
  signal: AbortSignal | undefined,
): Promise<Settled> {
  const { stop, sourceRunId } = member;
  const source = await deps.stores.runs.find(name.tenant, sourceRunId);
  const sides = source && (await bothStanding(deps, source, fork));
  if (!source || !sides) return { outcome: 'source-missing', report: { error: LACKS_RECORD } };
  const error = errorIn(sides.b);
  const told = { before: sideOf(sides.a), after: sideOf(sides.b) };
  // What it would have come to nobody knows.
  if (stop) return stopped(member, stop, { ...told, ...withError(error) });
  const diff = await diffWhole({ log: deps.log, signal }, sides.a, sides.b);
  const changes = outcomeChanges(diff.isWhole ? diff : { end: diff.end, steps: [] });
  const outcome = outcomeIn(diff, { fork, error, changes });
  const isTold =
    outcome === 'outcome-changed' || outcome === 'failed' || outcome === 'not-compared';
  return {
    outcome,
    report: {
      ...told,
      ...(outcome === 'same' ? {} : await divergenceOf(deps, diff)),
      ...(isTold && changes.length > 0 ? { changes } : {}),
      ...withError(REASONS[outcome] ?? error),
    },
  };
}

function stopped(
  { question }: CohortMember,
  stop: MemberStop,
  told: Pick<MemberReport, 'before' | 'after' | 'error'>,
): Settled {
  const outcome = stoppedAs(stop);
  // A fork that was cancelled because it asks has its question as the reason.
  const reason = outcome === 'not-finished' ? withError(told.error ?? stopError(stop)) : {};
  return { outcome, report: { ...told, ...reason, ...(question ? { asks: question } : {}) } };
}

/** Undefined: one of them went meanwhile. */
async function bothStanding(
  deps: VerdictDeps,
  source: RunRow,
  fork: RunRow,
): Promise<Pick<WholeDiff, 'a' | 'b'> | undefined> {
  try {
    return { a: await standingRun(deps, source), b: await standingRun(deps, fork) };
  } catch (error) {
    if (codeOf(error) === 'run_not_found') return undefined;
    throw error;
  }
}

interface Found {
  readonly fork: RunRow;
  readonly error: MemberReport['error'];
  readonly changes: NonNullable<MemberReport['changes']>;
}

function outcomeIn(diff: WholeDiff, { fork, error, changes }: Found): MemberOutcome {
  const { a, b, isWhole } = diff;
  return outcomeOf({
    ...{ status: b.snapshot.status, sourceStatus: a.snapshot.status, changes, isWhole },
    ...(error ? { errorCode: error.code } : {}),
    isOther: diff.isWhole && isOther(diff, fork),
    lacksRecord: diff.isWhole && lacksRecord(diff),
  });
}

function isOther(diff: ComparedWhole, { input: { fork } }: RunRow): boolean {
  return fork?.mode === 'replay' ? diff.first !== undefined : didOtherwise(diff);
}

const LACKS_RECORD = { code: SOURCE_MISSING, message: ERRORS[SOURCE_MISSING].message };
const MI = 1024 * 1024;
const TOO_LONG = {
  code: 'payload_too_large',
  message: `Its log, or that of its source, is too long to be compared. Compared are logs of up to ${MAX_DIGESTED_FACTS.toLocaleString('en')} events, ${MAX_COMPARED_CHARACTERS / MI} Mi characters and ${MAX_STREAM_CHARACTERS / MI} Mi of streamed text.`,
};

/** Why the result is not known: before any error of the fork's own. */
const REASONS: Partial<Readonly<Record<MemberOutcome, MemberReport['error']>>> = {
  'source-missing': LACKS_RECORD,
  'not-compared': TOO_LONG,
};

function withError(error: MemberReport['error']): Pick<MemberReport, 'error'> {
  return error ? { error } : {};
}

function errorIn({ head }: StandingRun): MemberReport['error'] {
  const error = foldedRun(head.snapshot).error as JsonObject | undefined;
  if (!isJsonObject(error)) return undefined;
  const { code, message, details } = error;
  const cause = isJsonObject(details) && typeof details.cause === 'string' ? details.cause : '';
  return {
    code: typeof code === 'string' ? code : 'internal_error',
    message: [typeof message === 'string' ? message : '', cause].filter((it) => it).join(' '),
  };
}

function sideOf(run: StandingRun): NonNullable<MemberReport['before']> {
  const { status, durationMs, inputTokens, outputTokens, usd } = toldRun(run);
  return {
    status,
    ...(durationMs === undefined ? {} : { durationMs }),
    ...(inputTokens === undefined ? {} : { inputTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(usd === undefined ? {} : { usd }),
  };
}

async function divergenceOf(
  deps: VerdictDeps,
  diff: WholeDiff,
): Promise<Pick<MemberReport, 'divergence'>> {
  if (!diff.isWhole || !diff.first) return {};
  const { first, a, b } = diff;
  const pinned = await pinnedBetween(deps, diff);
  const divergence = divergenceAt(first, pinned, [a.row, b.row]);
  const { seq, cause, overlay, build, nodeId, nodeName } = divergence;
  const type = (first.b ?? first.a)?.type;
  return {
    divergence: {
      ...{ seq, cause },
      ...(overlay ? { overlay } : {}),
      ...(build ? { build } : {}),
      ...(nodeId === undefined || nodeName === undefined ? {} : { nodeId, nodeName }),
      ...(type === undefined ? {} : { type }),
    },
  };
}
