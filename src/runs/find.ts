// Finding a run for a caller without telling what others own (rest-endpoints.md), and reading it fresh
// (architecture §3.3).
import { HostError } from '../rules/errors.ts';
import type { Caller } from '../ports/caller.ts';
import type { Head } from '../ports/log.ts';
import type { RunRef, RunRow, RunStore } from '../ports/runs.ts';
import type { RunsDeps } from './deps.ts';

/** What a runId may look like; anything else names no run and reaches no store. */
const RUN_ID = /^[\x21-\x7e]{1,128}$/;

/** Throws run_not_found, for foreign runs too. */
export async function requireRun(
  { stores }: { readonly stores: { readonly runs: Pick<RunStore, 'find'> } },
  caller: Caller,
  runId: string,
): Promise<RunRow> {
  const row = RUN_ID.test(runId) ? await stores.runs.find(caller.tenant, runId) : undefined;
  if (!row) throw new HostError('run_not_found');
  return row;
}

/** For writes: a stale log is no ground to decide on. */
export async function requireFreshHead(
  { log }: { readonly log: Pick<RunsDeps['log'], 'fresh'> },
  run: RunRef,
): Promise<Head> {
  const { head, stale } = await log.fresh(run);
  if (stale && !head.closed) throw new HostError('service_unavailable');
  return head;
}
