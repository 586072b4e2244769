// Child runs (RFC 0007, RFC 0022; seed 003 §3.4): how a run's activity accepts one, learns how it ended, and ends it. A
// child is accepted as every run is, under an id that its parent's step fixes: each try of that step finds the same run.
import {
  depthOf,
  MAX_CHILD_DEPTH,
  MAX_DESCENDANTS,
  type ChildEnd,
  type ChildRequest,
  type ChildStart,
} from '../rules/children.ts';
import { codeOf, HostError } from '../rules/errors.ts';
import type { Recording } from '../rules/recording.ts';
import type { RunHeader, RunInput } from '../rules/run-input.ts';
import { TERMINAL_STATUSES } from '../rules/status.ts';
import { subjectOf } from '../rules/subject.ts';
import type { Caller } from '../ports/caller.ts';
import type { RunRef, RunRow } from '../ports/runs.ts';
import { foldedRun } from '../log/fold.ts';
import { keepTimeBelow, type Below, type BelowRequest } from './below-clock.ts';
import { cancelRun } from './cancel.ts';
import type { ChildrenDeps } from './deps.ts';
import { forkChildren } from './fork-children.ts';
import { buildRunInput } from './input.ts';
import { startNew, startRun } from './start.ts';
import { requireTask } from './task.ts';

/** For activities. Parents and children belong to one tenant. */
export interface Children {
  /** One batch, in its order; `signal` is looked at between two. */
  accept(
    parent: RunRef,
    requests: readonly ChildRequest[],
    signal?: AbortSignal,
  ): Promise<readonly ChildStart[]>;
  end(parent: RunRef, childRunId: string): Promise<ChildEnd | 'lost' | undefined>;
  cancel(
    parent: RunRef,
    child: { readonly childRunId: string; readonly reason: string },
  ): Promise<'open' | 'ended' | 'none'>;
  keepTime(request: BelowRequest): Promise<Below>;
  /** Of a fork: those that its source had, as its `recording` tells. */
  fork(parent: RunRef, recording: Recording, signal?: AbortSignal): Promise<void>;
}

export function createChildren(deps: ChildrenDeps): Children {
  return {
    accept: (parent, requests, signal) => acceptChildren(deps, { parent, requests, signal }),
    end: (parent, childRunId) => endOfChild(deps, parent, childRunId),
    cancel: (parent, child) => cancelChild(deps, parent, child),
    keepTime: (request) => keepTimeBelow(deps, request),
    fork: async (parent, recording, signal) =>
      forkChildren(deps, await rowOf(deps, parent), { recording, signal }),
  };
}

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

interface Batch {
  readonly parent: RunRef;
  readonly requests: readonly ChildRequest[];
  readonly signal: AbortSignal | undefined;
}

/**
 * Accepts and starts children of `parent`. Throws service_unavailable, and internal_error where another parent has a run
 * of such an id.
 */
async function acceptChildren(
  deps: ChildrenDeps,
  { parent, requests, signal }: Batch,
): Promise<readonly ChildStart[]> {
  const starts: ChildStart[] = [];
  let row: Promise<RunRow> | undefined;
  // Of a batch that a later try finds started nobody reads the parent, which may be large.
  const parentRow = () => (row ??= rowOf(deps, parent));
  for (const request of requests) {
    signal?.throwIfAborted();
    starts.push(await acceptChild(deps, { parent, parentRow }, request));
  }
  return starts;
}

async function acceptChild(
  deps: ChildrenDeps,
  { parent, parentRow }: { readonly parent: RunRef; readonly parentRow: () => Promise<RunRow> },
  request: ChildRequest,
): Promise<ChildStart> {
  const known = await deps.stores.runs.find(parent.tenant, request.runId);
  const row = known ?? (await newChild(deps, await parentRow(), request));
  if ('kind' in row) return row;
  const { parentRunId, causationId } = row.input.header;
  if (parentRunId !== parent.runId || causationId !== request.callId)
    throw new HostError('internal_error', {
      reason: 'The id of the child belongs to another run.',
    });
  await (known ? startRun(deps, row) : startNew(deps, row));
  return { kind: 'started', workflowId: row.workflowId };
}

async function rowOf({ stores }: Pick<ChildrenDeps, 'stores'>, run: RunRef): Promise<RunRow> {
  const row = await stores.runs.find(run.tenant, run.runId);
  if (!row) throw new HostError('run_not_found', { runId: run.runId });
  return row;
}

async function newChild(
  deps: ChildrenDeps,
  parent: RunRow,
  request: ChildRequest,
): Promise<RunRow | Extract<ChildStart, { kind: 'refused' }>> {
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
  const row = await deps.stores.families.acceptChild(
    {
      runId: input.runId,
      tenant: parent.tenant,
      workflowId: input.definition.id,
      input,
      // Whatever the clocks of two processes say: who reads a family finds a parent before its children.
      createdAtMs: Math.max(Date.now(), parent.createdAtMs + 1),
      ...(parent.subjectKey === undefined ? {} : { subjectKey: parent.subjectKey }),
    },
    MAX_DESCENDANTS,
  );
  if (row === 'parent-ended') throw new HostError('run_state_conflict');
  return row === 'full' ? breached('child-runs', MAX_DESCENDANTS) : row;
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
  };
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
  const { interruptTimeoutMs = config.interruptTimeoutMs } = limits;
  return {
    ...config,
    escalation: policy.escalation,
    ...(interruptTimeoutMs === undefined ? {} : { interruptTimeoutMs }),
  };
}

/** A child is started in the name of who started its parent, and may do no more than be run. */
function callerOf({ tenant, input }: RunRow): Caller {
  const subject = input.subject ?? subjectOf('api-key', tenant, input.principal ?? '');
  return { tenant, subject, scopes: [] };
}

function breached(
  kind: 'child-depth' | 'child-runs',
  limit: number,
): Extract<ChildStart, { kind: 'refused' }> {
  const message =
    kind === 'child-depth'
      ? `Runs may start each other over ${limit} generations.`
      : `A run may have ${limit} runs below it.`;
  return { kind: 'refused', code: 'child_limit_exceeded', message, breach: { kind, limit } };
}

/** Throws what is not the request's fault. */
function refused(error: unknown): Extract<ChildStart, { kind: 'refused' }> {
  const code = codeOf(error);
  if (code === undefined || !REFUSALS.has(code)) throw error;
  const { message } = error as HostError;
  const told = code === 'workflow_not_found' ? 'unknown_child_workflow' : code;
  return { kind: 'refused', code: told, message };
}

/**
 * Undefined while it has not ended. `lost`: there is no such child, or not any more. Throws service_unavailable where
 * its log cannot be read fresh.
 */
async function endOfChild(
  { stores, log }: Pick<ChildrenDeps, 'stores' | 'log'>,
  parent: RunRef,
  childRunId: string,
): Promise<ChildEnd | 'lost' | undefined> {
  const row = await stores.runs.find(parent.tenant, childRunId);
  if (row?.input.header.parentRunId !== parent.runId) return 'lost';
  const { head, stale } = await log.fresh(row).catch((error: unknown) => {
    // A log that is gone comes back: it can be rebuilt.
    throw codeOf(error) === 'run_not_found' ? new HostError('service_unavailable') : error;
  });
  if (!head.closed) {
    if (stale) throw new HostError('service_unavailable');
    return undefined;
  }
  await stores.families.endTaken(row);
  const { outputs = {}, variables, error } = foldedRun(head.snapshot);
  // What an agent was given are its run's variables; what it decided are the run's outputs.
  const isAgents = row.input.source === 'run-api';
  return {
    status: head.status as ChildEnd['status'],
    outputs,
    variables: isAgents ? { ...variables, ...outputs } : variables,
    ...(error ? { error: { code: error.code, message: error.message } } : {}),
  };
}

/** Asks a child to end because its parent does; one that has ended already, or is gone, stays so. */
export async function cancelChild(
  deps: ChildrenDeps,
  parent: RunRef,
  { childRunId, reason }: { readonly childRunId: string; readonly reason: string },
): Promise<'open' | 'ended' | 'none'> {
  const row = await deps.stores.runs.find(parent.tenant, childRunId);
  if (row?.input.header.parentRunId !== parent.runId) return 'none';
  const status = await cancelRun(
    deps,
    { row, reason, cancelledBy: `run:${parent.runId}`, parentRunId: parent.runId },
    { updateId: `parent-${childRunId}`, bodyDigest: '' },
  );
  return TERMINAL_STATUSES.has(status) ? 'ended' : 'open';
}
