// Builds of the worker, as Temporal's worker versioning knows them (docs/upgrades.md): one deployment per namespace, whose
// versions are named by build ids.

/** What a build id may be: a release, a commit, a digest. Temporal's own names of versions stand outside of it. */
const BUILD_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;
/** Names no build where one is promoted: workers without a build id take what comes. */
export const UNVERSIONED = 'unversioned';

/** `pinned`: a run stays with the build that began it; `auto-upgrade`: its next task goes to whatever build is current. */
export const RUN_VERSIONING = ['pinned', 'auto-upgrade'] as const;
export type RunVersioning = (typeof RUN_VERSIONING)[number];

export function isBuildId(text: string): boolean {
  return BUILD_ID.test(text) && text !== UNVERSIONED;
}

/**
 * `current` takes new runs, `ramping` a part of them; `draining`: runs are held by it; `drained`: none is; `inactive`: it
 * was never promoted.
 */
export const BUILD_STATES = ['current', 'ramping', 'draining', 'drained', 'inactive'] as const;
export type BuildState = (typeof BUILD_STATES)[number];

/** Of a fork that was asked for by its build. */
export interface ForkBuild {
  /** Whose workers alone perform it. */
  readonly buildId: string;
  /** Whose worker performed the last task of its source; absent: it had none, or nobody knows it any more. */
  readonly sourceBuildId?: string;
}
