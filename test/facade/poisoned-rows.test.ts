// Each column of a row that lists read is damaged in turn, and each list is asked for through the HTTP API: the rows beside
// it are there, whatever stands in the one (architecture §11, I97).
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Db } from '../../src/adapters/postgres/db.ts';
import { openDatabase, storesOn } from '../../src/adapters/postgres/index.ts';
import { fold, summaryOf } from '../../src/log/fold.ts';
import type { NewRow } from '../../src/ports/log.ts';
import type { RunRef } from '../../src/ports/runs.ts';
import type { Stores } from '../../src/ports/stores.ts';
import { pickedRuns } from '../../src/runs/cohort-selection.ts';
import { agentInstance, agentTool } from '../contract/agent-registry.ts';
import { batchAfter, entry, headOf, newRun } from '../contract/given.ts';
import { pgliteDatabase } from '../support/databases.ts';
import { patient } from '../support/machine.ts';
import { quietLogger } from '../support/quiet-logger.ts';
import { KEY, startFaultHost, type FaultHost } from './fault-host.ts';

const TENANT = 'default';
const LEASE_MS = 3_600_000;
const B = '/v1/host/openwop-temporal';
/** One before the damaged row in each order, and one behind it. */
const NAMES = ['good0', 'bad', 'good9'];

let db: Db;
let close: () => Promise<void>;
let stores: Stores;
let host: FaultHost;
let cookie = '';

beforeAll(async () => {
  const database = await pgliteDatabase();
  ({ db, close } = await openDatabase(database, quietLogger));
  stores = await storesOn({ db, close: async () => undefined }, { database, logger: quietLogger });
  for (const [at, name] of NAMES.entries()) await given(name, at);
  host = await startFaultHost({ opensentience: true }, () => ({}), stores);
  const signIn = { method: 'POST', redirect: 'manual', body: new URLSearchParams({ key: KEY }) };
  const signedIn = await fetch(`${host.url}/pages/sign-in`, signIn as RequestInit);
  cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
}, patient(60_000));
afterAll(async () => {
  await host.stop();
  await close();
});

interface Given {
  readonly sessionId?: string;
  readonly parent?: string;
  readonly isEnded?: true;
}

async function run(
  runId: string,
  createdAtMs: number,
  { sessionId = runId, parent, isEnded }: Given = {},
): Promise<RunRef> {
  const { input, ...rest } = newRun({ runId, tenant: TENANT });
  const header = {
    ...{ sessionId, correlationId: parent ?? runId },
    ...(parent === undefined ? {} : { parentRunId: parent, causationId: 'c' }),
  };
  const row = { ...rest, createdAtMs, input: { ...input, header }, sessionTitle: `of ${runId}` };
  await (parent === undefined ? stores.runs.accept(row) : stores.families.acceptChild(row, 100));
  const ref = stores.runs.ref(TENANT, runId);
  await stores.runs.markStarted(ref, 'T1');
  const stored = await stores.runs.find(TENANT, runId);
  const asks = { nodeId: 'n', interruptId: `i-${runId}`, kind: 'approval', key: 'k', data: {} };
  const event = (key: string, type: string, payload: object): NewRow =>
    entry(runId, key, { type, nodeId: 'n', payload: JSON.stringify(payload) });
  const rows = isEnded
    ? [
        event('said', 'output.chunk', { isLast: true, chunk: `said by ${runId}` }),
        event('end', 'run.completed', {}),
      ]
    : [event('s', 'node.suspended', asks), event('q', 'interrupt.requested', asks)];
  const batch = batchAfter(await headOf(stores, runId), rows, {
    ...{ run: ref, fold, closed: isEnded ?? false },
    status: isEnded ? 'completed' : 'waiting-approval',
    summary: (snapshot) => summaryOf(snapshot, stored),
  });
  await stores.log.append(batch);
  return ref;
}

async function given(name: string, at: number): Promise<void> {
  await run(`ended-${name}`, 1000 + at, { sessionId: 'shared', isEnded: true });
  await run(`asks-${name}`, 2000 + at);
  await run(`child-${name}`, 3000 + at, { parent: 'asks-good0' });
  const expired = await run(`expired-${name}`, 10 + at, { isEnded: true });
  await db.query('UPDATE ended_runs SET ended_at_ms = 1 WHERE run_id = $1', [expired.runId]);
  await stores.retention.expire(expired, { keptMs: 0, restMs: 0 });
  const agentId = `agent.${name}`;
  const lastExit = { atMs: 5, reason: 'x' };
  const instance = agentInstance({ tenant: TENANT, agentId, instanceId: `core-${name}`, lastExit });
  await stores.agents.saveInstance(instance, LEASE_MS);
  await stores.agents.saveTools(TENANT, agentId, [agentTool(agentId, 'echo')]);
  const cohort = {
    ...{ cohortId: `cohort-${name}`, tenant: TENANT, createdAtMs: 1 + at },
    request: {
      ...{ select: { last: 3 }, change: {}, parallel: 1, memberTimeoutMs: 1, scopes: [] },
      subject: newRun().input.subject,
    },
    members: [{ sourceRunId: `ended-${name}`, forkRunId: `fork-${name}` }],
  };
  await stores.cohorts.insert(cohort, 1000);
}

const LISTS = [
  ...['/v1/runs', `${B}/runs`, `${B}/runs?waiting=true`, `${B}/sessions`, `${B}/sessions/shared`],
  ...[`${B}/sessions/shared/conversation`, `${B}/runs/asks-good0/children`],
  ...[`${B}/runs/asks-good0/questions`, `${B}/cohorts`, `${B}/retention`],
  ...[`${B}/opensentience/agents`, `${B}/opensentience/metrics`],
];

async function list(path: string): Promise<string> {
  const { status, text } = await host.api(path);
  return status === 200 ? text : `${status} ${text}`;
}

/** A row in each page, up to the end. */
async function paged(path: string): Promise<string> {
  const pages: string[] = [];
  let cursor: unknown;
  do {
    const { status, text, body } = await host.api(
      `${path}?limit=1${typeof cursor === 'string' ? `&cursor=${cursor}` : ''}`,
    );
    pages.push(status === 200 ? text : `${status} ${text}`);
    cursor = (body as { readonly nextCursor?: unknown }).nextCursor;
  } while (cursor !== undefined && pages.length < 30);
  return pages.join('\n');
}

async function hostPage(): Promise<string> {
  const page = await fetch(`${host.url}/pages`, { headers: { cookie } });
  return page.text();
}

/** Whom a change of an agent means is read in each run. */
async function picked(): Promise<string> {
  const { subject } = newRun().input;
  const asked = { select: { last: 50 }, change: { agents: { x: {} } } };
  const request = { ...asked, parallel: 1, memberTimeoutMs: 1, subject, scopes: [] };
  const caller = { tenant: TENANT, subject, scopes: [] };
  type Asked = Parameters<typeof pickedRuns>;
  const answer = pickedRuns(...([host.deps, caller, request] as unknown as Asked));
  return answer.then(
    () => 'some',
    ({ code }: { readonly code?: string }) => (code === 'agent_not_found' ? 'none' : 'a fault'),
  );
}

const WALKS: Readonly<Record<string, () => Promise<string>>> = {
  ...Object.fromEntries(LISTS.map((path) => [path, () => list(path)])),
  'the host’s page': hostPage,
  'a cohort of an agent': picked,
};
const PAGED = Object.fromEntries(
  ['/v1/runs', `${B}/runs`, `${B}/sessions`, `${B}/cohorts`].map((path) => [
    `${path}, page by page`,
    () => paged(path),
  ]),
);

/** Tables, their keys, and which row is damaged. */
const TABLES: Readonly<Record<string, readonly [key: string, damaged: string]>> = {
  runs: ['run_id', 'bad'],
  run_heads: ['run_id', 'bad'],
  run_events: ['run_id', 'bad'],
  run_asks: ['run_id', 'bad'],
  sessions: ['session_id', 'bad'],
  session_runs: ['run_id', 'bad'],
  cohorts: ['cohort_id', 'bad'],
  cohort_members: ['cohort_id', 'bad'],
  agent_instances: ['instance_id', 'bad'],
  agent_tools: ['agent_id', 'bad'],
  ended_runs: ['run_id', 'bad'],
  expired_runs: ['run_id', 'bad'],
};
/** What says which row it is, and of whom: damage to it is another row. And when a Core is given up. */
const NAMING = /(_id|^position|^sequence|^key|lease_until_ms)$/;
const WHOLE = '{"waits":[],"header":{"sessionId":"s","correlationId":"c"},"definition":{},"era":2}';
const POISONS: Readonly<Record<string, readonly string[]>> = {
  text: ['{', '{}', '[null]', 'odd', WHOLE],
  bigint: ['9000000000000000', '1780000000000000000'],
  ARRAY: ['{NULL}', '{{a,b},{c,d}}', '{~x.y.z}'],
};

interface Column {
  readonly table_name: string;
  readonly column_name: string;
  readonly data_type: string;
}

async function columns(): Promise<Column[]> {
  const all = await db.query<Column>(
    `SELECT table_name, column_name, data_type FROM information_schema.columns
     WHERE table_schema = 'public' AND table_name = ANY($1::text[]) AND is_generated = 'NEVER'`,
    [Object.keys(TABLES)],
  );
  return all.filter(({ column_name: name }) => !NAMING.test(name));
}

async function goods(walks: typeof WALKS): Promise<Record<string, readonly string[]>> {
  const found: Record<string, readonly string[]> = {};
  for (const [name, walk] of Object.entries(walks)) {
    const text = await walk();
    found[name] = [...new Set(text.match(/[a-z]+[-.]good[09]|none|some|a fault/g))].toSorted();
  }
  return found;
}

// [I97]
test(
  'one row with a damaged column takes no other out of any list',
  { timeout: patient(120_000) },
  async () => {
    const whole = { ...(await goods(WALKS)), ...(await goods(PAGED)) };
    for (const [name, seen] of Object.entries(whole)) expect(seen, name).not.toEqual([]);
    const lost: string[] = [];
    for (const { table_name: table, column_name: column, data_type: type } of await columns()) {
      const [key = '', damaged = ''] = TABLES[table] ?? [];
      const where = `${key} LIKE '%${damaged}'`;
      for (const poison of POISONS[type] ?? []) {
        await db.query(`CREATE TEMP TABLE former AS SELECT * FROM ${table} WHERE ${where}`);
        const cast = type === 'ARRAY' ? 'text[]' : type;
        // A constraint may refuse it: then nothing reads it either.
        const isStored = await db
          .query(`UPDATE ${table} SET ${column} = $1::text::${cast} WHERE ${where}`, [poison])
          .then(
            () => true,
            () => false,
          );
        if (isStored) {
          const walks = type === 'bigint' ? { ...WALKS, ...PAGED } : WALKS;
          const found = await goods(walks);
          for (const [name, seen] of Object.entries(found))
            if (String(seen) !== String(whole[name]))
              lost.push(`${table}.${column} = ${poison}: ${name}`);
          await db.query(
            `UPDATE ${table} t SET ${column} = f.${column} FROM former f WHERE ${sameRow(table, key)}`,
          );
        }
        await db.query('DROP TABLE former');
      }
    }
    expect(lost).toEqual([]);
  },
);

/** An event of a run, by its place. */
function sameRow(table: string, key: string): string {
  const own = `t.${key} = f.${key}`;
  if (table === 'run_events') return `${own} AND t.sequence = f.sequence`;
  return table === 'agent_tools' ? `${own} AND t.tool_id = f.tool_id` : own;
}
