// The head that a read answers from, marked where Temporal could not be asked (architecture §3.3).
import type { Head } from '../ports/log.ts';
import type { RunRef } from '../ports/runs.ts';
import { SETTLED } from '../log/session-resume.ts';
import type { FacadeDeps } from './deps.ts';

export const STALE_HEADER = 'openwop-log-stale';

/**
 * The head after everything that Temporal knew when this was called, and what marks the answer when it is away: history may
 * have more then (`isAway`).
 */
export async function readHead(
  { log }: Pick<FacadeDeps, 'log'>,
  run: RunRef,
): Promise<{ head: Head; headers: Readonly<Record<string, string>>; isAway: boolean }> {
  const { head, stale, code } = await log.fresh(run);
  const isAway = stale && !(code !== undefined && SETTLED.has(code));
  return { head, headers: stale ? { [STALE_HEADER]: 'true' } : {}, isAway };
}
