// POST /v1/host/sample/dispatch/fanout (RFC 0118, host-sample-test-seams.md): several workers at once by the dispatch node,
// behind an orchestrator whose plan names them.
import type { FacadeDeps } from '../deps.ts';
import type { JsonObject } from '../../rules/json.ts';
import { MAX_FAN_OUT } from '../../rules/children.ts';
import { withShownIds } from '../../wire/major.ts';
import { answered, type Answer, type Declaration, type InputOf, type Route } from '../route.ts';
import {
  checkedDefinition,
  lastOf,
  seamBody,
  seenRun,
  startSeamRun,
  withDefinition,
} from './seam.ts';

interface Asked {
  readonly nextWorkerIds: readonly string[];
  readonly config?: JsonObject;
}

const FAN_OUT = {
  method: 'post',
  path: '/host/sample/dispatch/fanout',
  operationId: 'seamFanOut',
  summary: 'Dispatch several workers at once, and join them. Test mode only.',
  access: 'runs:create',
  body: seamBody<Asked>(
    {
      type: 'object',
      properties: {
        nextWorkerIds: {
          ...{ type: 'array', minItems: 2, maxItems: MAX_FAN_OUT },
          items: { type: 'string', minLength: 1, maxLength: 256 },
        },
        config: { type: 'object' },
      },
      required: ['nextWorkerIds'],
    },
    { nextWorkerIds: ['refund', 'refund'] },
  ),
  success: { status: 200, description: 'The run has ended, or waits for somebody.' },
} as const satisfies Declaration;

export function fanOutRoute(deps: FacadeDeps): Route {
  return answered(FAN_OUT, (input) => fanOut(deps, input));
}

async function fanOut(deps: FacadeDeps, input: InputOf<typeof FAN_OUT>): Promise<Answer> {
  const { caller, major, body } = input;
  const definition = checkedDefinition(deps, caller, planOf(body));
  const catalog = withDefinition(deps.catalog, definition);
  const runId = await startSeamRun({ ...deps, catalog }, caller, {
    ...{ workflowId: definition.id, inputs: {}, configurable: {} },
  });
  const seen = await seenRun(deps, caller, runId);
  const join = seen.rows.findLast(({ payload }) => Array.isArray(payload.mergeOrder))?.payload;
  const { runs } = await deps.stores.families.children(seen.run, { limit: MAX_FAN_OUT });
  return {
    body: {
      ...{ runId, joinOutcome: join?.joinOutcome, mergeOrder: join?.mergeOrder ?? [] },
      children: runs.map(({ run, workflowId, status }) =>
        withShownIds(major, caller.tenant, { runId: run.runId, workflowId, status }),
      ),
      error: lastOf(seen, 'run-ends')?.error,
    },
  };
}

function planOf({ nextWorkerIds, config = {} }: Asked): object {
  const place = { position: { x: 0, y: 0 }, inputs: {} };
  const plan = [
    { kind: 'next-worker', nextWorkerIds },
    { kind: 'terminate', reason: 'done' },
  ];
  return {
    ...{
      id: 'conformance-seam-fan-out',
      name: 'Fan-out',
      version: '1',
      metadata: {},
      settings: {},
    },
    nodes: [
      {
        ...{ id: 'plan', typeId: 'core.orchestrator.supervisor', name: 'plan', ...place },
        config: { mockDispatchPlan: plan },
      },
      {
        ...{ id: 'work', typeId: 'core.dispatch', name: 'work', ...place },
        config: { fanOutPolicy: 'parallel', joinPolicy: { mode: 'wait-all' }, ...config },
      },
    ],
    edges: [
      { id: 'out', sourceNodeId: 'plan', targetNodeId: 'work' },
      { id: 'back', sourceNodeId: 'work', targetNodeId: 'plan' },
    ],
    ...{ triggers: [], variables: [] },
  };
}
