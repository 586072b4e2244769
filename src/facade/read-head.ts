// The head that a read answers from, marked where Temporal could not be asked (design §3.3).
import type { Response } from 'express';
import type { Head } from '../ports/log.ts';
import type { FacadeDeps } from './deps.ts';

export const STALE_HEADER = 'openwop-log-stale';

/** The head after everything that Temporal knew when this was called; marks the answer when Temporal is away. */
export async function readHead(
  { log }: Pick<FacadeDeps, 'log'>,
  runId: string,
  response: Response,
): Promise<Head> {
  const { head, stale } = await log.fresh(runId);
  if (stale) response.setHeader(STALE_HEADER, 'true');
  return head;
}
