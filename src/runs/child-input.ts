// What a child run is accepted with (RFC 0007, RFC 0022; seed 003 §3.4): its parent's name, settings and session, what the
// step that asks for it gives it, or why it is refused.
import { depthOf, MAX_CHILD_DEPTH, type ChildRequest, type ChildStart } from '../rules/children.ts';
import { codeOf, HostError } from '../rules/errors.ts';
import { childSeriesOf } from '../rules/ids.ts';
import { seriesOf, type RunHeader, type RunInput } from '../rules/run-input.ts';
import type { Caller } from '../ports/caller.ts';
import type { RunRow } from '../ports/runs.ts';
import type { ChildrenDeps } from './deps.ts';
import { buildRunInput } from './input.ts';
import { requireTask } from './task.ts';

export type Refused = Extract<ChildStart, { kind: 'refused' }>;

/** Keys of `configurable` that bound one run; everything else is a child's as its parent's. */
const OWN_CONFIGURABLE: ReadonlySet<string> = new Set(['recursionLimit', 'runTimeoutMs']);

/** Refusals that are the parent's to deal with; anything else is a fault, and the step is tried again. */
const REFUSALS: ReadonlySet<string> = new Set([
  'workflow_not_found',
  'agent_not_found',
  'validation_error',
  'handoff_task_schema_violation',
  'payload_too_large',
  'model_unavailable',
  'model_not_configured',
]);

/** Nothing is stored. Throws what is not the request's fault. */
export function childInputFor(
  deps: ChildrenDeps,
  parent: RunRow,
  request: ChildRequest,
): RunInput | Refused {
  const header = headerOf(parent, request);
  if (depthOf(header) > MAX_CHILD_DEPTH) return breached('child-depth', MAX_CHILD_DEPTH);
  let input: RunInput;
  try {
    const { target, inputs } = request;
    if ('agentId' in target) requireTask(deps.catalog.agent(parent.tenant, target.agentId), inputs);
    input = childInput(deps, parent, { request, header });
  } catch (error) {
    return refused(error);
  }
  const exposed = exposure(input, request);
  if (exposed) return refused(exposed);
  const { leftTools } = request;
  return leftTools ? { ...input, leftTools } : input;
}

function headerOf({ runId, input }: RunRow, request: ChildRequest): RunHeader {
  const { sessionId, correlationId } = input.header;
  return {
    sessionId,
    parentRunId: runId,
    parentNodeId: request.nodeId,
    correlationId,
    causationId: request.callId,
    depth: depthOf(input.header) + 1,
    childCause: request.cause,
    startedBy: { runId, key: request.startedBy },
    ...(request.isDetached ? { isDetached: true } : {}),
    ...seriesIn({ runId, input }, request.place),
  };
}

/** Place and series of a child of this run. */
export function seriesIn(
  { runId, input }: Pick<RunRow, 'runId' | 'input'>,
  place: string,
): Pick<RunHeader, 'place' | 'series'> {
  return { place, series: childSeriesOf(seriesOf(input.header, runId), place) };
}

/** What a log masks nobody reads out of it: a mapping would hand its mask on, or show what it hides. */
function exposure(
  { definition }: Pick<RunInput, 'definition'>,
  { harvest, sensitive: given = [] }: ChildRequest,
): HostError | undefined {
  const taken = definition.variables.find(
    ({ name, sensitive }) => sensitive && harvest.includes(name),
  );
  if (taken) {
    const reason = `The variable ${taken.name} of the child workflow is sensitive: no mapping takes it.`;
    return new HostError('validation_error', { field: '/outputMapping', reason });
  }
  const shown = definition.variables.find(
    ({ name, sensitive }) => !sensitive && given.includes(name),
  );
  if (!shown) return undefined;
  const reason = `The variable ${shown.name} of the child workflow is given a sensitive value, and is not sensitive.`;
  return new HostError('validation_error', { field: '/inputMapping', reason });
}

function childInput(
  deps: ChildrenDeps,
  parent: RunRow,
  { request, header }: { readonly request: ChildRequest; readonly header: RunHeader },
): RunInput {
  const { configurable } = parent.input;
  const passed = Object.entries(configurable).filter(([name]) => !OWN_CONFIGURABLE.has(name));
  const { runId, unset, clockMs } = request;
  return buildRunInput({ ...deps, config: settingsOf(deps, parent) }, callerOf(parent), {
    ...request.target,
    inputs: request.inputs,
    configurable: Object.fromEntries(passed),
    birth: {
      ...{ runId, header },
      ...(unset ? { unset } : {}),
      ...(clockMs === undefined ? {} : { rehearsal: { fromMs: clockMs } }),
    },
  });
}

/** Whether and how long humans are asked is fixed where the root is accepted: a child is accepted by some worker. */
function settingsOf(
  { config }: Pick<ChildrenDeps, 'config'>,
  { input: { policy, limits } }: RunRow,
): ChildrenDeps['config'] {
  const { interruptTimeoutMs } = limits;
  return { ...config, escalation: policy.escalation, interruptTimeoutMs };
}

/** A child is started in the name of who started its parent, and may do no more than be run. */
function callerOf({ tenant, input }: RunRow): Caller {
  return { tenant, subject: input.subject, scopes: [] };
}

export function breached(kind: 'child-depth' | 'child-runs', limit: number): Refused {
  const message =
    kind === 'child-depth'
      ? `Runs may start each other over ${limit} generations.`
      : `A run may have ${limit} runs below it.`;
  return { kind: 'refused', code: 'child_limit_exceeded', message, breach: { kind, limit } };
}

/** Throws what is not the request's fault. */
function refused(error: unknown): Refused {
  const code = codeOf(error);
  if (code === undefined || !REFUSALS.has(code)) throw error;
  const { message } = error as HostError;
  const told = code === 'workflow_not_found' ? 'unknown_child_workflow' : code;
  return { kind: 'refused', code: told, message };
}
