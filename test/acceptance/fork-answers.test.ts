// Branches that go by what people answered (replay.md §Modes, `answers: recorded`), on a real host: the same question gets
// the same answer, and any other waits. Silence is no answer.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import type { LogRow } from '../../src/ports/log.ts';
import { agentNode, chain, node } from '../support/definitions.ts';
import { startTestHost, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { runRef } from '../support/run-ref.ts';

const AGENT = 'local.answers.judge';
const decided = { type: 'connection', nodeId: 'judge', outputKey: 'decision' } as const;
const gate = (config: JsonObject = {}) =>
  node('gate', 'core.approvalGate', { config: { title: 'Shall it?', ...config } });
/** What the agent decided is part of what is asked. */
const JUDGED = chain('judged', [
  agentNode('judge', AGENT),
  node('gate', 'core.approvalGate', { config: {}, inputs: { decided } }),
  node('end', 'core.noop'),
]);
const QUORUM = chain('quorum', [
  gate({ requiredApprovals: 2, actions: ['accept', 'reject', 'ask'] }),
  node('end', 'core.noop'),
]);
const HURRIED = chain('hurried', [gate({ timeoutMs: 500 }), node('end', 'core.noop')]);
const TALK = chain('talk', [
  node('talk', 'core.conversationGate', { config: {} }),
  node('end', 'core.noop'),
]);
const ALL = [JUDGED, QUORUM, HURRIED, TALK];

let host: TestHost;
let folder: string;

type Status = { readonly status: string };
const ended = ({ status }: Status) => ['completed', 'failed', 'cancelled'].includes(status);
const waits = ({ status }: Status) => status.startsWith('waiting-');
const rowsOf = (runId: string) => host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });
const payloads = (rows: readonly LogRow[], type: string) =>
  rows.filter((row) => row.type === type).map(({ payload }) => JSON.parse(payload) as JsonObject);
const say = (runId: string, resumeValue: object, nodeId = 'gate') =>
  host.api(`/v1/runs/${runId}/interrupts/${nodeId}`, { body: { resumeValue } });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-answers-'));
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: AGENT, toolAllowlist: [] },
    turns: [
      {
        cases: [
          {
            ...{ path: 'prompt.rule', equals: 'strict' },
            turn: { final: { decision: { refund: false }, confidence: 1 } },
          },
        ],
        final: { decision: { refund: true }, confidence: 1 },
      },
    ],
  });
  for (const one of ALL) await writeDefinition(join(folder, 'definitions'), one);
  host = await startTestHost({
    ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
    env: { OPENWOP_TEST_SEAM_ENABLED: 'true' },
  });
});

afterAll(async () => {
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function source(workflowId: string, ...answers: readonly object[]): Promise<string> {
  const runId = await host.startRun({ workflowId });
  // A question that nobody answers may be over before anybody sees it.
  if (answers.length > 0) await host.waitFor(runId, waits);
  const nodeId = workflowId === TALK.id ? 'talk' : 'gate';
  for (const answer of answers) expect((await say(runId, answer, nodeId)).status).toBe(200);
  await host.waitFor(runId, ended);
  return runId;
}

async function branch(of: string, fromSeq: number, overlay: object = {}): Promise<string> {
  const runOptionsOverlay = { answers: 'recorded', ...overlay };
  const { status, body } = await host.api<{ runId: string }>(`/v1/runs/${of}:fork`, {
    body: { mode: 'branch', fromSeq, runOptionsOverlay },
  });
  expect([status, body]).toMatchObject([201, { sourceRunId: of }]);
  return body.runId;
}

/** To its end, which nobody helps to. */
async function endOf(runId: string): Promise<readonly LogRow[]> {
  await host.waitFor(runId, ended);
  await checkInvariants(host, runId);
  return rowsOf(runId);
}

/** Places before which the answer is not given yet: the first, those around the question, and the last. */
async function before(runId: string, type: string): Promise<Iterable<number>> {
  const rows = await rowsOf(runId);
  const at = rows.findIndex((row) => row.type === type);
  if (process.env.OPENWOP_FORKED_TREES === 'whole') return Array.from({ length: at + 1 }).keys();
  const suspended = rows.findIndex((row) => row.type === 'node.suspended');
  expect([suspended > 0, suspended < at]).toEqual([true, true]);
  return new Set([0, suspended, suspended + 1, at]);
}

describe('replay.md §Modes: a branch goes by what people answered', () => {
  it('from each place: before the question, in the middle of it, and while it stands', async () => {
    const runId = await source(JUDGED.id, { action: 'accept', feedback: 'Fine.' });
    for (const fromSeq of await before(runId, 'interrupt.resolved')) {
      const fork = await branch(runId, fromSeq);
      const rows = await endOf(fork);
      expect(payloads(rows, 'interrupt.resolved')).toMatchObject([
        { resumeValue: { action: 'accept', feedback: 'Fine.' } },
      ]);
      expect(payloads(rows, 'interrupt.resolved')).toEqual(
        payloads(await rowsOf(runId), 'interrupt.resolved'),
      );
      expect(rows.at(-1)?.type).toBe('run.completed');
    }
  });

  it('a no stays a no', async () => {
    const runId = await source(JUDGED.id, { action: 'reject' });
    const rows = await endOf(await branch(runId, 0));
    expect(payloads(rows, 'approval.received')).toMatchObject([{ action: 'reject' }]);
    expect(rows.at(-1)?.type).toBe('run.failed');
  });

  // [I73]
  it('a question that asks something else waits for people, who answer it', async () => {
    const runId = await source(JUDGED.id, { action: 'accept' });
    const agents = { [AGENT]: { systemPrompt: 'rule: strict' } };
    const fork = await branch(runId, 0, { agents });
    await host.waitFor(fork, waits);
    await host.waitFor(fork, ({ status }) => status === 'waiting-approval');
    expect(payloads(await rowsOf(fork), 'interrupt.resolved')).toEqual([]);
    expect((await say(fork, { action: 'accept' })).status).toBe(200);
    await endOf(fork);
  });

  it('silence is no answer: what nobody answered in time waits again', async () => {
    const runId = await source(HURRIED.id);
    const fork = await branch(runId, 0);
    const rows = await endOf(fork);
    expect(payloads(rows, 'interrupt.resolved')).toMatchObject([{ reason: 'timeout' }]);
    expect(payloads(rows, 'approval.received')).toMatchObject([{ action: 'timeout' }]);
  });

  it('all votes of a quorum', async () => {
    const votes = ['a', 'b'].map((voter) => ({ action: 'accept', voter }));
    const runId = await source(QUORUM.id, ...votes);
    for (const fromSeq of await before(runId, 'interrupt.resolved')) {
      const rows = await endOf(await branch(runId, fromSeq));
      expect(payloads(rows, 'approval.received')).toMatchObject([{ decidedBy: 'quorum:2-of-2' }]);
    }
  });

  it('votes that the log of the source tells are not asked for again: the next one stands beside them', async () => {
    const runId = await source(
      QUORUM.id,
      { action: 'ask', feedback: 'For whom?', voter: 'a' },
      ...['a', 'a', 'b'].map((voter) => ({ action: 'accept', voter })),
    );
    const votes = (rows: readonly LogRow[]) =>
      payloads(rows, 'approval.granted').map(({ principal }) => principal);
    const at = (await rowsOf(runId)).findIndex(({ type }) => type === 'approval.granted');
    const fork = await branch(runId, at + 1, { answers: 'live' });
    await host.waitFor(fork, waits);
    expect((await say(fork, { action: 'accept', voter: 'c' })).status).toBe(200);
    const rows = await endOf(fork);
    expect(votes(rows)).toEqual(['a', 'c']);
    expect(payloads(rows, 'openwop-temporal.asked-back')).toHaveLength(1);
    const recorded = await endOf(await branch(runId, at + 1));
    expect(votes(recorded)).toEqual(['a', 'b']);
    expect(payloads(recorded, 'openwop-temporal.asked-back')).toHaveLength(1);
    const of = await branch(fork, at + 2, { answers: 'live' });
    expect(votes(await endOf(of))).toEqual(['a', 'c']);
  });

  // [I73]
  it('a fork of such a fork hears once what that had heard before it left its source', async () => {
    const runId = await source(
      QUORUM.id,
      { action: 'ask', feedback: 'For whom?', voter: 'a' },
      ...['a', 'b'].map((voter) => ({ action: 'accept', voter })),
    );
    const asked = (rows: readonly LogRow[]) => payloads(rows, 'openwop-temporal.asked-back').length;
    const at = (await rowsOf(runId)).findIndex(({ type }) => type === 'approval.granted');
    const one = await branch(runId, at);
    expect(asked(await endOf(one))).toBe(1);
    const rows = await endOf(await branch(one, 0));
    expect(asked(rows)).toBe(1);
    expect(rows.at(-1)?.type).toBe('run.completed');
  });

  // [I73]
  it('a fork of such a fork, from before its first answer, goes by what it was told to go by', async () => {
    const first = await host.startRun({ workflowId: QUORUM.id });
    await host.waitFor(first, waits);
    expect((await say(first, { action: 'accept', voter: 'a' })).status).toBe(200);
    const voters = async (runId: string) =>
      payloads(await rowsOf(runId), 'approval.granted').map(({ principal }) => principal);
    const one = await branch(first, 0);
    await host.waitFor(one, waits);
    await expect.poll(() => voters(one)).toEqual(['a']);
    expect((await say(one, { action: 'accept', voter: 'c' })).status).toBe(200);
    const rows = await endOf(one);
    const at = rows.findIndex(({ type }) => type === 'openwop-temporal.voted');
    const recorded = await branch(one, at);
    await endOf(recorded);
    expect(await voters(recorded)).toEqual(['a', 'c']);
    const live = await branch(one, at, { answers: 'live' });
    await host.waitFor(live, waits);
    for (const voter of ['d', 'e'])
      expect((await say(live, { action: 'accept', voter })).status).toBe(200);
    await endOf(live);
    expect(await voters(live)).toEqual(['d', 'e']);
  });

  it('turns of a conversation that the log of the source tells are not said again', async () => {
    const runId = await source(
      TALK.id,
      ...['One.', 'Two.'].map((content) => ({ operation: 'exchange', turn: { content } })),
      { operation: 'close', outcome: 'yes' },
    );
    const said = (rows: readonly LogRow[]) =>
      payloads(rows, 'conversation.exchanged').map(
        ({ turn }) => (turn as { content: string }).content,
      );
    const rows = await rowsOf(runId);
    const at = rows.findIndex(({ type }) => type === 'conversation.exchanged');
    for (const fromSeq of [at, at + 1, at + 2])
      expect(said(await endOf(await branch(runId, fromSeq)))).toEqual(['One.', 'Two.']);
  });

  it('all turns of a conversation', async () => {
    const turn = { content: 'Why?', messageId: 'mine' };
    const runId = await source(
      TALK.id,
      { operation: 'exchange', turn },
      { operation: 'close', outcome: 'yes' },
    );
    const rows = await endOf(await branch(runId, 0));
    expect(payloads(rows, 'conversation.exchanged')).toMatchObject([{ turn: { content: 'Why?' } }]);
    expect(payloads(rows, 'conversation.closed')).toMatchObject([{ outcome: 'yes' }]);
  });

  it('forks of such forks, and their replays', async () => {
    const runId = await source(JUDGED.id, { action: 'accept', feedback: 'Fine.' });
    const one = await branch(runId, 0);
    await endOf(one);
    const two = await branch(one, 0);
    const rows = await endOf(two);
    expect(payloads(rows, 'interrupt.resolved')).toMatchObject([
      { resumeValue: { action: 'accept', feedback: 'Fine.' } },
    ]);
    for (const of of [one, two]) {
      const { body } = await host.api<{ runId: string }>(`/v1/runs/${of}:fork`, {
        body: { mode: 'replay', fromSeq: 0 },
      });
      expect((await endOf(body.runId)).at(-1)?.type).toBe('run.completed');
    }
    const live = await branch(two, 0, { answers: 'live' });
    await host.waitFor(live, waits);
  });

  it('of a fork of a fork, whose record stays while it is open; without it none is made that goes by it', async () => {
    const first = await source(JUDGED.id, { action: 'accept' });
    const between = await branch(first, 0);
    await endOf(between);
    // Of its own it says nothing of answers: it goes by those that its source went by.
    const overlay = { agents: { [AGENT]: { systemPrompt: 'rule: strict' } } };
    const inheriting = (runOptionsOverlay: object) =>
      host.api<{ runId: string }>(`/v1/runs/${between}:fork`, {
        body: { mode: 'branch', fromSeq: 1, runOptionsOverlay },
      });
    const { body } = await inheriting(overlay);
    await host.waitFor(body.runId, ({ status }) => status === 'waiting-approval');
    const expire = (runId: string) =>
      host.api(`/v1/host/sample/test/runs/${runId}/expire`, { method: 'POST' });
    for (const runId of [first, between])
      expect(await expire(runId)).toMatchObject({
        status: 409,
        body: { details: { why: 'forked' } },
      });
    expect((await say(body.runId, { action: 'accept' })).status).toBe(200);
    await endOf(body.runId);
    expect(await expire(first)).toMatchObject({ status: 200 });
    expect(await inheriting({})).toMatchObject({
      ...{ status: 422, body: { error: 'replay_source_missing', details: { runId: first } } },
    });
    for (const answers of ['live', 'recorded'])
      expect((await inheriting({ answers })).status).toBe(201);
  });
});
