// Cohorts for whoever asks (architecture §6): begun once per key, read, cancelled. What becomes of the members is the work
// of the cohort's own workflow, which goes on without this process.
import { codeOf, HostError } from '../rules/errors.ts';
import { cohortForkIdOf, isCohortId } from '../rules/ids.ts';
import { MAX_COHORT_MEMBERS, MAX_OPEN_COHORTS, type CohortInput } from '../rules/cohort.ts';
import type { Caller } from '../ports/caller.ts';
import type { CohortEngine, CohortMember, CohortRow, LeftCohort } from '../ports/cohorts.ts';
import type { Deployments } from '../ports/deployments.ts';
import type { Stores } from '../ports/stores.ts';
import type { CohortCreateRequest } from '../../schemas/types.generated.ts';
import type { Rounds } from '../log/rounds.ts';
import { createCohortMembers } from './cohort-members.ts';
import { cohortRequest, pickedRuns } from './cohort-selection.ts';
import type { RunsDeps } from './deps.ts';
import { newCohortId } from './input.ts';
import { requireScope } from './scopes.ts';
import { performOnce, type KeyBinding, type Once, type OnceRequest } from './once.ts';

export type CohortDeps = RunsDeps & {
  readonly deployments: Pick<Deployments, 'read' | 'lastBuildOf'>;
  readonly stores: Pick<Stores, 'cohorts' | 'content' | 'families' | 'retention'>;
  readonly cohortEngine: CohortEngine;
};

/** A start that takes longer is tried again from the row, in ms; and how many at once. */
const UNSTARTED_MS = 5_000;
const ROUND_COHORTS = 20;

interface Begun {
  readonly asked: CohortCreateRequest;
  readonly once: Pick<OnceRequest<CohortRow>, 'asked' | 'telling'>;
}

/**
 * Throws validation_error, agent_not_found, what an overlay is refused with, capability_not_provided, build_conflict and
 * forbidden (of a build), rate_limited (too many are open), the errors of a key, and service_unavailable: a retry with the same key goes on
 * with the same cohort.
 */
export function startCohort(
  deps: CohortDeps,
  caller: Caller,
  { asked, once }: Begun,
): Promise<Once<CohortRow>> {
  return performOnce(deps.stores.idempotency, { caller, ...once }, async (binding) => {
    const cohortId = await boundId(binding);
    const fresh = { cohortId, asked, binding };
    const row = (await find(deps, caller, cohortId)) ?? (await insert(deps, caller, fresh));
    if (row.isStarted) return row;
    await start(deps, row);
    return { ...row, isStarted: true };
  });
}

async function boundId(binding: KeyBinding): Promise<string> {
  if (binding.boundTo !== undefined) return binding.boundTo;
  const cohortId = newCohortId();
  await binding.bind(cohortId);
  return cohortId;
}

interface Fresh {
  readonly cohortId: string;
  readonly asked: CohortCreateRequest;
  readonly binding: KeyBinding;
}

/** As it is stored: by this try, or by another one of the same key that was faster and may have picked other runs. */
async function insert(
  deps: CohortDeps,
  caller: Caller,
  { cohortId, asked, binding }: Fresh,
): Promise<CohortRow> {
  const { tenant } = caller;
  // A report tells what the sources did.
  requireScope(caller, 'runs:read');
  const request = cohortRequest(deps, caller, asked);
  const { runIds, leftOut } = await pickedRuns(deps, caller, request);
  const kept = { ...request, ...(leftOut ? { leftOut } : {}) };
  const cohort = { cohortId, tenant, request: kept, createdAtMs: Date.now() };
  const members = runIds.map((sourceRunId) => ({
    sourceRunId,
    forkRunId: cohortForkIdOf(cohortId, sourceRunId),
  }));
  // Picking takes time: a try that has lost its key meanwhile inserts nothing. The key may hold a refusal by now.
  await binding.bind(cohortId);
  if (!(await deps.stores.cohorts.insert({ ...cohort, members }, MAX_OPEN_COHORTS)))
    throw new HostError('rate_limited', {
      reason: `There are ${MAX_OPEN_COHORTS} open cohorts: wait for one to end, or cancel it.`,
      limit: MAX_OPEN_COHORTS,
    });
  return requireCohort(deps, caller, cohortId);
}

async function start(
  {
    stores,
    cohortEngine,
    config,
  }: Pick<CohortDeps, 'cohortEngine' | 'config'> & {
    readonly stores: Pick<Stores, 'cohorts'>;
  },
  { tenant, cohortId, members, request }: CohortRow,
): Promise<void> {
  const { parallel, memberTimeoutMs } = request;
  // Tests force the segments of runs; those of cohorts with them.
  const { forceContinueAsNewAfter: membersPerSegment } = config;
  const input: CohortInput = {
    ...{ tenant, cohortId, members, parallel, memberTimeoutMs },
    ...(membersPerSegment === undefined ? {} : { membersPerSegment }),
  };
  await cohortEngine.start(input);
  await stores.cohorts.markStarted(tenant, cohortId);
}

async function find(
  { stores }: { readonly stores: Pick<Stores, 'cohorts'> },
  { tenant }: Caller,
  cohortId: string,
): Promise<CohortRow | undefined> {
  return isCohortId(cohortId) ? stores.cohorts.find(tenant, cohortId) : undefined;
}

/** Throws not_found, for foreign ones too. */
export async function requireCohort(
  deps: { readonly stores: Pick<Stores, 'cohorts'> },
  caller: Caller,
  cohortId: string,
): Promise<CohortRow> {
  const row = await find(deps, caller, cohortId);
  if (!row) throw new HostError('not_found');
  return row;
}

export interface CohortPage {
  readonly members: readonly CohortMember[];
  readonly nextFrom?: number;
}

/** With the members from `from` on. */
export async function cohortPage(
  { stores: { cohorts } }: { readonly stores: Pick<Stores, 'cohorts'> },
  { tenant, cohortId }: CohortRow,
  query: Parameters<Stores['cohorts']['members']>[2],
): Promise<CohortPage> {
  const { limit } = query;
  const found = await cohorts.members(tenant, cohortId, { ...query, limit: limit + 1 });
  const next = found[limit];
  return {
    members: found.slice(0, limit),
    ...(next ? { nextFrom: next.position } : {}),
  };
}

/**
 * No fork is made any more, those that are open are cancelled, and the report tells what is there. Of one that has ended
 * nothing changes. Throws service_unavailable.
 */
export async function cancelCohort(deps: CohortDeps, row: CohortRow): Promise<CohortRow> {
  const { tenant, cohortId } = row;
  if (row.endedAtMs !== undefined) return row;
  await deps.stores.cohorts.cancelling(tenant, cohortId);
  if (!row.isStarted) await start(deps, row);
  if (await deps.cohortEngine.cancel(cohortId)) await endForks(deps, row);
  else await endLost(deps, row);
  return (await deps.stores.cohorts.find(tenant, cohortId)) ?? row;
}

/** Nobody may be there who performs the cohort's own tasks: what is under way is told from here as well, once. */
async function endForks(deps: CohortDeps, { tenant, cohortId }: CohortRow): Promise<void> {
  const { cohorts } = deps.stores;
  const members = createCohortMembers(deps);
  const query = { from: 0, limit: MAX_COHORT_MEMBERS };
  for (const { position, isMade, outcome } of await cohorts.members(tenant, cohortId, query)) {
    if (!isMade || outcome !== undefined) continue;
    const name = { tenant, cohortId, position };
    try {
      await cohorts.noteStop(name, 'cancelled');
      await members.step(name, FIRST_LOOK);
    } catch (error) {
      // The cohort's workflow does so, too.
      const code = codeOf(error) ?? 'internal_error';
      deps.logger.warn('a fork of a cohort is not told to end', { cohortId, position, code });
    }
  }
}

const FIRST_LOOK = { isLong: true, spentMs: 0 };

/** Somebody ended its workflow in Temporal: nobody else settles what is left. Throws behind the last of them. */
async function endLost(deps: CohortDeps, { tenant, cohortId }: CohortRow): Promise<void> {
  const members = createCohortMembers(deps);
  const message = 'The cohort was ended from outside.';
  let failed: unknown;
  for (const name of await members.left(tenant, cohortId, true)) {
    try {
      if ((await members.step(name, FIRST_LOOK)) === 'ended') continue;
      await members.giveUp(name, { code: 'run_terminated', message });
    } catch (error) {
      failed ??= error;
    }
  }
  if (failed !== undefined) throw failed as Error;
  await members.end(tenant, cohortId);
}

/**
 * For the reaper: cohorts that were accepted while Temporal was away. Returns the one that the next round goes on behind;
 * undefined: it begins anew.
 */
export async function startLeftCohorts(
  deps: Pick<CohortDeps, 'cohortEngine' | 'config'> & {
    readonly stores: Pick<Stores, 'cohorts'>;
    readonly rounds: Rounds;
    readonly signal: AbortSignal;
    /** For tests; UNSTARTED_MS when absent. */
    readonly unstartedMs?: number;
  },
  behind?: LeftCohort,
): Promise<LeftCohort | undefined> {
  const { unstartedMs = UNSTARTED_MS } = deps;
  const left = await deps.stores.cohorts.unstarted(unstartedMs, ROUND_COHORTS, behind);
  for (const { tenant, cohortId } of left) {
    if (deps.signal.aborted) return undefined;
    const turn = { message: 'a cohort is not started, trying again', fields: { cohortId } };
    const { kind } = await deps.rounds.turn(turn, async () => {
      const row = await deps.stores.cohorts.find(tenant, cohortId);
      // Also one whose request is damaged: its members end by it, each with the reason.
      if (row) await start(deps, row);
    });
    if (kind === 'away') return behind;
  }
  return left.length === ROUND_COHORTS ? left.at(-1) : undefined;
}
