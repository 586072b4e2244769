// Archive (design §3.6): the raw, still encoded history of every closed segment goes to the content store, so that a
// run can be rebuilt, forked and checked when Temporal has forgotten it.
import { codeOf } from '../core/errors.ts';
import type { Segment } from '../ports.ts';
import { LOST_ARCHIVE, type LogParts } from './advance.ts';

/** Segments fetched per question. */
const BATCH = 20;

async function archiveOne({ stores, history, logger }: LogParts, segment: Segment): Promise<void> {
  const { runId, temporalRunId } = segment;
  const run = await stores.runs.load(runId);
  if (!run) return;
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
 * Archives what is closed and not archived yet, one segment after the other. A segment that fails stays for the next
 * call. Returns how many were archived.
 */
export async function archiveClosed(parts: LogParts, signal: AbortSignal): Promise<number> {
  const failed = new Set<string>();
  let done = 0;
  while (!signal.aborted) {
    const segments = await parts.stores.segments.unarchived(BATCH + failed.size);
    const open = segments.filter(({ temporalRunId }) => !failed.has(temporalRunId));
    if (open.length === 0) return done;
    for (const segment of open) {
      if (signal.aborted) return done;
      try {
        await archiveOne(parts, segment);
        done += 1;
      } catch (error) {
        failed.add(segment.temporalRunId);
        parts.logger.warn('archiving failed, trying again later', {
          runId: segment.runId,
          code: codeOf(error),
          reason: String(error),
        });
      }
    }
  }
  return done;
}
