-- Runs that runs start (architecture §4): how many a root has below it, and whose end is still to be told to a parent or to
-- children. Who started whom stands in session_runs, which every run joins as it is accepted.
CREATE INDEX session_runs_by_parent ON session_runs (tenant_id, parent_run_id, created_at_ms, run_id)
  WHERE parent_run_id IS NOT NULL;
CREATE INDEX session_runs_by_root ON session_runs (tenant_id, correlation_id, created_at_ms, run_id)
  WHERE parent_run_id IS NOT NULL;

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
