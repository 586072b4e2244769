// Archive (architecture §3.6): the raw, still encoded history of every closed segment goes to the content store, so
// that a run can be rebuilt and checked when Temporal has forgotten it. Segments are claimed, stored and marked
// in groups. What a crash leaves undone is claimed by nobody after a while and found again: until it is marked as
// archived, a segment is one to archive, and what is stored twice has one hash.
import { codeOf } from '../rules/errors.ts';
import type { NewContent } from '../ports/content.ts';
import type { ArchivedSegment, ClosedSegment } from '../ports/history.ts';
import { LOST_ARCHIVE, type LogParts } from './pages.ts';

/** Segments claimed at once, and how long in ms before a claim whose process died, or failed, may be taken again. */
const GROUP_SEGMENTS = 32;
const CLAIM_MS = 60_000;
/** A group is stored when it has so many bytes, before its last segment is read. */
const GROUP_BYTES = 8 * 1024 * 1024;

interface ReadSegment {
  readonly segment: ClosedSegment;
  /** Absent: Temporal had forgotten it. */
  readonly bytes?: Uint8Array;
}

async function read({ history, logger }: LogParts, segment: ClosedSegment): Promise<ReadSegment> {
  const { runId, temporalRunId } = segment;
  try {
    return { segment, bytes: await history.raw(runId, temporalRunId) };
  } catch (error) {
    if (codeOf(error) !== 'history_missing') throw error;
    logger.error('a segment was forgotten before it was archived', { runId, temporalRunId });
    return { segment };
  }
}

/** All values at once, then one statement for all marks. */
async function store({ stores }: LogParts, group: readonly ReadSegment[]): Promise<void> {
  const values = group.flatMap(({ segment, bytes }): NewContent[] =>
    bytes === undefined ? [] : [{ holder: segment.run, bytes, isArchive: true }],
  );
  const hashes = values.length === 0 ? [] : await stores.content.putAll(values);
  let at = 0;
  const archived = group.map(({ segment: { run, index }, bytes }): ArchivedSegment => ({
    ...{ run, index },
    archive: (bytes && hashes[at++]) ?? LOST_ARCHIVE,
  }));
  await stores.segments.markArchived(archived);
}

function note({ logger }: LogParts, { runId }: ClosedSegment, error: unknown): void {
  const fields = { runId, code: codeOf(error), reason: String(error) };
  logger.warn('archiving failed, trying again later', fields);
}

/** A group that cannot be stored is stored one by one, so that one that is at fault holds up no other. */
async function storeGroup(parts: LogParts, group: readonly ReadSegment[]): Promise<number> {
  try {
    if (group.length > 0) await store(parts, group);
    return group.length;
  } catch (error) {
    const [only, second] = group;
    if (only && !second) note(parts, only.segment, error);
    let done = 0;
    if (second) for (const one of group) done += await storeGroup(parts, [one]);
    return done;
  }
}

/** One after the other: no more than a group and one segment of it are held in memory. On abort what was read is stored. */
async function archiveGroup(
  parts: LogParts,
  segments: readonly ClosedSegment[],
  signal: AbortSignal,
): Promise<number> {
  let done = 0;
  let group: ReadSegment[] = [];
  let bytes = 0;
  for (const segment of segments) {
    if (signal.aborted) break;
    try {
      const one = await read(parts, segment);
      group.push(one);
      bytes += one.bytes?.byteLength ?? 0;
    } catch (error) {
      note(parts, segment, error);
    }
    if (bytes < GROUP_BYTES) continue;
    done += await storeGroup(parts, group);
    [group, bytes] = [[], 0];
  }
  return done + (await storeGroup(parts, group));
}

/**
 * Archives what is closed, not archived yet and claimed by nobody else, in groups; `rest` is awaited before each. What
 * fails stays claimed for a while, longer each time, and is then anybody's. Returns how many were archived.
 */
export async function archiveClosed(
  parts: LogParts,
  signal: AbortSignal,
  rest: () => Promise<void> = async () => {},
): Promise<number> {
  for (let done = 0; ;) {
    await rest();
    if (signal.aborted) return done;
    const segments = await parts.stores.segments.claimUnarchived(GROUP_SEGMENTS, CLAIM_MS);
    done += await archiveGroup(parts, segments, signal);
    if (segments.length < GROUP_SEGMENTS) return done;
  }
}
