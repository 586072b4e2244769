-- What was decided about a run that no workflow ever ran for: its log is rebuilt from this, and it is not started again.

ALTER TABLE runs ADD COLUMN start_failure text;
