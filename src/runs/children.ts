// Child runs (RFC 0007, RFC 0022; seed 003 §3.4): how a run's activity accepts one, learns how it ended, and ends it. A
// child is accepted as every run is, under an id that its parent's step fixes: each try of that step finds the same run.
import {
  MAX_DESCENDANTS,
  type ChildEnd,
  type ChildRequest,
  type ChildStart,
} from '../rules/children.ts';
import { codeOf, ERRORS, HostError } from '../rules/errors.ts';
import type { Recording } from '../rules/recording.ts';
import { TERMINAL_STATUSES } from '../rules/status.ts';
import { unreadableFor } from '../rules/unreadable.ts';
import type { RunRef, RunRow } from '../ports/runs.ts';
import { foldedRun } from '../log/fold.ts';
import { keepTimeBelow, type Below, type BelowRequest } from './below-clock.ts';
import { askToEnd, cancelRun } from './cancel.ts';
import { BY_RUN, freshLog, staleness } from './child-ends.ts';
import { breached, childInputFor, type Refused } from './child-input.ts';
import type { ChildrenDeps } from './deps.ts';
import { forkChildren, type Forked } from './fork-children.ts';
import { recordedChildren, type RecordedBatch } from './recorded-children.ts';
import { startNew, startRun } from './start.ts';

/** For activities. Parents and children belong to one tenant. */
export interface Children {
  /** One batch, in its order; `signal` is looked at between two. */
  accept(
    parent: RunRef,
    requests: readonly ChildRequest[],
    signal?: AbortSignal,
  ): Promise<readonly ChildStart[]>;
  /** In the place of such a batch: nothing begins, and each is one that the record of another run has. */
  recorded(
    parent: RunRef,
    batch: RecordedBatch,
    signal?: AbortSignal,
  ): Promise<readonly ChildStart[]>;
  end(parent: RunRef, childRunId: string): Promise<ChildEnd | 'lost' | undefined>;
  /** The same of a run that is no child of the asking one: what its own parent knows stays as it is. */
  recordedEnd(parent: RunRef, childRunId: string): Promise<ChildEnd | 'lost' | undefined>;
  cancel(
    parent: RunRef,
    child: { readonly childRunId: string; readonly reason: string },
  ): Promise<'open' | 'ended' | 'none'>;
  keepTime(request: BelowRequest): Promise<Below>;
  /** Of a fork: those that its source had, as its `recording` tells. */
  fork(parent: RunRef, recording: Recording, more?: Omit<Forked, 'recording'>): Promise<void>;
}

export function createChildren(deps: ChildrenDeps): Children {
  return {
    accept: (parent, requests, signal) => acceptChildren(deps, { parent, requests, signal }),
    recorded: async (parent, batch, signal) =>
      recordedChildren(deps, { parent: await rowOf(deps, parent), signal }, batch),
    end: (parent, childRunId) => endOfChild(deps, { parent, isTaken: true }, childRunId),
    recordedEnd: (parent, childRunId) => endOfChild(deps, { parent, isTaken: false }, childRunId),
    cancel: (parent, child) => cancelChild(deps, parent, child),
    keepTime: (request) => keepTimeBelow(deps, request),
    fork: async (parent, recording, more) =>
      forkChildren(deps, await rowOf(deps, parent), { recording, ...more }),
  };
}

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
): Promise<RunRow | Refused> {
  const input = childInputFor(deps, parent, request);
  if ('kind' in input) return input;
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

/**
 * Undefined while it has not ended. `lost`: there is no such child, or not any more. Throws service_unavailable where
 * its log cannot be read fresh.
 */
async function endOfChild(
  { stores, log }: Pick<ChildrenDeps, 'stores' | 'log'>,
  { parent, isTaken }: { readonly parent: RunRef; readonly isTaken: boolean },
  childRunId: string,
): Promise<ChildEnd | 'lost' | undefined> {
  const child = await childOf({ stores }, parent, childRunId);
  if (!child) return 'lost';
  const { run, row, error: unread } = child;
  // Another process may have the key.
  if (unread && codeOf(unread) !== DAMAGED) throw unread as Error;
  const { head, stale } = await freshLog(log, run);
  if (!head.closed) {
    if (stale) throw staleness(head);
    return undefined;
  }
  if (isTaken) await stores.families.endTaken(run);
  if (!row && head.status === 'completed') return UNREAD_END;
  const { outputs = {}, variables, error } = foldedRun(head.snapshot);
  // What an agent was given are its run's variables; what it decided are the run's outputs.
  const isAgents = row?.input.source === 'run-api';
  return {
    status: head.status as ChildEnd['status'],
    outputs,
    variables: isAgents ? { ...variables, ...outputs } : variables,
    ...(error ? { error: { code: error.code, message: error.message } } : {}),
  };
}

/** What a child gave is not known whose row, which says what its parent takes, is damaged. */
const DAMAGED = 'history_undecodable';
const UNREAD_END: ChildEnd = {
  ...{ status: 'failed', outputs: {}, variables: {} },
  error: { code: DAMAGED, message: ERRORS[DAMAGED].message },
};

interface FoundChild {
  readonly run: RunRef;
  /** Absent where it cannot be read: `error` says why. */
  readonly row?: RunRow;
  readonly error?: unknown;
}

/** Undefined: it is no child of this parent. One that cannot be read is known by its place. */
async function childOf(
  { stores }: Pick<ChildrenDeps, 'stores'>,
  parent: RunRef,
  childRunId: string,
): Promise<FoundChild | undefined> {
  try {
    const row = await stores.runs.find(parent.tenant, childRunId);
    return row?.input.header.parentRunId === parent.runId ? { run: row, row } : undefined;
  } catch (error) {
    if (!unreadableFor(error)) throw error;
    const run = stores.runs.ref(parent.tenant, childRunId);
    const place = await stores.families.placeOf(run);
    return place?.parentRunId === parent.runId ? { run, error } : undefined;
  }
}

/** Asks a child to end because its parent does; one that has ended already, or is gone, stays so. */
export async function cancelChild(
  deps: ChildrenDeps,
  parent: RunRef,
  { childRunId, reason }: { readonly childRunId: string; readonly reason: string },
): Promise<'open' | 'ended' | 'none'> {
  const child = await childOf(deps, parent, childRunId);
  if (!child) return 'none';
  const { run, row } = child;
  const cancellation = {
    ...{ reason, cancelledBy: `${BY_RUN}${parent.runId}`, parentRunId: parent.runId },
  };
  const delivery = { updateId: `parent-${childRunId}`, bodyDigest: '' };
  const status = row
    ? await cancelRun(deps, { row, ...cancellation }, delivery)
    : await askToEnd(deps, { run, ...cancellation }, delivery);
  return TERMINAL_STATUSES.has(status) ? 'ended' : 'open';
}
