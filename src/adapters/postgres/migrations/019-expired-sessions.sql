-- The stream of a session asks whether a run of it has expired: with a million of those, no scan of the table.
CREATE INDEX expired_runs_of_session ON expired_runs (tenant_id, session_id);
