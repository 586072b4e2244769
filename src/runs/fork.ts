// POST /v1/runs/{runId}:fork (replay.md): a run made from another one's record, from an event on. The fork is accepted as
// every run is; what it is made from its own workflow reads (architecture §6).
import { HostError, invalid } from '../rules/errors.ts';
import { eventRow } from '../rules/events.ts';
import type { ForkOf, RunInput } from '../rules/run-input.ts';
import type { Caller } from '../ports/caller.ts';
import type { NewRun, RunRow } from '../ports/runs.ts';
import type { RunForkRequest } from '../../schemas/types.generated.ts';
import { acceptRun, type AcceptedRun, type AcceptRequest } from './accept.ts';
import type { RunsDeps } from './deps.ts';
import { newRoot } from './input.ts';
import type { Once } from './once.ts';

type ForkDeps = Omit<RunsDeps, 'log'> & {
  readonly log: Pick<RunsDeps['log'], 'head' | 'endUnstarted' | 'fresh' | 'rows'>;
};

export interface ForkRequest extends Pick<AcceptRequest, 'once'> {
  readonly source: RunRow;
  readonly asked: RunForkRequest;
}

/**
 * Throws validation_error, invalid_from_seq, capability_not_provided (what this host cannot fork yet), the errors of a key,
 * and service_unavailable.
 */
export async function forkRun(
  deps: ForkDeps,
  caller: Caller,
  { source, asked, once }: ForkRequest,
): Promise<Once<AcceptedRun>> {
  const fork = await forkOf(deps, source, asked).catch((error: unknown) => error as Error);
  const make = (): NewRun => {
    if (fork instanceof Error) throw fork;
    return newFork(source, fork);
  };
  return acceptRun(deps, caller, { run: { inputs: {}, configurable: {} }, make, once });
}

async function forkOf(
  deps: ForkDeps,
  source: RunRow,
  { mode, fromSeq, runOptionsOverlay = {} }: RunForkRequest,
): Promise<ForkOf> {
  if (fromSeq === undefined && mode === 'branch')
    throw invalid('/fromSeq', 'is required of a branch');
  if (Object.keys(runOptionsOverlay).length > 0) {
    if (mode === 'replay') throw invalid('/runOptionsOverlay', 'a replay runs as its source did');
    throw notYet('runOptionsOverlay');
  }
  if (source.input.fork) throw notYet('forks of forks');
  const { head, stale } = await deps.log.fresh(source);
  if (stale) throw new HostError('service_unavailable');
  const { runId: sourceRunId } = source;
  const length = head.nextSequence;
  const from = fromSeq ?? 0;
  if (from > length || length === 0)
    throw new HostError('invalid_from_seq', { sourceRunId, fromSeq: from, length });
  const endsMs = await recordEndMs(deps, source, { from, length, mode });
  const laterMs = Math.max(0, Date.now() - endsMs);
  return { sourceRunId, fromSeq: from, length, mode, recordEndsMs: endsMs, laterMs };
}

/** What is refused by its name, rather than done by half. */
function notYet(what: string): HostError {
  return new HostError('capability_not_provided', { capability: `replay: ${what}` });
}

/**
 * The time of the last entry that the fork goes by; of none, of the first there is. Throws capability_not_provided for a
 * run with children.
 */
async function recordEndMs(
  { log }: ForkDeps,
  source: RunRow,
  { from, length, mode }: Pick<ForkOf, 'length' | 'mode'> & { readonly from: number },
): Promise<number> {
  const last = (mode === 'branch' ? Math.max(from, 1) : length) - 1;
  let endsMs = 0;
  for await (const rows of log.rows(source, { limit: length }))
    for (const row of rows) {
      if (eventRow(row.type).part === 'child') throw notYet('runs with children');
      if (row.sequence <= last) endsMs = Math.max(endsMs, row.timestampMs);
    }
  return endsMs;
}

/**
 * Owner, definition, agents and limits are the source's (RFC 0165). It is a root of its own, and in a session of its own:
 * what is said in the source's is not said twice.
 */
function newFork({ input: source, tenant, workflowId }: RunRow, fork: ForkOf): NewRun {
  const { runId, sessionId } = newRoot();
  const { startedBy } = source.header;
  const input: RunInput = {
    ...source,
    runId,
    header: { sessionId, correlationId: runId, ...(startedBy ? { startedBy } : {}) },
    fork,
  };
  return { runId, tenant, workflowId, input, createdAtMs: Date.now() };
}
