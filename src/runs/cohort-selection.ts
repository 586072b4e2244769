// Which past runs a cohort picks (architecture §6), and whether its change can be made at all, in any of them: asked before
// anything is forked.
import { createHash } from 'node:crypto';
import { codeOf, ERRORS, HostError, invalid } from '../rules/errors.ts';
import {
  DEFAULT_COHORT_MEMBERS,
  DEFAULT_COHORT_PARALLEL,
  DEFAULT_MEMBER_TIMEOUT_MS,
  isReplay,
  type CohortRequest,
  type LeftOutRuns,
} from '../rules/cohort.ts';
import type { JsonObject } from '../rules/json.ts';
import type { RunInput } from '../rules/run-input.ts';
import { rest } from '../system/time.ts';
import type { Caller } from '../ports/caller.ts';
import type { Logger } from '../ports/logger.ts';
import type { Deployments } from '../ports/deployments.ts';
import type { RunRow } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import type { CohortCreateRequest } from '../../schemas/types.generated.ts';
import { agentsIn, knowsAgents, overlayFor } from './cohort-change.ts';
import { normalized } from './configurable.ts';
import { checkOverlay, type OverlayDeps } from './overlay.ts';
import { requireScope } from './scopes.ts';
import { kept } from './secrets.ts';

/** Runs that are looked at for one selection: of those that are passed over, too. */
const MAX_LOOKED_AT = 5_000;
/** Runs read at once. */
const PAGE_RUNS = 50;
/** Runs that cannot be read and that are named. */
const NAMED_RUNS = 20;

const CHANGE = { field: '/change', name: 'The change' };

export type SelectionDeps = OverlayDeps & {
  readonly stores: Pick<Stores, 'cohorts'>;
  readonly deployments: Pick<Deployments, 'read'>;
  readonly logger: Logger;
};

/** As it is kept: with what is not said filled in, and without credentials. Throws validation_error, also of a secret. */
export function cohortRequest(
  deps: Pick<SelectionDeps, 'redactor'>,
  { subject, scopes }: Caller,
  { select, change = {}, parallel, memberTimeoutMs }: CohortCreateRequest,
): CohortRequest {
  const { from, until, last = DEFAULT_COHORT_MEMBERS, ...picked } = select;
  const { agents, configurable, build } = change;
  if (build !== undefined && (agents || configurable))
    throw invalid('/change/build', 'stands alone: by another build each run is replayed as it was');
  const bare = configurable && normalized(configurable as JsonObject);
  const asked = {
    ...(build === undefined ? {} : { build }),
    ...(agents ? { agents } : {}),
    ...(bare ? { configurable: bare } : {}),
  };
  kept(deps, asked, CHANGE);
  return {
    select: {
      ...picked,
      ...(from === undefined ? {} : { fromMs: Date.parse(from) }),
      ...(until === undefined ? {} : { untilMs: Date.parse(until) }),
      last,
    },
    change: asked,
    parallel: parallel ?? DEFAULT_COHORT_PARALLEL,
    memberTimeoutMs: memberTimeoutMs ?? DEFAULT_MEMBER_TIMEOUT_MS,
    subject,
    scopes,
  };
}

export interface PickedRuns {
  /** Newest first, at least one. */
  readonly runIds: readonly string[];
  /** That may belong to them, and cannot be read. */
  readonly leftOut?: LeftOutRuns;
}

/**
 * Throws validation_error where none is like that, agent_not_found where no such run knows the agent, and whatever the change
 * is refused with.
 */
export async function pickedRuns(
  deps: SelectionDeps,
  caller: Caller,
  request: CohortRequest,
): Promise<PickedRuns> {
  const { select, change } = request;
  const { last, ...query } = select;
  const picked: RunRow[] = [];
  let looked = 0;
  const unreadable: Unreadable[] = [];
  let cursor: string | undefined;
  do {
    const page = await deps.stores.cohorts.candidates(caller.tenant, {
      ...{ ...query, limit: PAGE_RUNS },
      ...(cursor === undefined ? {} : { cursor }),
    });
    looked += page.runs.length + page.unreadable.length;
    unreadable.push(...page.unreadable);
    for (const run of page.runs) {
      if (picked.length < last && isLike(run, request)) picked.push(run);
    }
    cursor = page.nextCursor;
  } while (cursor !== undefined && picked.length < last && looked < MAX_LOOKED_AT);
  const leftOut = leftOutBy(unreadable, picked.length < last ? undefined : picked.at(-1));
  if (leftOut) deps.logger.warn('runs that cannot be read are in no cohort', { ...leftOut });
  if (picked.length === 0) throw noneLike(request, looked, unreadable.length);
  await checkChange(deps, caller, { change, picked });
  return { runIds: picked.map(({ runId }) => runId), ...(leftOut ? { leftOut } : {}) };
}

type Unreadable = Pick<RunRow, 'runId' | 'createdAtMs'>;

/** Those that are older than the last one, where all were picked, would not have been. */
function leftOutBy(
  unreadable: readonly Unreadable[],
  oldest: RunRow | undefined,
): LeftOutRuns | undefined {
  const { createdAtMs: sinceMs = -Infinity } = oldest ?? {};
  const left = unreadable.filter(({ createdAtMs }) => createdAtMs >= sinceMs);
  if (left.length === 0) return undefined;
  return { runs: left.length, runIds: left.slice(0, NAMED_RUNS).map(({ runId }) => runId) };
}

/**
 * Forks are no past runs of anybody; the clock of a rehearsal's fork stands, and nobody would move it; and one that does not
 * know the agent has nothing to be changed. One in which a name stands for several agents is picked, and refused by itself.
 */
function isLike({ input }: RunRow, { select: { tag }, change }: CohortRequest): boolean {
  if (input.fork || input.rehearsal) return false;
  if (tag !== undefined && !input.tags?.includes(tag)) return false;
  return knowsAgents(change, input);
}

function noneLike(
  { change: { agents = {} } }: CohortRequest,
  looked: number,
  unreadable: number,
): HostError {
  const named = Object.keys(agents);
  const read = looked - unreadable;
  if (unreadable > 0 && read === 0)
    return new HostError('history_undecodable', {
      reason: `None of the ${unreadable} runs that are like that can be read now.`,
    });
  const others = unreadable > 0 ? `; runs that cannot be read now: ${unreadable}` : '';
  return read > 0 && named.length > 0
    ? new HostError('agent_not_found', {
        reason: `None of the runs that were looked at has all these agents${others}.`,
        agents: named,
      })
    : invalid(
        '/select',
        `picks no run: none that has ended is like that (forks and rehearsals are none)${others}`,
      );
}

/**
 * Each member is checked again when it is forked, and one that is refused ends by itself: another provider, or another
 * definition, may take what its own does not. Throws what the first one is refused with where none is accepted. Members that
 * are refused for the same reasons are asked once, and others of the process go on between two of them.
 */
async function checkChange(
  deps: SelectionDeps,
  caller: Caller,
  {
    change,
    picked,
  }: { readonly change: CohortRequest['change']; readonly picked: readonly RunRow[] },
): Promise<void> {
  if (change.build !== undefined) return requireBuild(deps, caller, change.build);
  if (isReplay(change)) return;
  let refused: unknown;
  const asked = new Set<string>();
  for (const source of picked) {
    if (asked.size > 0) await rest(0);
    const part = checkedPart(source.input);
    if (asked.has(part)) continue;
    asked.add(part);
    try {
      return await checkMember(deps, caller, { change, source });
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined || ERRORS[code].retryable) throw error;
      refused ??= error;
    }
  }
  throw refused as Error;
}

/** Of whatever a change is checked against in a run: runs with the same are accepted or refused alike. */
function checkedPart({ definition, configurable, agents, testHooks }: RunInput): string {
  const checked = JSON.stringify([definition, configurable, agents, testHooks]);
  return createHash('sha256').update(checked).digest('base64');
}

async function checkMember(
  deps: SelectionDeps,
  caller: Caller,
  { change, source }: { readonly change: CohortRequest['change']; readonly source: RunRow },
): Promise<void> {
  const { input } = source;
  const asked = overlayFor(change, agentsIn(change, input) ?? {});
  await checkOverlay(deps, {
    ...{ caller, source, input, asked },
    ...{ length: 0, before: [], at: undefined },
  });
}

/** What it is asked to perform would wait for it. */
async function requireBuild(
  { deployments }: Pick<SelectionDeps, 'deployments'>,
  caller: Caller,
  buildId: string,
): Promise<void> {
  // Which builds there are, and what they perform, is the operator's.
  requireScope(caller, 'deployments:operate');
  const { builds } = (await deployments.read()) ?? {};
  if (!builds)
    throw new HostError('capability_not_provided', {
      ...{ capability: 'cohorts: builds of the worker', reason: 'No worker here names a build.' },
    });
  const found = builds.find((one) => one.buildId === buildId);
  if (!found)
    throw invalid('/change/build', 'is no build of the worker', {
      candidates: builds.map((one) => one.buildId),
    });
  if (!found.hasWorker)
    throw new HostError('build_conflict', {
      reason: `No worker of build ${buildId} runs: what is sent there would wait.`,
    });
}
