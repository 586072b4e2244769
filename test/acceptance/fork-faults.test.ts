// Forks where it is hard (architecture §6), on a real host: sources that were ended from outside, streams within streams, what
// forks of overlaid branches go by, and overlays that no run could follow.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectTemporal } from '../../src/adapters/temporal/connection.ts';
import type { JsonObject } from '../../src/rules/json.ts';
import type { LogRow } from '../../src/ports/log.ts';
import { agentNode, chain, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { runRef } from '../support/run-ref.ts';

const AGENT = 'local.faults.a';
const SLOW = 'local.faults.slow';
const gate = (config: object = {}) =>
  node('gate', 'core.approvalGate', { config: { title: 'Ok?', ...config } });
const LATE = chain('late', [
  node('delay', 'core.delay', { config: { ms: 2_000 } }),
  agentNode('think', AGENT),
]);
const TWICE = chain('twice', [agentNode('one', AGENT), gate(), agentNode('two', AGENT)]);
const QUORUM = chain('quorum', [gate({ requiredApprovals: 2 }), node('end', 'core.noop')]);
const TALK = chain('talk', [
  node('talk', 'core.conversationGate', { config: {} }),
  node('end', 'core.noop'),
]);
const MOCK = chain('conformance-fork-mock', [
  node('mock', 'core.conformance.mock-agent', {
    config: { agentId: 'mocky', mockReasoning: { summary: 's', streamChunks: ['one ', 'two'] } },
  }),
]);
const PLAIN = chain('plain', [node('end', 'core.noop'), gate()]);
const STREAM = chain('stream', [agentNode('slow', SLOW)]);
const CHATTY = chain('chatty', [agentNode('one', AGENT)]);
const ALL = [LATE, TWICE, QUORUM, TALK, MOCK, PLAIN, STREAM, CHATTY];

let host: TestHost;
let folder: string;

type Status = { readonly status: string };
const ended = ({ status }: Status) => ['completed', 'failed', 'cancelled'].includes(status);
const waits = ({ status }: Status) => status.startsWith('waiting-');
const runs = ({ status }: Status) => status === 'running';
const rowsOf = (runId: string) => host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });
const types = async (runId: string) => (await rowsOf(runId)).map(({ type }) => type);
const payloads = (rows: readonly LogRow[], type: string) =>
  rows.filter((row) => row.type === type).map(({ payload }) => JSON.parse(payload) as JsonObject);
const ask = (from: string, body: object) =>
  host.api<{ runId: string; error: string }>(`/v1/runs/${from}:fork`, { body });
const say = (runId: string, resumeValue: object, nodeId = 'gate') =>
  host.api(`/v1/runs/${runId}/interrupts/${nodeId}`, { body: { resumeValue } });
const stateOf = async (runId: string) => (await host.api<JsonObject>(`/v1/runs/${runId}`)).body;

async function fork(from: string, body: object): Promise<string> {
  const answer = await ask(from, body);
  expect([answer.status, answer.body]).toMatchObject([201, {}]);
  return answer.body.runId;
}

/** To its end, with a yes to all that is asked. */
async function endOf(runId: string): Promise<readonly LogRow[]> {
  if (waits(await host.waitFor(runId, (run) => waits(run) || ended(run))))
    await say(runId, { action: 'accept' });
  await host.waitFor(runId, ended);
  await checkInvariants(host, runId);
  return rowsOf(runId);
}

async function terminate(runId: string): Promise<void> {
  const connection = connectTemporal(host.temporal);
  const { namespace } = host.temporal;
  await new Client({ connection, namespace }).workflow.getHandle(runId).terminate('by a test');
  await connection.close();
  await host.waitFor(runId, ended);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-fork-faults-'));
  const final = { decision: { ok: true }, confidence: 1 };
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: AGENT, toolAllowlist: ['core:clock'] },
    turns: [{ chunks: ['Hm. '], final }],
  });
  const chunks = Array.from({ length: 40 }, (_, index) => `w${index} `);
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: SLOW, toolAllowlist: [] },
    turns: [{ chunks, delayMsPerChunk: 300, final }],
  });
  for (const each of ALL) await writeDefinition(join(folder, 'definitions'), each);
  host = await startTestHost({
    ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
    env: { OPENWOP_TEST_MODE: 'true' },
  });
});

afterAll(async () => {
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('sources that were ended from outside', () => {
  it.each([0, 1])(
    'a branch at the end but %i tells one story: it lives before that end',
    async (but) => {
      const source = await host.startRun({ workflowId: LATE.id });
      await host.waitFor(source, runs);
      await terminate(source);
      const { length } = await rowsOf(source);
      const rows = await endOf(await fork(source, { mode: 'branch', fromSeq: length - but }));
      const ofDelay = rows.filter(
        ({ nodeId, type }) => nodeId === 'delay' && type !== 'node.started',
      );
      expect(ofDelay.map(({ type }) => type)).toEqual(['node.completed']);
      expect(rows.at(-1)?.type).toBe('run.completed');
    },
  );

  it('a replay has no record of what would have come', async () => {
    const source = await host.startRun({ workflowId: LATE.id });
    await host.waitFor(source, runs);
    await terminate(source);
    const rows = await endOf(await fork(source, { mode: 'replay', fromSeq: 0 }));
    expect(payloads(rows, 'run.failed')).toMatchObject([
      { error: { code: 'replay_source_missing' } },
    ]);
  });

  it('a replay of a run that is paused ends: nobody lets it go on', async () => {
    const source = await host.startRun({ workflowId: LATE.id });
    await host.waitFor(source, runs);
    await host.api(`/v1/runs/${source}:pause`, { body: { drainPolicy: 'immediate' } });
    await host.waitFor(source, ({ status }) => status === 'paused');
    const { status, error } = await host.waitFor(
      await fork(source, { mode: 'replay', fromSeq: 0 }),
      ended,
    );
    expect([status, error?.code]).toEqual(['failed', 'replay_source_missing']);
  });
});

describe('forks of forks', () => {
  it('within streams of forks within streams: each is closed once', async () => {
    const inStream = async (runId: string): Promise<number> => {
      await host.waitFor(runId, runs);
      await expect.poll(async () => (await types(runId)).at(-1)).toBe('agent.reasoning.delta');
      return (await rowsOf(runId)).length;
    };
    const source = await host.startRun({ workflowId: STREAM.id });
    let last = source;
    for (let generation = 0; generation < 3; generation++)
      last = await fork(last, { mode: 'branch', fromSeq: await inStream(last) });
    await inStream(last);
    for (const runId of [last, source]) await host.api(`/v1/runs/${runId}/cancel`, { body: {} });
    await host.waitFor(last, ended);
    await checkInvariants(host, last);
    expect((await rowsOf(last)).at(-1)?.type).toBe('run.cancelled');
  });

  it.each([
    ['another temperature', { configurable: { temperature: 0.5 } }, 'behind a replay'],
    ['another prompt', { agents: { [AGENT]: { systemPrompt: 'Else.' } } }, 'at once'],
    ['nothing', {}, 'behind a replay'],
  ])('go by what their source went by: %s', async (_of, runOptionsOverlay, where) => {
    const source = await host.startRun({ workflowId: TWICE.id });
    await host.waitFor(source, waits);
    const one = await fork(source, {
      ...{ mode: 'branch', fromSeq: (await types(source)).indexOf('agent.reasoned') },
      runOptionsOverlay: {
        configurable: {
          ...{ 'ai.provider': 'scripted', 'ai.model': 'another', escalationThreshold: 0.3 },
        },
      },
    });
    await endOf(one);
    const fromSeq = (await types(one)).indexOf('interrupt.resolved');
    // A replay between them changes nothing of it.
    const replay = { mode: 'replay', fromSeq: (await types(one)).length };
    const of = where === 'at once' ? one : await fork(one, replay);
    await endOf(of);
    const two = await fork(of, { mode: 'branch', fromSeq, runOptionsOverlay });
    const rows = await endOf(two);
    expect(payloads(rows, 'provider.usage').at(-1)?.model).toBe('another');
    expect((await stateOf(two)).configurable).toMatchObject({
      ...{ ai: { model: 'another' }, escalationThreshold: 0.3 },
    });
  });

  it('replays of a run that a message started say the same, and name themselves', async () => {
    const sessionId = 'session-of-forks';
    await host.waitFor(await host.startRun({ workflowId: CHATTY.id, sessionId }), ended);
    const sent = await host.api<{ runId: string }>(
      `/v1/host/openwop-temporal/sessions/${sessionId}/messages`,
      { body: { content: `@${AGENT} hello` } },
    );
    const source = sent.body.runId;
    await host.waitFor(source, ended);
    const said: string[] = [];
    for (const fromSeq of [0, (await rowsOf(source)).length]) {
      const runId = await fork(source, { mode: 'replay', fromSeq });
      const rows = await endOf(runId);
      expect(JSON.stringify(rows)).not.toContain(source);
      said.push(JSON.stringify(payloads(rows, 'channel.written')).replaceAll(runId, 'it'));
    }
    expect(said[0]).toBe(said[1]);
  });
});

describe('overlays', () => {
  it('reasoningVerbosity counts for the step that is begun again', async () => {
    const source = await host.startRun({ workflowId: CHATTY.id });
    await host.waitFor(source, ended);
    const fromSeq = (await types(source)).indexOf('agent.reasoning.delta');
    const runOptionsOverlay = { configurable: { reasoningVerbosity: 'off' } };
    const rows = await endOf(await fork(source, { mode: 'branch', fromSeq, runOptionsOverlay }));
    expect(rows.slice(fromSeq).map(({ type }) => type)).not.toContain('agent.reasoning.delta');
  });

  it('a credential stands nowhere', async () => {
    const source = await host.startRun({ workflowId: PLAIN.id });
    await host.waitFor(source, waits);
    for (const configurable of [
      { 'ai.credentialRef': 'cred-ref-77' },
      { ai: { credentialRef: 'cred-ref-77' } },
    ]) {
      const asked = { mode: 'branch', fromSeq: 0, runOptionsOverlay: { configurable } };
      const { status, body } = await ask(source, asked);
      if (status === 201)
        expect(JSON.stringify(await stateOf(body.runId))).not.toContain('cred-ref-77');
    }
  });

  it.each([
    [
      'a limit of the run behind its start',
      TWICE.id,
      'interrupt.requested',
      { configurable: { runTimeoutMs: 2_000 } },
      400,
    ],
    [
      'a configuration that is too large',
      TWICE.id,
      'run.started',
      { configurable: { pad: 'x'.repeat(40_000) } },
      413,
    ],
    ['the vote that made a quorum', QUORUM.id, 'interrupt.resolved', { action: 'accept' }, 400],
    ['what closed a conversation', TALK.id, 'interrupt.resolved', { operation: 'close' }, 400],
    ['the text of a scripted agent', MOCK.id, 'agent.reasoned', 'three', 400],
  ])('what no run could follow is refused: %s', async (_what, workflowId, type, asked, status) => {
    const source = await host.startRun({ workflowId });
    if (workflowId !== MOCK.id) await host.waitFor(source, waits);
    if (workflowId === QUORUM.id)
      for (const voter of ['a', 'b']) await say(source, { action: 'accept', voter });
    if (workflowId === TALK.id) await say(source, { operation: 'close', outcome: 'yes' }, 'talk');
    if (workflowId !== TWICE.id) await host.waitFor(source, ended);
    const fromSeq = (await types(source)).indexOf(type);
    const isPart = typeof asked === 'object' && 'configurable' in asked;
    const overlay = isPart ? asked : { answer: { seq: fromSeq, value: asked } };
    const refused = await ask(source, { mode: 'branch', fromSeq, runOptionsOverlay: overlay });
    expect([refused.status, refused.body.error]).toEqual([
      status,
      status === 413 ? 'payload_too_large' : 'validation_error',
    ]);
  });
});
