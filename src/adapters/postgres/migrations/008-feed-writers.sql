-- How rows come into the feed (architecture §3.6), and where its readers stop. Of a database whose 007 made functions and
-- trigger and filled the feed itself, only the functions change.
--
-- A reader must never pass a position that may still commit. A transaction takes its positions before it commits, so a
-- later one may be seen first. Each writer therefore holds a shared advisory lock until its transaction ends; the lock's
-- key says behind which position its own lie (nothing waits for it: the lock table only tells who still writes). Reads
-- end at the lowest such key. Transactions of others on the server, however long, hold nothing back: they hold no lock
-- on the log of this schema beside it.

-- Of runs without `session_id`. Escapes are taken out before the search: JSON functions refuse some of them, and no
-- session's name had any so far.
CREATE FUNCTION openwop_session(input text) RETURNS text LANGUAGE sql IMMUTABLE AS
  $$ SELECT regexp_replace(input, '\\.', '', 'g')::json -> 'header' ->> 'sessionId' $$;

-- The upper 16 bits of the key are the letters OW, the lower 48 the last position that was given before. Once in a
-- transaction: the lowest key counts, and the lock table is small.
CREATE OR REPLACE FUNCTION openwop_feed_begin() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('openwop.feed', true) IS DISTINCT FROM 'writing' THEN
    PERFORM pg_advisory_xact_lock_shared((20311::bigint << 48) + coalesce(pg_sequence_last_value('run_feed_position'), 0));
    PERFORM set_config('openwop.feed', 'writing', true);
  END IF;
END $$;

-- Logs that were there before the trigger get the positions up to this row's `position`, batch by batch, behind the row
-- of a log that it names; without a row, all have theirs (feed-backfill.ts).
CREATE TABLE feed_backfill (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  run_id text NOT NULL,
  sequence bigint NOT NULL,
  position bigint NOT NULL
);

-- `ends_at`: rows up to it that the next statement does not see will never come. `given`: the last position given. The
-- order is what it stands on: what was given, then who still writes, then (the caller) the rows. A writer holds the lock
-- on the log before the other and lets go of both behind its commit; one that is seen half has taken no position yet
-- that was given, or its rows are there.
CREATE OR REPLACE FUNCTION openwop_feed_end(OUT given bigint, OUT ends_at bigint) LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  given := coalesce(pg_sequence_last_value('run_feed_position'), 0);
  WITH held AS MATERIALIZED (
    SELECT locktype, virtualtransaction, ((classid::bigint & 65535) << 32) + objid::bigint AS behind
    FROM pg_locks
    WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND (
      (locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> 16 = 20311)
      OR (locktype = 'relation' AND relation = 'run_events'::regclass AND mode = 'RowExclusiveLock'))
  )
  SELECT least(given, min(writer.behind)) INTO ends_at
  FROM held writer JOIN held log USING (virtualtransaction)
  WHERE writer.locktype = 'advisory' AND log.locktype = 'relation';
  SELECT least(ends_at, min(position)) INTO ends_at FROM feed_backfill;
END $$;

-- By whatever writes rows of a log, processes of an older release included; a statement writes rows of one run. A row that
-- is written again by a rebuild keeps its position. Every plan here is one look into an index, also when it is made while
-- the tables are empty.
CREATE OR REPLACE FUNCTION openwop_feed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE session text;
BEGIN
  PERFORM openwop_feed_begin();
  SELECT coalesce(r.session_id, openwop_session(r.input)) INTO session
  FROM runs r WHERE r.run_id = (SELECT a.run_id FROM added a LIMIT 1);
  INSERT INTO run_feed (tenant_id, position, session_id, run_id, sequence)
  SELECT tenant_id, nextval('run_feed_position'), coalesce(session, run_id), run_id, sequence
  FROM (SELECT a.tenant_id, a.run_id, a.sequence FROM added a ORDER BY a.sequence) ordered
  ON CONFLICT (run_id, sequence) DO NOTHING;
  RETURN NULL;
END $$;

-- Nobody writes while the trigger is made: what is there then, is there to be filled in, in the positions from 1; what
-- comes gets those behind 2^40.
DO $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM pg_trigger WHERE tgrelid = 'run_events'::regclass AND tgname = 'run_events_fed'
  ) THEN
    CREATE TRIGGER run_events_fed AFTER INSERT ON run_events REFERENCING NEW TABLE AS added
      FOR EACH STATEMENT EXECUTE FUNCTION openwop_feed();
    IF EXISTS (SELECT FROM run_events) THEN
      PERFORM setval('run_feed_position', 1::bigint << 40);
      INSERT INTO feed_backfill (run_id, sequence, position) VALUES ('', -1, 0);
    END IF;
  END IF;
END $$;
