// Expiry of runs (architecture §3.7): what is due, what stands against it, and what is left of those that have expired.
import type { Unreadable } from '../rules/unreadable.ts';
import type { RunRef } from './runs.ts';

/** Why a run stays. */
export type Kept =
  /** It, or a run of its family, is under way, or being rebuilt. */
  | 'open'
  /** The last of its family has not ended long enough ago. */
  | 'young'
  /** Somebody said that a run of its family is to stay. */
  | 'held'
  /** A fork that is under way may still read a run of its family. */
  | 'forked';

export type ExpireOutcome =
  /** The whole family: from here on there is none of its runs. */
  | { readonly kind: 'expired'; readonly runs: readonly RunRef[] }
  | { readonly kind: 'kept'; readonly why: Kept }
  /** There is no such run, or not any more. */
  | { readonly kind: 'none' };

export interface ExpireQuery {
  /** The family's last end lies at least so long ago, in ms. */
  readonly keptMs: number;
  /** Nothing is deleted for so long, in ms: who was reading reads to the end. */
  readonly restMs: number;
}

export interface Hold {
  readonly reason: string;
  readonly heldAtMs: number;
}

export interface EndedRun {
  readonly runId: string;
  readonly workflowId: string;
  readonly endedAtMs: number;
  readonly isHeld: boolean;
  /** When it ended, which is 0 then. */
  readonly unreadable?: Unreadable;
}

export interface ExpiredRun {
  readonly runId: string;
  readonly workflowId: string;
  readonly expiredAtMs: number;
  /** Nothing else of it is left. */
  readonly isClean: boolean;
  /** When it expired, which is 0 then. */
  readonly unreadable?: Unreadable;
}

export interface RetentionOverview {
  /** Those that ended first. */
  readonly next: readonly EndedRun[];
  /** Those that expired last. */
  readonly expired: readonly ExpiredRun[];
  readonly expiredCount: number;
  readonly heldCount: number;
}

export interface RetentionStore {
  /**
   * Before a fork is accepted: its source stays until the fork has ended, and what the source needs the fork needs, too. So
   * do the runs whose records it goes by besides. False, and nothing is noted: one of them is not there any more, or there
   * was a run of the fork's id that has expired.
   */
  noteFork(source: RunRef, forkRunId: string, goesBy?: readonly RunRef[]): Promise<boolean>;
  /**
   * Roots of families that ended at least `keptMs` ago, the first to end first, for the caller alone: nobody else gets them
   * within `leaseMs`. Over all tenants.
   */
  due(keptMs: number, limit: number, leaseMs: number): Promise<readonly RunRef[]>;
  /** One transaction: the run's family leaves the registry, and an entry for each of its runs says so. */
  expire(run: RunRef, query: ExpireQuery): Promise<ExpireOutcome>;
  /** A run that was found to stay is not looked at again for so long, in ms. */
  lookAgain(run: RunRef, afterMs: number): Promise<void>;
  /** Expired runs of which something is left, for the caller alone, as `due` gives them; again later each time. */
  claimUnclean(limit: number, leaseMs: number): Promise<readonly RunRef[]>;
  /** Ids of the executions in Temporal of an expired run that are not gone. */
  executionsOf(run: RunRef): Promise<readonly string[]>;
  /** Deletes at most `limit` rows of each kind of what is left. True: nothing is. */
  clean(run: RunRef, limit: number): Promise<boolean>;
  /** Its histories are gone as well. */
  markClean(run: RunRef): Promise<void>;
  /** Entries of runs that expired before that long ago, and notes of forks that were never accepted. How many went. */
  forget(keptMs: number, limit: number): Promise<number>;
  /** When a run expired, for an operator's command: its caller names no tenant. */
  expiredAt(runId: string): Promise<number | undefined>;
  /** Whether there were runs in the session that have expired. */
  hasExpired(tenant: string, sessionId: string): Promise<boolean>;

  /** The first word stays. False: there is no such run. */
  hold(run: RunRef, reason: string): Promise<boolean>;
  /** Idempotent. */
  release(run: RunRef): Promise<void>;
  holdOf(run: RunRef): Promise<Hold | undefined>;
  overview(tenant: string, limit: number): Promise<RetentionOverview>;
}
