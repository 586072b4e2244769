// Segments of runs and where their raw history is archived (architecture §3.6).
import { HostError } from '../../rules/errors.ts';
import type { ClosedSegment, Segment, SegmentStore } from '../../ports/history.ts';
import type { Db } from './db.ts';
import { refOf } from './run-ref.ts';

interface SegmentRecord {
  readonly run_id: string;
  readonly segment_index: number;
  readonly temporal_run_id: string;
  readonly archive: string | null;
}
interface ClosedRecord extends SegmentRecord {
  readonly tenant_id: string;
}
/** A claim that comes again is held twice as long each time, up to 2 to this power: no count, however damaged, fails the others. */
const MAX_DOUBLINGS = 5;
const COLUMNS = 's.run_id, s.segment_index, s.temporal_run_id, s.archive';

function segmentOf(record: SegmentRecord): Segment {
  return {
    runId: record.run_id,
    index: record.segment_index,
    temporalRunId: record.temporal_run_id,
    ...(record.archive === null ? {} : { archive: record.archive }),
  };
}

export function createSegmentStore(db: Db): SegmentStore {
  return {
    // A segment whose head has ended is closed from the start (a trigger of the schema marks those that a head leaves later).
    async record({ tenant, runId }, { index, temporalRunId, isClosed = false }) {
      const stored = await db.query(
        `INSERT INTO run_segments (run_id, segment_index, tenant_id, temporal_run_id, closed)
         SELECT r.run_id, $2::integer, r.tenant_id, $3::text, $5::boolean OR coalesce(h.closed, false)
         FROM runs r LEFT JOIN run_heads h ON h.run_id = r.run_id
         WHERE r.run_id = $1 AND r.tenant_id = $4
         ON CONFLICT (run_id, segment_index) DO UPDATE SET closed = run_segments.closed OR excluded.closed
         RETURNING 1`,
        [runId, index, temporalRunId, tenant, isClosed],
      );
      if (stored.length === 0) throw new HostError('run_not_found', { runId });
    },
    // What was archived stays, also when another process finds that Temporal has forgotten the segment since.
    async markArchived(segments) {
      await db.query(
        `UPDATE run_segments s SET archive = x.archive
         FROM unnest($1::text[], $2::integer[], $3::text[], $4::text[]) AS x(run_id, segment_index, archive, tenant_id)
         WHERE s.run_id = x.run_id AND s.tenant_id = x.tenant_id AND s.segment_index = x.segment_index
           AND (s.archive IS NULL OR s.archive NOT LIKE 'sha256:%')`,
        [
          segments.map(({ run }) => run.runId),
          segments.map(({ index }) => index),
          segments.map(({ archive }) => archive),
          segments.map(({ run }) => run.tenant),
        ],
      );
    },
    async ofRun({ tenant, runId }) {
      const records = await db.query<SegmentRecord>(
        `SELECT ${COLUMNS} FROM run_segments s WHERE run_id = $1 AND tenant_id = $2 ORDER BY segment_index`,
        [runId, tenant],
      );
      return records.map(segmentOf);
    },
    async claimUnarchived(limit, leaseMs) {
      const records = await db.query<ClosedRecord>(
        `UPDATE run_segments s
         SET claims = doubled + 1, claimed_until_ms = openwop_now_ms() + $2::bigint * (2 ^ doubled)::bigint
         FROM (
           SELECT run_id, segment_index, greatest(0, least(claims, $3)) AS doubled FROM run_segments
           WHERE closed AND archive IS NULL AND claimed_until_ms <= openwop_now_ms()
           ORDER BY claimed_until_ms LIMIT $1 FOR UPDATE SKIP LOCKED
         ) free
         WHERE s.run_id = free.run_id AND s.segment_index = free.segment_index
         RETURNING ${COLUMNS}, s.tenant_id`,
        [limit, leaseMs, MAX_DOUBLINGS],
      );
      return records.map((record): ClosedSegment => ({
        ...segmentOf(record),
        run: refOf(record.tenant_id, record.run_id),
      }));
    },
  };
}
