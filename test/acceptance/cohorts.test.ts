// Cohorts (architecture §6) on a real host: many past runs forked by one change, what each comes to, and that nothing is
// forked twice, asked or performed.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEncryption } from '../../src/adapters/temporal/codec.ts';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import { createHistoryReader } from '../../src/adapters/temporal/history.ts';
import { FULL_SERVER } from '../../src/adapters/temporal/server-traits.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import { ringOf } from '../../src/rules/key-ring.ts';
import type { Cohort } from '../../schemas/types.generated.ts';
import { validate } from '../../src/wire/validators.ts';
import { agentNode, chain, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';

const COHORTS = '/v1/host/openwop-temporal/cohorts';
const JUDGE = 'local.cohorts.judge';
const CLERK = 'local.cohorts.clerk';
const amount = { type: 'variable', variableName: 'amount' } as const;
const decision = { type: 'connection', nodeId: 'decide', outputKey: 'decision' } as const;
const variables = [{ name: 'amount', type: 'number' as const, defaultValue: 10 }];

/** An agent with a tool, whose decision goes to a human where it is a refund. */
const DESK = definition(
  'desk',
  [
    agentNode('decide', JUDGE, { inputs: { amount }, outputRole: 'primary' }),
    node('gate', 'core.approvalGate', { config: { title: 'Pay?' }, inputs: { decision } }),
    node('paid', 'core.noop'),
    node('declined', 'core.noop'),
  ],
  [
    edge('decide', 'gate', {
      condition: { type: 'equals', left: 'outputs.decision.refund', right: true },
    }),
    edge('decide', 'declined', {
      condition: { type: 'equals', left: 'outputs.decision.refund', right: false },
    }),
    edge('gate', 'paid'),
  ],
  { variables },
);
const PLAIN = chain('plain', [agentNode('write', CLERK)], { variables });
const FAMILY = chain('family', [
  node('below', 'core.subWorkflow', { config: { workflowId: 'plain' } }),
]);
const ALL = [DESK, PLAIN, FAMILY];

let host: TestHost;
let folder: string;
/** Past runs of the desk, newest first, by the tags `three` and `one`: of cohorts that leave them as they are. */
let three: string[];
let one: string;

type Status = { readonly status: string };
const ended = ({ status }: Status) => ['completed', 'failed', 'cancelled'].includes(status);
const waits = ({ status }: Status) => status.startsWith('waiting-');
const prompt = (text: string, agent = 'judge') => ({ agents: { [agent]: { systemPrompt: text } } });

async function writeAgents(to: string): Promise<void> {
  const decides = (refund: boolean, chunk: string) => ({
    ...{ chunks: [chunk], final: { decision: { refund }, confidence: 1 } },
  });
  await writeCaller(join(to, 'agents'), {
    ...{ agentId: JUDGE, toolAllowlist: ['core:clock'] },
    turns: [
      {
        cases: [
          {
            ...{ path: 'prompt.tools', equals: 'other' },
            turn: { calls: [{ toolId: 'core:clock', arguments: { other: true } }] },
          },
        ],
        calls: [{ toolId: 'core:clock', arguments: {} }],
      },
      {
        cases: [
          { path: 'prompt.words', equals: 'other', turn: decides(true, 'Otherwise.') },
          { path: 'prompt.rule', equals: 'strict', turn: decides(false, 'Strictly.') },
          { path: 'prompt.rule', equals: 'broken', turn: { raw: 'the moon' } },
          {
            ...{ path: 'prompt.rule', equals: 'lenient' },
            turn: { final: { decision: { refund: true, more: 1 }, confidence: 1 } },
          },
          {
            ...{ path: 'prompt.rule', equals: 'slow' },
            turn: { ...decides(true, 'Slowly. '), delayMsPerChunk: 60_000 },
          },
        ],
        ...decides(true, 'Kindly.'),
      },
    ],
  });
  await writeCaller(join(to, 'agents'), {
    ...{ agentId: CLERK, toolAllowlist: [] },
    turns: [decides(true, 'Done.')],
  });
  for (const each of ALL) await writeDefinition(join(to, 'definitions'), each);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-cohorts-'));
  await writeAgents(folder);
  host = await startTestHost({
    ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
  });
  three = await sources(3, { tags: ['three'] });
  [one = ''] = await sources(1, { tags: ['one'] });
});

afterAll(async () => {
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** So many runs of the desk, each with a yes. */
async function sources(count: number, more: JsonObject = {}): Promise<string[]> {
  const runs: string[] = [];
  for (let at = 0; at < count; at++) {
    const runId = await host.startRun({ workflowId: DESK.id, ...more });
    await host.waitFor(runId, waits);
    const body = { resumeValue: { action: 'accept' } };
    expect((await host.api(`/v1/runs/${runId}/interrupts/gate`, { body })).status).toBe(200);
    await host.waitFor(runId, ended);
    runs.push(runId);
  }
  return runs.reverse();
}

async function start(body: object, headers = {}): Promise<Cohort> {
  const answer = await host.api<Cohort>(COHORTS, { body, headers });
  expect([answer.status, answer.body]).toMatchObject([201, {}]);
  return answer.body;
}

async function read(cohortId: string, query = ''): Promise<Cohort> {
  const { status, body } = await host.api<Cohort>(`${COHORTS}/${cohortId}${query}`);
  expect(status).toBe(200);
  expect(validate.cohort(body)).toMatchObject({ ok: true });
  return body;
}

async function report(cohortId: string): Promise<Cohort> {
  let last: Cohort | undefined;
  await until(
    async () => (last = await read(cohortId)).endedAt !== undefined,
    `${cohortId} has ended`,
    { progress: () => last?.settled },
  );
  return last as Cohort;
}

/** As an erasure does: its row and its log are not there any more. */
async function forget(runId: string): Promise<void> {
  const find = host.stores.runs.find.bind(host.stores.runs);
  Object.assign(host.stores.runs, {
    find: async (tenant: string, id: string) => (id === runId ? undefined : find(tenant, id)),
  });
}

describe('a cohort', () => {
  it('replays every run by the code of this build where nothing is changed', async () => {
    const { cohortId, mode } = await start({ select: { tag: 'three' } });
    expect(mode).toBe('replay');
    const { state, members, settled, totals, results = [] } = await report(cohortId);
    expect({ state, members, settled, same: totals.same }).toEqual({
      ...{ state: 'completed', members: 3, settled: 3, same: 3 },
    });
    expect(results.map(({ sourceRunId }) => sourceRunId)).toEqual(three);
  });

  it('its forks, and the child runs below them, stand in its own list alone', async () => {
    const source = await host.startRun({ workflowId: FAMILY.id });
    await host.waitFor(source, ended);
    const listed = async (query = ''): Promise<string[]> => {
      const { body } = await host.api<{ runs: { runId: string }[] }>(`/v1/runs?limit=100${query}`);
      return body.runs.map(({ runId }) => runId);
    };
    const before = await listed();
    const { cohortId } = await start({ select: { workflowId: FAMILY.id } });
    const { totals, results: [member] = [] } = await report(cohortId);
    expect(totals).toMatchObject({ same: 1 });
    const { tenant, runId } = host.stores.runs.ref('default', member?.forkRunId ?? '');
    const below = await host.stores.families.descendants(tenant, runId, 10);
    expect(below).toHaveLength(1);
    expect((await listed()).sort()).toEqual(before.sort());
    const own = [runId, ...below.map((child) => child.runId)];
    expect((await listed(`&cohortId=${cohortId}`)).sort()).toEqual(own.sort());
  });

  it('another prompt changes what comes out: by paths, with the first difference and its cause', async () => {
    const { cohortId } = await start({
      ...{ select: { workflowId: DESK.id, tag: 'one' }, change: prompt('rule: strict') },
    });
    const { totals, before, after, results: [member] = [] } = await report(cohortId);
    expect(totals).toMatchObject({ 'outcome-changed': 1 });
    expect(member).toMatchObject({
      ...{ position: 0, sourceRunId: one, outcome: 'outcome-changed' },
      before: { status: 'completed' },
      after: { status: 'completed' },
      divergence: { cause: 'agents', overlay: 'agents', nodeId: 'decide' },
    });
    expect(member?.changes).toContainEqual({
      ...{ nodeId: 'decide', visit: 1, pointer: '/decisions/0/decision/refund' },
      ...{ before: 'true', after: 'false' },
    });
    expect(member?.changes).toContainEqual({
      ...{ nodeId: 'gate', visit: 1, pointer: '/status' },
      ...{ before: '"completed"', after: '"skipped"' },
    });
    expect([before.inputTokens > 0, after.inputTokens > 0]).toEqual([true, true]);
    await checkInvariants(host, member?.forkRunId ?? '');
  });

  it.each([
    ['the same', 'rule: none', 'same', {}],
    ['other words', 'words: other', 'diverged', {}],
    ['a run that fails', 'rule: broken', 'failed', { error: { code: 'agent_output_invalid' } }],
    [
      'a question that nobody answered',
      'rule: lenient',
      'asks',
      { asks: { nodeId: 'gate', kind: 'approval' } },
    ],
    [
      'a call that the source did not make',
      'tools: other',
      'source-missing',
      { error: { code: 'replay_source_missing' } },
    ],
  ] as const)('of a prompt by which it comes to %s', async (_what, text, outcome, more) => {
    const { cohortId } = await start({ select: { tag: 'one' }, change: prompt(text) });
    const { results: [member] = [] } = await report(cohortId);
    expect(member).toMatchObject({ outcome, ...more });
    const { body } = await host.api<Status & { fork: JsonObject }>(`/v1/runs/${member?.forkRunId}`);
    expect(ended(body)).toBe(true);
    expect(body.fork).toMatchObject({ cohortId });
  });

  it('forks nobody twice, performs nothing, and drowns no list', async () => {
    const listed = async (query = '') =>
      (await host.api<{ runs: { runId: string }[] }>(`/v1/runs?limit=200${query}`)).body.runs;
    const before = (await listed()).map(({ runId }) => runId);
    const { cohortId } = await start({ select: { tag: 'three' }, change: prompt('words: other') });
    const { results = [] } = await report(cohortId);
    const forks = results.map(({ forkRunId }) => forkRunId).sort();
    expect(results.map(({ sourceRunId }) => sourceRunId)).toEqual(three);
    expect((await listed()).map(({ runId }) => runId)).toEqual(before);
    expect((await listed('&status=completed')).map(({ runId }) => runId)).not.toContain(forks[0]);
    const own = await listed(`&cohortId=${cohortId}`);
    expect(own.map(({ runId }) => runId).sort()).toEqual(forks);
    const { body } = await host.api<{ sessions: { sessionId: string }[] }>(
      '/v1/host/openwop-temporal/sessions?limit=200',
    );
    expect(body.sessions.map(({ sessionId }) => sessionId)).not.toContain(cohortId);
    // The forks are no past runs of anybody.
    const again = await start({ select: { tag: 'three' } });
    expect(again.members).toBe(3);
    await report(again.cohortId);
  });

  it('one key begins one cohort, and another body under it is refused', async () => {
    const body = { select: { tag: 'one' }, change: prompt('rule: none') };
    const headers = { 'idempotency-key': 'one-cohort' };
    const [first, second] = await Promise.all([
      host.api<Cohort>(COHORTS, { body, headers }),
      host.api<Cohort>(COHORTS, { body, headers }),
    ]);
    const third = await start(body, headers);
    const told = [first, second].filter(({ status }) => status === 201);
    expect(told.length).toBeGreaterThan(0);
    for (const { body } of told) expect(body.cohortId).toBe(third.cohortId);
    const other = await host.api(COHORTS, { body: { ...body, parallel: 2 }, headers });
    expect([other.status, other.body.error]).toEqual([409, 'idempotency_key_mismatch']);
    await report(third.cohortId);
  });

  it('goes on over the border of a segment', async () => {
    const facade = await startTestHost({
      ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
      facade: { forceContinueAsNewAfter: 1 },
    });
    try {
      const own: string[] = [];
      for (let at = 0; at < 3; at++) own.push(await facade.startRun({ workflowId: PLAIN.id }));
      for (const runId of own) await facade.waitFor(runId, ended);
      const body = { select: { workflowId: PLAIN.id } };
      const { body: made } = await facade.api<Cohort>(COHORTS, { body });
      const path = `${COHORTS}/${made.cohortId}`;
      const read = async () => (await facade.api<Cohort>(path)).body;
      await until(async () => (await read()).endedAt !== undefined, 'the cohort has ended');
      expect(await read()).toMatchObject({ state: 'completed', totals: { same: 3 } });
    } finally {
      await facade.stop();
    }
  });

  it('two at once do not disturb each other, and one is cancelled: its open forks are, too', async () => {
    const select = { tag: 'three' };
    const slow = await start({ select, change: prompt('rule: slow'), parallel: 2 });
    const other = await start({ select, change: prompt('rule: strict') });
    expect((await report(other.cohortId)).totals).toMatchObject({ 'outcome-changed': 3 });
    await until(
      async () => (await read(slow.cohortId)).results?.[1]?.forkRunId !== undefined,
      'two forks are under way',
    );
    const cancelled = await host.api<Cohort>(`${COHORTS}/${slow.cohortId}/cancel`, { body: {} });
    expect([cancelled.status, cancelled.body.state]).toEqual([200, 'cancelling']);
    const { state, totals, results = [] } = await report(slow.cohortId);
    expect([state, totals['not-finished']]).toEqual(['cancelled', 3]);
    expect(results.map(({ forkRunId }) => forkRunId !== undefined)).toEqual([true, true, false]);
    for (const { forkRunId } of results.slice(0, 2))
      expect((await host.api<Status>(`/v1/runs/${forkRunId}`)).body.status).toBe('cancelled');
    for (const { error } of results)
      expect(error).toEqual({ code: 'cancelled', message: 'The cohort ended before it.' });
    const again = await host.api<Cohort>(`${COHORTS}/${slow.cohortId}/cancel`, { body: {} });
    expect(again.body.state).toBe('cancelled');
  });

  it('a member has a time, behind which its fork is cancelled', async () => {
    const { cohortId } = await start({
      ...{ select: { tag: 'one' }, change: prompt('rule: slow'), memberTimeoutMs: 1_000 },
    });
    const { state, results: [member] = [] } = await report(cohortId);
    expect([state, member?.outcome, member?.after?.status]).toEqual([
      ...['completed', 'not-finished', 'cancelled'],
    ]);
    expect(member?.error).toMatchObject({ code: 'cancelled' });
  });

  it.each([
    ['no run is like that', { select: { workflowId: 'nobody' } }, 400, 'validation_error'],
    ['above the bound', { select: { last: 1_001 } }, 400, 'validation_error'],
    ['below it', { select: { last: 0 } }, 400, 'validation_error'],
    ['no selection', {}, 400, 'validation_error'],
    ['a time that is none', { select: { from: 'yesterday' } }, 400, 'validation_error'],
    ['an agent that nobody knows', { change: prompt('x', 'nobody') }, 404, 'agent_not_found'],
    ['an empty prompt', { change: prompt('') }, 400, 'validation_error'],
    [
      'a version that is not here',
      { change: { agents: { judge: { packVersion: '99.0.0' } } } },
      404,
      'agent_not_found',
    ],
    [
      'a configuration out of range',
      { change: { configurable: { temperature: 9 } } },
      400,
      'validation_error',
    ],
    ['a change that is none', { change: { another: 1 } }, 400, 'validation_error'],
  ] as const)('is refused: %s', async (_what, asked, status, error) => {
    const body = { ...('change' in asked ? { select: { last: 1 } } : {}), ...asked };
    const answer = await host.api(COHORTS, { body });
    expect([answer.status, answer.body.error]).toEqual([status, error]);
  });

  it('on the pages of who is signed in: the list, its report, and a form that cancels it', async () => {
    const change = prompt('rule: slow');
    const { cohortId } = await start({ select: { tag: 'one' }, change });
    const signedIn = await fetch(`${host.url}/pages/sign-in`, {
      ...{ method: 'POST', redirect: 'manual', headers: { origin: host.url } },
      body: new URLSearchParams({ key: host.apiKey }),
    });
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const at = `${host.url}/pages/cohorts`;
    const shown = async (path = '') =>
      (await fetch(`${at}${path}`, { headers: { cookie } })).text();
    expect(await shown()).toContain(`/pages/cohorts/${cohortId}`);
    const page = await shown(`/${cohortId}`);
    const csrf = /name="csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';
    const cancel = (token: string) =>
      fetch(`${at}/${cohortId}/cancel`, {
        ...{ method: 'POST', redirect: 'manual', headers: { cookie, origin: host.url } },
        body: new URLSearchParams({ csrf: token }),
      });
    expect((await cancel('another')).status).toBe(403);
    expect((await cancel(csrf)).status).toBe(303);
    expect((await report(cohortId)).state).toBe('cancelled');
    expect(await shown(`/${cohortId}?outcome=not-finished`)).toContain('Not finished');
    const stranger = await fetch(`${at}/${cohortId}`, { redirect: 'manual' });
    expect(await stranger.text()).not.toContain('Not finished');
  });

  it('whose workflow somebody terminated in Temporal ends when it is cancelled, and says why', async () => {
    const asked = { select: { tag: 'three' }, change: prompt('rule: slow'), parallel: 1 };
    const { cohortId } = await start(asked);
    await until(
      async () =>
        (await read(cohortId)).results?.some(({ forkRunId }) => forkRunId !== undefined) ?? false,
      'one is forked',
    );
    const connection = connectTemporal(host.temporal);
    const { workflow } = new Client({ connection, namespace: host.temporal.namespace });
    await workflow.getHandle(cohortId).terminate('by a test');
    await connection.close();
    const { body } = await host.api<Cohort>(`${COHORTS}/${cohortId}/cancel`, { body: {} });
    expect(body).toMatchObject({ state: 'cancelled', totals: { 'not-finished': 3 } });
    const { results = [] } = await read(cohortId);
    const [made] = results.filter(({ forkRunId }) => forkRunId !== undefined);
    await host.waitFor(made?.forkRunId ?? '', ({ status }) => status === 'cancelled');
    for (const { error } of results) expect(error?.code).toMatch(/^(run_terminated|cancelled)$/);
  });

  it('a list tells a long change by its beginning, and the cohort itself all of it', async () => {
    const change = {
      agents: { judge: { systemPrompt: `rule: kind ${'p'.repeat(60_000)}` } },
      configurable: { note: 'n'.repeat(5_000), short: 1 },
    };
    const { cohortId } = await start({ select: { tag: 'one' }, change });
    const { body, text } = await host.api<{ cohorts: Cohort[] }>(`${COHORTS}?limit=50`);
    const listed = body.cohorts.find((it) => it.cohortId === cohortId)?.change;
    const cut = (what: string) => ({
      ends: what.endsWith('…'),
      length: what.length,
    });
    expect(cut(listed?.agents?.judge?.systemPrompt ?? '')).toEqual({ ends: true, length: 200 });
    expect(listed?.configurable).toMatchObject({ short: 1 });
    expect(cut(String(listed?.configurable?.note))).toEqual({ ends: true, length: 200 });
    expect(text.length).toBeLessThan(200_000);
    expect((await host.api<Cohort>(`${COHORTS}/${cohortId}`)).body.change).toEqual(change);
  });

  it('knows no cohort of such a name', async () => {
    for (const path of ['cohort-x', `cohort-${'0'.repeat(27)}`])
      expect((await host.api(`${COHORTS}/${path}`)).status).toBe(404);
  });

  // [I75]
  it('is no run: neither swept, rebuilt nor listed', async () => {
    const { cohortId } = await start({ select: { tag: 'one' } });
    const { results: [member] = [] } = await report(cohortId);
    const { temporal } = host;
    const connection = connectTemporal(temporal);
    const reader = createHistoryReader({
      ...{
        connection,
        namespace: temporal.namespace,
        codec: createEncryption({ ring: ringOf([]) }),
        traits: FULL_SERVER,
      },
    });
    const closed = async () => (await reader.closedSince(0)).runIds;
    await until(async () => {
      const { status } = await new Client({ connection, namespace: temporal.namespace }).workflow
        .getHandle(cohortId)
        .describe();
      return status.name === 'COMPLETED' && (await closed()).includes(member?.forkRunId ?? '');
    }, 'both are told as closed');
    expect(await closed()).not.toContain(cohortId);
    await connection.close();
    expect(await host.stores.runs.locate(cohortId)).toBeUndefined();
    expect((await host.api(`/v1/runs/${cohortId}`)).status).toBe(404);
    expect(host.logs.filter((line) => line.includes(cohortId))).toEqual([]);
  });

  it('another model', async () => {
    const configurable = { 'ai.provider': 'scripted', 'ai.model': 'another' };
    const { cohortId } = await start({ select: { tag: 'one' }, change: { configurable } });
    const { results: [member] = [] } = await report(cohortId);
    expect(member).toMatchObject({ sourceRunId: one, outcome: 'same' });
    const { body } = await host.api<Record<string, Record<string, string>>>(
      `/v1/runs/${member?.forkRunId}`,
    );
    expect(body.configurable).toMatchObject({ ai: { model: 'another' } });
  });

  it('a source that is gone is named, and the others go on', async () => {
    const runs = await sources(2, { tags: ['gone'] });
    const { body } = await host.api<Cohort>(COHORTS, {
      body: { select: { tag: 'gone' }, change: prompt('rule: slow'), parallel: 1 },
    });
    // The second waits for the first, which is slow: it goes meanwhile.
    await until(
      async () => (await read(body.cohortId)).results?.[0]?.forkRunId !== undefined,
      'the first is forked',
    );
    await forget(runs[1] ?? '');
    const fork = (await read(body.cohortId)).results?.[0]?.forkRunId ?? '';
    await host.api(`/v1/runs/${fork}/cancel`, { body: {} });
    const { results = [], state } = await report(body.cohortId);
    expect(state).toBe('completed');
    expect(results[1]).toMatchObject({
      ...{ outcome: 'source-missing', error: { code: 'run_not_found' } },
    });
  });
});
