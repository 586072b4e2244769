-- Runs that runs start (architecture §4): who started whom, how many a root has below it, and whose end is still to be
-- told to a parent or to children.
ALTER TABLE runs ADD COLUMN parent_run_id TEXT;
ALTER TABLE runs ADD COLUMN root_run_id TEXT;
CREATE INDEX runs_by_parent ON runs (tenant_id, parent_run_id, created_at_ms, run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX runs_by_root ON runs (tenant_id, root_run_id, created_at_ms, run_id) WHERE root_run_id IS NOT NULL;

CREATE TABLE run_families (
  tenant_id TEXT NOT NULL,
  root_run_id TEXT NOT NULL,
  descendants BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, root_run_id)
);

CREATE TABLE run_ends (
  tenant_id TEXT NOT NULL,
  run_id TEXT NOT NULL,
  ended_at_ms BIGINT NOT NULL,
  PRIMARY KEY (tenant_id, run_id)
);
CREATE INDEX run_ends_by_time ON run_ends (ended_at_ms);
