-- Segments say themselves that they are closed, set by the append that closes or leaves them, so that the search for
-- what lacks its archive reads no open run; and they are claimed, so that one process archives each.

ALTER TABLE run_segments
  ADD COLUMN closed boolean NOT NULL DEFAULT false,
  ADD COLUMN claimed_until_ms bigint NOT NULL DEFAULT 0,
  ADD COLUMN claims integer NOT NULL DEFAULT 0;
UPDATE run_segments s SET closed = true FROM run_heads h
  WHERE h.run_id = s.run_id AND (h.closed OR h.temporal_run_id <> s.temporal_run_id);
DROP INDEX run_segments_unarchived;
CREATE INDEX run_segments_unarchived ON run_segments (claimed_until_ms) WHERE closed AND archive IS NULL;
