// Cohorts: their rows, and their workflows in Temporal (architecture §6): types only.
import type {
  AskedQuestion,
  CohortInput,
  CohortRequest,
  CohortSelection,
  MemberOutcome,
  MemberReport,
  MemberStop,
} from '../rules/cohort.ts';
import type { Unreadable } from '../rules/unreadable.ts';
import type { RunRow } from './runs.ts';

export type CohortState = 'running' | 'cancelling' | 'completed' | 'cancelled';

export interface NewCohort {
  readonly cohortId: string;
  readonly tenant: string;
  readonly request: CohortRequest;
  readonly createdAtMs: number;
  /** In their order. */
  readonly members: readonly { readonly sourceRunId: string; readonly forkRunId: string }[];
}

export interface CohortRow extends Omit<NewCohort, 'members'> {
  readonly members: number;
  readonly state: CohortState;
  readonly isStarted: boolean;
  readonly endedAtMs?: number;
  /** Its request, in whose place the defaults are, with no change. No fork is made by it. */
  readonly unreadable?: Unreadable;
}

/** One that was accepted, and that Temporal was not seen to have. */
export type LeftCohort = Pick<CohortRow, 'cohortId' | 'tenant' | 'createdAtMs'>;

export interface CohortMember {
  /** From 0. */
  readonly position: number;
  readonly sourceRunId: string;
  readonly forkRunId: string;
  /** Its fork is there. */
  readonly isMade: boolean;
  readonly stop?: MemberStop;
  readonly question?: AskedQuestion;
  /** Absent: it has not come to its end. */
  readonly outcome?: MemberOutcome;
  readonly report?: MemberReport;
  /** Its question, or its report, which is absent then. */
  readonly unreadable?: Unreadable;
}

export interface ModelUse {
  readonly inputTokens: number;
  readonly outputTokens: number;
  /** Only where a provider stated a price. */
  readonly usd?: number;
}

/** Of members that have come to an end; the others wait, or are under way. */
export interface CohortTotals {
  readonly counts: Readonly<Partial<Record<MemberOutcome, number>>>;
  readonly before: ModelUse;
  readonly after: ModelUse;
}

export interface MemberName {
  readonly tenant: string;
  readonly cohortId: string;
  readonly position: number;
}

export interface CohortStore {
  /**
   * Ended runs that nobody else started and that are no forks of a cohort, newest first, behind the place that `cursor`
   * names; and those among them that cannot be read.
   */
  candidates(
    tenant: string,
    query: Omit<CohortSelection, 'last'> & { readonly cursor?: string; readonly limit: number },
  ): Promise<{
    readonly runs: readonly RunRow[];
    readonly unreadable: readonly { readonly runId: string; readonly createdAtMs: number }[];
    readonly nextCursor?: string;
  }>;
  /** Idempotent by its id. False: the tenant has `maxOpen` open ones already. */
  insert(cohort: NewCohort, maxOpen: number): Promise<boolean>;
  find(tenant: string, cohortId: string): Promise<CohortRow | undefined>;
  /** Newest first; opaque cursor. */
  list(
    tenant: string,
    query: { readonly cursor?: string; readonly limit: number },
  ): Promise<{ readonly cohorts: readonly CohortRow[]; readonly nextCursor?: string }>;
  /** By cohort; each that is asked for is there. A report that cannot be read counts by its outcome, without its use of models. */
  totals(tenant: string, cohortIds: readonly string[]): Promise<ReadonlyMap<string, CohortTotals>>;
  /** Positions of those that have not come to their end, in order. */
  left(tenant: string, cohortId: string): Promise<readonly number[]>;
  /** By position, from `from` on. */
  members(
    tenant: string,
    cohortId: string,
    query: { readonly from: number; readonly limit: number; readonly outcome?: MemberOutcome },
  ): Promise<readonly CohortMember[]>;
  member(name: MemberName): Promise<CohortMember | undefined>;
  markStarted(tenant: string, cohortId: string): Promise<void>;
  /** Open ones that Temporal was not seen to have, of an age as of `RunStore.unstarted`, oldest first, from behind one of them. */
  unstarted(ageMs: number, limit: number, behind?: LeftCohort): Promise<readonly LeftCohort[]>;
  /** From now on no fork is made. The state then; undefined: no such cohort. */
  cancelling(tenant: string, cohortId: string): Promise<CohortState | undefined>;
  /** The first reason stays. */
  noteStop(name: MemberName, stop: MemberStop): Promise<void>;
  /** Of whatever cohort the run is a fork of; of no other run. The first reason stays. */
  noteAsks(tenant: string, forkRunId: string, question: AskedQuestion): Promise<void>;
  /** The first outcome stays. */
  settle(
    name: MemberName,
    settled: { readonly outcome: MemberOutcome; readonly report: MemberReport },
  ): Promise<void>;
  /** Of one that has no fork, and gets none from then on. False: it has one, and is left as it is. */
  settleUnmade(
    name: MemberName,
    settled: { readonly outcome: MemberOutcome; readonly report: MemberReport },
  ): Promise<boolean>;
  /** At most `limit` of those that ended at least `keptMs` ago and of whose forks none is there, of all tenants. How many went. */
  expire(keptMs: number, limit: number): Promise<number>;
  /** Its state then. Idempotent. */
  end(tenant: string, cohortId: string, atMs: number): Promise<CohortState | undefined>;
}

/** Workflows of cohorts in Temporal. */
export interface CohortEngine {
  /** Idempotent. Throws service_unavailable. */
  start(input: CohortInput): Promise<void>;
  /** False: its workflow is not there, or has ended. Throws service_unavailable. */
  cancel(cohortId: string): Promise<boolean>;
}
