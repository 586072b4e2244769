// Forks on a real host (architecture §6): made of what Temporal and the log hold of their source, also where payloads are
// encrypted; their logs come back from their own histories alone.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/rules/json.ts';
import type { LogRow } from '../../src/ports/log.ts';
import { agentNode, definition, edge, node } from '../support/definitions.ts';
import { startTestHost, until, type TestHost } from '../support/host.ts';
import { checkInvariants } from '../support/invariants.ts';
import { writeCaller, writeDefinition } from '../support/opensentience/agent-folders.ts';
import { runRef } from '../support/run-ref.ts';

const AGENT = 'local.forks.clerk';
const WORKFLOW = definition(
  'forked',
  [
    agentNode('think', AGENT),
    node('fail', 'core.fail', { settings: { retry: { maxAttempts: 2, initialDelayMs: 10 } } }),
    node('gate', 'core.approvalGate', { config: { title: 'Shall it?' } }),
    node('set', 'core.setVariable', { config: { variableName: 'n', value: 3 } }),
  ],
  [edge('think', 'fail'), edge('fail', 'gate', { triggerRule: 'any_failed' }), edge('gate', 'set')],
  { variables: [{ name: 'n', type: 'number' }] },
);

const sets = (id: string, letter: string) =>
  node(id, 'core.setVariable', {
    config: { variableName: 'text', value: letter.repeat(12_000) },
  });
/** Together more than a workflow task may carry, and a page of a recording. */
const LARGE = definition(
  'large',
  [sets('a', 'a'), sets('b', 'b'), node('end', 'core.noop')],
  [
    edge('a', 'b'),
    edge('b', 'a', { condition: { type: 'truthy', left: 'again' } }),
    edge('b', 'end'),
  ],
  {
    variables: [
      { name: 'text', type: 'string' },
      { name: 'again', type: 'boolean', defaultValue: true },
    ],
    settings: { maxLoopbackIterations: 40 },
  },
);

/** Is cancelled before it thinks. */
const SLOW = definition(
  'slow',
  [node('delay', 'core.delay', { config: { ms: 1_500 } }), agentNode('think', AGENT)],
  [edge('delay', 'think')],
);

/** Its question is over long before it is forked. */
const HASTY = definition('hasty', [
  node('gate', 'core.approvalGate', { config: { title: 'Now?', timeoutMs: 6_000 } }),
]);

const SPEAKER = 'local.forks.speaker';
const SPOKEN = definition('spoken', [agentNode('speak', SPEAKER)]);

let host: TestHost;
let folder: string;
let source: readonly LogRow[];
let sourceRunId: string;

const ended = ({ status }: { status: string }) =>
  ['completed', 'failed', 'cancelled'].includes(status);
const rowsOf = (runId: string) => host.stores.log.read(runRef(runId), { after: -1, limit: 10_000 });

async function answerGate(runId: string): Promise<void> {
  await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
  const body = { resumeValue: { action: 'accept' } };
  expect((await host.api(`/v1/runs/${runId}/interrupts/gate`, { body })).status).toBe(200);
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'openwop-forks-'));
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: AGENT, toolAllowlist: ['core:clock'] },
    turns: [
      { chunks: ['Let ', 'me ', 'see.'], calls: [{ toolId: 'core:clock', arguments: {} }] },
      { final: { decision: { told: true }, confidence: 1 } },
    ],
  });
  await writeCaller(join(folder, 'agents'), {
    ...{ agentId: SPEAKER, toolAllowlist: [] },
    turns: [
      {
        ...{ chunks: ['One. ', 'Two. ', 'Three. ', 'Four.'], delayMsPerChunk: 700 },
        final: { decision: { told: true }, confidence: 1 },
      },
    ],
  });
  for (const each of [WORKFLOW, LARGE, SLOW, HASTY, SPOKEN])
    await writeDefinition(join(folder, 'definitions'), each);
  host = await startTestHost({
    ...{ agentsDir: join(folder, 'agents'), fixturesDir: join(folder, 'definitions') },
    encryption: true,
  });
  sourceRunId = await host.startRun({ workflowId: WORKFLOW.id });
  await answerGate(sourceRunId);
  await host.waitFor(sourceRunId, ended);
  source = await rowsOf(sourceRunId);
});

afterAll(async () => {
  await host?.stop();
  await rm(folder, { recursive: true, force: true });
});

const fork = (of: object, from = sourceRunId, headers = {}) =>
  host.api<{ runId: string; error: string }>(`/v1/runs/${from}:fork`, { body: of, headers });

async function startFork(of: object, from = sourceRunId): Promise<string> {
  const { status, body } = await fork(of, from);
  expect([status, body]).toMatchObject([201, { sourceRunId: from, ...of }]);
  return body.runId;
}

/** What a row says, under its source's name; live text is told once more only by those who say it. */
const told = (rows: readonly LogRow[], runId: string): string[] =>
  rows.map(({ type, nodeId, payload, timestampMs, sequence }) =>
    JSON.stringify({
      ...{ type, nodeId, payload: payload.replaceAll(runId, sourceRunId) },
      ...{ timestampMs, sequence },
    }),
  );
const facts = (rows: readonly LogRow[], runId: string): string[] =>
  rows
    .filter(({ type }) => type !== 'agent.reasoning.delta')
    .map(({ type, nodeId, payload }) =>
      JSON.stringify({ type, nodeId, payload: payload.replaceAll(runId, sourceRunId) }),
    );

describe('replay.md §Modes', () => {
  it.each([
    ['its beginning', () => 0],
    ['the middle of a stream', () => source.findIndex(({ key }) => key.endsWith('#d1'))],
    ['a question', () => source.findIndex(({ type }) => type === 'node.suspended')],
    ['its end', () => source.length],
  ])('a replay from %s states what its source stated, and performs nothing', async (_from, at) => {
    const fromSeq = at();
    const runId = await startFork({ mode: 'replay', fromSeq });
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const rows = await rowsOf(runId);
    expect(told(rows, runId).slice(0, fromSeq)).toEqual(
      told(source, sourceRunId).slice(0, fromSeq),
    );
    expect(facts(rows, runId)).toEqual(facts(source, sourceRunId));
    await checkInvariants(host, runId);
  });

  it('two replays of one point are equal byte for byte', async () => {
    const fromSeq = source.findIndex(({ key }) => key.endsWith('#d1'));
    const replays = [
      await startFork({ mode: 'replay', fromSeq }),
      await startFork({ mode: 'replay', fromSeq }),
    ];
    for (const runId of replays)
      expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const [one = [], other] = await Promise.all(
      replays.map(async (runId) =>
        (await rowsOf(runId)).map(({ type, nodeId, payload, sequence }) => [
          ...[type, nodeId, sequence],
          payload.replaceAll(runId, 'it'),
        ]),
      ),
    );
    expect(one.length).toBeGreaterThan(fromSeq);
    expect(other).toEqual(one);
  });

  it('a replay of more than one workflow task may carry takes several', async () => {
    const large = await host.startRun({ workflowId: LARGE.id });
    const { status } = await host.waitFor(large, ended);
    const rows = await rowsOf(large);
    expect(rows.length).toBeGreaterThan(60);
    for (const fromSeq of [0, rows.length]) {
      const runId = await startFork({ mode: 'replay', fromSeq }, large);
      expect((await host.waitFor(runId, ended)).status).toBe(status);
      const again = await rowsOf(runId);
      expect(again.map(({ key, payload }) => [key, payload])).toEqual(
        rows.map(({ key, payload }) => [key, payload]),
      );
      await checkInvariants(host, runId);
    }
  });

  it('a branch from a human’s answer asks again, and takes what is answered now', async () => {
    const fromSeq = source.findIndex(({ type }) => type === 'interrupt.resolved');
    const runId = await startFork({ mode: 'branch', fromSeq });
    await answerGate(runId);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const rows = await rowsOf(runId);
    expect(told(rows, runId).slice(0, fromSeq)).toEqual(
      told(source, sourceRunId).slice(0, fromSeq),
    );
    expect(rows.at(-1)?.type).toBe('run.completed');
    await checkInvariants(host, runId);
  });

  it('a branch from a decision asks the model again', async () => {
    const calls = source.map(({ type }) => type).lastIndexOf('agent.reasoned');
    const runId = await startFork({ mode: 'branch', fromSeq: calls < 0 ? 0 : calls });
    await answerGate(runId);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    await checkInvariants(host, runId);
  });

  it.each([0, 2])('a branch inside a stream, behind its delta %i', async (delta) => {
    const fromSeq = source.findIndex(({ key }) => key.endsWith(`#d${delta}`)) + 1;
    const runId = await startFork({ mode: 'branch', fromSeq });
    await answerGate(runId);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    const rows = await rowsOf(runId);
    expect(told(rows, runId).slice(0, fromSeq)).toEqual(
      told(source, sourceRunId).slice(0, fromSeq),
    );
    const reasoned = rows.find(({ type }) => type === 'agent.reasoned');
    const said = ['Let ', 'me ', 'see.'].slice(0, delta + 1).join('');
    expect(JSON.parse(reasoned?.payload ?? '{}')).toMatchObject({ reasoning: said });
    await checkInvariants(host, runId);
  });

  it('its source stays as it was', async () => {
    const runId = await startFork({ mode: 'replay', fromSeq: 5 });
    await host.waitFor(runId, ended);
    expect(await rowsOf(sourceRunId)).toEqual(source);
  });

  it('forks of forks of forks, each of what its source states', async () => {
    const fromSeq = source.findIndex(({ type }) => type === 'interrupt.resolved');
    const branch = await startFork({ mode: 'branch', fromSeq });
    await answerGate(branch);
    await host.waitFor(branch, ended);
    let [before, rows] = [branch, await rowsOf(branch)];
    for (const at of [fromSeq + 2, 0, fromSeq - 3]) {
      const runId = await startFork({ mode: 'replay', fromSeq: at }, before);
      expect((await host.waitFor(runId, ended)).status).toBe('completed');
      const again = await rowsOf(runId);
      expect(facts(again, runId)).toEqual(facts(rows, before));
      await checkInvariants(host, runId);
      [before, rows] = [runId, again];
    }
  });

  it('more generations of forks than the bound are refused', async () => {
    const asked = { mode: 'branch', fromSeq: 1 };
    const first = await startFork(asked);
    await host.waitFor(first, ({ status }) => status === 'waiting-approval');
    const row = await host.stores.runs.find('default', first);
    const made = row?.input.fork;
    if (!row || !made) throw new Error('the fork is not there');
    expect(made.generation).toBe(1);
    // Of runs that are so deep as their rows say; they have no log that could be forked.
    const answers: unknown[] = [];
    for (const generation of [15, 16]) {
      const runId = `run-of-generation-${generation}`;
      const input = { ...row.input, runId, fork: { ...made, generation } };
      await host.stores.runs.accept({ ...row, runId, input });
      const { status, body } = await fork(asked, runId);
      answers.push([status, body.error]);
    }
    expect(answers).toEqual([
      [422, 'invalid_from_seq'],
      [501, 'capability_not_provided'],
    ]);
    // One more than its source, each time.
    const second = await startFork(asked, first);
    await host.waitFor(second, ({ status }) => status === 'waiting-approval');
    const input = (await host.stores.runs.find('default', second))?.input;
    expect(input?.fork?.generation).toBe(2);
  });

  it('a run that waits is forked as far as it is, and both go on', async () => {
    const open = await host.startRun({ workflowId: WORKFLOW.id });
    await host.waitFor(open, ({ status }) => status === 'waiting-approval');
    const { length } = await rowsOf(open);
    const runId = await startFork({ mode: 'branch', fromSeq: length }, open);
    for (const each of [open, runId]) {
      await answerGate(each);
      expect((await host.waitFor(each, ended)).status).toBe('completed');
      await checkInvariants(host, each);
    }
  });

  it('a run that speaks is forked as far as it has spoken, and goes on', async () => {
    const speaking = await host.startRun({ workflowId: SPOKEN.id });
    const deltas = (rows: readonly LogRow[]) =>
      rows.filter(({ type }) => type === 'agent.reasoning.delta').length;
    await until(async () => deltas(await rowsOf(speaking)) > 1, 'it speaks');
    const { length } = await rowsOf(speaking);
    const branch = await startFork({ mode: 'branch', fromSeq: length }, speaking);
    const replay = await startFork({ mode: 'replay', fromSeq: 0 }, speaking);
    expect((await rowsOf(speaking)).some(({ type }) => type === 'run.completed')).toBe(false);
    for (const each of [speaking, branch]) {
      expect((await host.waitFor(each, ended)).status).toBe('completed');
      await checkInvariants(host, each);
    }
    const whole = await rowsOf(speaking);
    expect(deltas(whole)).toBe(4);
    const named = (rows: readonly LogRow[], runId: string) =>
      told(rows.slice(0, length), runId).map((row) => row.replaceAll(speaking, sourceRunId));
    expect(named(await rowsOf(branch), branch)).toEqual(named(whole, speaking));
    // What it said later is none of what it was forked as.
    const { status, error } = await host.waitFor(replay, ended);
    expect([status, error?.code]).toEqual(['failed', 'replay_source_missing']);
  });

  it('a question of a branch has the time that was left, counted from the fork', async () => {
    const late = await host.startRun({ workflowId: HASTY.id });
    await host.waitFor(late, ended);
    const rows = await rowsOf(late);
    const fromSeq = rows.findIndex(({ type }) => type === 'interrupt.requested') + 1;
    const asked = (await rowsOf(late))[fromSeq - 1]?.timestampMs ?? 0;
    const runId = await startFork({ mode: 'branch', fromSeq }, late);
    const snapshot = await host.waitFor(runId, ({ status }) => status === 'waiting-approval');
    const { interrupt, createdAt } = snapshot as unknown as {
      interrupt: JsonObject;
      createdAt: string;
    };
    const createdAtMs = Date.parse(createdAt);
    const untilMs = Date.parse(interrupt.expiresAt as string);
    expect([createdAtMs > asked + 6_000, Math.abs(untilMs - createdAtMs - 6_000) < 100]).toEqual([
      true,
      true,
    ]);
    await answerGate(runId);
    expect((await host.waitFor(runId, ended)).status).toBe('completed');
    await checkInvariants(host, runId);
  });

  it('a replay asks nobody: what was never answered is missing', async () => {
    const open = await host.startRun({ workflowId: WORKFLOW.id });
    await host.waitFor(open, ({ status }) => status === 'waiting-approval');
    const runId = await startFork({ mode: 'replay', fromSeq: 0 }, open);
    const { status, error } = await host.waitFor(runId, ended);
    expect([status, error?.code]).toEqual(['failed', 'replay_source_missing']);
    await checkInvariants(host, runId);
    await host.api(`/v1/runs/${open}/cancel`, { body: {} });
    await host.waitFor(open, ended);
  });

  it('a replay of a run that was cancelled goes on: clocks run, and steps are missing', async () => {
    const cut = await host.startRun({ workflowId: SLOW.id });
    await host.waitFor(cut, ({ status }) => status === 'running');
    await host.api(`/v1/runs/${cut}/cancel`, { body: {} });
    await host.waitFor(cut, ended);
    const runId = await startFork({ mode: 'replay', fromSeq: 0 }, cut);
    expect((await host.waitFor(runId, ended)).status).toBe('failed');
    const failed = (await rowsOf(runId)).find(({ type }) => type === 'node.failed');
    expect(failed?.nodeId).toBe('think');
    expect(failed?.payload).toContain('replay_source_missing');
    await checkInvariants(host, runId);
  });

  it.each([
    ['cancel', '/cancel', {}],
    ['pause', ':pause', {}],
    ['resume', ':resume', {}],
    ['an answer', '/interrupts/gate', { resumeValue: { action: 'accept' } }],
  ])(
    '%s that comes while the record is read is taken or refused by name',
    async (_of, path, body) => {
      const forks = Array.from({ length: 2 }, async () => {
        const runId = await startFork({ mode: 'replay', fromSeq: 0 });
        const sent = await host.api<{ error?: string }>(`/v1/runs/${runId}${path}`, { body });
        const { status } = await host.waitFor(runId, ended);
        await checkInvariants(host, runId);
        return { runId, sent, status };
      });
      for (const { sent, status } of await Promise.all(forks)) {
        expect([sent.body, sent.status < 500]).toEqual([sent.body, true]);
        const isCancelled =
          path === '/cancel' && (sent.body as { status?: string }).status === 'cancelling';
        expect(status).toBe(isCancelled ? 'cancelled' : 'completed');
      }
    },
  );

  it('a key makes one fork, whoever asks how often', async () => {
    const headers = { 'idempotency-key': 'fork-once' };
    const asked = { mode: 'replay', fromSeq: 0 };
    const [one, two] = [
      await fork(asked, sourceRunId, headers),
      await fork(asked, sourceRunId, headers),
    ];
    expect([one.status, two.status, two.body.runId]).toEqual([201, 201, one.body.runId]);
    const other = await fork({ ...asked, fromSeq: 1 }, sourceRunId, headers);
    expect([other.status, other.body.error]).toEqual([409, 'idempotency_key_mismatch']);
  });
});

describe('replay.md §Errors', () => {
  it.each([
    ['a place before the first', { mode: 'branch', fromSeq: -1 }, 400, 'validation_error'],
    ['a place that is no number', { mode: 'branch', fromSeq: 1.5 }, 400, 'validation_error'],
    ['a branch from nowhere', { mode: 'branch' }, 400, 'validation_error'],
    ['a mode that is none', { mode: 'again' }, 400, 'validation_error'],
    ['a member that is none', { mode: 'replay', from: 1 }, 400, 'validation_error'],
    [
      'an overlay of a replay',
      { mode: 'replay', runOptionsOverlay: { inputs: {} } },
      400,
      'validation_error',
    ],
    ['a place behind the end', { mode: 'replay', fromSeq: 10_000 }, 422, 'invalid_from_seq'],
  ])('%s', async (_what, asked, status, error) => {
    const answer = await fork(asked);
    expect([answer.status, answer.body.error]).toEqual([status, error]);
  });

  it('an unknown run, and one of somebody else', async () => {
    const row = await host.stores.runs.find('default', sourceRunId);
    if (!row) throw new Error('the run is not there');
    const theirs = { runId: 'run-of-somebody-else', tenant: 'other' };
    await host.stores.runs.accept({ ...row, ...theirs, input: { ...row.input, ...theirs } });
    for (const unknown of ['run-unknown', theirs.runId]) {
      const { status, body } = await fork({ mode: 'replay' }, unknown);
      expect([status, body.error]).toEqual([404, 'run_not_found']);
    }
  });
});
