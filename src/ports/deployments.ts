// Builds of the worker beside each other (docs/upgrades.md): which takes new runs, which still hold some, and where runs go.
import type { BuildState } from '../rules/builds.ts';

export interface Build {
  readonly buildId: string;
  readonly state: BuildState;
  /** Since when it is in this state; absent where the server does not say. */
  readonly sinceMs?: number;
  /** Of new runs, in percent. */
  readonly share: number;
  /** Open runs whose last task it performed. */
  readonly openRuns: number;
  /** Of those: that no other build may go on with, until they end or are moved. */
  readonly heldRuns: number;
  /** A worker of it asked for work lately. */
  readonly hasWorker: boolean;
}

export interface Deployment {
  /** Newest first. */
  readonly builds: readonly Build[];
  /** Absent: new runs go to workers without a build id. */
  readonly currentBuildId?: string;
  /** Held by builds that no worker serves, or without any build where one is current that none serves: they wait. */
  readonly runsWithoutWorker: number;
}

/** A run that is open, as its build has it. */
export interface BuildRun {
  readonly runId: string;
  /** Of the build that it is on; absent: none. */
  readonly buildId?: string;
  readonly held: boolean;
  /** Why its workflow task failed last, where it is being tried again. */
  readonly failing?: { readonly attempt: number; readonly reason?: string };
}

export interface MovedRuns {
  readonly moved: readonly string[];
  /** With the reason of each. */
  readonly failed: readonly { readonly runId: string; readonly reason: string }[];
  /** There are more; the next call goes on from here. */
  readonly nextCursor?: string;
}

/** Where runs go: a build, which holds them, or with whatever build is current from now on. */
export type MoveTarget = { readonly buildId: string } | 'current-from-now-on';

export interface Deployments {
  /** Undefined: no worker ever said a build id, or the server knows none. Throws service_unavailable. */
  read(): Promise<Deployment | undefined>;
  /** New runs go to this build, or to workers without one; below 100 a part of them. Throws build_not_found, build_conflict. */
  promote(buildId: string, percent: number): Promise<void>;
  /** Whose worker performed the last task of a run, open or not; undefined: of none, or the run is forgotten. Throws service_unavailable. */
  lastBuildOf(runId: string): Promise<string | undefined>;
  /** Open runs of one build, some of them. Throws build_not_found. */
  runsOf(buildId: string): Promise<readonly BuildRun[]>;
  /** Throws build_not_found, build_conflict where no worker of the target is there. */
  moveRuns(runIds: readonly string[], target: MoveTarget): Promise<MovedRuns>;
  /** All that `buildId` holds, a page at a time. */
  moveFrom(buildId: string, target: MoveTarget, cursor?: string): Promise<MovedRuns>;
}
