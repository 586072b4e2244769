// GET /v1/runs/{runId}:diff (RFC 0054): two runs' logs, aligned. And, as an extension of this host, the same as people look
// at it: where they went apart, why, and what each step did otherwise.
import { overlayOf } from '../../rules/divergence.ts';
import type { JsonObject } from '../../rules/json.ts';
import type { RunStep } from '../../rules/run-steps.ts';
import type { LogRow } from '../../ports/log.ts';
import type { RunRow } from '../../ports/runs.ts';
import { compareRuns, type Comparison, type ToldRun } from '../../runs/compare.ts';
import { diffRuns } from '../../runs/diff.ts';
import { requireRun } from '../../runs/find.ts';
import { rowsShown } from '../../wire/major.ts';
import type {
  ComparedRun,
  RunComparison,
  RunDiffResponse,
  StepSide,
} from '../../../schemas/types.generated.ts';
import type { FacadeDeps } from '../deps.ts';
import { required, text } from '../parameters.ts';
import { STALE_HEADER } from '../read-head.ts';
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

const AGAINST = {
  against: required(
    text('The other run.', {
      ...{ minLength: 1, maxLength: 256, reason: 'must name a run' },
      example: 'run-1srOrx2ZWZBpBUvZwXKQmoEYga2',
    }),
  ),
};

export const DIFF_RUNS = {
  method: 'get',
  path: '/runs/{runId}:diff',
  operationId: 'diffRun',
  summary: 'What the logs and the states of two runs do not have in common, fact by fact.',
  access: 'runs:read',
  about: 'run',
  parameters: AGAINST,
  success: { status: 200, description: 'The differences.', schema: shape('RunDiffResponse') },
  errors: ['service_unavailable'],
} as const satisfies Declaration;

export const COMPARE_RUNS = {
  method: 'get',
  path: '/host/openwop-temporal/runs/{runId}/diff',
  operationId: 'compareRuns',
  summary:
    'Where two runs went apart, why, and what each step did otherwise. An extension of this host.',
  access: 'runs:read',
  about: 'run',
  parameters: AGAINST,
  success: { status: 200, description: 'The comparison.', schema: shape('RunComparison') },
  errors: ['service_unavailable'],
} as const satisfies Declaration;

export function diffRoutes(deps: FacadeDeps): Route[] {
  return [
    answered(DIFF_RUNS, (input) => diff(deps, input)),
    answered(COMPARE_RUNS, (input) => compare(deps, input)),
  ];
}

type Asked = InputOf<typeof DIFF_RUNS | typeof COMPARE_RUNS>;

/** Foreign ones are unknown, as is the run of the path. */
async function otherRun(deps: FacadeDeps, input: Asked): Promise<RunRow> {
  const { caller, major, parameters } = input;
  return requireRun(deps, caller, major.ids.parse('run', parameters.against, caller));
}

async function diff(deps: FacadeDeps, input: InputOf<typeof DIFF_RUNS>): Promise<Answer> {
  const other = await otherRun(deps, input);
  const { events, state, truncated, stale } = await diffRuns(deps, input.run, other);
  const [ofA, ofB] = [shownBy(input, input.run), shownBy(input, other)];
  const eventDiffs = events.map(({ seq, a, b }) => ({
    ...{ seq, op: opOf(a !== undefined, b !== undefined) },
    ...(a ? { aEvent: ofA(a) } : {}),
    ...(b ? { bEvent: ofB(b) } : {}),
  }));
  const states = state.map(({ pointer, ...sides }) => [
    pointer,
    { op: opOf('a' in sides, 'b' in sides), ...sides },
  ]);
  const body: RunDiffResponse = {
    a: shownRunId(input, input.run.runId),
    b: shownRunId(input, other.runId),
    divergedAtSeq: events[0]?.seq ?? null,
    eventDiffs,
    stateDiff: Object.fromEntries(states) as RunDiffResponse['stateDiff'],
    ...(truncated ? { truncated } : {}),
  };
  return { headers: stale ? { [STALE_HEADER]: 'true' } : {}, body };
}

function opOf(inA: boolean, inB: boolean): 'added' | 'removed' | 'changed' {
  if (inA && inB) return 'changed';
  return inA ? 'removed' : 'added';
}

function shownBy({ major }: Pick<Input, 'major'>, row: RunRow): (event: LogRow) => JsonObject {
  const shown = rowsShown(major, row);
  return (event) => JSON.parse(shown.textOf(event)) as JsonObject;
}

async function compare(deps: FacadeDeps, input: InputOf<typeof COMPARE_RUNS>): Promise<Answer> {
  const compared = await compareRuns(deps, input.run, await otherRun(deps, input));
  const headers = compared.stale ? { [STALE_HEADER]: 'true' } : undefined;
  return { ...(headers ? { headers } : {}), body: comparisonView(input, compared) };
}

/** The wire form: the page shows what this says. */
export function comparisonView(
  input: Pick<Input, 'major' | 'caller'>,
  { a, b, same, divergence, pinned, steps, end, truncated }: Comparison,
): RunComparison {
  const nodeId = (id: string): string => input.major.ids.bind('node', id, input.caller.tenant);
  return {
    ...{ a: runView(input, a), b: runView(input, b), same },
    divergence: divergence ? divergenceView(input, { divergence, a, b }) : null,
    pinned: pinned.map(({ fact, differences }) => ({ fact, differences: [...differences] })),
    steps: steps.map((step) => ({
      ...{ nodeId: nodeId(step.nodeId), nodeName: step.nodeName, visit: step.visit },
      ...(step.a ? { a: stepSide(step.a) } : {}),
      ...(step.b ? { b: stepSide(step.b) } : {}),
      differences: [...step.differences],
    })),
    end: [...end],
    ...(truncated ? { truncated } : {}),
  };
}

function divergenceView(
  input: Pick<Input, 'major' | 'caller'>,
  { divergence, a, b }: Required<Pick<Comparison, 'divergence' | 'a' | 'b'>>,
): RunComparison['divergence'] {
  const { seq, cause, overlay, build, nodeId, nodeName, differences } = divergence;
  return {
    ...{ seq, cause, differences: [...differences] },
    ...(overlay ? { overlay } : {}),
    ...(build ? { build } : {}),
    ...(nodeId === undefined
      ? {}
      : { nodeId: input.major.ids.bind('node', nodeId, input.caller.tenant), nodeName }),
    ...(divergence.a ? { aEvent: shownBy(input, a.row)(divergence.a) } : {}),
    ...(divergence.b ? { bEvent: shownBy(input, b.row)(divergence.b) } : {}),
  };
}

function runView(input: Pick<Input, 'major' | 'caller'>, { row, ...told }: ToldRun): ComparedRun {
  const { runId, workflowId, input: started } = row;
  const { definition, fork } = started;
  return {
    runId: shownRunId(input, runId),
    workflowId: input.major.ids.bind('workflow', workflowId, input.caller.tenant),
    workflowName: definition.name,
    ...told,
    ...(fork
      ? {
          ...{ forkOf: shownRunId(input, fork.sourceRunId), fromSeq: fork.fromSeq },
          ...(fork.asked ? { overlay: overlayOf(fork) } : {}),
        }
      : {}),
  };
}

function stepSide({ status, startedAtMs, endedAtMs, use, confidence }: RunStep): StepSide {
  return {
    status,
    ...(endedAtMs === undefined ? {} : { durationMs: endedAtMs - startedAtMs }),
    ...use,
    ...(confidence === undefined ? {} : { confidence }),
  };
}
