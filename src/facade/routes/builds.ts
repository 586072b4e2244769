// The worker's builds beside each other (docs/upgrades.md): what each is and holds, which takes new runs, where runs are
// moved. Extensions of this host.
import type { Build, BuildRun, MovedRuns, MoveTarget } from '../../ports/deployments.ts';
import { requireRun } from '../../runs/find.ts';
import { mustBeValid } from '../../wire/checked.ts';
import { validate } from '../../wire/validators.ts';
import type { FacadeDeps } from '../deps.ts';
import { iso } from '../../rules/unreadable.ts';
import {
  answered,
  shape,
  type Answer,
  type Declaration,
  type Input,
  type InputOf,
  type Route,
} from '../route.ts';
import { shownRunId } from '../urls.ts';

const BASE = '/host/openwop-temporal/deployments';

/** The declarations, by the names under which discovery tells their addresses. */
export const BUILDS = {
  listBuilds: {
    method: 'get',
    path: BASE,
    operationId: 'listBuilds',
    summary:
      "The worker's builds, newest first: which takes new runs, how many each holds. An extension of this host.",
    access: 'deployments:operate',
    success: {
      status: 200,
      description: 'Empty where no worker names one.',
      schema: shape('BuildList'),
    },
    errors: ['service_unavailable'],
  },
  listBuildRuns: {
    method: 'get',
    path: `${BASE}/{buildId}/runs`,
    operationId: 'listBuildRuns',
    summary:
      'Open runs of a build, 100 at most, and why their workflow tasks fail where they do. An extension of this host.',
    access: 'deployments:operate',
    success: { status: 200, description: 'The runs.', schema: shape('BuildRunList') },
    errors: ['service_unavailable', 'build_not_found', 'build_conflict'],
  },
  promoteBuild: {
    method: 'post',
    path: `${BASE}/{buildId}/promote`,
    operationId: 'promoteBuild',
    summary:
      'New runs go to this build, or a part of them; `unversioned`: to workers that name none. An extension of this host.',
    access: 'deployments:operate',
    body: {
      required: false,
      schema: shape('BuildPromoteRequest'),
      example: { percent: 10 },
      parse: (body = {}) => mustBeValid(validate.buildPromoteRequest(body)),
    },
    success: {
      status: 200,
      description: 'All builds as they are now.',
      schema: shape('BuildList'),
    },
    errors: ['service_unavailable', 'build_not_found', 'build_conflict'],
  },
  moveRuns: {
    method: 'post',
    path: `${BASE}/move`,
    operationId: 'moveRuns',
    summary: 'Open runs go on with another build; nothing runs by it. An extension of this host.',
    access: 'deployments:operate',
    body: {
      required: true,
      schema: shape('RunsMoveRequest'),
      example: { fromBuild: '2026-05-01', toBuild: '2026-06-01' },
      parse: (body = {}) => mustBeValid(validate.runsMoveRequest(body)),
    },
    success: {
      status: 200,
      description: 'Which were moved, and which not.',
      schema: shape('MovedRuns'),
    },
    errors: [
      ...(['service_unavailable', 'run_not_found', 'run_expired'] as const),
      ...(['build_not_found', 'build_conflict'] as const),
    ],
  },
} as const satisfies Record<string, Declaration>;

export function buildRoutes(deps: FacadeDeps): Route[] {
  return [
    answered(BUILDS.listBuilds, () => listBuilds(deps)),
    answered(BUILDS.listBuildRuns, async (input) => {
      const runs = await deps.deployments.runsOf(input.path.buildId);
      return { body: { runs: runs.map((run) => shownRun(input, run)) } };
    }),
    answered(BUILDS.promoteBuild, async ({ path, body: { percent = 100 } }) => {
      await deps.deployments.promote(path.buildId, percent);
      return listBuilds(deps);
    }),
    answered(BUILDS.moveRuns, async (input) => {
      const moved = await moveRuns(deps, input);
      return { body: shownMoved(input, moved) };
    }),
  ];
}

async function listBuilds({ deployments }: Pick<FacadeDeps, 'deployments'>): Promise<Answer> {
  const { builds = [], currentBuildId, runsWithoutWorker = 0 } = (await deployments.read()) ?? {};
  const body = { builds: builds.map(shownBuild), currentBuildId, runsWithoutWorker };
  return { body };
}

function shownBuild({ sinceMs, ...build }: Build) {
  return {
    ...build,
    ...(sinceMs === undefined ? {} : { since: iso(sinceMs) }),
  };
}

async function moveRuns(
  { deployments, stores }: FacadeDeps,
  { body, caller, major }: InputOf<typeof BUILDS.moveRuns>,
): Promise<MovedRuns> {
  const { runIds, fromBuild = '', toBuild, cursor } = body;
  const target: MoveTarget = toBuild === undefined ? 'current-from-now-on' : { buildId: toBuild };
  if (runIds === undefined) return deployments.moveFrom(fromBuild, target, cursor);
  const rows = await Promise.all(
    runIds.map((shown) => requireRun({ stores }, caller, major.ids.parse('run', shown, caller))),
  );
  return deployments.moveRuns(
    rows.map(({ runId }) => runId),
    target,
  );
}

function shownRun(input: Pick<Input, 'major' | 'caller'>, { runId, ...more }: BuildRun) {
  return { runId: shownRunId(input, runId), ...more };
}

function shownMoved(
  input: Pick<Input, 'major' | 'caller'>,
  { moved, failed, nextCursor }: MovedRuns,
) {
  return {
    moved: moved.map((runId) => shownRunId(input, runId)),
    failed: failed.map(({ runId, reason }) => ({ runId: shownRunId(input, runId), reason })),
    ...(nextCursor === undefined ? {} : { nextCursor }),
  };
}
