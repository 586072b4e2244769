// One member of a cohort (architecture §6): its fork is made, or found, and seen to its end; what it came to is held against
// its source and kept. Every step can be done again, by whichever process: what stands in rows says how far a member is.
import type { ForkBuild } from '../rules/builds.ts';
import { codeOf, ERRORS, HostError, type ErrorCode } from '../rules/errors.ts';
import {
  didOtherwise,
  lacksRecord,
  outcomeChanges,
  outcomeOf,
  SOURCE_MISSING,
  type CohortChange,
  type MemberOutcome,
  type MemberReport,
  type MemberStop,
} from '../rules/cohort.ts';
import { isJsonObject, type JsonObject } from '../rules/json.ts';
import type { Caller } from '../ports/caller.ts';
import type { CohortMember, CohortRow, MemberName } from '../ports/cohorts.ts';
import type { Deployments } from '../ports/deployments.ts';
import type { LogRow } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';
import { foldedRun } from '../log/fold.ts';
import { cancelRun } from './cancel.ts';
import { forkFor } from './cohort-change.ts';
import { compareRuns, type Comparison, type ToldRun } from './compare.ts';
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

export function createCohortMembers(deps: CohortMemberDeps): CohortMembers {
  const { cohorts } = deps.stores;
  return {
    async step(name, look) {
      try {
        return await stepMember(deps, name, look);
      } catch (error) {
        const code = codeOf(error);
        if (code === undefined || ERRORS[code].retryable) throw error;
        await giveUp(deps, name, { code, message: ERRORS[code].message });
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

/** Members that are read at once. */
const PAGE_MEMBERS = 200;

async function leftMembers(
  { stores: { cohorts } }: CohortMemberDeps,
  { tenant, cohortId, isCancelled }: Omit<MemberName, 'position'> & { isCancelled: boolean },
): Promise<MemberName[]> {
  if (isCancelled) await cohorts.cancelling(tenant, cohortId);
  const left: MemberName[] = [];
  for (let from = 0; ; from += PAGE_MEMBERS) {
    const page = await cohorts.members(tenant, cohortId, { from, limit: PAGE_MEMBERS });
    for (const { position, outcome } of page) {
      if (outcome !== undefined) continue;
      const name = { tenant, cohortId, position };
      await cohorts.noteStop(name, 'cancelled');
      left.push(name);
    }
    if (page.length < PAGE_MEMBERS) return left;
  }
}

/** What a step is about. */
interface At {
  readonly name: MemberName;
  readonly cohort: CohortRow;
  readonly member: CohortMember;
}

async function stepMember(deps: CohortMemberDeps, name: MemberName, look: Look): Promise<Standing> {
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
  deps: CohortMemberDeps,
  at: At,
  { fork, look }: { readonly fork: RunRow; readonly look: Look },
): Promise<Standing> {
  const { stores, log } = deps;
  const { name, cohort, member } = at;
  if (fork.temporalRunId === undefined) await startRun(deps, fork);
  // Workers keep logs up to their histories; now and then somebody has to look.
  const head = look.isLong ? (await log.fresh(fork)).head : await log.head(fork);
  if (head?.closed) {
    await stores.cohorts.settle(name, await judged(deps, at, fork));
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

const STOP_WORDS: Readonly<Record<MemberStop, string>> = {
  asks: 'It asks what nobody answered in its source.',
  'time-limit': 'Its time in the cohort is over.',
  cancelled: 'The cohort ended before it.',
};

function stopError(stop: MemberStop): NonNullable<MemberReport['error']> {
  return { code: 'cancelled', message: STOP_WORDS[stop] };
}

interface Settled {
  readonly outcome: MemberOutcome;
  readonly report: MemberReport;
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
    const outcome = LACKS_SOURCE.has(code) ? 'source-missing' : 'failed';
    const { message } = ERRORS[code];
    return cohorts.settleUnmade(name, { outcome, report: { error: { code, message } } });
  }
}

async function forkMember(
  deps: CohortMemberDeps,
  { tenant, cohortId, request }: CohortRow,
  { sourceRunId, forkRunId }: CohortMember,
): Promise<void> {
  const source = await deps.stores.runs.find(tenant, sourceRunId);
  if (!source) throw new HostError('run_not_found', { runId: sourceRunId });
  // What a cohort keeps of its members is not sealed.
  if (source.subjectKey !== undefined) throw new HostError('replay_source_missing');
  const rows: LogRow[] = [];
  for await (const page of deps.log.rows(source)) rows.push(...page);
  const { change, subject, scopes } = request;
  const asked = forkFor({ change, input: source.input, rows });
  const caller: Caller = { tenant, subject, scopes };
  const build = await buildFor(deps, change, sourceRunId);
  const as = { runId: forkRunId, cohortId, ...(build ? { build } : {}) };
  await forkRun(deps, caller, { source, asked, as });
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

/** Of a fork that has ended. */
async function judged(deps: CohortMemberDeps, at: At, fork: RunRow): Promise<Settled> {
  const { stores } = deps;
  const { stop, question, sourceRunId } = at.member;
  const source = await stores.runs.find(at.name.tenant, sourceRunId);
  const compared = source && (await comparison(deps, source, fork));
  const error = await errorOf(deps, fork);
  if (!compared) return { outcome: 'source-missing', report: { ...withError(error) } };
  const changes = outcomeChanges(compared);
  const outcome = stop
    ? stoppedAs(stop)
    : outcomeOf({
        ...{ status: compared.b.status, sourceStatus: compared.a.status },
        ...{ errorCode: error?.code, isOther: isOther(compared, fork), changes },
        lacksRecord: lacksRecord(compared),
      });
  const isTold = outcome === 'outcome-changed' || outcome === 'failed';
  return {
    outcome,
    report: {
      ...sidesOf(compared),
      ...(outcome === 'same' ? {} : divergenceOf(compared)),
      ...(isTold ? { changes } : {}),
      ...(question ? { asks: question } : {}),
      ...withError(error ?? reasonOf(outcome, stop)),
    },
  };
}

function isOther(compared: Comparison, { input: { fork } }: RunRow): boolean {
  return fork?.mode === 'replay' ? compared.divergence !== undefined : didOtherwise(compared);
}

/** Why a member came to its outcome when its fork ended without an error of its own. */
function reasonOf(outcome: MemberOutcome, stop: MemberStop | undefined): MemberReport['error'] {
  if (outcome === 'source-missing') return LACKS_RECORD;
  // A fork that was cancelled because it asks has its question as the reason.
  return stop && outcome === 'not-finished' ? stopError(stop) : undefined;
}

const LACKS_RECORD = { code: SOURCE_MISSING, message: ERRORS[SOURCE_MISSING].message };

function stoppedAs(stop: MemberStop): MemberOutcome {
  return stop === 'asks' ? 'asks' : 'not-finished';
}

/** Undefined: the source went meanwhile. */
async function comparison(
  { log, stores, redactor }: CohortMemberDeps,
  source: RunRow,
  fork: RunRow,
): Promise<Comparison | undefined> {
  const { content } = stores;
  try {
    return await compareRuns({ log, stores: { content }, redactor }, source, fork);
  } catch (error) {
    if (codeOf(error) === 'run_not_found') return undefined;
    throw error;
  }
}

function withError(error: MemberReport['error']): Pick<MemberReport, 'error'> {
  return error ? { error } : {};
}

async function errorOf({ log }: CohortMemberDeps, fork: RunRow): Promise<MemberReport['error']> {
  const head = await log.head(fork);
  const error = head && (foldedRun(head.snapshot).error as JsonObject | undefined);
  if (!isJsonObject(error)) return undefined;
  const { code, message, details } = error;
  const cause = isJsonObject(details) && typeof details.cause === 'string' ? details.cause : '';
  return {
    code: typeof code === 'string' ? code : 'internal_error',
    message: [typeof message === 'string' ? message : '', cause].filter((it) => it).join(' '),
  };
}

function sidesOf({ a, b }: Comparison): Pick<MemberReport, 'before' | 'after'> {
  const side = ({ status, durationMs, inputTokens, outputTokens, usd }: ToldRun) => ({
    status,
    ...(durationMs === undefined ? {} : { durationMs }),
    ...(inputTokens === undefined ? {} : { inputTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
    ...(usd === undefined ? {} : { usd }),
  });
  return { before: side(a), after: side(b) };
}

function divergenceOf({ divergence }: Comparison): Pick<MemberReport, 'divergence'> {
  if (!divergence) return {};
  const { seq, cause, overlay, build, nodeId, nodeName, a, b } = divergence;
  const type = (b ?? a)?.type;
  return {
    divergence: {
      ...{ seq, cause },
      ...(overlay ? { overlay } : {}),
      ...(build ? { build } : {}),
      ...(nodeId === undefined ? {} : { nodeId, nodeName }),
      ...(type === undefined ? {} : { type }),
    },
  };
}
