// What catching up and rebuilding read (architecture §3.1): a run's history page by page, from Temporal or from the archive.
import { codeOf, HostError } from '../rules/errors.ts';
import type { HistoryPage, HistoryReader } from '../ports/history.ts';
import type { Logger } from '../ports/logger.ts';
import type { RunRef } from '../ports/runs.ts';
import type { Stores } from '../ports/stores.ts';

/** Stands in place of an archive's hash when Temporal had forgotten the segment before it was archived. */
export const LOST_ARCHIVE = 'lost';

export interface LogParts {
  readonly stores: Stores;
  readonly history: HistoryReader;
  readonly logger: Logger;
}

/**
 * One segment's whole history from the archive, as a last page. Throws HostError history_missing, and history_undecodable
 * where the archive is not what was put there: to ask again does not mend it.
 */
async function archivedPage(
  { stores, history }: LogParts,
  { run, temporalRunId: wanted }: Position,
  cause: unknown,
): Promise<HistoryPage> {
  const segments = await stores.segments.ofRun(run);
  const found = segments.find(({ temporalRunId }) => temporalRunId === wanted);
  if (!found?.archive || found.archive === LOST_ARCHIVE) throw cause;
  const bytes = await stores.content.get(run.tenant, found.archive).catch((error: unknown) => {
    if (codeOf(error) !== 'content_missing') throw error;
    const reason = 'Its archive is damaged, or not there.';
    throw new HostError('history_undecodable', { reason }, error);
  });
  return { events: await history.decode(bytes), token: '', atTail: true };
}

export interface Position {
  readonly run: RunRef;
  readonly temporalRunId: string;
  readonly token: string;
}

/** A page from Temporal, or from the archive once Temporal has forgotten the segment. */
export async function readPage(
  parts: LogParts,
  at: Position,
  waitMs: number,
): Promise<HistoryPage> {
  try {
    return await parts.history.page(at.run.runId, at.temporalRunId, at.token, waitMs);
  } catch (error) {
    if (codeOf(error) !== 'history_missing') throw error;
    return archivedPage(parts, at, error);
  }
}
