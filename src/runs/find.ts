// Finding a run for a caller without telling what others own (rest-endpoints.md), and reading it fresh
// (architecture §3.3).
import { HostError } from '../rules/errors.ts';
import type { Caller } from '../ports/caller.ts';
import type { Head } from '../ports/log.ts';
import type { RunRef, RunRow, RunStore } from '../ports/runs.ts';
import type { RunsDeps } from './deps.ts';

/** What a runId may look like; anything else names no run and reaches no store. */
const RUN_ID = /^[\x21-\x7e]{1,128}$/;

interface FindDeps {
  readonly stores: { readonly runs: Pick<RunStore, 'find' | 'expiredAt'> };
}

/** Throws run_not_found, for foreign runs too, and run_expired. */
export async function requireRun(deps: FindDeps, caller: Caller, runId: string): Promise<RunRow> {
  if (!RUN_ID.test(runId)) throw new HostError('run_not_found');
  const row = await deps.stores.runs.find(caller.tenant, runId);
  return row ?? (await goneRun(deps, caller, runId));
}

/** The same without reading its row, which may be damaged or need a key that is away. */
export async function requireRunRef(
  deps: { readonly stores: { readonly runs: Pick<RunStore, 'locate' | 'expiredAt'> } },
  caller: Caller,
  runId: string,
): Promise<RunRef> {
  if (!RUN_ID.test(runId)) throw new HostError('run_not_found');
  const run = await deps.stores.runs.locate(runId);
  return run?.tenant === caller.tenant ? run : goneRun(deps, caller, runId);
}

/** Of a run that was not found: throws run_expired where there was one, else run_not_found. */
export async function goneRun(
  { stores }: { readonly stores: { readonly runs: Pick<RunStore, 'expiredAt'> } },
  { tenant }: Pick<Caller, 'tenant'>,
  runId: string,
): Promise<never> {
  const atMs = await stores.runs.expiredAt(tenant, runId);
  if (atMs === undefined) throw new HostError('run_not_found');
  const expiredAt = new Date(atMs).toISOString();
  throw new HostError('run_expired', { expiredAt, reason: 'retention_expired' });
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
