// Every column in which text rests, and why nothing of what a person said is readable in it once that person's key is
// destroyed (architecture §10.1). A column that a migration adds fails this test until it is told here, and sealed where it
// may hold content.
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openDatabase } from '../../src/adapters/postgres/index.ts';
import { migrate, readMigrations } from '../../src/adapters/postgres/migrate.ts';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { pgliteDatabase } from '../support/databases.ts';

/**
 * `sealed`: with the key of the run's subject. `ids`: names, digests that need a key, and words of the protocol. `host`: of
 * the operator's own. `apart`: what it tells of is runs without a subject alone (no cohort takes others). Test/acceptance/erasure.test.ts looks for planted words in all of them.
 */
type Kind = 'sealed' | 'ids' | 'host' | 'apart';

const PLACES: Readonly<Record<string, Readonly<Record<string, Kind>>>> = {
  runs: {
    ...ids('run_id', 'tenant_id', 'workflow_id', 'temporal_run_id', 'subject_key'),
    ...ids('cohort_id'),
    ...{ input: 'sealed', tags: 'sealed', start_failure: 'ids', workflow_name: 'host' },
  },
  run_heads: {
    ...ids('run_id', 'tenant_id', 'workflow_id', 'status', 'temporal_run_id', 'token', 'problem'),
    ...{ translate_state: 'sealed', snapshot: 'sealed', summary: 'sealed' },
  },
  run_events: {
    ...ids('run_id', 'tenant_id', 'event_id', 'key', 'type', 'node_id', 'causation_id'),
    ...{ caused_by: 'ids', block: 'ids', payload: 'sealed' },
  },
  sessions: { ...ids('tenant_id', 'session_id', 'subject'), title: 'sealed', tags: 'sealed' },
  idempotency_records: {
    ...ids('tenant_id', 'endpoint', 'key_digest', 'target_digest', 'subject_key'),
    ...ids('owner', 'run_id', 'interrupt_id'),
    ...{ request_digest: 'sealed', response_body: 'sealed' },
  },
  effects: {
    ...ids(
      'effect_id',
      'tenant_id',
      'run_id',
      'root_run_id',
      'series',
      'node_id',
      'tool_id',
      'state',
    ),
    ...ids('outcome_hash'),
    args_hash: 'sealed',
  },
  contents: { ...ids('tenant_id', 'hash'), bytes: 'sealed' },
  subject_erasures: {
    ...ids('erasure_id', 'tenant_id', 'subject', 'key_id', 'state'),
    ...{ asked: 'host', waits_for: 'host', receipt: 'host' },
  },
  subject_keys: ids('key_id', 'tenant_id', 'subject', 'state', 'wrapped'),
  subject_runs: ids('run_id', 'tenant_id', 'key_id'),
  erased_runs: ids('run_id', 'tenant_id', 'erasure_id', 'root', 'pages'),
  host_secrets: ids('name', 'wrapped'),
  encryption_keys: ids('key_id', 'fingerprint'),
  process_keys: ids('holder', 'knows', 'uses'),
  run_asks: ids('run_id', 'tenant_id'),
  run_blocks: ids('run_id', 'activity_id', 'tenant_id'),
  run_segments: ids('run_id', 'tenant_id', 'temporal_run_id', 'archive'),
  run_watches: ids('run_id', 'watcher', 'tenant_id'),
  run_feed: ids('tenant_id', 'session_id', 'run_id'),
  run_families: ids('tenant_id', 'root_run_id'),
  run_ends: ids('tenant_id', 'run_id'),
  session_runs: {
    ...ids('run_id', 'tenant_id', 'session_id', 'parent_run_id', 'parent_node_id'),
    ...ids('correlation_id', 'causation_id'),
  },
  // Digests of tags as they are stored: of those that are sealed, and of runs without a subject.
  session_tags: ids('run_id', 'tenant_id', 'session_id', 'tag_digest'),
  session_messages: ids('tenant_id', 'session_id', 'message'),
  feed_cursors: ids('tenant_id', 'consumer'),
  process_leases: ids('holder'),
  ended_runs: ids('run_id', 'tenant_id'),
  run_holds: { ...ids('run_id', 'tenant_id'), reason: 'host' },
  run_forks: ids('run_id', 'tenant_id', 'source_run_id'),
  fork_reads: ids('run_id', 'tenant_id', 'source_run_id'),
  expired_runs: ids('run_id', 'tenant_id', 'workflow_id', 'session_id', 'executions'),
  content_refs: ids('run_id', 'tenant_id', 'hash'),
  content_unused: ids('tenant_id', 'hash'),
  cohorts: { ...ids('cohort_id', 'tenant_id', 'state'), request: 'host' },
  cohort_members: {
    ...ids('cohort_id', 'tenant_id', 'source_run_id', 'fork_run_id', 'stop', 'outcome'),
    ...{ question: 'apart', report: 'apart' },
  },
  page_links: ids('link_hash', 'tenant_id', 'run_id'),
  page_sessions: ids('session_hash', 'tenant_id', 'run_id'),
  host_links: ids('link_hash', 'tenant_id'),
  host_sessions: ids('session_hash', 'tenant_id'),
  schema_migrations: ids('name', 'digest'),
  agent_tool_sets: ids('tenant_id', 'agent_id'),
  agent_tools: { ...ids('tenant_id', 'tool_id', 'agent_id'), tool: 'host' },
  agent_instances: { ...ids('tenant_id', 'agent_id', 'instance_id'), instance: 'host' },
  agent_audit_heads: ids('tenant_id'),
  agent_audit: {
    ...ids('tenant_id', 'instance_id', 'agent_id', 'session_id', 'kind'),
    details: 'host',
  },
  agent_tokens: ids('token_hash', 'tenant_id', 'agent_id'),
};

function ids(...names: string[]): Record<string, Kind> {
  return Object.fromEntries(names.map((name) => [name, 'ids']));
}

let db: Db;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ db, close } = await openDatabase(await pgliteDatabase(), quietLogger));
  await migrate(db, await readMigrations());
});
afterAll(() => close());

// [I86]
it('every column that can hold content is sealed, or told why it holds none', async () => {
  const columns = await db.query<{ table_name: string; column_name: string }>(
    `SELECT table_name, column_name FROM information_schema.columns
     WHERE table_schema = 'public' AND data_type IN ('text', 'bytea', 'json', 'jsonb', 'ARRAY', 'character varying')
     ORDER BY table_name, column_name`,
  );
  const found = columns.map((column) => `${column.table_name}.${column.column_name}`);
  const told = Object.entries(PLACES).flatMap(([table, of]) =>
    Object.keys(of).map((column) => `${table}.${column}`),
  );
  expect([...found].sort()).toEqual([...told].sort());
});
