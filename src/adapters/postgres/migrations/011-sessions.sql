-- Sessions (seed 003): what groups the runs of one conversation. A session is made by the first run that names it, in the
-- statement that accepts the run, and goes on with every row of its runs' logs.

CREATE TABLE sessions (
  tenant_id text NOT NULL,
  session_id text NOT NULL,
  title text,
  -- Of its runs, each once, the earliest first; at most 100.
  tags text[] NOT NULL,
  created_at_ms bigint NOT NULL,
  last_activity_ms bigint NOT NULL,
  PRIMARY KEY (tenant_id, session_id)
);
CREATE INDEX sessions_newest ON sessions (tenant_id, last_activity_ms DESC, session_id DESC);

-- The runs of sessions with their headers. A table of its own: an index over `runs` would be made under a lock.
CREATE TABLE session_runs (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  session_id text NOT NULL,
  created_at_ms bigint NOT NULL,
  parent_run_id text,
  parent_node_id text,
  correlation_id text NOT NULL,
  causation_id text
);
CREATE INDEX session_runs_newest ON session_runs (tenant_id, session_id, created_at_ms DESC, run_id DESC);

-- Puts a run into its session, which is made where it is not there yet. Called by the accepting statement.
CREATE FUNCTION openwop_join_session(run session_runs, title text, tags text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO session_runs SELECT run.* ON CONFLICT DO NOTHING;
  INSERT INTO sessions AS s (tenant_id, session_id, title, tags, created_at_ms, last_activity_ms)
  VALUES (run.tenant_id, run.session_id, openwop_join_session.title,
    (SELECT coalesce(array_agg(tag ORDER BY at), '{}') FROM (
       SELECT tag, min(at) AS at FROM unnest(openwop_join_session.tags) WITH ORDINALITY AS t (tag, at)
       GROUP BY tag ORDER BY min(at) LIMIT 100) kept),
    run.created_at_ms, run.created_at_ms)
  ON CONFLICT (tenant_id, session_id) DO UPDATE SET
    title = coalesce(s.title, excluded.title),
    tags = (SELECT coalesce(array_agg(tag ORDER BY at), '{}') FROM (
      SELECT tag, min(at) AS at FROM unnest(s.tags || excluded.tags) WITH ORDINALITY AS t (tag, at)
      GROUP BY tag ORDER BY min(at) LIMIT 100) kept),
    created_at_ms = least(s.created_at_ms, excluded.created_at_ms),
    last_activity_ms = greatest(s.last_activity_ms, excluded.last_activity_ms);
END $$;

-- A run of which only its row is there: one that was accepted before sessions were kept. Escapes are taken out of its
-- input as `openwop_session` does; no id of a header needs one.
CREATE FUNCTION openwop_late_session(run runs) RETURNS text LANGUAGE plpgsql AS $$
DECLARE header json; session text;
BEGIN
  header := regexp_replace(run.input, '\\.', '', 'g')::json -> 'header';
  session := coalesce(run.session_id, header ->> 'sessionId', run.run_id);
  PERFORM openwop_join_session(
    ROW(run.run_id, run.tenant_id, session, run.created_at_ms, header ->> 'parentRunId', header ->> 'parentNodeId',
      coalesce(header ->> 'correlationId', run.run_id), header ->> 'causationId')::session_runs, NULL, '{}');
  RETURN session;
END $$;

-- Logs feed their sessions, too. A session that somebody else has just touched is let be, and one that was active in the
-- same second: appends of runs of one session wait for each other nowhere. A rebuild tells nothing newer.
CREATE OR REPLACE FUNCTION openwop_feed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE fed text; session text; tenant text; last_ms bigint; known runs;
BEGIN
  PERFORM openwop_feed_begin();
  SELECT a.run_id, a.tenant_id INTO fed, tenant FROM added a LIMIT 1;
  SELECT s.session_id INTO session FROM session_runs s WHERE s.run_id = fed;
  IF session IS NULL THEN
    SELECT * INTO known FROM runs r WHERE r.run_id = fed;
    IF FOUND THEN session := openwop_late_session(known); END IF;
  END IF;
  INSERT INTO run_feed (tenant_id, position, session_id, run_id, sequence)
  SELECT tenant_id, nextval('run_feed_position'), coalesce(session, run_id), run_id, sequence
  FROM (SELECT a.tenant_id, a.run_id, a.sequence FROM added a ORDER BY a.sequence) ordered
  ON CONFLICT (run_id, sequence) DO NOTHING;
  SELECT max(a.timestamp_ms) INTO last_ms FROM added a;
  UPDATE sessions s SET last_activity_ms = last_ms
  FROM (
    SELECT q.session_id FROM sessions q
    WHERE q.tenant_id = tenant AND q.session_id = session AND q.last_activity_ms < last_ms - 1000
    FOR UPDATE SKIP LOCKED
  ) quiet
  WHERE s.tenant_id = tenant AND s.session_id = quiet.session_id;
  RETURN NULL;
END $$;

-- Of the runs that are there; nobody waits for it.
DO $$
DECLARE run runs;
BEGIN
  FOR run IN SELECT * FROM runs ORDER BY created_at_ms, run_id LOOP
    PERFORM openwop_late_session(run);
  END LOOP;
  UPDATE sessions s SET last_activity_ms = greatest(s.last_activity_ms, told.last_ms)
  FROM (
    SELECT r.tenant_id, r.session_id, max(h.last_timestamp_ms) AS last_ms
    FROM session_runs r JOIN run_heads h USING (run_id) GROUP BY r.tenant_id, r.session_id
  ) told
  WHERE s.tenant_id = told.tenant_id AND s.session_id = told.session_id;
END $$;
