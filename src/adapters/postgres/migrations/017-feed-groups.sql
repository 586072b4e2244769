-- A statement may write rows of several runs (append-groups.ts): each run feeds its own session, as migration 011 has it
-- for the one run of a statement.
CREATE OR REPLACE FUNCTION openwop_feed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE fed record; session text; known runs;
BEGIN
  PERFORM openwop_feed_begin();
  FOR fed IN
    SELECT a.run_id, a.tenant_id, max(a.timestamp_ms) AS last_ms FROM added a
    GROUP BY a.run_id, a.tenant_id ORDER BY a.run_id
  LOOP
    SELECT s.session_id INTO session FROM session_runs s WHERE s.run_id = fed.run_id;
    IF session IS NULL THEN
      SELECT * INTO known FROM runs r WHERE r.run_id = fed.run_id;
      IF FOUND THEN session := openwop_late_session(known); END IF;
    END IF;
    INSERT INTO run_feed (tenant_id, position, session_id, run_id, sequence)
    SELECT tenant_id, nextval('run_feed_position'), coalesce(session, run_id), run_id, sequence
    FROM (
      SELECT a.tenant_id, a.run_id, a.sequence FROM added a WHERE a.run_id = fed.run_id ORDER BY a.sequence
    ) ordered
    ON CONFLICT (run_id, sequence) DO NOTHING;
    UPDATE sessions s SET last_activity_ms = fed.last_ms
    FROM (
      SELECT q.session_id FROM sessions q
      WHERE q.tenant_id = fed.tenant_id AND q.session_id = session AND q.last_activity_ms < fed.last_ms - 1000
      FOR UPDATE SKIP LOCKED
    ) quiet
    WHERE s.tenant_id = fed.tenant_id AND s.session_id = quiet.session_id;
  END LOOP;
  RETURN NULL;
END $$;
