-- Runs that a fork goes by beside its source (architecture §3.7): what they recorded answers its questions, or the calls of its
-- tools. Noted with the fork in run_forks, and as long. A new table.
CREATE TABLE fork_reads (
  -- The fork.
  run_id text NOT NULL,
  tenant_id text NOT NULL,
  source_run_id text NOT NULL,
  PRIMARY KEY (run_id, source_run_id)
);
CREATE INDEX fork_reads_of_source ON fork_reads (source_run_id);

-- Of forks that are open. Escapes are taken out before the search, as 014 does; no id of a run needs one.
INSERT INTO fork_reads (run_id, tenant_id, source_run_id)
  SELECT DISTINCT run_id, tenant_id, source_run_id FROM (
    SELECT r.run_id, r.tenant_id, recorded.by ->> 'runId' AS source_run_id
    FROM runs r JOIN run_heads h ON h.run_id = r.run_id,
      LATERAL (SELECT regexp_replace(r.input, '\\.', '', 'g')::json -> 'fork' -> 'inherited' AS inherited) fork,
      LATERAL (VALUES (inherited -> 'recordedTools'), (inherited -> 'recordedAnswers')) recorded (by)
    WHERE NOT h.closed AND r.input LIKE '%"inherited"%'
  ) reads
  WHERE source_run_id IS NOT NULL;
