-- First schema (architecture §3, §4, §5, §10). JSON is text: what is read is byte for byte what was written.
-- Times are ms epoch. Host-wide tables (process_leases, sweep_progress, schema_migrations) hold no tenant's data.

-- One clock for all leases: that of the database, so that processes need not agree on the time.
CREATE FUNCTION openwop_now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS
  $$ SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

-- Registry: the run as accepted; the reaper starts again from `input`.
CREATE TABLE runs (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  workflow_id text NOT NULL,
  input text NOT NULL,
  tags text NOT NULL,
  created_at_ms bigint NOT NULL,
  temporal_run_id text
);
CREATE INDEX runs_newest ON runs (tenant_id, created_at_ms DESC, run_id DESC);
CREATE INDEX runs_newest_of_workflow ON runs (tenant_id, workflow_id, created_at_ms DESC, run_id DESC);
CREATE INDEX runs_unstarted ON runs (created_at_ms) WHERE temporal_run_id IS NULL;

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
  problem text
);
CREATE INDEX run_heads_by_status ON run_heads (tenant_id, status, created_at_ms DESC, run_id DESC);
CREATE INDEX run_heads_open ON run_heads (run_id) WHERE NOT closed;
CREATE INDEX run_heads_problem ON run_heads (run_id) WHERE problem IS NOT NULL;

-- The log. `block` is the activity whose live delta this row is (the form of core/ids deltaKey).
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

-- Delta blocks: open while an activity may stream (architecture §3.5).
CREATE TABLE run_blocks (
  run_id text NOT NULL,
  activity_id text NOT NULL,
  tenant_id text NOT NULL,
  try_number integer NOT NULL,
  closed boolean NOT NULL,
  PRIMARY KEY (run_id, activity_id)
);

CREATE TABLE run_segments (
  run_id text NOT NULL,
  segment_index integer NOT NULL,
  tenant_id text NOT NULL,
  temporal_run_id text NOT NULL,
  archive text,
  PRIMARY KEY (run_id, segment_index)
);
CREATE INDEX run_segments_unarchived ON run_segments (run_id, segment_index) WHERE archive IS NULL;

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

-- Layer 1 idempotency (idempotency.md §Layer 1). The caller's key is kept as a digest of tenant, endpoint and key.
CREATE TABLE idempotency_records (
  tenant_id text NOT NULL,
  endpoint text NOT NULL,
  key_digest text NOT NULL,
  request_digest text NOT NULL,
  owner text NOT NULL,
  lease_until_ms bigint NOT NULL,
  run_id text,
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
  run_id text NOT NULL,
  node_id text NOT NULL,
  visit integer NOT NULL,
  tool_id text NOT NULL,
  args_hash text NOT NULL,
  occurrence integer NOT NULL,
  attempt integer NOT NULL,
  state text NOT NULL
    CHECK (state IN ('claimed', 'done', 'failed-before-send', 'failed-final', 'in-doubt')),
  epoch integer NOT NULL,
  lease_until_ms bigint NOT NULL,
  outcome_hash text,
  created_at_ms bigint NOT NULL,
  CONSTRAINT effects_identity UNIQUE (tenant_id, run_id, node_id, visit, tool_id, args_hash, occurrence)
);

-- Values by hash, where there is no data folder for them.
CREATE TABLE contents (
  tenant_id text NOT NULL,
  hash text NOT NULL,
  bytes bytea NOT NULL,
  created_at_ms bigint NOT NULL,
  PRIMARY KEY (tenant_id, hash)
);

CREATE TABLE page_links (
  link_hash text PRIMARY KEY,
  tenant_id text NOT NULL,
  run_id text NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX page_links_expiry ON page_links (expires_at_ms);

CREATE TABLE page_sessions (
  session_hash text PRIMARY KEY,
  tenant_id text NOT NULL,
  run_id text NOT NULL,
  expires_at_ms bigint NOT NULL
);
CREATE INDEX page_sessions_expiry ON page_sessions (expires_at_ms);
