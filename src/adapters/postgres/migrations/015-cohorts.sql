-- Cohorts (architecture §6): many runs that are forked by one change, and what each fork came to. A column without a value,
-- and new tables: nothing is written into rows that are there.

-- Of forks that belong to a cohort: lists leave them out.
ALTER TABLE runs ADD COLUMN cohort_id text;

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
