// Rehearsals on a real host (architecture §4): days in seconds, in order, in the runs below too; no effect; forks; and
// nobody else's host has any.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RunEventDoc, RunOverviewList } from '../../schemas/types.generated.ts';
import type { KeepTimeInput } from '../../activities/contract.ts';
import type { ResolvedAgent } from '../../src/ports/catalog.ts';
import type { Tool } from '../../src/ports/tools.ts';
import { ended, expectLawful, readLog, waiting } from '../facade/suite-parts.ts';
import { childrenOf } from '../support/children.ts';
import { agentNode, chain, definition, edge, node } from '../support/definitions.ts';
import {
  apiClient,
  spawnHost,
  startTestHost,
  until,
  type TestHost,
  type TestHostOptions,
} from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { writeDefinition } from '../support/opensentience/agent-folders.ts';
import { sharedDatabase } from '../support/shared-postgres.ts';
import { CACHE_DIR, startTestTemporal } from '../support/temporal.ts';
import { patient } from '../support/machine.ts';
import { newestHistory } from '../support/newest-history.ts';
import { takes } from '../support/waiting.ts';

const HOUR_MS = 3600 * 1000;
const DAY_MS = 24 * HOUR_MS;
const CLOCK_SET = 'openwop-temporal.clock-set';
const AGENT = 'local.rehearsals.desk';

const wait = (id: string, hours: number) =>
  node(id, 'core.delay', { config: { ms: hours * HOUR_MS } });
const gate = (id: string, days: number) =>
  node(id, 'core.approvalGate', { config: { title: 'Shall it?', timeoutMs: days * DAY_MS } });
const child = (id: string, workflowId: string) =>
  node(id, 'core.subWorkflow', { config: { workflowId } });

const LADDER = chain('ladder', [
  wait('day1', 24),
  node('remind1', 'core.noop'),
  wait('day2', 24),
  node('remind2', 'core.noop'),
  gate('ask', 7),
]);
const DEFINITIONS = [
  LADDER,
  chain('asks', [gate('ask', 7), node('end', 'core.noop')]),
  chain('grandchild', [wait('g', 5), wait('g2', 30)]),
  chain('child', [wait('c', 20), child('below', 'grandchild'), wait('c2', 1)]),
  definition(
    'family',
    [
      node('s', 'core.start'),
      child('left', 'child'),
      child('right', 'grandchild'),
      wait('own', 22),
      node('join', 'core.noop'),
      wait('last', 4),
    ],
    [
      edge('s', 'left'),
      edge('s', 'right'),
      edge('s', 'own'),
      edge('left', 'join'),
      edge('right', 'join'),
      edge('own', 'join'),
      edge('join', 'last'),
    ],
  ),
  chain('pays', [agentNode('desk', AGENT), wait('later', 24)]),
];

/** By tool: what it was called with. */
const performed: Record<string, unknown[]> = {};
const tool = (toolId: string, more: Partial<Tool>): Tool => ({
  ...{ toolId, description: toolId, idempotent: false, timeoutMs: 5_000, transport: 'native' },
  inputSchema: { type: 'object' },
  safetyTier: 'write',
  async call(input) {
    (performed[toolId] ??= []).push(input);
    return { by: toolId };
  },
  ...more,
});
const TOOLS = [
  tool('test:pay', {}),
  tool('test:play', { isSandbox: true }),
  tool('test:look', { safetyTier: 'read' }),
];
const AGENTS: ResolvedAgent[] = [
  {
    ...{ packName: 'local.rehearsals', packVersion: '1.0.0', systemPrompt: 'You decide.' },
    manifest: {
      ...{ agentId: AGENT, persona: 'desk', modelClass: 'general', systemPrompt: 'You decide.' },
      toolAllowlist: TOOLS.map(({ toolId }) => toolId),
    },
  },
];
const SCRIPTS = {
  [AGENT]: {
    turns: [
      { calls: TOOLS.map(({ toolId }) => ({ toolId, arguments: { order: 'A-1' } })) },
      { final: { decision: 'paid', confidence: 1 } },
    ],
  },
};
const BUILT_IN = { definitions: DEFINITIONS, agents: AGENTS, scripts: SCRIPTS, tools: TOOLS };

let host: TestHost;
let folder: string;
let temporal: { address: string; namespace: string };
/** Of the host that has rehearsals, and of one that has not. */
let options: TestHostOptions;
const started: string[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'openwop-rehearsals-'));
  const shared = await startTestTemporal();
  temporal = { address: shared.address, namespace: await shared.namespace() };
  const databaseUrl = await sharedDatabase();
  options = { builtIn: BUILT_IN, temporal, dataDir: join(folder, 'data') };
  if (databaseUrl !== undefined) options = { ...options, databaseUrl };
  host = await startTestHost({ ...options, rehearsals: true });
});
afterEach(async () => {
  const complete: string[] = [];
  for (const runId of started.splice(0)) {
    const { events, isComplete } = await readLog(host, runId);
    if (!isComplete) continue;
    expectLawful(events);
    complete.push(runId);
  }
  await checkInvariants(host, complete);
});
afterAll(async () => {
  await host?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function rehearse(workflowId: string, more: object = {}): Promise<string> {
  const runId = await host.startRun({ workflowId, rehearsal: true, ...more });
  started.push(runId);
  return runId;
}

interface Skipped {
  readonly status?: string;
  readonly error?: string;
  readonly details?: { readonly capability?: string; readonly parentRunId?: string };
}

const skip = (runId: string, body: object, key = '') =>
  host.api<Skipped>(`/v1/host/openwop-temporal/runs/${runId}:skip`, {
    body,
    headers: { 'idempotency-key': key },
  });

async function skipped(runId: string, body: object): Promise<void> {
  expect(await skip(runId, body)).toMatchObject({ status: 202, body: { status: 'skipping' } });
}

const log = async (runId: string): Promise<readonly RunEventDoc[]> =>
  (await readLog(host, runId)).events;

interface Told {
  /** Hours of the run's clock since `beganMs`. */
  readonly at: number;
  readonly event: string;
}

/** Nodes that ended, by the clock of their run. */
function story(events: readonly RunEventDoc[], beganMs?: number): Told[] {
  let nowMs = 0;
  let zeroMs = beganMs;
  return events.flatMap(({ type, nodeId, payload }): Told[] => {
    if (type === CLOCK_SET) nowMs = Date.parse((payload as { now: string }).now);
    zeroMs ??= nowMs || undefined;
    const isTold = type === 'node.completed' || type === 'node.failed';
    return isTold ? [{ at: (nowMs - (zeroMs ?? 0)) / HOUR_MS, event: nodeId ?? '' }] : [];
  });
}

const clockOf = async (runId: string) => (await host.waitFor(runId, () => true)).rehearsal;

describe('a rehearsal', () => {
  it('says what it is, stands, and passes days when they are skipped, in the order of its waits', async () => {
    const runId = await rehearse('ladder');
    const begun = await host.waitFor(runId, ({ rehearsal }) => rehearsal?.now !== undefined);
    expect(begun.rehearsal).toMatchObject({ skippedMs: 0 });
    await skipped(runId, { forMs: 3 * DAY_MS });
    const asking = await host.waitFor(runId, waiting);
    expect(story(await log(runId))).toEqual([
      { at: 24, event: 'day1' },
      { at: 24, event: 'remind1' },
      { at: 48, event: 'day2' },
      { at: 48, event: 'remind2' },
    ]);
    const nowMs = Date.parse(begun.rehearsal?.now ?? '') + 3 * DAY_MS;
    expect(asking.rehearsal).toEqual({
      now: new Date(nowMs).toISOString(),
      skippedMs: 3 * DAY_MS,
    });
    // It asked when two days were over, and a week counts from there.
    const { interrupt } = asking as { interrupt?: { deadline?: string } };
    expect(Date.parse(interrupt?.deadline ?? '') - nowMs).toBe(6 * DAY_MS);
    await skipped(runId, { to: 'next-deadline' });
    const failed = await host.waitFor(runId, ended);
    expect(failed.error?.code).toBe('interrupt_timeout');
    expect(story(await log(runId)).at(-1)).toEqual({ at: 9 * 24, event: 'ask' });
  });

  it('is marked in lists, without the deadlines of its own clock', async () => {
    const runId = await rehearse('asks');
    const ordinary = await host.startRun({ workflowId: 'asks' });
    for (const id of [runId, ordinary]) await host.waitFor(id, waiting);
    const { body } = await host.api<RunOverviewList>('/v1/host/openwop-temporal/runs?waiting=true');
    const rowOf = (id: string) => body.runs.find((run) => run.runId === id);
    expect(rowOf(runId)).toMatchObject({ rehearsal: true });
    expect(rowOf(runId)?.waiting[0]).not.toHaveProperty('deadline');
    expect(rowOf(ordinary)).not.toHaveProperty('rehearsal');
    expect(rowOf(ordinary)?.waiting[0]).toHaveProperty('deadline');
  });

  it('skips once under one key, and tells a key that is used for something else', async () => {
    const runId = await rehearse('asks');
    await host.waitFor(runId, waiting);
    const answers = [
      await skip(runId, { forMs: DAY_MS }, 'one'),
      await skip(runId, { forMs: DAY_MS }, 'one'),
    ];
    expect(answers.map(({ status }) => status)).toEqual([202, 202]);
    expect((await skip(runId, { forMs: HOUR_MS }, 'one')).body.error).toBe(
      'idempotency_key_mismatch',
    );
    expect((await clockOf(runId))?.skippedMs).toBe(DAY_MS);
  });

  it('refuses what is no skip, and none of its runs that are over or no rehearsals', async () => {
    const runId = await rehearse('asks');
    await host.waitFor(runId, waiting);
    for (const body of [
      {},
      { forMs: 0 },
      { forMs: -1 },
      { forMs: 1.5 },
      { forMs: 31_622_400_001 },
      { to: 'the end' },
      { forMs: 1, to: 'next-deadline' },
      { forMs: '3d' },
    ])
      expect((await skip(runId, body)).body.error, JSON.stringify(body)).toBe('validation_error');
    expect((await clockOf(runId))?.skippedMs).toBe(0);
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    await host.waitFor(runId, ended);
    expect(await skip(runId, { forMs: 1 })).toMatchObject({
      status: 409,
      body: { error: 'run_state_conflict' },
    });
    const ordinary = await host.startRun({ workflowId: 'asks' });
    await host.waitFor(ordinary, waiting);
    expect(await skip(ordinary, { forMs: 1 })).toMatchObject({
      status: 409,
      body: { error: 'not_a_rehearsal' },
    });
  });

  it('refuses while it is paused', async () => {
    const runId = await rehearse('asks');
    await host.waitFor(runId, waiting);
    await host.api(`/v1/runs/${runId}:pause`, { body: {} });
    await host.waitFor(runId, ({ status }) => status === 'paused');
    expect((await skip(runId, { forMs: 1 })).body).toMatchObject({ error: 'run_state_conflict' });
    await host.api(`/v1/runs/${runId}:resume`, { body: {} });
    await skipped(runId, { forMs: 1 });
  });
});

describe('runs below a rehearsal', () => {
  it('are rehearsals, and end with it what they wait for, all in one order', async () => {
    const runId = await rehearse('family');
    await childrenOf(host, runId, 2);
    await skipped(runId, { forMs: 10 * DAY_MS });
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const events = await log(runId);
    const beganMs = Date.parse(
      (events.find(({ type }) => type === CLOCK_SET)?.payload as { now: string }).now,
    );
    const own = story(events, beganMs);
    // right: 5 + 30; left: 20, and below it 5 + 30, and 1; then 4 of its own.
    expect(own.filter(({ event }) => event !== 's')).toEqual([
      { at: 22, event: 'own' },
      { at: 35, event: 'right' },
      { at: 56, event: 'left' },
      { at: 56, event: 'join' },
      { at: 60, event: 'last' },
    ]);
    const children = await childrenOf(host, runId, 2);
    started.push(...children);
    const stories = await Promise.all(children.map(async (id) => story(await log(id), beganMs)));
    expect(stories).toContainEqual([
      { at: 20, event: 'c' },
      { at: 55, event: 'below' },
      { at: 56, event: 'c2' },
    ]);
    expect(stories).toContainEqual([
      { at: 5, event: 'g' },
      { at: 35, event: 'g2' },
    ]);
  });

  it('are not skipped by themselves while the run above is open', async () => {
    const runId = await rehearse('family');
    const [below = ''] = await childrenOf(host, runId, 2);
    expect((await clockOf(below))?.now).toBeDefined();
    expect((await skip(below, { forMs: 1 })).body).toMatchObject({
      error: 'run_state_conflict',
      details: { parentRunId: runId },
    });
    await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    await host.waitFor(runId, ended);
  });
});

describe('effects in a rehearsal', () => {
  it('are not performed: a human says what would have come of them; what reads, and what is a sandbox, is', async () => {
    const runId = await rehearse('pays');
    const asking = await host.waitFor(runId, waiting);
    const { interrupt } = asking as { interrupt?: Record<string, unknown> };
    expect(interrupt).toMatchObject({
      artifactType: 'rehearsed-call',
      title: 'What would test:pay give?',
      actions: ['reject', 'edit-accept'],
    });
    await until(() => performed['test:play'] !== undefined, 'the others are performed');
    const value = { action: 'edit-accept', editedArtifactData: { by: 'a human' } };
    const address = `/v1/runs/${runId}/interrupts/desk`;
    expect((await host.api(address, { body: { resumeValue: value } })).status).toBe(200);
    await skipped(runId, { forMs: DAY_MS });
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    expect(Object.keys(performed).sort()).toEqual(['test:look', 'test:play']);
    const returned = (await log(runId)).filter(({ type }) => type === 'agent.toolReturned');
    expect(returned.map(({ payload }) => payload)).toContainEqual(
      expect.objectContaining({ toolName: 'test:pay', outcome: { by: 'a human' }, status: 'ok' }),
    );
  });
});

describe('forks of a rehearsal', () => {
  it('a replay states what it stated; a branch goes on by its clock', async () => {
    const source = await rehearse('ladder');
    await skipped(source, { to: 'next-deadline' });
    await skipped(source, { forMs: 1.5 * DAY_MS });
    await host.waitFor(source, waiting);
    await host.api(`/v1/runs/${source}/interrupts/ask`, {
      body: { resumeValue: { action: 'accept' } },
    });
    expect((await host.waitFor(source, ended)).status).toBe('completed');
    const events = await log(source);
    const fork = async (body: object) => {
      const answer = await host.api<{ runId: string }>(`/v1/runs/${source}:fork`, { body });
      expect(answer.status).toBe(201);
      started.push(answer.body.runId);
      return answer.body.runId;
    };
    const replay = await fork({ mode: 'replay', fromSeq: 0 });
    expect((await host.waitFor(replay, ended)).status).toBe('completed');
    const facts = (all: readonly RunEventDoc[], runId: string) =>
      all.map(({ type, nodeId, payload }) =>
        JSON.stringify([type, nodeId, payload]).replaceAll(runId, source),
      );
    expect(facts(await log(replay), replay)).toEqual(facts(events, source));

    const at = events.findIndex(({ type, nodeId }) => type === 'node.started' && nodeId === 'day2');
    const branch = await fork({ mode: 'branch', fromSeq: at + 1 });
    await host.waitFor(branch, ({ rehearsal }) => rehearsal?.skippedMs === DAY_MS);
    await skipped(branch, { to: 'next-deadline' });
    const asking = await host.waitFor(branch, waiting);
    expect(asking.rehearsal?.skippedMs).toBe(2 * DAY_MS);
    await skipped(branch, { to: 'next-deadline' });
    expect((await host.waitFor(branch, ended)).error?.code).toBe('interrupt_timeout');
    expect(story(await log(branch)).at(-1)).toEqual({ at: 9 * 24, event: 'ask' });
  });
});

/** Whom a run's clock was told to, and asked. */
async function spokenTo(runId: string): Promise<string[]> {
  const events = await newestHistory(host.temporal, runId);
  return events.flatMap(({ activityTaskScheduledEventAttributes: it }) => {
    if (it?.activityType?.name !== 'keepTime') return [];
    const text = Buffer.from(it.input?.payloads?.[0]?.data ?? []).toString();
    return [...(JSON.parse(text) as KeepTimeInput).children];
  });
}

describe(
  'a branch of a rehearsal that left while its clock moved',
  { timeout: patient(180_000) },
  () => {
    it('says nothing to runs below its source, and its clock never goes back', async () => {
      const source = await rehearse('family');
      await childrenOf(host, source, 2);
      await skipped(source, { forMs: 10 * DAY_MS });
      await host.waitFor(source, ended);
      const events = await log(source);
      const below = await childrenOf(host, source, 2);
      const stops = events.flatMap(({ type }, at) => (type === CLOCK_SET && at > 1 ? [at] : []));
      for (const at of stops.slice(0, 3)) {
        const { status, body } = await host.api<{ runId: string }>(`/v1/runs/${source}:fork`, {
          body: { mode: 'branch', fromSeq: at + 1 },
        });
        expect(status).toBe(201);
        const { runId } = body;
        started.push(runId);
        await until(async () => {
          const { status: now } = await host.waitFor(runId, () => true);
          if (now !== 'completed') await skip(runId, { forMs: 10 * DAY_MS });
          return now === 'completed';
        }, 'it has ended');
        const clock = (await log(runId)).flatMap(({ type, payload }) =>
          type === CLOCK_SET ? [Date.parse((payload as { now: string }).now)] : [],
        );
        expect(clock).toEqual([...clock].sort((a, b) => a - b));
        expect((await spokenTo(runId)).filter((id) => below.includes(id))).toEqual([]);
      }
    });
  },
);

it(
  'a kill -9 in the middle of a skip loses nothing of it',
  { timeout: patient(240_000) },
  async () => {
    const data = join(folder, 'killed');
    const definitions = join(folder, 'definitions');
    for (const each of DEFINITIONS.slice(0, 5)) await writeDefinition(definitions, each);
    const env = {
      ...{ OPENWOP_PORT: '0', OPENWOP_DATA_DIR: data, OPENWOP_CACHE_DIR: CACHE_DIR },
      ...{ OPENWOP_TEST_MODE: 'true', OPENWOP_FIXTURES_DIR: definitions },
      OPENWOP_API_KEY: 'owop_test_key_of_the_rehearsal',
    };
    const first = await spawnHost('start', env);
    const api = apiClient(first.url, env.OPENWOP_API_KEY);
    const runId = await api.startRun({ workflowId: 'family', rehearsal: true });
    await api.waitFor(runId, ({ rehearsal }) => rehearsal?.now !== undefined);
    const body = { forMs: 10 * DAY_MS };
    const address = `/v1/host/openwop-temporal/runs/${runId}:skip`;
    const answer = await api.api(address, { body, headers: { 'idempotency-key': 'k' } });
    expect(answer.status).toBe(202);
    await api.waitFor(runId, ({ rehearsal }) => (rehearsal?.skippedMs ?? 0) > 0);
    await takes(100);
    await first.kill('SIGKILL');
    const second = await spawnHost('start', env);
    try {
      const again = apiClient(second.url, env.OPENWOP_API_KEY);
      const repeated = await again.api(address, { body, headers: { 'idempotency-key': 'k' } });
      expect(repeated.status).toBe(202);
      expect((await again.waitFor(runId, ended)).status).toBe('completed');
      const { body: read } = await again.api<{ events: RunEventDoc[] }>(
        `/v1/runs/${runId}/events/poll?after=-1&limit=1000`,
      );
      expect(story(read.events).at(-1)).toEqual({ at: 60, event: 'last' });
    } finally {
      await second.kill('SIGTERM');
    }
  },
);

it('is in no cohort, where nobody would move its clock: passed over, and named where nothing else is there', async () => {
  const tags = ['in-no-cohort'];
  const runId = await rehearse('ladder', { tags });
  await host.waitFor(runId, ({ rehearsal }) => rehearsal?.now !== undefined);
  expect((await host.api(`/v1/runs/${runId}/cancel`, { body: {} })).status).toBe(200);
  await host.waitFor(runId, ({ status }) => status === 'cancelled');
  const begin = () =>
    host.api<{ members?: number }>('/v1/host/openwop-temporal/cohorts', {
      body: { select: { tag: 'in-no-cohort' } },
    });
  expect(await begin()).toMatchObject({
    status: 400,
    body: {
      error: 'validation_error',
      details: { reason: expect.stringContaining('rehearsals') as unknown },
    },
  });
  const real = await host.startRun({ workflowId: 'ladder', tags });
  await host.api(`/v1/runs/${real}/cancel`, { body: {} });
  await host.waitFor(real, ({ status }) => status === 'cancelled');
  const { status, body } = await begin();
  expect([status, body.members]).toEqual([201, 1]);
});

it('a host of others has no rehearsals: it starts none, forks none and skips in none, by name', async () => {
  const runId = await rehearse('ladder');
  await host.waitFor(runId, ({ rehearsal }) => rehearsal?.now !== undefined);
  expect(
    (await host.api<{ extensions: object }>('/.well-known/openwop')).body.extensions,
  ).toMatchObject({
    'openwop-temporal': {
      skipTime: 'POST /v1/host/openwop-temporal/runs/{runId}:skip',
      maxSkipMs: 31_622_400_000,
    },
  });
  await host.stop();
  host = await startTestHost(options);
  const refusal = {
    body: { error: 'capability_not_provided', details: { capability: 'rehearsals' } },
  };
  const body = { workflowId: 'ladder', rehearsal: true };
  expect(await host.api('/v1/runs', { body })).toMatchObject(refusal);
  expect(await skip(runId, { forMs: 1 })).toMatchObject(refusal);
  const fork = { mode: 'replay', fromSeq: 0 };
  expect(await host.api(`/v1/runs/${runId}:fork`, { body: fork })).toMatchObject(refusal);
  const { body: known } = await host.api<{ extensions: Record<string, object> }>(
    '/.well-known/openwop',
  );
  expect(known.extensions['openwop-temporal']).not.toHaveProperty('skipTime');
  // Silence is an ordinary run.
  await host.startRun({ workflowId: 'ladder', rehearsal: false });
});
