-- The feed (architecture §3.6): every row of every log in one order, for consumers that read behind a position. Tables
-- alone, in a moment: nothing is written here into rows that are there (008 says how those come into the feed).

-- The session that the run's input names. A run that was accepted by a process of an older release has none here.
ALTER TABLE runs ADD COLUMN session_id text;

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
