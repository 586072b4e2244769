// Finding a run for a caller without telling what others own (spec/01 §2.4), and reading it fresh (design §3.3).
import type { Response } from 'express';
import { HostError } from '../rules/errors.ts';
import type { Caller } from '../ports/caller.ts';
import type { Head } from '../ports/log.ts';
import type { RunRow } from '../ports/runs.ts';
import type { FacadeDeps } from './deps.ts';

/** What a runId may look like; anything else names no run and reaches no store. */
const RUN_ID = /^[\x21-\x7e]{1,128}$/;
export const STALE_HEADER = 'openwop-log-stale';

/** Throws run_not_found, for foreign runs too. */
export async function requireRun(deps: FacadeDeps, caller: Caller, runId: string): Promise<RunRow> {
  const row = RUN_ID.test(runId) ? await deps.stores.runs.find(caller.tenant, runId) : undefined;
  if (!row) throw new HostError('run_not_found');
  return row;
}

/** The head after everything that Temporal knew when this was called; marks the answer when Temporal is away. */
export async function readHead(deps: FacadeDeps, runId: string, response: Response): Promise<Head> {
  const { head, stale } = await deps.log.fresh(runId);
  if (stale) response.setHeader(STALE_HEADER, 'true');
  return head;
}

/** For writes: a stale log is no ground to decide on. */
export async function requireFreshHead(deps: FacadeDeps, runId: string): Promise<Head> {
  const { head, stale } = await deps.log.fresh(runId);
  if (stale && !head.closed) throw new HostError('service_unavailable');
  return head;
}
