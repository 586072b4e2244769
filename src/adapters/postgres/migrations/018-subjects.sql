-- Erasure of one subject's data by destroying a key (architecture §10.1). What a run of a subject leaves is sealed with that
-- subject's key; here are the keys, wrapped by the operator's, and nothing that a subject is called: its name is kept as a
-- keyed hash.

-- Made once by the host and wrapped by the operator's key: what names are hashed with, and what receipts are signed with.
CREATE TABLE host_secrets (
  name text PRIMARY KEY,
  wrapped text NOT NULL
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
CREATE UNIQUE INDEX subject_keys_alive ON subject_keys (tenant_id, subject) WHERE state <> 'destroyed';

-- Whose runs are whose: a table of its own, as an index over `runs` would be made under a lock.
CREATE TABLE subject_runs (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  key_id text NOT NULL,
  session_id text NOT NULL
);
CREATE INDEX subject_runs_of_key ON subject_runs (key_id, run_id);
CREATE INDEX subject_runs_of_session ON subject_runs (tenant_id, session_id);

-- The same key beside the run's input, for who reads that.
ALTER TABLE runs ADD COLUMN subject_key text;

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
  receipt text
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
