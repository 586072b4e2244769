// Runs and the runs that they started (architecture §4).
import type { NewRun, RunListItem, RunRef, RunRow } from './runs.ts';

export interface FamilyMember extends RunListItem {
  readonly run: RunRef;
  readonly parentRunId: string;
  readonly closed: boolean;
}

export interface FamilyPlace {
  readonly parentRunId?: string;
  /** It goes on when its parent ends. */
  readonly isDetached: boolean;
}

/** A run that has ended, and whose parent or children may not know it. */
export interface UntoldEnd {
  readonly run: RunRef;
  readonly endedAtMs: number;
}

export interface FamilyStore {
  /**
   * Inserts the row of a child (`pending`, with its head); of tries at once all get the row of the first.
   * Counted below its root in the same statement: `full` where that has `limit` runs below it already. Throws
   * service_unavailable.
   */
  acceptChild(child: NewRun, limit: number): Promise<RunRow | 'full' | 'parent-ended'>;
  /** Children of a run, oldest first, from behind the page whose `nextCursor` this is. Throws validation_error. */
  children(
    parent: RunRef,
    query: { readonly cursor?: string; readonly limit: number },
  ): Promise<{ readonly runs: readonly FamilyMember[]; readonly nextCursor?: string }>;
  /** Who started it, without its own row, which may be damaged. Undefined: there is no such run. */
  placeOf(run: RunRef): Promise<FamilyPlace | undefined>;
  /** Everything below a root, oldest first, `limit` at most. */
  descendants(tenant: string, rootRunId: string, limit: number): Promise<readonly FamilyMember[]>;
  /** Ends at least `ageMs` ago that nobody has taken, oldest first, from behind one of them. Over all tenants. */
  untoldEnds(ageMs: number, limit: number, behind?: UntoldEnd): Promise<readonly UntoldEnd[]>;
  /** Its parent has taken it: told, but where it has children that have not ended. */
  endTaken(run: RunRef): Promise<void>;
  /** Whom it concerns knows. */
  endTold(run: RunRef): Promise<void>;
}
