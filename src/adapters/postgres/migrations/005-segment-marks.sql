-- A segment is marked as closed by whatever moves its head on, not by a statement that a process of an older release,
-- which works on while a newer one is rolled out, would leave out: its segments would never be archived.

CREATE FUNCTION openwop_mark_segments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE run_segments SET closed = true
  WHERE run_id = NEW.run_id AND NOT closed AND (NEW.closed OR temporal_run_id <> NEW.temporal_run_id);
  RETURN NULL;
END $$;
CREATE TRIGGER run_heads_put AFTER INSERT ON run_heads FOR EACH ROW
  WHEN (NEW.closed OR NEW.temporal_run_id <> '') EXECUTE FUNCTION openwop_mark_segments();
CREATE TRIGGER run_heads_moved AFTER UPDATE ON run_heads FOR EACH ROW
  WHEN (NEW.closed OR NEW.temporal_run_id <> OLD.temporal_run_id) EXECUTE FUNCTION openwop_mark_segments();

-- What was left out since the marks were introduced.
UPDATE run_segments s SET closed = true FROM run_heads h
  WHERE NOT s.closed AND h.run_id = s.run_id AND (h.closed OR h.temporal_run_id <> s.temporal_run_id);
