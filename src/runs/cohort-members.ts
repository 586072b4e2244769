// One member of a cohort (architecture §6): its fork is made, or found, and seen to its end; what it came to is held against
// its source and kept. Every step can be done again, by whichever process: what stands in rows says how far a member is.
import type { ForkBuild } from '../rules/builds.ts';
import { codeOf, ERRORS, HostError, type ErrorCode } from '../rules/errors.ts';
import type { CohortChange, MemberReport } from '../rules/cohort.ts';
import type { Caller } from '../ports/caller.ts';
import type { CohortMember, CohortRow, CohortStore, MemberName } from '../ports/cohorts.ts';
import type { Deployments } from '../ports/deployments.ts';
import type { RunRow } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import { cancelRun } from './cancel.ts';
import { freshLog } from './child-ends.ts';
import { forkFor } from './cohort-change.ts';
import {
  createVerdicts,
  STOP_WORDS,
  stopError,
  stoppedAs,
  type Verdicts,
} from './cohort-verdict.ts';
import type { RunsDeps } from './deps.ts';
import { forkRun } from './fork.ts';
import { startRun } from './start.ts';

export type CohortMemberDeps = RunsDeps & {
  readonly deployments: Pick<Deployments, 'lastBuildOf'>;
  readonly stores: Pick<Stores, 'cohorts' | 'content' | 'families' | 'retention'>;
};

/** How its fork was looked at so far. */
export interface Look {
  /** In vain, for some time. */
  readonly isLong: boolean;
  /** For so long, in ms, as somebody was there. */
  readonly spentMs: number;
  /** Whoever looks is to end. */
  readonly signal?: AbortSignal;
}

/** `stopping`: its fork was told to end. */
export type Standing = 'open' | 'stopping' | 'ended';

export interface CohortMembers {
  /** What cannot be done at all ends the member, too. Throws what a later try may do. */
  step(name: MemberName, look: Look): Promise<Standing>;
  /** It comes to no more, whatever its fork does, and says why. */
  giveUp(name: MemberName, error: NonNullable<MemberReport['error']>): Promise<void>;
  /** Members that are not settled; whatever they are at, they are to end. */
  left(tenant: string, cohortId: string, isCancelled: boolean): Promise<readonly MemberName[]>;
  end(tenant: string, cohortId: string): Promise<void>;
}

export function createCohortMembers(withoutVerdicts: CohortMemberDeps): CohortMembers {
  const deps: StepDeps = { ...withoutVerdicts, verdicts: createVerdicts(withoutVerdicts) };
  const { cohorts } = deps.stores;
  return {
    async step(name, look) {
      try {
        return await stepMember(deps, name, look);
      } catch (error) {
        const code = codeOf(error);
        if (code === undefined || ERRORS[code].retryable) throw error;
        await giveUp(deps, name, { code, message: wordsOf(code, error) });
        return 'ended';
      }
    },
    giveUp: (name, error) => giveUp(deps, name, error),
    left: (tenant, cohortId, isCancelled) => leftMembers(deps, { tenant, cohortId, isCancelled }),
    async end(tenant, cohortId) {
      await cohorts.end(tenant, cohortId, Date.now());
    },
  };
}

type StepDeps = CohortMemberDeps & { readonly verdicts: Verdicts };

async function leftMembers(
  { stores: { cohorts } }: CohortMemberDeps,
  { tenant, cohortId, isCancelled }: Omit<MemberName, 'position'> & { isCancelled: boolean },
): Promise<MemberName[]> {
  if (isCancelled) await cohorts.cancelling(tenant, cohortId);
  const positions = await cohorts.left(tenant, cohortId);
  const left = positions.map((position) => ({ tenant, cohortId, position }));
  for (const name of left) await cohorts.noteStop(name, 'cancelled');
  return left;
}

/** What a step is about. */
interface At {
  readonly name: MemberName;
  readonly cohort: CohortRow;
  readonly member: CohortMember;
}

async function stepMember(deps: StepDeps, name: MemberName, look: Look): Promise<Standing> {
  const { cohorts, runs } = deps.stores;
  const { tenant, cohortId } = name;
  const cohort = await cohorts.find(tenant, cohortId);
  const member = await cohorts.member(name);
  if (!cohort || !member || member.outcome !== undefined) return 'ended';
  const at = { name, cohort, member };
  if (cohort.state !== 'running' && member.stop === undefined) {
    await cohorts.noteStop(name, 'cancelled');
    return 'open';
  }
  const fork = await runs.find(tenant, member.forkRunId);
  if (fork) return stepFork(deps, at, { fork, look });
  return (await makeFork(deps, at)) ? 'ended' : 'open';
}

async function stepFork(
  deps: StepDeps,
  at: At,
  { fork, look }: { readonly fork: RunRow; readonly look: Look },
): Promise<Standing> {
  const { stores, log, verdicts } = deps;
  const { name, cohort, member } = at;
  if (fork.temporalRunId === undefined) await startRun(deps, fork);
  // Workers keep logs up to their histories; now and then somebody has to look.
  const head = look.isLong ? (await freshLog(log, fork)).head : await log.head(fork);
  if (head?.closed) {
    await stores.cohorts.settle(name, await verdicts.of({ ...at, fork }, look.signal));
    return 'ended';
  }
  if (member.stop !== undefined) {
    const reason = STOP_WORDS[member.stop];
    const message = { row: fork, reason, cancelledBy: `cohort:${name.cohortId}` };
    await cancelRun(deps, message, { updateId: `stop-${fork.runId}`, bodyDigest: '' });
    return 'stopping';
  }
  if (look.spentMs > cohort.request.memberTimeoutMs)
    await stores.cohorts.noteStop(name, 'time-limit');
  return 'open';
}

async function giveUp(
  { stores: { cohorts } }: CohortMemberDeps,
  name: MemberName,
  error: NonNullable<MemberReport['error']>,
): Promise<void> {
  const { stop, question } = (await cohorts.member(name)) ?? {};
  const failed = LACKS_SOURCE.has(error.code) ? 'source-missing' : 'failed';
  await cohorts.settle(name, {
    outcome: stop ? stoppedAs(stop) : failed,
    report: { error, ...(question ? { asks: question } : {}) },
  });
}

/** Refusals that pass: the step is tried again. */
const PASSING: ReadonlySet<string> = new Set<ErrorCode>([
  ...(['service_unavailable', 'internal_error', 'idempotency_in_flight'] as const),
]);
/** The source, or its record, is not there as a whole, or cannot be read here. */
const LACKS_SOURCE: ReadonlySet<string> = new Set<ErrorCode>([
  ...(['run_not_found', 'run_expired', 'history_missing', 'history_undecodable'] as const),
  ...(['key_unavailable', 'content_missing', 'replay_source_missing'] as const),
]);

/** Under the id that cohort and source make: a later try finds it. True where there is none to wait for. */
async function makeFork(deps: CohortMemberDeps, at: At): Promise<boolean> {
  const { name, cohort, member } = at;
  const { cohorts } = deps.stores;
  if (member.stop !== undefined) {
    const error = stopError(member.stop);
    return cohorts.settleUnmade(name, { outcome: 'not-finished', report: { error } });
  }
  try {
    await forkMember(deps, cohort, member);
    return false;
  } catch (error) {
    const code = codeOf(error);
    if (code === undefined || PASSING.has(code)) throw error;
    // It was stopped, or settled, since it was looked at: the next look tells which.
    if (code === 'run_state_conflict') return false;
    return cohorts.settleUnmade(name, unmade(code, error));
  }
}

/** What this host cannot fork it cannot compare. */
function unmade(code: ErrorCode, error: unknown): Parameters<CohortStore['settleUnmade']>[1] {
  const report = { error: { code, message: wordsOf(code, error) } };
  if (LACKS_SOURCE.has(code)) return { outcome: 'source-missing', report };
  return { outcome: code === 'capability_not_provided' ? 'not-compared' : 'failed', report };
}

/** With what of this member was refused: others of its cohort may be accepted. */
function wordsOf(code: ErrorCode, error: unknown): string {
  const { message } = ERRORS[code];
  const { capability, field, reason } = (error as HostError).details ?? {};
  if (typeof capability === 'string') return `${message} (${capability})`;
  if (typeof field !== 'string' || typeof reason !== 'string') return message;
  return `${message} (${field} ${reason})`;
}

async function forkMember(
  deps: CohortMemberDeps,
  cohort: CohortRow,
  { sourceRunId, forkRunId }: CohortMember,
): Promise<void> {
  requireReadable(cohort);
  const { tenant, cohortId, request } = cohort;
  const source = await deps.stores.runs.find(tenant, sourceRunId);
  if (!source) throw new HostError('run_not_found', { runId: sourceRunId });
  // What a cohort keeps of its members is not sealed.
  if (source.subjectKey !== undefined) throw new HostError('replay_source_missing');
  const { change, subject, scopes } = request;
  const asked = await forkFor({ change, input: source.input, pages: deps.log.rows(source) });
  const caller: Caller = { tenant, subject, scopes };
  const build = await buildFor(deps, change, sourceRunId);
  const as = { runId: forkRunId, cohortId, ...(build ? { build } : {}) };
  await forkRun(deps, caller, { source, asked, as });
}

/** Throws history_undecodable where its request cannot be read: what it asks for is not known. */
function requireReadable({ unreadable }: CohortRow): void {
  if (unreadable) throw new HostError(unreadable.code, { reason: unreadable.message });
}

/** Kept with the fork: Temporal forgets runs. */
async function buildFor(
  { deployments }: CohortMemberDeps,
  { build: buildId }: CohortChange,
  sourceRunId: string,
): Promise<ForkBuild | undefined> {
  if (buildId === undefined) return undefined;
  const sourceBuildId = await deployments.lastBuildOf(sourceRunId);
  return { buildId, ...(sourceBuildId === undefined ? {} : { sourceBuildId }) };
}
