// Children of a branch that goes by recorded tools (replay.md §Modes): nothing begins. Each is the child that the record has
// for the same: of the same workflow or agent, given the same, at the same node. The one at the same place is taken before
// one elsewhere; where several elsewhere fit, none is; and of those that ask at one time no two get the same. What it came to is read from its own log.
import { childRunIdOf } from '../rules/ids.ts';
import {
  CHILD_TIMEOUT,
  MAX_DESCENDANTS,
  type ChildRequest,
  type ChildStart,
} from '../rules/children.ts';
import { payloadOf } from '../rules/damaged.ts';
import { HostError } from '../rules/errors.ts';
import { eventRow } from '../rules/events.ts';
import { canonicalJson } from '../rules/json.ts';
import type { RecordedLog } from '../rules/overlay.ts';
import type { RunInput } from '../rules/run-input.ts';
import type { LogRow } from '../ports/log.ts';
import type { RunRef, RunRow } from '../ports/runs.ts';
import type { WorkflowChainEventPayload } from '../../schemas/types.generated.ts';
import { childInputFor } from './child-input.ts';
import { BY_RUN, freshLog, staleness } from './child-ends.ts';
import type { ChildrenDeps } from './deps.ts';
import { logsBehind } from './recorded-logs.ts';

/** Children of one run that are read at once. */
const PAGE = 100;
/** Pages of them: of as many as one run may have. */
const MAX_PAGES = Math.ceil(MAX_DESCENDANTS / PAGE);

export interface RecordedBatch {
  readonly requests: readonly ChildRequest[];
  /** Calls of children that were under way where the branch left its source: what those were given is not compared. */
  readonly underWay: readonly string[];
  readonly recordedBy: RecordedLog;
}

interface Branch {
  readonly parent: RunRow;
  readonly signal: AbortSignal | undefined;
}

/** What is asked for. */
interface Wanted {
  readonly callId: string;
  /** Absent: whatever was begun at its place. */
  readonly as?: { readonly nodeId: string; readonly input: RunInput };
}

/**
 * Of the requests in their order, then of what was under way. A request that is refused now is refused. Throws
 * replay_source_missing and service_unavailable.
 */
export async function recordedChildren(
  deps: ChildrenDeps,
  { parent, signal }: Branch,
  { requests, underWay, recordedBy }: RecordedBatch,
): Promise<readonly ChildStart[]> {
  const records = await recordsBehind(deps, parent.tenant, recordedBy);
  const asked = requests.map((request) => {
    const { callId, nodeId } = request;
    const input = childInputFor(deps, parent, request);
    return 'kind' in input ? input : { callId, as: { nodeId, input } };
  });
  const wanted = [...asked, ...underWay.map((callId) => ({ callId }))];
  const found = await findAll(
    deps,
    { records, signal },
    wanted.flatMap((one) => ('kind' in one ? [] : [one])),
  );
  const starts: ChildStart[] = [];
  for (const one of wanted) {
    signal?.throwIfAborted();
    if ('kind' in one) starts.push(one);
    else starts.push(await startOf(deps, one, found.get(one.callId)));
  }
  return starts;
}

/** A record, as far as it is gone by. */
interface Record {
  readonly run: RunRef;
  /** Of its last entry, ms epoch: what happened later is none of it. */
  readonly atMs: number;
  /** Where it tells the ends of workers: the order in which they were taken, which is not that of the clock. */
  readonly turns: ReadonlyMap<string, number>;
  /** Calls that it has a result of. */
  readonly returned: ReadonlySet<string>;
}

async function recordsBehind(
  deps: ChildrenDeps,
  tenant: string,
  recordedBy: RecordedLog,
): Promise<readonly Record[]> {
  const records: Record[] = [];
  for await (const { row, length } of logsBehind(deps.stores.runs, tenant, recordedBy))
    records.push(await recordOf(deps, row, length));
  return records;
}

async function recordOf({ log }: ChildrenDeps, row: RunRow, length: number): Promise<Record> {
  const turns = new Map<string, number>();
  const returned = new Set<string>();
  let atMs = 0;
  let count = 0;
  for await (const rows of log.rows(row, { limit: length })) {
    for (const row of rows) {
      const { type, timestampMs } = row;
      atMs = timestampMs;
      const { part } = eventRow(type);
      if (part === 'worker' || part === 'return') {
        const { phase, childRunId, callId } = payloadOf(row) as Told;
        if (childRunId !== undefined && phase?.startsWith('child.')) turns.set(childRunId, count);
        if (part === 'return' && callId !== undefined) returned.add(callId);
      }
      count++;
    }
  }
  // It is being built anew.
  if (count < length) throw new HostError('service_unavailable');
  return { run: row, atMs, turns, returned };
}

type Told = Partial<WorkflowChainEventPayload> & { readonly callId?: string };

interface Found {
  readonly record: Record;
  readonly row: RunRow;
}

/**
 * By call, of each record those at the same places before any elsewhere, and no child twice: one that somebody gets who
 * asked for the same is not there for the next.
 */
async function findAll(
  deps: ChildrenDeps,
  { records, signal }: { readonly records: readonly Record[]; readonly signal: Branch['signal'] },
  wanted: readonly Wanted[],
): Promise<ReadonlyMap<string, Found>> {
  const found = new Map<string, Found>();
  const taken = new Set<string>();
  for (const record of records)
    for (const look of [atSamePlace, elsewhere])
      for (const one of wanted) {
        signal?.throwIfAborted();
        if (found.has(one.callId)) continue;
        const row = await look(deps, { record, taken, signal }, one);
        if (!row) continue;
        taken.add(row.runId);
        found.set(one.callId, { record, row });
      }
  return found;
}

interface Look {
  readonly record: Record;
  /** Children that others got. */
  readonly taken: ReadonlySet<string>;
  readonly signal: AbortSignal | undefined;
}

async function atSamePlace(
  { stores }: ChildrenDeps,
  { record: { run }, taken }: Look,
  wanted: Wanted,
): Promise<RunRow | undefined> {
  const runId = childRunIdOf(run.runId, wanted.callId, 0);
  if (taken.has(runId)) return undefined;
  const row = await stores.runs.find(run.tenant, runId);
  return row && isSame(row, run, wanted) ? row : undefined;
}

/** The only one, of all that the run had and nobody got. */
async function elsewhere(
  { stores }: ChildrenDeps,
  { record: { run }, taken, signal }: Look,
  wanted: Wanted,
): Promise<RunRow | undefined> {
  if (!wanted.as) return undefined;
  let only: RunRow | undefined;
  let cursor: string | undefined;
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const page = await stores.families.children(run, { cursor, limit: PAGE });
    for (const { workflowId, run: child } of page.runs) {
      signal?.throwIfAborted();
      if (workflowId !== wanted.as.input.definition.id || taken.has(child.runId)) continue;
      const row = await stores.runs.find(child.tenant, child.runId);
      if (!row || !isSame(row, run, wanted)) continue;
      if (only) return undefined;
      only = row;
    }
    cursor = page.nextCursor;
    if (cursor === undefined) break;
  }
  return only;
}

function isSame({ workflowId, input }: RunRow, parent: RunRef, { as }: Wanted): boolean {
  if (input.header.parentRunId !== parent.runId) return false;
  return (
    as === undefined ||
    (workflowId === as.input.definition.id &&
      input.header.parentNodeId === as.nodeId &&
      canonicalJson(input.variables) === canonicalJson(as.input.variables))
  );
}

async function startOf(
  { log }: ChildrenDeps,
  { callId }: Wanted,
  found: Found | undefined,
): Promise<ChildStart> {
  if (!found) throw missing(callId, 'The source has no record of such a child run.');
  const { row, record } = found;
  const { run, atMs, turns, returned } = record;
  const { head, stale } = await freshLog(log, row);
  const { closed, lastTimestampMs, nextSequence, erasedAtMs } = head;
  if (erasedAtMs !== undefined)
    throw missing(callId, 'What the child run came to has been erased.');
  if (!closed || lastTimestampMs > atMs) {
    if (stale) throw staleness(head);
    throw missing(callId, 'The child run had not ended where the record of the source ends.');
  }
  const { runId: childRunId, workflowId } = row;
  const turn = turns.get(childRunId);
  const { reason, cancelledBy = '' } = await endIn(log.rows(row, { after: nextSequence - 2 }));
  const isByParent = cancelledBy.startsWith(BY_RUN);
  const hasTimedOut = isByParent && reason === CHILD_TIMEOUT;
  const isTaken = turn !== undefined || returned.has(row.input.header.causationId ?? '');
  if (isByParent && !hasTimedOut && !isTaken)
    throw missing(callId, 'The source ended the child run, and took nothing of it.');
  return {
    ...{ kind: 'recorded', childRunId, workflowId, recordedOf: run.runId },
    ...(turn === undefined ? {} : { turn }),
    ...(hasTimedOut ? { hasTimedOut } : {}),
  };
}

/** Of the last entry: why a run was cancelled, and by whom. */
async function endIn(
  last: AsyncIterable<readonly LogRow[]>,
): Promise<{ readonly reason?: string; readonly cancelledBy?: string }> {
  for await (const [end] of last) if (end) return payloadOf(end);
  return {};
}

function missing(callId: string, reason: string): HostError {
  return new HostError('replay_source_missing', { callId, reason });
}
