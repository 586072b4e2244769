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
