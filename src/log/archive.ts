// Archive (design §3.6): the raw, still encoded history of every closed segment goes to the content store, so that a
// run can be rebuilt, forked and checked when Temporal has forgotten it.
import { codeOf, HostError } from '../rules/errors.ts';
import type { Segment } from '../ports/history.ts';
import { LOST_ARCHIVE, type LogParts } from './advance.ts';

/** Segments claimed at once, and how long in ms before a claim whose process died, or failed, may be taken again. */
const BATCH = 4;
const CLAIM_MS = 60_000;

async function archiveOne({ stores, history, logger }: LogParts, segment: Segment): Promise<void> {
  const { runId, temporalRunId } = segment;
  const run = await stores.runs.load(runId);
  if (!run) throw new HostError('run_not_found', { runId });
  try {
    const archive = await stores.content.put(run.tenant, await history.raw(runId, temporalRunId));
    await stores.segments.record({ ...segment, archive });
  } catch (error) {
    if (codeOf(error) !== 'history_missing') throw error;
    logger.error('a segment was forgotten before it was archived', { runId, temporalRunId });
    await stores.segments.record({ ...segment, archive: LOST_ARCHIVE });
  }
}

/**
 * Archives what is closed, not archived yet and claimed by nobody else, one segment after the other. One that fails
 * stays claimed for a while, longer each time, and is then anybody's. Returns how many were archived.
 */
export async function archiveClosed(parts: LogParts, signal: AbortSignal): Promise<number> {
  for (let done = 0; ;) {
    const segments = signal.aborted
      ? []
      : await parts.stores.segments.claimUnarchived(BATCH, CLAIM_MS);
    if (segments.length === 0) return done;
    for (const segment of segments) {
      if (signal.aborted) return done;
      try {
        await archiveOne(parts, segment);
        done += 1;
      } catch (error) {
        parts.logger.warn('archiving failed, trying again later', {
          runId: segment.runId,
          code: codeOf(error),
          reason: String(error),
        });
      }
    }
  }
}
