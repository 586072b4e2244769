// Rows of cohorts and their members as the port has them. Of one that is damaged the rest is returned, and why it cannot be
// read: a cohort comes to its end, and its list is shown, whatever one row holds (architecture §11, I97).
import {
  DEFAULT_COHORT_PARALLEL,
  DEFAULT_MEMBER_TIMEOUT_MS,
  type AskedQuestion,
  type CohortChange,
  type CohortRequest,
  type CohortSelection,
  type MemberOutcome,
  type MemberReport,
  type MemberStop,
  type OutcomeChange,
  type SideReport,
} from '../../rules/cohort.ts';
import {
  isAmount,
  isCount,
  isText,
  isTime,
  listOf,
  mapOf,
  members,
  optional,
} from '../../rules/forms.ts';
import type { ForkBuild } from '../../rules/builds.ts';
import { isJsonObject, type JsonValue } from '../../rules/json.ts';
import { subjectOf } from '../../rules/subject.ts';
import { toldOr } from '../../rules/unreadable.ts';
import type {
  CohortMember,
  CohortRow,
  CohortState,
  CohortTotals,
  ModelUse,
} from '../../ports/cohorts.ts';
import { formedAt, timeAt } from './seals.ts';

export interface CohortRecord {
  readonly cohort_id: string;
  readonly tenant_id: string;
  readonly created_at_ms: number;
  readonly request: string;
  readonly members: number;
  readonly state: string;
  readonly is_started: boolean;
  readonly ended_at_ms: number | null;
}
export const COHORT_COLUMNS =
  'cohort_id, tenant_id, created_at_ms, request, members, state, is_started, ended_at_ms';

export function cohortOf(record: CohortRecord): CohortRow {
  return {
    cohortId: record.cohort_id,
    tenant: record.tenant_id,
    ...toldOr({ createdAtMs: 0 }, () => timesOf(record)),
    ...toldOr({ request: unknownRequest(record) }, () => ({ request: requestIn(record) })),
    members: record.members,
    state: record.state as CohortState,
    isStarted: record.is_started,
  };
}

function timesOf(record: CohortRecord): Pick<CohortRow, 'createdAtMs' | 'endedAtMs'> {
  const place = `cohort ${record.cohort_id}`;
  const { created_at_ms: createdAtMs, ended_at_ms: endedAtMs } = record;
  return {
    createdAtMs: timeAt(place, createdAtMs),
    ...(endedAtMs === null ? {} : { endedAtMs: timeAt(place, endedAtMs) }),
  };
}

/** Its members come to their end by it, and no fork is made. */
function unknownRequest({ tenant_id: tenant, members }: CohortRecord): CohortRequest {
  return {
    select: { last: Math.max(1, members) },
    change: {},
    parallel: DEFAULT_COHORT_PARALLEL,
    memberTimeoutMs: DEFAULT_MEMBER_TIMEOUT_MS,
    subject: subjectOf('api-key', tenant, 'unknown'),
    scopes: [],
  };
}

type ChangedAgent = NonNullable<CohortChange['agents']>[string];

const isRequest = members<CohortRequest>({
  select: members<CohortSelection>({
    ...{ workflowId: optional(isText), status: optional(isText), tag: optional(isText) },
    ...{ sessionId: optional(isText), fromMs: optional(isTime), untilMs: optional(isTime) },
    last: isCount,
  }),
  change: members<CohortChange>({
    build: optional(isText),
    agents: optional(
      mapOf(
        members<ChangedAgent>({ systemPrompt: optional(isText), packVersion: optional(isText) }),
      ),
    ),
    configurable: optional(isJsonObject),
  }),
  subject: members<CohortRequest['subject']>({ issuer: isText, subjectId: isText, tenant: isText }),
  ...{ parallel: isCount, memberTimeoutMs: isCount, scopes: listOf(isText) },
  leftOut: optional((value) => isLeftOut(value as JsonValue)),
});

function requestIn({ cohort_id: cohortId, request }: CohortRecord): CohortRequest {
  return formedAt<CohortRequest>(`request ${cohortId}`, request, isRequest);
}

function isLeftOut(value: JsonValue): boolean {
  if (!isJsonObject(value) || !isCount(value.runs)) return false;
  const { runIds } = value;
  return Array.isArray(runIds) && runIds.every((id) => typeof id === 'string');
}

export interface MemberRecord {
  readonly cohort_id: string;
  readonly position: number;
  readonly source_run_id: string;
  readonly fork_run_id: string;
  readonly is_made: boolean;
  readonly stop: string | null;
  readonly question: string | null;
  readonly outcome: string | null;
  readonly report: string | null;
}
export const MEMBER_COLUMNS = `cohort_id, position, source_run_id, fork_run_id, stop, question, outcome, report,
  EXISTS (SELECT 1 FROM runs r WHERE r.run_id = fork_run_id) AS is_made`;

export function memberOf(record: MemberRecord): CohortMember {
  return {
    position: record.position,
    sourceRunId: record.source_run_id,
    forkRunId: record.fork_run_id,
    isMade: record.is_made,
    ...(record.stop === null ? {} : { stop: record.stop as MemberStop }),
    ...(record.outcome === null ? {} : { outcome: record.outcome as MemberOutcome }),
    ...toldOr<Pick<CohortMember, 'question'>>({}, () => questionIn(record)),
    ...toldOr<Pick<CohortMember, 'report'>>({}, () => reportIn(record)),
  };
}

const isQuestion = members<AskedQuestion>({ nodeId: isText, kind: isText, data: isText });

function questionIn(record: MemberRecord): Pick<CohortMember, 'question'> {
  if (record.question === null) return {};
  const place = `question ${record.cohort_id} ${record.position}`;
  return { question: formedAt(place, record.question, isQuestion) };
}

const isSide = members<SideReport>({
  ...{ status: optional(isText), durationMs: optional(isAmount) },
  ...{ inputTokens: optional(isCount), outputTokens: optional(isCount), usd: optional(isAmount) },
});

const isReport = members<MemberReport>({
  error: optional(members<NonNullable<MemberReport['error']>>({ code: isText, message: isText })),
  ...{ before: optional(isSide), after: optional(isSide), asks: optional(isQuestion) },
  divergence: optional(
    members<NonNullable<MemberReport['divergence']>>({
      ...{ seq: isCount, cause: isText, overlay: optional(isText), type: optional(isText) },
      ...{ nodeId: optional(isText), nodeName: optional(isText) },
      build: optional(members<ForkBuild>({ buildId: isText, sourceBuildId: optional(isText) })),
    }),
  ),
  changes: optional(
    listOf(
      members<OutcomeChange>({
        ...{ nodeId: optional(isText), visit: optional(isCount), pointer: isText },
        ...{ before: optional(isText), after: optional(isText) },
      }),
    ),
  ),
});

export type SettledRecord = Pick<MemberRecord, 'cohort_id' | 'position' | 'outcome' | 'report'>;

function reportIn(record: SettledRecord): Pick<CohortMember, 'report'> {
  if (record.report === null) return {};
  const place = `report ${record.cohort_id} ${record.position}`;
  return { report: formedAt(place, record.report, isReport) };
}

/** What settled members came to, and what both sides took of models: of a report that cannot be read its outcome alone. */
export class TotalsSum {
  readonly #counts: { [outcome in MemberOutcome]?: number } = {};
  readonly #sides: Readonly<Record<'before' | 'after', UseSum>> = {
    before: { inputTokens: 0, outputTokens: 0 },
    after: { inputTokens: 0, outputTokens: 0 },
  };

  add(record: SettledRecord): void {
    const outcome = record.outcome as MemberOutcome;
    this.#counts[outcome] = (this.#counts[outcome] ?? 0) + 1;
    const { report } = toldOr<Pick<CohortMember, 'report'>>({}, () => reportIn(record));
    for (const side of ['before', 'after'] as const) {
      const { inputTokens = 0, outputTokens = 0, usd } = report?.[side] ?? {};
      const sum = this.#sides[side];
      sum.inputTokens += inputTokens;
      sum.outputTokens += outputTokens;
      if (usd !== undefined) sum.usd = (sum.usd ?? 0) + usd;
    }
  }

  totals(): CohortTotals {
    return { counts: this.#counts, ...this.#sides };
  }
}

type UseSum = { -readonly [name in keyof ModelUse]: ModelUse[name] };
