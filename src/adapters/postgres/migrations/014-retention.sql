-- Retention (architecture §3.7): which runs have ended and when, what stands against their expiry, what is left of those
-- that have expired, and who needs which content. New tables and one trigger; nothing is written into rows that are there.

-- Runs whose log has ended, by the database's clock: a log may be told long after its events happened. `look_at_ms`: not
-- to be looked at before then, since somebody does, or since something stood in the way.
CREATE TABLE ended_runs (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  ended_at_ms bigint NOT NULL,
  look_at_ms bigint NOT NULL DEFAULT 0
);
CREATE INDEX ended_runs_by_time ON ended_runs (ended_at_ms, run_id);

-- By whatever closes a log, processes of an older release included. A rebuild tells an old end anew: the first time stays.
CREATE FUNCTION openwop_note_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ended_runs (run_id, tenant_id, ended_at_ms) VALUES (NEW.run_id, NEW.tenant_id, openwop_now_ms())
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

-- What stands against expiry: a word of the operator's, and forks that may still read their source.
CREATE TABLE run_holds (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  reason text NOT NULL,
  held_at_ms bigint NOT NULL
);
CREATE TABLE run_forks (
  -- The fork. It is noted before it is accepted.
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  source_run_id text NOT NULL,
  noted_at_ms bigint NOT NULL
);
CREATE INDEX run_forks_of_source ON run_forks (source_run_id);

-- What is left of a run that has expired. Until `cleaned_at_ms` there is something of it to be deleted: not before
-- `clean_at_ms`, since somebody does, or since who was reading reads to the end.
CREATE TABLE expired_runs (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  workflow_id text NOT NULL,
  session_id text NOT NULL,
  -- JSON: ids of its executions in Temporal.
  executions text NOT NULL,
  ended_at_ms bigint NOT NULL,
  expired_at_ms bigint NOT NULL,
  clean_at_ms bigint NOT NULL,
  claims integer NOT NULL DEFAULT 0,
  cleaned_at_ms bigint
);
CREATE INDEX expired_runs_unclean ON expired_runs (clean_at_ms) WHERE cleaned_at_ms IS NULL;
CREATE INDEX expired_runs_newest ON expired_runs (tenant_id, expired_at_ms DESC, run_id DESC);
CREATE INDEX expired_runs_age ON expired_runs (expired_at_ms);

-- Who needs a value: runs, and '' for the host itself, which needs it for good. `of_archive`: a raw history, which is one
-- run's alone.
CREATE TABLE content_refs (
  run_id text NOT NULL,
  tenant_id text NOT NULL,
  hash text NOT NULL,
  of_archive boolean NOT NULL DEFAULT false,
  PRIMARY KEY (run_id, tenant_id, hash)
);
CREATE INDEX content_refs_of_value ON content_refs (tenant_id, hash);

-- Values that somebody needed and may be needed by nobody now.
CREATE TABLE content_unused (
  tenant_id text NOT NULL,
  hash text NOT NULL,
  of_archive boolean NOT NULL,
  since_ms bigint NOT NULL,
  PRIMARY KEY (tenant_id, hash)
);
CREATE INDEX content_unused_oldest ON content_unused (since_ms);

-- Of values from before this time nobody noted who needs them: they stay. A day more: processes of the older release go
-- on meanwhile. An empty database has none.
CREATE TABLE content_tracking (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  from_ms bigint NOT NULL
);
INSERT INTO content_tracking (from_ms)
  SELECT CASE WHEN EXISTS (SELECT FROM runs) THEN openwop_now_ms() + 86400000 ELSE 0 END;

-- What is there: a fork's events may be older than the fork. Read before the trigger takes its lock, which no writer
-- waits for longer than a moment then, and once more for what ended in between.
INSERT INTO ended_runs (run_id, tenant_id, ended_at_ms)
  SELECT run_id, tenant_id, greatest(last_timestamp_ms, created_at_ms) FROM run_heads WHERE closed;
CREATE TRIGGER run_heads_ended AFTER UPDATE ON run_heads FOR EACH ROW
  WHEN (NEW.closed AND NOT OLD.closed) EXECUTE FUNCTION openwop_note_end();
CREATE TRIGGER run_heads_put_ended AFTER INSERT ON run_heads FOR EACH ROW
  WHEN (NEW.closed) EXECUTE FUNCTION openwop_note_end();
INSERT INTO ended_runs (run_id, tenant_id, ended_at_ms)
  SELECT run_id, tenant_id, openwop_now_ms() FROM run_heads h
  WHERE closed AND NOT EXISTS (SELECT FROM ended_runs e WHERE e.run_id = h.run_id);

-- Forks that are open. Escapes are taken out before the search, as 008 does; no id of a run needs one.
INSERT INTO run_forks (run_id, tenant_id, source_run_id, noted_at_ms)
  SELECT run_id, tenant_id, source_run_id, created_at_ms FROM (
    SELECT r.run_id, r.tenant_id, r.created_at_ms,
      regexp_replace(r.input, '\\.', '', 'g')::json -> 'fork' ->> 'sourceRunId' AS source_run_id
    FROM runs r JOIN run_heads h ON h.run_id = r.run_id WHERE NOT h.closed AND r.input LIKE '%"sourceRunId"%'
  ) forks
  WHERE source_run_id IS NOT NULL;
