-- The feed (architecture §3.6): every row of every log in one order, for consumers that read behind a position.
--
-- A reader must never pass a position that may still commit. A transaction takes its positions before it commits, so a
-- later one may be seen first. Each writer therefore holds a shared advisory lock until its transaction ends; the lock's
-- key says behind which position its own lie (nothing waits for it: the lock table only tells who still writes). Reads
-- end at the lowest such key. Transactions of others on the server, however long, hold nothing back.

-- The session that the run's input names. Escapes are taken out before the search: JSON functions refuse some of them,
-- and no session's name had any so far. A run that a process of an older release accepts has none here.
ALTER TABLE runs ADD COLUMN session_id text;
UPDATE runs SET session_id = regexp_replace(input, '\\.', '', 'g')::json -> 'header' ->> 'sessionId';

CREATE SEQUENCE run_feed_position;
CREATE TABLE run_feed (
  tenant_id text NOT NULL,
  position bigint NOT NULL DEFAULT nextval('run_feed_position'),
  session_id text NOT NULL,
  run_id text NOT NULL,
  sequence bigint NOT NULL,
  PRIMARY KEY (tenant_id, position),
  CONSTRAINT run_feed_row UNIQUE (run_id, sequence)
);
CREATE INDEX run_feed_of_session ON run_feed (tenant_id, session_id, position);

-- How far each named consumer came.
CREATE TABLE feed_cursors (
  tenant_id text NOT NULL,
  consumer text NOT NULL,
  position bigint NOT NULL,
  PRIMARY KEY (tenant_id, consumer)
);

-- The upper 16 bits of the key are the letters OW, the lower 48 the last position that was given before. Once in a
-- transaction: the lowest key counts, and the lock table is small.
CREATE FUNCTION openwop_feed_begin() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('openwop.feed', true) IS DISTINCT FROM 'writing' THEN
    PERFORM pg_advisory_xact_lock_shared((20311::bigint << 48) + coalesce(pg_sequence_last_value('run_feed_position'), 0));
    PERFORM set_config('openwop.feed', 'writing', true);
  END IF;
END $$;

-- `ends_at`: rows up to it that the next statement does not see will never come. `given`: the last position given. The
-- order is what it stands on: what was given, then who still writes, then (the caller) the rows.
CREATE FUNCTION openwop_feed_end(OUT given bigint, OUT ends_at bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  given := coalesce(pg_sequence_last_value('run_feed_position'), 0);
  SELECT least(given, min(((classid::bigint & 65535) << 32) + objid::bigint)) INTO ends_at
  FROM pg_locks
  WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> 16 = 20311
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database());
END $$;

-- By whatever writes rows of a log, processes of an older release included; a statement writes rows of one run. A row that
-- is written again by a rebuild keeps its position. Every plan here is one look into an index, also when it is made while
-- the tables are empty.
CREATE FUNCTION openwop_feed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE session text;
BEGIN
  PERFORM openwop_feed_begin();
  SELECT r.session_id INTO session FROM runs r WHERE r.run_id = (SELECT a.run_id FROM added a LIMIT 1);
  INSERT INTO run_feed (tenant_id, position, session_id, run_id, sequence)
  SELECT tenant_id, nextval('run_feed_position'), coalesce(session, run_id), run_id, sequence
  FROM (SELECT a.tenant_id, a.run_id, a.sequence FROM added a ORDER BY a.sequence) ordered
  ON CONFLICT (run_id, sequence) DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER run_events_fed AFTER INSERT ON run_events REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION openwop_feed();

-- Logs that are there already, so that a rebuild of one of them is no news. Nobody writes while the trigger is made.
INSERT INTO run_feed (tenant_id, position, session_id, run_id, sequence)
SELECT tenant_id, nextval('run_feed_position'), session_id, run_id, sequence
FROM (
  SELECT e.tenant_id, e.run_id, e.sequence, coalesce(r.session_id, e.run_id) AS session_id
  FROM run_events e LEFT JOIN runs r ON r.run_id = e.run_id
  ORDER BY e.timestamp_ms, e.run_id, e.sequence
) ordered;
