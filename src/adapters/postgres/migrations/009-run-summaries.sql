-- What lists tell of a run without its snapshot and its input: those may be large, and a page has many runs. Columns
-- without a value, and a new table: nothing is written into rows that are there, and no index is made over them.

-- The name of the run's own definition. A run that was accepted by a process of an older release has none here.
ALTER TABLE runs ADD COLUMN workflow_name text;

-- JSON text (RunSummary of ports/runs.ts), and the cursor of the head that it was made at. Behind an append of an older
-- release the two differ, and whoever reads makes the summary anew.
ALTER TABLE run_heads
  ADD COLUMN summary text,
  ADD COLUMN summary_of text;

-- Runs that wait for a person: the first and the last of the deadlines of what they ask, and when they asked first.
CREATE TABLE run_asks (
  run_id text PRIMARY KEY,
  tenant_id text NOT NULL,
  until_ms bigint NOT NULL,
  since_ms bigint NOT NULL,
  last_until_ms bigint NOT NULL
);
CREATE INDEX run_asks_soonest ON run_asks (tenant_id, until_ms, since_ms, run_id);
