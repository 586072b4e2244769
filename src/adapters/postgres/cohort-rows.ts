// Rows of cohorts and their members as the port has them. Of one that is damaged the rest is returned, and why it cannot be
// read: a cohort comes to its end, and its list is shown, whatever one row holds (architecture §11, I97).
import {
  DEFAULT_COHORT_PARALLEL,
  DEFAULT_MEMBER_TIMEOUT_MS,
  type AskedQuestion,
  type CohortRequest,
  type MemberOutcome,
  type MemberStop,
} from '../../rules/cohort.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../rules/json.ts';
import { subjectOf } from '../../rules/subject.ts';
import { toldOr } from '../../rules/unreadable.ts';
import type {
  CohortMember,
  CohortRow,
  CohortState,
  CohortTotals,
  ModelUse,
} from '../../ports/cohorts.ts';
import { damagedAt, parsedAt, timeAt } from './seals.ts';

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

function requestIn({ cohort_id: cohortId, request }: CohortRecord): CohortRequest {
  const place = `request ${cohortId}`;
  const asked = parsedAt<JsonObject>(place, request, 'object');
  const isWhole =
    [asked.select, asked.change, asked.subject].every(isJsonObject) &&
    [asked.parallel, asked.memberTimeoutMs].every(isCount) &&
    Array.isArray(asked.scopes) &&
    (asked.leftOut === undefined || isLeftOut(asked.leftOut));
  if (!isWhole) throw damagedAt(place);
  return asked as unknown as CohortRequest;
}

function isLeftOut(value: JsonValue): boolean {
  if (!isJsonObject(value) || !isCount(value.runs)) return false;
  const { runIds } = value;
  return Array.isArray(runIds) && runIds.every((id) => typeof id === 'string');
}

function isCount(value: JsonValue | undefined): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
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

function questionIn(record: MemberRecord): Pick<CohortMember, 'question'> {
  if (record.question === null) return {};
  const place = `question ${record.cohort_id} ${record.position}`;
  const question = parsedAt<JsonObject>(place, record.question, 'object');
  if (!isQuestion(question)) throw damagedAt(place);
  return { question: question as unknown as AskedQuestion };
}

function isQuestion({ nodeId, kind, data }: JsonObject): boolean {
  return [nodeId, kind, data].every((value) => typeof value === 'string');
}

export type SettledRecord = Pick<MemberRecord, 'cohort_id' | 'position' | 'outcome' | 'report'>;

function reportIn(record: SettledRecord): Pick<CohortMember, 'report'> {
  if (record.report === null) return {};
  const place = `report ${record.cohort_id} ${record.position}`;
  const report = parsedAt<JsonObject>(place, record.report, 'object');
  const { error, before, after, divergence, changes = [], asks } = report;
  const isWhole =
    [error, divergence].every((part) => part === undefined || isJsonObject(part)) &&
    [before, after].every((side) => side === undefined || isSide(side)) &&
    (asks === undefined || (isJsonObject(asks) && isQuestion(asks))) &&
    Array.isArray(changes) &&
    changes.every(isJsonObject);
  if (!isWhole) throw damagedAt(place);
  return { report };
}

function isSide(side: JsonValue): boolean {
  if (!isJsonObject(side)) return false;
  const { inputTokens = 0, outputTokens = 0, usd = 0 } = side;
  return isCount(inputTokens) && isCount(outputTokens) && typeof usd === 'number';
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
