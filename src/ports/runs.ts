// The rows of runs, whoever asks for them (architecture §4).
import type { JsonObject } from '../rules/json.ts';
import type { RunInput } from '../rules/run-input.ts';
import type { InterruptKind, RunStatus } from '../rules/status.ts';
import type { Unreadable } from '../rules/unreadable.ts';
import type { ClaimOutcome, IdempotencyClaim } from './idempotency.ts';

declare const named: unique symbol;

/**
 * Names a run and whose it is. The run store makes it, and what comes from the database brings it along: no store is
 * asked for a run without its tenant.
 */
export interface RunRef {
  readonly tenant: string;
  readonly runId: string;
  readonly [named]: true;
}

/** A run to be accepted. */
export interface NewRun {
  readonly runId: string;
  readonly tenant: string;
  readonly workflowId: string;
  /** Whole start input: the reaper starts again from it. */
  readonly input: RunInput;
  /** Of its session, where that has none yet. */
  readonly sessionTitle?: string;
  readonly createdAtMs: number;
  /** Whose data it holds: what it leaves is sealed with this key (ports/subjects.ts). */
  readonly subjectKey?: string;
}

export interface RunRow extends NewRun, RunRef {
  /** Temporal run id of the first segment; undefined while the start is not confirmed. */
  readonly temporalRunId?: string;
  /** Decided once: the run is never started. */
  readonly startFailure?: StartFailure;
  /** Its subject was erased then: of `input` the structure is left (src/rules/erased.ts). */
  readonly erasedAtMs?: number;
  /** As in its head (ports/log.ts), which may be dropped. */
  readonly retoldFrom?: number;
}

/** Why a run could not be started, and when that was decided. */
export interface StartFailure {
  readonly cause: string;
  readonly atMs: number;
}

export interface RunListItem {
  readonly runId: string;
  readonly workflowId: string;
  readonly status: RunStatus;
  readonly createdAtMs: number;
  readonly tags: readonly string[];
  /** What the run itself says of it, its tags too, cannot be read now. */
  readonly unreadable?: Unreadable;
}

/** What is open in a run, as lists tell it. */
export interface SummedWait {
  readonly nodeId: string;
  /** Of the run's own definition. */
  readonly nodeName: string;
  readonly interruptId: string;
  readonly kind: InterruptKind;
  readonly requestedAtMs: number;
  readonly deadlineMs?: number;
  /** Of what is asked only what its title is made of. */
  readonly data: JsonObject;
}

/** What lists tell of a run beside status and registry, kept with its head so that they read no snapshot. JSON. */
export interface RunSummary {
  readonly startedAtMs?: number;
  readonly endedAtMs?: number;
  /** Its clock stands until somebody moves it: no deadline of it is told. */
  readonly isRehearsal?: true;
  /** Oldest first, with the deadlines that hold. */
  readonly waits: readonly SummedWait[];
}

/** A run that was accepted, and that Temporal was not seen to have. */
export interface UnstartedRun extends RunRef {
  readonly createdAtMs: number;
}

export interface OverviewRow extends RunListItem {
  readonly run: RunRef;
  readonly workflowName: string;
  readonly summary: RunSummary;
}

export interface OverviewQuery {
  readonly status?: RunStatus;
  readonly workflowId?: string;
  /** Forks of this cohort, which no other list has. */
  readonly cohortId?: string;
  /**
   * Only runs that wait for a person, the soonest deadline first, then the oldest question; else all, newest first. Runs
   * without a summary are not among them.
   */
  readonly waiting?: boolean;
  /** Opaque, of a page of the same order. Throws validation_error. */
  readonly cursor?: string;
  /** 1..200 */
  readonly limit: number;
}

/** As of a claim; a run that was inserted comes back as its row. */
export type AcceptOutcome =
  /** Its session has another subject than the run, or has got one since it was asked. Nothing is claimed. */
  | { readonly kind: 'session-changed' }
  | Exclude<ClaimOutcome, { kind: 'claimed' }>
  | (Extract<ClaimOutcome, { kind: 'claimed' }> & { readonly inserted?: RunRow });

export interface MarkedStart {
  /** Of the head then; `pending` where there is none. */
  readonly status: RunStatus;
  /** Its log was ended before any start was noted, or is of another execution. A run that ended by itself names its own. */
  readonly wasEnded: boolean;
}

export interface RunStore {
  /**
   * For what names a run elsewhere: an activity's context, a hint. No look-up: of a pair that belongs together nowhere,
   * every store finds nothing.
   */
  ref(tenant: string, runId: string): RunRef;
  /** ms epoch by the database's clock, which all processes share. */
  nowMs(): Promise<number>;
  /**
   * One transaction, of one statement where the key is new: claims the idempotency key (if any) and inserts the run row as `pending` with its head. A key
   * whose earlier claim accepted a run that was never answered gives `claimed` with that `runId`: the caller goes on
   * with that run instead of the new one. Throws HostError subject_erasing.
   */
  accept(run: NewRun, claim?: IdempotencyClaim): Promise<AcceptOutcome>;
  /**
   * Idempotent. Also sets the head's first cursor to the segment. Undefined: the run has failed to start, and stays so.
   */
  markStarted(run: RunRef, temporalRunId: string): Promise<MarkedStart | undefined>;
  /**
   * Its start was refused. For how long, in ms, it has been, each time within `apartMs` of the last one; 0 for the first time,
   * and where there is no such run.
   */
  noteRefusal(run: RunRef, apartMs: number): Promise<number>;
  /** The first failure stays; it is returned. Undefined when the run is started after all. */
  markStartFailed(run: RunRef, failure: StartFailure): Promise<StartFailure | undefined>;
  /** Throws HostError history_undecodable (it is damaged) and key_unavailable. */
  find(tenant: string, runId: string): Promise<RunRow | undefined>;
  /** Its structure, which its key has nothing to do with (src/rules/erased.ts): for what is told of several runs. */
  findKept(tenant: string, runId: string): Promise<RunRow | undefined>;
  /** When a run expired that is not there any more, in ms epoch (architecture §3.7). */
  expiredAt(tenant: string, runId: string): Promise<number | undefined>;
  /** Newest first. `cursor` is opaque; limit 1..200. */
  list(
    tenant: string,
    query: Omit<OverviewQuery, 'waiting'>,
  ): Promise<{ runs: readonly RunListItem[]; nextCursor?: string }>;
  /** The same with what lists show of each run; a paused run's questions count while their time lasts (`nowMs`). */
  overview(
    tenant: string,
    query: OverviewQuery,
    nowMs: number,
  ): Promise<{ runs: readonly OverviewRow[]; nextCursor?: string }>;
  /** How many runs wait for a person, counted no further than `limit`. */
  countWaiting(tenant: string, limit: number, nowMs: number): Promise<number>;
  /**
   * Runs accepted at least `ageMs` ago, or later than it is now by the database's clock, whose start is not confirmed and
   * whose log is not closed, oldest first, from behind one of them; those that failed to start only while they have a head
   * that does not say so yet.
   */
  unstarted(ageMs: number, limit: number, behind?: UnstartedRun): Promise<readonly UnstartedRun[]>;
  /** Tenant and id of a run, without reading its row. A caller who acts for a tenant compares the tenant. */
  locate(runId: string): Promise<RunRef | undefined>;
  /** Every run whose id is above `after` ('' = from the first) in ascending order, for the rebuild. */
  allRuns(after: string, limit: number): Promise<readonly RunRef[]>;
}
