-- The schema (architecture §3, §4, §5, §6, §7, §10). JSON is text: what is read is byte for byte what was written. Times are ms
-- epoch. Host-wide tables (process_leases, process_keys, encryption_keys, sweep_progress, store_pings, host_secrets,
-- schema_migrations) hold no tenant's data.

-- One clock for all leases: that of the database, so that processes need not agree on the time.
CREATE FUNCTION openwop_now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- ====== runs and their logs ======

-- Registry: the run as accepted; the reaper starts again from `input`.
CREATE TABLE runs (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  workflow_id text NOT NULL,
  -- The name of the run's own definition.
  workflow_name text NOT NULL,
  input text NOT NULL,
  tags text NOT NULL,
  created_at_ms bigint NOT NULL,
  temporal_run_id text,
  -- What was decided about a run that no workflow ever ran for: its log is rebuilt from this, and it is not started again.
  start_failure text,
  -- Since when its start is refused, and when that was seen last.
  refused_at_ms bigint,
  refused_last_ms bigint,
  -- Of forks that belong to a cohort: lists leave them out.
  cohort_id text,
  -- The key of the run's subject, as in subject_runs, for who reads the input.
  subject_key text,
  -- The run's log was made again from this sequence on, with its recorded deltas at their recordings (architecture §3.6).
  retold_from bigint
);
CREATE INDEX runs_newest ON runs (tenant_id, created_at_ms DESC, run_id DESC);
CREATE INDEX runs_newest_of_workflow ON runs (tenant_id, workflow_id, created_at_ms DESC, run_id DESC);
CREATE INDEX runs_unstarted ON runs (created_at_ms) WHERE temporal_run_id IS NULL;
CREATE INDEX runs_of_subject ON runs (subject_key, run_id) WHERE subject_key IS NOT NULL;

-- The log's heads: the lock of every append. Rebuilt from history; workflow_id and created_at_ms are copies for lists.
CREATE TABLE run_heads (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  workflow_id text NOT NULL,
  created_at_ms bigint NOT NULL,
  status text NOT NULL,
  closed boolean NOT NULL,
  next_sequence bigint NOT NULL,
  last_timestamp_ms bigint NOT NULL,
  temporal_run_id text NOT NULL,
  history_event_id bigint NOT NULL,
  token text NOT NULL,
  translate_version integer NOT NULL,
  translate_state text NOT NULL,
  snapshot text NOT NULL,
  problem text,
  -- What lists tell of a run without its snapshot and its input, which may be large: JSON text (RunSummary of ports/runs.ts).
  -- Absent before the first append.
  summary text,
  -- As in runs.
  retold_from bigint
);
CREATE INDEX run_heads_by_status ON run_heads (tenant_id, status, created_at_ms DESC, run_id DESC);
CREATE INDEX run_heads_open ON run_heads (run_id) WHERE NOT closed;
CREATE INDEX run_heads_problem ON run_heads (run_id) WHERE problem IS NOT NULL;

-- The log. `block` is the activity whose live delta this row is (the form of rules/ids.ts deltaKey).
CREATE TABLE run_events (
  run_id text NOT NULL,
  sequence bigint NOT NULL,
  tenant_id text NOT NULL,
  event_id text NOT NULL,
  key text NOT NULL,
  type text NOT NULL,
  node_id text,
  causation_id text,
  caused_by text,
  payload text NOT NULL,
  timestamp_ms bigint NOT NULL,
  block text GENERATED ALWAYS AS (substring(key FROM '^([^#]+)#d[0-9]+$')) STORED,
  PRIMARY KEY (run_id, sequence),
  CONSTRAINT run_events_event_id UNIQUE (event_id),
  CONSTRAINT run_events_key UNIQUE (run_id, key)
);
CREATE INDEX run_events_of_block ON run_events (run_id, block, sequence) WHERE block IS NOT NULL;
-- Questions to people are few in a log of any length: what became of one is found among them. The types are QUESTION_TYPES of
-- rules/events.ts.
CREATE INDEX run_events_of_questions ON run_events (run_id, sequence)
  WHERE type IN ('run.cancelled', 'node.suspended', 'interrupt.requested', 'interrupt.resolved');

-- Delta blocks: open while an activity may stream (architecture §3.5).
CREATE TABLE run_blocks (
  run_id text NOT NULL,
  activity_id text NOT NULL,
  tenant_id text NOT NULL,
  try_number integer NOT NULL,
  closed boolean NOT NULL,
  PRIMARY KEY (run_id, activity_id)
);

-- Runs that wait for a person: the first and the last of the deadlines of what they ask, and when they asked first.
CREATE TABLE run_asks (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  until_ms bigint NOT NULL,
  since_ms bigint NOT NULL,
  last_until_ms bigint NOT NULL
);
CREATE INDEX run_asks_soonest ON run_asks (tenant_id, until_ms, since_ms, run_id);

CREATE TABLE run_watches (
  run_id text NOT NULL,
  watcher text NOT NULL,
  tenant_id text NOT NULL,
  expires_at_ms bigint NOT NULL,
  PRIMARY KEY (run_id, watcher)
);
CREATE INDEX run_watches_expiry ON run_watches (expires_at_ms);

CREATE TABLE process_leases (
  holder text PRIMARY KEY,
  expires_at_ms bigint NOT NULL
);

CREATE TABLE sweep_progress (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  watermark_ms bigint NOT NULL
);

-- What a ping writes. One row, of which no index but its key knows: old versions go with the next write of their page.
CREATE TABLE store_pings (
  only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  at_ms bigint NOT NULL
);
INSERT INTO store_pings (at_ms) VALUES (openwop_now_ms());

-- The executions of a run in Temporal. One says itself that it is closed, so that the search for what lacks its archive reads no
-- open run; and it is claimed, so that one process archives each.
CREATE TABLE run_segments (
  run_id text NOT NULL,
  segment_index integer NOT NULL,
  tenant_id text NOT NULL,
  temporal_run_id text NOT NULL,
  archive text,
  closed boolean NOT NULL DEFAULT false,
  claimed_until_ms bigint NOT NULL DEFAULT 0,
  claims integer NOT NULL DEFAULT 0,
  PRIMARY KEY (run_id, segment_index)
);
CREATE INDEX run_segments_unarchived ON run_segments (claimed_until_ms) WHERE closed AND archive IS NULL;

-- By whatever moves a head on, not by a statement that a process of another release may leave out: its segments would never be
-- archived.
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

-- ====== sessions, and runs that runs start ======

-- Sessions (seed 003): what groups the runs of one conversation. A session is made by the first run that names it, in the
-- statement that accepts the run, and goes on with every row of its runs' logs.
CREATE TABLE sessions (
  tenant_id text NOT NULL,
  session_id text NOT NULL,
  -- JSON texts, or sealed.
  title text,
  -- Of its runs, each once, the earliest first; at most 100.
  tags text[] NOT NULL,
  -- Whose data its runs hold, from the first run that named somebody on: the pseudonym.
  subject text,
  created_at_ms bigint NOT NULL,
  last_activity_ms bigint NOT NULL,
  PRIMARY KEY (tenant_id, session_id)
);
CREATE INDEX sessions_newest ON sessions (tenant_id, last_activity_ms DESC, session_id DESC);

-- The runs of sessions with their headers: who started whom, too.
CREATE TABLE session_runs (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  session_id text NOT NULL,
  created_at_ms bigint NOT NULL,
  parent_run_id text,
  parent_node_id text,
  correlation_id text NOT NULL,
  causation_id text,
  -- Goes on when its parent ends.
  is_detached boolean NOT NULL
);
CREATE INDEX session_runs_newest ON session_runs (tenant_id, session_id, created_at_ms DESC, run_id DESC);
CREATE INDEX session_runs_by_parent ON session_runs (tenant_id, parent_run_id, created_at_ms, run_id)
  WHERE parent_run_id IS NOT NULL;
CREATE INDEX session_runs_by_root ON session_runs (tenant_id, correlation_id, created_at_ms, run_id)
  WHERE parent_run_id IS NOT NULL;

-- Which runs gave a session which tags, in the form in which these stand there: a tag goes with the last of them. By digests: a tag may
-- be too long for an index.
CREATE TABLE session_tags (
  run_id text NOT NULL,
  tenant_id text NOT NULL,
  session_id text NOT NULL,
  tag_digest text NOT NULL,
  PRIMARY KEY (run_id, tag_digest)
);
CREATE INDEX session_tags_of_session ON session_tags (tenant_id, session_id, tag_digest);

CREATE FUNCTION openwop_tag_digest(tag text) RETURNS text LANGUAGE sql STABLE AS
  $$ SELECT encode(sha256(convert_to(tag, 'UTF8')), 'hex') $$;

-- Puts a run into its session, which is made where it is not there yet. Called by the accepting statement. A run that another
-- run made (`is_asked` is false) has the subject of that one; any other has that of its session, which this row decides: the
-- first run that names a subject. After it, whoever names another subject, or none, fails here.
CREATE FUNCTION openwop_join_session(run session_runs, title text, tags text[], subject_key text, is_asked boolean)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  own text;
  decided text;
BEGIN
  -- Else the table of keys is not touched: an erasure rewrites it.
  IF openwop_join_session.subject_key IS NOT NULL THEN
    SELECT k.subject INTO own FROM subject_keys k WHERE k.key_id = openwop_join_session.subject_key;
  END IF;
  INSERT INTO session_runs SELECT run.* ON CONFLICT DO NOTHING;
  INSERT INTO session_tags (run_id, tenant_id, session_id, tag_digest)
  SELECT run.run_id, run.tenant_id, run.session_id, openwop_tag_digest(tag) FROM unnest(openwop_join_session.tags) tag
  ON CONFLICT DO NOTHING;
  INSERT INTO sessions AS s (tenant_id, session_id, title, tags, subject, created_at_ms, last_activity_ms)
  VALUES (run.tenant_id, run.session_id, openwop_join_session.title,
    (SELECT coalesce(array_agg(tag ORDER BY at), '{}') FROM (
       SELECT tag, min(at) AS at FROM unnest(openwop_join_session.tags) WITH ORDINALITY AS t (tag, at)
       GROUP BY tag ORDER BY min(at) LIMIT 100) kept),
    own, run.created_at_ms, run.created_at_ms)
  ON CONFLICT (tenant_id, session_id) DO UPDATE SET
    title = coalesce(s.title, excluded.title),
    tags = (SELECT coalesce(array_agg(tag ORDER BY at), '{}') FROM (
      SELECT tag, min(at) AS at FROM unnest(s.tags || excluded.tags) WITH ORDINALITY AS t (tag, at)
      GROUP BY tag ORDER BY min(at) LIMIT 100) kept),
    subject = coalesce(s.subject, excluded.subject),
    created_at_ms = least(s.created_at_ms, excluded.created_at_ms),
    last_activity_ms = greatest(s.last_activity_ms, excluded.last_activity_ms)
  RETURNING s.subject INTO decided;
  IF is_asked AND decided IS DISTINCT FROM own THEN
    RAISE EXCEPTION 'the session has another subject' USING ERRCODE = 'OW002';
  END IF;
END $$;

-- What was said in sessions (seed 000 §G): of each message the place in the feed of the first row that says it. An index of
-- the feed, and of nothing else: who reads a conversation brings it up to date first. How far each session's came stands
-- among the cursors of the feed.
CREATE TABLE session_messages (
  tenant_id text NOT NULL,
  session_id text NOT NULL,
  -- SHA-256 of its messageId in hex: no column can hold a NUL.
  message text NOT NULL,
  position bigint NOT NULL,
  PRIMARY KEY (tenant_id, session_id, message)
);
CREATE INDEX session_messages_by_place ON session_messages (tenant_id, session_id, position);

-- Runs that runs start (architecture §4): how many a root has below it, and whose end is still to be told to a parent or to
-- children.
CREATE TABLE run_families (
  tenant_id text NOT NULL,
  root_run_id text NOT NULL,
  descendants bigint NOT NULL,
  PRIMARY KEY (tenant_id, root_run_id)
);

CREATE TABLE run_ends (
  tenant_id text NOT NULL,
  run_id text NOT NULL,
  ended_at_ms bigint NOT NULL,
  PRIMARY KEY (tenant_id, run_id)
);
CREATE INDEX run_ends_by_time ON run_ends (ended_at_ms);

-- ====== the feed ======
-- Every row of every log in one order, for consumers that read on from a position (architecture §3.6).
--
-- A reader must never pass a position that may still commit. A transaction takes its positions before it commits, so a
-- later one may be seen first. Each writer therefore holds a shared advisory lock until its transaction ends; the lock's
-- key says after which position its own lie (nothing waits for it: the lock table only tells who still writes). Reads
-- end at the lowest such key. Transactions of others on the server, however long, hold nothing back: they hold no lock
-- on the log of this schema beside it.

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
-- order is what it stands on: what was given, then who still writes, then (the caller) the rows. A writer holds the lock
-- on the log before the other and lets go of both after its commit; one that is seen half has taken no position yet
-- that was given, or its rows are there.
CREATE FUNCTION openwop_feed_end(OUT given bigint, OUT ends_at bigint) LANGUAGE plpgsql VOLATILE AS $$
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
END $$;

-- By whatever writes rows of logs; a statement may write rows of several runs (append-groups.ts). A row that is written
-- again by a rebuild keeps its position. Every plan here is one look into an index, also when it is made while the tables
-- are empty. Logs feed their sessions, too: one that somebody else has just touched is let be, and one that was active
-- in the same second, so that appends of runs of one session wait for each other nowhere. A rebuild tells nothing newer.
CREATE FUNCTION openwop_feed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE fed record; session text;
BEGIN
  PERFORM openwop_feed_begin();
  FOR fed IN
    SELECT a.run_id, a.tenant_id, max(a.timestamp_ms) AS last_ms FROM added a
    GROUP BY a.run_id, a.tenant_id ORDER BY a.run_id
  LOOP
    SELECT s.session_id INTO session FROM session_runs s WHERE s.run_id = fed.run_id;
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
CREATE TRIGGER run_events_fed AFTER INSERT ON run_events REFERENCING NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION openwop_feed();

-- ====== what requests and steps did ======

-- Layer 1 idempotency (idempotency.md §Layer 1). The caller's key is kept as a digest of tenant, endpoint and key.
CREATE TABLE idempotency_records (
  tenant_id text NOT NULL,
  endpoint text NOT NULL,
  key_digest text NOT NULL,
  target_digest text NOT NULL,
  request_digest text NOT NULL,
  -- By which the digest is made, where somebody's data was asked for.
  subject_key text,
  owner text NOT NULL,
  lease_until_ms bigint NOT NULL,
  run_id text,
  -- The interrupt that a key's answer is for, from its first try on: a retry never reaches the node's next question.
  interrupt_id text,
  response_status integer,
  response_body text,
  created_at_ms bigint NOT NULL,
  PRIMARY KEY (tenant_id, endpoint, key_digest)
);
CREATE INDEX idempotency_records_age ON idempotency_records (created_at_ms);

-- Effect ledger (architecture §5); its state table heads effect-ledger.ts.
CREATE TABLE effects (
  effect_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  -- Who claimed it last.
  run_id text NOT NULL,
  root_run_id text NOT NULL,
  -- The run, or of a child all that stand in its place over the attempts of its node.
  series text NOT NULL,
  node_id text NOT NULL,
  visit integer NOT NULL,
  tool_id text NOT NULL,
  args_hash text NOT NULL,
  occurrence integer NOT NULL,
  attempt integer NOT NULL,
  state text NOT NULL
    CHECK (state IN ('claimed', 'done', 'done-without-result', 'failed-before-send', 'failed-final', 'in-doubt')),
  -- What its tool said when the effect was claimed last.
  idempotent boolean NOT NULL,
  -- A doubt about it goes to a human: its tool said so at this claim, or at a former one that is in doubt.
  is_asked boolean NOT NULL,
  -- A sending under another key may have happened: the tool does not know this one.
  is_foreign boolean NOT NULL,
  -- A human had another call performed, and was shown that it is not known what became of this one.
  is_told boolean NOT NULL DEFAULT false,
  epoch integer NOT NULL,
  lease_until_ms bigint NOT NULL,
  outcome_hash text,
  created_at_ms bigint NOT NULL,
  CONSTRAINT effects_identity UNIQUE (tenant_id, series, node_id, visit, tool_id, args_hash, occurrence)
);
CREATE INDEX effects_of_run ON effects (run_id);
-- What may stand in the way of other calls of a family.
CREATE INDEX effects_open ON effects (tenant_id, root_run_id, tool_id) WHERE state IN ('in-doubt', 'claimed');

-- ====== values by hash ======

-- Where there is no data folder for them.
CREATE TABLE contents (
  tenant_id text NOT NULL,
  hash text NOT NULL,
  bytes bytea NOT NULL,
  created_at_ms bigint NOT NULL,
  PRIMARY KEY (tenant_id, hash)
);

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
  since_ms bigint NOT NULL,
  PRIMARY KEY (tenant_id, hash)
);
CREATE INDEX content_unused_oldest ON content_unused (since_ms);

-- ====== retention (architecture §3.7) ======
-- Which runs have ended and when, what stands against their expiry, and what is left of those that have expired.

-- Runs whose log has ended, by the database's clock: a log may be told long after its events happened. `look_at_ms`: not
-- to be looked at before then, since somebody does, or since something stood in the way.
CREATE TABLE ended_runs (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  ended_at_ms bigint NOT NULL,
  look_at_ms bigint NOT NULL DEFAULT 0
);
CREATE INDEX ended_runs_by_time ON ended_runs (ended_at_ms, run_id);

-- By whatever closes a log. A rebuild tells an old end again: the first time stays.
CREATE FUNCTION openwop_note_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ended_runs (run_id, tenant_id, ended_at_ms) VALUES (NEW.run_id, NEW.tenant_id, openwop_now_ms())
  ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER run_heads_ended AFTER UPDATE ON run_heads FOR EACH ROW
  WHEN (NEW.closed AND NOT OLD.closed) EXECUTE FUNCTION openwop_note_end();
CREATE TRIGGER run_heads_put_ended AFTER INSERT ON run_heads FOR EACH ROW
  WHEN (NEW.closed) EXECUTE FUNCTION openwop_note_end();

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

-- Runs that a fork goes by beside its source: what they recorded answers its questions, or the calls of its tools. Noted
-- with the fork in run_forks, and as long.
CREATE TABLE fork_reads (
  -- The fork.
  run_id text NOT NULL,
  tenant_id text NOT NULL,
  source_run_id text NOT NULL,
  PRIMARY KEY (run_id, source_run_id)
);
CREATE INDEX fork_reads_of_source ON fork_reads (source_run_id);

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
-- The stream of a session asks whether a run of it has expired: with a million of those, no scan of the table.
CREATE INDEX expired_runs_of_session ON expired_runs (tenant_id, session_id);

-- ====== cohorts (architecture §6) ======
-- Many runs that are forked by one change, and what each fork came to.

CREATE TABLE cohorts (
  cohort_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  created_at_ms bigint NOT NULL,
  -- JSON text (CohortRequest of rules/cohort.ts), without secrets.
  request text NOT NULL,
  members integer NOT NULL,
  state text NOT NULL CHECK (state IN ('running', 'cancelling', 'completed', 'cancelled')),
  -- Temporal has its workflow.
  is_started boolean NOT NULL DEFAULT false,
  ended_at_ms bigint
);
CREATE INDEX cohorts_newest ON cohorts (tenant_id, created_at_ms DESC, cohort_id DESC);
CREATE INDEX cohorts_open ON cohorts (created_at_ms) WHERE ended_at_ms IS NULL;

CREATE TABLE cohort_members (
  cohort_id text NOT NULL,
  position integer NOT NULL,
  tenant_id text NOT NULL,
  source_run_id text NOT NULL,
  -- Made of cohort and source: it is the fork's whether that is there or not.
  fork_run_id text NOT NULL,
  -- Why its fork was ended by the cohort: noted before it is.
  stop text CHECK (stop IN ('asks', 'time-limit', 'cancelled')),
  -- JSON text: what it asks that its source's record does not answer.
  question text,
  outcome text,
  -- JSON text (MemberReport of rules/cohort.ts); with `outcome`.
  report text,
  PRIMARY KEY (cohort_id, position),
  CONSTRAINT cohort_members_fork UNIQUE (fork_run_id)
);

-- ====== agents as processes (seed 004; architecture §5) ======
-- What every process of a deployment must see of them. Views and tools are JSON text in the form of the port's types; nothing
-- here holds content or a token.

CREATE TABLE agent_tools (
  tenant_id text NOT NULL,
  tool_id text NOT NULL,
  agent_id text NOT NULL,
  tool text NOT NULL,
  PRIMARY KEY (tenant_id, tool_id)
);
CREATE INDEX agent_tools_of_agent ON agent_tools (tenant_id, agent_id);

-- The version of what the agent declared last, which tells a declaration that was lost from one that was replaced.
CREATE TABLE agent_tool_sets (
  tenant_id text NOT NULL,
  agent_id text NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (tenant_id, agent_id)
);

-- One agent in one Core; a row whose lease is over belongs to a Core that died.
CREATE TABLE agent_instances (
  tenant_id text NOT NULL,
  agent_id text NOT NULL,
  instance_id text NOT NULL,
  lease_until_ms bigint NOT NULL,
  instance text NOT NULL,
  PRIMARY KEY (tenant_id, agent_id, instance_id)
);
CREATE INDEX agent_instances_of_core ON agent_instances (instance_id);
CREATE INDEX agent_instances_expiry ON agent_instances (lease_until_ms);

-- The tenant's row is the lock of its audit: positions are given in the order of commits, so that a reader who pages
-- misses none, and the number of rows kept follows from the position alone.
CREATE TABLE agent_audit_heads (
  tenant_id text PRIMARY KEY,
  last_position bigint NOT NULL
);

CREATE TABLE agent_audit (
  tenant_id text NOT NULL,
  position bigint NOT NULL,
  at_ms bigint NOT NULL,
  instance_id text NOT NULL,
  agent_id text,
  session_id text,
  kind text NOT NULL,
  details text NOT NULL,
  PRIMARY KEY (tenant_id, position)
);
CREATE INDEX agent_audit_of_agent ON agent_audit (tenant_id, agent_id, position);
CREATE INDEX agent_audit_age ON agent_audit (at_ms);

CREATE TABLE agent_tokens (
  token_hash text PRIMARY KEY,
  tenant_id text NOT NULL,
  agent_id text NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX agent_tokens_expiry ON agent_tokens (expires_at_ms);

-- ====== who may see pages (architecture §10) ======
-- Links and the sessions that they open, by hash only: of one run, and of the host.

CREATE TABLE page_links (
  link_hash text PRIMARY KEY,
  tenant_id text NOT NULL,
  run_id text NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX page_links_expiry ON page_links (expires_at_ms);
CREATE INDEX page_links_of_run ON page_links (run_id);

CREATE TABLE page_sessions (
  session_hash text PRIMARY KEY,
  tenant_id text NOT NULL,
  run_id text NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX page_sessions_expiry ON page_sessions (expires_at_ms);
CREATE INDEX page_sessions_of_run ON page_sessions (run_id);

CREATE TABLE host_links (
  link_hash text PRIMARY KEY,
  tenant_id text NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX host_links_expiry ON host_links (expires_at_ms);

CREATE TABLE host_sessions (
  session_hash text PRIMARY KEY,
  tenant_id text NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX host_sessions_expiry ON host_sessions (expires_at_ms);

-- ====== erasure of one subject's data by destroying a key (architecture §10.1) ======
-- What a run of a subject leaves is sealed with that subject's key; here are the keys, wrapped by the operator's, and nothing
-- that a subject is called: its name is kept as a keyed hash.

-- Made once by the host and wrapped by the operator's key: what names are hashed with, and what receipts are signed with.
CREATE TABLE host_secrets (
  name text PRIMARY KEY,
  wrapped text NOT NULL
);

-- The operator's keys that something was encrypted or wrapped with, ever. The fingerprint tells a key from another one that
-- has the same id.
CREATE TABLE encryption_keys (
  key_id text PRIMARY KEY,
  fingerprint text NOT NULL,
  first_used_at_ms bigint NOT NULL
);

-- The keys that each live process has (`id=fingerprint`, separated by commas), and the one that it encrypts with. A row is
-- renewed while its process lives; `since_ms`: since when without a gap.
CREATE TABLE process_keys (
  holder text PRIMARY KEY,
  knows text NOT NULL,
  uses text,
  since_ms bigint NOT NULL,
  expires_at_ms bigint NOT NULL
);

-- One row per key, for ever: without `wrapped` it says that the key was destroyed, and when.
CREATE TABLE subject_keys (
  key_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  subject text NOT NULL,
  state text NOT NULL CHECK (state IN ('active', 'closing', 'destroyed')),
  wrapped text,
  created_at_ms bigint NOT NULL,
  destroyed_at_ms bigint,
  CONSTRAINT subject_keys_destroyed CHECK ((state = 'destroyed') = (wrapped IS NULL))
);
-- No statistics: ANALYZE would copy wrapped keys to where erasure does not reach them.
ALTER TABLE subject_keys ALTER COLUMN wrapped SET STATISTICS 0;
CREATE UNIQUE INDEX subject_keys_alive ON subject_keys (tenant_id, subject) WHERE state <> 'destroyed';

-- Whose runs are whose.
CREATE TABLE subject_runs (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  key_id text NOT NULL
);
CREATE INDEX subject_runs_of_key ON subject_runs (key_id, run_id);

-- No run begins under a key that is being destroyed: the statement that accepts it waits for the other, or fails here.
CREATE FUNCTION openwop_hold_subject() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM subject_keys WHERE key_id = NEW.key_id AND state = 'active' FOR SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the key of the subject is not to be used' USING ERRCODE = 'OW001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER subject_runs_held BEFORE INSERT ON subject_runs FOR EACH ROW EXECUTE FUNCTION openwop_hold_subject();

-- Requests to erase, for ever. The receipt is made last, and signed.
CREATE TABLE subject_erasures (
  erasure_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  subject text NOT NULL,
  key_id text NOT NULL,
  state text NOT NULL CHECK (state IN ('closing', 'destroyed', 'erased')),
  cancels_open boolean NOT NULL,
  asked text NOT NULL,
  asked_at_ms bigint NOT NULL,
  destroyed_at_ms bigint,
  -- No process opens anything with the key any more.
  is_forgotten boolean NOT NULL DEFAULT false,
  -- A transaction id above all that changed the key's row.
  xids_so_far bigint,
  -- Where in the database's log the rewrite of subject_keys that removed the key had ended.
  written_lsn pg_lsn,
  -- What it waits for, and why, while it has no receipt.
  waits_for text,
  receipt text,
  CONSTRAINT subject_erasures_destroyed CHECK ((state = 'closing') = (xids_so_far IS NULL))
);
CREATE UNIQUE INDEX subject_erasures_of_key ON subject_erasures (key_id);
CREATE INDEX subject_erasures_newest ON subject_erasures (tenant_id, asked_at_ms DESC, erasure_id DESC);
CREATE INDEX subject_erasures_open ON subject_erasures (asked_at_ms) WHERE state <> 'erased';

-- What each run's log was when its key was destroyed: how many entries, the digest over them, and where in the content store
-- the sealed rows are kept, since no history tells them any more.
CREATE TABLE erased_runs (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  erasure_id text NOT NULL,
  events bigint NOT NULL,
  root text NOT NULL,
  pages text NOT NULL
);
CREATE INDEX erased_runs_of_erasure ON erased_runs (erasure_id, run_id);
