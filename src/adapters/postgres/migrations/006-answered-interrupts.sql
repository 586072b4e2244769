-- The interrupt that a key's answer is for, from its first try on: a retry never reaches the node's next question.

ALTER TABLE idempotency_records ADD COLUMN interrupt_id text;
