// POST and GET /v1/host/openwop-temporal/cohorts, GET …/{cohortId}, POST …/{cohortId}/cancel: past runs that are all forked
// by one change, and what became of each. An extension of this host.
import { CODES } from '../../rules/capabilities.ts';
import {
  isReplay,
  MAX_COHORT_MEMBERS,
  MEMBER_OUTCOMES,
  type CohortChange,
  type MemberOutcome,
} from '../../rules/cohort.ts';
import type { JsonObject, JsonValue } from '../../rules/json.ts';
import type { CohortMember, CohortRow, CohortTotals } from '../../ports/cohorts.ts';
import { cancelCohort, cohortPage, requireCohort, startCohort } from '../../runs/cohorts.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import type { Cohort, CohortMemberResult } from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import { answerOnce, IDEMPOTENCY_KEY, toldAs } from '../idempotency.ts';
import { integer, oneOf } from '../parameters.ts';
import {
  addressOf,
  answered,
  shape,
  type Answer,
  type Declaration,
  type Input,
  type InputOf,
  type Route,
} from '../route.ts';
import { iso } from '../../rules/unreadable.ts';
import { shownRunId } from '../urls.ts';
import { RUN_LIST } from './runs.ts';

const PATH = '/host/openwop-temporal/cohorts';

export const CREATE_COHORT = {
  method: 'post',
  path: PATH,
  operationId: 'createCohort',
  summary:
    'Fork many past runs by one change, with recorded tools and answers, and compare each with its source. An extension of this host.',
  access: 'runs:create',
  parameters: { idempotencyKey: IDEMPOTENCY_KEY },
  body: {
    required: true,
    schema: shape('CohortCreateRequest'),
    example: {
      select: { workflowId: 'refund', last: 50 },
      change: { agents: { triage: { systemPrompt: 'Be strict.' } } },
    },
    parse: (body) => mustBeValid(validate.cohortCreateRequest(body)),
  },
  success: { status: 201, description: 'The cohort is accepted.', schema: shape('Cohort') },
  errors: [
    ...(['agent_not_found', 'model_unavailable', 'model_not_configured'] as const),
    ...Object.values(CODES).flatMap((asked) => [...asked.values()]),
    'payload_too_large',
    'build_conflict',
    ...(['content_missing', 'rate_limited', 'service_unavailable', 'forbidden'] as const),
    ...(['history_undecodable', 'key_unavailable'] as const),
  ],
} as const satisfies Declaration;

export const LIST_COHORTS = {
  method: 'get',
  path: PATH,
  operationId: 'listCohorts',
  summary:
    'Cohorts with their progress, newest first; prompts and long values of a change are told by their beginnings. An extension of this host.',
  access: 'runs:read',
  parameters: {
    cursor: RUN_LIST.cursor,
    limit: integer('Cohorts in one page.', { min: 1, max: 50, default: 20, example: 20 }),
  },
  success: { status: 200, description: 'One page.', schema: shape('CohortList') },
  errors: ['service_unavailable'],
} as const satisfies Declaration;

export const GET_COHORT = {
  method: 'get',
  path: `${PATH}/{cohortId}`,
  operationId: 'getCohort',
  summary: 'The progress of a cohort and a page of its report. An extension of this host.',
  access: 'runs:read',
  parameters: {
    from: integer('Position of the first member.', {
      ...{ min: 0, max: MAX_COHORT_MEMBERS, default: 0, example: 0 },
    }),
    limit: integer('Members in one page; 0: none.', {
      ...{ min: 0, max: 200, default: 100, example: 100 },
    }),
    outcome: oneOf('Only members that came to this.', MEMBER_OUTCOMES, {
      ...{ reason: 'is no outcome', example: 'outcome-changed' },
    }),
  },
  success: { status: 200, description: 'The report so far.', schema: shape('Cohort') },
  errors: ['not_found', 'service_unavailable'],
} as const satisfies Declaration;

export const CANCEL_COHORT = {
  method: 'post',
  path: `${PATH}/{cohortId}/cancel`,
  operationId: 'cancelCohort',
  summary:
    'Cancel a cohort: its open forks are cancelled, and its report tells what is there. Of one that has ended nothing changes. An extension of this host.',
  access: 'runs:cancel',
  success: { status: 200, description: 'The cohort as it is then.', schema: shape('Cohort') },
  errors: ['not_found', 'service_unavailable'],
} as const satisfies Declaration;

export function cohortRoutes(deps: FacadeDeps): Route[] {
  return [
    answered(CREATE_COHORT, (input) => create(deps, input)),
    answered(LIST_COHORTS, (input) => list(deps, input)),
    answered(GET_COHORT, (input) => get(deps, input)),
    answered(CANCEL_COHORT, async (input) => {
      const row = await requireCohort(deps, input.caller, input.path.cohortId);
      const [body] = await shownCohorts(deps, input, [await cancelCohort(deps, row)]);
      return { body };
    }),
  ];
}

type Asker = Pick<Input, 'major' | 'caller'>;

async function create(deps: FacadeDeps, input: InputOf<typeof CREATE_COHORT>): Promise<Answer> {
  const { caller, major, parameters, body: asked } = input;
  const told = (row: CohortRow): JsonObject =>
    cohortView(input, row, NOTHING_YET) as unknown as JsonObject;
  const telling = toldAs<CohortRow>(input, 201, told);
  const body = asked as unknown as JsonObject;
  const { idempotencyKey: key } = parameters;
  const once = {
    asked: { endpoint: addressOf(CREATE_COHORT, major), target: [], body, key },
    telling,
  };
  return answerOnce(await startCohort(deps, caller, { asked, once }), telling);
}

async function list(deps: FacadeDeps, input: InputOf<typeof LIST_COHORTS>): Promise<Answer> {
  const { caller, parameters } = input;
  const { cohorts, nextCursor } = await deps.stores.cohorts.list(caller.tenant, parameters);
  const shown = await shownCohorts(deps, input, cohorts.map(summedCohort));
  return { body: { cohorts: shown, ...(nextCursor === undefined ? {} : { nextCursor }) } };
}

async function get(deps: FacadeDeps, input: InputOf<typeof GET_COHORT>): Promise<Answer> {
  const row = await requireCohort(deps, input.caller, input.path.cohortId);
  return { body: await reportedCohort(deps, input, { row, ...input.parameters }) };
}

/** Of the caller's tenant, without their members. */
export async function shownCohorts(
  { stores }: Pick<FacadeDeps, 'stores'>,
  asker: Asker,
  rows: readonly CohortRow[],
): Promise<Cohort[]> {
  const ids = rows.map(({ cohortId }) => cohortId);
  const totals = await stores.cohorts.totals(asker.caller.tenant, ids);
  return rows.map((row) => cohortView(asker, row, totals.get(row.cohortId) ?? NOTHING_YET));
}

/** Of what a list shows of a prompt, or of a value of the configuration, in characters. */
const LISTED_CHARACTERS = 200;

/** Its change in short: one alone may hold prompts of a megabyte. */
export function summedCohort(row: CohortRow): CohortRow {
  const { build, agents, configurable } = row.request.change;
  const change = {
    ...(build === undefined ? {} : { build }),
    ...(agents ? { agents: mapped(agents, summedAgent) } : {}),
    ...(configurable ? { configurable: mapped(configurable, summedValue) } : {}),
  };
  return { ...row, request: { ...row.request, change } };
}

type ChangedAgent = NonNullable<CohortChange['agents']>[string];

function summedAgent({ systemPrompt, ...version }: ChangedAgent): ChangedAgent {
  return systemPrompt === undefined ? version : { ...version, systemPrompt: cut(systemPrompt) };
}

function summedValue(value: JsonValue): JsonValue {
  const text = JSON.stringify(value);
  return text.length <= LISTED_CHARACTERS ? value : cut(text);
}

function cut(text: string): string {
  return text.length <= LISTED_CHARACTERS ? text : `${text.slice(0, LISTED_CHARACTERS - 1)}…`;
}

function mapped<Value, Other>(
  values: Readonly<Record<string, Value>>,
  of: (value: Value) => Other,
): Record<string, Other> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, of(value)]));
}

export interface ReportQuery {
  readonly row: CohortRow;
  readonly from: number;
  readonly limit: number;
  readonly outcome?: (typeof MEMBER_OUTCOMES)[number];
}

export async function reportedCohort(
  { stores }: Pick<FacadeDeps, 'stores'>,
  asker: Asker,
  { row, ...query }: ReportQuery,
): Promise<Cohort> {
  const [cohort] = await shownCohorts({ stores }, asker, [row]);
  const { members, nextFrom } = await cohortPage({ stores }, row, query);
  return {
    ...(cohort as Cohort),
    results: members.map((member) => memberView(asker, member)),
    ...(nextFrom === undefined ? {} : { nextFrom }),
  };
}

const NONE = Object.fromEntries(MEMBER_OUTCOMES.map((outcome) => [outcome, 0])) as Record<
  MemberOutcome,
  number
>;
const NO_USE = { inputTokens: 0, outputTokens: 0 };
const NOTHING_YET: CohortTotals = { counts: {}, before: NO_USE, after: NO_USE };

function cohortView(asker: Asker, row: CohortRow, { counts, before, after }: CohortTotals): Cohort {
  const { cohortId, state, createdAtMs, endedAtMs, members, request, unreadable } = row;
  const { select, change, parallel, memberTimeoutMs, leftOut } = request;
  const { fromMs, untilMs, workflowId, ...picked } = select;
  const totals = { ...NONE, ...counts };
  return {
    ...{ cohortId, state, mode: isReplay(change) ? 'replay' : 'branch' },
    createdAt: iso(createdAtMs),
    ...(endedAtMs === undefined ? {} : { endedAt: iso(endedAtMs) }),
    select: {
      ...picked,
      ...(workflowId === undefined
        ? {}
        : { workflowId: asker.major.ids.bind('workflow', workflowId, asker.caller.tenant) }),
      ...(fromMs === undefined ? {} : { from: iso(fromMs) }),
      ...(untilMs === undefined ? {} : { until: iso(untilMs) }),
    },
    change,
    ...{ parallel, memberTimeoutMs, members },
    settled: Object.values(counts).reduce((sum, count) => sum + count, 0),
    ...(leftOut
      ? {
          leftOut: {
            ...{ runs: leftOut.runs, runIds: leftOut.runIds.map((id) => shownRunId(asker, id)) },
          },
        }
      : {}),
    ...{ totals, before, after },
    ...(unreadable ? { unreadable } : {}),
  };
}

function memberView(asker: Asker, member: CohortMember): CohortMemberResult {
  const { position, sourceRunId, forkRunId, isMade, outcome, report = {}, unreadable } = member;
  const { changes, ...told } = report;
  return {
    ...{ position, sourceRunId: shownRunId(asker, sourceRunId) },
    ...(isMade ? { forkRunId: shownRunId(asker, forkRunId) } : {}),
    ...(outcome === undefined ? {} : { outcome }),
    ...told,
    ...(changes === undefined ? {} : { changes: [...changes] }),
    ...(unreadable ? { unreadable } : {}),
  };
}
